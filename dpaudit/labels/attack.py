"""The attack on released labels: the best test of the two worlds, and what it would catch.

Everything here follows from the known distributions, before a single label is drawn.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from dpaudit.bounds import binomial, statistic
from dpaudit.labels.vote_pair import VotePair
from dpaudit.model.claim import PrivacyClaim
from dpaudit.plugins.protocols import FloatArray, IntArray
from dpaudit.results.verdict import POWER

_MOST_LABELS = 2**14
# Statistics that agree to this many digits are tied: the choice must not hang on rounding.
_DIGITS = 12


class RunSize(NamedTuple):
    """How many runs of each world, and the Clopper-Pearson limits for their errors.

    Attributes:
        runs: Simulated runs of each world.
        delta: δ of the claim.
        upper: Upper limit on an error rate after each count of errors; shape [runs + 1].
    """

    runs: int
    delta: float
    upper: FloatArray

    def counts(self, rates: FloatArray, *, quantile: float | None = None) -> IntArray:
        """The expected numbers of errors at these rates, or a quantile of them.

        Args:
            rates: Error rates, shape [m].
            quantile: In (0, 1); None for the expectation, rounded.

        Returns:
            Whole numbers; shape [m].
        """
        expected = np.rint(self.runs * rates)
        errors = expected if quantile is None else binomial.ppf(quantile, self.runs, rates)
        return np.asarray(errors, dtype=np.int64)


class ChosenCuts(NamedTuple):
    """The cuts of one audit.

    Attributes:
        for_bound: Position in `VotePair.cuts` of the cut that the bound is computed at.
        for_estimate: Position of the one that the Gaussian estimate is computed at.
    """

    for_bound: int
    for_estimate: int


def choose_cuts(pair: VotePair, size: RunSize) -> ChosenCuts:
    """The cuts with the largest expected bound and estimate; for equal votes the most even cut.

    Args:
        pair: What draws the labels in either world.
        size: The runs.

    Returns:
        Their positions.
    """
    cuts = pair.cuts
    fn_upper = size.upper[size.counts(cuts.fnr)]
    fp_upper = size.upper[size.counts(cuts.fpr)]
    # Clipped at 0: below, the statistic favours cuts that put nearly all runs on one side.
    bound = np.round(np.maximum(statistic(fn_upper, fp_upper, size.delta), 0.0), _DIGITS)
    youden = np.round(1.0 - cuts.fnr - cuts.fpr, _DIGITS)
    best = np.lexsort((np.abs(cuts.fnr - cuts.fpr), -youden, -bound))[0]
    mu = -ndtri(fn_upper) - ndtri(fp_upper)
    return ChosenCuts(for_bound=int(best), for_estimate=int(np.argmax(mu)))


def detectable_leak(pair: VotePair, claim: PrivacyClaim, size: RunSize) -> float | None:
    """The leak that would have been caught: that of the same votes on more labels than these.

    Each world's errors stay within their quantile at √0.8, both with probability at least 0.8,
    and the bound is then no lower than the Clopper-Pearson one at the two quantiles.

    Args:
        pair: What draws the labels in either world.
        claim: The claim under audit.
        size: The runs.

    Returns:
        ε of the smallest number of labels that is caught; None if not even 2^14 times as many.
    """

    def caught(labels: int) -> bool:
        larger = replace(pair, labels=labels)
        cut = choose_cuts(larger, size).for_bound
        within = math.sqrt(POWER)
        fn_upper = size.upper[size.counts(larger.cuts.fnr[cut], quantile=within)]
        fp_upper = size.upper[size.counts(larger.cuts.fpr[cut], quantile=within)]
        return float(statistic(fn_upper, fp_upper, size.delta)) > claim.epsilon

    if pair.rates.in_ == pair.rates.out:
        return None
    missed, found = 0, pair.labels
    while not caught(found):
        missed, found = found, 2 * found
        if found > _MOST_LABELS * pair.labels:
            return None
    while found - missed > 1:
        middle = (missed + found) // 2
        missed, found = (missed, middle) if caught(middle) else (middle, found)
    return replace(pair, labels=found).leak(claim.delta)
