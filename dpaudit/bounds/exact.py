"""The exact lower bound on epsilon: Buehler's bound for the two-world experiment."""

from __future__ import annotations

import math

from dpaudit.bounds._checks import check_confidence, check_delta, check_epsilon
from dpaudit.bounds._ordering import Ordering, steps
from dpaudit.bounds._region import RejectionRegion
from dpaudit.bounds.counts import Counts

# e to the power of more overflows; no audit of fewer than e^700 trials proves more.
_LARGEST_EXPONENT = 700.0


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

    The first group has probability 1 − confidence at most, so that the bound is never below the
    Clopper-Pearson one. The ranking of the others does not depend on confidence, nor the bounds
    of smaller multiples on δ, so that more of either does not raise the bound. The attack's
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
    for step in reversed(steps(confidence, delta=delta, **trials)):
        ranked = step.reference.no_lower_than(counts)
        bound = _bound(counts, step.asked, ranked, 1.0 - confidence, most=bound)
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
    for step in steps(confidence, delta=delta, **trials):
        first = reaching(epsilon, step.asked)
        ranked = step.reference.no_lower_than(counts)
        is_first = step.asked.statistic(counts) >= epsilon
        region = ranked & first if is_first else ranked | first
        worst = max(worst, region.worst_case(epsilon, step.delta))
    return worst


def reaching(epsilon: float, ordering: Ordering) -> RejectionRegion:
    """The outcomes whose Clopper-Pearson bound is at least ε."""
    return ordering.at_least(math.exp(min(epsilon, _LARGEST_EXPONENT)))


def _bound(
    counts: Counts, asked: Ordering, ranked: RejectionRegion, alpha: float, *, most: float
) -> float:
    """Where the p-value first exceeds α, given the outcomes that rank no lower by reference.

    The answer is `most` where that is smaller.

    Up to the Clopper-Pearson bound the p-value is within α. Beyond it the region shrinks as ε
    grows, because fewer outcomes have a bound that high: the root for the region of one ε is a
    value that the answer does not fall short of, and a step towards it.
    """
    # No outcome is more extreme than no errors, which the corner of the (ε, δ) region yields
    # with probability (1 - k)^(n_in + n_out): no bound is above the ε where this is α.
    remaining = 1.0 - asked.delta
    corner = -math.expm1(math.log(alpha) / (counts.n_in + counts.n_out))
    high = math.log(remaining / corner - 1.0) if 2.0 * corner < remaining else 0.0
    high = min(high, most)
    low = min(max(0.0, asked.statistic(counts)), most)
    region = ranked | reaching(low, asked)
    while True:
        low = region.largest_epsilon(alpha, delta=asked.delta, low=low, high=high)
        smaller = ranked | reaching(low, asked)
        if smaller.contains(region):
            return low
        region = smaller
