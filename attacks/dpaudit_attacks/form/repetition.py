"""Repeated rows, whole or but for one column."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, FloatArray
from dpaudit_attacks.form.view import Beside, FeatureGroup, numeric_names, other_names

WHOLE: Final = "whole rows"
"""What features of all columns together call their column."""
ROWS = ("repeated rows", "rows equal to the row before", "most copies of a row")
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


def names(schema: Schema) -> list[FeatureName]:
    """Names of the features; see `values`."""
    columns = numeric_names(schema) + other_names(schema)
    return [FeatureName(WHOLE, row) for row in ROWS] + [
        FeatureName(column, "rows repeated but for this column") for column in columns
    ]


def values(view: Beside) -> FloatArray:
    """Counts of rows that repeat others.

    Rows are compared by 64-bit codes, the sums of codes of their cells: equal rows have equal
    codes, and different ones do by chance once in 10^13 tables of 1,000 rows.

    Args:
        view: M tables.

    Returns:
        Features [M, f]: rows that repeat an earlier one, rows equal to the row before, and the
        frequency of the most frequent row; then, for each column, the rows that repeat an earlier
        one in all other columns.
    """
    cells = _codes(view)
    rows = cells.sum(axis=1)  # modulo 2^64
    ordered = np.sort(rows, axis=-1)
    without_one = np.sort(rows[:, None] - cells, axis=-1)
    summary = [
        _repeats(ordered),
        (rows[:, 1:] == rows[:, :-1]).sum(axis=-1),
        longest_run(ordered[:, 1:] != ordered[:, :-1]),
    ]
    return np.column_stack([*summary, _repeats(without_one)]).astype(np.float64)


GROUP = FeatureGroup(names, values)


def longest_run(breaks: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Length of the longest run of equal neighbours.

    Args:
        breaks: Where a value differs from the one before [..., n - 1].

    Returns:
        Lengths [...], at least 1.
    """
    place = np.arange(1, breaks.shape[-1] + 1)
    start = np.maximum.accumulate(np.where(breaks, place, 0), axis=-1)
    found: npt.NDArray[np.int64] = 1 + (place - start).max(axis=-1, initial=0)
    return found


def _repeats(ordered: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """How many sorted codes [..., n] equal the one before."""
    found: npt.NDArray[np.int64] = (ordered[..., 1:] == ordered[..., :-1]).sum(axis=-1)
    return found


def _codes(view: Beside) -> npt.NDArray[np.uint64]:
    """A code for each cell [M, d, n]; the same value has another code in another column."""
    numbers = np.where(view.missing, np.nan, view.stack.numbers + 0.0)  # one NaN, one zero
    bits = np.concatenate([numbers.view(np.uint64), view.stack.slots.view(np.uint64)], axis=1)
    column = np.arange(1, bits.shape[1] + 1, dtype=np.uint64)[:, None] * _MIX
    mixed = (bits ^ column) * _MIX
    mixed ^= mixed >> _SHIFT
    mixed *= column
    mixed ^= mixed >> _SHIFT
    mixed *= _MIX
    return mixed
