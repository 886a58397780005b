"""`dpaudit bisect`: the same audit over releases, and where its verdict changes."""

from __future__ import annotations

import json
import platform
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from dpaudit.auditing import bisection
from dpaudit.auditing.bisection import (
    Bisection,
    ChangedBetween,
    ReleaseOutcome,
    gravest_verdict,
    verdict_changes,
)
from dpaudit.auditing.games import audit_settings, build_spec
from dpaudit.bugs.bug import Bug, Case, Release, Status
from dpaudit.cli.bisect import _conclusion, _lines
from dpaudit.cli.main import app
from dpaudit.errors import RegistryError, SettingsError
from dpaudit.external import environments
from dpaudit.external.environments import MARKER, PINS, Environment, create_environment
from dpaudit.external.libraries import Library
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.model.tables import Table, load
from dpaudit.replaying.bisection import ReplayedRelease, bisection_of, search_releases
from dpaudit.replaying.record import ReplayRecord
from dpaudit.results.record import AuditRecord
from dpaudit.results.result import AuditResult
from dpaudit.results.verdict import Verdict
from dpaudit.seeds import rng_of
from samples import QUICK_ATTACKS
from toy_library import RELEASES, registered, toy_index, toy_library, with_numpy

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"
SCHEMA = Schema(
    columns=tuple(Column(name=n, kind=Kind.CONTINUOUS, lower=0.0, upper=1.0) for n in "xy")
)
AUDIT = ("--shadow-models", "80", "--attack", QUICK_ATTACKS[1], "--target", "row:7", "--jobs", "1")


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(toy_index(tmp_path)))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    library = toy_library(tmp_path, python=HERE)
    registered(library, monkeypatch)
    return library


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, ...]:
    values = rng_of(0, "table").random((30, 2))
    values[7] = 1.0
    pd.DataFrame(values, columns=["x", "y"]).to_csv(tmp_path / "table.csv", index=False)
    SCHEMA.save(tmp_path / "schema.json")
    return ("--data", str(tmp_path / "table.csv"), "--schema", str(tmp_path / "schema.json"))


def bisect(*words: str) -> Result:
    return CliRunner().invoke(app, ["bisect", *words])


def by_hand(environment: Environment, **_: object) -> object:
    """What pip does with the toy's wheels, in a tenth of the time."""
    release = environment.release.partition("==")[2]
    if release not in RELEASES:
        raise RegistryError("pip finds no lost_library")
    built = environment.built
    if built is None:
        folder = environment.folder
        venv.create(folder, with_pip=False, symlinks=True)
        [packages] = folder.glob("lib/python*/site-packages")
        (packages / "toylib.py").write_text(f"LEAKS = {RELEASES[release]}\n")
        (folder / PINS).write_text("\n".join(environment.requirements))
        marker = {"python": platform.python_version(), "packages": {"toylib": release}}
        (folder / MARKER).write_text(json.dumps(marker))
        with_numpy(folder)
    return environment.built


