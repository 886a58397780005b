"""A stack of tables as arrays with one column of the table per row, and public bins of values.

Everything here follows from the schema: no bin depends on the data of one world.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from dpaudit.model.column import MISSING, Column
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import BoolArray, FloatArray, IntArray

FAR = 1e6
"""Largest distance of a number from the bounds, in widths of their range.

Numbers farther out, including infinite ones, are clipped to this distance, so sums of their squares
stay finite.
"""
BLOCK = 2**17
"""Numbers processed at once: 1 MiB per array, about the cache of a core."""
WORD = 64
"""Bits of a word: the number of rows for which one word holds a flag."""

GRID = 2.0**-32
"""Sums are rounded to multiples of this, in a unit of their size.

Their last bits depend on the order in which a processor adds, so results would differ between
machines.
"""
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


def round_sums(sums: FloatArray, unit: FloatArray | float = 1.0) -> FloatArray:
    """Sums without their last bits: rounded to multiples of `GRID` units, unless that overflows."""
    with np.errstate(all="ignore"):
        step = unit * GRID
        found = np.rint(sums / step) * step
    return np.where(np.isfinite(found), found, sums)


def cell_codes(cells: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Codes of cells by their bits [..., d, n]; equal values in different columns have other codes.

    The sum over columns, modulo 2^64, is a code of the row: equal rows have equal codes, and
    different rows have by chance once in 10^13 tables of 1,000 rows.
    """
    column = np.arange(1, cells.shape[-2] + 1, dtype=np.uint64)[:, None] * _MIX
    mixed = (cells ^ column) * _MIX
    mixed ^= mixed >> _SHIFT
    mixed *= column
    mixed ^= mixed >> _SHIFT
    mixed *= _MIX
    return mixed


def in_fixed_order(values: FloatArray) -> FloatArray:
    """The rows of tables [M, n, d] in an order that does not depend on the order of the release.

    Features of these rows then are bit-identical for every order of the release.
    """
    cells = np.ascontiguousarray(values.swapaxes(1, 2)) + 0.0  # one zero
    cells[np.isnan(cells)] = np.nan  # one NaN
    order = cell_codes(cells.view(np.uint64)).sum(axis=1).argsort(axis=1)
    sorted_values: FloatArray = values[np.arange(len(values))[:, None], order]  # whole rows: faster
    return sorted_values


def ranges(schema: Schema) -> tuple[FloatArray, FloatArray]:
    """Lower and upper bounds of the numeric columns [numeric columns, 1]."""
    bounds = [column.bounds for column in schema.columns if column.kind.numeric]
    lower, upper = np.array(bounds, dtype=np.float64).reshape(-1, 2, 1).swapaxes(0, 1)
    return lower, upper


@dataclass(frozen=True, eq=False)
class ColumnStack:
    """The columns of M tables of n rows; a stack is equal only to itself.

    Attributes:
        numbers: Numeric columns [M, numeric columns, n]; NaN where missing, else finite.
        slots: The other columns [M, other columns, n]: 0..c-1 for the categories in schema order, c
            for any other value, c + 1 for a missing one.
    """

    numbers: FloatArray
    slots: IntArray

    @staticmethod
    def of(values: FloatArray, schema: Schema) -> ColumnStack:
        """Splits the values of a stack of tables into columns.

        Args:
            values: Values [M, n, d], as `dpaudit.model.encoding.values_of` gives them.
            schema: Their schema.
        """
        numeric = np.array([column.kind.numeric for column in schema.columns])
        lower, upper = ranges(schema)
        reach = FAR * (upper - lower)
        by_column = np.ascontiguousarray(values.swapaxes(1, 2), dtype=np.float64)
        codes = by_column[:, ~numeric].astype(np.int64)
        categories = [
            len(column.categories) for column in schema.columns if not column.kind.numeric
        ]
        unnamed = np.array(categories, dtype=np.int64)[:, None] + (codes == MISSING)
        return ColumnStack(
            np.clip(by_column[:, numeric], lower - reach, upper + reach) + 0.0,  # one zero
            np.where(codes < 0, unnamed, codes),
        )

    def with_smallest_codes(self, most: int) -> ColumnStack:
        """Up to `most` rows of each table, those with the smallest codes, by ascending code.

        Codes follow from the values, so that the order of rows does not matter.
        """
        chosen = self.codes.sum(axis=1).argsort(axis=1)[:, None, :most]
        return ColumnStack(
            np.take_along_axis(self.numbers, chosen, axis=2),
            np.take_along_axis(self.slots, chosen, axis=2),
        )

    @cached_property
    def ordered(self) -> FloatArray:
        """`numbers`, with each column of each table in ascending order, missing values last."""
        return np.sort(self.numbers, axis=-1)

    @cached_property
    def codes(self) -> npt.NDArray[np.uint64]:
        """A code for each cell [M, d, n], numeric columns first (`cell_codes`)."""
        numbers = np.where(np.isnan(self.numbers), np.nan, self.numbers)  # one NaN
        return cell_codes(np.concatenate([numbers.view(np.uint64), self.slots.view(np.uint64)], 1))

    @cached_property
    def row_codes(self) -> npt.NDArray[np.uint64]:
        """A code for each row [M, n] in ascending order."""
        return np.sort(self.codes.sum(axis=1), axis=-1)

    @cached_property
    def codes_without_one(self) -> npt.NDArray[np.uint64]:
        """A code for each row without one column [M, d, n], in ascending order for each column."""
        return np.sort(self.codes.sum(axis=1)[:, None] - self.codes, axis=-1)


