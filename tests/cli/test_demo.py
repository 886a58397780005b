"""`dpaudit demo`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpaudit.auditing import entry
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec
from dpaudit.cli import audit
from dpaudit.cli.main import app
from dpaudit.results.record import AuditRecord


@pytest.mark.ci
def test_the_demo_tells_the_toy_that_keeps_its_promise_from_the_one_that_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "TOY_MODELS", 52)  # fewer cannot tell a claim of 1
    folder = tmp_path / "demo"
    ended = CliRunner().invoke(app, ["demo", "--out", str(folder), "--jobs", "1", "-q"])
    assert ended.exit_code == 0
    said = [line.strip() for line in ended.stdout.splitlines()]
    assert sum(line.startswith("CONSISTENT  ") for line in said) == 1
    assert sum(line.startswith("VIOLATION  ") for line in said) == 1
    page = (folder / "compare.html").read_text()
    assert "laplace-histogram" in page
    assert (folder / "copycat" / "report.html").is_file()


def test_both_toys_are_audited_and_shown_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_of: Callable[..., AuditRecord]
) -> None:
    asked = []

    def run_audit(spec: TwoWorldSpec, folder: Path, **_: object) -> AuditRecord:
        asked.append((spec.generator.name, spec.settings.game.shadow_models, folder))
        return record_of()

    monkeypatch.setattr(entry, "run_audit", run_audit)
    ended = CliRunner().invoke(app, ["demo", "--out", str(tmp_path), "-q"])
    assert ended.exit_code == 0, ended.output
    toys = ("laplace-histogram", "copycat")
    assert asked == [(name, audit.TOY_MODELS, tmp_path / name) for name in toys]
    assert all(f"report    {tmp_path / name}" in ended.stdout for name in toys)
    [command] = [line for line in ended.stdout.splitlines() if line.startswith("next")]
    assert len(command) <= 80
    assert (tmp_path / "compare.html").is_file()


def test_a_page_that_cannot_be_written_is_wrong_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_of: Callable[..., AuditRecord]
) -> None:
    monkeypatch.setattr(audit, "_run_toy", lambda name, *_, **__: record_of())
    (tmp_path / "compare.html").mkdir()
    ended = CliRunner().invoke(app, ["demo", "--out", str(tmp_path)])
    assert ended.exit_code == 2
    assert "compare.html cannot be written: " in ended.stderr
    assert "give another --out" in ended.stderr
