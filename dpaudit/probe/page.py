"""The report of probes as a page: a pure function of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dpaudit.formatting import counted, listed, percent, rounded_up
from dpaudit.probe.result import ProbeReport, ProbeResult, ProbeStatus, chance
from dpaudit.report.outcomes import CheckEnding, CheckRow, draw_checks
from dpaudit.report.page import Page, Step, again
from dpaudit.report.standards import PROBE
from dpaudit.results.odds import but_for, odds
from dpaudit.results.phrases import PUBLIC_SCHEMA
from dpaudit.results.structure import Block, Level, Picture, ReportTable
from dpaudit.results.verdict import Verdict
from dpaudit.versions import __version__

_IN_WORDS: Final = {
    ProbeStatus.ALARM: "alarm",
    ProbeStatus.PASSED: "no alarm",
    ProbeStatus.NOT_APPLICABLE: "not applicable",
    ProbeStatus.FAILED: "failed",
}


def probe_page(report: ProbeReport) -> Page:
    """Arranges the report of probes.

    Args:
        report: What the probes found.

    Returns:
        The page.
    """
    word, finding = _headline(report)
    rows = tuple(map(_row, report.probes))
    alarms = report.of(ProbeStatus.ALARM)
    return Page(
        verdict=_verdict(report),
        word=word,
        finding=finding,
        about=f"Probes of {report.generator} on {report.source}",
        date=report.date,
        lead=tuple(_lead(report)),
        result=Block(
            title="Result",
            picture=Picture.CHECKS,
            caption="One row for each probe, and the models that it trained.",
            table=_table(report),
        ),
        next_step=Step((_next(report),)),
        findings=(
            *([Block(title="Alarms")] if alarms else []),
            *map(_alarm, alarms),
            _scope(report),
        ),
        clauses=PROBE,
        reproduce=again(report.source, report.reproduce),
        details=(_observed(report),),
        origin=f"dpaudit {__version__} probe",
        draw=lambda picture: draw_checks(rows, title="Outcome of each probe"),
    )


def _verdict(report: ProbeReport) -> Verdict:
    if report.violations:
        return Verdict.VIOLATION
    return Verdict.CONSISTENT if report.ran else Verdict.INCONCLUSIVE


def _headline(report: ProbeReport) -> tuple[str, str]:
    """The first words of the heading and the rest."""
    if not report.ran:
        word, _, why = report.headline.partition("  ")
        return word, why
    if report.violations:
        ids = [one.id for one in report.violations]
        raise_ = "raises" if len(ids) == 1 else "raise"
        many = counted(len(report.probes), "probe")
        return "VIOLATION", f"{len(ids)} of {many} {raise_} an alarm: {listed(ids, most=3)}"
    alarms = report.of(ProbeStatus.ALARM)
    rest = f"{counted(len(report.of(ProbeStatus.PASSED)), 'probe')} without an alarm"
    if alarms:
        return "NO VIOLATION FOUND", f"{listed([one.id for one in alarms], most=3)}; {rest}"
    return "NO ALARM", rest


def _lead(report: ProbeReport) -> Iterator[str]:
    claim = report.claim
    if report.violations:
        yield (
            "The claim caps the change in the odds that a record was used at a factor of "
            f"{odds(claim.epsilon, up=True)}{but_for(claim)}. The alarms below show, "
            f"with {percent(report.confidence)} confidence over all probes, that it does not hold; "
            "by how much, an audit measures."
        )
    elif report.ran:
        yield "No alarm is not evidence of privacy: only an audit measures what tables reveal."
    yield (
        "A probe changes the table, the schema or a setting and checks whether the output changes "
        "in a way that no correct generator's does. Leaks that no probe looks for are not ruled "
        "out."
    )
    if report.schema_inferred:
        yield (
            "Bounds and categories were inferred from the table, which no claim covers; the probes "
            f"treat them as public. Better {PUBLIC_SCHEMA}."
        )


def _row(result: ProbeResult) -> CheckRow:
    outcome = {
        ProbeStatus.ALARM: CheckEnding.of(result.severity),
        ProbeStatus.PASSED: CheckEnding.PASSED,
    }.get(result.status, CheckEnding.NOT_MADE)
    fits = f", {counted(result.fits, 'fit')}" if result.fits else ""
    return CheckRow(result.id, (outcome,), f"{_IN_WORDS[result.status]}{fits}")


def _table(report: ProbeReport) -> ReportTable:
    return ReportTable(
        ("Probe", "Outcome", "Severity of an alarm", "p-value", "Fits"),
        tuple(
            (
                one.id,
                _IN_WORDS[one.status],
                str(one.severity),
                "-" if one.p_value is None else rounded_up(one.p_value),
                str(one.fits),
            )
            for one in report.probes
        ),
        frozenset({3, 4}),
    )


def _alarm(result: ProbeResult) -> Block:
    return Block(
        title=f"{result.id} ({result.severity})",
        level=Level.SUBSECTION,
        paragraphs=(
            f"Observed: {result.evidence}.",
            f"{chance(result)}; {counted(result.fits, 'fit')}.",
            f"Correct: {result.correct}.",
        ),
    )


def _scope(report: ProbeReport) -> Block:
    claim = report.claim
    inferred = "inferred from the table" if report.schema_inferred else "given"
    rows = (
        ("Claim", f"{claim.in_words}, {claim.neighbours}"),
        (
            "False alarms",
            f"with probability {_error(report)} at most, over all probes, if the claim holds",
        ),
        ("Records", f"{report.records}{f', {report.target} watched' if report.target else ''}"),
        ("Table and schema", f"{report.source}; schema {inferred}"),
        ("Not tested", "how much leaks, what no probe looks for, and side channels"),
    )
    return Block(title="What was tested", table=ReportTable(("Scope", "In these probes"), rows))


def _error(report: ProbeReport) -> str:
    return percent(round(1.0 - report.confidence, 12))


def _next(report: ProbeReport) -> str:
    if report.violations:
        return (
            "Repair what the first alarm below names, and probe again. To measure what a synthetic "
            "table reveals, audit the generator (dpaudit audit)."
        )
    if report.ran:
        return "Audit the generator (dpaudit audit), which measures how much its tables reveal."
    return "Repair what failed or choose other probes (--only), then probe again."


def _observed(report: ProbeReport) -> Block:
    rest = [one for one in report.probes if one.status is not ProbeStatus.ALARM]
    return Block(
        title="What the other probes saw",
        level=Level.SUBSECTION,
        folded=True,
        table=ReportTable(
            ("Probe", "Outcome", "Observed"),
            tuple((one.id, _IN_WORDS[one.status], one.evidence.replace("`", "")) for one in rest),
        ),
    )
