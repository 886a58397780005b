"""Toys that release noisy counts: a histogram of one column, and binary marginals.

Their claims are exact: the textbook private generator, and a Gaussian one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.errors import SettingsError
from dpaudit.formatting import did_you_mean
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.column import MISSING, Column, Kind, as_numbers
from dpaudit.model.currencies import GaussianClaim
from dpaudit.model.schema import Schema
from dpaudit.seeds import rng_of
from dpaudit_generators.batches import count_codes
from dpaudit_generators.toys.planted import uniform_table

_BINS: Final = 10
"""Largest number of bins of a numeric column."""


def cells(column: Column) -> int:
    """Size of the public domain of a column: bins or categories, and a cell for missing values."""
    values = len(_edges(column)) - 1 if column.kind.numeric else len(column.categories)
    return values + column.missing


def cell_names(column: Column) -> tuple[str, ...]:
    """Names of the cells of a column, in the order of their counts."""
    if column.kind.numeric:
        edges = [f"{edge:g}" for edge in _edges(column)]
        values = [f"{column.name} from {low} to {high}" for low, high in pairwise(edges)]
    else:
        values = [f"{column.name} = {category}" for category in column.categories]
    return (*values, *([f"{column.name} missing"] if column.missing else []))


def cell_counts(column: Column, values: pd.Series[Any]) -> npt.NDArray[np.int64]:
    """How many values [n] fall in each cell; values unknown to the schema are not counted."""
    if column.kind.numeric:
        numbers = as_numbers(values)
        codes = np.searchsorted(_edges(column)[1:-1], numbers, side="right")
        codes = np.where(np.isnan(numbers), MISSING, codes)
    else:
        codes = column.codes(values)
    return count_codes(codes, cells=cells(column), missing=column.missing)


def values_in(
    column: Column, cell: npt.NDArray[np.int64], rng: np.random.Generator
) -> pd.Series[Any]:
    """A value of a column from each of these cells [n]; within a bin all are equally likely."""
    if not column.kind.numeric:
        choices = np.array([*column.categories, np.nan], dtype=object)
        return pd.Series(choices[cell], dtype=object)
    edges = np.append(_edges(column), np.nan)  # the missing cell has no right edge
    left, right = edges[cell], edges[cell + 1]
    numbers = left + rng.random(len(cell)) * (right - left)
    if column.kind is Kind.INTEGER:
        numbers = np.floor(numbers)
    return pd.Series(np.minimum(numbers, column.bounds.upper))


def shares_of(noisy: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Probabilities [cells] from noisy counts: none below 0; uniform if nothing is left."""
    kept = np.maximum(noisy, 0).astype(np.float64)
    if not kept.any():
        kept = np.ones_like(kept)
    shares: npt.NDArray[np.float64] = kept / kept.sum()
    return shares


