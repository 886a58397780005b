"""Runs the probes, one after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pandas as pd

from dpaudit.errors import SettingsError
from dpaudit.formatting import did_you_mean
from dpaudit.game.trial import reason_of
from dpaudit.model.claim import Neighbours
from dpaudit.model.schema import Schema
from dpaudit.model.severity import Severity
from dpaudit.model.tables import Table, load
from dpaudit.plugins.adapt import check_table
from dpaudit.plugins.named import claim_under_audit
from dpaudit.probe.copies import label_counts_copied, rows_copied_verbatim
from dpaudit.probe.insertions import category_follows_record, range_follows_record
from dpaudit.probe.output import integers_truncated, row_count_leaks, scale_wrong
from dpaudit.probe.promises import delta_ignored, epsilon_ignored
from dpaudit.probe.randomness import nothing_random, seed_ignored
from dpaudit.probe.result import Found, ProbeReport, ProbeResult, Skip, Status
from dpaudit.probe.settings import row_order_matters, settings_follow_rows
from dpaudit.probe.subject import Subject, maker
from dpaudit.probe.trainer import Trainer
from dpaudit.seeds import Stream, check_seed

RECORDS: Final = 1000
"""Most records of the table that are probed, by default."""
FITS: Final = 64
"""Most fits of one probe after its pilot, by default."""


class Probe(NamedTuple):
    """One metamorphic check.

    Attributes:
        id: Its name.
        severity: What an alarm means.
        check: Does the fits.
        correct: What a correct generator does.
    """

    id: str
    severity: Severity
    check: Callable[[Subject, Trainer], Found | Skip]
    correct: str


PROBES: Final = (
    Probe(
        "range-follows-record",
        Severity.VIOLATION,
        range_follows_record,
        "numbers are scaled with public bounds, so that one record cannot move the output's range",
    ),
    Probe(
        "category-follows-record",
        Severity.VIOLATION,
        category_follows_record,
        "categories come from the public schema, whether a record has them or not",
    ),
    Probe(
        "label-counts-copied",
        Severity.VIOLATION,
        label_counts_copied,
        "labels are generated, or drawn from counts that were released with noise",
    ),
    Probe(
        "rows-copied-verbatim",
        Severity.VIOLATION,
        rows_copied_verbatim,
        "synthetic rows equal real ones no more often than rows that were left out",
    ),
    Probe(
        "seed-ignored",
        Severity.VIOLATION,
        seed_ignored,
        "each training draws its noise anew",
    ),
    Probe(
        "nothing-random",
        Severity.VIOLATION,
        nothing_random,
        "without a seed, noise comes from the operating system's entropy",
    ),
    Probe(
        "settings-follow-rows",
        Severity.BUG,
        settings_follow_rows,
        "numbers of teachers, batches and layers are public constants, never functions of n",
    ),
    Probe(
        "row-order-matters",
        Severity.NOTE,
        row_order_matters,
        "records are dealt by what they are, not by where they stand",
    ),
    Probe(
        "row-count-leaks",
        Severity.VIOLATION,
        row_count_leaks,
        "sample(n) gives n rows, and missing values where the schema allows them",
    ),
    Probe(
        "epsilon-ignored",
        Severity.VIOLATION,
        epsilon_ignored,
        "towards epsilon 0 the output no longer depends on the data",
    ),
    Probe(
        "delta-ignored", Severity.BUG, delta_ignored, "the claim has the delta that was asked for"
    ),
    Probe(
        "scale-wrong",
        Severity.BUG,
        scale_wrong,
        "the output is in the scale of the input",
    ),
    Probe(
        "integers-truncated",
        Severity.BUG,
        integers_truncated,
        "whole numbers are rounded to the nearest",
    ),
)


def probe(
    generator: object,
    data: pd.DataFrame | str | Path,
    *,
    schema: Schema | str | Path | None = None,
    parameters: Mapping[str, Any] | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: Neighbours | None = None,
    only: Sequence[str] = (),
    rows: int | None = None,
    records: int = RECORDS,
    fits: int = FITS,
    confidence: float = 0.99,
    seed: int = 0,
    told: Callable[[ProbeResult], None] | None = None,
) -> ProbeReport:
    """Checks a generator from outside, a handful of fits for each probe.

    A probe changes the table, the schema or a setting and looks whether the output follows in a way
    that no correct generator's does. All probes together accuse a generator that keeps its claim
    with probability 1 - confidence at most.

    Args:
        generator: As for `dpaudit.audit`.
        data: A table, a file, or "sample:NAME".
        schema: A schema or its file; inferred if None, and the report says so.
        parameters: Of a generator given by name.
        epsilon: Of the claim; the generator's own by default.
        delta: Of the claim.
        neighbours: Of the claim.
        only: Ids of the probes to run; all by default.
        rows: Synthetic records of each model; by default as many as are probed.
        records: Most records to probe; more are sampled without looking at them.
        fits: Most fits of one probe after its pilot.
        confidence: In (0.5, 1).
        seed: Root of every random stream.
        told: Is told of each result as soon as it is there.

    Returns:
        The report.

    Raises:
        InputError: If anything handed in is unusable.
    """
    probes = _named(only)
    _check(rows=rows, records=records, fits=fits, confidence=confidence, seed=seed)
    table = _sampled(load(data, schema), records, seed)
    built = maker(generator, parameters or {}, table.schema, table.data)
    claim = claim_under_audit(built.asked, epsilon=epsilon, delta=delta, neighbours=neighbours)
    check_table(built.asked.generator, table.data)
    subject = Subject(
        maker=built,
        data=table.data,
        schema=table.schema,
        claim=claim,
        rows=len(table.data) if rows is None else rows,
        seed=seed,
        alpha=(1.0 - confidence) / len(PROBES),
        most_fits=fits,
    )
    results = []
    for one in probes:
        result = _run(one, subject)
        results.append(result)
        if told is not None:
            told(result)
    return ProbeReport(
        generator=built.asked.name,
        parameters=built.asked.parameters,
        source=table.source,
        claim=claim,
        schema_inferred=table.schema.inferred,
        records=len(table.data),
        confidence=confidence,
        seed=seed,
        results=tuple(results),
    )


def _run(one: Probe, subject: Subject) -> ProbeResult:
    trainer = Trainer(one.id, root=subject.seed)
    try:
        found = one.check(subject, trainer)
    except Exception as error:  # noqa: BLE001 - the generator's, whatever it is: told, not swallowed
        status, seen = Status.FAILED, Found(False, reason_of(error))
    else:
        if isinstance(found, Skip):
            status, seen = Status.NOT_APPLICABLE, Found(False, found.why)
        else:
            status, seen = (Status.ALARM if found.alarm else Status.PASSED), found
    judged = status in (Status.ALARM, Status.PASSED)
    return ProbeResult(
        id=one.id,
        status=status,
        severity=seen.severity or one.severity,
        words=seen.words,
        numbers=seen.numbers,
        p_value=seen.p_value,
        certainty=seen.certainty,
        false_alarm_rate=subject.alpha if judged and seen.p_value is not None else 0.0,
        fits=trainer.fits,
        correct=one.correct,
    )


def _named(only: Sequence[str]) -> tuple[Probe, ...]:
    known = [one.id for one in PROBES]
    for name in only:
        if name not in known:
            hint = did_you_mean(name, known)
            raise SettingsError(f"no probe {name!r}{hint}; there is {', '.join(known)}")
    return tuple(one for one in PROBES if not only or one.id in only)


def _check(*, rows: int | None, records: int, fits: int, confidence: float, seed: int) -> None:
    for name, value in (("rows", rows), ("records", records), ("fits", fits)):
        if value is not None and value < 1:
            raise SettingsError(f"--{name} must be at least 1, got {value}")
    if not 0.5 < confidence < 1.0:
        raise SettingsError(f"--confidence is {confidence}: choose it in (0.5, 1)")
    check_seed(seed)


def _sampled(table: Table, records: int, seed: int) -> Table:
    if len(table.data) <= records:
        return table
    rng = Stream(seed, "probe", "records").rng()
    kept = sorted(rng.choice(len(table.data), records, replace=False))
    return table._replace(data=table.data.iloc[kept].reset_index(drop=True))
