"""From what an audit's trials showed to its record: the claim that counts, verdict, numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpaudit.auditing.attacking.run import Attacked
from dpaudit.auditing.controls import control_check
from dpaudit.auditing.findings import Findings, nothing_run
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.two_worlds import TwoWorldSpec
from dpaudit.bounds.table import ValidBound
from dpaudit.game.trial import Role
from dpaudit.model.choices import VULNERABLE, Access
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.currencies import Claim
from dpaudit.plugins.protocols import World, is_seedable
from dpaudit.results import sentences
from dpaudit.results.decide import decide
from dpaudit.results.leaks import leak_reason
from dpaudit.results.reach import Reach
from dpaudit.results.record import (
    AttackOutcome,
    AuditedGenerator,
    AuditedTable,
    AuditRecord,
    ControlOutcome,
    Controls,
    Correction,
    SchemaOrigin,
    SequentialOutcome,
)
from dpaudit.results.target import TargetOfAudit
from dpaudit.results.verdict import Check, Decision, Power, Verdict


def conclude(
    audit: TwoWorldSpec,
    controls: Mapping[Role, ControlOutcome],
    findings: Findings | None,
    *,
    seconds: float,
) -> AuditRecord:
    """Decides the verdict and records everything that a reader may ask of an audit.

    Args:
        audit: The audit.
        controls: How its controls ended; empty if none was run, as every first trial failed.
        findings: What its trials showed; None if a control failed, so that they were not run.
        seconds: Seconds spent in trials, over all workers.

    Returns:
        The record.
    """
    was_run = findings is not None
    if findings is None:
        findings = nothing_run(audit.claim)
    claim = findings.claim
    deciding = findings.best
    evaluation = deciding.evaluation if deciding else None
    decision = decide(
        evaluation.proved if evaluation else 0.0,
        claim,
        findings.power,
        [*(control_check(role, of) for role, of in controls.items()), *findings.checks],
        confidence=audit.settings.confidence,
    )
    if decision.verdict is Verdict.VIOLATION and findings.leaks:
        first, *others = decision.reasons
        reasons = (first, leak_reason(findings.leaks, findings.checks), *others)
        decision = decision._replace(reasons=reasons)
    return AuditRecord(
        **opening(audit, claim, decision),
        proved=evaluation.proved if evaluation else None,
        bounds=recorded_bounds(evaluation.bounds) if evaluation else None,
        threshold_rule=audit.settings.threshold,
        sequential=_sequential(audit, findings) if was_run else None,
        one_run=None,
        **_reached(claim, findings.power if was_run else None),
        auc=evaluation.auc if evaluation else None,
        counts=evaluation.counts if evaluation else None,
        shadow_models=findings.counts.run,
        failures=findings.counts.failed,
        failure_reasons=findings.failure_reasons,
        leaks=findings.leaks,
        attack=deciding.attack.name if deciding else None,
        attacks=tuple(_attack(one) for one in findings.attacked),
        threshold=evaluation.threshold if evaluation else None,
        scores={world: _scores(deciding, world) for world in World},
        target=_target(audit),
        access=None if audit.settings.access is Access.OUTPUT else audit.settings.access,
        **closing(audit, controls, findings.checks, seconds=seconds),
    )


def opening(audit: AuditSpec, claim: Claim, decision: Decision) -> dict[str, Any]:
    """The fields that every record begins with: the verdict and what it is about."""
    inferred = (sentences.SCHEMA_INFERRED,) if audit.table.schema.inferred else ()
    return {
        "verdict": decision.verdict,
        "reasons": (*decision.reasons, *inferred),
        "claim": claim,
        "confidence": audit.settings.confidence,
        "multiplicity": Correction(
            rule=audit.settings.multiplicity.value, hypotheses=audit.settings.hypotheses.count
        ),
    }


def closing(
    audit: AuditSpec,
    controls: Mapping[Role, ControlOutcome],
    checks: tuple[Check, ...],
    *,
    seconds: float,
) -> dict[str, Any]:
    """The fields that every record ends with: what lets a reader trust and repeat it."""
    generator, table = audit.generator, audit.table
    return {
        "controls": Controls(
            null=controls[Role.NULL_CONTROL], positive=controls[Role.POSITIVE_CONTROL]
        )
        if controls
        else None,
        "checks": checks,
        "generator": AuditedGenerator(
            name=generator.name,
            parameters=generator.parameters,
            seedable=is_seedable(generator.generator),
            source=audit.specification["generator"]["source"],
        ),
        "data": AuditedTable(
            source=table.source,
            rows=len(table.data),
            columns=len(table.schema.columns),
            sha256=audit.specification["data"],
        ),
        "schema": SchemaOrigin(inferred=table.schema.inferred, source=table.schema_source),
        "rows": audit.rows,
        "seed": audit.settings.seed,
        "versions": audit.versions,
        "seconds": round(seconds, 3),
        "reproduce": audit.reproduce,
    }


def _reached(claim: Claim, power: Power | None) -> dict[str, Any]:
    """The fields of a record that say what could have been proved."""
    highest, least, gaussian = power if power is not None else (None, None, None)
    if isinstance(claim, PrivacyClaim):
        return {
            "max_provable_epsilon": highest,
            "detectable_epsilon": least,
            "detectable_gaussian": gaussian,
        }
    reach = Reach(
        quantity=claim.quantity,
        claimed=claim.value,
        max_provable=highest,
        detectable=least,
        detectable_gaussian=gaussian,
    )
    return {"max_provable_epsilon": None, "detectable_epsilon": None, "reach": reach}


def recorded_bounds(bounds: Mapping[ValidBound, float]) -> dict[ValidBound, float | None]:
    """Every valid bound by key; None where it does not apply."""
    return {key: bounds.get(key) for key in ValidBound}


def _target(audit: TwoWorldSpec) -> TargetOfAudit:
    target, selection = audit.target, audit.selection
    choice = target.choice if selection is None else VULNERABLE
    return TargetOfAudit(
        choice=choice,
        row=target.row,
        exposures=target.exposures,
        selection=selection,
        compared=target.compared,
        worst_case=audit.settings.worst_case,
        neighbours_file=audit.settings.neighbours_file,
        tables=None if audit.pair is None else audit.pair.account,
    )


def _sequential(audit: TwoWorldSpec, findings: Findings) -> SequentialOutcome | None:
    if not audit.settings.sequential:
        return None
    best = findings.best
    guessed_by = best.guessed_by if best else {}
    return SequentialOutcome(
        trials=sum(findings.counts.run.values()),
        cap=audit.settings.shadow_models,
        stopped_early=best is not None and best.evaluation.stopped_early,
        guessed_by=dict(guessed_by) or None,
    )


def _scores(deciding: Attacked | None, world: World) -> tuple[float, ...]:
    if deciding is None:
        return ()
    of_world = deciding.scored.member == (world is World.IN)
    return tuple(deciding.evaluation.scores[of_world].tolist())


def _attack(one: Attacked) -> AttackOutcome:
    return AttackOutcome(
        name=one.attack.name,
        auc=one.evaluation.auc,
        bounds=recorded_bounds(one.evaluation.bounds),
        counts=one.evaluation.counts,
        threshold=one.evaluation.threshold,
        guesses=one.evaluation.guesses,
    )
