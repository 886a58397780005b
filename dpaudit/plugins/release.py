"""What a generator returned: read as synthetic records, and how it was written before.

A release shows more than its values: the order of columns, the index (`to_csv`
writes it), dtypes, levels of categories, attributes, and text as it was written. Each fact says how
a release differs from the canonical table of its values (`Schema.canonical`); all are 0 for that.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, Final, TypeGuard

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.errors import DataError, RowCountError, SchemaError, TrialError
from dpaudit.external.session import FILE
from dpaudit.formatting import counted
from dpaudit.model.column import MISSING, Column, Unit, as_numbers, plain_numbers
from dpaudit.model.linked_tables import LinkedTables
from dpaudit.model.schema import Schema, canonical_table
from dpaudit.plugins.protocols import FeatureName, FloatArray


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
    # The same as `schema.canonical`, with each column read once.
    numeric = [column.name for column in schema.columns if column.kind.numeric]
    plain = plain_numbers(table, numeric)
    numbers = {} if plain is None else dict(zip(numeric, plain.T, strict=True))
    return canonical_table(
        {c.name: _accepted(c, table, numbers.get(c.name)) for c in schema.columns}
    )


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
    if unit is None or not _names_units(released, unit):
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
    if unit is None or not _names_units(released, unit):
        return table
    return table.assign(**{unit.column: released[unit.column].to_numpy(dtype=object)})


def _names_units(released: object, unit: Unit) -> TypeGuard[pd.DataFrame]:
    """Whether a release is a table with the unit's column, once."""
    return isinstance(released, pd.DataFrame) and list(released.columns).count(unit.column) == 1


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


def _accepted(column: Column, table: pd.DataFrame, numbers: FloatArray | None) -> npt.NDArray[Any]:
    """One column's values [n] in canonical form; `numbers` are the same, if they are plain."""
    if numbers is not None and np.isfinite(numbers).all():
        return column.canonical_numbers(numbers)
    values = table[column.name]
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


RELEASE: Final = "release"
"""The column name in names of facts about a whole release."""
_WHOLE: Final = (
    "columns out of order",
    "kind of table and names of its axes",
    "attributes",
    "code of the attributes",
    "kind of index",
    "smallest index label",
    "largest index label",
    "index labels that are not the row's number",
    "repeated index labels",
    "index labels below the one before",
    "code of the index labels",
)
_FILE: Final = (
    "bytes of the file beyond those of plain CSV",
    "carriage returns in the file",
    "quotation marks in the file",
    "spaces in the file",
    "code of the file's first line",
)
_COLUMN: Final = (
    "place among the columns",
    "dtype as written",
    "levels of the dtype",
    "code of the dtype's levels",
    "negative zeros",
    "kinds of missing values",
    "values of another type",
    "values written otherwise",
    "characters beyond the plain form",
    "padded texts",
    "capital letters",
    "code of the texts",
)


def release_names(schema: Schema) -> list[FeatureName]:
    """Names of the facts, in the order of `release_facts`."""
    whole = [FeatureName(RELEASE, name) for name in (*_WHOLE, *_FILE)]
    return whole + [FeatureName(name, fact) for name in schema.names for fact in _COLUMN]


def release_facts(release: pd.DataFrame, table: pd.DataFrame, schema: Schema) -> FloatArray:
    """The facts [f] of a release, all finite.

    Args:
        release: What `sample` returned.
        table: The same in canonical form.
        schema: Their schema.

    Raises:
        Exception: What values of a foreign type raise when they are written as text.
    """
    found = [*_whole(release, table), *_file(release, table)]
    written = {name: (place, values) for place, (name, values) in enumerate(release.items())}
    for position, (column, dtype) in enumerate(zip(schema.columns, table.dtypes, strict=True)):
        place, values = written[column.name]
        if values.dtype == dtype and dtype.kind in "iu":  # nothing to be written otherwise
            found += [place - position, *[0.0] * (len(_COLUMN) - 1)]
        else:
            found += [place - position, *_column(values, dtype, table, column)]
    return np.clip(np.nan_to_num(np.array(found, dtype=np.float64)), -1e15, 1e15)


