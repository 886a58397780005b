"""Rows that lie between two records: halfway, or anywhere on the line from one to the other.

Such rows are means of two training rows, or were made from pairs of them as in SMOTE.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import Final, NamedTuple

import numpy as np

from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, FloatArray, IntArray
from dpaudit_attacks.columns import ColumnStack, ranges
from dpaudit_attacks.form.numbers import MOST_DECIMALS, whole
from dpaudit_attacks.form.rows import WHOLE
from dpaudit_attacks.form.view import FeatureGroup, TableView, labelled, numeric_names

MOST_ROWS: Final = 256
"""Most rows of a table, and known records, to pair: those with the smallest codes."""
MOST_LINES: Final = 2**13
"""Most pairs of a row and a record through which lines are drawn."""
FEWEST: Final = 2
"""Fewest numeric columns: with fewer, too many rows are between others by chance."""
HALFWAY: Final = ("rows halfway between two known records", "rows halfway between two others")
IN_LINE: Final = ("rows in line with two known records", "rows in line with two others")
_CODES: Final = 2**18
"""Number of codes of pairs; only pairs with a matching code are compared in all columns."""
_STEPS: Final[IntArray] = np.array([1, 40_503])
"""Increase of a code per unit of each column; the second is odd and large, to spread codes."""
_ROUNDED: Final[IntArray] = np.array(list(product((-1, 0, 1), repeat=2))) @ _STEPS[:, None]
"""Possible errors of the code of twice a mean [9, 1], if the mean was rounded."""
_FARTHEST: Final = 2.0**40
"""Largest number in units; codes of larger ones would overflow."""
SLACK: Final = 1e-9
"""Tolerance for the rounding of a difference, in widths of the range."""
_AT_ONCE: Final = 64
"""Records that are paired with all others at once; their sums fit into the cache."""
_OWNER: Final = 1023
"""The lowest bits of a slope, which are replaced by the number of its record."""


class Grid(NamedTuple):
    """How numbers are written, according to the known records.

    Attributes:
        units: The last decimal of each numeric column, in widths of its range [columns].
        key: The two columns with the most distinct numbers.
    """

    units: FloatArray
    key: IntArray


def mixtures_names(schema: Schema) -> list[FeatureName]:
    """Names of the features; none with fewer than two numeric columns. See `mixtures_values`."""
    columns = len(numeric_names(schema))
    labels = (*HALFWAY, *(IN_LINE if columns > FEWEST else ())) if columns >= FEWEST else ()
    return labelled([WHOLE], labels)


def mixtures_values(view: TableView) -> FloatArray:
    """Counts of rows whose numbers are a mean of those of two records, up to rounding.

    Numbers may have been rounded to the decimals of known records. The two records must differ in
    at least two columns, those with the most distinct numbers. Rows and records with missing
    numbers are left out. At most 256 rows and known records are used, those with the smallest
    codes. Means with unequal weights need three columns, and use at most 8,192 pairs of a row and a
    record.

    Args:
        view: M tables.

    Returns:
        Features [M, f]: rows at the mean of two known records, and of two other rows; then rows
        on a line between these.
    """
    labels = mixtures_names(view.schema)
    features = np.zeros((view.n_tables, len(labels)))
    if not labels:
        return features
    grid = _grid(view.known, view.schema)
    known = _known_points(view.known, view.schema)
    kinds = (_halfway, _in_line)[: len(labels) // 2]
    for row, table in zip(features, _points(view.stack, view.schema), strict=True):
        row[:] = [
            kind(table, ends, grid) if len(ends) > 1 else 0
            for kind in kinds
            for ends in (known, table)
        ]
    return features


MIXTURES = FeatureGroup(mixtures_names, mixtures_values)


@lru_cache(maxsize=2)
def _grid(known: ColumnStack, schema: Schema) -> Grid:
    """How the numbers of known records are written; with most decimals if there are none."""
    numbers = known.numbers[0]
    enough = [whole(numbers * 10.0**k) | np.isnan(numbers) for k in range(MOST_DECIMALS)]
    decimals = (~np.all(enough, axis=-1)).cumprod(axis=0).sum(axis=0)
    if not numbers.shape[-1]:
        decimals[:] = MOST_DECIMALS
    lower, upper = ranges(schema)
    distinct = [len(np.unique(column)) for column in numbers]
    return Grid(
        0.1**decimals / (upper - lower)[:, 0],
        np.argsort(np.negative(distinct), kind="stable")[:2],
    )


@lru_cache(maxsize=2)
def _known_points(known: ColumnStack, schema: Schema) -> FloatArray:
    """The known records to compare [n, columns]."""
    (points,) = _points(known, schema)
    return points


def _points(stack: ColumnStack, schema: Schema) -> list[FloatArray]:
    """The rows to compare [n, columns] of each table, in widths of the range."""
    lower, upper = ranges(schema)
    tables = (stack.with_smallest_codes(MOST_ROWS).numbers / (upper - lower)).swapaxes(1, 2)
    return [table[~np.isnan(table).any(axis=1)] for table in tables]


def _halfway(rows: FloatArray, ends: FloatArray, grid: Grid) -> int:
    """The number of rows [n, columns] at the mean of two of the records [m, columns]."""
    middles, codes = _codes(rows, grid), _codes(ends, grid)
    owner = np.full(_CODES, -1, dtype=np.int16)
    owner[(2 * middles + _ROUNDED) & (_CODES - 1)] = np.arange(len(rows))  # the row of a code
    hits: list[IntArray] = []
    for start in range(0, len(ends), _AT_ONCE):
        sums = np.add.outer(codes[start : start + _AT_ONCE], codes[start:]) & (_CODES - 1)
        matching_row = owner.take(sums.ravel())
        places = np.flatnonzero(matching_row >= 0)
        first, second = np.divmod(places, len(ends) - start)
        hits.append(np.stack([matching_row[places], first + start, second + start]))
    row, first, second = np.concatenate(hits, axis=1)
    # Codes may match by chance: compare the two columns of the codes first, then all columns.
    for columns in (grid.key, np.arange(len(grid.units))):
        end, other_end, middle = (
            points[:, columns][index]
            for points, index in ((ends, first), (ends, second), (rows, row))
        )
        units = grid.units[columns]
        fits = np.abs(2 * middle - end - other_end) <= units + SLACK
        different = np.abs(end - other_end) > 2 * units
        kept = fits.all(axis=1) & (different.sum(axis=1) > 1)
        row, first, second = row[kept], first[kept], second[kept]
    return len(np.unique(row))


def _in_line(rows: FloatArray, ends: FloatArray, grid: Grid) -> int:
    """The number of rows that are on a line between two of the records.

    Seen from such a row, the two records are in opposite directions. In the plane of two columns
    both have the same slope, so they are neighbours when records are sorted by slope.
    """
    rows = rows[: MOST_LINES // len(ends)]
    across, along = (ends[:, c] - rows[:, c, None] for c in grid.key)
    with np.errstate(all="ignore"):  # a slope may be infinite, or undefined for an equal record
        slopes = (across / along).view(np.int64)
    owner = np.sort(slopes & ~_OWNER | np.arange(len(ends)), axis=1) & _OWNER
    x, y = (np.take_along_axis(difference, owner, axis=1) for difference in (across, along))
    half_x, half_y = grid.units[grid.key] / 2 + SLACK
    gap = np.abs(x[:, 1:] * y[:, :-1] - x[:, :-1] * y[:, 1:])
    error = half_x * (np.abs(y[:, 1:]) + np.abs(y[:, :-1]))
    error += half_y * (np.abs(x[:, 1:]) + np.abs(x[:, :-1]))
    row, place = np.nonzero((gap <= error) & (x[:, 1:] * x[:, :-1] < 0))
    end, other = ends[owner[row, place]], ends[owner[row, place + 1]]
    # The weight of the first record is read in the column where the two are farthest apart.
    apart = end - other
    widest = (np.abs(apart) / grid.units).argmax(axis=1)[:, None]
    span = np.take_along_axis(apart, widest, axis=1)
    weight = np.take_along_axis(rows[row] - other, widest, axis=1) / span
    tolerance = grid.units / 2 + np.abs(apart / span) * grid.units[widest] / 2 + SLACK
    fits = np.abs(other + weight * apart - rows[row]) <= tolerance
    return len(np.unique(row[fits.all(axis=1)]))


def _codes(points: FloatArray, grid: Grid) -> IntArray:
    """Codes [n] of rows by two columns; the code of a sum is the sum of the codes."""
    units = np.clip(points[:, grid.key] / grid.units[grid.key], -_FARTHEST, _FARTHEST)
    codes: IntArray = np.rint(units).astype(np.int64) @ _STEPS
    return codes