@pytest.mark.ci
@pytest.mark.parametrize("installer", ["by hand", pytest.param("pip", marks=pytest.mark.slow)])
def test_the_release_that_stopped_leaking_is_found(
    installer: str,
    toy: Library,
    files: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if installer == "by hand":
        monkeypatch.setattr(bisection, "create_environment", by_hand)
        offered = (*RELEASES, "1.3")
        monkeypatch.setattr(environments, "_offered", lambda *_, **__: offered)
    words = ("toy:rows", "--versions", "1.1..1.3", *files, *AUDIT, "--no-probe")
    first = bisect(*words, "--out", str(tmp_path / "runs"))
    assert first.exit_code == 1, first.output
    said, table = first.stdout.rsplit("\n\n", 1)
    head, *rows = table.splitlines()
    assert said.startswith("BISECT  the verdict changes between 1.1 (violation) and 1.2 (")
    assert head.split() == ["release", "verdict", "bound", "time"]
    assert [row.split()[:2] for row in rows] == [
        ["1.1", "violation"],
        ["1.2", "consistent"],
        ["1.3", "none"],
    ]
    assert "pip finds no lost_library" in " ".join(said.split())
    assert "\nbounds    each holds at 95 % confidence by itself\nfailed    1.3: " in said

    again = bisect(*words, "--out", str(tmp_path / "runs"), "--json", "--fail-on", "never")
    assert again.exit_code == 0, again.output
    document = json.loads(again.stdout)
    assert document["package"] == "toylib"
    assert document["changes"] == [{"before": "1.1", "after": "1.2"}]
    leaking, _, broken = document["releases"]
    assert leaking["proved"] > 1
    assert leaking["run_folder"] == str(tmp_path / "runs" / "1.1")
    assert broken["verdict"] is None
    result = AuditResult.load(tmp_path / "runs" / "1.1")
    assert result.versions["toy@1.1: toylib"] == "1.1"
    assert "audit toy@1.1:rows " in result.reproduce
    noted = [check.name for check in result.checks if not check.passed]
    assert noted == ["different seeds"]  # it copies; trials of another release are no reuse


def test_releases_that_do_the_same_have_the_same_streams(
    toy: Library, files: tuple[str, ...], tmp_path: Path
) -> None:
    environment = Environment(name="toy", pins=tmp_path / "none.txt", pythons=(HERE,))
    environment.pins.write_text("")
    python = create_environment(environment).folder  # stands for that of both releases

    def spec(version: str) -> tuple[str, str]:
        place = toy.with_release(version).environment.folder
        place.symlink_to(python)
        found = build_spec(f"toy@{version}:rows", table(files), audit_settings(probe=False))
        return found.id, str(found.default_folder)

    toy.adapter.write_text(toy.adapter.read_text().replace("import toylib", ""))
    (one, here), (other, there) = spec("1.0"), spec("1.1")
    assert one == other
    assert here != there


@pytest.mark.ci
def test_a_bug_is_looked_for_in_other_releases(
    toy: Library, files: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = Path(files[1]).read_text()
    (tmp_path / "table-out.csv").write_text("".join(text.splitlines(keepends=True)[:-1]))
    Path(files[3]).rename(tmp_path / "table.schema.json")
    side = Release(environment=toy.environment, account="toylib 1.0")
    case = Case(
        broken=side,
        twin=side,
        adapter=toy.adapter,
        method="Rows",
        tables=tmp_path / "table",
        settings={"shadow_models": 80, "attacks": QUICK_ATTACKS[1:]},
    )
    bug = Bug(
        id="toy-copies",
        package="toylib",
        versions="1.0, 1.1",
        flaw="copies rows",
        source="a test",
        status=Status.PROVED,
        case=case,
    )
    monkeypatch.setattr("dpaudit.bugs.bug.known_bugs", lambda: {bug.id: bug})
    monkeypatch.setattr(bisection, "create_environment", by_hand)
    monkeypatch.setattr(environments, "_offered", lambda *_, **__: tuple(RELEASES))
    words = ("toy-copies", "--versions", "1.1..1.2", "--jobs", "1", "--out", str(tmp_path / "runs"))
    found = bisect(*words, "-q")
    assert found.exit_code == 1, found.output
    assert found.stdout == (
        "BISECT  the verdict changes between 1.1 (violation) and 1.2 (consistent)\n"
    )
    result = AuditResult.load(tmp_path / "runs" / "1.1")
    assert result.versions["toy@1.1: toylib"] == "1.1"
    refused = bisect(*words, "--epsilon", "2")
    assert refused.exit_code == 2
    assert "leave out all options of the audit but --seed" in refused.stderr


def table(files: tuple[str, ...]) -> Table:
    return load(files[1], files[3])


def test_ranges_of_releases(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = ("0.9", "1.0rc1", "1.0", "1.1.2")
    monkeypatch.setattr(
        environments,
        "_offered",
        lambda *_, early, **__: tuple(one for one in known if early or "rc" not in one),
    )
    environment = Environment(name="x", pins=tmp_path, pythons=(HERE,))

    def between(versions: str) -> tuple[str, ...]:
        return environments.releases_between(environment, "pack", versions)

    assert between("0.9..1.1.2") == ("0.9", "1.0", "1.1.2")
    assert between("1.0..") == ("1.0", "1.1.2")
    assert between("..1.0") == ("0.9", "1.0")
    assert between("1.0rc1..1.0") == ("1.0rc1", "1.0")
    assert between("1.0..1.0") == ("1.0",)
    with pytest.raises(SettingsError, match=r"is '1\.0': give a range, such as 1\.0\.\.1\.2"):
        between("1.0")
    with pytest.raises(SettingsError, match=r"no pack 1\.1 \(did you mean '1\.1\.2'\?\) for this"):
        between("1.0..1.1")
    with pytest.raises(SettingsError, match=r"1\.0 is older: write 1\.0\.\.1\.1\.2"):
        between("1.1.2..1.0")


def test_slips_are_answered_in_one_line(toy: Library, files: tuple[str, ...]) -> None:
    for name, said in {
        "pate-gan": "bisect needs a LIBRARY:METHOD or a bug, and 'pate-gan' is none",
        "toy": "toy is a library: name one of its methods; there is toy:rows, toy:gone",
        "toy:row": "toy has no method 'row' (did you mean 'rows'?)",
        "toy@1.0:rows": "'toy@1.0:rows' is none (did you mean 'toy:rows'?); there is ",
    }.items():
        found = bisect(name, "--versions", "1.0..1.1", *files)
        assert found.exit_code == 2, found.output
        assert said in found.stderr
        assert found.stderr.count("\n") == 1
    found = bisect("toy:rows", "--versions", "1.0", "-q", *files)
    assert found.stderr == "error: --versions is '1.0': give a range, such as 1.0..1.2\n"


@pytest.mark.ci
def test_a_package_that_the_index_does_not_have(toy: Library) -> None:
    with pytest.raises(RegistryError, match="releases of nolib cannot be listed: pip finds no nol"):
        environments.releases_between(toy.environment, "nolib", "1..2")


def outcome(make: Callable[..., AuditRecord], version: str, verdict: str | None) -> ReleaseOutcome:
    if verdict is None:
        return ReleaseOutcome(version, None, None, None, None, "it cannot be installed")
    record = make(verdict=verdict, seconds=61.0)
    return ReleaseOutcome(version, record.verdict, record.proved, record.seconds, None, None)


def test_what_is_said_of_releases(record_of: Callable[..., AuditRecord]) -> None:
    def made(*verdicts: str | None) -> list[ReleaseOutcome]:
        return [outcome(record_of, f"1.{n}", one) for n, one in enumerate(verdicts)]

    good, bad, unknown = "consistent", "violation", "inconclusive"
    some = made(bad, None, good, good, bad)
    assert [(before.version, after.version) for before, after in verdict_changes(some)] == [
        ("1.0", "1.2"),
        ("1.3", "1.4"),
    ]
    assert _conclusion(some) == (
        "the verdict changes between 1.0 (violation) and 1.2 (consistent), between 1.3 "
        "(consistent) and 1.4 (violation)"
    )
    assert _conclusion(made(good, good)) == "the verdict never changes: consistent"
    assert _conclusion(made(None, good)) == "only one release was audited: consistent"
    assert _conclusion(made(None)) == "no release could be audited"
    lines = _lines("BISECT  changed", Bisection.of("toylib", some, confidence=0.95))
    assert lines[0] == "BISECT  changed"
    assert "failed    1.1: it cannot be installed" in lines
    assert "1.1      none" in lines

    def gravest(*verdicts: str | None) -> Verdict:
        return gravest_verdict(made(*verdicts))

    assert gravest(bad, None, good, good, bad) is Verdict.VIOLATION
    assert gravest(good, None) is Verdict.INCONCLUSIVE
    assert gravest(good, unknown) is Verdict.INCONCLUSIVE
    assert gravest(good, good) is Verdict.CONSISTENT


def replayed(version: str, verdict: str | None) -> ReplayedRelease:
    if verdict is None:
        return ReplayedRelease(version, None, "it cannot be installed")
    record = SimpleNamespace(verdict=Verdict(verdict), proved=None, seconds=2.0)
    return ReplayedRelease(version, cast(ReplayRecord, record))


@pytest.mark.parametrize("failing", [set(), {4}, {3, 4, 5}, {1, 2, 3, 4, 5, 6, 7, 8}])
@pytest.mark.parametrize("first", range(1, 10))
@pytest.mark.parametrize("begins", [True, False])
def test_a_binary_search_finds_the_first_release_that_differs(
    *, begins: bool, first: int, failing: set[int]
) -> None:
    order = [f"1.{place}" for place in range(10)]

    def verdict(place: int) -> str | None:
        if place in failing:
            return None
        return "violation" if (place >= first) is begins else "consistent"

    asked = []

    def replay(version: str) -> ReplayedRelease:
        asked.append(version)
        return replayed(version, verdict(order.index(version)))

    found = list(search_releases(order, replay))
    assert len(asked) == len(set(asked)) <= 6 + len(failing)
    record = bisection_of("toylib", found, order=order, confidence=0.95)
    last_before = max(place for place in range(first) if place not in failing)
    first_after = min(place for place in range(first, 10) if place not in failing)
    assert record.changes == (ChangedBetween(order[last_before], order[first_after]),)
    assert [one.version for one in record.releases] == sorted(asked)


def test_a_binary_search_needs_both_ends() -> None:
    asked = list(search_releases(["1", "2", "3"], lambda version: replayed(version, "violation")))
    assert [one.version for one in asked] == ["1", "3"]
    assert len(list(search_releases(["1"], lambda version: replayed(version, "violation")))) == 1
    with pytest.raises(RegistryError, match="1, an end of `versions`, cannot be replayed: it can"):
        list(search_releases(["1", "2"], lambda version: replayed(version, None)))


@pytest.mark.ci
def test_a_release_is_found_by_replay(
    toy: Library, files: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpaudit.replaying.bisection.create_environment", by_hand)
    monkeypatch.setattr(environments, "_offered", lambda *_, **__: (*RELEASES, "1.3"))
    words = ("toy:rows", "--replay", *files, "--target", "row:7")
    found = bisect(*words, "--versions", "..1.2", "--json")
    assert found.exit_code == 1, found.output
    document = json.loads(found.stdout)
    assert document["changes"] == [{"before": "1.1", "after": "1.2"}]
    same = bisect(*words, "--versions", "1.0..1.1", "-q")
    assert same.stdout == "BISECT  no change between the ends: 1.0 and 1.1 are violations\n"
    broken = bisect(*words, "--versions", "1.2..1.3", "-q")
    assert broken.exit_code == 2
    assert broken.stderr.startswith("error: 1.3, an end of --versions, cannot be replayed: pip fin")
