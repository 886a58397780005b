"""Releases of a library: the same audit of each, and which of them changed the verdict."""

from __future__ import annotations

import json
import platform
import sys
import venv
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from dpaudit.auditing.games import audit_settings, build_spec
from dpaudit.cli import libraries
from dpaudit.cli.main import app
from dpaudit.errors import RegistryError
from dpaudit.external.environments import MARKER, PINS, Environment, create_environment
from dpaudit.external.generator import Library
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.model.tables import load
from dpaudit.results.result import AuditResult
from dpaudit.seeds import rng_of
from reports.replay.newest import newest_release
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


def dpaudit(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


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
        monkeypatch.setattr(libraries, "create_environment", by_hand)
    runs = tmp_path / "runs"
    for release, leaks in RELEASES.items():
        assert dpaudit("env", "create", f"toy@{release}").exit_code == 0
        words = (*files, *AUDIT, "--set", "probe=false", "--out", str(runs / release))
        done = dpaudit("audit", f"toy@{release}:rows", *words)
        assert done.exit_code == leaks, done.output
    lost = dpaudit("env", "create", "toy@1.3")
    assert lost.exit_code == 2
    assert "pip finds no lost_library" in " ".join(lost.stderr.split())

    found = json.loads(dpaudit("compare", str(runs), "--json").stdout)
    verdicts = {one["name"]: one["audit"]["verdict"] for one in found["runs"]}
    assert verdicts == {"1.0": "violation", "1.1": "violation", "1.2": "consistent"}
    result = AuditResult.load(runs / "1.1")
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
        found = build_spec(
            f"toy@{version}:rows", load(files[1], files[3]), audit_settings(probe=False)
        )
        return found.id, str(found.default_folder)

    toy.adapter.write_text(toy.adapter.read_text().replace("import toylib", ""))
    (one, here), (other, there) = spec("1.0"), spec("1.1")
    assert one == other
    assert here != there


@pytest.mark.ci
def test_the_index_says_the_newest_release(toy: Library) -> None:
    assert newest_release(toy.environment, "toylib") == "1.3"
    with pytest.raises(RegistryError, match="releases of nolib cannot be listed: pip finds no nol"):
        newest_release(toy.environment, "nolib")
