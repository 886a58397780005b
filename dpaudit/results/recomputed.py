"""The bounds of a finished run, recomputed: the record of `dpaudit report --bounds`, its lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, NamedTuple

from dpaudit.bounds import attack_confidence, guarantee_of
from dpaudit.bounds.table import BOUNDS, BoundEntry, ValidBound, entries_for
from dpaudit.formatting import Row, aligned, headed, percent, rounded, rounded_down
from dpaudit.model.choices import Assumption
from dpaudit.model.claim import EpsilonClaim, Quantity
from dpaudit.results.document import Document, NonNegative, Probability
from dpaudit.results.outcomes import Evidence
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


class RecomputedBound(NamedTuple):
    """One bound or estimate.

    Attributes:
        attack: The attack.
        method: Key of the bound, as in `dpaudit list bounds`.
        value: Its value in the unit of the claim; null if it cannot be computed.
        reason: Why it proves nothing; null if it is a valid bound.
    """

    attack: str
    method: str
    value: float | None
    reason: NoProof | None

    @property
    def valid(self) -> bool:
        """Whether it is a proof."""
        return self.reason is None


@dataclass(frozen=True, kw_only=True)
class RecomputedBounds(Document):
    """The bounds of a run, as `dpaudit report --bounds --json` prints them.

    Attributes:
        quantity: Unit of the bounds: that of the claim.
        delta: The delta at which they hold; null if the claim has none.
        confidence: Confidence of all bounds together.
        post_hoc: Whether delta or confidence were chosen after the run: no bound proves anything.
        bounds: The bounds and estimates.
    """

    schema_version: ClassVar[int] = 1
    called: ClassVar[str] = "a table of bounds"
    quantity: Quantity
    delta: NonNegative | None
    confidence: Probability
    post_hoc: bool
    bounds: tuple[RecomputedBound, ...]


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
        """Whether delta or confidence differ from those of the run."""
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
        """Why no bound of this run is a proof at these settings; None if bounds are."""
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
        """The settings of the run itself."""
        return f"{percent(self.result.confidence)} confidence{self._at(delta_of(self.result))}"

    def _at(self, delta: float | None) -> str:
        return "" if delta is None else f" at delta {rounded(delta)}"


def delta_of(run: AuditRecord) -> float | None:
    """Delta of the claim of a run; None if it has none."""
    return run.claim.delta if isinstance(run.claim, EpsilonClaim) else None


def recompute(asked: Asked) -> RecomputedBounds:
    """Every bound and estimate of a run."""
    run = asked.result
    rows = [row for evidence in run.game.evidence(run) for row in _rows(evidence, asked)]
    return RecomputedBounds(
        quantity=run.claim.quantity,
        delta=asked.delta,
        confidence=asked.confidence,
        post_hoc=asked.post_hoc,
        bounds=tuple(rows),
    )


def _rows(evidence: Evidence, asked: Asked) -> Iterator[RecomputedBound]:
    if asked.delta is None:
        yield from _level_rows(evidence, asked)
        return
    for entry in entries_for(evidence.observed):
        if evidence.given is None:
            yield _recorded_bound(entry, evidence, asked)
        elif entry.assumption in (None, asked.assume) and not (evidence.estimates and entry.valid):
            value = entry.function(
                *evidence.given, delta=asked.delta, confidence=asked.attack_confidence
            )
            why = _why_not(entry, evidence, asked) if entry.valid else NoProof.ESTIMATE
            yield RecomputedBound(evidence.attack, entry.key.value, value, why)


def _level_rows(evidence: Evidence, asked: Asked) -> Iterator[RecomputedBound]:
    """Bounds for a claim without delta, for which there are no estimates."""
    bounds: Mapping[ValidBound, float] = {}
    if evidence.given is not None and not evidence.estimates:
        bounds = guarantee_of(asked.result.claim).bounds(
            evidence.observed, *evidence.given, confidence=asked.attack_confidence
        )
    for entry in entries_for(evidence.observed):
        if evidence.given is None:
            yield _recorded_bound(entry, evidence, asked)
        elif isinstance(entry.key, ValidBound) and entry.key in bounds:
            why = _why_not(entry, evidence, asked)
            yield RecomputedBound(evidence.attack, entry.key.value, bounds[entry.key], why)


def _recorded_bound(entry: BoundEntry, evidence: Evidence, asked: Asked) -> RecomputedBound:
    """The recorded value of a bound whose observations the result does not hold."""
    kept = not asked.post_hoc
    return RecomputedBound(
        evidence.attack,
        entry.key.value,
        evidence.recorded if kept else None,
        _why_not(entry, evidence, asked) if kept else NoProof.NOT_KEPT,
    )


def _why_not(entry: BoundEntry, evidence: Evidence, asked: Asked) -> NoProof | None:
    """Why a valid bound is no proof here; None if it is one."""
    if asked.flaw is not None or evidence.chosen:
        return asked.flaw
    return NoProof.NOT_CHOSEN if entry.decides else NoProof.COMPARED


def lines_of(asked: Asked, rows: Sequence[RecomputedBound]) -> list[str]:
    """The bounds of a run for a terminal: the largest proof, then all of them."""
    claim = asked.result.claim
    noun = claim.quantity.noun
    labels = {entry.key.value: entry.label for entry in BOUNDS}
    table = [("attack", "bound", noun, "")]
    for row in rows:
        label = labels.get(row.method, row.method)
        table.append((row.attack, label, rounded_down(row.value), row.reason or ""))
    facts = [Row("claim", claim_and_relation(claim)), Row("bounds", asked.shared)]
    if asked.post_hoc:
        facts.append(Row("post hoc", f"chosen after the run, which was made for {asked.own}"))
    proved = [(row.value, row.attack) for row in rows if row.valid and row.value is not None]
    largest = "none of these numbers is a proof"
    if proved:
        value, attack = max(proved)
        largest = f"{noun} at least {rounded_down(value)} ({attack})"
    return [*headed(f"BOUNDS  {largest}", facts), "", *aligned(table, numeric={2})]
