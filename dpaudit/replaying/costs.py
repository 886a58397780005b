"""What steps cost: their largest privacy loss, mu and rho, and their distribution of privacy loss.

All of them are those of the two observed laws, or larger. Distributions of privacy loss are those
of dp-accounting.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import scipy

from dpaudit.account.conversion import ORDERS, epsilon_from_rdp
from dpaudit.model.gaussian import gaussian_epsilon
from dpaudit.replaying.laws import FloatArray

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

RARE: Final = 1e-12
"""Outcomes rarer than this in both worlds prove nothing."""
_STEP: Final = 1e-4
"""Grid width of privacy losses, as dp-accounting's own."""
_MOST_POINTS: Final = 2e6
"""Grid points of the sum of all losses."""
_MOST_SAMPLED: Final = 1e5
"""The same of one step on a sub-sample, which takes dp-accounting longer."""
_MOST_OUTCOMES: Final = 2000
"""With more outcomes, the rho of a table is that of its largest loss."""
_MOST_COMPOSED: Final = 500.0
"""Above this, e^epsilon is too large a number for dp-accounting."""
_MOST_KINDS: Final = 60
"""With more kinds of steps, each counts as one with a slightly larger loss."""
_ORDERS: Final = 1.0 + np.geomspace(1e-4, 1e4, 2000)
"""Orders of Rényi divergences, dense: between two of them the larger divergence counts."""


class StepCost(ABC):
    """The cost of one step, or of steps that count together."""

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """Its largest privacy loss: infinite if it has no limit, NaN if it is not known."""

    @property
    def mu(self) -> float:
        """A mu for which it is Gaussian DP: that of randomised response with the largest loss.

        The trade-off function of randomised response touches that of this mu at its corner and lies
        above elsewhere, because the latter is convex (Dong, Roth and Su 2022, Section 2.3).
        """
        return -2.0 * float(scipy.special.ndtri_exp(scipy.special.log_expit(-self.epsilon)))

    @property
    def rho(self) -> float:
        """A rho for which it is zCDP: epsilon² / 2 (Bun and Steinke 2016, Proposition 1.4)."""
        return min(self.epsilon, self.epsilon**2 / 2)

    @abstractmethod
    def privacy_loss(self, chance: float, width: float) -> PrivacyLossDistribution:
        """Its distribution of privacy loss.

        Args:
            chance: The probability that the record is in the secret sub-sample behind it.
            width: Grid width.
        """

    def larger(self) -> StepCost:
        """Nearly the same cost, slightly larger, so that few kinds are left; itself by default."""
        return self


@dataclass(frozen=True)
class GaussianCost(StepCost):
    """Gaussian noise.

    Attributes:
        far: The shift in units of the scale, in L2.
    """

    far: float

    @property
    def epsilon(self) -> float:
        """No limit."""
        return math.inf

    @property
    def mu(self) -> float:
        """Exact."""
        return self.far

    @property
    def rho(self) -> float:
        """Exact (Bun and Steinke 2016, Proposition 1.6)."""
        return self.far**2 / 2

    def privacy_loss(self, chance: float, width: float) -> PrivacyLossDistribution:
        """That of the sampled Gaussian mechanism."""
        from dp_accounting.pld import privacy_loss_distribution as pld

        return pld.from_gaussian_mechanism(
            1.0 / self.far, value_discretization_interval=width, sampling_prob=chance
        )

    def larger(self) -> GaussianCost:
        """As of every cost."""
        return GaussianCost(_round_up(self.far))


@dataclass(frozen=True)
class PureCost(StepCost):
    """Any step, by its largest privacy loss.

    Attributes:
        loss: The largest privacy loss.
    """

    loss: float

    @property
    def epsilon(self) -> float:
        """That loss."""
        return self.loss

    def privacy_loss(self, chance: float, width: float) -> PrivacyLossDistribution:
        """That of randomised response, which dominates."""
        likely = float(scipy.special.expit(amplify(self.loss, chance)))
        table = np.array([likely, 1.0 - likely])
        return _loss_of_tables(table, table[::-1], width)

    def larger(self) -> PureCost:
        """As of every cost."""
        return PureCost(_round_up(self.loss))


