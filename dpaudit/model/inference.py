"""Infers the columns of a schema from the values of a table.

Bounds and categories then depend on private data, so schemas that use them are marked as inferred.
Columns that say nothing or name records, such as identifiers and free text, are left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final, cast

import numpy as np
import pandas as pd

from dpaudit.errors import SchemaError
from dpaudit.formatting import listed, quote
from dpaudit.model.column import (
    LARGEST_WHOLE,
    Category,
    Column,
    Kind,
    read_columns,
    refuse,
    repeated_names,
)
from dpaudit.model.dates import days_of, form_of_dates, odd_dates

MAX_CATEGORIES: Final = 1000
"""More distinct strings than this look like an identifier or free text."""
_FEW: Final = 20
"""Up to this many distinct values may be categories, whatever they look like."""
_FEWEST_ROWS: Final = 50
"""Smallest number of rows that shows an identifier."""
_IMPOSSIBLE: Final = 20.0
"""Events with a probability of at most exp(-this) are treated as impossible."""
_MOST: Final = 0.9
"""Share of a column's distinct values that decides what the column holds."""
_SHOWN: Final = 5
"""Largest number of columns whose problems are shown."""
_NAMED: Final = 20
"""Largest number of columns that are named as set aside."""
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_WRITTEN: Final = re.compile(r"[+-]?[$€£]?[\d.,' ]*\d ?[%$€£]?|\d+([-/.])\d+\1\d+([ T][\d:.Z+-]+)?")
"""Numbers with a decimal comma, a thousands separator or a unit, and dates."""


def infer_columns(
    data: pd.DataFrame, kinds: Mapping[str, Kind | None] = MappingProxyType({})
) -> tuple[Column, ...]:
    """Infers the columns of a table; see `Schema.infer`.

    Args:
        data: The table.
        kinds: Declared kinds of columns; those of others are guessed.

    Raises:
        SchemaError: If a column is constant or cannot be described, or the table has a single row.
    """
    _check_table(data)

    def read(name: str) -> Column:
        column = _infer_column(name, data[name], kinds.get(name))
        if isinstance(column, str):
            raise SchemaError(f"{column}: drop it, or describe it in a schema")
        return column

    return read_columns((partial(read, name) for name in data.columns), most=_SHOWN)


def _check_table(data: pd.DataFrame) -> None:
    for problem in repeated_names(data):
        raise SchemaError(f"{problem}; rename them")
    if len(data) == 1:
        raise SchemaError(
            "a single row shows no bounds or categories: give more rows, or a public schema"
        )
    for name in data.columns:
        if not isinstance(name, str):
            raise SchemaError(
                f"column name {name!r} is not text: rename, for example with "
                "data.columns = data.columns.astype(str)"
            )


def columns_from_sdv(metadata: Mapping[str, Any], data: pd.DataFrame) -> tuple[Column, ...]:
    """Reads columns from SDV-style metadata and a table; see `Schema.from_sdv`.

    Raises:
        SchemaError: As there.
    """
    tables = metadata.get("tables")
    if isinstance(tables, Mapping):
        if len(tables) != 1:
            raise SchemaError(f"the metadata describes {len(tables)} tables; an audit takes one")
        metadata = next(iter(tables.values()))
    described = metadata.get("columns") if isinstance(metadata, Mapping) else None
    if not isinstance(described, Mapping):
        raise SchemaError('SDV metadata needs "columns": {name: {"sdtype": ...}}')
    kinds: dict[str, Kind | None] = {}
    problems = []
    for name, entry in described.items():
        sdtype = entry.get("sdtype") if isinstance(entry, Mapping) else None
        match sdtype:
            case "numerical":
                whole = str(entry.get("computer_representation", "")).startswith(("Int", "UInt"))
                kinds[name] = Kind.INTEGER if whole else Kind.CONTINUOUS
            case "categorical" | "boolean":
                kinds[name] = Kind.CATEGORICAL
            case "datetime":
                kinds[name] = None  # how it is written decides
            case _:
                problems.append(
                    f"column {name!r}: sdtype {sdtype!r} is not supported: drop it, or convert it "
                    "to a number or a category"
                )
        if name not in data.columns:
            problems.append(f"column {name!r} is in the metadata but not in the table")
    refuse(problems)
    return infer_columns(data[list(kinds)], kinds)


