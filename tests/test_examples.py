"""The example projects and what a CI job runs, executed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from pages import blocks_of

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "noisy-histograms"
PROGRAMS = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def job_of(project: Path) -> dict[str, Any]:
    """The job of the workflow of a project."""
    workflow = yaml.safe_load((project / ".github" / "workflows" / "privacy.yml").read_text())
    job: dict[str, Any] = workflow["jobs"]["audit"]
    return job


def run_job(project: Path) -> subprocess.CompletedProcess[str]:
    """Runs the tests as the workflow does after a push."""
    [command] = [
        step["run"] for step in job_of(project)["steps"] if "pytest" in step.get("run", "")
    ]
    command = re.sub(r"\$\{\{.*?\}\}", "ci", command)
    summary = project / "summary.md"
    environment = {**os.environ, "PATH": PROGRAMS, "GITHUB_STEP_SUMMARY": str(summary)}
    environment.pop("PYTEST_ADDOPTS", None)
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the example project."""
    copied = tmp_path / "project"
    shutil.copytree(EXAMPLE, copied, ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache"))
    return copied


def changed(project: Path, before: str, after: str) -> None:
    code = project / "src" / "noisy_histograms" / "__init__.py"
    assert before in code.read_text()
    code.write_text(code.read_text().replace(before, after))


def test_the_workflow_of_the_example_is_that_of_the_guide() -> None:
    [shown] = [
        block.text
        for block in blocks_of(ROOT / "docs" / "guides" / "ci.md")
        if block.text.startswith("# .github/workflows/privacy.yml\n")
    ]
    assert (EXAMPLE / ".github" / "workflows" / "privacy.yml").read_text() == shown


@pytest.mark.ci
def test_the_workflow_passes_keeps_what_it_names_and_audits_no_unchanged_code_again(
    project: Path,
) -> None:
    kept = run_job(project)
    assert kept.returncode == 0, kept.stdout
    assert "CONSISTENT" in kept.stdout
    assert "(from the cache)" not in kept.stdout
    assert (
        "REPLAY of tests/privacy/test_promise.py" in kept.stdout
    )  # which comes first at this scale
    [cache, upload] = [
        step["with"] for step in job_of(project)["steps"] if "path" in step.get("with", {})
    ]
    assert list(project.glob(upload["path"]))
    assert (project / cache["path"]).is_dir()
    assert "| **consistent** |" in (project / "summary.md").read_text()
    assert "<testcase" in (project / "audits.xml").read_text()
    assert "(from the cache)" in run_job(project).stdout


@pytest.mark.ci
def test_the_workflow_fails_where_bounds_are_taken_from_the_data(project: Path) -> None:
    [change] = re.findall(r"`(lower, upper = .*)`", (EXAMPLE / "README.md").read_text())
    before = "            values = data[name].clip(lower, upper)\n"
    changed(project, before, f"            values = data[name]\n            {change}\n")
    broken = run_job(project)
    assert broken.returncode == 1, broken.stdout
    assert "REGRESSION: the AUC of the attack has risen" in broken.stdout
    assert "VIOLATION" in broken.stdout
    assert "(age)" in broken.stdout


@pytest.mark.ci
def test_the_workflow_fails_on_too_little_noise_before_any_shadow_model(project: Path) -> None:
    [change] = re.findall(r"`(scale = .*)`", (EXAMPLE / "README.md").read_text())
    changed(project, "scale = len(self.bounds) / self.epsilon", change)
    broken = run_job(project)
    assert broken.returncode == 1, broken.stdout
    assert re.search(r"^ *__init__.py:\d+ +laplace ", broken.stdout, re.MULTILINE)
    assert "(no shadow model was trained)" in broken.stdout


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
    common = {"DATA": "sample:breast-cancer", "MODELS": "24", "OUT": "run", "EPSILON": "0.5"}
    found = acted(tmp_path, GENERATOR="null", ARGUMENTS="--fail-on violation -q", **common)
    assert found.returncode == 0, found.stderr
    report = (tmp_path / "run" / "report.md").read_text()
    assert "| Claim | epsilon 0.5, delta 0 |" in report
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
