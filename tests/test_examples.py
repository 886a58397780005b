"""The example projects and what a CI job runs, executed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "noisy-histograms"
PROGRAMS = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def run_tests_of(project: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=600)


@pytest.mark.ci
def test_the_example_passes_until_bounds_are_taken_from_the_data(tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(EXAMPLE, project, ignore=shutil.ignore_patterns("__pycache__"))
    kept = run_tests_of(project)
    assert kept.returncode == 0, kept.stdout
    assert "CONSISTENT" in kept.stdout
    code = project / "src" / "noisy_histograms" / "__init__.py"
    [change] = re.findall(r"`(lower, upper = .*)`", (EXAMPLE / "README.md").read_text())
    before = "            values = data[name].clip(lower, upper)\n"
    assert before in code.read_text()
    after = f"            values = data[name]\n            {change}\n"
    code.write_text(code.read_text().replace(before, after))
    broken = run_tests_of(project)
    assert broken.returncode == 1, broken.stdout
    assert "VIOLATION" in broken.stdout
    assert "(age)" in broken.stdout


def step_of_the_action(name: str) -> str:
    """The script of a step of action.yml."""
    steps = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
    [script] = [step["run"] for step in steps if step["name"] == name]
    return str(script)


def acted(folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    given = dict.fromkeys(("SCHEMA", "EPSILON", "DELTA", "ARGUMENTS"), "")
    environment = {**os.environ, "PATH": PROGRAMS, **given, **inputs}
    command = ["bash", "-euo", "pipefail", "-c", step_of_the_action("Audit")]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )


@pytest.mark.ci
def test_the_action_audits_what_it_is_given(tmp_path: Path) -> None:
    common = {"DATA": "sample:breast-cancer", "MODELS": "20", "OUT": "run", "EPSILON": "0.5"}
    found = acted(tmp_path, GENERATOR="null", ARGUMENTS="--fail-on violation -q", **common)
    assert found.returncode == 0, found.stderr
    report = (tmp_path / "run" / "report.md").read_text()
    assert "| Guarantee | epsilon 0.5, delta 0 |" in report
    hostile = acted(tmp_path, GENERATOR="$(touch hacked); touch hacked", **common)
    assert hostile.returncode == 2
    assert not (tmp_path / "hacked").exists()


def test_every_input_of_the_action_is_used() -> None:
    text = (ROOT / "action.yml").read_text()
    inputs = re.findall(
        r"^  ([\w-]+):$", text.partition("\ninputs:")[2].partition("\noutputs:")[0], re.M
    )
    assert len(inputs) == 11
    for name in inputs:
        assert f"inputs.{name} " in text, name
    for step in ("Install", "Audit"):
        assert "${{" not in step_of_the_action(step), "an input would be part of the script"


def test_the_image_runs_nothing_as_root_and_copies_no_environment() -> None:
    image = (ROOT / "Dockerfile").read_text()
    assert image.index("\nUSER ") < image.index("\nENTRYPOINT ")
    assert ".venv" in (ROOT / ".dockerignore").read_text().split()