def describe_columns(
    *tables: pd.DataFrame, from_file: bool = True
) -> tuple[tuple[Column, ...], dict[str, str]]:
    """Infers the columns that say something, and why the others do not: identifiers, free text.

    Args:
        tables: Tables with the same columns, such as train and hold-out.
        from_file: Whether columns that number the rows in every table are not described.

    Returns:
        The columns, and the reason of each of the others.

    Raises:
        SchemaError: If names are no text or repeat, there is a single row, a column has values of
            a wrong type, or no column is left.
    """
    together = pd.concat(tables, ignore_index=True) if len(tables) > 1 else tables[0]
    _check_table(together)
    columns: list[Column] = []
    reasons: dict[str, str] = {}
    problems = []
    for name in together.columns:
        if from_file and all(_numbers_the_rows(table[name]) for table in tables):
            reasons[name] = f"column {name!r} numbers the rows"
            continue
        try:
            column = _infer_column(name, together[name], None)
        except SchemaError as error:
            problems.append(str(error))
            continue
        if isinstance(column, str):
            reasons[name] = column
        else:
            columns.append(column)
    refuse(problems or ([] if columns else list(reasons.values())), most=_SHOWN)
    return tuple(columns), reasons


def set_aside(reasons: Mapping[str, str]) -> str:
    """One line that names the columns that were set aside, and why."""
    names = listed(list(reasons.values()), _NAMED, separator="; ")
    return f"set aside: {names}"


def _infer_column(name: str, values: pd.Series[Any], kind: Kind | None) -> Column | str:
    """Infers a column from its values; guesses its kind unless it is declared.

    Returns:
        The column; why there is nothing to compare, for one that is constant, free text or an
        identifier.

    Raises:
        SchemaError: If it has values of a wrong type.
    """
    present = values.dropna()
    missing = len(present) < len(values)
    dated = None if kind is not None else _infer_dates(name, present, missing=missing)
    if dated is not None:
        return dated
    _refuse_what_json_lacks(name, present)
    distinct = present.unique()
    if len(distinct) + missing < 2:
        content = (
            "missing everywhere"
            if missing
            else "one value everywhere"
            if len(distinct)
            else "empty"
        )
        return f"column {name!r} is constant ({content})"
    is_number = (
        pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    ) or pd.api.types.infer_dtype(present) == "integer"  # beyond 64 bits
    if kind is None:
        kind = _guess_kind(distinct, is_number=is_number)
    if kind.numeric:
        if not is_number:
            raise SchemaError(f"column {name!r} is declared {kind} but holds no numbers")
        lower, upper = float(present.min()), float(present.max())
        if kind is Kind.INTEGER and max(-lower, upper) > LARGEST_WHOLE:
            return f"column {name!r} holds whole numbers beyond 2**53, which are not exact"
        if lower < upper:
            return Column(name=name, kind=kind, lower=lower, upper=upper, missing=missing)
        kind = Kind.CATEGORICAL  # one number, or missing: two possible values in all
    texts = [value for value in distinct if isinstance(value, str)]
    if reason := _why_no_categories(name, values, texts):
        return reason
    categories = _categories_of(values, distinct)
    kind = Kind.BINARY if len(categories) == 2 else Kind.CATEGORICAL
    return Column(name=name, kind=kind, categories=categories, missing=missing)


def _infer_dates(name: str, present: pd.Series[Any], *, missing: bool) -> Column | None:
    """A column of dates, if all values are dates in one form and there are two at least."""
    form = form_of_dates(present)
    days = np.zeros(0) if form is None else days_of(present, form)
    if form is None or not len(days) or days.min() == days.max():
        return None
    kind = Kind.INTEGER if (days == np.rint(days)).all() else Kind.CONTINUOUS
    lower, upper = float(days.min()), float(days.max())
    return Column(name=name, kind=kind, lower=lower, upper=upper, missing=missing, date=form)


