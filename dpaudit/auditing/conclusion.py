"""Turns the findings of an audit into its record: the verdict, and the fields of every record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dpaudit.auditing.controls import control_check
from dpaudit.auditing.spec import AuditSpec
from dpaudit.bounds.table import ValidBound
from dpaudit.game.trial import Role
from dpaudit.model.choices import Multiplicity
from dpaudit.model.claim import NoClaim
from dpaudit.model.currencies import Claim, EpsilonClaim
from dpaudit.model.linked_tables import TABLE, LinkedTables
from dpaudit.model.tables import IN_MEMORY
from dpaudit.plugins.foreign import patches_apart
from dpaudit.plugins.protocols import BoolArray, FloatArray, World, is_seedable
from dpaudit.results import sentences
from dpaudit.results.decide import decide
from dpaudit.results.record import (
    AuditedGenerator,
    AuditedTable,
    AuditRecord,
    ControlOutcome,
    Controls,
    Correction,
    Reach,
    SchemaOrigin,
)
from dpaudit.results.verdict import Check, Power, SampleUnit, Verdict


def conclude(
    audit: AuditSpec,
    controls: Mapping[Role, ControlOutcome],
    *,
    claim: Claim,
    proved: float | None,
    power: Power,
    reached: bool,
    checks: tuple[Check, ...],
    seconds: float,
    unit: SampleUnit = SampleUnit.TRIALS,
    leak: str | None = None,
    **own: Any,
) -> AuditRecord:
    """Decides the verdict and records it.

    Args:
        audit: The audit.
        controls: How its controls ended; empty if none was run.
        claim: The claim that the verdict is about.
        proved: The bound; None if nothing was scored.
        power: What the audit could prove.
        reached: Whether to record that; not if nothing was run.
        checks: Checks of the run; none if a control failed, so that it was not run.
        seconds: Seconds spent in trainings, over all workers.
        unit: What a larger audit would need more of.
        leak: The reason for a violation that says what leaks.
        own: The fields of the record that belong to the game.

    Returns:
        The record.
    """
    settings, table = audit.settings, audit.table
    if isinstance(claim, NoClaim):
        power = Power(power.max_provable, None)  # the other reasons concern a leak beyond a claim
    decision = decide(
        proved or 0.0,
        claim,
        power,
        [*(control_check(role, of, ran=bool(checks)) for role, of in controls.items()), *checks],
        confidence=settings.confidence,
        unit=unit,
    )
    first, *others = decision.reasons
    because = (leak,) if leak is not None and decision.verdict is Verdict.VIOLATION else ()
    inferred = (sentences.SCHEMA_INFERRED,) if table.schema.inferred else ()
    return AuditRecord(
        verdict=decision.verdict,
        reasons=(first, *because, *others, *inferred),
        claim=claim,
        proved=proved,
        confidence=settings.confidence,
        multiplicity=_correction(audit),
        **_reach(claim, power if reached else None),
        controls=Controls(
            null=controls[Role.NULL_CONTROL], positive=controls[Role.POSITIVE_CONTROL]
        )
        if controls
        else None,
        checks=checks,
        generator=_generator(audit),
        data=_data(audit),
        schema=SchemaOrigin(inferred=table.schema.inferred, source=table.schema_source),
        rows=audit.rows,
        seed=settings.seed,
        versions=audit.versions,
        seconds=round(seconds, 3),
        reproduce=audit.reproduce,
        fresh=_fresh(audit),
        replay=audit.replay,
        **own,
    )


def _correction(audit: AuditSpec) -> Correction:
    game = audit.settings.game
    selected = game.correction is Multiplicity.SELECT
    return Correction(
        rule=game.correction.value,
        hypotheses=game.hypotheses.count,
        probes=game.probes_share or None,
        attacks=tuple(one.name for one in audit.attacks) if selected else None,
    )


def _data(audit: AuditSpec) -> AuditedTable:
    table, schema = audit.table, audit.table.schema
    tables = None
    if isinstance(schema, LinkedTables):
        parts = table.data.groupby(TABLE, sort=False)
        tables = {str(name): len(rows) for name, rows in parts}
    return AuditedTable(
        source=table.source,
        rows=len(table.data),
        columns=len(schema.columns),
        units=None if audit.unit is None else int(table.data[audit.unit].nunique()),
        tables=tables,
        sha256=audit.specification["data"],
    )


def _generator(audit: AuditSpec) -> AuditedGenerator:
    generator = audit.generator
    return AuditedGenerator(
        name=generator.name,
        parameters=generator.parameters,
        seedable=is_seedable(generator.generator),
        source=audit.specification["generator"]["source"],
        fixes=_fixes(generator.generator),
    )


def _fixes(generator: object) -> int | None:
    """How many fixes a generator offers; None where it cannot say."""
    try:
        with patches_apart():
            offer = getattr(generator, "fixes", None)
            return len(offer()) if callable(offer) else 0
    except Exception:  # noqa: BLE001 - the generator's: the audit has ended, and explain says it
        return None


def _fresh(audit: AuditSpec) -> str | None:
    """The command with the next seed; none if the table is in memory or a seed changes nothing."""
    if audit.table.source == IN_MEMORY:
        return None
    settings = replace(audit.settings, seed=audit.settings.seed + 1)
    command = replace(audit, settings=settings).reproduce
    return None if command == audit.reproduce else command


def _reach(claim: Claim, power: Power | None) -> dict[str, Any]:
    """The fields of a record for the upper limit and the power of the audit."""
    highest, least, gaussian = power if power is not None else (None, None, None)
    if isinstance(claim, EpsilonClaim):
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


def by_world(
    scores: FloatArray | None = None, member: BoolArray | None = None
) -> dict[World, tuple[float, ...]]:
    """The scores of each world, from all scores and their membership; none if none are given."""
    if scores is None or member is None:
        return {World.IN: (), World.OUT: ()}
    return {
        World.IN: tuple(scores[member].tolist()),
        World.OUT: tuple(scores[~member].tolist()),
    }
