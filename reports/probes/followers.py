"""Honest generators at the edge of their claim, each for one probe: the hardest for its test.

Each tells by randomised response at exactly epsilon whether the table has what a probe inserts
(Warner 1965), so that every guess of the probe is right as often as the claim allows at all. Such
an answer is epsilon-DP whatever it asks of the table, because one record can at most turn it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from dpaudit.model.claim import PrivacyClaim


def answered(truth: bool, epsilon: float, rng: np.random.Generator) -> bool:
    """The truth with probability e^epsilon / (1 + e^epsilon), else its opposite."""
    return bool(truth) == (rng.random() < 1.0 / (1.0 + math.exp(-epsilon)))


Question = Callable[[pd.DataFrame, pd.DataFrame], bool]
"""What is asked of a table, given the public table of the study."""

QUESTIONS: Final[Mapping[str, Question]] = {
    "range": lambda data, _: bool(data["age"].max() > 100),
    "category": lambda data, _: bool((data["job"] == "d").any()),
    "constancy": lambda data, _: data["age"].nunique() > 1 or data["job"].nunique() > 1,
    "missing": lambda data, _: bool(data["income"].isna().any()),
    "labels": lambda data, public: data["sick"].sum() == public["sick"].sum(),
    "rows": lambda data, public: len(data) == len(public),
}


@dataclass(frozen=True)
class Follower:
    """Answers one question about its table, by which of two public tables it gives.

    Attributes:
        question: A name of `QUESTIONS`.
        public: The public table: it knows everything about the study but who is in.
        epsilon: What it claims, and exactly what it costs.
    """

    question: str
    public: pd.DataFrame
    epsilon: float = 1.0

    @property
    def claim(self) -> PrivacyClaim:
        """What randomised response satisfies."""
        return PrivacyClaim(epsilon=self.epsilon)

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> _Answer:
        """Answers the question."""
        truth = QUESTIONS[self.question](data, self.public)
        yes = answered(truth, self.epsilon, np.random.default_rng(seed))
        return _Answer(self.public, yes, exact=self.question == "rows")


@dataclass(frozen=True)
class _Answer:
    """Two tables that differ in everything that probes look at; one of them is the answer."""

    public: pd.DataFrame
    yes: bool
    exact: bool

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """As many rows as asked for, but where their number is the answer."""
        del seed
        if self.exact:
            n = len(self.public) if self.yes else len(self.public) - 1
        rows = self.public.iloc[np.arange(n) % len(self.public)].reset_index(drop=True)
        if self.yes and not self.exact:
            rows.loc[0, ["age", "income", "job"]] = [120, np.nan, "d"]
        elif not self.exact:
            rows = rows.assign(age=40, job="a", income=30.0, sick=1 - rows["sick"])
        return rows


def _rows(table: pd.DataFrame) -> list[tuple[str, ...]]:
    """The records, as text: missing values are equal."""
    return [tuple(map(str, row)) for row in table.itertuples(index=False)]


@dataclass(frozen=True)
class Copier:
    """Answers for each record of the public table whether it is in, and gives those that are.

    Adding or removing a record turns one answer, so that all together are epsilon-DP; equal records
    count as one.

    Attributes:
        public: The public table.
        epsilon: What it claims, and exactly what it costs.
    """

    public: pd.DataFrame
    epsilon: float = 1.0

    @property
    def claim(self) -> PrivacyClaim:
        """What randomised response satisfies."""
        return PrivacyClaim(epsilon=self.epsilon)

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> _Copies:
        """Answers for every record of the public table."""
        rng = np.random.default_rng(seed)
        there = set(_rows(data))
        said = [answered(row in there, self.epsilon, rng) for row in _rows(self.public)]
        return _Copies(self.public, self.public[said])


@dataclass(frozen=True)
class _Copies:
    """The records said to be in."""

    public: pd.DataFrame
    said: pd.DataFrame

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """All of them, then one constant row again and again."""
        del seed
        rest = self.public.iloc[[0] * n].assign(age=40, income=0.0)
        return pd.concat([self.said, rest], ignore_index=True).iloc[:n]
