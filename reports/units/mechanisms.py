"""Generators that claim epsilon per patient: leaks over a patient's rows, and honest twins.

No single row shows any of the leaks: without one row of the attacked patient `noise` changes by
what it claims, and the other two do not change at all. Each honest twin keeps its claim exactly.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.column import Column, Kind, Unit
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import (
    BoolArray,
    FeatureName,
    FloatArray,
    GameView,
    IntArray,
    Scorer,
)
from dpaudit.seeds import rng_of

ROWS: Final = 10
"""Rows of the attacked patient, the most that any may have."""
DRUGS: Final = tuple("ABCDEFGHIJKL")
MOST_COST: Final = 100.0
ENOUGH: Final = 3
"""A drug with fewer rows is suppressed."""
UNIT: Final = Unit(column="patient", max_rows=ROWS)
SCHEMA: Final = Schema(
    columns=(
        Column(name="drug", kind=Kind.CATEGORICAL, categories=DRUGS),
        Column(name="cost", kind=Kind.CONTINUOUS, lower=0.0, upper=MOST_COST),
        Column(name="ill", kind=Kind.BINARY, categories=(0, 1)),
    ),
    unit=UNIT,
)
TARGET: Final = "unit:0"


def visits(number: int) -> pd.DataFrame:
    """A table of visits: the attacked patient alone has two of the drugs, five times each.

    Args:
        number: Which of the tables; each has other patients.
    """
    rng = rng_of(number, "visits")
    sizes = rng.integers(1, 5, 40)
    others = int(sizes.sum())
    return pd.DataFrame(
        {
            "patient": [*([0] * ROWS), *np.repeat(np.arange(1, 41), sizes)],
            "drug": [*"AABBAABBAB", *rng.choice(DRUGS[2:], others)],
            "cost": [*([80.0] * ROWS), *rng.uniform(0.0, 50.0, others).round(1)],
            "ill": [*([1] * ROWS), *rng.integers(0, 2, others)],
        }
    )


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A model that draws drugs with some probabilities and costs up to a limit.

    Attributes:
        shares: Probabilities of the drugs [12].
        limit: Largest cost.
    """

    shares: FloatArray
    limit: float

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Draws `n` rows; without the patient, who is not released."""
        rng = rng_of(seed, "sample")
        return pd.DataFrame(
            {
                "drug": rng.choice(DRUGS, n, p=self.shares),
                "cost": rng.uniform(0.0, self.limit, n),
                "ill": rng.integers(0, 2, n),
            }
        )


def _counts(data: pd.DataFrame) -> IntArray:
    """Rows of each drug [12]."""
    return data["drug"].value_counts().reindex(DRUGS, fill_value=0).to_numpy(dtype=np.int64)


def _shares(weights: FloatArray) -> FloatArray:
    kept = np.maximum(weights, 0.0)
    found: FloatArray = kept / kept.sum() if kept.any() else np.full(len(kept), 1.0 / len(kept))
    return found


@dataclass(frozen=True, kw_only=True)
class _PerPatient(ABC):
    """Claims epsilon per patient.

    Attributes:
        epsilon: The epsilon that it claims.
        honest: Whether it keeps the claim.
    """

    epsilon: float = 1.0
    honest: bool = False

    @property
    def claim(self) -> PrivacyClaim:
        """(epsilon, 0) per patient."""
        return PrivacyClaim(epsilon=self.epsilon, unit=UNIT.column, source="its documentation")

    @abstractmethod
    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Drawn:
        """Trains on a table of visits."""

    def noisy(self, data: pd.DataFrame, seed: int | None, *, rows: int) -> FloatArray:
        """Counts of the drugs with Laplace noise for so many rows of a patient."""
        noise = rng_of(seed, "noise").laplace(scale=rows / self.epsilon, size=len(DRUGS))
        return _counts(data) + noise


@dataclass(frozen=True, kw_only=True)
class Noise(_PerPatient):
    """Counts with noise for one row; its twin's noise is for ten, the most of a patient."""

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Drawn:
        """Counts the drugs."""
        weights = self.noisy(data, seed, rows=ROWS if self.honest else 1)
        return Drawn(shares=_shares(weights), limit=MOST_COST)


@dataclass(frozen=True, kw_only=True)
class Suppression(_PerPatient):
    """Releases the drugs with enough rows, all equally often; its twin decides by noisy counts."""

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Drawn:
        """Counts the drugs."""
        weights = self.noisy(data, seed, rows=ROWS) if self.honest else _counts(data)
        return Drawn(shares=_shares((weights >= ENOUGH).astype(np.float64)), limit=MOST_COST)


@dataclass(frozen=True, kw_only=True)
class Total(_PerPatient):
    """Its largest cost depends on the largest total of a patient, rounded up to a power of 2."""

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Drawn:
        """Sums the costs of each patient; its twin takes the public bound."""
        del seed
        most = float(data.groupby("patient")["cost"].sum().max())
        limit = 2.0 ** math.ceil(math.log2(max(most, 1.0))) / ROWS
        return Drawn(
            shares=np.full(len(DRUGS), 1.0 / len(DRUGS)),
            limit=MOST_COST if self.honest else min(MOST_COST, limit),
        )


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Randomised response on whether the attacked patient has any row: the hardest honest claim.

    Attributes:
        epsilon: The epsilon per patient that it claims and has.
    """

    epsilon: float = 1.0

    @property
    def claim(self) -> PrivacyClaim:
        """(epsilon, 0) per patient, exactly."""
        return PrivacyClaim(epsilon=self.epsilon, unit=UNIT.column, source="exact")

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Drawn:
        """Answers once."""
        truthful = rng_of(seed, "answer").random() < 1.0 / (1.0 + math.exp(-self.epsilon))
        answer = bool((data["patient"] == 0).any()) == truthful
        shares = np.zeros(len(DRUGS))
        shares[0 if answer else -1] = 1.0
        return Drawn(shares=shares, limit=MOST_COST)


LEAKS: Final = {"noise": Noise, "suppression": Suppression, "total": Total}
"""The generators by name."""


@dataclass(frozen=True, kw_only=True)
class FirstShare:
    """An attack that reads the answer: the share of the drug that stands for yes."""

    def check(self, game: GameView) -> None:
        """Accepts any game."""

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        """The one feature."""
        del game
        return (FeatureName("drug", f"share of {DRUGS[0]}"),)

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        """The share [1]."""
        del game
        return np.array([(table["drug"] == DRUGS[0]).mean()])

    def fit(self, features: FloatArray, member: BoolArray, *, seed: int) -> Scorer:
        """The feature is the score."""
        del features, member, seed
        return _first


def _first(features: FloatArray) -> FloatArray:
    return features[:, 0]


ROW_SCHEMA: Final = Schema(
    columns=(*SCHEMA.columns, Column(name=UNIT.column, kind=Kind.INTEGER, lower=0, upper=40))
)
"""The schema of an audit by row, where the patient is a column like any other."""


@dataclass(frozen=True, kw_only=True)
class ByRow:
    """The same generator with its claim read as one per row; it releases random patients.

    Attributes:
        generator: The generator.
    """

    generator: _PerPatient

    @property
    def claim(self) -> PrivacyClaim:
        """(epsilon, 0) per row."""
        return replace(self.generator.claim, unit=None)

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> _WithPatients:
        """Trains it."""
        return _WithPatients(self.generator.fit(data, seed=seed))


class _WithPatients(NamedTuple):
    model: Drawn

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Draws `n` rows and a patient for each."""
        patients = rng_of(seed, "patients").integers(0, 41, n)
        return self.model.sample(n, seed=seed).assign(**{UNIT.column: patients})
