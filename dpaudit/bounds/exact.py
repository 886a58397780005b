"""Buehler's exact lower bound on epsilon from two worlds, and the outcomes that refute a claim."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy

from dpaudit.bounds import binomial
from dpaudit.bounds.clopper_pearson import statistic, upper_limits
from dpaudit.bounds.inputs import (
    BoolArray,
    Counts,
    FloatArray,
    IntArray,
    check_confidence,
    check_delta,
    check_epsilon,
)

# Outcomes this close to the boundary of a region count as inside: ties survive rounding, and a
# region that is too large only makes a p-value larger.
_TIE_SLACK = 1e-12
# The search for the least favourable rates: a grid at half a standard deviation of the counts,
# then its best peaks enlarged five times. Compared with a grid 50 times as fine, it fell short of
# the maximum by at most 7e-9; the margin, added to every size, keeps the test valid.
_GRID_MINIMUM = 81
_PEAKS = 4
_ZOOMS = 5
_ZOOM_POINTS = 9
_SEARCH_MARGIN = 2e-8
# e to a higher power overflows; no audit of fewer than e^700 trials proves a larger epsilon, and
# the region of rates no longer changes.
_LARGEST_EXPONENT = 700.0
_EPSILON_TOLERANCE = 1e-12


class _Extreme(NamedTuple):
    """The largest probability found on the boundary of the (ε, δ) region, and where."""

    probability: float
    position: float
    mirrored: bool


@dataclass(frozen=True, eq=False)
class RejectionRegion:
    """Outcomes (fp, fn) of a test that rejects when both errors are few.

    Attributes:
        most_fn: The largest number of false negatives inside the region for each number of
            false positives, −1 for none; not increasing; shape (n_out + 1,).
        n_in: Trials of the "in" world.
    """

    most_fn: IntArray
    n_in: int

    @classmethod
    def of_ratio(
        cls, ratio: float, *, fn_upper: FloatArray, fp_upper: FloatArray, delta: float
    ) -> RejectionRegion:
        """Collects the outcomes whose privacy ratio, e^statistic, is at least `ratio`.

        Args:
            ratio: Smallest ratio inside, at least 0 (0: every outcome).
            fn_upper: Upper limits on the false-negative rate; shape (n_in + 1,), increasing.
            fp_upper: Upper limits on the false-positive rate; shape (n_out + 1,), increasing.
            delta: δ of the claim.

        Returns:
            The region, ties included.
        """
        n_in = fn_upper.size - 1
        if ratio <= 0.0:
            return cls(np.full(fp_upper.size, n_in, dtype=np.int64), n_in)
        limit = np.maximum(1.0 - delta - ratio * fp_upper, (1.0 - delta - fp_upper) / ratio)
        limit += _TIE_SLACK
        return cls(np.searchsorted(fn_upper, limit, side="right").astype(np.int64) - 1, n_in)

    def after_errors(self, *, false_negatives: int, false_positives: int) -> RejectionRegion:
        """Restricts the region to the remaining trials once some are known to be errors."""
        return RejectionRegion(
            self.most_fn[false_positives:] - false_negatives, self.n_in - false_negatives
        )

    def __or__(self, other: RejectionRegion) -> RejectionRegion:
        """The outcomes of either region."""
        return RejectionRegion(np.maximum(self.most_fn, other.most_fn), self.n_in)

    def __and__(self, other: RejectionRegion) -> RejectionRegion:
        """The outcomes of both regions."""
        return RejectionRegion(np.minimum(self.most_fn, other.most_fn), self.n_in)

    def contains(self, other: RejectionRegion) -> bool:
        """Whether every outcome of the other region is in this one."""
        return bool(np.all(self.most_fn >= other.most_fn))

    @property
    def n_out(self) -> int:
        """Trials of the "out" world."""
        return self.most_fn.size - 1

    @property
    def is_full(self) -> bool:
        """Whether every outcome is inside."""
        return bool(self.most_fn[-1] >= self.n_in)

    @property
    def is_empty(self) -> bool:
        """Whether not even an attack without errors rejects."""
        return bool(self.most_fn[0] < 0)

    def probability(self, fpr: FloatArray, fnr: FloatArray) -> FloatArray:
        """Probability of rejecting at the given true error rates.

        Args:
            fpr: False-positive rates; shape (m,).
            fnr: False-negative rates; shape (m,).

        Returns:
            Σ_i P[Bin(n_out, fpr) = i] · P[Bin(n_in, fnr) ≤ most_fn(i)]; shape (m,). Exact up
            to an absolute error of about 1e-15.
        """
        fp_start, fp_mass = binomial.mass(self.most_fn.size - 1, fpr)
        fn_start, fn_mass = binomial.mass(self.n_in, fnr)
        cumulative = np.zeros((fnr.size, fn_mass.shape[1] + 1))
        np.cumsum(fn_mass, axis=1, out=cumulative[:, 1:])
        most_fn = self.most_fn[fp_start[:, None] + np.arange(fp_mass.shape[1])]
        position = np.clip(most_fn - fn_start[:, None] + 1, 0, fn_mass.shape[1])
        at_most = np.take_along_axis(cumulative, position, axis=1)
        rejected: FloatArray = np.minimum(np.sum(fp_mass * at_most, axis=1), 1.0)
        return rejected

    def worst_case(self, epsilon: float, delta: float) -> float:
        """Largest probability of rejecting an (ε, δ)-DP mechanism: the size of the test.

        Rejection becomes rarer as either rate grows, so the least favourable rates lie on the lower
        left boundary of the (ε, δ) region: the segment from (0, 1 − δ) to (k, k), k = (1 − δ)/(1 +
        e^ε), and its mirror image.
        """
        if self.most_fn[-1] >= self.n_in:
            return 1.0
        largest = self._least_favourable(epsilon, delta).probability
        return min(1.0, largest * (1.0 + _SEARCH_MARGIN))

    def largest_epsilon(self, alpha: float, *, delta: float, low: float, high: float) -> float:
        """Largest ε at which the size of the test stays within α.

        At a fixed position on the boundary both rates fall as ε grows, so the probability of
        rejection rises, and its root at any position is an upper limit on the answer. Each step
        goes to the root at the least favourable position of the last limit, starting at the corner.
        This is a form of Newton's method and converges from above as fast: two to four searches of
        the whole boundary are enough.

        Args:
            alpha: Size allowed, in (0, 1).
            delta: δ of the claim.
            low: Returned if the size already exceeds α there.
            high: A value that the answer does not exceed.

        Returns:
            The answer, in [low, high], short of the root by the margin of the search.
        """
        if high <= low or self.most_fn[-1] >= self.n_in:
            return low
        log_target = math.log(alpha * (1.0 - 2.0 * _SEARCH_MARGIN))
        position, mirrored = np.array([1.0]), np.array([False])  # the corner
        while True:

            def excess(
                epsilon: float, position: FloatArray = position, mirrored: BoolArray = mirrored
            ) -> float:
                rates = _boundary(epsilon, delta, position, mirrored)
                return math.log(max(float(self.probability(*rates)[0]), 1e-300)) - log_target

            if excess(low) >= 0.0:
                return low
            if excess(high) > 0.0:
                high = float(scipy.optimize.brentq(excess, low, high, xtol=_EPSILON_TOLERANCE))
            extreme = self._least_favourable(high, delta)
            if extreme.probability * (1.0 + _SEARCH_MARGIN) <= alpha:
                return high
            position, mirrored = np.array([extreme.position]), np.array([extreme.mirrored])

    def _least_favourable(self, epsilon: float, delta: float) -> _Extreme:
        """Searches both halves of the boundary for the most probable rejection."""

        def probability_at(position: FloatArray, mirrored: BoolArray) -> FloatArray:
            return self.probability(*_boundary(epsilon, delta, position, mirrored))

        corner = _corner(epsilon, delta)
        grid = _boundary_grid(corner, 1.0 - delta, max(self.n_in, self.most_fn.size - 1))
        sides = np.repeat([False, True], grid.size)
        values = probability_at(np.tile(grid, 2), sides).reshape(2, -1)
        padded = np.pad(values, ((0, 0), (1, 1)), constant_values=-1.0)
        peaks = (values >= padded[:, :-2]) & (values >= padded[:, 2:])
        ranked = np.argsort(np.where(peaks, values, -1.0), axis=None)[::-1][:_PEAKS]
        side, index = np.unravel_index(ranked, values.shape)
        low = grid[np.maximum(index - 1, 0)]
        high = grid[np.minimum(index + 1, grid.size - 1)]
        best = _Extreme(float(values[side[0], index[0]]), float(grid[index[0]]), bool(side[0]))
        # Zooms into all peaks at once: the most probable point and its two neighbours bound the
        # next stretch of each.
        row = np.arange(ranked.size)
        for _ in range(_ZOOMS):
            points = np.linspace(low, high, _ZOOM_POINTS, axis=1)
            refined = probability_at(points.ravel(), np.repeat(side == 1, _ZOOM_POINTS))
            refined = refined.reshape(points.shape)
            top = refined.argmax(axis=1)
            first = int(refined[row, top].argmax())
            if refined[first, top[first]] > best.probability:
                best = _Extreme(
                    float(refined[first, top[first]]),
                    float(points[first, top[first]]),
                    bool(side[first]),
                )
            low = points[row, np.maximum(top - 1, 0)]
            high = points[row, np.minimum(top + 1, _ZOOM_POINTS - 1)]
        return best


class _Rates(NamedTuple):
    """False-positive and false-negative rates; shape (m,) each."""

    fpr: FloatArray
    fnr: FloatArray


def _corner(epsilon: float, delta: float) -> float:
    """The error rate k = (1 − δ)/(1 + e^ε) where the boundary of the region meets its mirror."""
    return (1.0 - delta) * float(scipy.special.expit(-min(epsilon, _LARGEST_EXPONENT)))


def _boundary(epsilon: float, delta: float, position: FloatArray, mirrored: BoolArray) -> _Rates:
    """Rates at positions in [0, 1] on the segment from (0, 1 − δ) to (k, k), or its mirror."""
    corner = _corner(epsilon, delta)
    small = corner * position
    large = (1.0 - delta) - (1.0 - delta - corner) * position
    return _Rates(np.where(mirrored, large, small), np.where(mirrored, small, large))


def _boundary_grid(corner: float, top: float, n: int) -> FloatArray:
    """Positions in [0, 1] on the segment from (0, top) to (corner, corner).

    Evenly spaced in arcsin √rate, where a binomial proportion has standard deviation
    1/(2 √n) whatever the rate, for either of the two rates in turn.
    """
    low, high = math.asin(math.sqrt(corner)), math.asin(math.sqrt(top))
    steps = 4.0 * math.sqrt(n)
    small = np.linspace(0.0, low, max(_GRID_MINIMUM, math.ceil(steps * low)))
    large = np.linspace(low, high, max(_GRID_MINIMUM, math.ceil(steps * (high - low))))
    by_small = np.sin(small) ** 2 / corner
    by_large = (top - np.sin(large) ** 2) / (top - corner)
    grid = np.sort(np.clip(np.concatenate([[0.0, 1.0], by_small, by_large]), 0.0, 1.0))
    # Twins that differ by rounding would leave a peak without a neighbour to search up to.
    return grid[np.diff(grid, prepend=-1.0) > 1e-10]


_RELATIVE_TOLERANCE = 1e-9
# The exact bound ranks outcomes by statistics that do not depend on the requested confidence.
# Otherwise the ranking would change with confidence, and a higher confidence could raise a bound
# (by up to 0.2 at 30 trials).
_REFERENCE_CONFIDENCE = 0.95
# A ranking loses power at a δ further from its own than √(δ/n), the spread of the rates at which a
# claim is tightest: at δ = .1, 269 errors of 1000 in each world give .705 by the ranking of δ = 0
# and .750 by their own. With a separate ranking for every δ, the order of outcomes would change as
# δ grows.
_STEPS_PER_ONE = 200
# A δ equal to a step up to rounding counts as that step.
_STEP_SLACK = 1e-9


def exact(
    false_negatives: int,
    false_positives: int,
    n_in: int,
    n_out: int,
    *,
    delta: float,
    confidence: float,
) -> float:
    """A lower bound on epsilon by inverting the exact unconditional test.

    For a given ε, outcomes are ranked: first those whose Clopper-Pearson bound reaches ε, then
    the others; within either group by the unclipped Clopper-Pearson statistic at 95 % and a
    reference δ. p(ε) is the largest probability, over all pairs of error rates that an
    (ε, δ)-DP mechanism allows, of an outcome that ranks at least as high as the one observed, and
    the bound is where p(ε) first exceeds 1 − confidence (Buehler 1957; optimality among bounds
    that respect one ordering: Lloyd and Kabaila 2003).

    The reference δ is δ rounded down to a multiple of 0.005. The answer is the smallest of this
    bound and those of the smaller multiples, each with the statistic at its own δ and tested at
    the δ where the next one takes over.

    The first group has probability 1 − confidence at most, so the bound is never below the
    Clopper-Pearson one. The ranking of the others does not depend on confidence, and the bounds of
    smaller multiples do not depend on δ, so raising either does not raise the bound. The attack's
    threshold must have been fixed before the trials were scored.

    Args:
        false_negatives: Trials of the "in" world that the attack guessed "out".
        false_positives: Trials of the "out" world that the attack guessed "in".
        n_in: Scored trials of the "in" world, at least 1.
        n_out: Scored trials of the "out" world, at least 1.
        delta: δ of the claim, in [0, 1).
        confidence: One-sided confidence, in (0, 1).

    Returns:
        The bound, at least 0, less than 1e-6 below the root and never above it.

    Raises:
        SettingsError: If an argument is out of range.
    """
    counts = Counts(false_negatives, false_positives, n_in, n_out)
    check_delta(delta)
    check_confidence(confidence)
    return _exact(counts, float(delta), float(confidence))


@lru_cache(maxsize=256)
def _exact(counts: Counts, delta: float, confidence: float) -> float:
    """As `exact`; an audit asks several times what its controls and a perfect attack prove."""
    trials = {"n_in": counts.n_in, "n_out": counts.n_out}
    bound = math.inf
    for step in reversed(_steps(confidence, delta=delta, **trials)):
        ranked = step.reference.no_lower_than(counts)
        bound = _invert_test(counts, step.requested, ranked, 1.0 - confidence, most=bound)
    return bound


def p_value(
    false_negatives: int,
    false_positives: int,
    n_in: int,
    n_out: int,
    *,
    epsilon: float,
    delta: float,
    confidence: float,
) -> float:
    """Evidence of the counts against an (ε, δ)-DP claim.

    Args:
        false_negatives: Trials of the "in" world that the attack guessed "out".
        false_positives: Trials of the "out" world that the attack guessed "in".
        n_in: Scored trials of the "in" world, at least 1.
        n_out: Scored trials of the "out" world, at least 1.
        epsilon: Claimed ε, finite and not negative.
        delta: Claimed δ, in [0, 1).
        confidence: Confidence of the Clopper-Pearson bound that forms the groups of the ranking
            (see `exact`), in (0, 1).

    Returns:
        The largest probability, under the claim, of an outcome at least as extreme, by each of
        the rankings of `exact` at its own δ. It is at most 1 − confidence wherever the `exact`
        bound lies above epsilon. Rounded up by 2 in 10^8 against the error of the search; values
        below 1e-15 are not resolved.

    Raises:
        SettingsError: If an argument is out of range.
    """
    counts = Counts(false_negatives, false_positives, n_in, n_out)
    check_epsilon(epsilon)
    check_delta(delta)
    check_confidence(confidence)
    trials = {"n_in": counts.n_in, "n_out": counts.n_out}
    worst = 0.0
    for step in _steps(confidence, delta=delta, **trials):
        first = _region_reaching(epsilon, step.requested)
        ranked = step.reference.no_lower_than(counts)
        is_first = step.requested.statistic(counts) >= epsilon
        region = ranked & first if is_first else ranked | first
        worst = max(worst, region.worst_case(epsilon, step.delta))
    return worst


def _region_reaching(epsilon: float, ordering: _Ordering) -> RejectionRegion:
    """The outcomes whose Clopper-Pearson bound is at least ε."""
    return ordering.at_least(math.exp(min(epsilon, _LARGEST_EXPONENT)))


def _invert_test(
    counts: Counts, requested: _Ordering, ranked: RejectionRegion, alpha: float, *, most: float
) -> float:
    """The ε where the p-value first exceeds α, or `most` if that is smaller.

    `ranked` holds the outcomes that the reference ordering ranks no lower than the observed ones.

    Up to the Clopper-Pearson bound the p-value is within α. Beyond it the region shrinks as ε
    grows, because fewer outcomes have a bound that high. So the root for the region of any one ε is
    at most the answer, and each root is a step towards it.
    """
    # No outcome is more extreme than no errors, which has probability (1 - k)^(n_in + n_out) at
    # the corner of the (ε, δ) region. No bound is above the ε where that is α.
    remaining = 1.0 - requested.delta
    corner = -math.expm1(math.log(alpha) / (counts.n_in + counts.n_out))
    high = math.log(remaining / corner - 1.0) if 2.0 * corner < remaining else 0.0
    high = min(high, most)
    low = min(max(0.0, requested.statistic(counts)), most)
    region = ranked | _region_reaching(low, requested)
    while True:
        low = region.largest_epsilon(alpha, delta=requested.delta, low=low, high=high)
        smaller = ranked | _region_reaching(low, requested)
        if smaller.contains(region):
            return low
        region = smaller


@lru_cache(maxsize=8)
def epsilon_rejecting_region(
    claim_epsilon: float, n_in: int, n_out: int, delta: float, confidence: float
) -> RejectionRegion:
    """The outcomes whose `exact` bound exceeds the claim.

    In each ranking these are the highest outcomes: first those whose Clopper-Pearson bound exceeds
    the claim, which have probability 1 − confidence at most because that bound is valid; then as
    many more as fit within 1 − confidence.
    """
    alpha = 1.0 - confidence
    region = RejectionRegion(np.full(n_out + 1, n_in), n_in)
    for step in reversed(_steps(confidence, n_in=n_in, n_out=n_out, delta=delta)):
        first = _region_reaching(claim_epsilon, step.requested)

        def rejects(ratio: float, step: _Step = step, first: RejectionRegion = first) -> bool:
            rejected = first | step.reference.at_least(ratio)
            return rejected.worst_case(claim_epsilon, step.delta) < alpha

        # Most steps reject all that the later ones reject. For the others, bisect for the lowest
        # ratio that keeps the test within alpha.
        low = step.reference.lowest(region, outside=first)
        if rejects(low):
            continue
        # Above the largest ratio, reached without errors, only the first group is left.
        high = math.exp(step.reference.statistic(Counts(0, 0, n_in, n_out))) * (1.0 + 1e-9)
        at_low, at_high = step.reference.at_least(low), step.reference.at_least(high)
        while high - low > _RELATIVE_TOLERANCE * high:
            middle = (low + high) / 2.0
            rejected = step.reference.at_least(middle)
            # Where no outcome lies between two ratios, both have the same answer.
            if at_high.contains(rejected) or (not rejected.contains(at_low) and rejects(middle)):
                high, at_high = middle, rejected
            else:
                low, at_low = middle, rejected
        region &= first | at_high
    return region


@dataclass(frozen=True, eq=False)
class _Ordering:
    """Ranks outcomes by their Clopper-Pearson statistic; fewer errors never rank lower.

    Attributes:
        fn_upper: Upper limits on the false-negative rate; shape (n_in + 1,), increasing.
        fp_upper: Upper limits on the false-positive rate; shape (n_out + 1,), increasing.
        delta: δ of the statistic.
    """

    fn_upper: FloatArray
    fp_upper: FloatArray
    delta: float

    @classmethod
    def at(cls, confidence: float, *, n_in: int, n_out: int, delta: float) -> _Ordering:
        """Ranks by the bound that holds with this confidence."""
        tail = (1.0 - confidence) / 2.0
        return cls(upper_limits(n_in, tail), upper_limits(n_out, tail), delta)

    def statistic(self, counts: Counts) -> float:
        """Log of the larger privacy ratio at the limits, not clipped at 0."""
        fn_upper = self.fn_upper[counts.false_negatives]
        fp_upper = self.fp_upper[counts.false_positives]
        return float(statistic(fn_upper, fp_upper, self.delta))

    def at_least(self, ratio: float) -> RejectionRegion:
        """The outcomes whose statistic is at least ln ratio."""
        return RejectionRegion.of_ratio(
            ratio, fn_upper=self.fn_upper, fp_upper=self.fp_upper, delta=self.delta
        )

    def no_lower_than(self, counts: Counts) -> RejectionRegion:
        """The outcomes that rank at least as high as this one."""
        return self.at_least(math.exp(self.statistic(counts)))

    def lowest(self, outcomes: RejectionRegion, *, outside: RejectionRegion) -> float:
        """The smallest ratio of these outcomes outside a region; infinite if there are none."""
        fp = np.flatnonzero(outcomes.most_fn > outside.most_fn)
        # Among outcomes with the same number of false positives, the one with the most false
        # negatives ranks last.
        lowest = statistic(self.fn_upper[outcomes.most_fn[fp]], self.fp_upper[fp], self.delta)
        return float(np.exp(np.min(lowest, initial=math.inf)))


class _Step(NamedTuple):
    """One of the tests that the exact bound must pass.

    Attributes:
        asked: Ranks by the Clopper-Pearson bound at the confidence and δ of the test.
        reference: Ranks by the Clopper-Pearson bound at 95 % and the δ where the step begins.
    """

    requested: _Ordering
    reference: _Ordering

    @property
    def delta(self) -> float:
        """δ of the test."""
        return self.requested.delta


def _steps(confidence: float, *, n_in: int, n_out: int, delta: float) -> list[_Step]:
    """The tests of the exact bound, by rising δ; the last one is at δ itself.

    Each step of δ uses the ranking at its start. A step that lies below δ is tested at its end, so
    only the last test depends on δ, and the smallest bound never rises with δ. That bound is valid
    because it is no larger than the bound of the last test, whose ranking was fixed before the
    outcome was seen.
    """
    requested = _Ordering.at(confidence, n_in=n_in, n_out=n_out, delta=delta)
    reference = _Ordering.at(_REFERENCE_CONFIDENCE, n_in=n_in, n_out=n_out, delta=0.0)
    last = math.floor(delta * _STEPS_PER_ONE + _STEP_SLACK)
    begins = [step / _STEPS_PER_ONE for step in range(last + 1)]
    return [
        _Step(replace(requested, delta=end), replace(reference, delta=begin))
        for begin, end in zip(begins, [*begins[1:], delta], strict=True)
    ]
