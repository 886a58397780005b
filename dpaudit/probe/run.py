"""Runs the probes, one after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import pandas as pd

from dpaudit.formatting import listed
from dpaudit.game.target import choose_target
from dpaudit.game.trial import reason_of
from dpaudit.model.claim import Neighbours, StatedClaim, require_epsilon
from dpaudit.model.encoding import check_rows
from dpaudit.model.schema import Schema
from dpaudit.model.tables import Table, load, require_rows
from dpaudit.plugins.adapt import check_table
from dpaudit.plugins.named import claim_under_audit
from dpaudit.probe.catalogue import Probe, ProbeSettings
from dpaudit.probe.form import (
    integers_truncated,
    row_count_leaks,
    row_order_matters,
    scale_wrong,
    settings_follow_rows,
)
from dpaudit.probe.parameters import delta_ignored, epsilon_ignored, nothing_random, seed_ignored
from dpaudit.probe.records import (
    category_follows_record,
    constancy_follows_record,
    label_counts_copied,
    missing_follows_record,
    output_follows_target,
    range_follows_record,
    rows_copied_verbatim,
)
from dpaudit.probe.result import NotApplicable, Observation, ProbeReport, ProbeResult, ProbeStatus
from dpaudit.probe.subject import Subject, Trainer, maker
from dpaudit.seeds import Stream
from dpaudit.versions import today

Check: TypeAlias = Callable[[Subject, Trainer], Observation | NotApplicable]
_CHECKS: Final[Mapping[str, Check]] = {
    "range-follows-record": range_follows_record,
    "category-follows-record": category_follows_record,
    "constancy-follows-record": constancy_follows_record,
    "missing-follows-record": missing_follows_record,
    "target-followed": output_follows_target,
    "label-counts-copied": label_counts_copied,
    "rows-copied-verbatim": rows_copied_verbatim,
    "seed-ignored": seed_ignored,
    "nothing-random": nothing_random,
    "settings-follow-rows": settings_follow_rows,
    "row-order-matters": row_order_matters,
    "row-count-leaks": row_count_leaks,
    "epsilon-ignored": epsilon_ignored,
    "delta-ignored": delta_ignored,
    "scale-wrong": scale_wrong,
    "integers-truncated": integers_truncated,
}
"""The function of each probe in the catalogue."""


def probe(
    generator: object,
    data: pd.DataFrame | str | Path,
    *,
    schema: Schema | str | Path | None = None,
    parameters: Mapping[str, Any] | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: Neighbours | None = None,
    target: str | None = None,
    only: Sequence[str] = ProbeSettings.only,
    rows: int | None = None,
    records: int = ProbeSettings.records,
    fits: int = ProbeSettings.fits,
    confidence: float = ProbeSettings.confidence,
    worker_memory: float | None = None,
    seed: int = ProbeSettings.seed,
    on_progress: Callable[[ProbeResult], None] | None = None,
) -> ProbeReport:
    """Checks a generator from outside, with a handful of fits for each probe.

    A probe changes the table, the schema or a setting and checks whether the output changes in a
    way that no correct generator's does. The probability that any probe flags a generator that
    satisfies its claim is at most 1 - confidence.

    Args:
        generator: As for `dpaudit.audit`.
        data: A table, a file, or "sample:NAME".
        schema: A schema or its file; inferred if None, and the report says so.
        parameters: Parameters of a generator given by name.
        epsilon: As in `ProbeSettings`, like every argument below except `on_progress`.
        delta: Delta of the claim.
        neighbours: Neighbouring relation of the claim.
        target: A record to watch, as row:N.
        only: Ids of the probes to run; all by default.
        rows: Synthetic records of each model.
        records: Largest number of records to probe.
        fits: Largest number of fits of one probe after its pilot.
        confidence: In (0.5, 1).
        worker_memory: As for `dpaudit.audit`.
        seed: Root of every random stream.
        on_progress: Called with each result as soon as it is known.

    Returns:
        The report.

    Raises:
        InputError: If an argument is unusable.
    """
    settings = ProbeSettings(
        epsilon=epsilon,
        delta=delta,
        neighbours=neighbours,
        target=target,
        only=only,
        rows=rows,
        records=records,
        fits=fits,
        confidence=confidence,
        worker_memory=worker_memory,
        seed=seed,
    )
    return run_probes(
        generator, data, settings, schema=schema, parameters=parameters, on_progress=on_progress
    )


def run_probes(
    generator: object,
    data: pd.DataFrame | str | Path,
    settings: ProbeSettings,
    *,
    schema: Schema | str | Path | None = None,
    parameters: Mapping[str, Any] | None = None,
    on_progress: Callable[[ProbeResult], None] | None = None,
) -> ProbeReport:
    """Checks a generator from outside under given settings; see `probe`.

    Args:
        generator: As for `dpaudit.audit`.
        data: A table, a file, or "sample:NAME".
        settings: All other settings.
        schema: A schema or its file; inferred if None, and the report says so.
        parameters: Parameters of a generator given by name.
        on_progress: Called with each result as soon as there is one.

    Returns:
        The report.

    Raises:
        InputError: If an argument is unusable.
    """
    whole = load(data, schema)
    require_rows(whole.schema, "a probe")
    table, target = _sample(whole, settings)
    check_rows(len(table.data) if settings.rows is None else settings.rows, table.schema)
    built = maker(
        generator,
        parameters or {},
        table.schema,
        table.data,
        target=target or 0,
        worker_memory=settings.worker_memory,
    )
    stated = StatedClaim(
        epsilon=settings.epsilon, delta=settings.delta, neighbours=settings.neighbours
    )
    claim = require_epsilon(claim_under_audit(built.asked, stated), method="probe")
    check_table(built.asked.generator, table.data)
    subject = Subject(
        maker=built,
        data=table.data,
        schema=table.schema,
        claim=claim,
        settings=settings,
        target=target,
    )
    results = []
    for probe in settings.probes:
        result = _run(probe, subject)
        results.append(result)
        if on_progress is not None:
            on_progress(result)
    return ProbeReport(
        generator=built.asked.name,
        parameters=built.asked.parameters,
        source=table.source,
        claim=claim,
        schema_inferred=table.schema.inferred,
        records=len(table.data),
        target=settings.target,
        confidence=settings.confidence,
        seed=settings.seed,
        probes=tuple(results),
        date=today(),
        reproduce=settings.command(*built.asked.words, *table.words),
    )


def _run(probe: Probe, subject: Subject) -> ProbeResult:
    trainer = Trainer(subject, probe.id)
    try:
        outcome = _CHECKS[probe.id](subject, trainer)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the generator's: shown in the report
        status, seen = ProbeStatus.FAILED, Observation(False, reason_of(error))
    else:
        if isinstance(outcome, Observation) and not outcome.alarm:
            outcome = _passed(outcome, subject, trainer)
        if isinstance(outcome, NotApplicable):
            status, seen = ProbeStatus.NOT_APPLICABLE, Observation(False, outcome.why)
        else:
            status, seen = (ProbeStatus.ALARM if outcome.alarm else ProbeStatus.PASSED), outcome
    judged = status in (ProbeStatus.ALARM, ProbeStatus.PASSED)
    return ProbeResult(
        id=probe.id,
        status=status,
        severity=seen.severity or probe.severity,
        evidence=seen.evidence,
        numbers=seen.numbers,
        p_value=seen.p_value,
        certainty=seen.certainty,
        false_alarm_rate=subject.settings.alpha if judged and seen.p_value is not None else 0.0,
        fits=trainer.fits,
        correct=probe.correct,
    )


def _passed(seen: Observation, subject: Subject, trainer: Trainer) -> Observation | NotApplicable:
    """The outcome of a probe without an alarm: passed, or not applicable if no output varied."""
    names = seen.read or subject.schema.names
    nothing = trainer.variation.nothing_in(names)
    if nothing is not None:
        return NotApplicable(nothing)
    still = [
        name
        for name in trainer.variation.still()
        if name in names and subject.data[name].nunique(dropna=False) > 1
    ]
    if not still:
        return seen
    return seen._replace(
        evidence=f"apart from {listed(still)}, the same in every row of every fit: {seen.evidence}"
    )


def _sample(table: Table, settings: ProbeSettings) -> tuple[Table, int | None]:
    """Samples a large table; returns it with the new position of the record to watch."""
    target = None
    if settings.target is not None:
        target = choose_target(settings.target, table.data, table.schema).row
    if len(table.data) <= settings.records:
        return table, target
    rng = Stream(settings.seed, "probe", "records").rng()
    drawn = rng.choice(len(table.data), settings.records, replace=False)
    if target is not None and target not in drawn:
        drawn[-1] = target
    kept = sorted(drawn)
    sample = table._replace(data=table.data.iloc[kept].reset_index(drop=True))
    return sample, None if target is None else kept.index(target)
