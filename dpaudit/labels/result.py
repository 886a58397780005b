"""What an audit of released labels found, as an object, as a JSON document and as text."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

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
from dpaudit.labels.settings import LabelAuditSettings
from dpaudit.labels.vote_pair import VotePair
from dpaudit.model.claim import PrivacyClaim
from dpaudit.results import sentences
from dpaudit.results.verdict import Decision, Power, Verdict


@dataclass(frozen=True, kw_only=True)
class LabelAudit:
    """What the audit found.

    Attributes:
        claim: The claim under audit.
        pair: What drew the labels in either world.
        settings: Every choice of the audit.
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
    settings: LabelAuditSettings
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

    @property
    def proved(self) -> float:
        """The bound, which decides the verdict."""
        return self.bound

    @property
    def confidence(self) -> float:
        """One-sided confidence of the bound."""
        return self.settings.confidence

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

    def to_document(self) -> dict[str, Any]:
        """The result as a JSON object."""
        pair, claim, leak = self.pair, self.claim, self.pair.leak(self.claim.delta)
        return {
            "verdict": self.verdict.value,
            "reasons": list(self.decision.reasons),
            "claim": {"epsilon": claim.epsilon, "delta": claim.delta, "source": claim.source},
            "proved": self.bound,
            "confidence": self.settings.confidence,
            "estimate_if_gaussian": self.estimate,
            "leak_of_the_table": leak if math.isfinite(leak) else None,
            "max_provable_epsilon": self.power.max_provable,
            "detectable_epsilon": self.power.detectable,
            "teachers": pair.table.teachers,
            "noise": pair.table.noise,
            "labels": pair.labels,
            "votes": {"in": pair.votes_in, "out": pair.votes_out},
            "attack": {"telling_label": pair.telling, "guesses_in_from": self.guesses_in_from},
            "counts": dict(zip(Counts.__dataclass_fields__, self.counts, strict=True)),
            "runs": self.settings.runs,
            "seed": self.settings.seed,
            "drawing": self.settings.drawing.value,
        }

    def to_json(self) -> str:
        """The result as JSON text."""
        return json.dumps(self.to_document(), indent=2, allow_nan=False)

    def __str__(self) -> str:
        """At most nine lines of 80 characters, the verdict first."""
        return "\n".join(clipped(printable(line), TERMINAL_WIDTH) for line in self._lines())

    def _lines(self) -> Iterator[str]:
        pair, claim, counts = self.pair, self.claim, self.counts
        yield self.headline
        yield f"claim: ({rounded(claim.epsilon)}, {rounded(claim.delta)})-DP; {claim.source}"
        votes = f"{pair.votes_in} (in) or {pair.votes_out} (out) of {pair.table.teachers} votes"
        yield f"drawn: {self.settings.runs} runs per world of {pair.labels} labels, {votes}"
        yield f"mechanism: {pair.table.noise}"
        yield (
            f'attack: "in" from {self.guesses_in_from} labels {pair.telling} on; missed '
            f"{counts.false_negatives} in, mistook {counts.false_positives} out"
        )
        highest = rounded_down(self.power.max_provable)
        yield (
            f"bound: {rounded_down(self.bound)} at {percent(self.settings.confidence)} confidence; "
            f"a perfect attack would prove {highest}"
        )
        if self.estimate is not None:
            yield f"estimate, not a proof: {rounded(self.estimate)} if the mechanism is Gaussian"
        leak = pair.leak(claim.delta)
        shown = rounded_up(leak) if math.isfinite(leak) else "without limit"
        yield f"by the table itself these votes leak {shown}"
        if self.power.detectable is not None:
            caught = rounded_up(self.power.detectable)
            yield f"a leak of {caught} would have been caught with 80 % power"
