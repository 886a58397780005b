"""The white-box audit of released labels: compares their privacy loss with the accounted one.

The proof of PATE protects the label bits, and everything a generator does with them is
post-processing. This attack sees the bits themselves, on the worst pair of tables, and knows both
worlds exactly. It is the optimal attack and takes seconds, so it shows both whether the proof is
broken and whether it is loose.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpaudit.bounds import Counts, exact, gdp, max_provable, upper_limits
from dpaudit.formatting import (
    Row,
    headed,
    printable,
    rounded,
    rounded_down,
    rounded_up,
)
from dpaudit.labels.settings import LabelAuditSettings
from dpaudit.labels.vote_pair import RunSize, VotePair, choose_cuts, detectable_leak
from dpaudit.model.choices import Drawing
from dpaudit.model.claim import PrivacyClaim
from dpaudit.plugins.protocols import IntArray, World
from dpaudit.results import sentences
from dpaudit.results.decide import decide
from dpaudit.results.document import Document
from dpaudit.results.phrases import claim_and_relation, detects_from
from dpaudit.results.verdict import Power, SampleUnit, Verdict
from dpaudit.seeds import Stream

_CHUNK = 2**21
"""Labels drawn at once."""


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
    return run_label_audit(pair, claim, settings)


def run_label_audit(
    pair: VotePair, claim: PrivacyClaim, settings: LabelAuditSettings
) -> LabelAudit:
    """Audits released labels under given settings; `audit_labels` says how.

    Args:
        pair: What draws the labels; its table must be `quantised()` to draw bits.
        claim: What was claimed for them, by whatever accountant.
        settings: Everything else that is chosen.

    Returns:
        The result.

    Raises:
        SettingsError: If more bits are asked for than can be drawn in minutes.
    """
    settings.require_drawable(pair.labels)
    runs, confidence = settings.runs, settings.confidence
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
    highest = max_provable(runs, runs, delta=claim.delta, confidence=confidence)
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
    def probe_alarms(self) -> tuple[()]:
        """None: the label bits are simulated, no generator is trained."""
        return ()

    @property
    def failed_parts(self) -> tuple[str, ...]:
        """Nothing: a simulation has no controls that could fail."""
        return ()

    @property
    def headline(self) -> str:
        """The verdict in one line."""
        return sentences.headline(self)

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
