"""Toys that release noisy counts: a histogram of one column, and binary marginals.

Their claims are exact: the textbook private generator, and a Gaussian one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.errors import SettingsError
from dpaudit.formatting import did_you_mean
from dpaudit.model.claim import GaussianClaim, PrivacyClaim
from dpaudit.model.column import Column
from dpaudit.model.encoding import table_of, values_of_table
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import IntArray
from dpaudit.seeds import rng_of
from dpaudit_generators.batches import Domain, shares_of
from dpaudit_generators.toys.planted import uniform_table

_BINS: Final = 10
"""Largest number of bins of a numeric column."""


def domain_of(column: Column) -> Domain:
    """The public cells of one column: bins or categories, and a cell for missing values."""
    return Domain(Schema(columns=(column,)), _BINS)


def cell_counts(column: Column, data: pd.DataFrame) -> IntArray:
    """How many records fall in each cell; values unknown to the schema are not counted."""
    domain = domain_of(column)
    cells = domain.cells(values_of_table(data, domain.schema))[:, 0]
    return np.bincount(cells[cells >= 0], minlength=domain.sizes[0])


def values_in(column: Column, cells: IntArray, rng: np.random.Generator) -> pd.Series[Any]:
    """A value of a column from each of these cells [n]; within a bin all are equally likely."""
    domain = domain_of(column)
    places = rng.random(len(cells)) if column.kind.numeric else np.zeros(len(cells))
    values = domain.values(cells[:, None], places[:, None])
    return table_of(values, domain.schema)[column.name]


def geometric_noise(epsilon: float, n: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Two-sided geometric noise [n]: P(z) proportional to e^(-epsilon |z|).

    The difference of two geometric variables (Ghosh, Roughgarden and Sundararajan 2009,
    "Universally utility-maximizing privacy mechanisms"). Integers have no low bits that could
    reveal the count.
    """
    success = -math.expm1(-epsilon)
    return rng.geometric(success, n) - rng.geometric(success, n)


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
    marginals: tuple[npt.NDArray[Any], ...]

    def released(self) -> npt.NDArray[np.float64]:
        """The noisy counts of all cells, column by column."""
        return np.concatenate(self.marginals).astype(np.float64)

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Draws `n` records."""
        rng = rng_of(seed, "sample")
        table = uniform_table(self.schema, n, rng)
        for column, noisy in zip(self.columns, self.marginals, strict=True):
            cell = rng.choice(len(noisy), size=n, p=shares_of(noisy))
            table[column.name] = values_in(column, cell, rng)
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
        return domain_of(self.counted).names[0]

    @property
    def counted(self) -> Column:
        """The column whose values are counted."""
        name = self.column or self.schema.label
        if name is None:
            return min(self.schema.columns, key=lambda column: domain_of(column).sizes[0])
        return next(column for column in self.schema.columns if column.name == name)

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> MarginalsModel:
        """Counts one column, once and with noise."""
        counts = cell_counts(self.counted, data)
        noisy = counts + geometric_noise(self.epsilon, len(counts), rng_of(seed, "noise"))
        return MarginalsModel(schema=self.schema, columns=(self.counted,), marginals=(noisy,))


MOST_MARGINALS: Final = 3
"""Largest number of counted columns: the first ones with two categories."""


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
        binary = [
            column
            for column in self.schema.columns
            if not column.kind.numeric and len(column.categories) == 2
        ]
        return tuple(binary[:MOST_MARGINALS])

    @property
    def released_facts(self) -> tuple[str, ...]:
        """Names of the noisy counts."""
        return tuple(name for column in self.counted for name in domain_of(column).names[0])

    @property
    def scale(self) -> float:
        """Standard deviation of the noise of each count."""
        return math.sqrt(len(self.counted)) / self.mu

    def released_effect(self, record: pd.DataFrame) -> npt.NDArray[np.float64]:
        """By how much a record raises each noisy count: the sum with these weights shows mu."""
        counts = [cell_counts(column, record) for column in self.counted]
        return np.concatenate(counts).astype(np.float64)

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> MarginalsModel:
        """Counts the columns, once and with noise."""
        rng = rng_of(seed, "noise")
        counts = [cell_counts(column, data) for column in self.counted]
        marginals = tuple(own + rng.normal(0.0, self.scale, len(own)) for own in counts)
        return MarginalsModel(schema=self.schema, columns=self.counted, marginals=marginals)