def _code(*parts: object) -> float:
    """A number in (0, 1) that stands for some texts."""
    text = "\0".join(map(str, parts))
    return (1 + zlib.crc32(text.encode("utf-8", "backslashreplace"))) / (2**32 + 1)


def _whole(release: pd.DataFrame, table: pd.DataFrame) -> list[float]:
    order = table.columns.get_indexer(release.columns)
    own = {key: value for key, value in release.attrs.items() if key != FILE}
    axes, usual = (
        (type(one).__name__, str(one.columns.name), str(one.columns.dtype), str(one.flags))
        for one in (release, table)
    )
    return [
        float(np.triu(order[:, None] > order).sum()),
        0.0 if axes == usual else _code(*axes),
        float(len(own)),
        _code(sorted(map(repr, own.items()))) if own else 0.0,
        *_index(release.index),
    ]


def _index(index: pd.Index[Any]) -> list[float]:
    count = len(index)
    if type(index) is pd.RangeIndex and index.equals(pd.RangeIndex(count)) and index.name is None:
        return [0.0] * 7
    kind = _code(type(index).__name__, index.dtype, *index.names)
    texts = list(map(str, index))
    try:
        labels = np.asarray(index, dtype=np.float64)
    except (TypeError, ValueError):
        labels = np.array(list(map(len, texts)), dtype=np.float64)
    return [
        kind,
        float(labels.min()),
        float(labels.max()) - (count - 1),
        float(np.count_nonzero(labels != np.arange(count))),
        float(count - len(set(texts))),
        float(np.count_nonzero(np.diff(labels) < 0)),
        _code(*sorted(texts)),
    ]


def _file(release: pd.DataFrame, table: pd.DataFrame) -> list[float]:
    content = release.attrs.get(FILE)
    if not isinstance(content, bytes):
        return [0.0] * len(_FILE)
    plain = table.to_csv(index=False).encode()
    first = content.split(b"\n", 1)[0]
    return [
        float(len(content) - len(plain)),
        *(float(content.count(mark) - plain.count(mark)) for mark in (b"\r", b'"', b" ")),
        0.0 if first == plain.split(b"\n", 1)[0] else _code(first),
    ]


def _column(values: pd.Series[Any], plain: Any, table: pd.DataFrame, column: Column) -> list[float]:
    dtype, levels, code = values.dtype, 0.0, 0.0
    if isinstance(dtype, pd.CategoricalDtype):
        levels = float(len(dtype.categories))
        code = _code(dtype.ordered, dtype.categories.dtype, *dtype.categories)
    kind = 0.0 if dtype == plain else _code(dtype)
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        numbers = values.to_numpy()
        zeros = np.count_nonzero(np.signbit(numbers) & (numbers == 0)) if dtype.kind == "f" else 0
        return [kind, levels, code, float(zeros), *[0.0] * 7]
    cells = values.astype(object).tolist()
    own = table[column.name].tolist()
    return [kind, levels, code, 0.0, *_texts(cells, own, set(column.categories))]


def _texts(cells: list[Any], plain: list[Any], named: set[Any]) -> list[float]:
    """Facts about cells that are objects: of those that are no canonical values, or not named."""
    if named.issuperset(plain) and list(map(type, cells)) == list(map(type, plain)):
        return [0.0] * 7
    strange = [bool(named) and not _is_nan(other) and other not in named for other in plain]
    differing = [
        (cell, str(cell).strip().casefold() if unnamed else other, unnamed)
        for cell, other, unnamed in zip(cells, plain, strange, strict=True)
        if unnamed or type(cell) is not type(other)
    ]
    missing = {repr(cell) for cell, other, _ in differing if _is_nan(other)}
    there = [one for one in differing if not _is_nan(one[1])]
    texts = [(str(cell), str(other), unnamed) for cell, other, unnamed in there]
    written = [cell for cell, other, unnamed in texts if unnamed or cell != other]
    return [
        _code(*sorted(missing)) if missing else 0.0,
        float(sum(type(cell) is not type(other) for cell, other, unnamed in there if not unnamed)),
        float(len(written)),
        float(sum(len(cell) - len(other) for cell, other, _ in texts)),
        float(sum(cell != cell.strip() for cell in written)),
        float(sum(letter.isupper() for cell in written for letter in cell)),
        _code(*sorted(set(written))) if written else 0.0,
    ]


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and value != value