def _numbers_the_rows(values: pd.Series[Any]) -> bool:
    """Whether the whole numbers of a column [n] look like those of an identifier.

    They rise or fall from each row to the next, which has probability 2 / n! by chance; or they are
    all different in a range of m numbers, which has probability exp(-n (n - 1) / 2 m) at most.
    """
    n = len(values)
    if n < _FEWEST_ROWS or values.dtype.kind not in "iu":
        return False
    numbers = values.to_numpy(dtype=np.float64)
    steps = np.diff(numbers)
    if (steps > 0).all() or (steps < 0).all():
        return True
    crowded = n * (n - 1) > 2.0 * _IMPOSSIBLE * (numbers.max() - numbers.min() + 1.0)
    return crowded and values.is_unique


def _why_no_categories(name: str, values: pd.Series[Any], texts: list[str]) -> str:
    """Why texts are not categories: numbers or dates as text, free text; empty if they are.

    Args:
        name: The column.
        values: Its values [n].
        texts: Those that are text, each once.
    """
    if len(texts) <= _FEW:
        return ""
    odd = [text for text in texts if not _NUMBER.fullmatch(text)]
    few = (1.0 - _MOST) * len(texts)
    are_written = sum(bool(_WRITTEN.fullmatch(text)) for text in odd) > _MOST * len(odd)
    strange, kind = (odd_dates(texts), "dates") if are_written else (odd, "numbers")
    rows = int(values.notna().sum())
    if len(strange) <= few:
        row = np.flatnonzero(values.isin(strange[:1]))
        what = (
            f"is text because of row {row[0]}{quote(strange[0])}, else {kind}"
            if len(row)
            else "holds numbers too large"
        )
        raise SchemaError(
            f"column {name!r} {what}: correct it (a missing value is an empty cell), or name its "
            "categories in a schema"
        )
    if are_written:
        return f"column {name!r} holds numbers or dates as text that cannot be read"
    if len(texts) > min(MAX_CATEGORIES, _MOST * rows):
        return f"column {name!r} has {len(texts)} distinct texts in {rows} rows"
    return ""


def _refuse_what_json_lacks(name: str, present: pd.Series[Any]) -> None:
    """Refuses dates, lists and other objects, and infinity: not numbers or categories in JSON."""
    if pd.api.types.infer_dtype(present) == "string":
        return
    numeric = present.dtype.kind in "iufb"
    odd = [] if numeric else [v for v in present if not isinstance(v, str | int | float | np.bool_)]
    if odd:
        raise SchemaError(
            f"column {name!r} holds {type(odd[0]).__name__} values: convert them to numbers (for "
            "example days) or to a few categories"
        )
    infinite = (
        np.isinf(present.to_numpy(dtype=np.float64)).any()
        if numeric
        else any(value in (math.inf, -math.inf) for value in present.unique())
    )
    if infinite:
        raise SchemaError(f"column {name!r} holds infinite values: make them missing, or drop them")


def _guess_kind(distinct: Any, *, is_number: bool) -> Kind:
    """The kind of a column with these distinct values."""
    if not is_number:
        return Kind.CATEGORICAL
    numbers = np.asarray(distinct, dtype=np.float64)
    if len(numbers) == 2 and set(numbers) == {0.0, 1.0}:
        return Kind.BINARY
    return Kind.INTEGER if (numbers % 1 == 0).all() else Kind.CONTINUOUS


def _categories_of(values: pd.Series[Any], distinct: Any) -> tuple[Category, ...]:
    """The categories of a column: those that occur, and the levels that its type declares."""
    kind = values.dtype
    levels = list(map(_plain, kind.categories)) if isinstance(kind, pd.CategoricalDtype) else []
    if levels and values.cat.ordered:
        return tuple(levels)
    return tuple(sorted({*map(_plain, distinct), *levels}, key=_order))


def _plain(value: Any) -> Category:
    """A category as JSON writes it: whole floats as integers, numpy scalars as Python's."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and plain.is_integer():
        return int(plain)
    return cast(Category, plain)  # by _refuse_what_json_lacks


def _order(value: Category) -> tuple[int, float, str]:
    return (1, 0.0, value) if isinstance(value, str) else (0, float(value), "")
