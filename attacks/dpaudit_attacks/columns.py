"""Columns of a canonical table as arrays, and the public bins of their values.

Everything here follows from the schema: no bin is ever placed by the data of one world.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from dpaudit.protocols import FloatArray, IntArray
from dpaudit.schema import MISSING, OTHER, Column, Schema

FAR = 1e6
"""Numbers further outside the bounds than this many widths (infinite ones, too) are pulled back
to it: sums of their squares stay finite, and "absurdly far" needs no more digits."""


def numeric_columns(schema: Schema) -> list[Column]:
    """The columns that have bounds, in schema order."""
    return [column for column in schema.columns if column.kind.numeric]


def numbers(table: pd.DataFrame, columns: Sequence[Column]) -> FloatArray:
    """Numeric columns, one per row.

    Args:
        table: A canonical table [n].
        columns: d numeric columns.

    Returns:
        Matrix [d, n], NaN where missing, else finite.
    """
    stacked = np.empty((len(columns), len(table)), dtype=np.float64)
    for row, column in zip(stacked, columns, strict=True):
        lower, upper = column.bounds
        reach = FAR * (upper - lower)
        np.clip(table[column.name].to_numpy(dtype=np.float64), lower - reach, upper + reach, row)
    return stacked


def edges(column: Column, bins: int) -> FloatArray:
    """Edges [bins + 1] of equal bins over a numeric column's bounds.

    Computed as lower + width * k / bins, which is exact wherever the edge is a whole number.
    """
    lower, upper = column.bounds
    cuts = lower + (upper - lower) * np.arange(bins + 1) / bins
    cuts[-1] = upper
    return np.asarray(cuts, dtype=np.float64)


def bin_slots(values: FloatArray, cuts: FloatArray) -> IntArray:
    """The slot of each number.

    Args:
        values: Numbers [n], NaN where missing.
        cuts: Edges [bins + 1].

    Returns:
        Slots [n]: 0 below, 1..bins the bins (closed on the left, the last on both sides),
        bins + 1 above, bins + 2 missing.
    """
    closed = cuts.copy()
    closed[-1] = np.nextafter(cuts[-1], np.inf)
    slots = np.searchsorted(closed, values, side="right")
    slots[np.isnan(values)] = len(cuts) + 1
    return np.asarray(slots, dtype=np.int64)


def category_slots(column: Column, values: pd.Series[Any]) -> IntArray:
    """The slot of each value of a column that has categories.

    Args:
        column: The column, with c categories.
        values: Its values [n].

    Returns:
        Slots [n]: 0..c-1 the categories in schema order, c any other, c + 1 missing.
    """
    codes = column.codes(values)
    named = len(column.categories)
    return np.where(codes == OTHER, named, np.where(codes == MISSING, named + 1, codes))
