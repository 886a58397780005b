"""The exact lower bound on epsilon: Buehler's bound for the two-world experiment."""

from __future__ import annotations

import math

from scipy.optimize import brentq

from dpaudit.bounds._checks import check_confidence, check_delta, check_epsilon
from dpaudit.bounds._region import RejectionRegion
from dpaudit.bounds.clopper_pearson import statistic, upper_limits
from dpaudit.bounds.counts import Counts

_TOLERANCE = 1e-7


def exact(counts: Counts, *, delta: float, confidence: float) -> float:
    """Lower-bound epsilon by inverting the exact unconditional test.

    Outcomes are ordered by the unclipped Clopper-Pearson statistic at the same confidence. For
    a given ε, p(ε) is the largest probability, over all pairs of error rates that an (ε, δ)-DP
    mechanism allows, of an outcome that ranks at least as high as the one observed; the bound
    is the root of p(ε) = 1 − confidence. Of all valid bounds that respect the ordering it is the
    largest (Buehler 1957; optimality: Lloyd and Kabaila 2003), hence never below the
    Clopper-Pearson bound.

    Args:
        counts: Errors of an attack whose threshold was fixed before the trials were scored.
        delta: δ of the claim, in [0, 1).
        confidence: One-sided confidence, in (0, 1).

    Returns:
        The bound, at least 0, about 1e-5 or less below the root and never above it.

    Raises:
        SettingsError: delta or confidence is out of range.
    """
    check_delta(delta)
    check_confidence(confidence)
    log_alpha = math.log1p(-confidence)
    evidence, region = _ranked_at_least(counts, delta=delta, confidence=confidence)

    def excess(epsilon: float) -> float:
        size = region.worst_case(epsilon, delta)
        return math.log(max(size, 1e-300)) - log_alpha

    # The Clopper-Pearson test is valid, so that the root is not below its bound; and no outcome
    # is more extreme than no errors, which the corner of the region yields with probability
    # (1 - k)^(n_in + n_out): the root is not above the epsilon where this is 1 - confidence.
    low = max(0.0, evidence)
    corner = -math.expm1(log_alpha / (counts.n_in + counts.n_out))
    high = math.log((1.0 - delta) / corner - 1.0) if 2.0 * corner < 1.0 - delta else 0.0
    if high <= low or excess(low) >= 0.0:
        return low
    root = float(brentq(excess, low, high, xtol=_TOLERANCE))
    while root > low and excess(root) > 0.0:
        root -= _TOLERANCE
    return max(root, low)


def p_value(counts: Counts, *, epsilon: float, delta: float, confidence: float) -> float:
    """Evidence of the counts against an (ε, δ)-DP claim.

    Args:
        counts: Errors of an attack whose threshold was fixed before the trials were scored.
        epsilon: Claimed ε, finite and not negative.
        delta: Claimed δ, in [0, 1).
        confidence: Confidence at which the statistic that orders outcomes is taken, in (0, 1).

    Returns:
        The largest probability, under the claim, of an outcome at least as extreme. It is below
        1 − confidence exactly where the `exact` bound lies above epsilon. Rounded up by 1 in
        100 000 against the error of the search; values below 1e-15 are not resolved.

    Raises:
        SettingsError: A setting is out of range.
    """
    check_epsilon(epsilon)
    check_delta(delta)
    check_confidence(confidence)
    _, region = _ranked_at_least(counts, delta=delta, confidence=confidence)
    return region.worst_case(epsilon, delta)


def _ranked_at_least(
    counts: Counts, *, delta: float, confidence: float
) -> tuple[float, RejectionRegion]:
    """The observed statistic, and the outcomes that rank no lower."""
    tail = (1.0 - confidence) / 2.0
    fn_upper = upper_limits(counts.n_in, tail)
    fp_upper = upper_limits(counts.n_out, tail)
    observed = float(
        statistic(fn_upper[counts.false_negatives], fp_upper[counts.false_positives], delta)
    )
    region = RejectionRegion.of_ratio(
        math.exp(observed), fn_upper=fn_upper, fp_upper=fp_upper, delta=delta
    )
    return observed, region