@dataclass(frozen=True)
class NoiseCost(StepCost):
    """A number with Laplace, discrete Laplace or discrete Gaussian noise.

    Attributes:
        law: The name of the law.
        scale: The scale; 1 for Laplace noise.
        shift: The absolute shift, in units of the scale for Laplace noise.
    """

    law: str
    scale: float
    shift: float

    @property
    def epsilon(self) -> float:
        """The shift over the scale; no limit for discrete Gaussian noise."""
        return math.inf if self.law == "discrete gaussian" else self.shift / self.scale

    @property
    def mu(self) -> float:
        """That of discrete Gaussian noise, slightly above the shift over the scale, is unknown."""
        return math.nan if self.law == "discrete gaussian" else super().mu

    @property
    def rho(self) -> float:
        """For discrete Gaussian noise as for Gaussian (Canonne, Kamath and Steinke 2020, Thm 4)."""
        if self.law == "discrete gaussian":
            return (self.shift / self.scale) ** 2 / 2
        return super().rho

    def privacy_loss(self, chance: float, width: float) -> PrivacyLossDistribution:
        """That of the mechanism of this name in dp-accounting."""
        from dp_accounting.pld import privacy_loss_distribution as pld

        options = {"value_discretization_interval": width, "sampling_prob": chance}
        options["use_connect_dots"] = True
        if self.law == "laplace":
            return pld.from_laplace_mechanism(1.0 / self.shift, **options)
        whole = round(self.shift)
        if self.law == "discrete laplace":
            return pld.from_discrete_laplace_mechanism(1.0 / self.scale, whole, **options)
        return pld.from_discrete_gaussian_mechanism(self.scale, whole, **options)

    def larger(self) -> StepCost:
        """As of every cost; discrete Gaussian noise stays as it is."""
        if self.law == "laplace":
            return NoiseCost(self.law, 1.0, _round_up(self.shift))
        return self if self.law == "discrete gaussian" else PureCost(_round_up(self.epsilon))


@dataclass(frozen=True)
class TableCost(StepCost):
    """A draw with known probabilities.

    Attributes:
        inside: Bytes of the probabilities in world "in".
        outside: The same in world "out".
    """

    inside: bytes
    outside: bytes

    @classmethod
    def of(cls, inside: FloatArray, outside: FloatArray) -> TableCost:
        """From the probabilities of all outcomes; those rare in both worlds count as equal."""
        most = np.maximum(inside, outside)
        both = (
            np.where(most < RARE, most, chances).astype(float).tobytes()
            for chances in (inside, outside)
        )
        return cls(*both)

    @property
    def tables(self) -> tuple[FloatArray, FloatArray]:
        """The probabilities in world "in" and in world "out"."""
        return np.frombuffer(self.inside), np.frombuffer(self.outside)

    @property
    def epsilon(self) -> float:
        """The largest ratio; infinite if only one world has an outcome."""
        inside, outside = self.tables
        some = (inside > 0) | (outside > 0)
        with np.errstate(divide="ignore"):
            losses = np.abs(np.log(inside[some]) - np.log(outside[some]))
        return float(np.max(losses, initial=0.0))

    @property
    def rho(self) -> float:
        """The largest Rényi divergence over its order, in both directions.

        Divergences grow with the order, so between two orders the one at the larger, over the
        smaller order, is an upper limit; beyond the last, the largest loss over that order.
        """
        most, (inside, outside) = self.epsilon, self.tables
        if not math.isfinite(most) or inside.size > _MOST_OUTCOMES:
            return super().rho
        limits = [most / _ORDERS[-1]]
        for p, q in ((inside, outside), (outside, inside)):
            log_ratio = np.log(p[p > 0] / q[p > 0])[:, None]
            top = float(np.max(log_ratio))
            moments = p[p > 0] @ np.exp((_ORDERS - 1) * (log_ratio - top))
            divergences = np.log(moments) / (_ORDERS - 1) + top
            limits.append(float(np.max(divergences / np.append(1.0, _ORDERS[:-1]))))
        return float(min(max(limits), super().rho))

    def privacy_loss(self, chance: float, width: float) -> PrivacyLossDistribution:
        """That of both tables; with a sub-sample, of the mixture and the table without record."""
        inside, outside = self.tables
        return _loss_of_tables(chance * inside + (1.0 - chance) * outside, outside, width)

    def larger(self) -> StepCost:
        """Randomised response with the largest ratio."""
        most = self.epsilon
        return PureCost(_round_up(most)) if math.isfinite(most) else self


