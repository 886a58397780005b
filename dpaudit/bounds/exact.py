"""Buehler's exact lower bound on epsilon from two worlds, its upper limit and its power."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy

from dpaudit.bounds._region import RejectionRegion
from dpaudit.bounds.clopper_pearson import statistic, upper_limits
from dpaudit.bounds.inputs import (
    Counts,
    FloatArray,
    check_confidence,
    check_delta,
    check_epsilon,
    check_power,
)
from dpaudit.model.gaussian import gaussian_epsilon
from dpaudit.model.setting import NumberRange, check_number

# e to a higher power overflows; no audit of fewer than e^700 trials proves a larger epsilon.
_LARGEST_EXPONENT = 700.0
_RELATIVE_TOLERANCE = 1e-9
# Randomised response with this much more epsilon than the claim errs with probability < 1e-26.
_CERTAIN_LEAK = 60.0
# Two normal scores this many standard deviations apart are confused with probability < 1e-80.
_CERTAIN_SHIFT = 40.0
# Thresholds tried for a Gaussian leak, and how far they reach beyond the two means.
_CUTS = 401
_TAIL = 4.0
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


def max_provable(
    n_in: int,
    n_out: int,
    *,
    delta: float,
    confidence: float,
    false_negatives: int = 0,
    false_positives: int = 0,
) -> float:
    """Upper limit of the `exact` bound for this many trials: the bound of a perfect attack.

    Without failed trials, and unless one world has more than e^ε times the trials
    of the other, it is ln((1 − δ)/(1 − (1 − confidence)^(1/(n_in + n_out))) − 1).

    Args:
        n_in: Scored trials of the "in" world.
        n_out: Scored trials of the "out" world.
        delta: δ of the claim, in [0, 1).
        confidence: One-sided confidence, in (0, 1).
        false_negatives: Trials of the "in" world that failed, and so count as errors.
        false_positives: Trials of the "out" world that failed, and so count as errors.

    Returns:
        The bound of an attack whose only errors are the failed trials.

    Raises:
        SettingsError: If a setting is out of range.
    """
    return exact(false_negatives, false_positives, n_in, n_out, delta=delta, confidence=confidence)


def detectable_epsilon(
    *,
    claim_epsilon: float,
    n_in: int,
    n_out: int,
    delta: float,
    confidence: float,
    power: float = 0.8,
    false_negatives: int = 0,
    false_positives: int = 0,
) -> float | None:
    """Minimum detectable epsilon: the smallest true epsilon that an audit detects with this power.

    The leak is randomised response, the mechanism that dominates every (ε, δ)-DP one
    (Kairouz, Oh and Viswanath 2015, Theorem 2.5), attacked at the corner of its trade-off curve:
    both error rates are (1 − δ)/(1 + e^ε). Power is computed by exact enumeration. An attack that
    does not reach this corner detects only larger leaks.

    Args:
        claim_epsilon: Claimed ε, finite and not negative.
        n_in: Scored trials of the "in" world.
        n_out: Scored trials of the "out" world.
        delta: δ of the claim, in [0, 1).
        confidence: One-sided confidence, in (0, 1).
        power: Probability that the `exact` bound exceeds the claim, in (1 − confidence, 1).
        false_negatives: Trials of the "in" world that failed, and so count as errors.
        false_positives: Trials of the "out" world that failed, and so count as errors.

    Returns:
        The smallest such ε, or None if no leak, however large, is detected.

    Raises:
        SettingsError: If a setting is out of range.
    """
    region = _detecting_region(
        claim_epsilon, n_in, n_out, delta, confidence, power, false_negatives, false_positives
    )
    if region.is_empty:
        return None

    def shortfall(epsilon: float) -> float:
        rate = np.array([(1.0 - delta) * scipy.special.expit(-epsilon)])
        return float(region.probability(rate, rate)[0]) - power

    return float(
        scipy.optimize.brentq(shortfall, claim_epsilon, claim_epsilon + _CERTAIN_LEAK, xtol=1e-9)
    )


def detectable_gaussian(
    *,
    claim_epsilon: float,
    n_in: int,
    n_out: int,
    delta: float,
    confidence: float,
    power: float = 0.8,
    false_negatives: int = 0,
    false_positives: int = 0,
) -> float | None:
    """Minimum detectable epsilon of a Gaussian leak, with this power.

    The leak shifts a normal score by mu standard deviations (mu-GDP: Dong, Roth and Su 2022), and
    the attack uses the threshold that is best for the audit. A single threshold shows less of the
    epsilon of a Gaussian leak than of randomised response, so this exceeds `detectable_epsilon`.

    Args:
        claim_epsilon: Claimed ε, finite and not negative.
        n_in: Scored trials of the "in" world.
        n_out: Scored trials of the "out" world.
        delta: δ of the claim, in [0, 1).
        confidence: One-sided confidence, in (0, 1).
        power: Probability that the `exact` bound exceeds the claim, in (1 − confidence, 1).
        false_negatives: Trials of the "in" world that failed, and so count as errors.
        false_positives: Trials of the "out" world that failed, and so count as errors.

    Returns:
        ε at δ of the smallest such shift; None at δ = 0, where every Gaussian leak has infinite ε,
        and if no leak is detected.

    Raises:
        SettingsError: If a setting is out of range.
    """
    region = _detecting_region(
        claim_epsilon, n_in, n_out, delta, confidence, power, false_negatives, false_positives
    )
    if region.is_empty or delta == 0.0:
        return None

    def shortfall(mu: float) -> float:
        cuts = np.linspace(-_TAIL, mu + _TAIL, _CUTS)
        reached = region.probability(scipy.special.ndtr(-cuts), scipy.special.ndtr(cuts - mu))
        return float(reached.max()) - power

    return gaussian_epsilon(
        float(scipy.optimize.brentq(shortfall, 0.0, _CERTAIN_SHIFT, xtol=1e-6)), delta
    )


def detection_power(
    *,
    claim_epsilon: float,
    n_in: int,
    n_out: int,
    delta: float,
    confidence: float,
    fpr: float,
    tpr: float,
) -> float:
    """Probability that an attack with known rates makes the `exact` bound exceed a claim.

    Args:
        claim_epsilon: Claimed ε, finite and not negative.
        n_in: Scored trials of the "in" world.
        n_out: Scored trials of the "out" world.
        delta: δ of the claim, in [0, 1).
        confidence: One-sided confidence, in (0, 1).
        fpr: The attack's false-positive rate, in [0, 1].
        tpr: Its true-positive rate, in [0, 1].

    Returns:
        The power, by exact enumeration.

    Raises:
        SettingsError: If a setting is out of range.
    """
    check_epsilon(claim_epsilon)
    check_delta(delta)
    check_confidence(confidence)
    Counts(0, 0, n_in, n_out)
    for name, rate in (("fpr", fpr), ("tpr", tpr)):
        check_number(name, rate, NumberRange(0, 1))
    region = _rejecting_region(claim_epsilon, n_in, n_out, delta, confidence)
    if region.is_empty:
        return 0.0
    return float(region.probability(np.array([fpr]), np.array([1.0 - tpr]))[0])


def _detecting_region(
    claim_epsilon: float,
    n_in: int,
    n_out: int,
    delta: float,
    confidence: float,
    power: float,
    false_negatives: int,
    false_positives: int,
) -> RejectionRegion:
    """The outcomes of the trials that did not fail for which the `exact` bound exceeds the claim.

    Raises:
        SettingsError: If a setting is out of range.
    """
    check_epsilon(claim_epsilon)
    check_delta(delta)
    check_confidence(confidence)
    Counts(false_negatives, false_positives, n_in, n_out)
    check_power(power, confidence=confidence)
    region = _rejecting_region(claim_epsilon, n_in, n_out, delta, confidence)
    return region.after_errors(false_negatives=false_negatives, false_positives=false_positives)


@lru_cache(maxsize=8)
def _rejecting_region(
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
