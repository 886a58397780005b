"""Numbers of single columns: how they are written, distinct values, order statistics, moments.

GroundHog has the smallest and largest number, mean and standard deviation; here are the other order
statistics and moments.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import (
    BoolArray,
    FeatureName,
    FloatArray,
    IntArray,
    LastBitsName,
)
from dpaudit_attacks.columns import round_sums, slot_counts
from dpaudit_attacks.form.rows import longest_run
from dpaudit_attacks.form.view import (
    FeatureGroup,
    TableView,
    continuous_names,
    flat,
    labelled,
    numeric_names,
)

DECIMALS: Final = (0, 1, 2, 3, 4, 6)
MOST_DECIMALS: Final = DECIMALS[-1]
CLOSE: Final = 1e-6
"""A scaled number within this distance of a whole number counts as whole."""
WRITTEN = (*(f"numbers of at most {k} decimals" for k in DECIMALS), "whole quarters")
LAST = (*(f"last digit {digit}" for digit in range(10)), "even last digit")


def digits_names(schema: Schema) -> list[FeatureName]:
    """Names of the features; see `digits_values`."""
    return labelled(continuous_names(schema), WRITTEN) + labelled(numeric_names(schema), LAST)


def digits_values(view: TableView) -> FloatArray:
    """Counts of numbers by how they are written.

    The last digit is read at as many decimals as the target's value has, at most 6.

    Args:
        view: M tables.

    Returns:
        Features [M, f]: for each continuous column the numbers with at most the decimals of
        `DECIMALS`, and the multiples of 1/4; then for each numeric column the numbers whose last
        digit is 0 to 9, and even.
    """
    scales = [*(10.0**k for k in DECIMALS), 4.0]
    written = [whole(view.continuous * scale).sum(axis=-1) for scale in scales]
    return np.concatenate([flat(written), _last_digits(view)], axis=1)


DIGITS = FeatureGroup(digits_names, digits_values, of_target=True)


def whole(numbers: FloatArray) -> BoolArray:
    """Which numbers are whole, up to `CLOSE`; a missing number never is."""
    is_whole: BoolArray = np.abs(numbers - np.rint(numbers)) <= CLOSE
    return is_whole


def _last_digits(view: TableView) -> FloatArray:
    """The features `LAST` of each numeric column."""
    moved = view.stack.numbers * 10.0 ** decimals(view.target.numbers[0])
    digits = np.floor(np.abs(moved) + CLOSE) % 10
    slots: IntArray = np.where(view.missing, 10, digits).astype(np.int64)
    counts = slot_counts(slots.reshape(-1, view.n_rows), 11)[:, :10]
    with_even = np.column_stack([counts, counts[:, ::2].sum(axis=1)])
    return with_even.reshape(view.n_tables, -1).astype(np.float64)


def decimals(target: FloatArray) -> FloatArray:
    """Number of decimals [numeric columns, 1] of the target's numbers; 0 if missing."""
    places = np.arange(MOST_DECIMALS)
    enough = whole(target * 10.0**places) | np.isnan(target)
    fewest: IntArray = (~enough).cumprod(axis=1).sum(axis=1, keepdims=True)
    return fewest.astype(np.float64)


QUANTILES: Final = (0.05, 0.1, 0.25, 0.75, 0.9, 0.95)
SPACES: Final = (
    "distinct values",
    "values that occur once",
    "most copies of a value",
    "smallest gap between values",
    "largest gap between values",
    "second smallest",
    "third smallest",
    "third largest",
    "second largest",
    *(f"{quantile:g} quantile" for quantile in QUANTILES),
    "gap above the smallest",
    "gap above the second smallest",
    "gap below the second largest",
    "gap below the largest",
    "distance of the quartiles",
    "values at or below the lower bound",
    "values at or above the upper bound",
)