def pack_bits(flags: BoolArray) -> npt.NDArray[np.uint64]:
    """Flags [..., n] as bits of words [..., ceil(n / 64)]; bits beyond n are 0."""
    octets = np.packbits(flags, axis=-1)
    words = np.zeros((*flags.shape[:-1], -(-flags.shape[-1] // WORD)), dtype=np.uint64)
    words.view(np.uint8)[..., : octets.shape[-1]] = octets
    return words


def in_blocks(
    features: Callable[[FloatArray], FloatArray], values: FloatArray, *, cells: int
) -> FloatArray:
    """Computes features of many tables, a few at a time, so that memory does not grow with M.

    Args:
        features: Computes features [m, f] of values [m, n, d], each row from one table only.
        values: Values [M, n, d].
        cells: Size of the largest intermediate array for one table.

    Returns:
        Features [M, f].
    """
    first = features(values[:1])
    result = np.empty((len(values), first.shape[1]), dtype=np.float64)
    result[:1] = first
    step = max(1, BLOCK // max(cells, first.shape[1]))
    for start in range(1, len(values), step):
        result[start : start + step] = features(values[start : start + step])
    return result


def edges(column: Column, bins: int) -> FloatArray:
    """Edges [bins + 1] of equal bins over a numeric column's bounds.

    Edge k is lower + width * k / bins, which is exact if it is a whole number.
    """
    lower, upper = column.bounds
    cuts = lower + (upper - lower) * np.arange(bins + 1) / bins
    cuts[-1] = upper
    return np.asarray(cuts, dtype=np.float64)


@lru_cache(maxsize=4096)
def limits(column: Column, bins: int) -> FloatArray:
    """Limits [bins + 1] of the same bins: bin k holds numbers >= limit k and < limit k + 1.

    The last limit is the next number above the upper bound, so that the last bin holds the bound.
    The array is read-only.
    """
    cuts = edges(column, bins)
    cuts[-1] = np.nextafter(cuts[-1], np.inf)
    cuts.flags.writeable = False
    return cuts


def bin_counts(ordered: FloatArray, cuts: FloatArray) -> IntArray:
    """Counts the numbers in each bin.

    Args:
        ordered: Numbers of M tables [M, n] in ascending order, missing ones (NaN) last.
        cuts: Limits [bins + 1].

    Returns:
        Counts [M, bins + 3]: below, in each bin, above, missing.
    """
    # Binary search counts the numbers below a limit; NaN sorts above all numbers.
    smaller = np.zeros((len(ordered), len(cuts) + 3), dtype=np.int64)
    for row, numbers in zip(smaller, ordered, strict=True):
        row[1:-2] = numbers.searchsorted(cuts)
        row[-2] = numbers.searchsorted(np.nan)
    smaller[:, -1] = ordered.shape[1]
    return smaller[:, 1:] - smaller[:, :-1]


def slot_counts(slots: IntArray, n_slots: int) -> IntArray:
    """Counts how often each slot occurs.

    Args:
        slots: Slots of M tables [M, n].
        n_slots: Number of slots.

    Returns:
        Counts [M, n_slots].
    """
    shifted = slots + n_slots * np.arange(len(slots))[:, None]  # each table has its own slots
    counts = np.bincount(shifted.ravel(), minlength=n_slots * len(slots))
    return counts.reshape(len(slots), n_slots)


def category_names(column: Column, schema: Schema) -> list[str]:
    """Names of a column's categories in feature names.

    Feature names go into reports. Categories of an inferred schema are values of records, so they
    are named by position, from 1.
    """
    if schema.inferred:
        return [f"category {position + 1}" for position in range(len(column.categories))]
    return [repr(value) for value in column.categories]


def bin_names(column: Column, schema: Schema, bins: int) -> list[str]:
    """Names of a numeric column's bins in feature names: below, between and above its bounds.

    Bounds of an inferred schema are the smallest and the largest value of the table, so its bins
    are named by position, from 1.
    """
    if schema.inferred:
        inner = [f"bin {position + 1} of {bins}" for position in range(bins)]
        return ["below the bounds", *(f"in {name}" for name in inner), "above the bounds"]
    cuts = [f"{edge:.12g}" for edge in edges(column, bins)]
    inner = [f"in [{a}, {b})" for a, b in pairwise(cuts[:-1])]
    return [f"below {cuts[0]}", *inner, f"in [{cuts[-2]}, {cuts[-1]}]", f"above {cuts[-1]}"]
