"""What a trace found, as an object, as a JSON document and as text."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dpaudit.formatting import TERMINAL_WIDTH
from dpaudit.model.severity import Severity
from dpaudit.results.document import Document
from dpaudit.trace.findings import CheckOutcome, Finding, Passed, Skipped


@dataclass(frozen=True, kw_only=True)
class TraceReport(Document):
    """What a trace found.

    Attributes:
        generator: Its name.
        parameters: Its parameters.
        source: Where the table came from.
        schema_inferred: Whether bounds and categories were inferred from it.
        seed: Of the trainings.
        findings: The deviations, most severe first.
        checked: Ids of deviations that were looked for and not found.
        not_checked: Ids of deviations that could not be looked for, and why.
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

    def count(self, severity: Severity) -> int:
        """The number of findings of one severity."""
        return sum(finding.severity is severity for finding in self.findings)

    @property
    def violated(self) -> bool:
        """Whether the promise is broken."""
        return self.count(Severity.VIOLATION) > 0

    def assert_no_violation(self) -> None:
        """Fails a test unless something was checked and nothing breaks the promise.

        Raises:
            AssertionError: If there is a finding with the severity of a violation, or nothing could
                be checked; the message is the report.
        """
        __tracebackhide__ = True
        if self.violated or not (self.checked or self.findings):
            raise AssertionError(str(self))

    @property
    def headline(self) -> str:
        """The counts in one line."""
        counts = ", ".join(_counted(self.count(one), one.value) for one in Severity)
        return (
            f"{self.generator}: {counts}; {len(self.checked)} more checks passed, "
            f"{len(self.not_checked)} could not be made"
        )

    def __str__(self) -> str:
        """One block for each finding, what could not be checked, and the counts; 80 columns."""
        blocks = [_block(finding) for finding in self.findings]
        if self.not_checked:
            lines = [_filled(f"{id_}: {why}") for id_, why in self.not_checked.items()]
            blocks.append("\n".join(["NOT CHECKED", *lines]))
        return "\n\n".join([*blocks, textwrap.fill(self.headline, TERMINAL_WIDTH)])


class Summary(NamedTuple):
    """What all checks together say.

    Attributes:
        findings: One for each id, most severe first.
        checked: Ids that were looked for and not found.
        not_checked: Ids that could not be looked for, and why.
    """

    findings: tuple[Finding, ...]
    checked: tuple[str, ...]
    not_checked: dict[str, str]


def summarise(outcomes: Sequence[CheckOutcome]) -> Summary:
    """What counts for each id: its most severe finding, else that it passed, else why not.

    Args:
        outcomes: Those of all checks, in order; an id may occur several times.

    Returns:
        Findings, passed and skipped checks, each id in one of them.
    """
    findings: dict[str, Finding] = {}
    for one in outcomes:
        if isinstance(one, Finding):
            known = findings.get(one.id)
            if known is None or one.severity.rank < known.severity.rank:
                findings[one.id] = one
    passed = dict.fromkeys(one.id for one in outcomes if isinstance(one, Passed))
    checked = tuple(id_ for id_ in passed if id_ not in findings)
    skipped: dict[str, str] = {}
    for one in outcomes:
        if isinstance(one, Skipped) and one.id not in findings and one.id not in passed:
            skipped.setdefault(one.id, one.why)
    ordered = sorted(findings.values(), key=lambda finding: finding.severity.rank)
    return Summary(tuple(ordered), checked, skipped)


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