def geometric_noise(epsilon: float, n: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Two-sided geometric noise [n]: P(z) proportional to e^(-epsilon |z|).

    The difference of two geometric variables (Ghosh, Roughgarden and Sundararajan 2009,
    "Universally utility-maximizing privacy mechanisms"). Integers have no low bits that could
    reveal the count.
    """
    success = -math.expm1(-epsilon)
    return rng.geometric(success, n) - rng.geometric(success, n)


def _edges(column: Column) -> npt.NDArray[np.float64]:
    """Edges of the equal bins of a numeric column; integers for an integer column."""
    lower, upper = column.bounds
    if column.kind is Kind.CONTINUOUS:
        return np.linspace(lower, upper, _BINS + 1)
    bins = int(min(_BINS, upper - lower + 1))
    return np.floor(np.linspace(lower, upper + 1, bins + 1))


@dataclass(frozen=True, kw_only=True, eq=False)
class HistogramModel:
    """A model that draws one column from released shares and the others uniformly.

    Attributes:
        schema: The public schema.
        column: The column that was counted.
        noisy: Its released counts, shape [cells].
    """

    schema: Schema
    column: Column
    noisy: npt.NDArray[np.int64]

    def released(self) -> npt.NDArray[np.float64]:
        """The noisy counts."""
        return self.noisy.astype(np.float64)

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Draws `n` records; within a bin all values are equally likely."""
        rng = rng_of(seed, "sample")
        table = uniform_table(self.schema, n, rng)
        cell = rng.choice(len(self.noisy), size=n, p=shares_of(self.noisy))
        table[self.column.name] = values_in(self.column, cell, rng)
        return self.schema.canonical(table)


@dataclass(frozen=True, kw_only=True)
class LaplaceHistogram:
    """Samples one column from noisy counts and the others uniformly.

    The counts are over a public domain (categories, or at most ten equal bins of a number), and
    each gets discrete Laplace noise of scale 1 / epsilon. Adding or removing a record changes one
    count by one, so any vector of noisy counts is at most e^epsilon times as likely in one world as
    in the other (as in Dwork and Roth 2014, Theorem 3.6, with L1 sensitivity 1). The ratio is
    e^epsilon whenever the changed count comes out at or above its larger value, so epsilon is exact
    for the counts. They are drawn once, in `fit`; clipping at 0, normalising and sampling are
    post-processing, so an attacker who sees finite tables may prove slightly less.

    Attributes:
        schema: The public schema.
        column: Name of the counted column; by default the label, or if there is none the column
            with the smallest domain.
        epsilon: The epsilon that it claims and has.

    Raises:
        ClaimError: If epsilon is not positive.
        SettingsError: If there is no such column.
    """

    schema: Schema
    column: str | None = None
    epsilon: float = 1.0

    def __post_init__(self) -> None:
        names = self.schema.names
        if self.column is not None and self.column not in names:
            hint = did_you_mean(self.column, names)
            raise SettingsError(f"no column {self.column!r}{hint}; there are {', '.join(names)}")
        _ = self.claim  # validates

    @property
    def claim(self) -> PrivacyClaim:
        """(epsilon, 0), exact for the noisy counts."""
        source = f"exact: discrete Laplace noise on the counts of {self.counted.name}"
        return PrivacyClaim(epsilon=self.epsilon, source=source)

    @property
    def released_facts(self) -> tuple[str, ...]:
        """Names of the noisy counts."""
        return cell_names(self.counted)

    @property
    def counted(self) -> Column:
        """The column whose values are counted."""
        name = self.column or self.schema.label
        if name is None:
            return min(self.schema.columns, key=cells)
        return next(column for column in self.schema.columns if column.name == name)

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> HistogramModel:
        """Counts one column, once and with noise."""
        counts = cell_counts(self.counted, data[self.counted.name])
        noisy = counts + geometric_noise(self.epsilon, len(counts), rng_of(seed, "noise"))
        return HistogramModel(schema=self.schema, column=self.counted, noisy=noisy)


MOST_MARGINALS: Final = 3
"""Largest number of counted columns: the first ones with two categories."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MarginalsModel:
    """A model that draws each counted column by itself, and the others uniformly.

    Attributes:
        schema: The public schema.
        columns: The columns that were counted.
        marginals: Their noisy counts, released as they are: one array [cells] for each column.
    """

    schema: Schema
    columns: tuple[Column, ...]
    marginals: tuple[npt.NDArray[np.float64], ...]

    def released(self) -> npt.NDArray[np.float64]:
        """The noisy counts of all cells, column by column."""
        return np.concatenate(self.marginals)

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Draws `n` records."""
        rng = rng_of(seed, "sample")
        table = uniform_table(self.schema, n, rng)
        for column, noisy in zip(self.columns, self.marginals, strict=True):
            cell = rng.choice(len(noisy), size=n, p=shares_of(noisy))
            table[column.name] = values_in(column, cell, rng)
        return self.schema.canonical(table)


@dataclass(frozen=True, kw_only=True)
class GaussianMarginals:
    """Samples rows from up to three noisy binary marginals.

    Every cell of every marginal gets Gaussian noise. Adding or removing a record changes one cell
    of each of k marginals by one, an L2 sensitivity of sqrt(k), so noise of standard deviation
    sqrt(k) / mu is mu-Gaussian differentially private (Dong, Roth and Su 2022, Theorem 2.7), and
    exactly so: the sum of the cells that hold the record is a normal score shifted by mu. The
    number of records is never used. Clipping, normalising and sampling are post-processing. The
    noise is that of floating-point numbers: good for calibration, not for production.

    Attributes:
        schema: The public schema, with a binary column.
        mu: The mu that it claims and has.

    Raises:
        ClaimError: If mu is not positive.
        SettingsError: If no column has two categories.
    """

    schema: Schema
    mu: float = 0.45

    def __post_init__(self) -> None:
        if not self.counted:
            raise SettingsError("no column has two categories: give a schema with a binary column")
        _ = self.claim  # validates

    @property
    def claim(self) -> GaussianClaim:
        """mu-Gaussian DP, exact for the noisy counts."""
        names = ", ".join(column.name for column in self.counted)
        return GaussianClaim(mu=self.mu, source=f"exact: Gaussian noise on the counts of {names}")

    @property
    def counted(self) -> tuple[Column, ...]:
        """The columns whose values are counted."""
        binary = [column for column in self.schema.columns if _is_binary(column)]
        return tuple(binary[:MOST_MARGINALS])

    @property
    def released_facts(self) -> tuple[str, ...]:
        """Names of the noisy counts."""
        return tuple(name for column in self.counted for name in cell_names(column))

    @property
    def scale(self) -> float:
        """Standard deviation of the noise of each count."""
        return math.sqrt(len(self.counted)) / self.mu

    def released_effect(self, record: pd.DataFrame) -> npt.NDArray[np.float64]:
        """By how much a record raises each noisy count: the sum with these weights shows mu."""
        counts = [cell_counts(column, record[column.name]) for column in self.counted]
        return np.concatenate(counts).astype(np.float64)

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> MarginalsModel:
        """Counts the columns, once and with noise."""
        rng = rng_of(seed, "noise")
        marginals = tuple(
            cell_counts(column, data[column.name]) + rng.normal(0.0, self.scale, cells(column))
            for column in self.counted
        )
        return MarginalsModel(schema=self.schema, columns=self.counted, marginals=marginals)


def _is_binary(column: Column) -> bool:
    return not column.kind.numeric and len(column.categories) == 2
