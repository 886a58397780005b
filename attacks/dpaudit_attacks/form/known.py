"""Records and values of the training table that the attacker knows: all but the target.

Synthetic rows may equal a known record, be near one in every column, or agree with one in some
columns, whichever these are: a copy with other values in half of its columns is not near any record
in all columns.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, FloatArray, IntArray
from dpaudit_attacks.columns import ColumnStack, pack_bits, ranges
from dpaudit_attacks.form.rows import WHOLE, longest_run
from dpaudit_attacks.form.view import (
    FeatureGroup,
    TableView,
    at_least,
    flat,
    labelled,
    numeric_names,
    other_names,
)

if TYPE_CHECKING:
    from scipy.spatial import cKDTree

Bits = npt.NDArray[np.uint64]
_NONE: Final = np.uint64(0)
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


def known_values(view: TableView) -> FloatArray:
    """Counts of rows and numbers that known records also have.

    Args:
        view: M tables.

    Returns:
        Features [M, f]: rows equal to a known record, known records that appear, and copies of the
        most frequent one; for each column, rows equal to a known record in all other columns; for
        each numeric column, its numbers that known records have, and how many are distinct.
    """
    rows = view.stack.row_codes
    copies = _among(rows, view.known.row_codes[0])
    is_first = np.concatenate([np.ones_like(copies[:, :1]), rows[:, 1:] != rows[:, :-1]], axis=1)
    longest = longest_run(is_first[:, 1:] | ~copies[:, 1:])
    whole = [copies.sum(axis=-1), (copies & is_first).sum(axis=-1), longest * copies.any(axis=-1)]
    nearly = _known_without_one(view.known).counts(view.stack.codes_without_one)
    numbers = view.stack.ordered
    shared = np.zeros(numbers.shape, dtype=np.bool_)
    for place, known_numbers in enumerate(view.known.ordered[0]):
        shared[:, place] = _among(numbers[:, place], known_numbers)
    first = np.ones_like(shared)
    first[..., 1:] = numbers[..., 1:] != numbers[..., :-1]
    values = flat([shared.sum(axis=-1), (shared & first).sum(axis=-1)])
    return np.concatenate([np.column_stack(whole), nearly, values], axis=1)


KNOWN = FeatureGroup(known_names, known_values)


def _among(
    values: npt.NDArray[np.uint64] | FloatArray, known: npt.NDArray[np.uint64] | FloatArray
) -> npt.NDArray[np.bool_]:
    """Which values [..., n] are among sorted known values [N]; NaN never is."""
    if not len(known):
        return np.zeros(values.shape, dtype=np.bool_)
    nearest = np.minimum(known.searchsorted(values), len(known) - 1)
    is_known: npt.NDArray[np.bool_] = known[nearest] == values
    return is_known


_SHORT: Final = 18
"""Leading bits of a code: most codes that are not known have others than any known one."""
_SHIFT: Final = np.uint64(64 - _SHORT)


class _KnownCodes(NamedTuple):
    """Codes of known records without one column, whichever it is.

    Attributes:
        codes: The codes [N] in ascending order.
        seen: Which leading bits [2^18] a code has.
    """

    codes: npt.NDArray[np.uint64]
    seen: npt.NDArray[np.bool_]

    def counts(self, codes: npt.NDArray[np.uint64]) -> IntArray:
        """How many codes [M, d, n] of each column, best in ascending order, are known [M, d]."""
        places = np.flatnonzero(self.seen.take((codes >> _SHIFT).astype(np.intp)))
        columns = places[_among(codes.ravel()[places], self.codes)] // codes.shape[2]
        size = codes.shape[:2]
        return np.bincount(columns, minlength=size[0] * size[1]).reshape(size)


@lru_cache(maxsize=2)
def _known_without_one(known: ColumnStack) -> _KnownCodes:
    """The codes of known records without each column: no two columns share one."""
    codes = known.codes_without_one[0].ravel()
    seen = np.zeros(2**_SHORT, dtype=np.bool_)
    seen[codes >> _SHIFT] = True
    return _KnownCodes(np.sort(codes), seen)


RADII: Final = (0.001, 0.01)
"""Largest difference of a number, in widths of its range."""
FARTHEST: Final = 0.05
"""Largest distance searched, which keeps the search cheap."""
MOST_ROWS: Final = 1000
"""Most rows of a table, and known records, to compare: those with the smallest codes."""
_SLACK: Final = 1e-12
"""Tolerance for the rounding of a difference."""
_FAR: Final = 4e6
"""Place of missing numbers, in widths: farther from any number than numbers can be."""
NUMBERS: Final = (
    "distance of the row nearest to a known record in all numbers",
    *(f"rows within {radius:g} of a known record in all numbers" for radius in RADII),
)
EVERY: Final = tuple(name.replace("numbers", "columns") for name in NUMBERS)


def near_known_names(schema: Schema) -> list[FeatureName]:
    """Names of the features; none if no column is numeric. See `near_known_values`."""
    return labelled([WHOLE], (*NUMBERS, *EVERY)) if numeric_names(schema) else []


def near_known_values(view: TableView) -> FloatArray:
    """How near synthetic rows come to any known record, by the largest difference of a number.

    Two missing numbers are equal; a missing number is far from all others. In larger tables, and
    among more known records, only the 1,000 rows with the smallest codes (`cell_codes`) are
    compared; codes follow from the values.

    Args:
        view: M tables.

    Returns:
        Features [M, f]: the smallest distance, at most 0.05, and rows within each of `RADII`; then
        the same for records that are equal in all categories.
    """
    numeric = view.stack.numbers.shape[1]
    if not numeric:
        return np.empty((view.n_tables, 0))
    features: list[list[float]] = []
    trees = _trees(view.known, view.schema)
    for table in _points(view.stack, view.schema):
        row: list[float] = []
        near = table[_maybe_near(table[:, :numeric], view.known, view.schema)]
        for tree, points in zip(trees, (near[:, :numeric], near), strict=True):
            nearest = np.asarray(tree.query(points, p=np.inf, distance_upper_bound=FARTHEST)[0])
            within = [(nearest <= radius + _SLACK).sum() for radius in RADII]
            row += [nearest.min(initial=FARTHEST), *within]
        features.append(row)
    return np.array(features, dtype=np.float64)


NEAR_KNOWN = FeatureGroup(near_known_names, near_known_values)


_COARSE: Final = 19
"""Cells of a range, wider than `FARTHEST`: near numbers are in the same or in neighbouring ones."""
_MOST_COARSE: Final = 12
"""Most columns compared by cells: few rows that pass them all are not near in the others."""


def _maybe_near(numbers: FloatArray, known: ColumnStack, schema: Schema) -> IntArray:
    """The rows of points [n, numeric columns] that may be near a known record in all numbers.

    A few operations on bits spare most rows the search in a tree.
    """
    rows = np.arange(len(numbers))
    nearby: Bits | None = None
    cells_of = _coarse(numbers[:, :_MOST_COARSE]).T
    for cells, known_nearby in zip(cells_of, _known_nearby(known, schema), strict=True):
        in_column = known_nearby.take(cells[rows], axis=0)
        nearby = in_column if nearby is None else nearby & in_column
        has_any = (nearby != _NONE).any(axis=-1)
        rows, nearby = rows[has_any], nearby[has_any]
    return rows


@lru_cache(maxsize=2)
def _known_nearby(known: ColumnStack, schema: Schema) -> list[Bits]:
    """For each compared column, the known records [cells, words] in or next to each coarse cell."""
    (points,) = _points(known, schema)
    every = np.arange(_COARSE + 5)[:, None]
    cells = _coarse(points[:, : min(known.numbers.shape[1], _MOST_COARSE)])
    return [pack_bits(np.abs(column - every) <= 1) for column in cells.T]


def _coarse(numbers: FloatArray) -> IntArray:
    """The coarse cell of each number; missing ones are in a cell that is next to no other."""
    inside = np.clip(np.floor(numbers * _COARSE), -1, _COARSE).astype(np.int64) + 1
    return np.where(numbers >= _FAR, _COARSE + 4, inside)


@lru_cache(maxsize=2)
def _trees(known: ColumnStack, schema: Schema) -> tuple[cKDTree, cKDTree]:
    """Search trees of known records: by their numbers, and by all columns."""
    from scipy.spatial import cKDTree

    (points,) = _points(known, schema)
    return cKDTree(points[:, : known.numbers.shape[1]]), cKDTree(points)


def _points(stack: ColumnStack, schema: Schema) -> FloatArray:
    """Rows [M, rows, d] of a stack as points; different categories are 2 or more apart."""
    stack = stack.with_smallest_codes(MOST_ROWS)
    lower, upper = ranges(schema)
    numbers = (stack.numbers - lower) / (upper - lower)
    numbers = np.where(np.isnan(numbers), _FAR, numbers)
    return np.concatenate([numbers, 2.0 * stack.slots], axis=1).swapaxes(1, 2)


CELLS: Final = 300
"""Equal cells of a column's range; numbers in the same or in neighbouring cells agree."""
MOST_COLUMNS: Final = 64
"""Most columns of each kind to compare."""


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


