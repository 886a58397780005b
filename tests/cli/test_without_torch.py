"""Without torch all works but the generators that need it, and these say what to install."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
GENERATORS = PROJECT["entry-points"]["dpaudit.generators"]
HIDDEN = """
import importlib.metadata, sys

class Hiding:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

def distribution(name, found=importlib.metadata.distribution):
    if name == "torch":
        raise importlib.metadata.PackageNotFoundError(name)
    return found(name)

sys.meta_path.insert(0, Hiding())
importlib.metadata.distribution = distribution
"""
RUN = """
import json, sys
from typer.testing import CliRunner
from dpaudit.cli.main import app
for line in sys.argv[1:]:
    done = CliRunner().invoke(app, line.split())
    print(json.dumps([done.exit_code, done.stdout, done.stderr]))
"""


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    stdout: str
    stderr: str


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that hides torch and has what pyproject.toml says, whatever is installed."""
    home = tmp_path_factory.mktemp("bare")
    (home / "sitecustomize.py").write_text(HIDDEN)
    about = home / "dpaudit.dist-info"
    about.mkdir()
    head = ["Name: dpaudit", f"Version: {PROJECT['version']}"]
    head += [f"Requires-Dist: {one}" for one in PROJECT["dependencies"]]
    for extra, packages in PROJECT["optional-dependencies"].items():
        head.append(f"Provides-Extra: {extra}")
        head += [f"Requires-Dist: {one}; extra == '{extra}'" for one in packages]
    (about / "METADATA").write_text("\n".join(head))
    lines = []
    for group, entries in PROJECT["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {place}" for name, place in entries.items())]
    (about / "entry_points.txt").write_text("\n".join(lines))
    return home


def commands(home: Path, *lines: str) -> list[Ended]:
    """Runs commands without torch, one after another in one process."""
    paths = [home, ROOT, ROOT / "generators", ROOT / "attacks"]
    done = subprocess.run(
        [sys.executable, "-c", RUN, *lines],
        cwd=home,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return [Ended(*json.loads(line)) for line in done.stdout.splitlines()]


def test_generators_that_need_torch_are_listed_and_say_so(bare: Path) -> None:
    listed, shown, doctor, audited, probed = commands(
        bare,
        "list generators",
        "list pate-gan",
        "doctor",
        "audit pate-gan --data sample:breast-cancer",
        "probe dpaudit_generators.gan:DpGan --data sample:breast-cancer",
    )
    assert listed.code == shown.code == doctor.code == 0
    assert (listed.stderr, "PROBLEM" in doctor.stdout) == ("", False)
    entries = [" ".join(of.split()) for of in re.split(r"^  (?=\S)", listed.stdout, flags=re.M)[1:]]
    lines = {entry.split()[0]: entry for entry in entries}
    assert lines.keys() == GENERATORS.keys()
    for name, place in GENERATORS.items():
        hint = "(run: pip install '.[torch]')"
        assert lines[name].endswith(hint) == place.endswith(" [torch]"), name
    assert re.search(r"^teachers +50$", shown.stdout, re.M)
    for name, ended in {"pate-gan": audited, "dp-gan": probed}.items():
        install = "Install it in the clone of dpaudit: pip install '.[torch]'"
        assert ended == (2, "", f"error: generator '{name}' needs torch. {install}\n")


@pytest.mark.ci
def test_all_others_train_and_are_audited(bare: Path) -> None:
    (bare / "table.csv").write_text("sex,age\n" + "f,30\nm,40\n" * 20 + "f,90\n")
    given_a_target = {
        "copycat",
        "dawdler",
        "randomised-response",
    }  # one is a control of the audit below
    without = {name for name, place in GENERATORS.items() if not place.endswith(" [torch]")}
    names = sorted(without - given_a_target)
    size = "--shadow-models 24 --set probe=false --jobs 1 --fail-on never"
    *made, audited = commands(
        bare,
        *(f"synthesize {name} --data table.csv --out {name}.csv" for name in names),
        f"audit randomised-response --data table.csv {size}",
    )
    assert [one.code for one in made] == [0] * len(names), made
    assert audited.code == 0, audited.stderr
    assert "checks    null and positive control passed" in audited.stdout
