"""Values and records of a public schema, the simplest first, as Hypothesis draws them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from hypothesis import strategies as st

from dpaudit.model.column import Category, Column, Kind
from dpaudit.model.schema import Schema

Draw = Callable[[st.SearchStrategy[Any]], Any]
Record = tuple[Category, ...]

MULTIPLICITIES: Final = (1, 2, 3, 7, 8, 15, 31, 63, 127, 255)
"""How often a row occurs: a few times, and so often that one more fills a batch or a counter."""
_SPECIAL: Final = (0.0, 1.0, -1.0, 0.5, -0.0)


def simple_values(column: Column) -> list[Category]:
    """Values of a column at which code errs most, the simplest first."""
    if not column.kind.numeric:
        values = list(column.categories)
    else:
        lower, upper = column.bounds
        middle = (lower + upper) / 2
        wanted = [lower, upper, middle, *_SPECIAL]
        if column.kind is Kind.INTEGER:
            wanted = [float(math.floor(value)) for value in wanted]
        else:
            wanted += [math.nextafter(lower, upper), math.nextafter(upper, lower)]
        inside = [value for value in wanted if lower <= value <= upper]
        values = list({(value, math.copysign(1, value)): value for value in inside}.values())
    return [*values, math.nan] if column.missing else values


def _values(column: Column) -> st.SearchStrategy[Category]:
    """Any value of a column; one in two is a simple one."""
    simple = st.sampled_from(simple_values(column))
    if not column.kind.numeric:
        return simple
    lower, upper = column.bounds
    if column.kind is Kind.INTEGER:
        return simple | st.integers(int(lower), int(upper)).map(float)
    return simple | st.floats(lower, upper)


def records_of(schema: Schema) -> st.SearchStrategy[Record]:
    """Any record; some have the lowest, highest or last simple value in all columns at once."""
    last = tuple(simple_values(column)[-1] for column in schema.columns)
    extremes = [*simple_records(schema), last]
    return st.sampled_from(extremes) | st.tuples(*map(_values, schema.columns))


def simple_records(schema: Schema) -> tuple[Record, Record]:
    """The record of the first simple values of all columns, and that of the second ones."""
    each = [simple_values(column) for column in schema.columns]
    return tuple(values[0] for values in each), tuple(values[1] for values in each)
