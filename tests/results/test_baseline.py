"""What audits of a test suite proved before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpaudit.errors import InputError
from dpaudit.results.baseline import AuditOfTest, read_baseline, risen, write_baseline


def found(test: str, proved: float | None, *, number: int = 1) -> AuditOfTest:
    return AuditOfTest(
        test=test,
        number=number,
        verdict="consistent",
        quantity="epsilon",
        claimed=1.0,
        proved=proved,
        shadow_models=100,
        seed=0,
        report="report.html",
    )


def test_what_was_proved_comes_back_and_other_tests_keep_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "privacy.json"
    write_baseline(file, [found("t.py::a", 0.25), found("t.py::a", None, number=2)])
    write_baseline(file, [found("t.py::b", 0.5)])
    assert read_baseline(file) == {"t.py::a": 0.25, "t.py::a #2": 0.0, "t.py::b": 0.5}
    write_baseline(file, [found("t.py::a", 1.25)])
    assert read_baseline(file)["t.py::a"] == 1.25


def test_only_a_rise_beyond_the_tolerance_is_said() -> None:
    before = {"t.py::a": 0.25}
    assert risen(found("t.py::a", 0.75), before, tolerance=0.5) == ""
    assert risen(found("t.py::a", None), before, tolerance=0.5) == ""
    assert risen(found("t.py::new", 9.0), before, tolerance=0.5) == ""
    assert "from 0.25 to 0.76 " in risen(found("t.py::a", 0.76), before, tolerance=0.5)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema_version": 2, "audits": {}}', "x"])
def test_what_is_no_baseline_is_refused_and_kept(tmp_path: Path, text: str) -> None:
    file = tmp_path / "privacy.json"
    file.write_text(text)
    with pytest.raises(InputError, match="no baseline of dpaudit"):
        read_baseline(file)
    with pytest.raises(InputError, match="no baseline of dpaudit"):
        write_baseline(file, [found("t.py::a", 1.0)])
    assert file.read_text() == text


def test_a_baseline_that_is_not_there_or_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--dpaudit-baseline-update"):
        read_baseline(tmp_path / "none.json")
    with pytest.raises(InputError, match="cannot write"):
        write_baseline(tmp_path / "no folder" / "x.json", [found("t.py::a", 1.0)])
    write_baseline(tmp_path / "x.json", [])
    assert json.loads((tmp_path / "x.json").read_text())["audits"] == {}
