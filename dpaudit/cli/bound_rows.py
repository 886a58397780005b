"""The bounds of a finished run, recomputed: what `dpaudit bounds` shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dpaudit.bounds import attack_confidence, guarantee_of
from dpaudit.bounds.table import BOUNDS, entries_for
from dpaudit.formatting import Row, aligned, headed, percent, rounded, rounded_down
from dpaudit.model.choices import Assumption
from dpaudit.model.claim import Quantity
from dpaudit.model.currencies import EpsilonClaim
from dpaudit.results.game import AttackOutcome, Evidence
from dpaudit.results.phrases import claim_and_relation
from dpaudit.results.record import AuditRecord
from dpaudit.results.verdict import Verdict


class NoProof(StrEnum):
    """Why a number is no proof."""

    ESTIMATE = "estimate, not a proof"
    """It may exceed the true epsilon more often than the confidence allows."""
    POST_HOC = "post hoc, not a proof"
    """Delta or confidence were chosen when the counts could be seen."""
    INVALID = "invalid, not a proof"
    """The audit itself is not valid."""
    NOT_CHOSEN = "not chosen before, not a proof"
    """The run was scored by the other rule, which was chosen before its trials were scored."""
    COMPARED = "for comparison, does not decide"
    """It holds by itself; the rule that decides was chosen before the trials were scored."""
    NOT_KEPT = "cannot be recomputed"
    """The sequential bound needs every bet in order, which a result does not hold."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The settings at which the bounds of a finished run are computed.

    Attributes:
        result: The run.
        delta: Delta; None if the claim of the run has none.
        confidence: Confidence of all bounds together.
        assume: What estimates may assume.
    """

    result: AuditRecord
    delta: float | None
    confidence: float
    assume: Assumption | None

    @property
    def post_hoc(self) -> bool:
        """Whether delta or confidence are others than the run was made for."""
        run = self.result
        return (self.delta, self.confidence) != (delta_of(run), run.confidence)

    @property
    def attack_confidence(self) -> float:
        """Confidence of each bound of each attack, shared as in the run."""
        return attack_confidence(
            self.confidence,
            self.result.multiplicity.hypotheses,
            sequential=self.result.game.may_stop,
            others=self.result.multiplicity.probes or 0.0,
        )

    @property
    def flaw(self) -> NoProof | None:
        """Why no bound of this run proves anything at these settings; None if they do."""
        if self.result.verdict is Verdict.INVALID:
            return NoProof.INVALID
        return NoProof.POST_HOC if self.post_hoc else None

    @property
    def shared(self) -> str:
        """How the error probability is shared, and at which delta the bounds hold."""
        run = self.result
        at = f"{percent(self.confidence)} confidence{self._at(self.delta)}"
        attacks = run.multiplicity.hypotheses
        shared = "" if attacks == 1 else f", shared by {attacks} attacks"
        return f"{at}{shared}{', half for each bound' if run.game.may_stop else ''}"

    @property
    def own(self) -> str:
        """What the run itself was made for."""
        return f"{percent(self.result.confidence)} confidence{self._at(delta_of(self.result))}"

    def _at(self, delta: float | None) -> str:
        return "" if delta is None else f" at delta {rounded(delta)}"


def delta_of(run: AuditRecord) -> float | None:
    """Delta of the claim of a run; None if it has none."""
    return run.claim.delta if isinstance(run.claim, EpsilonClaim) else None


def rows_of(asked: Asked) -> list[dict[str, Any]]:
    """Every bound and estimate of a run, as the JSON document has them."""
    run = asked.result
    if asked.delta is None:
        return [row for attack in run.attacks for row in _level_rows(attack, asked)]
    return [row for evidence in run.game.evidence(run) for row in _rows(evidence, asked)]


def _level_rows(attack: AttackOutcome, asked: Asked) -> Iterator[dict[str, Any]]:
    """Bounds on what a claim without delta limits."""
    claim, confidence = asked.result.claim, asked.attack_confidence
    found = guarantee_of(claim).bounds(attack.counts, confidence=confidence)
    for key, value in found.items():
        yield _row(attack.name, key, value, asked.flaw, claim.quantity)


def _rows(evidence: Evidence, asked: Asked) -> Iterator[dict[str, Any]]:
    for entry in entries_for(evidence.observed):
        not_chosen = NoProof.NOT_CHOSEN if entry.decides else NoProof.COMPARED
        why_not = asked.flaw or (None if evidence.chosen else not_chosen)
        if evidence.given is None:
            why, value = (
                (NoProof.NOT_KEPT, None) if asked.post_hoc else (why_not, evidence.recorded)
            )
            yield _row(evidence.attack, entry.key, value, why)
        elif entry.assumption in (None, asked.assume) and not (evidence.estimates and entry.valid):
            value = entry.function(
                *evidence.given, delta=asked.delta, confidence=asked.attack_confidence
            )
            yield _row(
                evidence.attack, entry.key, value, why_not if entry.valid else NoProof.ESTIMATE
            )


def _row(
    attack: str,
    method: StrEnum,
    value: float | None,
    why_not: NoProof | None,
    quantity: Quantity = Quantity.EPSILON,
) -> dict[str, Any]:
    """One bound; it is valid unless there is a reason against it."""
    return {
        "attack": attack,
        "method": method.value,
        quantity.value: value,
        "valid": why_not is None,
        "reason": why_not and why_not.value,
    }


def lines_of(asked: Asked, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The bounds of a run for a terminal: the largest that is proved, then all of them."""
    claim = asked.result.claim
    quantity, noun = claim.quantity.value, claim.quantity.noun
    labels = {entry.key.value: entry.label for entry in BOUNDS}
    table = [("attack", "bound", noun, "")]
    for row in rows:
        label = labels.get(row["method"], row["method"])
        table.append((row["attack"], label, rounded_down(row[quantity]), row["reason"] or ""))
    facts = [Row("claim", claim_and_relation(claim)), Row("bounds", asked.shared)]
    if asked.post_hoc:
        facts.append(Row("post hoc", f"chosen after the run, which was made for {asked.own}"))
    proved = [row for row in rows if row["valid"] and row[quantity] is not None]
    found = "none of these numbers is a proof"
    if proved:
        most = max(proved, key=lambda row: row[quantity])
        found = f"{noun} at least {rounded_down(most[quantity])} ({most['attack']})"
    return [*headed(f"BOUNDS  {found}", facts), "", *aligned(table, numeric={2})]