def agreement_values(view: TableView) -> FloatArray:
    """Counts of rows that agree with some known record in at least 1, 2, ... columns.

    Numbers agree if they are at most 1/300 of the range apart, and never if 1/150 or more; missing
    numbers agree with each other. At most the first 64 columns of each kind are compared, and at
    most 1,000 rows and known records, those with the smallest codes.

    Args:
        view: M tables.

    Returns:
        Features [M, f]: counts for each number of numeric columns; then for each number of columns
        of any kind, if there are others.
    """
    numeric, others = _compared(view.schema)
    if not numeric:
        return np.empty((view.n_tables, 0))
    rows = view.stack.with_smallest_codes(MOST_ROWS)
    features: list[FloatArray] = []
    digits: list[list[Bits]] = []
    cells = _cells(rows, view.schema).swapaxes(0, 1)
    for place, agreeing in enumerate(_agreeing(view.known, view.schema)):
        _add(agreeing.take(cells[place], axis=0), digits)
        if place + 1 in (numeric, numeric + others):
            features.append(at_least(_largest(digits), place + 1))
    return np.concatenate(features, axis=1)


AGREEMENT = FeatureGroup(agreement_names, agreement_values)


def _compared(schema: Schema) -> tuple[int, int]:
    """The numbers of numeric columns and of other columns that are compared."""
    numeric = len(numeric_names(schema))
    return min(numeric, MOST_COLUMNS), min(len(schema.columns) - numeric, MOST_COLUMNS)


