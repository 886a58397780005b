"""The white-box audit of released labels: does what draws them cost what was accounted?

The proof of PATE protects the label bits, and everything a generator does with them is
post-processing. This attack sees the bits themselves, on the worst pair of tables, and knows both
worlds exactly. It is as strong as an attack can be, costs seconds, and so shows both whether the
proof is broken and whether it is loose.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import binom

from dpaudit.auditing.plan import POWER, Power
from dpaudit.auditing.verdict import Decision, Played, Verdict, decide
from dpaudit.bounds import Counts, exact, gdp, max_provable, statistic, upper_limits
from dpaudit.errors import SettingsError
from dpaudit.formatting import (
    TERMINAL_WIDTH,
    clipped,
    percent,
    printable,
    rounded,
    rounded_down,
    rounded_up,
)
from dpaudit.labels.vote_pair import VotePair
from dpaudit.model.claim import PrivacyClaim
from dpaudit.plugins.protocols import FloatArray, IntArray
from dpaudit.report.words import headline
from dpaudit.seeds import Stream

DEFAULT_RUNS = 100_000
MOST_RUNS = 1_000_000
"""Of each world; the exact bound takes a minute or two there."""
MOST_BITS = 2**32
"""Of both worlds together; a minute or two."""
_CHUNK = 2**21
_MOST_LABELS = 2**14
# Statistics that agree to this many digits are tied: the choice must not hang on rounding.
_DIGITS = 12


class Drawing(StrEnum):
    """What is simulated in each run."""

    BITS = "bits"
    """Every label, through `VoteTable.release`: the sampler that a generator draws from."""
    COUNTS = "counts"
    """Their number only, binomial with the table's probability: for millions of labels.

    The attack loses nothing, but a defect of the sampler would go unseen.
    """


@dataclass(frozen=True, kw_only=True)
class LabelAudit:
    """What the audit found.

    Attributes:
        claim: The claim under audit.
        pair: What drew the labels in either world.
        runs: Simulated runs of each world.
        seed: Root of the random streams.
        confidence: One-sided confidence of the bound.
        drawing: What was simulated.
        guesses_in_from: The attack guessed "in" from this count of telling labels on.
        counts: Its errors.
        bound: Proved lower bound on ε.
        estimate: ε if the mechanism is Gaussian, from the errors at the cut that is best for it:
            an estimate, not a proof; None at δ = 0.
        power: What this audit could prove.
        decision: The verdict and its reasons.
    """

    claim: PrivacyClaim
    pair: VotePair
    runs: int
    seed: int
    confidence: float
    drawing: Drawing
    guesses_in_from: int
    counts: Counts
    bound: float
    estimate: float | None
    power: Power
    decision: Decision

    @property
    def verdict(self) -> Verdict:
        """Violation, consistent or inconclusive."""
        return self.decision.verdict

    def document(self) -> dict[str, Any]:
        """The result as a JSON document."""
        pair, claim, leak = self.pair, self.claim, self.pair.leak(self.claim.delta)
        return {
            "verdict": self.verdict.value,
            "reasons": self.decision.reasons,
            "claim": {"epsilon": claim.epsilon, "delta": claim.delta, "source": claim.source},
            "proved": self.bound,
            "confidence": self.confidence,
            "estimate_if_gaussian": self.estimate,
            "leak_of_the_table": leak if math.isfinite(leak) else None,
            "max_provable_epsilon": self.power.max_provable_epsilon,
            "detectable_epsilon": self.power.detectable_epsilon,
            "teachers": pair.table.teachers,
            "noise": pair.table.noise,
            "labels": pair.labels,
            "votes": {"in": pair.votes_in, "out": pair.votes_out},
            "attack": {"telling_label": pair.telling, "guesses_in_from": self.guesses_in_from},
            "counts": dict(zip(Counts.__dataclass_fields__, self.counts, strict=True)),
            "runs": self.runs,
            "seed": self.seed,
            "drawing": self.drawing.value,
        }

    def __str__(self) -> str:
        """At most nine lines of 80 characters, the verdict first."""
        return "\n".join(clipped(printable(line), TERMINAL_WIDTH) for line in self._lines())

    def _lines(self) -> Iterator[str]:
        pair, claim, counts = self.pair, self.claim, self.counts
        yield headline(self.document())
        yield f"claim: ({rounded(claim.epsilon)}, {rounded(claim.delta)})-DP; {claim.source}"
        votes = f"{pair.votes_in} (in) or {pair.votes_out} (out) of {pair.table.teachers} votes"
        yield f"played: {self.runs} runs per world of {pair.labels} labels, {votes}"
        yield f"mechanism: {pair.table.noise}"
        yield (
            f'attack: "in" from {self.guesses_in_from} labels {pair.telling} on; missed '
            f"{counts.false_negatives} in, mistook {counts.false_positives} out"
        )
        highest = rounded_down(self.power.max_provable_epsilon)
        yield (
            f"bound: {rounded_down(self.bound)} at {percent(self.confidence)} confidence; "
            f"a perfect attack would prove {highest}"
        )
        if self.estimate is not None:
            yield f"estimate, not a proof: {rounded(self.estimate)} if the mechanism is Gaussian"
        leak = pair.leak(claim.delta)
        shown = rounded_up(leak) if math.isfinite(leak) else "without limit"
        yield f"by the table itself these votes leak {shown}"
        if self.power.detectable_epsilon is not None:
            caught = rounded_up(self.power.detectable_epsilon)
            yield f"a leak of {caught} would have been caught with 80 % power"


class _Size(NamedTuple):
    """How many runs of each world, and the Clopper-Pearson limits for their errors."""

    runs: int
    delta: float
    upper: FloatArray

    def counts(self, rates: FloatArray, *, quantile: float | None = None) -> IntArray:
        """The errors to expect at these rates, or a quantile of their number."""
        expected = np.rint(self.runs * rates)
        errors = expected if quantile is None else binom.ppf(quantile, self.runs, rates)
        return np.asarray(errors, dtype=np.int64)


class _Chosen(NamedTuple):
    """Positions in `VotePair.cuts`."""

    for_bound: int
    for_estimate: int


def audit_labels(
    pair: VotePair,
    claim: PrivacyClaim,
    *,
    runs: int = DEFAULT_RUNS,
    seed: int = 0,
    confidence: float = 0.95,
    drawing: Drawing | str = Drawing.BITS,
) -> LabelAudit:
    """Draw labels in both worlds, tell the worlds apart, and bound ε.

    The attack is the likelihood-ratio test at the cut whose expected errors promise the largest
    bound. It is chosen from the known distributions alone, so that every run is scored.

    Args:
        pair: What draws the labels; its table must be `quantised()` to draw bits.
        claim: What was claimed for them, by whatever accountant.
        runs: Simulated runs of each world, in 1..1,000,000.
        seed: Root of the random streams.
        confidence: One-sided confidence of the bound, in (0.5, 1).
        drawing: What to simulate.

    Returns:
        The finding.

    Raises:
        SettingsError: If a setting is out of range, or more bits are asked for than minutes draw.
    """
    if not 1 <= runs <= MOST_RUNS:
        raise SettingsError(f"runs is {runs}: simulate 1 to {MOST_RUNS} runs of each world.")
    if not 0.5 < confidence < 1.0:
        raise SettingsError(f"confidence is {confidence}: choose it in (0.5, 1).")
    if drawing not in list(Drawing):
        raise SettingsError(f"drawing is {drawing!r}: use {' or '.join(Drawing)}.")
    drawing = Drawing(drawing)
    if drawing is Drawing.BITS and 2 * runs * pair.labels > MOST_BITS:
        raise SettingsError(
            f"{runs} runs of {pair.labels} labels are too many bits to draw one by one: use "
            "fewer runs, or draw their counts (--draw counts)."
        )
    size = _Size(runs, claim.delta, upper_limits(runs, (1.0 - confidence) / 2.0))
    chosen = _choose(pair, size)
    telling = {
        world: _draw(pair, votes, runs, drawing, Stream(seed, "label-audit", drawing, world=world))
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
    caught = None if bound > claim.epsilon else _detectable(pair, claim, size)
    highest = max_provable(runs, runs, delta=claim.delta, confidence=confidence)
    power = Power(highest, caught)
    return LabelAudit(
        claim=claim,
        pair=pair,
        runs=runs,
        seed=seed,
        confidence=confidence,
        drawing=drawing,
        guesses_in_from=int(pair.cuts.first[chosen.for_bound]),
        counts=counts,
        bound=bound,
        estimate=estimate,
        power=power,
        decision=decide(bound, claim, power, checks=[], confidence=confidence, played=Played.RUNS),
    )


def _choose(pair: VotePair, size: _Size) -> _Chosen:
    """The cuts that promise most; equal votes promise nothing, and get the most even cut."""
    cuts = pair.cuts
    fn_upper = size.upper[size.counts(cuts.fnr)]
    fp_upper = size.upper[size.counts(cuts.fpr)]
    # Clipped at 0: below, the statistic favours cuts that put nearly all runs on one side.
    bound = np.round(np.maximum(statistic(fn_upper, fp_upper, size.delta), 0.0), _DIGITS)
    youden = np.round(1.0 - cuts.fnr - cuts.fpr, _DIGITS)
    best = np.lexsort((np.abs(cuts.fnr - cuts.fpr), -youden, -bound))[0]
    mu = -ndtri(fn_upper) - ndtri(fp_upper)
    return _Chosen(for_bound=int(best), for_estimate=int(np.argmax(mu)))


def _draw(pair: VotePair, votes: int, runs: int, drawing: Drawing, stream: Stream) -> IntArray:
    """How many telling labels each run of one world released, shape [runs]."""
    rng = stream.rng()
    if drawing is Drawing.COUNTS:
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


def _detectable(pair: VotePair, claim: PrivacyClaim, size: _Size) -> float | None:
    """The leak that would have been caught: that of the same votes on more labels than these.

    Each world's errors stay within their quantile at √0.8, both with probability 0.8 at least,
    and the bound is then no lower than the Clopper-Pearson one at the two quantiles.

    Returns:
        ε of the smallest number of labels that is caught; None if not even 2^14 times as many.
    """

    def caught(labels: int) -> bool:
        larger = replace(pair, labels=labels)
        cut = _choose(larger, size).for_bound
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
