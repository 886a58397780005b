"""A result as JUnit XML: the claim is a test, and so is each control and each check.

A claim that fails is a failure; a control or a check that makes the audit invalid is an error. What
did not pass but fails nothing is skipped, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from xml.etree import ElementTree

from dpaudit.formatting import visible
from dpaudit.model.claim import NoClaim
from dpaudit.results.record import AuditRecord
from dpaudit.results.sentences import headline
from dpaudit.results.summary import failure_lines
from dpaudit.results.verdict import Verdict


class _Case(NamedTuple):
    """One test: its name, and its failure in a line and in full; None if it passed."""

    name: str
    outcome: str | None
    message: str
    text: str


def junit_xml(result: AuditRecord, *, fails: bool) -> str:
    """Renders a result as JUnit XML.

    Args:
        result: The record of an audit.
        fails: Whether its verdict fails: an inconclusive one may pass.

    Returns:
        The XML text.
    """
    cases = [_claim(result, fails=fails), *_controls(result), *_checks(result)]
    outcomes = [case.outcome for case in cases]
    suite = ElementTree.Element(
        "testsuite",
        name="dpaudit",
        tests=f"{len(cases)}",
        failures=f"{outcomes.count('failure')}",
        errors=f"{outcomes.count('error')}",
        skipped=f"{outcomes.count('skipped')}",
        time=f"{result.seconds:g}",
    )
    if result.date is not None:
        suite.set("timestamp", f"{result.date}T00:00:00")
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in _properties(result):
        ElementTree.SubElement(properties, "property", name=name, value=visible(value))
    for case in cases:
        named = {"classname": visible(f"dpaudit.{result.generator.name}"), "name": case.name}
        element = ElementTree.SubElement(suite, "testcase", named, time="0")
        if case.outcome is not None:
            said = {"message": visible(case.message)}
            ElementTree.SubElement(element, case.outcome, said).text = visible(case.text)
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    text: str = ElementTree.tostring(suites, encoding="unicode", xml_declaration=False)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def _claim(result: AuditRecord, *, fails: bool) -> _Case:
    found = {
        Verdict.CONSISTENT: None,
        Verdict.MEASURED: None,
        Verdict.VIOLATION: "failure",
        Verdict.INCONCLUSIVE: "failure",
        Verdict.INVALID: "error",
    }[result.verdict]
    outcome = found if fails or found is None else "skipped"
    return _Case("claim", outcome, headline(result), "\n".join(failure_lines(result)))


def _controls(result: AuditRecord) -> Iterator[_Case]:
    for name, control in (result.controls.named() if result.controls else {}).items():
        outcome = None if control.passed else "skipped" if result.ran else "error"
        yield _Case(f"{name} control", outcome, control.detail, control.detail)


def _checks(result: AuditRecord) -> Iterator[_Case]:
    for check in result.checks:
        outcome = None if check.passed else "error" if check.invalidates else "skipped"
        yield _Case(check.name, outcome, check.detail, check.detail)


def _properties(result: AuditRecord) -> Iterator[tuple[str, str]]:
    yield "verdict", str(result.verdict)
    yield "quantity", str(result.claim.quantity)
    yield "claimed", "none" if isinstance(result.claim, NoClaim) else f"{result.claim.value:g}"
    yield "proved", "none" if result.proved is None else f"{result.proved!r}"
    yield "confidence", f"{result.confidence:g}"
    yield "seed", f"{result.seed}"
    yield "reproduce", result.reproduce
