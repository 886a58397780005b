"""Mechanisms whose true epsilon is known, as an attack sees them: one score per trial."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import ndtr

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
GAUSSIAN_DELTA = 1e-5


class Kind(StrEnum):
    """What the mechanism does to the presence of the target."""

    RANDOMISED_RESPONSE = "randomised response"
    LAPLACE = "Laplace count"
    GAUSSIAN = "Gaussian count"
    NULL = "null"


class Rates(NamedTuple):
    """Error rates of a preset threshold: false positives, false negatives."""

    fpr: float
    fnr: float


@dataclass(frozen=True)
class Mechanism:
    """A mechanism with a true epsilon that no valid bound may often exceed.

    Attributes:
        kind: What it does.
        epsilon: Its true epsilon at `delta`; 0 for the null.
    """

    kind: Kind
    epsilon: float

    @property
    def delta(self) -> float:
        """Delta at which epsilon is exact."""
        return GAUSSIAN_DELTA if self.kind is Kind.GAUSSIAN else 0.0

    def __str__(self) -> str:
        return (
            self.kind.value if self.kind is Kind.NULL else f"{self.kind.value} ε {self.epsilon:g}"
        )

    def scores(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Scores [2, n] of n trials of world "in" (row 0) and of world "out" (row 1)."""
        match self.kind:
            case Kind.RANDOMISED_RESPONSE:
                honest = 1.0 / (1.0 + math.exp(-self.epsilon))
                return (rng.random((2, n)) < [[honest], [1.0 - honest]]).astype(np.float64)
            case Kind.LAPLACE:
                return rng.laplace([[1.0], [0.0]], 1.0 / self.epsilon, size=(2, n))
            case Kind.GAUSSIAN:
                return rng.normal([[gaussian_shift(self.epsilon)], [0.0]], size=(2, n))
            case Kind.NULL:
                return rng.normal(size=(2, n))

    def seen(self, member: BoolArray, rng: np.random.Generator) -> FloatArray:
        """The score of every trial; `member` says whether its world is "in"; shape (n,)."""
        inside, outside = self.scores(len(member), rng)
        shown: FloatArray = np.where(member, inside, outside)
        return shown

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """Log odds that the world of each trial is "in", given its score.

        The scores of the null say nothing, and are taken for odds as they are.
        """
        match self.kind:
            case Kind.RANDOMISED_RESPONSE:
                return self.epsilon * (2.0 * scores - 1.0)
            case Kind.LAPLACE:
                return self.epsilon * (np.abs(scores) - np.abs(scores - 1.0))
            case Kind.GAUSSIAN:
                mu = gaussian_shift(self.epsilon)
                return mu * (scores - mu / 2.0)
            case Kind.NULL:
                return scores

    def middle(self) -> float:
        """The score halfway between the worlds."""
        match self.kind:
            case Kind.NULL:
                return 0.0
            case Kind.GAUSSIAN:
                return gaussian_shift(self.epsilon) / 2.0
            case Kind.RANDOMISED_RESPONSE | Kind.LAPLACE:
                return 0.5

    def preset(self) -> dict[str, Rates]:
        """Error rates of thresholds that are fixed in advance, the hardest ones for a bound."""
        match self.kind:
            case Kind.RANDOMISED_RESPONSE:
                lie = 1.0 / (1.0 + math.exp(self.epsilon))
                return {"the bit": Rates(lie, lie)}
            case Kind.LAPLACE:
                middle = math.exp(-self.epsilon / 2.0) / 2.0
                return {
                    "midpoint": Rates(middle, middle),
                    "tight": Rates(math.exp(-self.epsilon) / 2.0, 0.5),
                }
            case Kind.GAUSSIAN:
                mu = gaussian_shift(self.epsilon)
                cut = self.epsilon / mu + mu / 2.0  # where the likelihood ratio is e^epsilon
                middle = float(ndtr(-mu / 2.0))
                return {
                    "midpoint": Rates(middle, middle),
                    "tight": Rates(float(ndtr(-cut)), float(ndtr(cut - mu))),
                }
            case Kind.NULL:
                return {"half": Rates(0.5, 0.5), "rare": Rates(0.05, 0.95)}


@dataclass(frozen=True)
class Answer:
    """One bit about each trial, wrong with the same probability in both worlds.

    Attributes:
        error: The probability.
    """

    error: float

    def seen(self, member: BoolArray, rng: np.random.Generator) -> FloatArray:
        """The bits; shape (n,)."""
        wrong = rng.random(len(member)) < self.error
        return (member != wrong).astype(np.float64)


@dataclass(frozen=True)
class Shifted:
    """A normal score, larger in world "in" by `mu` standard deviations."""

    mu: float

    def seen(self, member: BoolArray, rng: np.random.Generator) -> FloatArray:
        """The scores; shape (n,)."""
        shown: FloatArray = rng.normal(size=len(member)) + self.mu * member
        return shown


@cache
def gaussian_shift(epsilon: float) -> float:
    """Distance of the worlds in standard deviations at which the Gaussian mechanism has epsilon.

    Balle and Wang 2018, Theorem 8, solved for the shift at `GAUSSIAN_DELTA`.
    """

    def excess(mu: float) -> float:
        near, far = -epsilon / mu + mu / 2.0, -epsilon / mu - mu / 2.0
        return float(ndtr(near) - math.exp(epsilon) * ndtr(far)) - GAUSSIAN_DELTA

    return float(brentq(excess, 1e-3, 20.0, xtol=1e-12))


def gaussian_epsilon(shift: float) -> float:
    """Epsilon that the Gaussian mechanism with this shift has at `GAUSSIAN_DELTA`."""
    return float(brentq(lambda epsilon: gaussian_shift(epsilon) - shift, 0.1, 60.0))


def few() -> list[Mechanism]:
    """One mechanism of each kind, and a large epsilon."""
    kinds = (Kind.RANDOMISED_RESPONSE, Kind.LAPLACE, Kind.GAUSSIAN)
    ones = [Mechanism(kind, 1.0) for kind in kinds]
    return [*ones, Mechanism(Kind.RANDOMISED_RESPONSE, 4.0), Mechanism(Kind.NULL, 0.0)]


def mechanisms(epsilons: tuple[float, ...]) -> list[Mechanism]:
    """Every mechanism at every epsilon, and the null."""
    leaking = [kind for kind in Kind if kind is not Kind.NULL]
    return [Mechanism(kind, epsilon) for kind in leaking for epsilon in epsilons] + [
        Mechanism(Kind.NULL, 0.0)
    ]
