"""A probe report as text of 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from dpaudit.formatting import TERMINAL_WIDTH, clipped, percent, printable, rounded
from dpaudit.model.severity import Severity
from dpaudit.probe.result import ProbeReport, ProbeResult, Status

_INDENT = "  "


def text_of(report: ProbeReport) -> str:
    """The report: alarms first, then what passed, failed or does not apply."""
    return "\n".join(_lines(report))


def verdict_of(report: ProbeReport) -> str:
    """The report in one line."""
    alarms = report.of(Status.ALARM)
    count = {severity: sum(r.severity is severity for r in alarms) for severity in Severity}
    told = [f"{n} {severity}{'s' if n > 1 else ''}" for severity, n in count.items() if n]
    passed, failed = len(report.of(Status.PASSED)), len(report.of(Status.FAILED))
    rest = [f"{passed} passed", f"{failed} failed" if failed else ""]
    skipped = len(report.of(Status.NOT_APPLICABLE))
    rest.append(f"{skipped} not applicable" if skipped else "")
    words = ", ".join(filter(None, [", ".join(told) or "no alarm", *rest]))
    return f"{report.generator}: {words} ({report.fits} fits)"


def _lines(report: ProbeReport) -> Iterator[str]:
    yield from _wrapped(verdict_of(report), "", "")
    claim = report.claim
    yield from _wrapped(
        f"held to epsilon {rounded(claim.epsilon)}, delta {claim.delta:g}, {claim.neighbours}; "
        f"{report.records} records; all probes together accuse a generator that keeps this with "
        f"probability {percent(round(1.0 - report.confidence, 12))} at most",
        "",
        "",
    )
    if report.schema_inferred:
        yield from _wrapped(
            "bounds and categories were inferred from the table, which no claim covers; the "
            "probes hand them in as public, and wider",
            "",
            "",
        )
    for result in report.of(Status.ALARM):
        yield ""
        yield f"{result.severity.upper()} {result.id}"
        yield from _wrapped(f"{printable(result.words)}.", _INDENT, _INDENT)
        yield from _wrapped(f"{_chance(result)}; {result.fits} fits.", _INDENT, _INDENT)
        yield from _wrapped(f"Correct: {result.correct}.", _INDENT, _INDENT)
    for status, title in (
        (Status.FAILED, "failed"),
        (Status.PASSED, "passed"),
        (Status.NOT_APPLICABLE, "not applicable"),
    ):
        results = report.of(status)
        if results:
            yield ""
            yield f"{title}:"
        for result in results:
            line = f"{result.id}: {printable(result.words)}"
            if status is Status.PASSED:
                yield _INDENT + clipped(line, TERMINAL_WIDTH - len(_INDENT))
            else:
                yield from _wrapped(line, _INDENT, _INDENT * 2)
    yield ""
    yield "No alarm is no evidence of privacy: for that there is `dpaudit audit`."


def _chance(result: ProbeResult) -> str:
    if result.p_value is not None:
        return (
            f"Under the claim this has probability {rounded(result.p_value)} at most (alarm at "
            f"{rounded(result.false_alarm_rate)})"
        )
    return f"No chance: {result.certainty}"


def _wrapped(text: str, first: str, then: str) -> list[str]:
    return textwrap.wrap(text, TERMINAL_WIDTH, initial_indent=first, subsequent_indent=then)
