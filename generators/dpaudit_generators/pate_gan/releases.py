"""Noisy histograms, charged to the privacy budget: bounds of numbers, proportions of labels.

A record adds one to one cell of a histogram, so counts with discrete Laplace noise of parameter
epsilon are (epsilon, 0)-differentially private for adding or removing one record (Ghosh,
Roughgarden and Sundararajan 2009; parallel composition over the cells), and several histograms cost
the sum (basic composition). Everything computed from the noisy counts is post-processing.

Bounds may also come from the public schema, or, as an experiment, from the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.errors import SettingsError
from dpaudit.model.column import MISSING, Column, Kind, as_numbers
from dpaudit.model.schema import Schema
from dpaudit_generators.batches import shares_of
from dpaudit_generators.pate import RandomBits, discrete_laplace

GRID: Final = 64
"""Cells of the histogram of a numeric column: equal parts of the range of its public bounds."""

_BEYOND: Final = 0.01
"""Largest share of the records that a released bound may cut off on its side."""

_SURE: Final = 2.0
"""Standard deviations of noise added to a share before it is compared with the limit."""

_PARTS: Final = 2**32
"""The epsilon of a histogram is a multiple of 1 / _PARTS, so the noise is exact in integers."""


class Proportions(StrEnum):
    """Where the proportions of the label's classes come from."""

    GENERATED = "generated"
    """The label is generated like any other column."""
    PRIVATE = "private"
    """Released as noisy counts; labels are drawn from these, then records given a label."""


@dataclass(frozen=True, kw_only=True)
class Split:
    """How a budget is divided between histograms and votes, which is public.

    Attributes:
        histograms: Number of histograms.
        each: Epsilon of each, with delta 0.
        votes: Epsilon that remains for the votes.
    """

    histograms: int
    each: Fraction
    votes: float


def split(epsilon: float, *, share: float, histograms: int) -> Split:
    """Divides a budget: a share of epsilon equally over the histograms, the rest for the votes.

    Args:
        epsilon: The whole budget, positive and finite.
        share: Share of the histograms, in (0, 1); without histograms the votes get everything.
        histograms: How many are released.

    Returns:
        The split; its parts never add up to more than the budget.

    Raises:
        SettingsError: If the share of a histogram is too small for any noise to be drawn.
    """
    if histograms == 0:
        return Split(histograms=0, each=Fraction(0), votes=epsilon)
    each = Fraction(int(epsilon * share / histograms * _PARTS), _PARTS)
    if each == 0:
        raise SettingsError(
            f"epsilon {epsilon:g} leaves nothing for {histograms} private histograms: raise it, "
            "or use bounds=schema and label_proportions=generated"
        )
    votes = math.nextafter(epsilon - float(histograms * each), 0.0)  # rounded down
    return Split(histograms=histograms, each=each, votes=votes)


def released_counts(
    counts: npt.NDArray[np.int64], *, epsilon: Fraction, bits: RandomBits
) -> npt.NDArray[np.int64]:
    """Counts [n] of one histogram plus independent discrete Laplace noise."""
    noise = [discrete_laplace(1 / epsilon, bits) for _ in range(len(counts))]
    return counts + np.array(noise, dtype=np.int64)


def private_bounds(
    column: Column, values: pd.Series[Any], *, epsilon: Fraction, bits: RandomBits
) -> Column:
    """Narrows the bounds of a numeric column to about 98 % of its values.

    From each side the range shrinks cell by cell as long as the noisy count beyond, plus twice the
    standard deviation of its noise, is at most 1 % of all. So a small table or budget keeps the
    public bounds, and no outlier moves them.

    Args:
        column: The column with its public bounds.
        values: Its values; one beyond the public bounds counts in the nearest cell, a missing one
            in none.
        epsilon: Epsilon to spend.
        bits: Source of random bits.

    Returns:
        The column with bounds on the public grid, rounded outwards for integers; unchanged if
        nothing can be cut off.
    """
    lower, upper = column.bounds
    numbers = as_numbers(values)
    place = (numbers[~np.isnan(numbers)] - lower) / (upper - lower)
    cells = np.clip(place * GRID, 0, GRID - 1).astype(np.int64)
    counts = released_counts(np.bincount(cells, minlength=GRID), epsilon=epsilon, bits=bits)
    left, right = _cut(counts, epsilon), _cut(counts[::-1], epsilon)
    edges = np.linspace(lower, upper, GRID + 1)
    low, high = float(edges[left]), float(edges[GRID - right])
    if not low < high:
        return column
    if column.kind is Kind.INTEGER:
        low, high = math.floor(low), math.ceil(high)
    return replace(column, lower=max(lower, low), upper=min(upper, high))


def _cut(counts: npt.NDArray[np.int64], epsilon: Fraction) -> int:
    """How many of the first cells hold at most the share to be cut off, allowing for noise."""
    deviation = math.sqrt(2.0) / float(epsilon)  # a little above that of the discrete noise
    cut = np.arange(1, GRID + 1)
    surely = np.cumsum(counts) + _SURE * deviation * np.sqrt(cut) <= _BEYOND * counts.sum()
    return int(np.cumprod(surely).sum())


def private_proportions(
    column: Column, values: pd.Series[Any], *, epsilon: Fraction, bits: RandomBits
) -> tuple[float, ...]:
    """Releases the proportions of a label's classes, with "missing" last where it is allowed.

    Args:
        column: The label column, with categories.
        values: Its values.
        epsilon: Epsilon to spend.
        bits: Source of random bits.

    Returns:
        Proportions that add up to 1; equal ones if no noisy count is above 0.
    """
    classes = len(column.categories)
    codes = column.codes(values)
    if column.missing:
        codes = np.where(codes == MISSING, classes, codes)
    exact = np.bincount(codes[codes >= 0], minlength=classes + column.missing)
    return tuple(shares_of(released_counts(exact, epsilon=epsilon, bits=bits)).tolist())


class Bounds(StrEnum):
    """Where the bounds of numeric columns come from."""

    SCHEMA = "schema"
    """The public schema."""
    PRIVATE = "private"
    """Noisy histograms of the table, paid from the budget."""
    DATA = "data"
    """The smallest and largest value of the table: an experiment that breaks the proof."""


def schema_of_data(schema: Schema, data: pd.DataFrame) -> Schema:
    """Replaces the bounds of numeric columns by the extremes of a table.

    Several published generators do this, and it leaks: one record can move a bound, and with it the
    range of everything that is released.

    Args:
        schema: The public schema.
        data: The table. A column of missing values keeps its public bounds; a constant one keeps a
            public bound on one side, because a range must not be empty.

    Returns:
        The schema, marked as inferred.
    """
    columns = tuple(
        _narrowed(column, data[column.name]) if column.kind.numeric else column
        for column in schema.columns
    )
    return replace(schema, columns=columns, inferred=True)


def _narrowed(column: Column, values: pd.Series[Any]) -> Column:
    numbers = as_numbers(values)
    numbers = numbers[np.isfinite(numbers)]
    if len(numbers) == 0:
        return column
    lower, upper = float(numbers.min()), float(numbers.max())
    if column.kind is Kind.INTEGER:
        lower, upper = float(np.floor(lower)), float(np.ceil(upper))
    if lower == upper:
        public_lower, public_upper = column.bounds
        lower, upper = (lower, public_upper) if upper < public_upper else (public_lower, upper)
    return replace(column, lower=lower, upper=upper)