def _cells(stack: ColumnStack, schema: Schema) -> IntArray:
    """The cell of each compared value [M, columns, n]: a cell of its range, or its category.

    A missing number is in cell `CELLS`.
    """
    numeric, others = _compared(schema)
    lower, upper = (bounds[:numeric] for bounds in ranges(schema))
    place = (stack.numbers[:, :numeric] - lower) / (upper - lower) * CELLS
    inside = np.clip(np.nan_to_num(place), 0, CELLS - 1).astype(np.int64)
    numbers = np.where(np.isnan(place), CELLS, inside)
    return np.concatenate([numbers, stack.slots[:, :others]], axis=1)


@lru_cache(maxsize=2)
def _agreeing(known: ColumnStack, schema: Schema) -> list[Bits]:
    """For each compared column, the known records [cells, words] that agree with each cell."""
    categories = [len(column.categories) for column in schema.columns if not column.kind.numeric]
    numeric, others = _compared(schema)
    sizes = [CELLS + 1] * numeric + [2 + n for n in categories[:others]]  # missing, unnamed
    by_column: list[Bits] = []
    (columns,) = _cells(known.with_smallest_codes(MOST_ROWS), schema)
    for size, cells in zip(sizes, columns, strict=True):
        member = cells == np.arange(size)[:, None]
        if len(by_column) < numeric:  # neighbouring cells agree too
            inside = member[:CELLS].copy()
            member[1:CELLS] |= inside[:-1]
            member[: CELLS - 1] |= inside[1:]
        by_column.append(pack_bits(member))
    return by_column


def _add(bits: Bits, digits: list[list[Bits]]) -> None:
    """Adds bits to counters, whose binary digits may be sums of up to two words until read."""
    for words in digits:
        words.append(bits)
        if len(words) < 3:
            return
        total, bits = _sum(*words)
        words[:] = [total]
    digits.append([bits])


def _sum(first: Bits, second: Bits, third: Bits | np.uint64 = _NONE) -> tuple[Bits, Bits]:
    """Adds three bits: the lower and the upper binary digit of the sum."""
    differ = first ^ second
    return differ ^ third, (first & second) | (differ & third)


def _largest(digits: list[list[Bits]]) -> IntArray:
    """The largest of the counters [M, n, words, 64] for each row [M, n]."""
    planes: list[Bits] = []
    carry: list[Bits] = []
    for words in digits:
        summands = [*words, *carry]
        plane, *carry = summands if len(summands) == 1 else _sum(*summands)
        planes.append(plane)
    planes += carry
    # From the highest digit down, keep the counters that have a 1 if any has.
    candidates = np.full_like(planes[0], ~_NONE)
    largest = np.zeros(candidates.shape[:-1], dtype=np.int64)
    for place in reversed(range(len(planes))):
        with_digit = candidates & planes[place]
        has_any = (with_digit != _NONE).any(axis=-1)
        largest += has_any.astype(np.int64) << place
        candidates = np.where(has_any[..., None], with_digit, candidates)
    return largest
