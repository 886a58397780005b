"""Verdicts of new releases, compared with the committed ones; nothing is replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from dpaudit.errors import RegistryError
from reports.replay import newest

ROOT = Path(newest.__file__).parents[2]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was replayed; every library has a release 99, except privsyn-core."""
    asked: list[str] = []

    def case(setting: newest.Setting, *_: object, release: str) -> dict[str, Any]:
        asked.append(f"{setting} {release}")
        return {"result": {"verdict": "consistent", "reasons": ["nothing was found"]}}

    def bug(bug: Any, case: Any, side: Any, run: Any) -> None:
        asked.append(f"{bug.package} {side.environment.release.partition('==')[2]}")
        raise RegistryError("pip finds no toy")

    def of(library: Any) -> str | None:
        return None if library.distribution == "privsyn-core" else "99"

    monkeypatch.setattr(newest, "newest_of", of)
    monkeypatch.setattr(newest, "released_case", case)
    monkeypatch.setattr(newest, "replay_side", bug)
    monkeypatch.setattr(newest, "create_environment", lambda *_, **__: None)
    return asked


def test_a_changed_verdict_is_in_the_table(made: list[str], tmp_path: Path) -> None:
    out = tmp_path / "changes.md"
    newest.main(["diffprivlib:histogramdd", "diffprivlib-bin-count", "--out", str(out)])
    assert made == [
        "diffprivlib:histogramdd, library 99",
        "diffprivlib:histogramdd, public 99",
        "diffprivlib 99",
    ]
    _, _, *rows = out.read_text().strip().splitlines()
    assert rows == [
        "| diffprivlib:histogramdd, library | 0.6.6 | violation | 99 | consistent | nothing was "
        "found |",
        "| diffprivlib-bin-count | 0.6.6 | violation | 99 | not replayed | pip finds no toy |",
    ]


def test_no_change_and_no_new_release_is_an_empty_file(made: list[str], tmp_path: Path) -> None:
    out = tmp_path / "changes.md"
    newest.main(["diffprivlib:histogramdd", "privsyn-core", "--out", str(out)])
    assert out.read_text().count("histogramdd, public") == 0
    newest.main(["privsyn-core", "--out", str(out)])
    assert out.read_text() == ""


def test_the_workflow_reads_what_the_study_writes() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "releases.yml").read_text())
    steps = workflow["jobs"]["newest"]["steps"]
    assert any("reports.replay.newest --data data --out changes.md" in str(one) for one in steps)
    assert workflow["permissions"]["issues"] == "write"
    assert "schedule" in workflow[True]  # YAML's `on`
