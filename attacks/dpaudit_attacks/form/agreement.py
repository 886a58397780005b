"""Rows that agree with a record in some of the columns, whichever these are.

A copy with other values in half of its columns is near no record in all of them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, FloatArray, IntArray
from dpaudit_attacks.columns import ColumnStack, packed
from dpaudit_attacks.form.rows import WHOLE
from dpaudit_attacks.form.view import Beside, FeatureGroup, at_least, numeric_names

CELLS: Final = 300
"""Equal cells of a column's range; numbers agree in the same cell and in neighbouring ones."""
MOST_COLUMNS: Final = 64
"""Most columns of each kind that are compared."""
MOST_ROWS: Final = 1000
"""Most rows of a table, and known records, that are compared: those with the smallest codes."""
Bits = npt.NDArray[np.uint64]
_NONE: Final = np.uint64(0)


def within_names(schema: Schema) -> list[FeatureName]:
    """Names of the features; see `within_values`."""
    return [
        FeatureName(WHOLE, f"distance within which a row agrees with the target in {k} numbers")
        for k in range(1, len(numeric_names(schema)) + 1)
    ]


def within_values(view: Beside) -> FloatArray:
    """The smallest distance within which a row equals the target in 1, 2, ... numbers.

    Args:
        view: M tables.

    Returns:
        Features [M, f], in widths of the range, at most 1; two missing numbers are equal.
    """
    away = np.where(view.both_missing, 0.0, np.minimum(view.away, 1.0))
    found: FloatArray = np.sort(away.swapaxes(1, 2), axis=-1).min(axis=1)
    return found


WITHIN = FeatureGroup(within_names, within_values, of_target=True)


def agreement_names(schema: Schema) -> list[FeatureName]:
    """Names of the features; none if no column is numeric. See `agreement_values`."""
    numeric, others = _compared(schema)
    counts = (("numbers", numeric), ("columns", numeric + others if others else 0))
    return [
        FeatureName(WHOLE, f"rows within 1/{CELLS} of a known record in at least {k} {what}")
        for what, most in counts
        for k in range(1, most + 1)
        if numeric
    ]


def agreement_values(view: Beside) -> FloatArray:
    """How many rows agree with one known record in at least 1, 2, ... columns.

    Numbers agree if they are at most 1/300 of the range apart, never if 1/150 or more; missing ones
    agree with each other. Of many columns the first 64 of each kind are compared, of larger tables
    1,000 rows and known records, those with the smallest codes.

    Args:
        view: M tables.

    Returns:
        Features [M, f]: counts for each number of numeric columns, then of all columns if there are
        others.
    """
    numeric, others = _compared(view.schema)
    if not numeric:
        return np.empty((view.n_tables, 0))
    rows = view.stack.fewest(MOST_ROWS)
    found: list[FloatArray] = []
    digits: list[list[Bits]] = []
    own = _cells(rows, view.schema).swapaxes(0, 1)
    for place, alike in enumerate(_alike(view.known, view.schema)):
        _add(alike.take(own[place], axis=0), digits)
        if place + 1 in (numeric, numeric + others):
            found.append(at_least(_largest(digits), place + 1))
    return np.concatenate(found, axis=1)


AGREEMENT = FeatureGroup(agreement_names, agreement_values)


def _compared(schema: Schema) -> tuple[int, int]:
    """How many numeric columns and how many others are compared."""
    numeric = len(numeric_names(schema))
    return min(numeric, MOST_COLUMNS), min(len(schema.columns) - numeric, MOST_COLUMNS)


def _cells(stack: ColumnStack, schema: Schema) -> IntArray:
    """Where each compared value is [M, columns, n]: one of the cells of its range, or a category.

    A missing number is in cell `CELLS`.
    """
    numeric, others = _compared(schema)
    bounds = [column.bounds for column in schema.columns if column.kind.numeric][:numeric]
    lower, upper = np.array(bounds).reshape(-1, 2, 1).swapaxes(0, 1)
    place = (stack.numbers[:, :numeric] - lower) / (upper - lower) * CELLS
    inside = np.clip(np.nan_to_num(place), 0, CELLS - 1).astype(np.int64)
    numbers = np.where(np.isnan(place), CELLS, inside)
    return np.concatenate([numbers, stack.slots[:, :others]], axis=1)


@lru_cache(maxsize=2)
def _alike(known: ColumnStack, schema: Schema) -> list[Bits]:
    """For each compared column the known records [places, words] that agree with each place."""
    named = [len(column.categories) for column in schema.columns if not column.kind.numeric]
    numeric, others = _compared(schema)
    sizes = [CELLS + 1] * numeric + [2 + n for n in named[:others]]  # missing, unnamed
    found: list[Bits] = []
    (columns,) = _cells(known.fewest(MOST_ROWS), schema)
    for size, own in zip(sizes, columns, strict=True):
        member = own == np.arange(size)[:, None]
        if len(found) < numeric:
            inside = member[:CELLS].copy()
            member[1:CELLS] |= inside[:-1]
            member[: CELLS - 1] |= inside[1:]
        found.append(packed(member))
    return found


def _add(bits: Bits, digits: list[list[Bits]]) -> None:
    """Adds bits to counters. A binary digit is the sum of one or two words, until it is read."""
    for words in digits:
        words.append(bits)
        if len(words) < 3:
            return
        total, bits = _sum(*words)
        words[:] = [total]
    digits.append([bits])


def _sum(first: Bits, second: Bits, third: Bits | np.uint64 = _NONE) -> tuple[Bits, Bits]:
    """The sum of three bits: the lower and the upper binary digit."""
    differ = first ^ second
    return differ ^ third, (first & second) | (differ & third)


def _largest(digits: list[list[Bits]]) -> IntArray:
    """The largest of the counters [M, n, words, 64] of each row [M, n]."""
    planes: list[Bits] = []
    carry: list[Bits] = []
    for words in digits:
        read = [*words, *carry]
        plane, *carry = read if len(read) == 1 else _sum(*read)
        planes.append(plane)
    planes += carry
    left = np.full_like(planes[0], ~_NONE)
    found = np.zeros(left.shape[:-1], dtype=np.int64)
    for place in reversed(range(len(planes))):
        these = left & planes[place]
        some = (these != _NONE).any(axis=-1)
        found += some.astype(np.int64) << place
        left = np.where(some[..., None], these, left)
    return found
