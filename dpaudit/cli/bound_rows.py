"""The bounds of a finished run, recomputed: what `dpaudit bounds` shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dpaudit.bounds import attack_confidence, guarantee_of
from dpaudit.bounds.table import Estimate, Observed, ValidBound, entries_for
from dpaudit.formatting import rounded
from dpaudit.model.choices import Assumption
from dpaudit.model.claim import PrivacyClaim, Quantity
from dpaudit.results.record import AttackOutcome, AuditRecord
from dpaudit.results.verdict import Verdict


class NoProof(StrEnum):
    """Why a number is no proof."""

    ESTIMATE = "estimate, not a proof"
    """It may exceed the true epsilon more often than the confidence admits."""
    POST_HOC = "post hoc, not a proof"
    """Delta or confidence were chosen when the counts could be seen."""
    INVALID = "invalid, not a proof"
    """The audit itself is not valid."""
    NOT_CHOSEN = "not chosen before, not a proof"
    """The run was scored by the other rule, which was chosen before its trials were scored."""
    NOT_KEPT = "cannot be recomputed"
    """The sequential bound needs every bet in order, which a result does not hold."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the bounds of a finished run are asked at.

    Attributes:
        result: The run.
        delta: Delta; None if the claim of the run has none.
        confidence: Confidence of all bounds together.
        assume: What estimates may take for granted.
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
            sequential=self.result.sequential is not None,
        )

    @property
    def flaw(self) -> NoProof | None:
        """Why no bound of this run proves anything as it is asked for; None if they do."""
        if self.result.verdict is Verdict.INVALID:
            return NoProof.INVALID
        return NoProof.POST_HOC if self.post_hoc else None

    @property
    def heading(self) -> str:
        """What the bounds hold at, in at most two lines."""
        run = self.result
        shared = f"corrected for {run.multiplicity.hypotheses} attack(s)"
        if run.sequential is not None:
            shared += ", half for each bound"
        line = f"{self._about(self.delta)}, confidence {self.confidence:g}, {shared}"
        if not self.post_hoc:
            return line
        own = f"{self._about(delta_of(run))}, confidence {run.confidence:g}"
        return f"{line}\nchosen after the run, which was made for {own}"

    def _about(self, delta: float | None) -> str:
        """What the bounds are on, or at which delta they are on epsilon."""
        if delta is None:
            return f"on {self.result.claim.quantity.noun}"
        return f"delta {rounded(delta)}"


def delta_of(run: AuditRecord) -> float | None:
    """Delta of the claim of a run; None if it has none."""
    return run.claim.delta if isinstance(run.claim, PrivacyClaim) else None


def rows_of(asked: Asked) -> list[dict[str, Any]]:
    """Every bound and estimate of a run, as the JSON document has them."""
    if asked.result.one_run is not None:
        return list(_one_run_rows(asked))
    return [row for attack in asked.result.attacks for row in _attack_rows(attack, asked)]


def _attack_rows(attack: AttackOutcome, asked: Asked) -> Iterator[dict[str, Any]]:
    # Without a fixed-n bound in the run its trials were ended by what they showed, be it with the
    # last ones at the cap: on such counts it is no bound. Of the two rules one was chosen before
    # the trials were scored: the better of both, taken afterwards, would be none either.
    quantity = asked.result.claim.quantity
    if asked.delta is None:
        found = guarantee_of(asked.result.claim).bounds(
            attack.counts, confidence=asked.attack_confidence
        )
        for key, value in found.items():
            yield _row(attack.name, key, value, asked.flaw, quantity)
        return
    if attack.guesses is not None:
        yield from _rows(attack.name, Observed.COINS, tuple(attack.guesses), asked)
        if asked.result.records is None:  # errors of coins that share models are not independent
            yield from _rows(
                attack.name, Observed.COUNTS, tuple(attack.counts), asked, chosen=False
            )
    elif attack.bounds[ValidBound.EXACT] is not None:
        yield from _rows(attack.name, Observed.COUNTS, tuple(attack.counts), asked)
    if asked.result.sequential is not None:
        stored = attack.bounds[ValidBound.SEQUENTIAL]
        why = NoProof.NOT_KEPT if asked.post_hoc else asked.flaw
        epsilon = None if asked.post_hoc else stored
        yield _row(attack.name, ValidBound.SEQUENTIAL, epsilon, why)


def _one_run_rows(asked: Asked) -> Iterator[dict[str, Any]]:
    result = asked.result
    found = result.one_run
    assert found is not None  # of a one-run audit
    observed = (found.correct, found.guesses, found.canaries)
    if found.attacks is None:
        yield from _rows(str(result.attack), Observed.CANARIES, observed, asked)
        return
    for attack in found.attacks:
        yield from _rows(attack.name, Observed.IN_TURN, (attack.right,), asked)
    # The number of guesses was chosen with the coins in view: an estimate may do that.
    for row in _rows(str(result.attack), Observed.CANARIES, observed, asked):
        if row["method"] in {*Estimate}:
            yield row


def _rows(
    attack: str,
    kind: Observed,
    observed: tuple[Any, ...],
    asked: Asked,
    *,
    chosen: bool = True,
) -> Iterator[dict[str, Any]]:
    why_not = asked.flaw if chosen else asked.flaw or NoProof.NOT_CHOSEN
    for entry in entries_for(kind):
        if entry.assumption in (None, asked.assume):
            epsilon = entry.function(
                *observed, delta=asked.delta, confidence=asked.attack_confidence
            )
            yield _row(attack, entry.key, epsilon, why_not if entry.valid else NoProof.ESTIMATE)


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