def _loss_of_tables(
    inside: FloatArray, outside: FloatArray, width: float
) -> PrivacyLossDistribution:
    """The distribution of privacy loss of two tables of probabilities.

    By "connect the dots": deltas are exact at the points of a grid next to each loss (Doroshenko et
    al. 2022, Algorithm 1).
    """
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    both = (inside > 0) & (outside > 0)
    sides = []
    for mass, other_mass in ((inside, outside), (outside, inside)):
        losses = np.log(mass[both]) - np.log(other_mass[both])
        near = (np.floor(losses / width), np.ceil(losses / width))
        points = np.unique(np.concatenate([*near, [0.0]])).astype(int)
        order = np.argsort(-losses)
        left = np.searchsorted(-losses[order], -points * width)  # so many losses exceed the point
        p, q = (np.append(0.0, np.cumsum(table[both][order])) for table in (mass, other_mass))
        deltas = mass[~both].sum() + p[left] - np.exp(points * width) * q[left]
        deltas = np.minimum.accumulate(np.clip(deltas, 0.0, 1.0))
        sides.append(pld_pmf.create_pmf_pessimistic_connect_dots(width, points, deltas))
    return PrivacyLossDistribution(*sides)


@dataclass(frozen=True)
class OpenCost(StepCost):
    """A step without limit, or one whose cost is not known.

    Attributes:
        why: Why, with its line.
        at_zero: Its epsilon, mu and rho: infinite or NaN.
        at_delta: Its epsilon at a delta above 0: infinite or NaN.
    """

    why: str
    at_zero: float
    at_delta: float

    @property
    def epsilon(self) -> float:
        """As given."""
        return self.at_zero

    @property
    def mu(self) -> float:
        """As given."""
        return self.at_zero

    @property
    def rho(self) -> float:
        """As given."""
        return self.at_zero

    def privacy_loss(self, chance: float, width: float) -> PrivacyLossDistribution:
        """There is none."""
        raise NotImplementedError(self.why)


class CostPart(NamedTuple):
    """A cost in a composition.

    Attributes:
        cost: The cost.
        chance: As in `StepCost.privacy_loss`; 1 without a sub-sample.
    """

    cost: StepCost
    chance: float = 1.0


def amplify(epsilon: float, chance: float) -> float:
    """The largest loss of a step of this largest loss on a Poisson sub-sample of this rate.

    Li, Qardaji and Su 2012, Theorem 1: log(1 + q (e^epsilon - 1)).
    """
    if not epsilon <= _MOST_COMPOSED:
        return epsilon + math.log(chance)
    return math.log1p(chance * math.expm1(epsilon))


def pure_epsilon(
    losses: Iterable[tuple[int | None, float]], chances: Mapping[int | None, float]
) -> float:
    """Epsilon at delta 0 of several steps; NaN if it is not known, unless one has no limit.

    Args:
        losses: Of each step, the coin of the record's own that it depends on, and its largest loss.
        chances: Of each coin, the probability that the record is in the sub-sample.
    """
    sums: dict[int | None, float] = defaultdict(float)
    is_unlimited = False
    for toss, loss in losses:
        sums[toss] += loss
        is_unlimited |= loss == math.inf
    each = [amplify(loss, chances[toss]) for toss, loss in sums.items()]
    return math.inf if is_unlimited else sum(each)


