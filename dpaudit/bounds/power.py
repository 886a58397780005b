"""What an audit of a given size can prove, and which leaks it would catch."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, ndtr

from dpaudit.bounds._checks import check_confidence, check_delta, check_epsilon, check_power
from dpaudit.bounds._ordering import Step, steps
from dpaudit.bounds._region import RejectionRegion
from dpaudit.bounds.counts import Counts
from dpaudit.bounds.exact import exact, reaching
from dpaudit.errors import SettingsError
from dpaudit.model.gaussian import gaussian_epsilon

_RELATIVE_TOLERANCE = 1e-9
# Randomised response with this much more epsilon than the claim errs with probability < 1e-26.
_CERTAIN_LEAK = 60.0
# Two normal scores this many standard deviations apart are confused with probability < 1e-80.
_CERTAIN_SHIFT = 40.0
# Cuts that are tried for a Gaussian leak, and how far they reach beyond the two means.
_CUTS = 401
_TAIL = 4.0


def max_provable(
    n_in: int,
    n_out: int,
    *,
    delta: float,
    confidence: float,
    false_negatives: int = 0,
    false_positives: int = 0,
) -> float:
    """Largest `exact` bound that an audit of this size can reach: that of a perfect attack.

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
        The bound of an attack that errs on the failed trials only.

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
    """Smallest true epsilon that the audit would expose with the given probability.

    The leak is that of randomised response, the mechanism that dominates every (ε, δ)-DP one
    (Kairouz, Oh and Viswanath 2015, Theorem 2.5), attacked at the corner of its trade-off curve:
    both error rates are (1 − δ)/(1 + e^ε). Power is computed by exact enumeration. An attack
    that does not reach this corner needs a larger leak.

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
        The smallest such ε, or None where no leak, however large, is exposed.

    Raises:
        SettingsError: If a setting is out of range.
    """
    region = _exposing(
        claim_epsilon, n_in, n_out, delta, confidence, power, false_negatives, false_positives
    )
    if region.is_empty:
        return None

    def shortfall(epsilon: float) -> float:
        rate = np.array([(1.0 - delta) * expit(-epsilon)])
        return float(region.probability(rate, rate)[0]) - power

    return float(brentq(shortfall, claim_epsilon, claim_epsilon + _CERTAIN_LEAK, xtol=1e-9))


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
    """Smallest true epsilon of a Gaussian leak that the audit would expose with that probability.

    The leak shifts a normal score by mu standard deviations (mu-GDP: Dong, Roth and Su 2022), and
    the attack guesses at the cut that is best for the audit. Such a leak shows less of its epsilon
    at any one cut than randomised response does, so this is larger than `detectable_epsilon`.

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
        ε at δ of the smallest such shift; None at δ = 0, where every Gaussian leak is infinite, and
        where no leak is exposed.

    Raises:
        SettingsError: If a setting is out of range.
    """
    region = _exposing(
        claim_epsilon, n_in, n_out, delta, confidence, power, false_negatives, false_positives
    )
    if region.is_empty or delta == 0.0:
        return None

    def shortfall(mu: float) -> float:
        cuts = np.linspace(-_TAIL, mu + _TAIL, _CUTS)
        reached = region.probability(ndtr(-cuts), ndtr(cuts - mu))
        return float(reached.max()) - power

    return gaussian_epsilon(float(brentq(shortfall, 0.0, _CERTAIN_SHIFT, xtol=1e-6)), delta)


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
        if not 0.0 <= rate <= 1.0:
            raise SettingsError(f"`{name}` is {rate}; give a rate from 0 to 1")
    region = _rejecting(claim_epsilon, n_in, n_out, delta, confidence)
    if region.is_empty:
        return 0.0
    return float(region.probability(np.array([fpr]), np.array([1.0 - tpr]))[0])


def _exposing(
    claim_epsilon: float,
    n_in: int,
    n_out: int,
    delta: float,
    confidence: float,
    power: float,
    false_negatives: int,
    false_positives: int,
) -> RejectionRegion:
    """The outcomes of the trials that did not fail whose `exact` bound exceeds the claim.

    Raises:
        SettingsError: If a setting is out of range.
    """
    check_epsilon(claim_epsilon)
    check_delta(delta)
    check_confidence(confidence)
    Counts(false_negatives, false_positives, n_in, n_out)
    check_power(power, confidence=confidence)
    region = _rejecting(claim_epsilon, n_in, n_out, delta, confidence)
    return region.after_errors(false_negatives=false_negatives, false_positives=false_positives)


@lru_cache(maxsize=8)
def _rejecting(
    claim_epsilon: float, n_in: int, n_out: int, delta: float, confidence: float
) -> RejectionRegion:
    """The outcomes whose `exact` bound exceeds the claim.

    In each ranking they are those that rank high enough: the outcomes whose Clopper-Pearson
    bound exceeds the claim, whose probability is within 1 − confidence by the validity of that
    bound, and beyond them as many as keep it there.
    """
    alpha = 1.0 - confidence
    region = RejectionRegion(np.full(n_out + 1, n_in), n_in)
    for step in reversed(steps(confidence, n_in=n_in, n_out=n_out, delta=delta)):
        first = reaching(claim_epsilon, step.asked)

        def rejects(ratio: float, step: Step = step, first: RejectionRegion = first) -> bool:
            ranked = first | step.reference.at_least(ratio)
            return ranked.worst_case(claim_epsilon, step.delta) < alpha

        # Most steps reject all that the later ones do; of the others the lowest ratio is sought.
        low = step.reference.lowest(region, outside=first)
        if rejects(low):
            continue
        # Above the largest ratio, that of no errors, only the first group is left.
        high = math.exp(step.reference.statistic(Counts(0, 0, n_in, n_out))) * (1.0 + 1e-9)
        most, least = step.reference.at_least(low), step.reference.at_least(high)
        while high - low > _RELATIVE_TOLERANCE * high:
            middle = (low + high) / 2.0
            ranked = step.reference.at_least(middle)
            # Where no outcome lies between two ratios, the answer for one is that for the other.
            if least.contains(ranked) or (not ranked.contains(most) and rejects(middle)):
                high, least = middle, ranked
            else:
                low, most = middle, ranked
        region &= first | least
    return region
