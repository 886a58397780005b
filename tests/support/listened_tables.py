"""Generators of patients and visits for replays: counts of visits with noise, kept by coins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from reports.linked_tables.mechanisms import KINDS, Released


@dataclass(frozen=True)
class Counted:
    """Visits of each ward, counted through the keys, with Laplace noise for so many of a patient.

    Attributes:
        visits: The visits that the noise is for.
    """

    visits: int

    def fit(self, data: dict[str, pd.DataFrame], *, seed: int | None) -> Released:
        """Counts once."""
        rng = np.random.default_rng(seed)
        kept = self.kept(data, rng)
        joined = kept["visits"].merge(kept["patients"], left_on="patient_id", right_on="id")
        counts = joined["ward"].value_counts().reindex(KINDS, fill_value=0).to_numpy(dtype=float)
        first, second = np.maximum(counts + rng.laplace(scale=self.visits, size=2), 1e-9)
        return Released(matching=first / (first + second))

    def kept(self, data: dict[str, pd.DataFrame], rng: np.random.Generator) -> dict[str, Any]:
        """All rows."""
        del rng
        return data


@dataclass(frozen=True)
class CountedByCoin(Counted):
    """Keeps each visit with probability 1/2."""

    def kept(self, data: dict[str, pd.DataFrame], rng: np.random.Generator) -> dict[str, Any]:
        """The visits whose coins say so."""
        visits = data["visits"]
        return {**data, "visits": visits[rng.random(len(visits)) < 0.5]}


@dataclass(frozen=True)
class CountedByTurns(Counted):
    """The same with one coin after another."""

    def kept(self, data: dict[str, pd.DataFrame], rng: np.random.Generator) -> dict[str, Any]:
        """The visits whose coins say so."""
        visits = data["visits"]
        return {**data, "visits": visits[[rng.random() < 0.5 for _ in range(len(visits))]]}


@dataclass(frozen=True)
class CountedByPatient(Counted):
    """Keeps each patient with probability 1/2."""

    def kept(self, data: dict[str, pd.DataFrame], rng: np.random.Generator) -> dict[str, Any]:
        """The rows of the patients whose coins say so."""
        patients = data["patients"]
        return {**data, "patients": patients[rng.random(len(patients)) < 0.5]}


@dataclass(frozen=True)
class CountedByOneAfterAnother(Counted):
    """The same with one coin after another."""

    def kept(self, data: dict[str, pd.DataFrame], rng: np.random.Generator) -> dict[str, Any]:
        """The rows of the patients whose coins say so."""
        patients = data["patients"]
        return {**data, "patients": patients[[rng.random() < 0.5 for _ in range(len(patients))]]}


@dataclass(frozen=True)
class KeysSeen:
    """Fails unless the types and the first value of the keys are the expected ones.

    Attributes:
        expected: In words.
    """

    expected: str

    def fit(self, data: dict[str, pd.DataFrame], *, seed: int | None) -> Released:
        """Looks at them."""
        del seed
        keys = data["patients"]["id"], data["visits"]["patient_id"]
        if "; ".join(f"{one.dtype} {one.iloc[0]}" for one in keys) != self.expected:
            raise ValueError("other keys")
        return Released(matching=0.5)
