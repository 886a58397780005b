"""A toy bug in an empty environment: no network is needed."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import dpaudit.plugins.registry as registry
from dpaudit.bugs import run
from dpaudit.bugs.bug import Bug, Case, Release, Status, bug_named, known_bugs
from dpaudit.bugs.run import (
    AuditEvidence,
    BugOutcome,
    BugRun,
    ReplayEvidence,
    SideFound,
    case_digest,
)
from dpaudit.cli.main import app
from dpaudit.errors import RegistryError
from dpaudit.external.environments import Environment, create_environment
from dpaudit.model.claim import Neighbours, PrivacyClaim
from dpaudit.model.tables import load
from dpaudit.results.verdict import Verdict
from replay_records import replay_record
from samples import QUICK_ATTACKS
from toy_library import with_numpy

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
    with_numpy(create_environment(empty).folder)
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


def run_of(out: Path, **given: Any) -> BugRun:
    return BugRun(out, jobs=1, **given)


def test_replays_decide_and_what_is_there_is_not_run_again(
    toy: Bug, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ending = run.run_bug(toy, run_of(tmp_path / "out"))
    found = ending.outcome
    assert found is not None
    assert "of older pins" not in CliRunner().invoke(app, ["env", "list"]).stdout
    assert found.broken.replay.verdict is Verdict.VIOLATION
    assert found.twin.replay.verdict is Verdict.INCONCLUSIVE  # it draws coins alone
    assert found.is_proved
    assert found.is_decided
    assert not found.is_whole
    assert found.twin.account == "public bounds"
    path = tmp_path / "out" / "toy-bounds.json"
    assert BugOutcome.load(path) == found
    with monkeypatch.context() as patched:
        patched.setattr(run, "replay", None)
        again = run.run_bug(toy, run_of(tmp_path / "out"))
    assert again.outcome == found

    whole = run.run_bug(toy, run_of(tmp_path / "out", black_box=True)).outcome
    assert whole is not None
    assert whole.broken.replay == found.broken.replay
    assert whole.broken.audit is not None
    assert whole.twin.audit is not None
    assert whole.broken.audit.verdict is Verdict.VIOLATION
    assert whole.twin.audit.verdict is Verdict.CONSISTENT
    assert whole.broken.audit.models == whole.twin.audit.models == 40
    assert whole.is_proved


def test_a_changed_case_is_run_again(toy: Bug, tmp_path: Path) -> None:
    case = toy.case
    assert case is not None
    digests = {case_digest(case, seed=0), case_digest(case, seed=1)}
    digests.add(case_digest(replace(case, settings={"shadow_models": 41}), seed=0))
    digests.add(case_digest(replace(case, twin=case.broken), seed=0))
    case.adapter.write_text(ADAPTER + "# changed")
    digests.add(case_digest(case, seed=0))
    assert len(digests) == 5


def side(replayed: str | None, audited: str | None = None) -> SideFound:
    verdict = None if replayed is None else Verdict(replayed)
    replay = ReplayEvidence(verdict, False, 0.0, None, ("a reason",), (), 20, 1.0)
    audit = AuditEvidence(Verdict(audited), 0.0, 2.0, 40, 0, 0, 1.0) if audited else None
    return SideFound("a release", replay, audit)


@pytest.mark.parametrize(
    ("broken", "twin", "decided", "proved"),
    [
        (("violation",), ("consistent",), True, True),
        (("violation",), ("inconclusive",), True, True),
        (("violation",), ("violation",), False, False),
        (("violation",), ("overspent",), False, False),
        (("overspent",), ("consistent",), False, False),
        (("violation",), (None,), False, False),
        (("inconclusive",), ("consistent",), False, False),
        (("inconclusive", "violation"), ("consistent", "consistent"), False, True),
        (("inconclusive", "violation"), ("violation", "consistent"), False, False),
        (("violation", "consistent"), ("consistent", "violation"), True, False),
        (("violation", "consistent"), ("consistent", "consistent"), True, True),
        (("violation", "violation"), ("consistent", "inconclusive"), True, False),
        ((None, "violation"), (None, "consistent"), False, True),
        (("consistent", "consistent"), ("consistent", "consistent"), False, False),
    ],
)
def test_a_bug_is_proved_if_its_twin_is_silent(
    broken: tuple[str, ...], twin: tuple[str, ...], *, decided: bool, proved: bool
) -> None:
    found = BugOutcome(
        id="toy-bounds",
        case="0",
        claim=PrivacyClaim(epsilon=1.0, delta=0.0, neighbours=Neighbours.ADD_REMOVE),
        broken=side(*broken),
        twin=side(*twin),
        versions={},
        date="2026-01-01",
    )
    assert found.is_decided is decided
    assert found.is_proved is proved


def test_what_a_replay_found_is_one_line() -> None:
    shown = replay_record(verdict=Verdict.VIOLATION, proved=1.4, reasons=("it is read off",))
    text = ReplayEvidence.of(shown).text
    assert text == "violation, spends 2, epsilon at least 1.4 (20 fits); it is read off"
    proof = replay_record(verdict=Verdict.VIOLATION, of_proof=True, spent=None)
    text = ReplayEvidence.of(proof).text
    assert text.startswith("violation of the proof, epsilon at least 0 (20 fits); ")


def test_the_command_lists_and_says_what_was_found(
    toy: Bug, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = CliRunner().invoke(app, ["bugs"])
    assert listed.exit_code == 0
    assert listed.stdout.startswith("BUGS  1 privacy bug of released software: 1 proved\n")
    assert "\ntoy-bounds: proved\nrelease   toy 1.0\n" in listed.stdout
    assert max(len(line) for line in listed.stdout.splitlines()) <= 80
    words = ["bugs", "run", "--out", str(tmp_path / "out"), "-q"]
    ended = CliRunner().invoke(app, [*words, "toy-bounds"])
    assert ended.exit_code == 0, ended.output
    assert ended.stdout.startswith("PROVED  toy-bounds: ")
    assert "\nreplay    violation" in ended.stdout
    every = CliRunner().invoke(app, [*words, "--all"])
    assert every.exit_code == 0
    for wrong in (["toy"], [], ["--all", "toy-bounds"]):
        refused = CliRunner().invoke(app, [*words, *wrong])
        assert refused.exit_code == 2
        assert refused.stderr.count("\n") == 1


def test_an_environment_that_cannot_be_made_is_said(
    toy: Bug, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise RegistryError("pip finds no toy")

    monkeypatch.setattr(run, "create_environment", failing)
    ended = CliRunner().invoke(app, ["bugs", "run", "toy-bounds", "--out", str(tmp_path), "-q"])
    assert ended.exit_code == 3
    assert ended.stdout == "NOT RUN  toy-bounds: pip finds no toy\n"


def test_a_bug_without_a_case_says_why(toy: Bug, tmp_path: Path) -> None:
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
        run.run_bug(listed, run_of(tmp_path))


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


def test_every_proved_bug_has_its_outcome_and_a_short_program() -> None:
    study = Path(__file__).parents[2] / "reports" / "bugs"
    proved = [bug for bug in known_bugs().values() if bug.status is Status.PROVED]
    assert len(proved) >= 20
    for bug in proved:
        assert bug.case is not None
        found = BugOutcome.load(study / "results" / f"{bug.id}.json")
        assert found.is_whole
        assert found.is_proved, bug.id
        assert found.case == case_digest(bug.case, seed=0), f"{bug.id} has changed since"
        program = (study / "reproductions" / bug.id / "reproduce.py").read_text()
        assert program.count("\n") <= 40, bug.id
        assert "dpaudit" not in program
