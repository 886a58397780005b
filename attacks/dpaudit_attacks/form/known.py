"""Records and values of the training table that the attacker knows: all but the target.

Synthetic rows may equal a known record, be near one in every column, or agree with one in some of
the columns, whichever these are: a copy with other values in half of its columns is near no record
in all of them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, FloatArray, IntArray
from dpaudit_attacks.columns import ColumnStack, packed, ranges
from dpaudit_attacks.form.rows import WHOLE, longest_run
from dpaudit_attacks.form.view import (
    Beside,
    FeatureGroup,
    at_least,
    flat,
    labelled,
    numeric_names,
    other_names,
)

if TYPE_CHECKING:
    from scipy.spatial import cKDTree

ROWS: Final = (
    "rows equal to a known record",
    "known records that appear",
    "most copies of a known record",
)
VALUES: Final = ("values of known records", "different values of known records")
COLUMN: Final = "rows equal to a known record but for this column"


def known_names(schema: Schema) -> list[FeatureName]:
    """Names of the features; see `known_values`."""
    numeric, others = numeric_names(schema), other_names(schema)
    return (
        labelled([WHOLE], ROWS) + labelled(numeric + others, (COLUMN,)) + labelled(numeric, VALUES)
    )


def known_values(view: Beside) -> FloatArray:
    """Counts of rows and numbers that known records have too.

    Args:
        view: M tables.

    Returns:
        Features [M, f]: rows equal to a known record, how many known records appear, and the rows
        of the most frequent one; for each column the rows that are equal in all others, whether or
        not in it; for each numeric column its numbers that known records have, and how many
        different ones.
    """
    rows = view.stack.row_codes
    copies = _among(rows, view.known.row_codes[0])
    new = np.concatenate([np.ones_like(copies[:, :1]), rows[:, 1:] != rows[:, :-1]], axis=1)
    longest = longest_run(new[:, 1:] | ~copies[:, 1:])
    whole = [copies.sum(axis=-1), (copies & new).sum(axis=-1), longest * copies.any(axis=-1)]
    without, known_without = view.stack.codes_without_one, view.known.codes_without_one[0]
    nearly: list[IntArray] = [
        _among(own, known).sum(axis=-1)
        for own, known in zip(without.swapaxes(0, 1), known_without, strict=True)
    ]
    numbers = view.stack.ordered
    shared = np.zeros(numbers.shape, dtype=np.bool_)
    for place, known_numbers in enumerate(view.known.ordered[0]):
        shared[:, place] = _among(numbers[:, place], known_numbers)
    first = np.ones_like(shared)
    first[..., 1:] = numbers[..., 1:] != numbers[..., :-1]
    values = flat([shared.sum(axis=-1), (shared & first).sum(axis=-1)])
    return np.concatenate([np.column_stack([*whole, *nearly]), values], axis=1)


KNOWN = FeatureGroup(known_names, known_values)


def _among(
    found: npt.NDArray[np.uint64] | FloatArray, known: npt.NDArray[np.uint64] | FloatArray
) -> npt.NDArray[np.bool_]:
    """Which of some values [..., n] are among sorted known ones [N]; NaN never is."""
    if not len(known):
        return np.zeros(found.shape, dtype=np.bool_)
    at = np.minimum(known.searchsorted(found), len(known) - 1)
    equal: npt.NDArray[np.bool_] = known[at] == found
    return equal


RADII: Final = (0.001, 0.01)
"""Largest difference of a number, in widths of its range."""
FARTHEST: Final = 0.05
"""Distances are at most this: a search within it is cheap."""
MOST_ROWS: Final = 1000
"""Most rows of a table, and known records, that are compared: those with the smallest codes."""
_SLACK: Final = 1e-12
"""For the rounding of a difference."""
_FAR: Final = 4e6
"""Where missing numbers are, in widths: farther from any number than numbers can be."""
NUMBERS: Final = (
    "distance of the row nearest to a known record in all numbers",
    *(f"rows within {radius:g} of a known record in all numbers" for radius in RADII),
)
EVERY: Final = tuple(name.replace("numbers", "columns") for name in NUMBERS)


def near_known_names(schema: Schema) -> list[FeatureName]:
    """Names of the features; none if no column is numeric. See `near_known_values`."""
    return labelled([WHOLE], (*NUMBERS, *EVERY)) if numeric_names(schema) else []


def near_known_values(view: Beside) -> FloatArray:
    """How near synthetic rows come to any known record, by the largest difference of a number.

    Two missing numbers are equal, a missing one is far from all others. Of larger tables only the
    1,000 rows whose codes (`cell_codes`) are smallest are compared, and so of known records; codes
    follow from the values.

    Args:
        view: M tables.

    Returns:
        Features [M, f]: the smallest distance, at most 0.05, and rows within each of `RADII`; then
        the same with records that are equal in all categories.
    """
    numeric = view.stack.numbers.shape[1]
    if not numeric:
        return np.empty((view.n_tables, 0))
    found: list[list[float]] = []
    trees = _trees(view.known, view.schema)
    for table in _points(view.stack, view.schema):
        row: list[float] = []
        for tree, points in zip(trees, (table[:, :numeric], table), strict=True):
            apart = np.asarray(tree.query(points, p=np.inf, distance_upper_bound=FARTHEST)[0])
            row += [min(apart.min(), FARTHEST), *((apart <= r + _SLACK).sum() for r in RADII)]
        found.append(row)
    return np.array(found, dtype=np.float64)


NEAR_KNOWN = FeatureGroup(near_known_names, near_known_values)


@lru_cache(maxsize=2)
def _trees(known: ColumnStack, schema: Schema) -> tuple[cKDTree, cKDTree]:
    """Known records by their numbers, and by all columns."""
    from scipy.spatial import cKDTree

    (points,) = _points(known, schema)
    return cKDTree(points[:, : known.numbers.shape[1]]), cKDTree(points)


def _points(stack: ColumnStack, schema: Schema) -> FloatArray:
    """Rows [M, rows, d] of a stack as points; those of different categories are 2 or more apart."""
    stack = stack.fewest(MOST_ROWS)
    lower, upper = ranges(schema)
    numbers = (stack.numbers - lower) / (upper - lower)
    numbers = np.where(np.isnan(numbers), _FAR, numbers)
    return np.concatenate([numbers, 2.0 * stack.slots], axis=1).swapaxes(1, 2)


CELLS: Final = 300
"""Equal cells of a column's range; numbers agree in the same cell and in neighbouring ones."""
MOST_COLUMNS: Final = 64
"""Most columns of each kind that are compared."""
Bits = npt.NDArray[np.uint64]
_NONE: Final = np.uint64(0)


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
    lower, upper = (bounds[:numeric] for bounds in ranges(schema))
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
