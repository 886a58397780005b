"""Turns the findings of an audit in two worlds into its record."""

from __future__ import annotations

from collections.abc import Mapping

from dpaudit.auditing.conclusion import conclude, recorded_bounds
from dpaudit.auditing.two_worlds.attacking.combined import WeightedSum
from dpaudit.auditing.two_worlds.attacking.run import Attacked
from dpaudit.auditing.two_worlds.findings import Findings, nothing_run
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec
from dpaudit.game.trial import Role
from dpaudit.model.choices import VULNERABLE, Access
from dpaudit.plugins.protocols import World
from dpaudit.results.game import AttackOutcome
from dpaudit.results.leaks import leak_reason
from dpaudit.results.record import AuditRecord, ControlOutcome, SameTables, TargetOfAudit
from dpaudit.results.two_worlds import SequentialOutcome, TwoWorldsOutcome
from dpaudit.results.verdict import Check


def conclude_two_worlds(
    audit: TwoWorldSpec,
    controls: Mapping[Role, ControlOutcome],
    findings: Findings | None,
    *,
    target: TargetOfAudit,
    reuse: Check,
    seconds: float,
) -> AuditRecord:
    """Decides the verdict and records everything about the audit.

    Args:
        audit: The audit.
        controls: How its controls ended; empty if none was run, as every first trial failed.
        findings: Findings of its trials; None if a control failed and they were not run.
        target: The attacked record.
        reuse: Whether its trials were judged before.
        seconds: Seconds spent in trials, over all workers.

    Returns:
        The record.
    """
    shown = nothing_run(audit.claim) if findings is None else findings
    checks = () if findings is None else (*shown.checks, reuse)
    deciding = shown.best
    evaluation = deciding.evaluation if deciding else None
    return conclude(
        audit,
        controls,
        claim=shown.claim,
        proved=evaluation.proved if evaluation else None,
        power=shown.power,
        reached=findings is not None,
        checks=checks,
        leak=leak_reason(shown.leaks, checks) if shown.leaks else None,
        seconds=seconds,
        bounds=recorded_bounds(evaluation.bounds) if evaluation else None,
        threshold_rule=audit.settings.game.threshold,
        game=TwoWorldsOutcome(
            sequential=_sequential(audit, findings) if findings is not None else None
        ),
        auc=evaluation.auc if evaluation else None,
        counts=evaluation.counts if evaluation else None,
        shadow_models=shown.counts.run,
        failures=shown.counts.failed,
        failure_reasons=shown.failure_reasons,
        leaks=shown.leaks,
        attack=deciding.attack.name if deciding else None,
        attacks=tuple(_attack(one) for one in shown.attacked),
        threshold=evaluation.threshold if evaluation else None,
        scores={world: _scores(deciding, world) for world in World},
        target=target,
        access=None if audit.settings.game.access is Access.OUTPUT else audit.settings.game.access,
    )


def target_of(audit: TwoWorldSpec, same_tables: SameTables | None) -> TargetOfAudit:
    """The attacked record, and how far it shows in a few models before the audit."""
    target, selection = audit.target, audit.selection
    choice = target.choice if selection is None or audit.pair is not None else VULNERABLE
    return TargetOfAudit(
        choice=choice,
        row=target.row,
        rows_of_unit=None if audit.table.schema.unit is None else len(target.record),
        exposures=target.exposures,
        selection=selection,
        compared=target.compared,
        worst_case=audit.settings.game.worst_case,
        neighbours_file=audit.settings.game.neighbours_file,
        repeats=audit.target_repeats or None,
        tables=None if audit.pair is None else audit.pair.account,
        same_tables=same_tables,
    )


def _sequential(audit: TwoWorldSpec, findings: Findings) -> SequentialOutcome | None:
    if not audit.settings.game.sequential:
        return None
    best = findings.best
    guessed_by = best.guessed_by if best else {}
    return SequentialOutcome(
        trials=sum(findings.counts.run.values()),
        cap=audit.settings.game.shadow_models,
        stopped_early=best is not None and best.evaluation.stopped_early,
        guessed_by=dict(guessed_by) or None,
    )


def _scores(deciding: Attacked | None, world: World) -> tuple[float, ...]:
    if deciding is None:
        return ()
    of_world = deciding.scored.member == (world is World.IN)
    return tuple(deciding.evaluation.scores[of_world].tolist())


def _attack(one: Attacked) -> AttackOutcome:
    scorer = one.evaluation.scorer
    shares = scorer.shares if isinstance(scorer, WeightedSum) else {}
    return AttackOutcome(
        name=one.attack.name,
        auc=one.evaluation.auc,
        bounds=recorded_bounds(one.evaluation.bounds),
        counts=one.evaluation.counts,
        threshold=one.evaluation.threshold,
        guesses=one.evaluation.guesses,
        shares={name: round(share, 4) for name, share in shares.items()} or None,
    )