def epsilon_at(parts: Mapping[CostPart, int], delta: float) -> float:
    """Epsilon of a composition at a delta above 0.

    Args:
        parts: How often each part counts. Gaussian costs without a sub-sample are one part.
        delta: Delta.

    Returns:
        Exact for Gaussian noise alone, else an upper limit on a fine grid; infinite if there is no
        limit, NaN if it is not known.
    """
    if not parts:
        return 0.0
    open_costs = [part.cost.at_delta for part in parts if isinstance(part.cost, OpenCost)]
    if open_costs:
        return max(open_costs, key=math.isinf)
    (first, times), *others = parts.items()
    if not others and isinstance(first.cost, GaussianCost) and first.chance == 1.0:
        return gaussian_epsilon(first.cost.far * math.sqrt(times), delta)
    if any(_is_disjoint(part.cost) for part in parts if part.chance == 1.0):
        return math.inf
    if is_huge(parts):
        return _summed_epsilon(parts, delta)
    composed = float(_compose(frozenset(parts.items())).get_epsilon_for_delta(delta))
    if composed == math.inf and any(_has_lone_outcome(part.cost) for part in parts):
        return composed
    simple = _summed_epsilon(parts, delta)  # for deltas below the mass that a composition cuts off
    return composed if math.isnan(simple) else min(composed, simple)


def _is_disjoint(cost: StepCost) -> bool:
    """Whether no outcome is possible in both worlds."""
    return isinstance(cost, TableCost) and not np.any((cost.tables[0] > 0) & (cost.tables[1] > 0))


def _has_lone_outcome(cost: StepCost) -> bool:
    return isinstance(cost, TableCost) and cost.epsilon == math.inf


def _summed_epsilon(parts: Mapping[CostPart, int], delta: float) -> float:
    """Epsilon by Rényi curves of steps without a largest loss, plus the other largest losses."""
    rho = pure = 0.0
    for part, times in parts.items():
        if math.isfinite(part.cost.epsilon):
            pure += part.cost.epsilon * times
        else:
            rho += part.cost.rho * times
    if rho == math.inf:
        return math.nan
    return pure + epsilon_from_rdp(ORDERS, rho * ORDERS, delta=delta)


def is_huge(parts: Mapping[CostPart, int]) -> bool:
    """Whether losses are too large for dp-accounting: they are summed up, without sub-samples.

    Args:
        parts: As in `epsilon_at`.
    """
    sizes = [_size(part.cost) for part in parts]
    whole = sum(
        size * times
        for size, (part, times) in zip(sizes, parts.items(), strict=True)
        if part.chance == 1.0
    )
    return max([whole, *sizes]) > _MOST_COMPOSED


def _size(cost: StepCost) -> float:
    """About the largest loss that matters."""
    if math.isfinite(cost.epsilon):
        return cost.epsilon
    if isinstance(cost, TableCost):
        inside, outside = cost.tables
        both = (inside > 0) & (outside > 0)
        return float(np.max(np.abs(np.log(inside[both] / outside[both])), initial=0.0))
    return cost.rho + 8.0 * math.sqrt(2.0 * cost.rho)


@lru_cache(maxsize=8)
def _compose(parts: frozenset[tuple[CostPart, int]]) -> PrivacyLossDistribution:
    kinds = Counter(dict(parts))
    if len(kinds) > _MOST_KINDS:
        kinds = Counter()
        for part, times in parts:
            kinds[CostPart(part.cost.larger(), part.chance)] += times
    whole = sum(_size(part.cost) * n for part, n in kinds.items() if part.chance == 1.0)
    sampled = max((_size(part.cost) for part in kinds if part.chance < 1.0), default=0.0)
    # a coarser grid where losses are large, so that none has more points than it can handle
    width = max(_STEP, whole / _MOST_POINTS, sampled / _MOST_SAMPLED)
    losses = [
        part.cost.privacy_loss(part.chance, width).self_compose(n) for part, n in kinds.items()
    ]
    return reduce(lambda total, loss: total.compose(loss), losses)


def shorten(value: float) -> float:
    """A value without rounding errors, so that equal costs are found to be equal."""
    return float(f"{value:.10g}")


def _round_up(value: float) -> float:
    """The next of 100 values per factor of e."""
    return math.exp(math.ceil(math.log(value) * 100.0 - 1e-9) / 100.0)
