"""The badge of an audit."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpaudit.cli.main import app
from dpaudit.report.render import badge
from dpaudit.results.record import AuditRecord
from dpaudit.results.result import AuditResult

Make = Callable[..., AuditRecord]


@pytest.mark.parametrize(
    ("verdict", "message", "color"),
    [
        ("violation", "violation, epsilon 1, at least 3.21, detects 1.76, 2026-07-01", "red"),
        ("consistent", "consistent, epsilon 1, detects 1.76, 2026-07-01", "blue"),
        ("inconclusive", "inconclusive, epsilon 1, detects 1.76, 2026-07-01", "lightgrey"),
    ],
)
def test_a_badge_has_verdict_epsilon_power_and_day(
    record_of: Make, verdict: str, message: str, color: str
) -> None:
    shown = json.loads(badge(record_of(verdict=verdict)))
    assert shown == {
        "schemaVersion": 1,
        "label": "differential privacy audit",
        "message": message,
        "color": color,
    }


def test_a_badge_says_that_a_violation_is_in_floating_point(record_of: Make) -> None:
    shown = json.loads(badge(record_of(verdict="violation", proved_without_bits=0.9)))
    assert shown["message"].startswith("violation in floating point, epsilon 1, ")


def test_a_badge_leaves_out_what_was_not_measured(never_run: AuditRecord) -> None:
    shown = json.loads(badge(replace(never_run, date=None)))
    assert shown["message"] == "invalid, epsilon 1"


@pytest.mark.usefixtures("invented_numbers")
def test_the_command_writes_a_badge_next_to_the_report(record_of: Make, tmp_path: Path) -> None:
    AuditResult.of(record_of(), folder=tmp_path).save(tmp_path)
    file = tmp_path / "badge.json"
    done = CliRunner().invoke(app, ["report", str(tmp_path), "--badge", str(file)])
    assert (done.exit_code, done.stderr) == (0, "")
    assert json.loads(file.read_text())["color"] == "red"
    done = CliRunner().invoke(app, ["report", str(tmp_path), "--bounds", "--badge", str(file)])
    assert (done.exit_code, "give --badge without" in done.stderr) == (2, True)
