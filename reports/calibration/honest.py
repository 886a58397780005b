"""Generators that keep their claims exactly, and attacks that see all there is to see.

All but those for audits of many coins count the records whose value is `MARKED`, release a private
version of that number, and return tables in which every value is that number: removing one record
changes the count by 1, and no smaller (epsilon, delta) than the claimed one holds. Of honest
generators these are the hardest on an audit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import ndtr

from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import BoolArray, FeatureName, FloatArray, GameView, Scorer
from dpaudit.seeds import rng_of

BOUND = 20.0
MARKED = BOUND
"""Value of the target, which no other record has."""
RECORDS = 40
COUNT_SCHEMA = Schema(
    columns=(Column(name="value", kind=Kind.CONTINUOUS, lower=-BOUND, upper=BOUND),)
)
IDS = 200
ID_SCHEMA = Schema(columns=(Column(name="id", kind=Kind.INTEGER, lower=0, upper=IDS - 1),))
WIDE_ID_SCHEMA = Schema(columns=(Column(name="id", kind=Kind.INTEGER, lower=0, upper=99_999),))
"""Of audits of many records, whose positive control hides copies among random ids."""
CANARIES = 100
CHOICES = 5
"""Of report-noisy-max."""

Mechanism = Callable[[float, PrivacyClaim, np.random.Generator], float]
"""From the true count, 0 or 1, to the number released."""


def count_table() -> pd.DataFrame:
    """The audited table: the marked record, and others that do not count."""
    return pd.DataFrame({"value": [MARKED, *np.linspace(-BOUND, 0.0, RECORDS - 1)]})


LABELLED_SCHEMA = Schema(
    columns=(*COUNT_SCHEMA.columns, Column(name="label", kind=Kind.BINARY, categories=(0, 1))),
    label="label",
)


def labelled_table() -> pd.DataFrame:
    """The audited table of a PATE-GAN: the marked record alone has the label 1."""
    table = count_table()
    return table.assign(label=(table["value"] == MARKED).astype(int))


def id_table() -> pd.DataFrame:
    """The table of audits with a coin for each of many records: every id once."""
    return pd.DataFrame({"id": np.arange(IDS)})


def randomised_response(count: float, claim: PrivacyClaim, rng: np.random.Generator) -> float:
    """Whether anything was counted, by randomised response."""
    truthful = rng.random() < 1.0 / (1.0 + math.exp(-claim.epsilon))
    return float((count > 0) == truthful)


def laplace(count: float, claim: PrivacyClaim, rng: np.random.Generator) -> float:
    """The count with Laplace noise."""
    return count + float(rng.laplace(scale=1.0 / claim.epsilon))


def geometric(count: float, claim: PrivacyClaim, rng: np.random.Generator) -> float:
    """The count with two-sided geometric noise."""
    stop = 1.0 - math.exp(-claim.epsilon)
    return count + float(rng.geometric(stop) - rng.geometric(stop))


def gaussian(count: float, claim: PrivacyClaim, rng: np.random.Generator) -> float:
    """The count with the least Gaussian noise for the claim (Balle and Wang 2018, Theorem 8)."""
    return count + float(rng.normal(scale=1.0 / gaussian_shift(claim.epsilon, claim.delta)))


def noisy_max(count: float, claim: PrivacyClaim, rng: np.random.Generator) -> float:
    """1 if the count is the largest of several after exponential noise, else 0 (report noisy max).

    The other counts are 0. The noise is the least with which the claim holds for this answer.
    """
    noise = rng.exponential(1.0 / _rate(claim.epsilon), CHOICES)
    noise[0] += count
    return float(noise.argmax() == 0)


@cache
def _rate(epsilon: float) -> float:
    """Rate of the exponential noise at which the count wins e^epsilon times as often if it is 1."""

    def excess(rate: float) -> float:
        below = 1.0 - math.exp(-rate)  # that one of the others stays below 1
        wins = below ** (CHOICES - 1)
        wins += math.exp(rate) * (
            1.0 / CHOICES - below ** (CHOICES - 1) + (CHOICES - 1) / CHOICES * below**CHOICES
        )
        return math.log(wins * CHOICES) - epsilon

    return float(brentq(excess, 1e-6, 50.0, xtol=1e-12))


def leak(count: float, claim: PrivacyClaim, rng: np.random.Generator) -> float:
    """The truth with probability delta (2 or -2), else randomised response.

    No mechanism with that guarantee reveals more.
    """
    if rng.random() < claim.delta:
        return 2.0 if count > 0 else -2.0
    return randomised_response(count, claim, rng)


def nothing(count: float, claim: PrivacyClaim, rng: np.random.Generator) -> float:
    """Noise alone."""
    del count, claim
    return float(rng.normal())


def constant(count: float, claim: PrivacyClaim, rng: np.random.Generator) -> float:
    """The same number always."""
    del count, claim, rng
    return 0.0


@cache
def gaussian_shift(epsilon: float, delta: float) -> float:
    """Shift of a unit normal at which it is exactly (epsilon, delta)-private (Balle and Wang)."""

    def excess(mu: float) -> float:
        near, far = -epsilon / mu + mu / 2.0, -epsilon / mu - mu / 2.0
        return float(ndtr(near) - math.exp(epsilon) * ndtr(far)) - delta

    return float(brentq(excess, 1e-3, 20.0, xtol=1e-12))


@dataclass(frozen=True, kw_only=True)
class ReleasedNumber:
    """A model whose table holds one number in all rows.

    Attributes:
        number: The number.
        claim: What the model claims; None to claim nothing of its own.
        missing_rows: By how many rows its tables are too short.
        fails: Whether it raises an exception instead.
    """

    number: float
    claim: PrivacyClaim | None = None
    missing_rows: int = 0
    fails: bool = False

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """The number `n` times; nothing is drawn.

        Raises:
            ArithmeticError: If the model is one that fails.
        """
        del seed
        if self.fails:
            raise ArithmeticError("this model fails")
        kept = float(np.clip(self.number, -BOUND, BOUND))
        return pd.DataFrame({"value": np.full(n - self.missing_rows, kept)})


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Releases the private count of the marked records.

    Attributes:
        claim: What it claims, and keeps exactly unless `own` says more.
        mechanism: How the count is made private.
        own: What fitted models claim and keep; the claim where None.
    """

    claim: PrivacyClaim
    mechanism: Mechanism
    own: PrivacyClaim | None = None

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> ReleasedNumber:
        """Counts, and draws the noise."""
        number = self.mechanism(_count(data), self.own or self.claim, rng_of(seed, "noise"))
        return ReleasedNumber(number=number, claim=self.own)


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """Draws, without looking, whether its model has its full epsilon or half of it, and says so.

    Attributes:
        claim: What it claims: half of what its models claim at most.
    """

    claim: PrivacyClaim

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> ReleasedNumber:
        """Draws the model's epsilon, then the answer."""
        rng = rng_of(seed, "noise")
        factor = 2.0 if rng.random() < 0.9 else 1.0
        own = PrivacyClaim(epsilon=factor * self.claim.epsilon, source="drawn")
        return ReleasedNumber(number=randomised_response(_count(data), own, rng), claim=own)


