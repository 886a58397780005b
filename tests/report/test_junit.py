"""A result as JUnit XML."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest

from dpaudit.report.render import junit_xml
from dpaudit.results.record import AuditRecord

NOTED = {"consequence": "noted"}

Make = Callable[..., AuditRecord]


def cases(text: str) -> dict[str, tuple[str, str] | None]:
    """The tests by name: None for one that passed, else outcome and message."""
    [suite] = ElementTree.fromstring(text)
    found = {}
    for case in suite.iter("testcase"):
        inside = list(case)
        message = inside[0].attrib["message"] if inside else ""
        found[case.attrib["name"]] = (inside[0].tag, message) if inside else None
    for outcome in ("failure", "error"):
        count = sum(one is not None and one[0] == outcome for one in found.values())
        assert suite.attrib[f"{outcome}s"] == str(count)
    assert suite.attrib["tests"] == str(len(found))
    return found


@pytest.mark.parametrize(
    ("verdict", "fails", "outcome"),
    [
        ("violation", True, "failure"),
        ("violation", False, "skipped"),
        ("inconclusive", True, "failure"),
        ("inconclusive", False, "skipped"),
        ("invalid", True, "error"),
        ("consistent", False, None),
    ],
)
def test_the_claim_is_a_test(record_of: Make, verdict: str, fails: bool, outcome: Any) -> None:
    claim = cases(junit_xml(record_of(verdict=verdict), fails=fails))["claim"]
    assert (claim and claim[0]) == outcome
    assert claim is None or claim[1].startswith(verdict.upper())


def test_controls_and_checks_are_tests(record_of: Make, never_run: AuditRecord) -> None:
    found = cases(junit_xml(never_run, fails=True))
    assert found["null control"] is not None
    assert found["null control"][0] == "error"
    assert found["positive control"] is None
    broken = {"name": "order", "passed": False, "detail": "drifts"}
    checks = [{**broken, "consequence": "invalidates"}, {**broken, "name": "reuse", **NOTED}]
    found = cases(junit_xml(record_of(checks=checks), fails=True))
    assert (found["order"], found["reuse"]) == (("error", "drifts"), ("skipped", "drifts"))


def test_numbers_are_properties_and_foreign_strings_are_no_markup(record_of: Make) -> None:
    text = junit_xml(record_of(reproduce="dpaudit audit '<a>&\x1b[2J'"), fails=True)
    [suite] = ElementTree.fromstring(text)
    properties = {one.attrib["name"]: one.attrib["value"] for one in suite.iter("property")}
    assert float(properties["proved"]) == record_of().proved
    assert properties["reproduce"] == "dpaudit audit '<a>&\N{REPLACEMENT CHARACTER}[2J'"
    assert suite.attrib["timestamp"] == "2026-07-01T00:00:00"
