"""Uniform draws over a schema, and the generator that releases nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema, canonical_table
from dpaudit.seeds import rng_of
from dpaudit_generators.toys.disclosing import DISCLOSES, FACTS, DisclosingModel

MISSING_SHARE: Final = 0.1
"""Share of missing values in a uniform column that may have them."""


def uniform_values(column: Column, n: int, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Independent draws [n], uniform over bounds or categories; a public share is missing."""
    lower, upper = column.bounds if column.kind.numeric else (0.0, len(column.categories) - 1.0)
    if column.kind is Kind.CONTINUOUS:
        drawn: npt.NDArray[Any] = rng.uniform(lower, upper, n)
    else:
        # The floor over a wider interval, whose end has no mass but may be hit by rounding.
        drawn = np.minimum(np.floor(rng.uniform(lower, upper + 1.0, n)), upper)
        if not column.kind.numeric:
            categories = np.empty(len(column.categories), dtype=object)
            categories[:] = column.categories
            drawn = categories[drawn.astype(np.int64)]
    if column.missing:
        drawn[rng.random(n) < MISSING_SHARE] = np.nan
    return column.canonical_numbers(drawn) if column.kind.numeric else drawn


def uniform_table(schema: Schema, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """A canonical table [n] of independent uniform columns, which depends on the schema only."""
    return canonical_table({c.name: uniform_values(c, n, rng) for c in schema.columns})


@dataclass(frozen=True, kw_only=True, eq=False)
class UniformModel(DisclosingModel):
    """A model that knows nothing but the schema."""

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Draws `n` uniform records."""
        return uniform_table(self.schema, n, rng_of(seed, "sample"))


@dataclass(frozen=True, kw_only=True)
class NullGenerator:
    """Ignores its data: its releases have the same distribution in both worlds.

    Its true epsilon is 0, so whatever it claims is true; an audit that finds a violation is broken.

    Attributes:
        schema: The public schema.
        epsilon: The epsilon that it claims.
        released_facts: Names of the numbers that its models release.

    Raises:
        ClaimError: If epsilon is not positive.
    """

    schema: Schema
    epsilon: float = 1.0
    released_facts: tuple[str, ...] = FACTS

    discloses: ClassVar[tuple[str, ...]] = DISCLOSES

    def __post_init__(self) -> None:
        _ = self.claim  # validates

    @property
    def claim(self) -> PrivacyClaim:
        """(epsilon, 0), which holds because nothing is ever read."""
        return PrivacyClaim(epsilon=self.epsilon, source="true of any epsilon: ignores its data")

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> UniformModel:
        """Makes a model without reading the data."""
        return UniformModel(schema=self.schema, fit_seed=seed, released_facts=self.released_facts)
