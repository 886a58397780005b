"""Faults planted in a synthesizer: each is named at its line, and the honest one passes."""

from __future__ import annotations

import pytest

import dpaudit
from dpaudit.results.verdict import Verdict
from reports.replay.planted import FAULTS, SCHEMA, Fault, Planted, lines_of, table
from reports.replay.run import named_places

pytestmark = [pytest.mark.ci, pytest.mark.usefixtures("worlds")]


@pytest.mark.parametrize("fault", [None, *FAULTS], ids=str)
def test_each_fault_is_named_at_its_line_and_the_honest_twin_passes(fault: Fault | None) -> None:
    subject = Planted(None if fault is None else fault.name)
    record = dpaudit.replay(subject, table(), schema=SCHEMA, target="row:59", fits=1, access="rows")
    if fault is None:
        assert record.verdict is Verdict.CONSISTENT, str(record)
        assert record.spent is not None
        assert 0.9 < record.spent <= 1.0
        return
    assert record.verdict is not Verdict.CONSISTENT, str(record)
    [line] = lines_of(fault.name)
    assert f"planted.py:{line}" in named_places(record)
