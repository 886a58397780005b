"""Families of trade-off functions, and exact lower limits on their level.

A trade-off function limits an attack's two error rates. The level picks a member of a family: mu of
Gaussian differential privacy, rho of zCDP, delta at a fixed epsilon, or the factor by which the
epsilons of a privacy curve are multiplied. The larger the level, the smaller the errors that an
attack may have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, Protocol

import numpy as np
import scipy

from dpaudit.bounds.clopper_pearson import upper_limits
from dpaudit.bounds.exact import RejectionRegion
from dpaudit.bounds.inputs import BoolArray, Counts, FloatArray, check_confidence
from dpaudit.model.claim import CurvePoint
from dpaudit.model.gaussian import gaussian_delta

# ndtr underflows below this, and 1 - ndtr is 0 above its negative.
_LARGEST_SCORE = 37.0
# A finite set of orders omits constraints of zCDP: it makes the region of rates larger and every
# limit on rho smaller, never larger. Compared with 20,000 orders, these lose at most 0.5 % of rho,
# for errors from 0.45 to 0.001, and from (0.9, 0.0001) to (0.99, 0.000001).
_ORDERS: Final = 1.0 + np.geomspace(1e-3, 100.0, 64)
_ORDERS.setflags(write=False)
_SWEEPS = 3
_SOLVER_STEPS = 80
_SOLVER_WIDTH = 1e-10
_LARGEST_EXPONENT = 700.0
# ε of the points by which zCDP limits one error rate given the other. The same for every ρ, so that
# the limits are monotone in it.
_IMPLIED: Final = np.concatenate([[0.0], np.geomspace(0.01, 100.0, 63)])
_IMPLIED.setflags(write=False)
# Distance of the levels tried in turn: in μ, in √(2ρ), and in the factor of a curve up to 1.
_STEP = 0.01
_DELTA_STEP = 0.001
# ε of the points of Gaussian DP and zCDP to bet against, in units of μ or √(2ρ). In simulations of
# Gaussian leaks these two needed the fewest trials; a third point cost more than it gained.
_BET_AT = (0.25, 1.0)
_MOST_BET_AT = 4
# The ranking does not depend on confidence, so a higher confidence never raises a limit.
_REFERENCE_CONFIDENCE = 0.95
# Ties survive the rounding of a trade-off function; a larger region only lowers a limit.
_TIE_SLACK = 1e-9
_MOST_LEVEL = 1e6
_ROOT_STEPS = 60
_ROOT_TOLERANCE = 1e-4
_LEAST_SCALE = 1e-3
# How far below the estimated root the certificate is tried, as shares of the root.
_STEPS_DOWN = (2e-3, 4e-3, 8e-3, 0.015, 0.03, 0.06, 0.12, 0.25, 0.5)
# Rates beyond these normal scores form one stretch each.
_FAR = 5.0
_BEYOND = 38.5
# Distance of the grid's scores in units of 1/sqrt(n): a binomial proportion has a standard
# deviation of at least 1.25 of them.
_SPACING = 0.6
# The grid is refined around its peak, most of all where the boundary has a corner.
_ZOOMS = 3
_ZOOM_POINTS = 9
# Most stretches of the boundary that may be undecided at once, and how short they may become.
_MOST_OPEN = 2048
_SHORTEST = 1e-7


class TradeOff(Hashable, Protocol):
    """A family of convex symmetric trade-off functions (Dong, Roth and Su 2022, Definition 2.1)."""

    def least_fnr(self, fpr: FloatArray, level: float) -> FloatArray:
        """Smallest false-negative rate that the guarantee of this level allows.

        Args:
            fpr: False-positive rates, in [0, 1]; shape (m,).
            level: The level. Below 0: the curve of rates worse than chance.

        Returns:
            The rates, not increasing in fpr nor in level; shape (m,).
        """
        ...

    def level(self, fnr: FloatArray, fpr: FloatArray) -> FloatArray:
        """Smallest level that allows these rates: the inverse of `least_fnr`.

        Args:
            fnr: False-negative rates, in (0, 1].
            fpr: False-positive rates, in (0, 1]; broadcast with fnr.

        Returns:
            The levels; negative for rates worse than chance, minus infinity where a rate is 1.
        """
        ...

    def least_fpr(self, level: float) -> Callable[[float], float]:
        """A lower limit on the false-positive rate, as a function of the true-positive rate.

        By symmetry it is the least false-negative rate at an FPR of 1 − TPR.

        Args:
            level: The level, not negative.

        Returns:
            A function of the rate, in (0, 1), that increases with the rate and decreases with the
            level, not necessarily strictly.
        """
        ...

    def bet_against(self, level: float) -> tuple[CurvePoint, ...]:
        """Points (ε, δ), ε at least 0, that this level implies; the same number at every level.

        Args:
            level: The level, positive.
        """
        ...

    def step(self, place: int) -> float:
        """The level at this place, from 1 on, in the list of levels that bounds try in turn."""
        ...


@dataclass(frozen=True)
class GaussianTradeOff:
    """Gaussian differential privacy: testing N(0, 1) against N(mu, 1) (Dong, Roth and Su 2022)."""

    def least_fnr(self, fpr: FloatArray, level: float) -> FloatArray:
        """Φ(Φ⁻¹(1 − FPR) − μ)."""
        rates: FloatArray = scipy.special.ndtr(-scipy.special.ndtri(fpr) - level)
        return rates

    def level(self, fnr: FloatArray, fpr: FloatArray) -> FloatArray:
        """Φ⁻¹(1 − FPR) − Φ⁻¹(FNR)."""
        levels: FloatArray = -scipy.special.ndtri(fpr) - scipy.special.ndtri(fnr)
        return levels

    def least_fpr(self, level: float) -> Callable[[float], float]:
        """Φ(Φ⁻¹(TPR) − μ)."""
        return lambda tpr: float(scipy.special.ndtr(scipy.special.ndtri(tpr) - level))

    def bet_against(self, level: float) -> tuple[CurvePoint, ...]:
        """Points of the profile (Dong, Roth and Su 2022, Corollary 2.13)."""
        return tuple(CurvePoint(at * level, gaussian_delta(at * level, level)) for at in _BET_AT)

    def step(self, place: int) -> float:
        """A multiple of 0.01."""
        return round(place * _STEP, 2)


@dataclass(frozen=True)
class ConcentratedTradeOff:
    """Zero-concentrated differential privacy (Bun and Steinke 2016, Definition 1.1).

    Post-processing does not raise a Rényi divergence, so the guesses in the two worlds, Bernoulli
    variables, have divergence at most ρα for every order α > 1 and in both directions. The pairs of
    rates that satisfy this form a convex set (exp((α − 1) D_α) is jointly convex: van Erven and
    Harremoës 2014), symmetric under exchange of the two rates.
    """

    def least_fnr(self, fpr: FloatArray, level: float) -> FloatArray:
        """The largest rate that any one order demands: never above what all of them demand.

        Each sweep finds the rate that meets the last order with equality, and then the order that
        is the most informative there.
        """
        if level < 0.0:
            mirrored: FloatArray = 1.0 - self.least_fnr(1.0 - fpr, -level)
            return mirrored
        out = np.clip(-scipy.special.ndtri(fpr), -_LARGEST_SCORE, _LARGEST_SCORE)
        target = np.sqrt(2.0 * level)
        into = target - out  # as for the Gaussian mechanism
        least = np.full(out.shape, np.inf)
        for _ in range(_SWEEPS):
            informative = _most_informative(into, out)
            into = _score_at_equality(informative.constraint, out, target)
            least = np.minimum(least, into)
        return np.where(fpr >= 1.0, 0.0, np.where(fpr <= 0.0, 1.0, scipy.special.ndtr(-least)))

    def level(self, fnr: FloatArray, fpr: FloatArray) -> FloatArray:
        """The largest D_α/α over orders and directions, negative for rates worse than chance."""
        fnr, fpr = np.broadcast_arrays(np.asarray(fnr, dtype=float), np.asarray(fpr, dtype=float))
        into = np.clip(-scipy.special.ndtri(fnr), -_LARGEST_SCORE, _LARGEST_SCORE).ravel()
        out = np.clip(-scipy.special.ndtri(fpr), -_LARGEST_SCORE, _LARGEST_SCORE).ravel()
        sign = np.where(into + out >= 0.0, 1.0, -1.0)
        levels = (sign * _most_informative(into, out).level).reshape(fnr.shape)
        return np.where((fnr >= 1.0) | (fpr >= 1.0), -np.inf, levels)

    def least_fpr(self, level: float) -> Callable[[float], float]:
        """From (ε, δ) points that zCDP implies, because `least_fnr` needs a search."""
        points = [(epsilon, _concentrated_delta(epsilon, level)) for epsilon in _IMPLIED.tolist()]
        return _least_fpr_of_points(points)

    def bet_against(self, level: float) -> tuple[CurvePoint, ...]:
        """Points at the same ε as for Gaussian DP with μ = √(2ρ), which has this ρ."""
        scale = math.sqrt(2.0 * level)
        return tuple(
            CurvePoint(at * scale, _concentrated_delta(at * scale, level)) for at in _BET_AT
        )

    def step(self, place: int) -> float:
        """√(2ρ) is a multiple of 0.01."""
        return (place * _STEP) ** 2 / 2.0


@dataclass(frozen=True)
class CurveTradeOff:
    """A privacy curve with all its epsilons multiplied by the level; all points hold at once.

    Attributes:
        points: Points (ε, δ), at least one.
    """

    points: tuple[CurvePoint, ...]

    def least_fnr(self, fpr: FloatArray, level: float) -> FloatArray:
        """Max over points of 1 − δ − e^ε FPR and e^−ε (1 − δ − FPR) (Kairouz et al. 2015)."""
        least = np.zeros(np.shape(fpr))
        for epsilon, delta in self.points:
            factor = np.exp(np.clip(level * epsilon, -_LARGEST_EXPONENT, _LARGEST_EXPONENT))
            least = np.maximum(least, 1.0 - delta - factor * fpr)
            least = np.maximum(least, (1.0 - delta - fpr) / factor)
        return least

    def level(self, fnr: FloatArray, fpr: FloatArray) -> FloatArray:
        """Max over points of the log of their larger privacy ratio, divided by ε."""
        levels = np.full(np.broadcast_shapes(np.shape(fnr), np.shape(fpr)), -np.inf)
        with np.errstate(divide="ignore"):
            for epsilon, delta in self.points:
                ratio_in = (1.0 - delta - fnr) / fpr
                ratio = np.maximum(np.maximum(ratio_in, (1.0 - delta - fpr) / fnr), 0.0)
                levels = np.maximum(levels, np.log(ratio) / epsilon)
        return levels

    def least_fpr(self, level: float) -> Callable[[float], float]:
        """Max over points of e^−ε (TPR − δ) and 1 − δ − e^ε (1 − TPR)."""
        return _least_fpr_of_points([(level * epsilon, delta) for epsilon, delta in self.points])

    def bet_against(self, level: float) -> tuple[CurvePoint, ...]:
        """Up to four of the points, from the first to the last."""
        places = np.linspace(0, len(self.points) - 1, min(_MOST_BET_AT, len(self.points)))
        chosen = [self.points[round(place)] for place in places.tolist()]
        return tuple(CurvePoint(level * point.epsilon, point.delta) for point in chosen)

    def step(self, place: int) -> float:
        """A multiple of 0.01 up to 1; then 1 % more each time, because factors may be large."""
        whole = round(1.0 / _STEP)
        return place * _STEP if place <= whole else (1.0 + _STEP) ** (place - whole)


@dataclass(frozen=True)
class DeltaTradeOff:
    """(ε, δ)-differential privacy at a fixed ε; the level is δ.

    Attributes:
        epsilon: ε.
    """

    epsilon: float

    @property
    def _factor(self) -> float:
        return math.exp(min(self.epsilon, _LARGEST_EXPONENT))

    def least_fnr(self, fpr: FloatArray, level: float) -> FloatArray:
        """1 − δ − e^ε FPR or e^−ε (1 − δ − FPR), whichever is larger (Kairouz et al. 2015)."""
        steep, flat = 1.0 - level - self._factor * fpr, (1.0 - level - fpr) / self._factor
        return np.maximum(np.maximum(steep, flat), 0.0)

    def level(self, fnr: FloatArray, fpr: FloatArray) -> FloatArray:
        """TPR − e^ε FPR, or the same with the guesses swapped, whichever is larger."""
        levels = np.maximum(1.0 - fnr - self._factor * fpr, 1.0 - fpr - self._factor * fnr)
        return np.where(np.maximum(fnr, fpr) >= 1.0, -np.inf, levels)

    def least_fpr(self, level: float) -> Callable[[float], float]:
        """e^−ε (TPR − δ) or 1 − δ − e^ε (1 − TPR), whichever is larger."""
        return _least_fpr_of_points([(self.epsilon, level)])

    def bet_against(self, level: float) -> tuple[CurvePoint, ...]:
        """The point itself."""
        return (CurvePoint(self.epsilon, level),)

    def step(self, place: int) -> float:
        """What is left of 1 shrinks by 0.1 % each time."""
        return -math.expm1(place * math.log1p(-_DELTA_STEP))


def _least_fpr_of_points(points: Sequence[tuple[float, float]]) -> Callable[[float], float]:
    """The least false-positive rate that all these points (ε, δ) together allow."""
    epsilons, deltas = np.array(points, dtype=np.float64).T
    factors = np.exp(np.minimum(epsilons, _LARGEST_EXPONENT))
    unrevealed = 1.0 - deltas

    def least(tpr: float) -> float:
        steep = (tpr - deltas) / factors
        flat = unrevealed - factors * (1.0 - tpr)
        return max(0.0, float(np.maximum(steep, flat).max()))

    return least


def _concentrated_delta(epsilon: float, level: float) -> float:
    """Smallest over orders of exp((α − 1)(αρ − ε)) (1 − 1/α)^α / (α − 1), at most 1.

    Canonne, Kamath and Steinke 2020, Proposition 12.
    """
    beyond = _ORDERS - 1.0
    rest = _ORDERS * np.log1p(-1.0 / _ORDERS) - np.log(beyond)
    return math.exp(min(0.0, float(np.min(beyond * (_ORDERS * level - epsilon) + rest))))


class _Constraint(NamedTuple):
    """Orders, and whether the divergence is that of world "out" from "in"; shape (m,) each."""

    order: FloatArray
    backward: BoolArray


class _MostInformative(NamedTuple):
    """The constraint that demands the largest level, and this level; shape (m,)."""

    constraint: _Constraint
    level: FloatArray


def _most_informative(into: FloatArray, out: FloatArray) -> _MostInformative:
    """The order and direction with the largest D_α/α.

    Args:
        into: Normal scores of the true-positive rates; shape (m,).
        out: Normal scores of the true-negative rates; shape (m,).
    """
    orders = np.concatenate([_ORDERS, _ORDERS])[:, None]
    backward = np.repeat([False, True], _ORDERS.size)[:, None]
    levels = _divergence_at(_Constraint(orders, backward), out)(into)
    best = levels.argmax(axis=0)
    constraint = _Constraint(orders[best, 0], backward[best, 0])
    return _MostInformative(constraint, levels[best, np.arange(into.size)])


def _divergence_at(constraint: _Constraint, out: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """D_α/α of two Bernoulli variables, by the normal score of the true-positive rate.

    Args:
        constraint: Order and direction.
        out: Normal scores of the true-negative rates, whose part is computed once.
    """
    order, backward = constraint
    log_ndtr = scipy.special.log_ndtr
    power_in = np.where(backward, 1.0 - order, order)
    power_out = np.where(backward, order, 1.0 - order)
    guess_in, guess_out = power_out * log_ndtr(-out), power_out * log_ndtr(out)
    scale = order * (order - 1.0)

    def divergence(into: FloatArray) -> FloatArray:
        terms = power_in * log_ndtr(into) + guess_in, power_in * log_ndtr(-into) + guess_out
        return np.maximum(np.logaddexp(*terms) / scale, 0.0)

    return divergence


def _score_at_equality(constraint: _Constraint, out: FloatArray, target: float) -> FloatArray:
    """The score of the true-positive rate that meets a constraint with equality, from above.

    Args:
        constraint: Order and direction for each rate.
        out: Normal scores of the true-negative rates; shape (m,).
        target: √(2ρ), in which scores are nearly linear.
    """
    divergence = _divergence_at(constraint, out)

    def excess(into: FloatArray) -> FloatArray:
        distance: FloatArray = np.sqrt(2.0 * divergence(into)) - target
        return distance

    low, high = -out, np.minimum(2.0 * target - out + 1e-6, _LARGEST_SCORE)
    low_value, high_value = np.full(out.shape, -target), excess(high)
    while np.any(short := (high_value < 0.0) & (high < _LARGEST_SCORE)):
        step = 2.0 * (high - low) + 1.0
        high = np.where(short, np.minimum(high + step, _LARGEST_SCORE), high)
        high_value = excess(high)
    never = high_value < 0.0  # this order allows any rate
    for step_number in range(_SOLVER_STEPS):
        if np.all((high - low <= _SOLVER_WIDTH) | never):
            break
        middle = (low + high) / 2.0
        if step_number % 4 < 3:  # regula falsi (Illinois)
            with np.errstate(invalid="ignore", divide="ignore"):
                secant = (low * high_value - high * low_value) / (high_value - low_value)
            middle = np.where((low < secant) & (secant < high), secant, middle)
        value = excess(middle)
        above = value >= 0.0
        low_value = np.where(above, low_value / 2.0, value)
        high_value = np.where(above, value, high_value / 2.0)
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return high


def level_limit(counts: Counts, trade_off: TradeOff, *, confidence: float) -> float:
    """A lower limit on the level by inverting the exact unconditional test.

    As `dpaudit.bounds.exact` for epsilon: outcomes are ranked by the smallest level that allows
    their 95 % Clopper-Pearson limits; p(level) is the largest probability, over the boundary of
    the trade-off function of that level, of an outcome that ranks at least as high as the one
    observed; the limit is where p first exceeds 1 − confidence (Buehler 1957). The attack's
    threshold must have been fixed before the trials were scored.

    Args:
        counts: Errors of the attack.
        trade_off: The family.
        confidence: One-sided confidence, in (0, 1).

    Returns:
        The limit, at least 0: a level at which p is certified to be within 1 − confidence, usually
        0.2 % below the root.

    Raises:
        SettingsError: If `confidence` is out of range.
    """
    check_confidence(confidence)
    alpha = 1.0 - confidence
    region = ranked_region(counts, trade_off)
    if region.is_full:
        return 0.0
    n = max(counts.n_in, counts.n_out)

    def reaches(level: float) -> bool:
        return Boundary.of(trade_off, level, n=n).rejected_at_most(region) > alpha

    root = smallest(reaches, low=0.0, start=1.0)
    for share in _STEPS_DOWN:
        level = root * (1.0 - share)
        if level > 0.0 and certified(region, trade_off, level, alpha=alpha):
            return level
    return 0.0


def level_clopper_pearson(counts: Counts, trade_off: TradeOff, *, confidence: float) -> float:
    """A lower limit on the level from simultaneous upper limits on both error rates.

    As `dpaudit.bounds.clopper_pearson` for epsilon.

    Args:
        counts: Errors of the attack.
        trade_off: The family.
        confidence: One-sided confidence, in (0, 1).

    Returns:
        The limit, at least 0.

    Raises:
        SettingsError: If `confidence` is out of range.
    """
    check_confidence(confidence)
    return max(0.0, _statistic(counts, trade_off, confidence))


def ranked_region(counts: Counts, trade_off: TradeOff) -> RejectionRegion:
    """The outcomes that rank at least as high as this one."""
    level = _statistic(counts, trade_off, _REFERENCE_CONFIDENCE)
    region = region_at_least(level, counts.n_in, counts.n_out, trade_off)
    most_fn = region.most_fn.copy()
    upto = slice(0, counts.false_positives + 1)
    most_fn[upto] = np.maximum(most_fn[upto], counts.false_negatives)  # despite rounding
    return RejectionRegion(most_fn, counts.n_in)


def region_at_least(level: float, n_in: int, n_out: int, trade_off: TradeOff) -> RejectionRegion:
    """The outcomes whose rank is at least this level, ties included."""
    tail = (1.0 - _REFERENCE_CONFIDENCE) / 2.0
    fn_upper, fp_upper = upper_limits(n_in, tail), upper_limits(n_out, tail)
    if level == -math.inf:
        return RejectionRegion(np.full(n_out + 1, n_in, dtype=np.int64), n_in)
    limit = trade_off.least_fnr(fp_upper, level) + _TIE_SLACK
    most_fn = np.searchsorted(fn_upper, limit, side="right").astype(np.int64) - 1
    return RejectionRegion(np.minimum.accumulate(most_fn), n_in)


@lru_cache(maxsize=16)
def rejecting_region(
    level: float, n_in: int, n_out: int, trade_off: TradeOff, confidence: float
) -> RejectionRegion:
    """The outcomes whose limit exceeds a level, up to the shortfall of `level_limit`."""
    alpha = 1.0 - confidence
    beyond = level / (1.0 - _STEPS_DOWN[0])
    boundary = Boundary.of(trade_off, beyond, n=max(n_in, n_out))
    best = _statistic(Counts(0, 0, n_in, n_out), trade_off, _REFERENCE_CONFIDENCE)

    def unlikely(rank: float) -> bool:
        region = region_at_least(rank, n_in, n_out, trade_off)
        return boundary.rejected_at_most(region) < alpha

    if not unlikely(best):
        return RejectionRegion(np.full(n_out + 1, -1, dtype=np.int64), n_in)
    reach = 1.0
    while unlikely(best - reach) and reach < _MOST_LEVEL:  # ranks of few trials are negative
        reach *= 2.0
    rank = smallest(unlikely, low=best - reach, start=best)
    return region_at_least(rank, n_in, n_out, trade_off)


def smallest(holds: Callable[[float], bool], *, low: float, start: float) -> float:
    """The smallest number above `low` for which a monotone condition holds.

    Args:
        holds: The condition.
        low: Where the search begins.
        start: The first number to try; doubled until the condition holds.

    Returns:
        A number for which the condition holds, to within a relative 1e-4; at least a million if it
        holds for no smaller one.
    """
    high = start
    while not holds(high):
        if high >= _MOST_LEVEL:
            return high
        low, high = high, 2.0 * high
    for _ in range(_ROOT_STEPS):
        if high - low <= _ROOT_TOLERANCE * max(abs(high), _LEAST_SCALE):
            break
        middle = (low + high) / 2.0
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _statistic(counts: Counts, trade_off: TradeOff, confidence: float) -> float:
    """The smallest level that allows the Clopper-Pearson limits, not clipped at 0."""
    tail = (1.0 - confidence) / 2.0
    fn_upper = upper_limits(counts.n_in, tail)[counts.false_negatives]
    fp_upper = upper_limits(counts.n_out, tail)[counts.false_positives]
    return float(trade_off.level(fn_upper, fp_upper))


def boundary_scores(n: int) -> FloatArray:
    """Normal scores of 1 − FPR for a grid along the whole boundary, from FPR = 1 to FPR = 0."""
    steps = math.ceil(2.0 * _FAR * math.sqrt(n) / _SPACING)
    return np.concatenate([[-_BEYOND], np.linspace(-_FAR, _FAR, steps + 1), [_BEYOND]])


@dataclass(frozen=True, eq=False)
class Boundary:
    """A grid along the lower boundary of the rates that a guarantee allows.

    Attributes:
        trade_off: The family.
        level: The level.
        scores: Normal scores of 1 − FPR, increasing; shape (m,).
        fnr: The least false-negative rates there; shape (m,).
    """

    trade_off: TradeOff
    level: float
    scores: FloatArray
    fnr: FloatArray

    @classmethod
    def of(cls, trade_off: TradeOff, level: float, *, n: int) -> Boundary:
        """The boundary at a level, on a grid fine enough for counts of n trials."""
        scores = boundary_scores(n)
        return cls(
            trade_off, level, scores, trade_off.least_fnr(scipy.special.ndtr(-scores), level)
        )

    def rejected_at_most(self, region: RejectionRegion) -> float:
        """Largest probability of rejecting, estimated from below: the grid, refined at its peak."""
        values = region.probability(scipy.special.ndtr(-self.scores), self.fnr)
        best, scores = int(values.argmax()), self.scores
        largest = float(values[best])
        for _ in range(_ZOOMS):
            low, high = scores[max(best - 1, 0)], scores[min(best + 1, scores.size - 1)]
            scores = np.linspace(low, high, _ZOOM_POINTS)
            fpr = scipy.special.ndtr(-scores)
            values = region.probability(fpr, self.trade_off.least_fnr(fpr, self.level))
            best = int(values.argmax())
            largest = max(largest, float(values[best]))
        return largest


def certified(region: RejectionRegion, trade_off: TradeOff, level: float, *, alpha: float) -> bool:
    """Whether every mechanism with this guarantee is rejected with probability α at most.

    Rejection becomes rarer as either rate grows, so it is most probable on the lower boundary (x,
    f(x)) of the region of rates, f not increasing. On a stretch of it, x from a to b, the
    probability is at most that at (a, f(b)). Stretches where this exceeds α are halved.

    Returns:
        True only if shown for the whole boundary; False also if it would take too many stretches.
    """
    score = boundary_scores(max(region.n_in, region.n_out))[::-1]  # increasing FPR
    fpr = scipy.special.ndtr(-score)
    fnr = trade_off.least_fnr(fpr, level)
    if np.any(region.probability(fpr, fnr) > alpha):
        return False
    left, right = score[:-1], score[1:]
    least_fpr, least_fnr = fpr[:-1], fnr[1:]
    while True:
        undecided = region.probability(least_fpr, least_fnr) > alpha
        if not undecided.any():
            return True
        if undecided.sum() > _MOST_OPEN:
            return False
        left, right, least_fpr, least_fnr = (
            ends[undecided] for ends in (left, right, least_fpr, least_fnr)
        )
        if np.min(left - right) < _SHORTEST:
            return False
        middle = (left + right) / 2.0
        fpr = scipy.special.ndtr(-middle)
        fnr = trade_off.least_fnr(fpr, level)
        if np.any(region.probability(fpr, fnr) > alpha):
            return False
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
        least_fpr, least_fnr = (np.concatenate([least_fpr, fpr]), np.concatenate([fnr, least_fnr]))
