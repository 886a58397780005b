"""A toy bug in an empty environment: no network is needed."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dpaudit.plugins.registry as registry
from dpaudit.bugs import run
from dpaudit.bugs.bug import Bug, Case, Release, Status, bug_named, known_bugs
from dpaudit.cli.main import app
from dpaudit.errors import RegistryError
from dpaudit.external.environments import Environment
from dpaudit.model.tables import load
from dpaudit.results.record import AuditRecord
from dpaudit.results.result import AuditResult
from dpaudit.results.verdict import Verdict
from samples import QUICK_ATTACKS

ADAPTER = '''
import random


class Largest:
    """Numbers up to the table's largest, or up to the public bound."""

    claim = {"epsilon": 1.0}

    def __init__(self, *, schema, public=False):
        self.column, self.public = schema["columns"][0], public

    def fit(self, data, *, seed):
        name = self.column["name"]
        self.top = self.column["upper"] if self.public else max(row[name] for row in data)
        return self

    def sample(self, n, *, seed):
        draw = random.Random(seed)
        return [{self.column["name"]: draw.uniform(0, self.top)} for _ in range(n)]
'''
SCHEMA = (
    '{"columns": [{"name": "x", "kind": "continuous", "lower": 0, "upper": 100}], '
    '"format": "dpaudit-schema/1"}'
)
ROWS: tuple[Bug, ...] | str = ()
"""The corpus of the running test, for the entry point."""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bug:
    """A bug, the only one that is registered; environments are made in a folder of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "adapter.py").write_text(ADAPTER)
    (tmp_path / "pins.txt").write_text("")
    (tmp_path / "toy.csv").write_text("x\n" + "1.5\n" * 10 + "90.0\n")
    (tmp_path / "toy-out.csv").write_text("x\n" + "1.5\n" * 10)
    (tmp_path / "toy.schema.json").write_text(SCHEMA)
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    empty = Environment(name="toy", pins=tmp_path / "pins.txt", pythons=(python,))
    bug = Bug(
        id="toy-bounds",
        package="toy",
        versions="1.0",
        flaw="numbers reach to the largest of the table, which one record alone may have, or not",
        source="a test",
        status=Status.PROVED,
        case=Case(
            broken=Release(environment=empty, account="toy 1.0"),
            twin=Release(environment=empty, account="public bounds", parameters={"public": True}),
            adapter=tmp_path / "adapter.py",
            method="Largest",
            tables=tmp_path / "toy",
            settings={"shadow_models": 40, "attacks": QUICK_ATTACKS[:1]},
        ),
    )
    _register(monkeypatch, (bug,))
    return bug


def _register(monkeypatch: pytest.MonkeyPatch, rows: tuple[Bug, ...] | str) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROWS", rows)
    entry = EntryPoint("test", f"{__name__}:ROWS", "dpaudit.bugs")
    installed = entry_points

    def found(**chosen: str) -> EntryPoints:
        return EntryPoints([entry]) if chosen["group"] == "dpaudit.bugs" else installed(**chosen)

    monkeypatch.setattr(registry, "entry_points", found)


def test_a_violation_is_proved_of_the_bug_and_none_of_its_twin(toy: Bug) -> None:
    broken, twin = run.run_bug(toy, jobs=1)
    assert "of older pins" not in CliRunner().invoke(app, ["env", "list"]).stdout
    assert broken.result.verdict is Verdict.VIOLATION
    assert twin.result.verdict is Verdict.CONSISTENT
    assert broken.as_expected
    assert twin.as_expected
    assert broken.result.shadow_models == twin.result.shadow_models
    assert twin.account == "public bounds"


def test_the_command_lists_and_says_what_differs(
    toy: Bug, record_of: Callable[..., AuditRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = CliRunner().invoke(app, ["bugs"])
    assert listed.exit_code == 0
    assert listed.stdout.startswith("BUGS  1 privacy bug of released software: 1 proved\n")
    assert "\ntoy-bounds: proved\nrelease   toy 1.0\n" in listed.stdout
    assert max(len(line) for line in listed.stdout.splitlines()) <= 80
    flagged = AuditResult.of(record_of(verdict="violation"), folder=None)
    monkeypatch.setattr(run, "audit_by_keywords", lambda *given, **settings: flagged)
    ended = CliRunner().invoke(app, ["bugs", "run", "toy-bounds", "-q"])
    assert ended.exit_code == 1
    assert ended.stdout.count("VIOLATION  claimed") == 2
    assert ended.stdout.startswith("NOT AS EXPECTED  toy-bounds: ")
    assert ended.stdout.count("\nexpected  consistent\n") == 1
    unknown = CliRunner().invoke(app, ["bugs", "run", "toy"])
    assert unknown.exit_code == 2


def test_a_bug_without_a_case_says_why(toy: Bug) -> None:
    listed = Bug(
        id="toy-listed",
        package="toy",
        versions="1.0",
        flaw="a flaw",
        source="a test",
        status=Status.NOT_BUILT,
        note="it is not on the index",
    )
    with pytest.raises(RegistryError, match=r"toy-listed .*not built.*: it is not on the index"):
        run.run_bug(listed)


def test_bugs_are_found_by_their_ids(toy: Bug) -> None:
    assert known_bugs() == {"toy-bounds": toy}
    assert bug_named("toy-bounds") is toy
    with pytest.raises(RegistryError, match=r"no bug 'toy-bound'.*toy-bounds"):
        bug_named("toy-bound")


def test_what_is_no_corpus_is_refused(toy: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    _register(monkeypatch, (toy, toy))
    with pytest.raises(RegistryError, match="toy-bounds is registered twice"):
        known_bugs()
    _register(monkeypatch, "text")
    with pytest.raises(RegistryError, match="no sequence"):
        known_bugs()


def test_every_case_of_ours_has_its_files() -> None:
    for bug in known_bugs().values():
        assert bug.case is not None or bug.status is not Status.PROVED, bug.id
        assert bug.note or bug.status is Status.PROVED, bug.id
        if bug.case is None:
            assert bug.note
            continue
        table, other = (
            load(path, bug.case.schema) for path in (bug.case.table, bug.case.neighbour)
        )
        assert abs(len(table.data) - len(other.data)) <= 1
        assert re.search(rf"^class {bug.case.method}\b", bug.case.adapter.read_text(), re.MULTILINE)
        for side in (bug.case.broken, bug.case.twin):
            assert any(
                pin.partition("==")[0].lower() == bug.package.lower()
                for pin in side.environment.requirements
            )
