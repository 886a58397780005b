"""Traces a generator: trains it a few times, runs every check, and reports in text or a page."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pandas as pd

from dpaudit.errors import RegistryError
from dpaudit.formatting import Row, counted, listed, printable
from dpaudit.model.choices import Severity
from dpaudit.model.schema import Schema
from dpaudit.model.tables import load, require_rows
from dpaudit.plugins.named import check_table, named_generator
from dpaudit.plugins.recorder import can_be_traced
from dpaudit.report.charts import CheckEnding, CheckRow, draw_checks
from dpaudit.report.page import TRACE, Page, Step, again, checked_verdict, facts_block, page_text
from dpaudit.results.document import OPTIONAL, Document
from dpaudit.results.phrases import INFERRED, PUBLIC_SCHEMA
from dpaudit.results.sentences import HEADLINE_GAP
from dpaudit.results.structure import Block, Level, Picture, ReportTable
from dpaudit.trace.catalogue import PARTS, CheckOutcome, Finding, Passed, Skipped
from dpaudit.trace.gradients import gradients
from dpaudit.trace.table import (
    constants,
    inputs,
    labels,
    output,
    partition,
    readers,
    scaling,
    teachers,
)
from dpaudit.trace.trainings import Trainings, run_trainings
from dpaudit.trace.votes import accountant, budget, noise
from dpaudit.versions import __version__, today

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
        parameters: Parameters of a generator given by name.
        rows: Synthetic records to draw each time; by default the rows of the table.
        seed: Seed of the trainings.
        on_progress: Called before each training with a line that says what is trained.

    Returns:
        The findings. They contain no record, only the row number of the removed one.

    Raises:
        RegistryError: If the generator has no method `trace`.
        InputError: If the settings or the table are unusable.
        TrialError: If the generator failed, or its output or its records are impossible.
    """
    table = load(data, schema)
    require_rows(table.schema, "a trace")
    named = named_generator(generator, parameters or {}, {"schema": table.schema})
    if not can_be_traced(named.generator):
        raise RegistryError(
            f"{named.name} has no method trace(data, *, n_rows, seed, recorder), so its training "
            "cannot be traced: add it (dpaudit.plugins.recorder says how), or run "
            "`dpaudit replay`, which follows the noise of unmodified code, or `dpaudit probe`"
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
    findings, checked, not_checked = summarise(
        [outcome for check in CHECKS for outcome in check(trainings)]
    )
    command = ["dpaudit", "trace", *named.words, *table.words]
    asked = [] if rows is None else ["--rows", str(rows)]
    return TraceReport(
        generator=named.name,
        parameters=named.parameters,
        source=table.source,
        schema_inferred=table.schema.inferred,
        seed=seed,
        findings=findings,
        checked=checked,
        not_checked=not_checked,
        date=today(),
        reproduce=shlex.join([*command, *asked, "--seed", str(seed)]),
    )


@dataclass(frozen=True, kw_only=True)
class TraceReport(Document):
    """What a trace found.

    Attributes:
        generator: Its name.
        parameters: Its parameters.
        source: Where the table came from.
        schema_inferred: Whether bounds and categories were inferred from it.
        seed: Seed of the trainings.
        findings: The deviations, most severe first.
        checked: Ids of deviations that were looked for and not found.
        not_checked: Ids of deviations that could not be looked for, and why.
        date: Day of the trace in UTC; absent from documents of before.
        reproduce: The command that gives the same again; absent from documents of before.
    """

    schema_version = 1

    generator: str
    parameters: Mapping[str, Any]
    source: str
    schema_inferred: bool
    seed: int
    findings: tuple[Finding, ...]
    checked: tuple[str, ...]
    not_checked: Mapping[str, str]
    date: str | None = field(default=None, compare=False, metadata=OPTIONAL)
    reproduce: str | None = field(default=None, metadata=OPTIONAL)

    def count(self, severity: Severity) -> int:
        """The number of findings of one severity."""
        return sum(finding.severity is severity for finding in self.findings)

    @property
    def violated(self) -> bool:
        """Whether a finding violates the claim."""
        return self.count(Severity.VIOLATION) > 0

    @property
    def ran(self) -> bool:
        """Whether anything could be checked."""
        return bool(self.checked or self.findings)

    def assert_no_violation(self) -> None:
        """Raises unless something was checked and nothing violates the claim.

        Raises:
            AssertionError: If there is a finding with the severity of a violation, or nothing could
                be checked; the message is the report.
        """
        __tracebackhide__ = True
        if self.violated or not self.ran:
            raise AssertionError(str(self))

    @property
    def headline(self) -> str:
        """The finding in one line."""
        if not self.ran:
            why = "the generator recorded nothing that a check could judge"
            return f"NOTHING CHECKED{HEADLINE_GAP}{why}"
        if self.violated:
            ids = [of.id for of in self.findings if of.severity is Severity.VIOLATION]
            wrong = f"{counted(len(ids), 'deviation')} from what the privacy proof assumes"
            return f"VIOLATION{HEADLINE_GAP}{wrong}: {listed(ids)}"
        flaws = ", ".join(counted(n, of.value) for of in Severity if (n := self.count(of)))
        return f"NO VIOLATION FOUND{HEADLINE_GAP}{flaws}{'; ' if flaws else ''}{self.made}"

    @property
    def made(self) -> str:
        """How many checks passed, and how many could not be made."""
        missing = f", {len(self.not_checked)} could not be made" if self.not_checked else ""
        return f"{counted(len(self.checked), 'check')} passed{missing}"

    def __str__(self) -> str:
        """The report in 80 columns: the finding, each deviation, and what could not be checked."""
        return page_text(trace_page(self))


def summarise(
    outcomes: Sequence[CheckOutcome],
) -> tuple[tuple[Finding, ...], tuple[str, ...], dict[str, str]]:
    """The outcome for each id: its most severe finding, else a pass, else why it was skipped.

    Args:
        outcomes: Outcomes of all checks, in order; an id may occur several times.

    Returns:
        Findings, the most severe first; ids that passed; ids that were skipped, and why. Each id is
        in one of them.
    """
    findings: dict[str, Finding] = {}
    for outcome in outcomes:
        if isinstance(outcome, Finding):
            known = findings.get(outcome.id)
            if known is None or outcome.severity.rank < known.severity.rank:
                findings[outcome.id] = outcome
    passed = dict.fromkeys(outcome.id for outcome in outcomes if isinstance(outcome, Passed))
    checked = tuple(id_ for id_ in passed if id_ not in findings)
    skipped: dict[str, str] = {}
    for outcome in outcomes:
        if isinstance(outcome, Skipped) and outcome.id not in findings and outcome.id not in passed:
            skipped.setdefault(outcome.id, outcome.why)
    ordered = sorted(findings.values(), key=lambda finding: finding.severity.rank)
    return tuple(ordered), checked, skipped


def trace_page(report: TraceReport) -> Page:
    """Arranges the report of a trace.

    Args:
        report: What the trace found.

    Returns:
        The page.
    """
    word, _, finding = report.headline.partition(HEADLINE_GAP)
    rows, facts = _check_rows(report), tuple(_facts(report))
    findings = tuple(map(_finding, report.findings))
    skipped = tuple(_not_made(report))
    passed = Block(
        title="Checks that found nothing",
        level=Level.SUBSECTION,
        folded=True,
        items=report.checked,
    )
    return Page(
        verdict=checked_verdict(violated=report.violated, ran=report.ran),
        word=word,
        finding=finding,
        about=f"Trace of {report.generator} on {report.source}",
        date=report.date,
        lead=tuple(_lead(report)),
        result=_result(rows),
        next_step=Step((_next(report),)),
        findings=(
            *([Block(title="Findings")] if findings else []),
            *findings,
            facts_block("What was tested", facts),
        ),
        clauses=TRACE,
        reproduce=again(report.source, report.reproduce),
        details=(*skipped, *([passed] if report.checked else [])),
        origin=f"dpaudit {__version__} trace",
        draw=lambda picture: draw_checks(rows, title="Checks of each part of the training"),
        facts=facts,
        terminal=(*findings, *skipped),
    )


def _lead(report: TraceReport) -> Iterator[str]:
    if report.violated:
        yield (
            "The training does something that its privacy proof does not cover, so nothing proves "
            "that the claimed epsilon limits how far a synthetic table changes the odds that a "
            "record was used. How far it does, an audit measures."
        )
    elif report.ran:
        yield (
            "No part of the training that was checked contradicts the privacy proof. This is not "
            "evidence of privacy: only an audit tests what a synthetic table reveals."
        )
    yield (
        "A trace trains the generator on the table and on changed tables, and judges what it "
        "records of each training. What it does not record is not tested."
    )


def _check_rows(report: TraceReport) -> tuple[CheckRow, ...]:
    """The outcomes part by part; parts that no check looked at are left out."""
    ended = dict.fromkeys(report.not_checked, CheckEnding.NOT_MADE)
    ended |= dict.fromkeys(report.checked, CheckEnding.PASSED)
    ended |= {finding.id: CheckEnding.of(finding.severity) for finding in report.findings}
    rows = []
    for part, ids in PARTS.items():
        outcomes = sorted((ended[id_] for id_ in ids if id_ in ended), key=list(CheckEnding).index)
        problems = sum(ending in (CheckEnding.VIOLATION, CheckEnding.FLAW) for ending in outcomes)
        if outcomes:
            made = set(outcomes) != {CheckEnding.NOT_MADE}
            rows.append(CheckRow(part, tuple(outcomes), f"{problems} found" if made else ""))
    return tuple(rows)


def _result(rows: tuple[CheckRow, ...]) -> Block:
    if not rows:
        return Block(title="Result", paragraphs=("No check found a record that it could judge.",))
    return Block(
        title="Result",
        picture=Picture.CHECKS,
        caption="One box for each deviation that was looked for, by the part of the training.",
        table=ReportTable(
            ("Part", *(ending.capitalize() for ending in CheckEnding)),
            tuple((row.name, *(str(row.outcomes.count(of)) for of in CheckEnding)) for row in rows),
            frozenset({1, 2, 3, 4}),
        ),
    )


def _finding(finding: Finding) -> Block:
    return Block(
        title=f"{finding.id} ({finding.severity})",
        level=Level.SUBSECTION,
        paragraphs=(
            f"Observed: {finding.evidence}.",
            f"Correct: {finding.correct}.",
            f"Source: {finding.reference}.",
        ),
    )


def _facts(report: TraceReport) -> Iterator[Row]:
    """What was tested, and what was not."""
    yield Row("traced", printable(f"{report.generator} on {report.source}, seed {report.seed}"))
    yield Row("checks", report.made)
    yield Row(
        "tested",
        "what the generator records of its training: who reads which rows, noise, accounting, "
        "gradients, and what the table decides",
    )
    yield Row(
        "untested",
        "what it does not record, the random number generator, floating point, and side channels; "
        "no attack was run",
    )
    if report.schema_inferred:
        yield Row(
            "warning",
            f"{INFERRED}, so a generator that reads them from the data is not noticed; "
            f"{PUBLIC_SCHEMA}",
        )


def _next(report: TraceReport) -> str:
    if report.violated:
        return (
            "Repair the first finding below, which says what is correct, and trace again. To "
            "measure what a synthetic table reveals, audit the generator (dpaudit audit)."
        )
    if report.ran:
        return (
            "Audit the generator (dpaudit audit): an attack tests what a synthetic table reveals, "
            "whatever its cause."
        )
    return (
        "Record more of the training (dpaudit.plugins.recorder says what), or follow the noise of "
        "unmodified code (dpaudit replay)."
    )


def _not_made(report: TraceReport) -> Iterator[Block]:
    """The checks that could not be made, by reason."""
    reasons = dict[str, list[str]]()
    for id_, why in report.not_checked.items():
        reasons.setdefault(why, []).append(id_)
    if reasons:
        yield Block(
            title="Checks that could not be made",
            level=Level.SUBSECTION,
            folded=True,
            items=tuple(f"{why}: {', '.join(ids)}" for why, ids in reasons.items()),
        )
