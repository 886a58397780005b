"""Bounds that hold for every threshold at once, for attacks without fitting data.

Where nothing can be set aside to choose a threshold on, all scores are scored and the threshold
may be the best of all, provided that the limits on the error rates hold at every threshold
simultaneously. The error rates at threshold t are values of the two worlds' distribution
functions, F_in(t) and 1 − F_out(t) (HIGHER) or the other way round (LOWER). Each direction needs
an upper limit in each world, so that α is split over directions and then over the worlds:
α/2 per world with the direction fixed beforehand, α/4 with both tried. The two privacy ratios
share the limits and cost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from dpaudit.bounds.clopper_pearson import statistic, upper_limits
from dpaudit.bounds.inputs import (
    BoolArray,
    FloatArray,
    bonferroni,
    check_confidence,
    check_delta,
    whole_number,
)
from dpaudit.bounds.threshold import Direction, Threshold, best_cut, checked, cuts_of, errors_at
from dpaudit.errors import SettingsError
from reports.methods.order_statistics import local_level

# Ranks: a quantile within this of a rank is that rank, whatever the product rounds to.
_RANK_SLACK = 1e-9


class BandBound(NamedTuple):
    """A bound and the threshold it was reached at.

    Attributes:
        epsilon: Lower bound on epsilon, at least 0.
        threshold: The best cut of those allowed.
    """

    epsilon: float
    threshold: Threshold


def dkw(
    scores: FloatArray,
    member: BoolArray,
    *,
    delta: float,
    confidence: float,
    direction: Direction | None = None,
    failed_in: int = 0,
    failed_out: int = 0,
) -> BandBound:
    """A lower bound on epsilon over all thresholds by a band of constant width.

    Theorem (Dvoretzky, Kiefer and Wolfowitz 1956, with the constant of Massart 1990): with n
    scores of one world, P[sup_t (F(t) − F_n(t)) > m] ≤ e^(−2nm²) where that is at most 1/2, and
    likewise for F_n − F. The margin √(ln(1/a)/(2n)) therefore holds at all thresholds with
    probability 1 − a; a is α/2 with the direction fixed beforehand (margin √(ln(2/α)/(2n))) and
    α/4 without (√(ln(4/α)/(2n)), which is also the two-sided inequality at α/2 per world).

    Args:
        scores: Attack scores of all trials; shape (n,), finite.
        member: Whether the trial is of the "in" world; shape (n,), both worlds present.
        delta: δ of the claim, in [0, 1).
        confidence: One-sided confidence, in (0, 1).
        direction: The direction, if it was fixed before the trials were scored; None tries both.
        failed_in: Trials of the "in" world without a score; errors at every threshold.
        failed_out: The same for the "out" world.

    Returns:
        The largest bound and its threshold.

    Raises:
        SettingsError: If scores and membership do not fit, or a setting is out of range.
    """

    def limits(n: int, alpha: float) -> FloatArray:
        margin = math.sqrt(-math.log(alpha) / (2.0 * n))
        return np.minimum(np.arange(n + 1) / n + margin, 1.0)

    return _over_all_cuts(
        scores, member, limits, delta, confidence, direction, (failed_in, failed_out)
    )


def equal_local_level(
    scores: FloatArray,
    member: BoolArray,
    *,
    delta: float,
    confidence: float,
    direction: Direction | None = None,
    failed_in: int = 0,
    failed_out: int = 0,
) -> BandBound:
    """A lower bound on epsilon over all thresholds by Clopper-Pearson limits at one local level.

    Theorem (Berk and Jones 1979; equal local levels: Gontscharuk, Landwehr and Finner 2016): the
    j-th of n uniform order statistics is Beta(j, n − j + 1), so that the Clopper-Pearson limit
    after k errors is passed somewhere exactly where the (k + 1)-th order statistic exceeds its
    own (1 − η)-quantile. `local_level` finds the η at which any of them does with probability a;
    ties only make it rarer. a is α/2 with the direction fixed beforehand, α/4 without.

    Args:
        scores: Attack scores of all trials; shape (n,), finite.
        member: Whether the trial is of the "in" world; shape (n,), both worlds present.
        delta: δ of the claim, in [0, 1).
        confidence: One-sided confidence, in (0, 1).
        direction: The direction, if it was fixed before the trials were scored; None tries both.
        failed_in: Trials of the "in" world without a score; errors at every threshold.
        failed_out: The same for the "out" world.

    Returns:
        The largest bound and its threshold.

    Raises:
        SettingsError: If scores and membership do not fit, or a setting is out of range.
    """

    def limits(n: int, alpha: float) -> FloatArray:
        return upper_limits(n, local_level(n, alpha))

    return _over_all_cuts(
        scores, member, limits, delta, confidence, direction, (failed_in, failed_out)
    )


def preset_quantiles(
    scores: FloatArray,
    member: BoolArray,
    *,
    quantiles: Sequence[float],
    delta: float,
    confidence: float,
    direction: Direction | None = None,
    failed_in: int = 0,
    failed_out: int = 0,
) -> BandBound:
    """A lower bound on epsilon at quantiles of the non-members' scores, preset and few.

    The cut is the non-members' score of rank ⌈quantile · n_out⌉; HIGHER guesses "in" above it,
    LOWER below it. Quantiles of all scores together would not do: given such a cut, the counts
    of the two worlds are not binomial, and depend on one another. Given a non-member's score,
    the members are still independent of it and their errors binomial; and of the non-members
    it holds:

    Theorem (Wilks 1941): the share of the distribution above the score of rank j is at most a
    Beta(n − j + 1, j) variable, whose (1 − a)-quantile is the Clopper-Pearson limit after n − j
    errors; below it, after j − 1 errors. These ranks, not the count after ties, are the errors.
    Bonferroni covers the quantiles and directions.

    Preset cut values need no function of their own: `count_errors` and `exact` at
    the confidence of `bonferroni`.

    Args:
        scores: Attack scores of all trials; shape (n,), finite.
        member: Whether the trial is of the "in" world; shape (n,), both worlds present.
        quantiles: Quantiles of the non-members' scores in (0, 1), fixed beforehand; at least one.
        delta: δ of the claim, in [0, 1).
        confidence: One-sided confidence, in (0, 1).
        direction: The direction, if it was fixed before the trials were scored; None tries both.
        failed_in: Trials of the "in" world without a score; errors at every threshold.
        failed_out: The same for the "out" world.

    Returns:
        The largest bound and its threshold, the first one given among equals.

    Raises:
        SettingsError: If scores and membership do not fit, or a setting is out of range.
    """
    check_delta(delta)
    check_confidence(confidence)
    scores, member = checked(scores, member)
    failed_in, failed_out = _failed(failed_in, failed_out)
    if not quantiles or not all(0.0 < quantile < 1.0 for quantile in quantiles):
        raise SettingsError(
            f"`quantiles` is {list(quantiles)}; give at least one, each strictly between 0 and 1"
        )
    directions = _directions(direction)
    each = bonferroni(confidence, len(quantiles) * len(directions))
    alpha_per_world = (1.0 - each) / 2.0
    n_in = int(np.count_nonzero(member)) + failed_in
    n_out = int(np.count_nonzero(~member)) + failed_out
    fn_upper, fp_upper = upper_limits(n_in, alpha_per_world), upper_limits(n_out, alpha_per_world)
    bounds = []
    for way in directions:
        # A failed trial takes the score that is wrong at every cut.
        wrong = math.inf if way is Direction.HIGHER else -math.inf
        others = np.sort(np.append(scores[~member], np.full(failed_out, wrong)))
        for quantile in quantiles:
            rank = min(max(math.ceil(quantile * n_out - _RANK_SLACK), 1), n_out)
            cut = float(others[rank - 1])
            if way is Direction.HIGHER:
                threshold = Threshold(float(np.nextafter(cut, math.inf)), way)
                false_positives = n_out - rank
            else:
                threshold = Threshold(cut, way)
                false_positives = rank - 1
            missed = int(np.count_nonzero(~threshold.guesses_in(scores[member])))
            evidence = statistic(fn_upper[missed + failed_in], fp_upper[false_positives], delta)
            bounds.append(BandBound(max(0.0, float(evidence)), threshold))
    return max(bounds, key=lambda bound: bound.epsilon)


def _over_all_cuts(
    scores: FloatArray,
    member: BoolArray,
    limits: Callable[[int, float], FloatArray],
    delta: float,
    confidence: float,
    direction: Direction | None,
    failed: tuple[int, int],
) -> BandBound:
    """The largest bound of any cut under limits that hold at all of them at once.

    `limits(n, alpha)` gives the limit after each count of n errors, shape (n + 1,), all of them
    right with probability 1 − alpha in one world.
    """
    check_delta(delta)
    check_confidence(confidence)
    scores, member = checked(scores, member)
    failed_in, failed_out = _failed(*failed)
    cuts = cuts_of(scores, member)
    directions = _directions(direction)
    errors = errors_at(cuts, directions)
    each = bonferroni(confidence, len(directions))
    alpha_per_world = (1.0 - each) / 2.0
    fn_upper = limits(cuts.n_in + failed_in, alpha_per_world)[errors.false_negatives + failed_in]
    fp_upper = limits(cuts.n_out + failed_out, alpha_per_world)[errors.false_positives + failed_out]
    evidence = statistic(fn_upper, fp_upper, delta)
    threshold = best_cut(cuts, directions, evidence, centre=float(np.median(scores)))
    return BandBound(max(0.0, float(np.max(evidence))), threshold)


def _directions(fixed: Direction | None) -> tuple[Direction, ...]:
    """The directions to try."""
    return tuple(Direction) if fixed is None else (fixed,)


def _failed(failed_in: int, failed_out: int) -> tuple[int, int]:
    """Returns the numbers of failed trials, or refuses one that is not a count."""
    numbers = whole_number("failed_in", failed_in), whole_number("failed_out", failed_out)
    for name, number in zip(("failed_in", "failed_out"), numbers, strict=True):
        if number < 0:
            raise SettingsError(f"`{name}` is {number}; give the number of trials without a score")
    return numbers
