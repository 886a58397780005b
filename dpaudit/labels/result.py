"""What an audit of released labels found, as an object, as a JSON document and as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from dpaudit.bounds import Counts
from dpaudit.formatting import (
    TERMINAL_WIDTH,
    clipped,
    percent,
    printable,
    rounded,
    rounded_down,
    rounded_up,
)
from dpaudit.model.choices import Drawing
from dpaudit.model.claim import PrivacyClaim
from dpaudit.plugins.protocols import World
from dpaudit.results import sentences
from dpaudit.results.document import Document
from dpaudit.results.verdict import Verdict


class LabelAttack(NamedTuple):
    """How the worlds are told apart.

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
        detectable_epsilon: The smallest leak caught with 80 % power; None if there is none.
        teachers: How many teachers vote.
        noise: What draws the labels, in words.
        labels: Labels that each run releases.
        votes: Teachers that vote 1, in each world.
        attack: How the worlds are told apart.
        counts: The errors of that.
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
        """At most nine lines of 80 characters, the verdict first."""
        return "\n".join(clipped(printable(line), TERMINAL_WIDTH) for line in self._lines())

    def _lines(self) -> Iterator[str]:
        claim, counts = self.claim, self.counts
        yield self.headline
        yield f"claim: ({rounded(claim.epsilon)}, {rounded(claim.delta)})-DP; {claim.source}"
        votes_in, votes_out = self.votes[World.IN], self.votes[World.OUT]
        votes = f"{votes_in} (in) or {votes_out} (out) of {self.teachers} votes"
        yield f"drawn: {self.runs} runs per world of {self.labels} labels, {votes}"
        yield f"mechanism: {self.noise}"
        yield (
            f'attack: "in" from {self.attack.guesses_in_from} labels {self.attack.telling_label} '
            f"on; missed {counts.false_negatives} in, mistook {counts.false_positives} out"
        )
        highest = rounded_down(self.max_provable_epsilon)
        yield (
            f"bound: {rounded_down(self.proved)} at {percent(self.confidence)} confidence; "
            f"a perfect attack would prove {highest}"
        )
        if self.estimate_if_gaussian is not None:
            estimate = rounded(self.estimate_if_gaussian)
            yield f"estimate, not a proof: {estimate} if the mechanism is Gaussian"
        leak = self.leak_of_the_table
        shown = "without limit" if leak is None else rounded_up(leak)
        yield f"by the table itself these votes leak {shown}"
        if self.detectable_epsilon is not None:
            caught = rounded_up(self.detectable_epsilon)
            yield f"a leak of {caught} would have been caught with 80 % power"
