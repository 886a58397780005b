"""From what an audit found to its verdict and its record, in any game."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpaudit.auditing.checks import TrialCounts, control_check, failure_reasons
from dpaudit.auditing.game import BestAttack, Findings, Run, recorded_bounds
from dpaudit.auditing.spec import AuditSpec
from dpaudit.game.trial import Role
from dpaudit.model.choices import Multiplicity
from dpaudit.model.claim import Claim, EpsilonClaim, NoClaim
from dpaudit.model.linked_tables import TABLE, LinkedTables
from dpaudit.model.tables import IN_MEMORY
from dpaudit.plugins.foreign import patches_apart
from dpaudit.plugins.protocols import World, is_seedable
from dpaudit.results import sentences
from dpaudit.results.decide import decide
from dpaudit.results.leaks import leak_reason
from dpaudit.results.record import (
    AuditedGenerator,
    AuditedTable,
    AuditRecord,
    Controls,
    Correction,
    Reach,
    SchemaOrigin,
)
from dpaudit.results.verdict import Check, Decision, Power, Verdict


def conclude(run: Run[Any], findings: Findings, *, reuse: Check) -> AuditRecord:
    """Decides the verdict and records it.

    Args:
        run: The audit, whose trials have ended.
        findings: What they show.
        reuse: Whether its trials were judged before.

    Returns:
        The record, not yet dated and without probes.
    """
    spec, settings = run.spec, run.spec.settings
    claim, best = findings.claim, findings.best
    checks = (*findings.checks, reuse) if findings.checks else ()
    controls = [
        control_check(role, outcome, ran=bool(checks))
        for role, outcome in findings.controls.items()
    ]
    power = findings.power or Power(0.0, None)
    if isinstance(claim, NoClaim):
        power = Power(power.max_provable, None)  # the other numbers concern a leak beyond a claim
    decision = decide(
        best.proved if best else 0.0,
        claim,
        power,
        [*controls, *checks],
        confidence=settings.confidence,
        unit=findings.unit,
    )
    inferred = spec.table.schema.inferred
    counts = TrialCounts.of(findings.trials)
    reached = power if findings.power else None  # nothing is recorded of what was not run
    in_epsilon = reached if isinstance(claim, EpsilonClaim) else None
    return AuditRecord(
        verdict=decision.verdict,
        reasons=_reasons(decision, findings, checks, inferred=inferred),
        claim=claim,
        proved=best.proved if best else None,
        confidence=settings.confidence,
        bounds=recorded_bounds(best.bounds) if best else None,
        multiplicity=_correction(spec),
        threshold_rule=settings.game.rule,
        game=findings.outcome,
        max_provable_epsilon=in_epsilon.max_provable if in_epsilon else None,
        detectable_epsilon=in_epsilon.detectable if in_epsilon else None,
        detectable_gaussian=in_epsilon.detectable_gaussian if in_epsilon else None,
        reach=None if isinstance(claim, EpsilonClaim) else _reach(claim, reached),
        auc=best.auc if best else None,
        counts=best.counts if best else None,
        shadow_models=counts.run,
        failures=counts.failed,
        failure_reasons=failure_reasons(findings.trials),
        leaks=findings.leaks,
        proved_without_bits=findings.proved_without_bits,
        attack=best.name if best else None,
        attacks=findings.attacks,
        threshold=best.threshold if best else None,
        scores=_scores(best),
        target=findings.target,
        access=findings.access,
        controls=_controls(findings),
        checks=checks,
        generator=_generator(spec),
        data=_data(spec),
        schema=SchemaOrigin(inferred=inferred, source=spec.table.schema_source),
        rows=spec.rows,
        seed=settings.seed,
        versions=spec.versions,
        seconds=round(run.seconds, 3),
        reproduce=spec.reproduce,
        fresh=_fresh(spec),
        replay=spec.replay,
    )


def _reasons(
    decision: Decision, findings: Findings, checks: tuple[Check, ...], *, inferred: bool
) -> tuple[str, ...]:
    """The reasons of the verdict: the deciding one, where the leak is, and what weakens it."""
    first, *others = decision.reasons
    leak = []
    if findings.leaks and decision.verdict is Verdict.VIOLATION:
        leak.append(leak_reason(findings.leaks, checks))
    return (first, *leak, *others, *([sentences.SCHEMA_INFERRED] if inferred else []))


def _scores(best: BestAttack | None) -> dict[World, tuple[float, ...]]:
    """The scores of each world; empty if nothing was scored."""
    if best is None:
        return {World.IN: (), World.OUT: ()}
    return {
        World.IN: tuple(best.scores[best.member].tolist()),
        World.OUT: tuple(best.scores[~best.member].tolist()),
    }


def _controls(findings: Findings) -> Controls | None:
    """Both controls; None if none was run."""
    controls = findings.controls
    if not controls:
        return None
    return Controls(null=controls[Role.NULL_CONTROL], positive=controls[Role.POSITIVE_CONTROL])


def _correction(spec: AuditSpec) -> Correction:
    game = spec.settings.game
    selected = game.correction is Multiplicity.SELECT
    return Correction(
        rule=game.correction.value,
        hypotheses=game.hypotheses,
        probes=game.probes_share or None,
        attacks=tuple(attack.name for attack in spec.attacks) if selected else None,
    )


def _data(spec: AuditSpec) -> AuditedTable:
    table, schema = spec.table, spec.table.schema
    tables = None
    if isinstance(schema, LinkedTables):
        parts = table.data.groupby(TABLE, sort=False)
        tables = {str(name): len(rows) for name, rows in parts}
    return AuditedTable(
        source=table.source,
        rows=len(table.data),
        columns=len(schema.columns),
        units=None if spec.unit is None else int(table.data[spec.unit].nunique()),
        tables=tables,
        sha256=spec.specification["data"],
    )


def _generator(spec: AuditSpec) -> AuditedGenerator:
    generator = spec.generator
    return AuditedGenerator(
        name=generator.name,
        parameters=generator.parameters,
        seedable=is_seedable(generator.generator),
        source=spec.specification["generator"]["source"],
        fixes=_fixes(generator.generator),
    )


def _fixes(generator: object) -> int | None:
    """How many fixes a generator offers; None if that is not known."""
    try:
        with patches_apart():
            offer = getattr(generator, "fixes", None)
            return len(offer()) if callable(offer) else 0
    except Exception:  # noqa: BLE001 - the generator's: the audit has ended, and explain says it
        return None


def _fresh(spec: AuditSpec) -> str | None:
    """The command with the next seed; None if a table is in memory or seeds change nothing."""
    if spec.table.source == IN_MEMORY:
        return None
    settings = replace(spec.settings, seed=spec.settings.seed + 1)
    command = replace(spec, settings=settings).reproduce
    return None if command == spec.reproduce else command


def _reach(claim: Claim, power: Power | None) -> Reach:
    """What could be proved about a claim that is not stated in epsilon."""
    return Reach(
        quantity=claim.quantity,
        claimed=claim.value,
        max_provable=power.max_provable if power else None,
        detectable=power.detectable if power else None,
        detectable_gaussian=power.detectable_gaussian if power else None,
    )
