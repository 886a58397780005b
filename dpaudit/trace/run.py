"""Traces a generator: trains it a few times, runs every check, and reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pandas as pd

from dpaudit.errors import RegistryError
from dpaudit.model.schema import Schema
from dpaudit.model.tables import load
from dpaudit.plugins.adapt import check_table
from dpaudit.plugins.named import named_generator
from dpaudit.plugins.recorder import can_be_traced
from dpaudit.trace.accountant import accountant
from dpaudit.trace.budget import budget
from dpaudit.trace.constants import constants, labels, scaling
from dpaudit.trace.findings import CheckOutcome
from dpaudit.trace.gradients import gradients
from dpaudit.trace.noise import noise
from dpaudit.trace.partition import partition
from dpaudit.trace.processing import inputs, output, teachers
from dpaudit.trace.readers import readers
from dpaudit.trace.report import TraceReport, summarise
from dpaudit.trace.trainings import Trainings, run_trainings

CHECKS: Final[tuple[Callable[[Trainings], Iterator[CheckOutcome]], ...]] = (
    readers,
    partition,
    noise,
    accountant,
    budget,
    gradients,
    scaling,
    constants,
    labels,
    teachers,
    output,
    inputs,
)
"""In the order of the report."""


def trace(
    generator: object,
    data: pd.DataFrame | str | Path,
    *,
    schema: Schema | str | Path | None = None,
    parameters: Mapping[str, Any] | None = None,
    rows: int | None = None,
    seed: int = 0,
    on_progress: Callable[[str], None] | None = None,
) -> TraceReport:
    """Trains a generator a few times, from one seed, and checks what it records of each training.

    Args:
        generator: As for `dpaudit.audit`; one that records its training
            (`dpaudit.plugins.recorder`).
        data: A table, a file, or "sample:NAME".
        schema: A schema or its file; inferred if None, and the report says so.
        parameters: Of a generator given by name.
        rows: Synthetic records to draw each time; by default the rows of the table.
        seed: Of the trainings.
        on_progress: Called before each training with a line that says what is trained.

    Returns:
        What was found. It holds no record, only the row number of the one that was removed.

    Raises:
        RegistryError: If the generator has no method `trace`.
        InputError: If the settings or the table are unusable.
        TrialError: If the generator failed, or its output or its records are impossible.
    """
    table = load(data, schema)
    named = named_generator(generator, parameters or {}, {"schema": table.schema})
    if not can_be_traced(named.generator):
        raise RegistryError(
            f"{named.name} has no method trace(data, *, n_rows, seed, recorder), so its training "
            "cannot be traced: add it (dpaudit.plugins.recorder says how), or use `dpaudit probe`, "
            "which needs none"
        )
    check_table(named.generator, table.data)
    trainings = run_trainings(
        named.generator,
        table.data,
        table.schema,
        rows=len(table.data) if rows is None else rows,
        seed=seed,
        name=named.name,
        on_progress=on_progress,
    )
    summary = summarise([outcome for check in CHECKS for outcome in check(trainings)])
    return TraceReport(
        generator=named.name,
        parameters=named.parameters,
        source=table.source,
        schema_inferred=table.schema.inferred,
        seed=seed,
        findings=summary.findings,
        checked=summary.checked,
        not_checked=summary.not_checked,
    )
