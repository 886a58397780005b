"""Generators that publish one person's answer: exactly as private as they say, a leak, and none.

Every person of a public list stands in each release, in the table or not, so only the answer can
show whether the record was there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import BoolArray
from dpaudit.seeds import rng_of

PEOPLE: Final = 8
SECRET: Final = "answer"
TARGET: Final = "row:0"
"""The only person who answers yes."""
SCHEMA: Final = Schema(
    columns=(
        Column(name="person", kind=Kind.INTEGER, lower=0, upper=PEOPLE - 1),
        Column(name=SECRET, kind=Kind.CATEGORICAL, categories=("no", "yes")),
    )
)
TABLE: Final = pd.DataFrame({"person": range(PEOPLE), SECRET: ["yes", *["no"] * (PEOPLE - 1)]})


@dataclass(frozen=True, kw_only=True)
class Answers:
    """A release: the published answer of every person.

    Attributes:
        yes: Whether each person's [8] is yes.
    """

    yes: BoolArray

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """The first `n` people."""
        del seed
        answers = np.where(self.yes, "yes", "no")
        return pd.DataFrame({"person": range(PEOPLE), SECRET: answers}).head(n)


@dataclass(frozen=True, kw_only=True)
class RandomisedResponse:
    """Tells the truth with probability e^epsilon / (1 + e^epsilon); who is missing counts as no.

    With the first person's record the answer is yes exactly e^epsilon times as often as without it.

    Attributes:
        epsilon: The epsilon that it has.
        claimed: The epsilon that it claims; None for the one that it has.
    """

    epsilon: float
    claimed: float | None = None

    @property
    def claim(self) -> PrivacyClaim:
        """(epsilon, 0)."""
        claimed = self.epsilon if self.claimed is None else self.claimed
        return PrivacyClaim(epsilon=claimed, source="exact")

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Answers:
        """Answers once for each person."""
        lies = rng_of(seed, "answers").random(PEOPLE) >= 1.0 / (1.0 + math.exp(-self.epsilon))
        return Answers(yes=_yes(data) ^ lies)


@dataclass(frozen=True, kw_only=True)
class Copy:
    """Publishes all answers as they are with some probability, else none; claims epsilon 1.

    Attributes:
        probability: The probability.
    """

    probability: float

    @property
    def claim(self) -> PrivacyClaim:
        """(1, 0)."""
        return PrivacyClaim(epsilon=1.0, source="false on purpose")

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Answers:
        """Copies the table, or not."""
        copies = rng_of(seed, "copies").random() < self.probability
        return Answers(yes=_yes(data) & copies)


def _yes(data: pd.DataFrame) -> BoolArray:
    """Whether each person [8] is in the table and answers yes."""
    yes = np.zeros(PEOPLE, dtype=np.bool_)
    yes[data.loc[data[SECRET] == "yes", "person"].to_numpy(dtype=np.int64)] = True
    return yes
