"""Generators of visits for replays of units: noise for a row or all of them, rows kept by coins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

DRUGS = tuple("ABCDEFGHIJKL")


@dataclass(frozen=True)
class Counted:
    """Counts of drugs with Laplace noise for so many rows of a patient.

    Attributes:
        rows: The rows that the noise is for.
    """

    rows: int

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Released:
        """Counts once."""
        rng = np.random.default_rng(seed)
        kept = self.kept(data, rng)
        counts = kept["drug"].value_counts().reindex(DRUGS, fill_value=0).to_numpy(dtype=float)
        return Released(counts + rng.laplace(scale=self.rows, size=len(DRUGS)))

    def kept(self, data: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
        """All rows."""
        del rng
        return data


@dataclass(frozen=True)
class CountedByCoin(Counted):
    """Keeps each row with probability 1/2."""

    def kept(self, data: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
        """The rows whose coins say so."""
        return data[rng.random(len(data)) < 0.5]


@dataclass(frozen=True)
class CountedByTurns(Counted):
    """The same with one coin after another."""

    def kept(self, data: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
        """The rows whose coins say so."""
        return data[[rng.random() < 0.5 for _ in range(len(data))]]


@dataclass(frozen=True)
class CountedByPatient(Counted):
    """Keeps each patient with probability 1/2."""

    def kept(self, data: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
        """The rows of the patients whose coins say so."""
        patients = data["patient"].unique()
        return data[data["patient"].isin(patients[rng.random(len(patients)) < 0.5])]


@dataclass(frozen=True)
class Released:
    """A model of noisy counts.

    Attributes:
        noisy: The counts.
    """

    noisy: Any

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Draws `n` rows."""
        rng = np.random.default_rng(seed)
        weights = np.maximum(self.noisy, 0.0) + 1e-9
        return pd.DataFrame(
            {
                "drug": rng.choice(DRUGS, n, p=weights / weights.sum()),
                "cost": rng.uniform(0.0, 100.0, n),
                "ill": rng.integers(0, 2, n),
            }
        )
