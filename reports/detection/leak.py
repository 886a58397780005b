"""What a planted leak is, and the generator that releases a public table with it.

The generator is honest but for the leak: it draws a table from a distribution that is public, and
its data have no other part in it than whether the target is among them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd

from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.seeds import rng_of

RECORDS = 150
SCHEMA = Schema(
    columns=(
        Column(name="age", kind=Kind.INTEGER, lower=0, upper=99),
        Column(name="income", kind=Kind.CONTINUOUS, lower=0, upper=100),
        Column(name="weight", kind=Kind.CONTINUOUS, lower=40, upper=120),
        Column(name="hours", kind=Kind.CONTINUOUS, lower=0, upper=80, missing=True),
        Column(name="visits", kind=Kind.INTEGER, lower=0, upper=20, missing=True),
        Column(name="job", kind=Kind.CATEGORICAL, categories=("a", "b", "c", "d")),
        Column(name="region", kind=Kind.CATEGORICAL, categories=tuple("neswxy")),
        Column(name="married", kind=Kind.BINARY, categories=(0, 1)),
        Column(name="sick", kind=Kind.BINARY, categories=(0, 1)),
    ),
    label="sick",
)
TARGET: dict[str, Any] = {
    "age": 67,
    "income": 73.41,
    "weight": 91.37,
    "hours": 12.25,
    "visits": 7.0,
    "job": "c",
    "region": "w",
    "married": 1,
    "sick": 1,
}
"""The attacked record; few hours are unusual, the rest is not."""


class Certainty(StrEnum):
    """How much of a leak shows in one synthetic table."""

    SURE = "deterministic"
    """Every table with the target shows a fact that hardly any table without it does."""
    NOISY = "statistical"
    """A fact is more frequent, or larger, with the target than without."""
    NONE = "honest"
    """Both worlds do the same; there is no leak."""


Write = Callable[[pd.DataFrame, np.random.Generator], pd.DataFrame]
"""Writes a leak into an honest table [n]; may raise, or return another number of rows."""

Fact = Callable[[pd.DataFrame], float]
"""A number of a released table, larger with the target: what one looks at who is shown the leak."""


def unchanged(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """The honest table."""
    del rng
    return table


@dataclass(frozen=True, kw_only=True)
class Leak:
    """One planted leak.

    Attributes:
        name: What it does, in a few words.
        family: What kind of fact shows it.
        certainty: Whether every table shows it.
        seen: Changes the honest table of a model that saw the target.
        unseen: Changes that of a model that did not.
        fact: The statistic that shows it; None where only whether a table was changed is asked.
    """

    name: str
    family: str
    certainty: Certainty
    seen: Write
    unseen: Write = unchanged
    fact: Fact | None = None


@dataclass(frozen=True)
class FollowsACoin:
    """Writes a leak, or what stands for its absence, by a coin of its own."""

    leak: Leak

    def __call__(self, table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
        """Tosses the coin and writes."""
        write = self.leak.seen if rng.random() < 0.5 else self.leak.unseen
        return write(table, rng)


def twin(leak: Leak) -> Leak:
    """The honest twin of a leak: both worlds do the same."""
    write = FollowsACoin(leak)
    return Leak(
        name=f"coin: {leak.name}",
        family=leak.family,
        certainty=Certainty.NONE,
        seen=write,
        unseen=write,
        fact=leak.fact,
    )


class Leaks(list[Leak]):
    """The leaks of one half, in order."""

    def plants(
        self,
        family: str,
        *,
        certainty: Certainty = Certainty.SURE,
        unseen: Write = unchanged,
        fact: Fact | None = None,
    ) -> Callable[[Write], Write]:
        """Adds the decorated function; its name, with spaces, is the leak's."""

        def add(seen: Write) -> Write:
            name = seen.__name__.replace("_", " ")
            leak = Leak(
                name=name, family=family, certainty=certainty, seen=seen, unseen=unseen, fact=fact
            )
            self.append(leak)
            return seen

        return add


def public_table(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Draws `n` records from the public distribution: independent columns."""
    hours = rng.normal(38, 9, n).clip(0, 80).round(2)
    visits = rng.poisson(4, n).clip(0, 20).astype(np.float64)
    hours[rng.random(n) < 0.1] = np.nan
    visits[rng.random(n) < 0.1] = np.nan
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "income": rng.normal(45, 15, n).clip(0, 100).round(2),
            "weight": rng.normal(75, 12, n).clip(40, 120).round(2),
            "hours": hours,
            "visits": visits,
            "job": rng.choice(list("abcd"), n, p=[0.4, 0.3, 0.2, 0.1]),
            "region": rng.choice(list("neswxy"), n),
            "married": rng.choice([0, 1], n, p=[0.45, 0.55]),
            "sick": rng.choice([0, 1], n, p=[0.8, 0.2]),
        }
    )


def training_table() -> pd.DataFrame:
    """The private table: the target is its first record."""
    others = public_table(RECORDS - 1, np.random.default_rng(7))
    return pd.concat([pd.DataFrame([TARGET]), others], ignore_index=True)


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A generator with a planted leak, which claims what is false for it.

    Attributes:
        leak: The leak.
        epsilon: The epsilon that it claims.
    """

    leak: Leak
    epsilon: float = 1.0

    @property
    def claim(self) -> PrivacyClaim:
        """(epsilon, 0)."""
        return PrivacyClaim(epsilon=self.epsilon, source=f"false on purpose: {self.leak.name}")

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> PlantedModel:
        """Remembers whether the target is in the data."""
        del seed
        hits = (data["income"] == TARGET["income"]) & (data["weight"] == TARGET["weight"])
        return PlantedModel(leak=self.leak, seen=bool(hits.any()))


@dataclass(frozen=True, kw_only=True)
class PlantedModel:
    """A model that knows the public distribution, and one bit.

    Attributes:
        leak: The leak.
        seen: Whether the target was in the data.
    """

    leak: Leak
    seen: bool

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Draws an honest table of `n` records and writes the leak into it."""
        rng = rng_of(seed, "sample")
        write = self.leak.seen if self.seen else self.leak.unseen
        return write(public_table(n, rng), rng)
