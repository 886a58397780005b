"""The privacy loss that a claim allows, and the lower limit that replays prove."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from dpaudit.bounds.replays import hockey_stick, mean_exceeds, mean_lower, replayed_epsilon
from dpaudit.errors import ClaimError
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.currencies import Claim, ConcentratedClaim, CurveClaim, GaussianClaim
from dpaudit.replaying.laws import FloatArray
from dpaudit.results.verdict import POWER

EXACT: Final = 1e-9
"""A loss exceeds a claim only by more than this rounding error, relative to the claim."""
_ORDERS: Final = 1.0 + np.geomspace(1e-3, 1e3, 400)
_REST: Final = _ORDERS * np.log1p(-1 / _ORDERS) - np.log(_ORDERS - 1)


class Replays(NamedTuple):
    """The input of a bound: losses and weights of counted replays.

    Attributes:
        losses: Privacy loss of each, towards the world that was drawn from; infinite if the worlds
            diverge.
        log_weights: log P - log Q of each.
    """

    losses: FloatArray
    log_weights: FloatArray


class ReplayGuarantee(ABC):
    """A family of curves delta(epsilon), one for each level of the claim's quantity."""

    claimed: float
    """The claimed level."""

    @property
    def is_pure(self) -> bool:
        """Whether the rarest outcome counts, because the claim has no delta."""
        return False

    @abstractmethod
    def proved(self, replays: Replays, *, at: float, confidence: float) -> float:
        """The lower limit on the level.

        Args:
            replays: The counted replays.
            at: The epsilon at which the divergence is bounded, chosen beforehand; not used by
                guarantees that are bounded at all epsilons at once.
            confidence: One-sided.
        """

    @abstractmethod
    def level_of(self, epsilon: float, divergence: float) -> float:
        """The smallest level whose curve allows this hockey-stick divergence at epsilon."""

    @abstractmethod
    def promising(
        self, points: Sequence[float], groups: Replays, level: float, *, confidence: float
    ) -> list[float]:
        """The epsilons at which `proved` may exceed a level in at least half of the groups.

        Quicker than `proved`, which searches for the largest level that is shown.

        Args:
            points: Some of `points`.
            groups: Replays of several groups; shape (groups, n).
            level: The level.
            confidence: One-sided.
        """

    @property
    @abstractmethod
    def rarest_excuse(self) -> float:
        """The smallest probability with which coins must decide to excuse a sure difference.

        If one world does with probability 1 - p what the other does only when coins fall otherwise,
        with probability p, a claim of (ε, δ) asks for 1 - p <= e^ε p + δ.
        """

    @property
    def points(self) -> tuple[float, ...]:
        """The epsilons at which it may be tested."""
        return (0.0, *np.geomspace(0.05, 60.0, 40))


@dataclass(frozen=True)
class EpsilonReplays(ReplayGuarantee):
    """(ε, δ)-differential privacy at a fixed δ.

    Attributes:
        claimed: ε.
        delta: δ.
    """

    claimed: float
    delta: float

    @property
    def is_pure(self) -> bool:
        """Whether δ is 0."""
        return self.delta == 0

    def proved(self, replays: Replays, *, at: float, confidence: float) -> float:
        """`dpaudit.bounds.replays.replayed_epsilon`."""
        del at
        return replayed_epsilon(*replays, delta=self.delta, confidence=confidence)

    def promising(
        self, points: Sequence[float], groups: Replays, level: float, *, confidence: float
    ) -> list[float]:
        """Tests this level alone."""
        if level <= 0 or self.delta == 0:
            return [*points]
        values = hockey_stick(*groups, level)
        above = mean_exceeds(values, self.delta, confidence=confidence)
        return [*points] if 2 * above.sum() >= len(above) else []

    def level_of(self, epsilon: float, divergence: float) -> float:
        """ε itself if the divergence exceeds δ."""
        return epsilon if divergence > self.delta else 0.0

    @property
    def rarest_excuse(self) -> float:
        """(1 - δ) / (1 + e^ε)."""
        return (1.0 - self.delta) / (1.0 + math.exp(min(self.claimed, 700.0)))

    @property
    def points(self) -> tuple[float, ...]:
        """Bounded at all epsilons at once."""
        return (self.claimed,)


