"""The results of single probes, and the report of all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from dpaudit.formatting import (
    Row,
    counted,
    headed,
    listed,
    percent,
    printable,
    rounded,
    rounded_up,
    wrapped,
)
from dpaudit.model.choices import Severity
from dpaudit.model.claim import PrivacyClaim
from dpaudit.results.document import OPTIONAL, Document
from dpaudit.results.phrases import INFERRED, PUBLIC_SCHEMA, claim_and_relation
from dpaudit.results.sentences import NOT_EVIDENCE

Number = float | str | bool
_INDENT = "  "


class ProbeStatus(StrEnum):
    """How a probe ended."""

    ALARM = "alarm"
    PASSED = "passed"
    NOT_APPLICABLE = "not_applicable"
    FAILED = "failed"


class Observation(NamedTuple):
    """The observation of a probe.

    Attributes:
        alarm: Whether it is an alarm.
        evidence: What was observed, in words.
        numbers: The same in numbers.
        p_value: Largest probability of such evidence under the claim; None where no chance is
            involved.
        certainty: Why an alarm cannot be false, where there is no p-value.
        severity: Severity of this alarm; None means the probe's own.
        read: Columns of the output on which it is based; empty for all.
    """

    alarm: bool
    evidence: str
    numbers: Mapping[str, Number] = {}
    p_value: float | None = None
    certainty: str = ""
    severity: Severity | None = None
    read: tuple[str, ...] = ()


class NotApplicable(NamedTuple):
    """The outcome of a probe that does not apply to this table or this generator.

    Attributes:
        why: The reason, in words.
    """

    why: str


@dataclass(frozen=True, kw_only=True)
class ProbeResult:
    """The outcome of one probe.

    Attributes:
        id: Its name.
        status: How it ended.
        severity: Severity of its alarm.
        evidence: What was seen, in words; or why it does not apply; or what failed.
        numbers: The evidence in numbers.
        p_value: As in `Observation`.
        certainty: As in `Observation`.
        false_alarm_rate: Largest probability of an alarm for a generator that satisfies its claim;
            0 if no chance is involved.
        fits: Models trained.
        correct: What a correct generator does.
    """

    id: str
    status: ProbeStatus
    severity: Severity
    evidence: str
    numbers: Mapping[str, Number] = field(default_factory=dict)
    p_value: float | None = None
    certainty: str = ""
    false_alarm_rate: float = 0.0
    fits: int = 0
    correct: str = ""


@dataclass(frozen=True, kw_only=True)
class ProbeReport(Document):
    """All probes of one generator on one table.

    Attributes:
        generator: Its name.
        parameters: Its parameters.
        source: Where the table came from.
        claim: The claim under test.
        schema_inferred: Whether bounds and categories were inferred from the table.
        records: Records that were probed.
        target: The record that was watched, as it was named; None if none was.
        confidence: Least probability that no probe flags a generator that satisfies its claim.
        seed: Root of every random stream.
        probes: What each probe found.
        date: Day on which they ran, in UTC; absent from documents of before.
        reproduce: The command that gives the same again; absent from documents of before.
    """

    schema_version = 1

    generator: str
    parameters: Mapping[str, Any]
    source: str
    claim: PrivacyClaim
    schema_inferred: bool
    records: int
    target: str | None
    confidence: float
    seed: int
    probes: tuple[ProbeResult, ...]
    date: str | None = field(default=None, compare=False, metadata=OPTIONAL)
    reproduce: str | None = field(default=None, metadata=OPTIONAL)

    def of(self, status: ProbeStatus) -> tuple[ProbeResult, ...]:
        """The results with one status."""
        return tuple(result for result in self.probes if result.status is status)

    @property
    def violations(self) -> tuple[ProbeResult, ...]:
        """Alarms with the severity of a violation."""
        return tuple(r for r in self.of(ProbeStatus.ALARM) if r.severity is Severity.VIOLATION)

    def assert_no_violation(self) -> None:
        """Raises unless the probes ran and none found a violation.

        Raises:
            AssertionError: If a probe raised an alarm with the severity of a violation, if one
                failed, or if none applied; the message is the report.
        """
        __tracebackhide__ = True
        if self.violations or self.of(ProbeStatus.FAILED) or not self.ran:
            raise AssertionError(str(self))

    @property
    def ran(self) -> bool:
        """Whether any probe judged the generator: raised an alarm or passed."""
        return bool(self.of(ProbeStatus.PASSED) or self.of(ProbeStatus.ALARM))

    @property
    def fits(self) -> int:
        """Models trained in all."""
        return sum(result.fits for result in self.probes)

    @property
    def headline(self) -> str:
        """The finding in one line; if no probe judged the generator, the reason."""
        if not self.ran:
            broken = self.of(ProbeStatus.FAILED)
            why = broken or self.of(ProbeStatus.NOT_APPLICABLE)
            reasons = listed(dict.fromkeys(printable(one.evidence) for one in why), most=2)
            how = f"{counted(len(broken), 'probe')} failed" if broken else "no probe applies"
            return f"NOTHING PROBED  {how}: {reasons}"
        alarms = self.of(ProbeStatus.ALARM)
        passed, failed = len(self.of(ProbeStatus.PASSED)), len(self.of(ProbeStatus.FAILED))
        rest = f"{passed} passed{f', {failed} failed' if failed else ''}"
        if not alarms:
            return f"NO ALARM  {counted(passed, 'probe')} {rest.partition(' ')[2]}; {NOT_EVIDENCE}"
        count = {severity: sum(r.severity is severity for r in alarms) for severity in Severity}
        flagged = ", ".join(counted(n, severity) for severity, n in count.items() if n)
        return f"ALARM  {counted(len(alarms), 'probe')} found {flagged}; {rest}"

    def __str__(self) -> str:
        """The report in 80 columns: alarms first, then failed, passed, inapplicable probes."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield from headed(self.headline, self._rows())
        for result in self.of(ProbeStatus.ALARM):
            yield ""
            yield f"{result.severity.upper()} {result.id}"
            for said in (
                f"{result.evidence}.",
                f"{chance(result)}; {result.fits} fits.",
                f"Correct: {result.correct}.",
            ):
                yield from wrapped(said, first=_INDENT, rest=_INDENT)
        for status, title in (
            (ProbeStatus.FAILED, "failed"),
            (ProbeStatus.PASSED, "passed"),
            (ProbeStatus.NOT_APPLICABLE, "not applicable"),
        ):
            results = self.of(status)
            if results:
                yield ""
                yield f"{title}:"
            for result in results:
                line = f"{result.id}: {printable(result.evidence)}"
                yield from wrapped(line, first=_INDENT, rest=_INDENT * 2)

    def _rows(self) -> Iterator[Row]:
        where = f"{self.generator} on {self.source}, {counted(self.records, 'record')}"
        yield Row("probed", printable(f"{where}; {self.fits} fits"))
        yield Row("claim", claim_and_relation(self.claim))
        if self.target:
            yield Row("target", f"{self.target} was watched")
        error = percent(round(1.0 - self.confidence, 12))
        yield Row("chance", f"at most {error} for any alarm if the generator satisfies its claim")
        if self.schema_inferred:
            yield Row("warning", f"{INFERRED}: {PUBLIC_SCHEMA}")
        if self.ran:
            yield Row("next", self._next())

    def _next(self) -> str:
        if self.of(ProbeStatus.ALARM):
            return "repair what the alarms name; `dpaudit audit` measures what it leaks"
        return "`dpaudit audit` measures the empirical epsilon; probes only look for known faults"


def chance(result: ProbeResult) -> str:
    """How probable an alarm is for a generator that satisfies its claim, in a sentence."""
    if result.p_value is not None:
        return (
            f"Under the claim the probability of this is at most {rounded_up(result.p_value)} "
            f"(alarm at {rounded(result.false_alarm_rate)})"
        )
    return f"Not a matter of chance: {result.certainty}"
