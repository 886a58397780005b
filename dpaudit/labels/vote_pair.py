"""Two worlds whose votes differ by one teacher: the subject of a label mechanism's proof."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpaudit.account import VoteTable
from dpaudit.bounds import binomial, statistic
from dpaudit.errors import SettingsError
from dpaudit.plugins.protocols import FloatArray, IntArray

_NEVER = 1e-15
"""Counts less likely than this are left out: no audit of fewer than 10^14 runs meets one."""


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
        """What these votes cost by the table, exactly and without a draw.

        The hockey-stick divergence of two distributions is attained by a likelihood-ratio test
        (Kairouz, Oh and Viswanath 2015, Theorem 2.1, holds with equality for the best one).

        Args:
            delta: δ, in [0, 1). At 0 the counts left out of `cuts` would cost a little more.

        Returns:
            The smallest ε for which the pair is (ε, δ)-indistinguishable; may be infinite.
        """
        with np.errstate(divide="ignore"):
            return max(0.0, float(np.max(statistic(self.cuts.fnr, self.cuts.fpr, delta))))