def spacing_values(view: TableView) -> FloatArray:
    """Facts about the sorted numbers of each column, in widths of its range.

    In a column with fewer than three numbers the order statistics repeat; without any they are 0.

    Args:
        view: M tables.

    Returns:
        Features [M, f].
    """
    ordered = view.stack.ordered / view.widths
    last = np.maximum(view.present - 1, 0)

    def at(*places: IntArray) -> list[FloatArray]:
        inside = np.minimum(np.maximum(np.stack(places, axis=-1), 0), last[..., None])
        numbers = np.take_along_axis(ordered, inside, axis=-1)
        return list(np.moveaxis(np.where(view.present[..., None] == 0, 0.0, numbers), -1, 0))

    first = np.zeros_like(last)
    lowest, second, third = at(first, first + 1, first + 2)
    highest, next_highest, third_highest = at(last, last - 1, last - 2)
    low, high = at(last // 4, last - last // 4)
    quantiles = at(*(np.rint(last * quantile).astype(np.int64) for quantile in QUANTILES))
    gaps = np.diff(ordered, axis=-1)
    positive = gaps > 0  # false at a missing number
    present = np.arange(view.n_rows) < view.present[..., None]
    is_first = np.concatenate([present[..., :1], positive], axis=-1)  # of equal numbers
    is_last = np.concatenate([positive, present[..., -1:]], axis=-1)
    is_last |= np.arange(view.n_rows) == last[..., None]
    breaks = np.where(present[..., 1:], positive, True)
    return flat(
        [
            is_first.sum(axis=-1),
            (is_first & is_last & present).sum(axis=-1),
            longest_run(breaks),
            np.where(positive, gaps, 1.0).min(axis=-1, initial=1.0),
            np.where(positive, gaps, 0.0).max(axis=-1, initial=0.0),
            second,
            third,
            third_highest,
            next_highest,
            *quantiles,
            second - lowest,
            third - second,
            next_highest - third_highest,
            highest - next_highest,
            high - low,
            (view.stack.numbers <= view.lower).sum(axis=-1),
            (view.stack.numbers >= view.lower + view.widths).sum(axis=-1),
        ]
    )


SPACING = FeatureGroup(lambda schema: labelled(numeric_names(schema), SPACES), spacing_values)


# Floating-point noise leaves the last bits readable (Mironov 2012, "On significance of the least
# significant bits for differential privacy"): the sum of a value and naive Laplace noise cannot be
# any float, and which floats it can be depends on the value.
FINE: Final = (8, 16, 24, 32, 36, *range(40, 65))
"""Powers k that are counted; every number between 1/2 and 1 is a multiple of 2^-53."""
_MANTISSA: Final = 53
LAST_BITS: Final = (
    *(f"numbers that are no multiples of 2^-{k}" for k in FINE),
    "mean of zero bits",
)


def bits_values(view: TableView) -> FloatArray:
    """Counts of numbers by their last set bit, for each continuous column.

    Args:
        view: M tables.

    Returns:
        Features [M, f]: the numbers that are not multiples of 2^-k, for each k of `FINE`, and the
        mean number of zeros at the end of the 53 bits.
    """
    fractions, exponents = np.frexp(np.nan_to_num(view.continuous))
    mantissas = np.ldexp(fractions, _MANTISSA).astype(np.int64)
    zeros = np.bitwise_count((mantissas & -mantissas) - 1).astype(np.int64)
    finest = np.clip(_MANTISSA - zeros - exponents, 0, FINE[-1] + 1)
    finest[mantissas == 0] = 0  # 0 is a multiple of every power; missing numbers count as 0
    coarser = slot_counts(finest.reshape(-1, view.n_rows), FINE[-1] + 2).cumsum(axis=1)
    finer = (view.n_rows - coarser[:, FINE]).reshape(*finest.shape[:2], len(FINE))
    mean = round_sums(np.where(mantissas == 0, 0, zeros).sum(axis=-1) / view.n_rows)
    return flat([*np.moveaxis(finer, -1, 0), mean])


def bits_names(schema: Schema) -> list[FeatureName]:
    """Names of the features; see `bits_values`."""
    return [LastBitsName(*name) for name in labelled(continuous_names(schema), LAST_BITS)]


BITS = FeatureGroup(bits_names, bits_values)


MOMENT_LABELS: Final = (
    "skewness",
    "kurtosis",
    "mean square",
    "mean logarithm",
    "mean distance to the target's value",
)
_LEAST: Final = 1e-6
"""Added before taking logarithms, in widths of the range."""


def moments_values(view: TableView) -> FloatArray:
    """Moments of each column's numbers, as distances from the lower bound in widths of the range.

    Args:
        view: M tables.

    Returns:
        Features [M, f]: third and fourth standardised moments (0 for a constant), mean square, mean
        logarithm, and mean distance to the target's value (0 if that is missing).
    """
    numbers = (view.stack.ordered - view.lower) / view.widths
    absent = np.isnan(numbers)
    present = np.maximum(view.present, 1)

    def mean(values: FloatArray) -> FloatArray:
        means: FloatArray = np.where(absent, 0.0, values).sum(axis=-1) / present
        return means

    centred = numbers - mean(numbers)[..., None]
    spread = np.sqrt(mean(centred**2))
    unit = centred / np.where(spread > 1e-9, spread, np.inf)[..., None]
    target = (view.target.numbers - view.lower) / view.widths
    distance = np.where(np.isnan(target), 0.0, np.abs(numbers - target))
    cubes = unit * unit * unit
    moments = [
        mean(cubes),
        mean(cubes * unit),
        mean(numbers**2),
        mean(np.log(np.abs(numbers) + _LEAST)),
        mean(distance),
    ]
    return flat([round_sums(moment) for moment in moments])


MOMENTS = FeatureGroup(
    lambda schema: labelled(numeric_names(schema), MOMENT_LABELS), moments_values, of_target=True
)