class _AtOneEpsilon(ReplayGuarantee):
    def proved(self, replays: Replays, *, at: float, confidence: float) -> float:
        """The level that allows the lower bound on the divergence at one epsilon."""
        found = mean_lower(hockey_stick(*replays, at), confidence=confidence)
        return self.level_of(at, min(found, 1.0))

    @abstractmethod
    def allowed(self, epsilon: float, level: float) -> float:
        """The largest divergence at epsilon that proves no more than a level, which is above 0."""

    def promising(
        self, points: Sequence[float], groups: Replays, level: float, *, confidence: float
    ) -> list[float]:
        """Tests one divergence alone at each of these epsilons."""
        allowed = np.array([self.allowed(at, level) if level > 0 else 0.0 for at in points])
        values = hockey_stick(*groups, np.reshape(points, (-1, 1, 1)))
        mean = np.where(allowed > 0, allowed, 1.0)[:, None]
        above = mean_exceeds(values, mean, confidence=confidence).sum(axis=1)
        found = (allowed <= 0) | (2 * above >= values.shape[1])
        return [at for at, one in zip(points, found, strict=True) if one]

    @property
    def rarest_excuse(self) -> float:
        """The largest of what its points ask for."""
        return max(
            (1.0 - self.allowed(one, self.claimed)) / (1.0 + math.exp(min(one, 700.0)))
            for one in self.points
        )


@dataclass(frozen=True)
class GaussianReplays(_AtOneEpsilon):
    """μ-Gaussian DP: δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) (Dong, Roth and Su 2022, Cor. 2.13).

    Attributes:
        claimed: μ.
    """

    claimed: float

    def level_of(self, epsilon: float, divergence: float) -> float:
        """The μ with that δ(ε)."""
        if divergence <= 0:
            return 0.0
        if divergence >= 1:
            return math.inf

        def excess(mu: float) -> float:
            return gaussian_delta(mu, epsilon) - divergence

        high = 1.0
        while excess(high) < 0:
            high *= 2
        return float(brentq(excess, 1e-12, high, xtol=1e-12)) if excess(1e-12) < 0 else 0.0

    def allowed(self, epsilon: float, level: float) -> float:
        """δ(ε) itself."""
        return gaussian_delta(level, epsilon)


@dataclass(frozen=True)
class ConcentratedReplays(_AtOneEpsilon):
    """ρ-zCDP: δ(ε) <= min over α of exp((α−1)(αρ − ε)) (1 − 1/α)^α / (α − 1).

    Canonne, Kamath and Steinke 2020, Proposition 12.

    Attributes:
        claimed: ρ.
    """

    claimed: float

    def level_of(self, epsilon: float, divergence: float) -> float:
        """The smallest ρ that allows the divergence."""
        if divergence <= 0:
            return 0.0
        a = _ORDERS
        # log divergence <= (a-1)(a rho - epsilon) + rest for every order: the largest of the limits
        limits = ((math.log(divergence) - _REST) / (a - 1) + epsilon) / a
        return max(0.0, float(np.max(limits)))

    def allowed(self, epsilon: float, level: float) -> float:
        """The smallest of what the orders allow."""
        a = _ORDERS
        return math.exp(min(float(np.min((a - 1) * (a * level - epsilon) + _REST)), 0.0))


