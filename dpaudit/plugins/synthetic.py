"""Checks whether a generator's output can be read as synthetic records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.errors import DataError, RowCountError, SchemaError, TrialError
from dpaudit.formatting import counted
from dpaudit.model.column import MISSING, Column, as_numbers, is_plain
from dpaudit.model.linked_tables import LinkedTables
from dpaudit.model.schema import Schema, canonical_table
from dpaudit.model.unit import Unit
from dpaudit.plugins.protocols import FloatArray


def accept(table: object, schema: Schema, n_rows: int) -> pd.DataFrame:
    """Checks what a generator returned and brings it into canonical form.

    Values outside the schema's bounds or categories are allowed (they are evidence); a table that
    cannot be read as one of `n_rows` records with the schema's columns is not. Several tables are a
    dict by name, with `n_rows` rows of the root; they may lack their keys.

    Args:
        table: What `sample` returned.
        schema: The schema.
        n_rows: Rows that were requested.

    Returns:
        The canonical table, or the frame of several.

    Raises:
        TrialError: If it is not such a table; says how.
    """
    if isinstance(schema, LinkedTables):
        return schema.stacked(_accepted_tables(table, schema, n_rows))
    if not isinstance(table, pd.DataFrame):
        raise TrialError(f"sample returned {type(table).__name__}, not a pandas DataFrame")
    problems = schema.column_problems(table)
    if problems:
        raise TrialError(_wrong_columns(table, schema)) from DataError("; ".join(problems))
    if len(table) != n_rows:
        raise RowCountError(len(table), n_rows)
    # The same as `schema.canonical`, with each column taken out and read once.
    return canonical_table({c.name: _accepted(c, table[c.name]) for c in schema.columns})


def units_together(released: Any, schema: Schema) -> Any:
    """What a generator returned, with the rows of each unit that it names next to each other.

    Units come in the order of their first rows, and the rows of a unit keep theirs: attacks that
    compare rows which follow each other then see the order within a unit.

    Args:
        released: What `sample` returned.
        schema: The schema.

    Returns:
        The same rows; as they were where it names no units.
    """
    unit = schema.unit
    if unit is None or not isinstance(released, pd.DataFrame) or not _names_units(released, unit):
        return released
    return released.iloc[np.argsort(unit.codes(released), kind="stable")]


def with_units(table: pd.DataFrame, released: object, schema: Schema) -> pd.DataFrame:
    """An accepted table with the unit's column, last, if the generator released one.

    Args:
        table: The canonical table.
        released: What `accept` made it of.
        schema: The schema.
    """
    unit = schema.unit
    if unit is None or not isinstance(released, pd.DataFrame) or not _names_units(released, unit):
        return table
    return table.assign(**{unit.column: released[unit.column].to_numpy(dtype=object)})


def _names_units(released: pd.DataFrame, unit: Unit) -> bool:
    """Whether a release has the unit's column, once."""
    return list(released.columns).count(unit.column) == 1


def _accepted_tables(tables: object, schema: LinkedTables, n_rows: int) -> dict[str, pd.DataFrame]:
    """Each table in canonical form, with the keys that it has.

    Raises:
        TrialError: As `accept`; says of which table.
    """
    if not isinstance(tables, Mapping) or set(tables) != set(schema.tables):
        names = f" of {len(tables)} others" if isinstance(tables, Mapping) else ""
        raise TrialError(
            f"sample returned {type(tables).__name__}{names}, not a dict of the tables "
            f"{', '.join(schema.tables)}"
        )
    found = {}
    for name, part in schema.tables.items():
        table = tables[name]
        keys = {key for key, _ in schema.keys_of(name)}
        try:
            is_frame = isinstance(table, pd.DataFrame) and table.columns.is_unique
            own = [key for key in table.columns if key in keys] if is_frame else []
            values = table.drop(columns=own) if own else table
            asked = n_rows if name == schema.root or not is_frame else len(table)
            accepted = accept(values, part, asked)
        except RowCountError:
            raise
        except TrialError as error:
            raise TrialError(f"table {name}: {error.shareable}") from error
        found[name] = accepted.assign(**{key: table[key].to_numpy(dtype=object) for key in own})
    return found


def _accepted(column: Column, values: pd.Series[Any]) -> npt.NDArray[Any]:
    """One column's values [n] in canonical form."""
    numbers = None
    if column.kind.numeric and is_plain(values):
        numbers = as_numbers(values)
    absent = np.isnan(numbers) if numbers is not None else values.isna()
    if not column.missing and absent.any():
        raise TrialError(_missing(column.name))
    if not column.kind.numeric:
        return column.canonical(values)
    try:
        numbers = as_numbers(values) if numbers is None else numbers
    except SchemaError as error:  # which shows the value
        raise TrialError(f"column {column.name!r} holds what is no number") from error
    if np.isinf(numbers).any():
        raise TrialError(_infinite(column.name))
    return column.canonical_numbers(numbers)


def accept_stack(values: object, schema: Schema, n_rows: int, *, models: int) -> FloatArray:
    """Checks that what many models gave are numbers of the right shape.

    Args:
        values: What `sample_many` returned.
        schema: The schema.
        n_rows: Rows that were requested of each model.
        models: How many models there are.

    Returns:
        Values [M, n, d]; `accept_values` checks those of each model.

    Raises:
        TrialError: If they are not; says how.
    """
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiu":
        what = type(values).__name__
        raise TrialError(f"sample_many returned {what}, not a numpy array of numbers")
    expected = (models, n_rows, len(schema.columns))
    if values.shape != expected:
        if values.ndim == 3 and values.shape[::2] == expected[::2]:
            raise RowCountError(values.shape[1], n_rows)
        raise TrialError(f"sample_many returned values of shape {values.shape}, not {expected}")
    return np.asarray(values, dtype=np.float64)


def accept_values(values: FloatArray, schema: Schema) -> None:
    """Checks the values [n, d] of one model, as `accept` checks a table.

    Raises:
        TrialError: If they cannot be read as records; says how.
    """
    for column, numbers in zip(schema.columns, values.T, strict=True):
        missing = np.isnan(numbers) if column.kind.numeric else numbers == MISSING
        if not column.missing and missing.any():
            raise TrialError(_missing(column.name))
        if column.kind.numeric:
            if np.isinf(numbers).any():
                raise TrialError(_infinite(column.name))
        elif not np.isin(numbers, np.arange(MISSING, len(column.categories))).all():
            raise TrialError(
                f"column {column.name!r} has values that are not positions of a category"
            )


def _wrong_columns(table: pd.DataFrame, schema: Schema) -> str:
    """Names columns of the schema alone: those of a synthetic table may be anything."""
    lacking = [f"column {name!r} is missing" for name in schema.names if name not in table.columns]
    others = sum(name not in schema.names for name in table.columns)
    said = [*lacking[:3], *([counted(others, "unknown column")] if others else [])]
    return f"wrong columns: {'; '.join(said) or 'names repeat'}"


def _missing(name: str) -> str:
    return f"column {name!r} has missing values (NaN)"


def _infinite(name: str) -> str:
    return f"column {name!r} has infinite values"
