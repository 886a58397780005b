"""Faults planted in a synthesizer: each is named at its line, and the honest one passes."""

from __future__ import annotations

import pytest

from dpaudit.replaying.run import replays_of
from dpaudit.results.verdict import Verdict
from reports.replay.planted import FAULTS, SCHEMA, Fault, Planted, lines_of, table
from reports.replay.run import named_lines

pytestmark = pytest.mark.ci


@pytest.mark.parametrize("fault", [None, *FAULTS], ids=str)
def test_each_fault_is_named_at_its_line_and_the_honest_twin_passes(fault: Fault | None) -> None:
    subject = Planted(None if fault is None else fault.name)
    [record] = replays_of(subject, table(), [3], schema=SCHEMA, replays=3, target="row:59")
    if fault is None:
        assert record.verdict is Verdict.CONSISTENT, str(record)
        return
    ends = Verdict.INCONCLUSIVE if fault.name == "exit" else Verdict.VIOLATION
    assert record.verdict is ends, str(record)
    meant = {f"planted.py:{line}" for line in lines_of(fault.name)}
    assert len(meant) == 1
    assert meant <= named_lines(record)
