"""A trace's report as a page: a pure function of it."""

from __future__ import annotations

from collections.abc import Iterator

from dpaudit.formatting import counted, listed
from dpaudit.model.choices import Severity
from dpaudit.report.outcomes import CheckEnding, CheckRow, draw_checks
from dpaudit.report.page import Page, Step, again
from dpaudit.report.standards import TRACE
from dpaudit.results.phrases import PUBLIC_SCHEMA
from dpaudit.results.structure import Block, Level, Picture, ReportTable
from dpaudit.results.verdict import Verdict
from dpaudit.trace.catalogue import PARTS, Finding
from dpaudit.trace.run import TraceReport
from dpaudit.versions import __version__


def trace_page(report: TraceReport) -> Page:
    """Arranges the report of a trace.

    Args:
        report: What the trace found.

    Returns:
        The page.
    """
    word, finding = _headline(report)
    rows = _rows(report)
    return Page(
        verdict=_verdict(report),
        word=word,
        finding=finding,
        about=f"Trace of {report.generator} on {report.source}",
        date=report.date,
        lead=tuple(_lead(report)),
        result=_result(rows),
        next_step=Step((_next(report),)),
        findings=(
            *([Block(title="Findings")] if report.findings else []),
            *map(_finding, report.findings),
            _scope(report),
        ),
        clauses=TRACE,
        reproduce=again(report.source, report.reproduce),
        details=tuple(_details(report)),
        origin=f"dpaudit {__version__} trace",
        draw=lambda picture: draw_checks(rows, title="Checks of each part of the training"),
    )


def _verdict(report: TraceReport) -> Verdict:
    if report.violated:
        return Verdict.VIOLATION
    return Verdict.CONSISTENT if report.checked or report.findings else Verdict.INCONCLUSIVE


def _headline(report: TraceReport) -> tuple[str, str]:
    """The first words of the heading and the rest."""
    if report.violated:
        ids = [one.id for one in report.findings if one.severity is Severity.VIOLATION]
        wrong = counted(len(ids), "deviation")
        return "VIOLATION", f"{wrong} from what the privacy proof assumes: {listed(ids, most=3)}"
    made = f"{counted(len(report.checked), 'check')} passed"
    if report.not_checked:
        made = f"{made}, {len(report.not_checked)} could not be made"
    if report.findings:
        flaws = [counted(n, one.value) for one in Severity if (n := report.count(one))]
        return "NO VIOLATION FOUND", f"{', '.join(flaws)}; {made}"
    if report.checked:
        return "NO VIOLATION FOUND", made
    return "NOTHING CHECKED", "the generator recorded nothing that a check could judge"


def _lead(report: TraceReport) -> Iterator[str]:
    if report.violated:
        yield (
            "The training does something that its privacy proof does not cover, so nothing proves "
            "that the claimed epsilon limits how far a synthetic table changes the odds that a "
            "record was used. How far it does, an audit measures."
        )
    elif report.checked or report.findings:
        yield (
            "No part of the training that was checked contradicts the privacy proof. This is not "
            "evidence of privacy: only an audit tests what a synthetic table reveals."
        )
    yield (
        "A trace trains the generator on the table and on changed tables, and judges what it "
        "records of each training. What it does not record is not tested."
    )
    if report.schema_inferred:
        yield (
            "Bounds and categories were inferred from the table, so a generator that reads them "
            f"from the data is not noticed: {PUBLIC_SCHEMA}."
        )


def _rows(report: TraceReport) -> tuple[CheckRow, ...]:
    """The outcomes part by part; parts that no check looked at are left out."""
    ended = dict.fromkeys(report.not_checked, CheckEnding.NOT_MADE)
    ended |= dict.fromkeys(report.checked, CheckEnding.PASSED)
    ended |= {one.id: CheckEnding.of(one.severity) for one in report.findings}
    rows = []
    for part, ids in PARTS.items():
        outcomes = sorted((ended[id_] for id_ in ids if id_ in ended), key=list(CheckEnding).index)
        found = sum(one in (CheckEnding.VIOLATION, CheckEnding.FLAW) for one in outcomes)
        if outcomes:
            made = set(outcomes) != {CheckEnding.NOT_MADE}
            rows.append(CheckRow(part, tuple(outcomes), f"{found} found" if made else ""))
    return tuple(rows)


def _result(rows: tuple[CheckRow, ...]) -> Block:
    if not rows:
        return Block(title="Result", paragraphs=("No check found a record that it could judge.",))
    return Block(
        title="Result",
        picture=Picture.CHECKS,
        caption="One box for each deviation that was looked for, by the part of the training.",
        table=ReportTable(
            ("Part", *(one.capitalize() for one in CheckEnding)),
            tuple(
                (row.name, *(str(row.outcomes.count(one)) for one in CheckEnding)) for row in rows
            ),
            frozenset({1, 2, 3, 4}),
        ),
    )


def _finding(found: Finding) -> Block:
    return Block(
        title=f"{found.id} ({found.severity})",
        level=Level.SUBSECTION,
        paragraphs=(
            f"Observed: {found.evidence}.",
            f"Correct: {found.correct}.",
            f"Source: {found.reference}.",
        ),
    )


def _scope(report: TraceReport) -> Block:
    rows = (
        (
            "Tested",
            "what the generator records of its training: who reads which rows, noise, "
            "accounting, gradients, and what the table decides",
        ),
        (
            "Not tested",
            "what it does not record, the random number generator, floating point, and "
            "side channels; no attack was run",
        ),
        ("Table", report.source),
        ("Schema", "inferred from the table" if report.schema_inferred else "given"),
    )
    return Block(title="What was tested", table=ReportTable(("Scope", "In this trace"), rows))


def _next(report: TraceReport) -> str:
    if report.violated:
        return (
            "Repair the first finding below, which says what is correct, and trace again. To "
            "measure what a synthetic table reveals, audit the generator (dpaudit audit)."
        )
    if report.checked or report.findings:
        return (
            "Audit the generator (dpaudit audit): an attack tests what a synthetic table reveals, "
            "whatever its cause."
        )
    return (
        "Record more of the training (dpaudit.plugins.recorder says what), or follow the noise of "
        "unmodified code (dpaudit replay)."
    )


def _details(report: TraceReport) -> Iterator[Block]:
    if report.not_checked:
        yield Block(
            title="Checks that could not be made",
            level=Level.SUBSECTION,
            folded=True,
            table=ReportTable(("Check", "Why"), tuple(report.not_checked.items())),
        )
    if report.checked:
        yield Block(
            title="Checks that found nothing",
            level=Level.SUBSECTION,
            folded=True,
            items=report.checked,
        )