@dataclass(frozen=True, kw_only=True)
class Fails:
    """Answers whether the marked record is there by failing, and by nothing else.

    Attributes:
        claim: What it claims and keeps exactly.
        rare: Whether it seldom fails: with probability 0.1 without the record, and e^epsilon times
            that with it; else it fails where randomised response says yes.
        by_rows: Whether a failure is one row too few rather than an exception.
    """

    claim: PrivacyClaim
    rare: bool = False
    by_rows: bool = False

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> ReleasedNumber:
        """Draws whether the model fails, and a number that says nothing."""
        rng, count = rng_of(seed, "noise"), _count(data)
        if self.rare:
            yes = rng.random() < 0.1 * math.exp(self.claim.epsilon * count)
        else:
            yes = randomised_response(count, self.claim, rng) > 0
        return ReleasedNumber(
            number=float(rng.normal()),
            fails=bool(yes and not self.by_rows),
            missing_rows=int(yes and self.by_rows),
        )


@dataclass(frozen=True, kw_only=True)
class ReleasedIds:
    """A model whose tables list some ids again and again.

    Attributes:
        ids: The ids.
    """

    ids: tuple[int, ...]

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """The ids in turn, `n` in all; nothing is drawn."""
        del seed
        return pd.DataFrame({"id": np.resize(np.array(self.ids or (0,), dtype=np.int64), n)})


@dataclass(frozen=True, kw_only=True)
class AnswersEach:
    """Answers for every id there could be whether it is in the table, each by its own coin.

    Attributes:
        claim: What it claims and keeps exactly.
        mechanism: How each answer is made private; a number above 0.5 means "yes".
    """

    claim: PrivacyClaim
    mechanism: Mechanism = field(default=randomised_response)

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> ReleasedIds:
        """Answers for all ids."""
        rng, present = rng_of(seed, "noise"), set(data["id"])
        answers = {
            one: self.mechanism(float(one in present), self.claim, rng) for one in range(IDS)
        }
        return ReleasedIds(ids=tuple(one for one, answer in answers.items() if answer > 0.5))


def _count(data: pd.DataFrame) -> float:
    return float((data["value"] == MARKED).sum())


@dataclass(frozen=True)
class ReleasedMean:
    """An attack that scores a table by the mean of its values: all that is released here."""

    def check(self, game: GameView) -> None:
        """Every game of these tables will do."""

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        """The mean."""
        return (FeatureName("value", "mean"),)

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        """The mean [1]."""
        return np.array([table["value"].mean()])

    def fit(self, features: FloatArray, member: BoolArray, *, seed: int) -> Scorer:
        """Nothing is fitted: the audit finds threshold and direction."""
        return _score


class FoldedMean(ReleasedMean):
    """A worse attack, to select against: how far the mean is from 1/2."""

    def fit(self, features: FloatArray, member: BoolArray, *, seed: int) -> Scorer:
        """Nothing is fitted."""
        return _folded


def _score(features: FloatArray) -> FloatArray:
    return features[:, 0]


def _folded(features: FloatArray) -> FloatArray:
    return np.abs(features[:, 0] - 0.5)
