"""What an audit leaves for a pipeline: exit code, JUnit XML, GitHub's summary, its date."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner, Result

from dpaudit.cli.audit import summarise
from dpaudit.cli.console import ExitCode
from dpaudit.cli.main import app
from dpaudit.files import MOST_OF_SUMMARY
from dpaudit.results.record import AuditRecord
from samples import QUICK_ATTACKS

WORDS = ("audit", "copycat", "--data", "sample:breast-cancer", "--attack", QUICK_ATTACKS[0])
SIZE = ("--shadow-models", "40", "--jobs", "1", "--out", "run")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def audit(*words: str, **environment: str) -> Result:
    return CliRunner().invoke(app, [*WORDS, *SIZE, *words], env=environment)


def test_an_audit_for_a_pipeline(folder: Path) -> None:
    done = audit("--fail-on", "never", "--set", "junit=junit.xml", GITHUB_STEP_SUMMARY="summary.md")
    assert done.exit_code == ExitCode.PASS, done.output
    assert done.stdout.startswith("VIOLATION")
    [suite] = ElementTree.parse("junit.xml").getroot()
    assert suite.attrib["failures"] == "1"
    assert (folder / "summary.md").read_text().startswith("# ✕ VIOLATION: ")
    document = json.loads(Path("run/result.json").read_text())
    assert abs(date.fromisoformat(document["date"]) - datetime.now(UTC).date()).days <= 1
    assert document["date"] in Path("run/report.html").read_text()

    # The same command trains nothing, and the day of the audit stays.
    Path("run/result.json").write_text(json.dumps({**document, "date": "2026-01-31"}))
    again = audit("-q", GITHUB_STEP_SUMMARY="nowhere/summary.md")
    assert again.exit_code == ExitCode.VIOLATION
    assert json.loads(Path("run/result.json").read_text())["date"] == "2026-01-31"
    assert "note: GITHUB_STEP_SUMMARY cannot be written: No such file" in again.stderr


def test_xml_that_could_not_be_written_is_refused_before_any_training() -> None:
    done = audit("--fail-on", "never", "--set", "junit=nowhere/junit.xml")
    assert done.exit_code == ExitCode.USAGE
    assert "folder nowhere does not exist: make it, or give another --set junit\n" in done.stderr
    assert not Path("run").exists()


def test_a_summary_is_appended_and_never_too_long_for_github(
    record_of: Callable[..., AuditRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    summarise(record_of())  # outside GitHub Actions
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    Path("summary.md").write_text("before\n")
    checks = [
        {"name": f"check {n}", "passed": True, "detail": "x" * 5000, "consequence": "noted"}
        for n in range(50)
    ]
    summarise(record_of(checks=checks))
    text = Path("summary.md").read_text()
    assert text.startswith("before\n# ")
    assert len(text.encode()) <= MOST_OF_SUMMARY + len("before\n")
    assert "is too long to be shown here" in text
    assert "## Result" in text