@dataclass(frozen=True)
class CurveReplays(_AtOneEpsilon):
    """A privacy curve; its level is the factor by which its epsilons are multiplied.

    Attributes:
        claim: The curve.
    """

    claim: CurveClaim

    @property
    def claimed(self) -> float:  # type: ignore[override]
        """1: the curve as it is."""
        return 1.0

    def level_of(self, epsilon: float, divergence: float) -> float:
        """The factor of the point whose delta is exceeded at epsilon."""
        factors = [
            epsilon / one.epsilon
            for one in self.claim.points
            if one.delta < divergence and one.epsilon > 0
        ]
        return max(factors, default=0.0)

    def allowed(self, epsilon: float, level: float) -> float:
        """The smallest delta of the points whose factor would be larger."""
        deltas = [
            one.delta
            for one in self.claim.points
            if one.epsilon > 0 and epsilon > level * one.epsilon
        ]
        return min(deltas, default=1.0)

    @property
    def points(self) -> tuple[float, ...]:
        """Epsilons around each of its own."""
        return tuple(
            factor * one.epsilon
            for one in self.claim.points
            for factor in (1.0, 1.1, 1.5, 2.0, 4.0)
            if one.epsilon > 0
        )


def replay_guarantee(claim: Claim) -> ReplayGuarantee:
    """The guarantee of a claim.

    Raises:
        ClaimError: If there is none.
    """
    if isinstance(claim, PrivacyClaim):
        return EpsilonReplays(claim.epsilon, claim.delta)
    if isinstance(claim, GaussianClaim):
        return GaussianReplays(claim.mu)
    if isinstance(claim, ConcentratedClaim):
        return ConcentratedReplays(claim.rho)
    if isinstance(claim, CurveClaim):
        return CurveReplays(claim)
    raise ClaimError(
        "a replay holds a generator to a claim, and none was given: give `epsilon` and `delta`"
    )


def gaussian_delta(mu: float, epsilon: float) -> float:
    """δ(ε) of μ-Gaussian DP."""
    first = float(log_ndtr(mu / 2 - epsilon / mu))
    second = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    return math.exp(first) * -math.expm1(min(second - first, 0.0))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """ε at δ of μ-Gaussian DP; infinite for δ 0."""
    if mu <= 0:
        return 0.0
    if delta <= 0:
        return math.inf
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    high = 1.0
    while gaussian_delta(mu, high) > delta:
        high *= 2
    return float(brentq(lambda epsilon: gaussian_delta(mu, epsilon) - delta, 0.0, high))


def detectable(
    guarantee: ReplayGuarantee, *, replays: int, confidence: float, rng: np.random.Generator
) -> float | None:
    """The smallest Gaussian leak whose bound exceeds the claim with 80 % probability."""
    if not isinstance(guarantee, EpsilonReplays):
        return None
    if guarantee.delta == 0:
        return guarantee.claimed
    low, high = guarantee.claimed, 20.0 * guarantee.claimed + 20.0
    normal = rng.standard_normal((200, replays))
    if _caught(high, guarantee, normal, confidence) < POWER:
        return None
    for _ in range(20):
        middle = 0.5 * (low + high)
        if _caught(middle, guarantee, normal, confidence) >= POWER:
            high = middle
        else:
            low = middle
    return high


def _caught(
    epsilon: float,
    guarantee: EpsilonReplays,
    normal: FloatArray,
    confidence: float,
) -> float:
    mu = _mu_of(epsilon, guarantee.delta)
    tilt = (guarantee.claimed - mu * mu / 2) / mu**2
    tilt = max(tilt, (epsilon - mu * mu / 2) / mu**2)
    z = normal + tilt * mu
    loss = mu * z + mu * mu / 2
    weight = -0.5 * z**2 + 0.5 * normal**2
    value = -np.expm1(np.minimum(guarantee.claimed - loss, 0.0)) * np.exp(weight)
    return float(
        np.mean([mean_exceeds(one, guarantee.delta, confidence=confidence) for one in value])
    )


def _mu_of(epsilon: float, delta: float) -> float:
    low, high = 1e-6, 100.0
    for _ in range(60):
        middle = math.sqrt(low * high)
        if gaussian_epsilon(middle, delta) < epsilon:
            low = middle
        else:
            high = middle
    return high
