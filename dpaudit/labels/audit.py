"""The white-box audit of released labels: compares their privacy loss with the accounted one.

The proof of PATE protects the label bits, and everything a generator does with them is
post-processing. This attack sees the bits themselves, on the worst pair of tables, and knows both
worlds exactly. It is the optimal attack and takes seconds, so it shows both whether the proof is
broken and whether it is loose. The worlds, the attack and what it can detect follow from the known
distributions, before a single label is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy

from dpaudit.account import VoteTable
from dpaudit.bounds import (
    Counts,
    binomial,
    exact,
    gdp,
    statistic,
    upper_limits,
)
from dpaudit.errors import SettingsError
from dpaudit.formatting import (
    Row,
    headed,
    printable,
    rounded,
    rounded_down,
    rounded_up,
)
from dpaudit.labels.settings import LabelAuditSettings
from dpaudit.model.choices import Drawing
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.setting import AT_LEAST_1, check_number
from dpaudit.plugins.protocols import FloatArray, IntArray, World
from dpaudit.results import sentences
from dpaudit.results.decide import decide
from dpaudit.results.document import Document
from dpaudit.results.phrases import claim_and_relation, detects_from
from dpaudit.results.verdict import POWER, Power, SampleUnit, Verdict
from dpaudit.seeds import Stream

_CHUNK = 2**21
"""Labels drawn at once."""
_NEVER = 1e-15
"""Probability below which counts are left out; they do not occur in fewer than 10^14 runs."""
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
        first: The attack guesses "in" if at least this many labels are telling; shape [m].
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
        check_number("labels", self.labels, AT_LEAST_1)
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
        """The label, 0 or 1, that is at least as likely in world "in" as in world "out"."""
        thresholds = self.table.thresholds
        return int(thresholds[self.votes_in] >= thresholds[self.votes_out])

    @cached_property
    def rates(self) -> Rates:
        """The probability of the telling label in each world."""
        whole = 1 << self.table.bits
        ones = (self.table.thresholds[votes] for votes in (self.votes_in, self.votes_out))
        return Rates(*((p if self.telling else whole - p) / whole for p in ones))

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
    mu = -scipy.special.ndtri(fn_upper) - scipy.special.ndtri(fp_upper)
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
    missed, enough = 0, pair.labels
    while not caught(enough):
        missed, enough = enough, 2 * enough
        if enough > _MOST_LABELS * pair.labels:
            return None
    while enough - missed > 1:
        middle = (missed + enough) // 2
        missed, enough = (missed, middle) if caught(middle) else (middle, enough)
    return replace(pair, labels=enough).leak(claim.delta)


def audit_labels(
    pair: VotePair,
    claim: PrivacyClaim,
    *,
    runs: int = LabelAuditSettings.runs,
    seed: int = LabelAuditSettings.seed,
    confidence: float = LabelAuditSettings.confidence,
    drawing: Drawing = LabelAuditSettings.drawing,
) -> LabelAudit:
    """Draws labels in both worlds, distinguishes the worlds, and bounds ε.

    The attack is the likelihood-ratio test at the threshold whose expected errors give the largest
    bound. It is chosen from the known distributions alone, so every run is scored.

    Args:
        pair: What draws the labels; its table must be `quantised()` to draw bits.
        claim: What was claimed for them, by whatever accountant.
        runs: As in `LabelAuditSettings`, like all that follow.
        seed: Root of the random streams.
        confidence: One-sided confidence of the bound, in (0.5, 1).
        drawing: What to simulate.

    Returns:
        The result.

    Raises:
        SettingsError: If a setting is out of range, or more bits are asked for than can be drawn in
            minutes.
    """
    settings = LabelAuditSettings(runs=runs, seed=seed, confidence=confidence, drawing=drawing)
    settings.require_drawable(pair.labels)
    size = RunSize(runs, claim.delta, upper_limits(runs, (1.0 - confidence) / 2.0))
    chosen = choose_cuts(pair, size)
    telling = {
        world: _draw(pair, votes, settings, world=world)
        for world, votes in (("in", pair.votes_in), ("out", pair.votes_out))
    }

    def errors(cut: int) -> Counts:
        first = pair.cuts.first[cut]
        missed = int(np.count_nonzero(telling["in"] < first))
        mistaken = int(np.count_nonzero(telling["out"] >= first))
        return Counts(missed, mistaken, runs, runs)

    counts = errors(chosen.for_bound)
    bound = exact(*counts, delta=claim.delta, confidence=confidence)
    estimate = None
    if claim.delta > 0.0:
        estimate = gdp(
            *errors(chosen.for_estimate),
            delta=claim.delta,
            confidence=confidence,
            assume="gaussian",
        )
    caught = None if bound > claim.epsilon else detectable_leak(pair, claim, size)
    highest = exact(0, 0, runs, runs, delta=claim.delta, confidence=confidence)
    power = Power(highest, caught)
    decision = decide(bound, claim, power, checks=[], confidence=confidence, unit=SampleUnit.RUNS)
    leak = pair.leak(claim.delta)
    return LabelAudit(
        verdict=decision.verdict,
        reasons=decision.reasons,
        claim=claim,
        proved=bound,
        confidence=confidence,
        estimate_if_gaussian=estimate,
        leak_of_the_table=leak if math.isfinite(leak) else None,
        max_provable_epsilon=highest,
        detectable_epsilon=caught,
        teachers=pair.table.teachers,
        noise=pair.table.noise,
        labels=pair.labels,
        votes={World.IN: pair.votes_in, World.OUT: pair.votes_out},
        attack=LabelAttack(pair.telling, int(pair.cuts.first[chosen.for_bound])),
        counts=counts,
        runs=runs,
        seed=settings.seed,
        drawing=settings.drawing,
    )


def _draw(pair: VotePair, votes: int, settings: LabelAuditSettings, *, world: str) -> IntArray:
    """How many telling labels each run of one world released, shape [runs]."""
    runs = settings.runs
    rng = Stream(settings.seed, "label-audit", settings.drawing, world=world).rng()
    if settings.drawing is Drawing.COUNTS:
        rate = pair.rates.in_ if votes == pair.votes_in else pair.rates.out
        return np.asarray(rng.binomial(pair.labels, rate, runs), dtype=np.int64)
    # Memory is bounded by a chunk of runs, and by one run where that is longer.
    at_once = max(1, _CHUNK // pair.labels)
    counts = []
    for start in range(0, runs, at_once):
        shape = (min(at_once, runs - start), pair.labels)
        words = rng.integers(0, 2**64, size=shape, dtype=np.uint64)
        labels = pair.table.release(np.full(shape, votes), words)
        counts.append(np.count_nonzero(labels == pair.telling, axis=1))
    return np.concatenate(counts)


class LabelAttack(NamedTuple):
    """The attack that distinguishes the worlds.

    Attributes:
        telling_label: The label that is no less likely in world "in".
        guesses_in_from: The attack guesses "in" from this count of telling labels on.
    """

    telling_label: int
    guesses_in_from: int


@dataclass(frozen=True, kw_only=True)
class LabelAudit(Document):
    """What the audit found.

    Attributes:
        verdict: Violation, consistent or inconclusive.
        reasons: Why, the most important first.
        claim: The claim under audit.
        proved: Proved lower bound on ε, which decides the verdict.
        confidence: One-sided confidence of the bound.
        estimate_if_gaussian: ε if the mechanism is Gaussian, from the errors at the cut that is
            best for it: an estimate, not a proof; None at δ = 0.
        leak_of_the_table: What the votes cost by the table itself; None if that is infinite.
        max_provable_epsilon: What a perfect attack would prove.
        detectable_epsilon: The minimum detectable epsilon (80 % power); None if there is none.
        teachers: How many teachers vote.
        noise: What draws the labels, in words.
        labels: Labels that each run releases.
        votes: Teachers that vote 1, in each world.
        attack: The attack that distinguishes the worlds.
        counts: Its errors.
        runs: Simulated runs of each world.
        seed: Root of the random streams.
        drawing: What was simulated.
    """

    schema_version = 1

    verdict: Verdict
    reasons: tuple[str, ...]
    claim: PrivacyClaim
    proved: float
    confidence: float
    estimate_if_gaussian: float | None
    leak_of_the_table: float | None
    max_provable_epsilon: float
    detectable_epsilon: float | None
    teachers: int
    noise: str
    labels: int
    votes: Mapping[World, int]
    attack: LabelAttack
    counts: Counts
    runs: int
    seed: int
    drawing: Drawing

    @property
    def power(self) -> Power:
        """The upper limit and the power of this many runs."""
        return Power(self.max_provable_epsilon, self.detectable_epsilon)

    @property
    def headline(self) -> str:
        """The verdict in one line."""
        return sentences.headline(
            sentences.Conclusion(self.verdict, self.claim, self.proved, self.confidence, self.power)
        )

    def __str__(self) -> str:
        """The verdict, then a label and a fact in each row; 80 columns."""
        return "\n".join(headed(self.headline, self._rows()))

    def _rows(self) -> Iterator[Row]:
        claim, counts = self.claim, self.counts
        name = claim_and_relation(claim)
        source, _, _ = claim.source.partition("; ")  # the JSON document has all of it
        yield Row("claim", printable(f"{name}; {source}"))
        highest = rounded_down(self.max_provable_epsilon)
        yield Row(
            "bound",
            f"{rounded_down(self.proved)}; at most {highest} with {self.runs} runs per world",
        )
        yield Row(
            "attack",
            f"guesses member if {self.attack.guesses_in_from} or more labels are "
            f"{self.attack.telling_label}: FNR {counts.false_negatives}/{counts.n_in}, FPR "
            f"{counts.false_positives}/{counts.n_out}",
        )
        votes_in, votes_out = self.votes[World.IN], self.votes[World.OUT]
        votes = f"{votes_in} (in) or {votes_out} (out) of {self.teachers} votes"
        yield Row("labels", f"{self.labels} in each run; {votes}")
        yield Row("noise", printable(self.noise))
        if self.estimate_if_gaussian is not None:
            estimate = rounded(self.estimate_if_gaussian)
            yield Row("estimate", f"{estimate} if the mechanism is Gaussian; not a bound")
        leak = self.leak_of_the_table
        shown = "unlimited" if leak is None else rounded_up(leak)
        yield Row("exact", f"the leak of these votes, computed from the vote table, is {shown}")
        yield Row("power", detects_from(self.power, claim))
