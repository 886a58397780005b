"""Two worlds whose votes differ by one teacher, and the best test of which one released the labels.

Everything here follows from the known distributions, before a single label is drawn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from dpaudit.account import VoteTable
from dpaudit.bounds import binomial, statistic
from dpaudit.errors import SettingsError
from dpaudit.model.claim import PrivacyClaim
from dpaudit.plugins.protocols import FloatArray, IntArray
from dpaudit.results.verdict import POWER

_NEVER = 1e-15
"""Less likely counts are left out: they do not occur in audits of fewer than 10^14 runs."""
_MOST_LABELS = 2**14
# Statistics that agree to this many digits are tied: rounding must not decide the choice.
_DIGITS = 12


class Rates(NamedTuple):
    """The probability of one label in each world.

    Attributes:
        in_: In world "in".
        out: In world "out".
    """

    in_: float
    out: float


class LikelihoodRatioCuts(NamedTuple):
    """Every likelihood-ratio test, with its exact error rates.

    Attributes:
        first: The attack guesses "in" from this count of telling labels on; shape [m].
        fnr: Its false-negative rate, shape [m].
        fpr: Its false-positive rate, shape [m].
    """

    first: IntArray
    fnr: FloatArray
    fpr: FloatArray


@dataclass(frozen=True, kw_only=True)
class VotePair:
    """Neighbouring tables at their worst: one record, hence one teacher, changes every vote by one.

    The votes of all queries are held at one count in each world. The labels are then independent
    bits of one probability, and how many of them are 1 is sufficient: an attack that sees all
    bits in order knows nothing more (factorisation theorem).

    Attributes:
        table: What draws the labels.
        labels: How many are released, at least 1.
        votes_in: Teachers that vote 1 in world "in", in 0..k.
        votes_out: The same in world "out"; the same number or one more or less.

    Raises:
        SettingsError: If a count is outside its range or the worlds are not neighbours.
    """

    table: VoteTable
    labels: int
    votes_in: int
    votes_out: int

    def __post_init__(self) -> None:
        if self.labels < 1:
            raise SettingsError(f"`labels` is {self.labels}: release at least 1")
        for world, votes in (("in", self.votes_in), ("out", self.votes_out)):
            if not 0 <= votes <= self.table.teachers:
                raise SettingsError(
                    f'{votes} votes in world "{world}" are not in 0..{self.table.teachers}: '
                    "choose how many teachers vote 1"
                )
        if abs(self.votes_in - self.votes_out) > 1:
            raise SettingsError(
                f"{self.votes_in} and {self.votes_out} votes differ by more than one teacher: "
                "one record moves one vote"
            )

    @classmethod
    def at_tie(cls, table: VoteTable, *, labels: int) -> VotePair:
        """Votes at the tie, where one vote changes the probability of a label most.

        Args:
            table: What draws the labels.
            labels: How many are released.

        Returns:
            The pair.
        """
        tie = table.teachers // 2
        return cls(table=table, labels=labels, votes_in=tie + 1, votes_out=tie)

    @cached_property
    def telling(self) -> int:
        """The label, 0 or 1, that is no less likely in world "in"."""
        thresholds = self.table.thresholds
        return int(thresholds[self.votes_in] >= thresholds[self.votes_out])

    @cached_property
    def rates(self) -> Rates:
        """The probability of the telling label: in world "in" never the smaller one."""
        one = 1 << self.table.bits
        ones = (self.table.thresholds[votes] for votes in (self.votes_in, self.votes_out))
        return Rates(*((p if self.telling else one - p) / one for p in ones))

    @cached_property
    def cuts(self) -> LikelihoodRatioCuts:
        """The likelihood-ratio tests: the ratio grows with the count of telling labels.

        No attack has fewer errors of both kinds (Neyman and Pearson 1933), and nothing has to be
        fitted: both distributions are known before a single label is drawn.
        """
        low = max(1, int(binomial.ppf(_NEVER, self.labels, self.rates.out)))
        high = min(self.labels, int(binomial.isf(_NEVER, self.labels, self.rates.in_)) + 1)
        first = np.arange(low, high + 1, dtype=np.int64)
        return LikelihoodRatioCuts(
            first=first,
            fnr=binomial.cdf(first - 1, self.labels, self.rates.in_),
            fpr=binomial.sf(first - 1, self.labels, self.rates.out),
        )

    def leak(self, delta: float) -> float:
        """The exact privacy loss of these votes, from the table without any draw.

        The hockey-stick divergence of two distributions is attained by a likelihood-ratio test
        (Kairouz, Oh and Viswanath 2015, Theorem 2.1, holds with equality for the best one).

        Args:
            delta: δ, in [0, 1). At 0 the counts left out of `cuts` would cost a little more.

        Returns:
            The smallest ε for which the pair is (ε, δ)-indistinguishable; may be infinite.
        """
        with np.errstate(divide="ignore"):
            return max(0.0, float(np.max(statistic(self.cuts.fnr, self.cuts.fpr, delta))))


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
    """The minimum detectable leak: that of the same votes on more labels.

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
