"""The lock file: every dependency by version and hash, the same versions as in constraints.txt.

The pins of the environments that ship have hashes, too.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from dpaudit.external.environments import Environment

ROOT = Path(__file__).resolve().parents[1]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())
ELSEWHERE = re.compile(r"nvidia-.+|cuda-.+|triton|colorama|appnope")
"""What only CUDA, Windows or macOS need: the tests' versions do not have it."""


def pinned(requirement: str) -> tuple[str, str]:
    """Name and version of a line such as "numpy==2.0.0"."""
    parsed = Requirement(requirement)
    (pin,) = parsed.specifier
    assert pin.operator == "=="
    return canonicalize_name(parsed.name), pin.version


@pytest.fixture(scope="module")
def locked() -> dict[str, list[str]]:
    """Lines of the lock file by requirement: the hashes that each may have."""
    text = (ROOT / "requirements.lock").read_text().replace("\\\n", " ")
    lines = [line.split("--hash=") for line in text.splitlines() if not line.startswith("#")]
    return {line[0].strip(): [one.strip() for one in line[1:]] for line in lines}


def versions(requirements: list[str]) -> dict[str, str]:
    found = dict(pinned(one) for one in requirements)
    assert len(found) == len(requirements), "a package stands there twice"
    return found


def test_every_requirement_has_its_hashes(locked: dict[str, list[str]]) -> None:
    for requirement, hashes in locked.items():
        assert hashes, requirement
        for one in hashes:
            assert re.fullmatch("sha256:[0-9a-f]{64}", one), requirement


def test_lock_and_constraints_have_the_same_versions(locked: dict[str, list[str]]) -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    tested = versions([line for line in lines if not line.startswith("#")])
    here = versions(list(locked))
    of_other_builds = {name for name in here if ELSEWHERE.fullmatch(name)}
    assert {name: of for name, of in here.items() if name not in of_other_builds} == tested
    assert of_other_builds.isdisjoint(tested)


def test_the_lock_has_whatever_the_project_asks_for(locked: dict[str, list[str]]) -> None:
    project = CONFIG["project"]
    asked = [*CONFIG["build-system"]["requires"], *CONFIG["dependency-groups"]["build"]]
    asked += project["dependencies"]
    asked += [one for extra in project["optional-dependencies"].values() for one in extra]
    here = versions(list(locked))
    for one in map(Requirement, asked):
        name = canonicalize_name(one.name)
        assert name == "dpaudit" or one.specifier.contains(here[name]), one


def test_the_command_in_the_lock_is_the_documented_one() -> None:
    [command] = re.findall(
        r"^#\s+(uv pip compile .*)$", (ROOT / "requirements.lock").read_text(), re.M
    )
    assert command in (ROOT / "CONTRIBUTING.md").read_text().splitlines()


def test_ci_installs_from_the_lock_as_documented() -> None:
    ci = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    documented = (ROOT / "CONTRIBUTING.md").read_text().splitlines()
    own = [line for line in documented if line.startswith(".venv/bin/pip")]
    commands = [line for line in own if "--require-hashes" in line or "--no-deps" in line]
    assert len(commands) == 2
    for command in commands:
        assert f"run: {command}\n" in ci


PINS = sorted([*ROOT.glob("generators/*/*/pins/*.txt"), *ROOT.glob("dpaudit/**/pins.txt")])


def test_every_pin_has_its_hashes() -> None:
    torch = set()
    assert len(PINS) > 18
    for path in PINS:
        environment = Environment(name=path.stem, pins=path, pythons=())
        assert len(environment.hashed) == len(environment.requirements) > 0, path
        torch |= {line for line in environment.hashed if line.startswith("torch==2.13.0 ")}
    assert len(torch) == 1, "the hash of the CPU build is missing in one of the files"
