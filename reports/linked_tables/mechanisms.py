"""Generators of patients and their visits: leaks that only the keys show, and honest twins.

Of either leak each table alone has the same distribution with and without the attacked patient:
`Association` leaks how a visit's drug goes with its patient's ward, `Busiest` how many visits a
patient has. Each twin keeps epsilon per patient exactly.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.column import Column, Kind
from dpaudit.model.linked_tables import LinkedTables
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import IntArray
from dpaudit.seeds import rng_of

VISITS: Final = 10
"""Visits of the attacked patient, the most that any may have."""
_OTHERS: Final = 40
_LEAD: Final = 5
"""By so many visits the other patients' drugs differ from their wards more often than not."""
_EACH: Final = 2
"""Released visits for each released patient."""
KINDS: Final = ("A", "B")
SCHEMA: Final = LinkedTables(
    tables={
        "patients": Schema(
            columns=(
                Column(name="ward", kind=Kind.BINARY, categories=KINDS),
                Column(name="age", kind=Kind.INTEGER, lower=0, upper=99),
            )
        ),
        "visits": Schema(
            columns=(
                Column(name="drug", kind=Kind.BINARY, categories=KINDS),
                Column(name="cost", kind=Kind.CONTINUOUS, lower=0.0, upper=100.0),
            )
        ),
    },
    links=("visits.patient_id=patients.id",),
)
UNIT: Final = "patients.id"


def hospital(number: int) -> dict[str, pd.DataFrame]:
    """The tables: patient 0 has ten visits, all with the drug of the ward, the others four at most.

    Args:
        number: Which of the hospitals; each has other patients.
    """
    rng = rng_of(number, "hospital")
    sizes = np.append(VISITS, rng.integers(1, 5, _OTHERS))
    owners = np.repeat(np.arange(len(sizes)), sizes)
    wards = rng.integers(0, 2, len(sizes))
    others = len(owners) - VISITS
    matching = np.zeros(others, dtype=np.bool_)
    matching[: (others - _LEAD) // 2] = True
    matches = np.append(np.ones(VISITS, dtype=np.bool_), rng.permutation(matching))
    drugs = np.where(matches, wards[owners], 1 - wards[owners])
    patients = {"id": np.arange(len(sizes)), "ward": np.array(KINDS)[wards]}
    visits = {"patient_id": owners, "drug": np.array(KINDS)[drugs]}
    return {
        "patients": pd.DataFrame({**patients, "age": rng.integers(20, 90, len(sizes))}),
        "visits": pd.DataFrame({**visits, "cost": rng.uniform(0, 100, len(owners)).round(1)}),
    }


@dataclass(frozen=True, kw_only=True)
class Released:
    """A model of wards, ages and costs that are uniform whatever the data.

    Attributes:
        matching: Probability that the drug of a visit is that of its patient's ward.
        visits: Visits of each patient that has any.
    """

    matching: float
    visits: int = _EACH

    def sample(self, n: int, *, seed: int | None) -> dict[str, pd.DataFrame]:
        """Draws `n` patients and twice as many visits."""
        rng = rng_of(seed, "sample")
        wards, owners = rng.integers(0, 2, n), self._owners(n, rng)
        other = rng.random(len(owners)) >= self.matching
        drugs = np.where(other, 1 - wards[owners], wards[owners])
        patients = {"id": np.arange(n), "ward": np.array(KINDS)[wards]}
        visits = {"patient_id": owners, "drug": np.array(KINDS)[drugs]}
        return {
            "patients": pd.DataFrame({**patients, "age": rng.integers(0, 100, n)}),
            "visits": pd.DataFrame({**visits, "cost": rng.uniform(0, 100, len(owners))}),
        }

    def _owners(self, n: int, rng: np.random.Generator) -> IntArray:
        total = _EACH * n
        busy = rng.permutation(n)[: -(-total // self.visits)]
        owners: IntArray = rng.permutation(np.repeat(busy, self.visits)[:total])
        return owners


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
        return PrivacyClaim(epsilon=self.epsilon, unit=UNIT, source="its documentation")

    @abstractmethod
    def fit(self, data: dict[str, pd.DataFrame], *, seed: int | None) -> Released:
        """Trains on the tables."""


@dataclass(frozen=True, kw_only=True)
class Association(_PerPatient):
    """Drugs mostly those of the ward, or mostly not, as in the data; its twin adds noise first."""

    def fit(self, data: dict[str, pd.DataFrame], *, seed: int | None) -> Released:
        """Counts by how many visits the drug of the ward leads."""
        visits = data["visits"].merge(data["patients"], left_on="patient_id", right_on="id")
        lead = float(np.where(visits["drug"] == visits["ward"], 1, -1).sum())
        if self.honest:
            lead += rng_of(seed, "noise").laplace(scale=VISITS / self.epsilon)
        return Released(matching=0.9 if lead > 0 else 0.1)


@dataclass(frozen=True, kw_only=True)
class Busiest(_PerPatient):
    """As many visits a patient as the busiest one has; its twin takes the public most."""

    def fit(self, data: dict[str, pd.DataFrame], *, seed: int | None) -> Released:
        """Counts the visits of each patient."""
        del seed
        most = int(data["visits"]["patient_id"].value_counts().max())
        return Released(matching=0.5, visits=VISITS if self.honest else most)


@dataclass(frozen=True, kw_only=True)
class Answer(_PerPatient):
    """Randomised response on whether the attacked patient is there: the hardest honest claim."""

    def fit(self, data: dict[str, pd.DataFrame], *, seed: int | None) -> Released:
        """Answers once."""
        truthful = rng_of(seed, "answer").random() < 1.0 / (1.0 + math.exp(-self.epsilon))
        answer = bool((data["patients"]["id"] == 0).any()) == truthful
        return Released(matching=1.0 if answer else 0.0)


@dataclass(frozen=True)
class _WithoutKeys:
    model: Released

    def sample(self, n: int, *, seed: int | None) -> dict[str, pd.DataFrame]:
        tables = self.model.sample(n, seed=seed)
        return {
            name: table.drop(columns=["id", "patient_id"], errors="ignore")
            for name, table in tables.items()
        }


@dataclass(frozen=True)
class WithoutKeys:
    """The same generator, which keeps the keys: attackers see each table alone.

    Attributes:
        generator: The generator.
    """

    generator: _PerPatient

    @property
    def claim(self) -> PrivacyClaim:
        """That of the generator."""
        return self.generator.claim

    def fit(self, data: dict[str, pd.DataFrame], *, seed: int | None) -> _WithoutKeys:
        """Trains the generator."""
        return _WithoutKeys(self.generator.fit(data, seed=seed))


LEAKS: Final = {"association": Association, "busiest": Busiest}
"""The generators by name."""
