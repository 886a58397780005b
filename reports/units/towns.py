"""Generators of visits that leak all rows of a patient, their honest twins, and exact mechanisms.

Each patient has a town of their own, so that many patients can be attacked at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.column import Column, Kind, Unit
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import BoolArray, FloatArray
from dpaudit.seeds import rng_of

ROWS: Final = 10
"""Rows of every patient."""
PATIENTS: Final = 60
ENOUGH: Final = 5
"""A town with fewer rows is suppressed."""
UNIT: Final = Unit(column="patient", max_rows=ROWS)
TOWNS: Final = tuple(range(PATIENTS))
SCHEMA: Final = Schema(
    columns=(
        Column(name="town", kind=Kind.CATEGORICAL, categories=TOWNS),
        Column(name="cost", kind=Kind.CONTINUOUS, lower=0.0, upper=1.0),
    ),
    unit=UNIT,
)
BY_ROW: Final = Schema(columns=SCHEMA.columns)


def visits(number: int = 0, *, patients: int = PATIENTS, rows: int = ROWS) -> pd.DataFrame:
    """A table of visits, shuffled: patient p lives in town p.

    Args:
        number: Which of the tables.
        patients: How many patients.
        rows: Rows of each.
    """
    rng = rng_of(number, "visits by town")
    patient = rng.permutation(np.repeat(np.arange(patients), rows))
    cost = rng.random(len(patient)).round(3)
    return pd.DataFrame({"patient": patient, "town": patient, "cost": cost})


class Towns(NamedTuple):
    """A model that draws towns with some weights and costs uniformly."""

    weights: FloatArray

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Deals `n` rows to the towns in proportion to their weights, in random order."""
        rng = rng_of(seed, "sample")
        weights = self.weights if self.weights.sum() > 0 else np.ones(len(self.weights))
        ends = np.rint(np.cumsum(weights) / weights.sum() * n).astype(int)
        towns = np.repeat(np.arange(len(weights)), np.diff(ends, prepend=0))
        return pd.DataFrame({"town": rng.permutation(towns), "cost": rng.random(n).round(3)})


def counts(data: pd.DataFrame) -> FloatArray:
    """Rows of each town."""
    return np.bincount(data["town"].astype(int), minlength=PATIENTS).astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class _PerPatient:
    epsilon: float = 1.0
    honest: bool = False
    by_row: bool = False

    @property
    def claim(self) -> PrivacyClaim:
        """(epsilon, 0) per patient, or per row."""
        unit = None if self.by_row else UNIT.column
        return PrivacyClaim(epsilon=self.epsilon, unit=unit, source="its documentation")

    def noisy(self, data: pd.DataFrame, seed: int | None, *, rows: int) -> FloatArray:
        """Counts with Laplace noise for so many rows of a patient."""
        noise = rng_of(seed, "noise").laplace(scale=rows / self.epsilon, size=PATIENTS)
        return counts(data) + noise


@dataclass(frozen=True, kw_only=True)
class Suppressed(_PerPatient):
    """Releases towns with enough rows, all equally often; its twin decides by noisy counts."""

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Towns:
        """Counts the towns."""
        seen = self.noisy(data, seed, rows=ROWS) if self.honest else counts(data)
        return Towns((seen >= ENOUGH).astype(np.float64))


@dataclass(frozen=True, kw_only=True)
class NoiseForARow(_PerPatient):
    """Counts with noise for one row of a patient; its twin's noise is for all of them."""

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Towns:
        """Counts the towns."""
        return Towns(np.maximum(self.noisy(data, seed, rows=ROWS if self.honest else 1), 0.0))


TOWN_LEAKS: Final = {"suppressed": Suppressed, "noise for a row": NoiseForARow}
"""The generators by name; each has an honest twin."""


@dataclass(frozen=True, kw_only=True)
class Answers(_PerPatient):
    """Randomised response on whether each town has a patient: exactly epsilon per patient."""

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Towns:
        """Answers for every town."""
        truthful: BoolArray = rng_of(seed, "answers").random(PATIENTS) < 1.0 / (
            1.0 + math.exp(-self.epsilon)
        )
        return Towns(((counts(data) > 0) == truthful).astype(np.float64))
