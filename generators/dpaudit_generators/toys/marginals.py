"""Noisy binary marginals: a generator whose claim is Gaussian, and exact."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.errors import SettingsError
from dpaudit.model.column import Column
from dpaudit.model.currencies import GaussianClaim
from dpaudit.model.schema import Schema
from dpaudit.seeds import rng_of
from dpaudit_generators.toys.histogram import cell_counts, cell_names, cells, shares_of, values_in
from dpaudit_generators.toys.uniform import uniform_table

MOST_MARGINALS: Final = 3
"""Columns that are counted, at most: the first with two categories."""


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
    of each of k marginals by one, an L2 sensitivity of sqrt(k), so that noise of standard deviation
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
