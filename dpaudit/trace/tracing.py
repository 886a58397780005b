"""Traces a generator and says what deviates from what its promise needs."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd

from dpaudit.errors import RegistryError
from dpaudit.formatting import TERMINAL_WIDTH
from dpaudit.model.schema import Schema
from dpaudit.model.severity import Severity
from dpaudit.model.tables import load
from dpaudit.plugins.adapt import check_table
from dpaudit.plugins.named import named_generator
from dpaudit.plugins.recorder import can_be_traced
from dpaudit.trace.accountant import accountant
from dpaudit.trace.budget import budget
from dpaudit.trace.constants import constants, labels, scaling
from dpaudit.trace.findings import Finding, Passed, Said, Skipped
from dpaudit.trace.noise import noise
from dpaudit.trace.partition import partition
from dpaudit.trace.played import Played, play
from dpaudit.trace.processing import inputs, output, teachers
from dpaudit.trace.readers import readers

SCHEMA_VERSION: Final = 1

CHECKS: Final[tuple[Callable[[Played], Iterator[Said]], ...]] = (
    readers,
    partition,
    noise,
    accountant,
    budget,
    scaling,
    constants,
    labels,
    teachers,
    output,
    inputs,
)
"""In the order of the report."""


@dataclass(frozen=True, kw_only=True)
class TraceReport:
    """What a trace found.

    Attributes:
        generator: Its name.
        parameters: Its parameters.
        data: Where the table came from.
        schema_inferred: Whether bounds and categories were read off it.
        seed: Of the trainings.
        findings: What deviates, gravest first.
        checked: Ids that were looked for and not found.
        not_checked: Ids that could not be looked for, and why.
    """

    generator: str
    parameters: Mapping[str, Any]
    data: str
    schema_inferred: bool
    seed: int
    findings: tuple[Finding, ...]
    checked: tuple[str, ...]
    not_checked: Mapping[str, str]

    def count(self, severity: Severity) -> int:
        """How many findings are so grave."""
        return sum(finding.severity is severity for finding in self.findings)

    @property
    def violated(self) -> bool:
        """Whether the promise is broken."""
        return self.count(Severity.VIOLATION) > 0

    @property
    def summary(self) -> str:
        """The counts in one line."""
        counts = ", ".join(_counted(self.count(one), one.value) for one in Severity)
        return (
            f"{self.generator}: {counts}; {len(self.checked)} more checks passed, "
            f"{len(self.not_checked)} could not be made"
        )

    def document(self) -> dict[str, Any]:
        """This report as a JSON object."""
        return {
            "schema_version": SCHEMA_VERSION,
            "generator": self.generator,
            "parameters": dict(self.parameters),
            "data": self.data,
            "schema_inferred": self.schema_inferred,
            "seed": self.seed,
            "findings": [finding.document() for finding in self.findings],
            "checked": list(self.checked),
            "not_checked": [{"id": id_, "why": why} for id_, why in self.not_checked.items()],
        }

    def __str__(self) -> str:
        """One block for each finding, what could not be checked, and the counts; 80 columns."""
        blocks = [_block(finding) for finding in self.findings]
        if self.not_checked:
            lines = [_filled(f"{id_}: {why}") for id_, why in self.not_checked.items()]
            blocks.append("\n".join(["NOT CHECKED", *lines]))
        return "\n\n".join([*blocks, textwrap.fill(self.summary, TERMINAL_WIDTH)])


def trace(
    generator: object,
    data: pd.DataFrame | str | Path,
    *,
    schema: Schema | str | Path | None = None,
    parameters: Mapping[str, Any] | None = None,
    rows: int | None = None,
    seed: int = 0,
    told: Callable[[str], None] = lambda told: None,
) -> TraceReport:
    """Trains a generator a few times, from one seed, and looks into each training.

    Args:
        generator: As for `dpaudit.audit`; one that tells what it does (`dpaudit.plugins.recorder`).
        data: A table, a file, or "sample:NAME".
        schema: A schema or its file; inferred if None, and the report says so.
        parameters: Of a generator given by name.
        rows: Synthetic records to draw each time; by default the rows of the table.
        seed: Of the trainings.
        told: Is told what is trained next.

    Returns:
        What was found. No record is in it, but the row number of the one that was removed.

    Raises:
        RegistryError: If the generator has no `trace`.
        InputError: If the settings or the table are of no use.
        TrialError: If the generator failed, or what it gave or told cannot be.
    """
    table = load(data, schema)
    named = named_generator(generator, parameters or {}, {"schema": table.schema})
    if not can_be_traced(named.generator):
        raise RegistryError(
            f"{named.name} has no method trace(data, *, n_rows, seed, recorder), so it cannot be "
            "looked into: add it (dpaudit.plugins.recorder says how), or use `dpaudit probe`, "
            "which needs none"
        )
    check_table(named.generator, table.data)
    played = play(
        named.generator,
        table.data,
        table.schema,
        n_rows=len(table.data) if rows is None else rows,
        seed=seed,
        name=named.name,
        progress=told,
    )
    findings, checked, skipped = settled([said for check in CHECKS for said in check(played)])
    return TraceReport(
        generator=named.name,
        parameters=named.parameters,
        data=table.source,
        schema_inferred=table.schema.inferred,
        seed=seed,
        findings=findings,
        checked=checked,
        not_checked=skipped,
    )


def settled(
    said: list[Said],
) -> tuple[tuple[Finding, ...], tuple[str, ...], dict[str, str]]:
    """What counts for each id: the gravest finding, else that it was looked for, else why not."""
    findings: dict[str, Finding] = {}
    for one in said:
        if isinstance(one, Finding):
            known = findings.get(one.id)
            if known is None or one.severity.rank < known.severity.rank:
                findings[one.id] = one
    passed = dict.fromkeys(one.id for one in said if isinstance(one, Passed))
    checked = tuple(id_ for id_ in passed if id_ not in findings)
    skipped: dict[str, str] = {}
    for one in said:
        if isinstance(one, Skipped) and one.id not in findings and one.id not in passed:
            skipped.setdefault(one.id, one.why)
    ordered = sorted(findings.values(), key=lambda finding: finding.severity.rank)
    return tuple(ordered), checked, skipped


def _block(finding: Finding) -> str:
    return "\n".join(
        [
            f"{finding.severity.value.upper()} {finding.id}",
            _filled(f"{finding.evidence}."),
            _filled(f"correct: {finding.correct}"),
            _filled(f"see {finding.reference}"),
        ]
    )


def _filled(text: str) -> str:
    return textwrap.fill(
        text, TERMINAL_WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
    )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
