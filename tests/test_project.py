"""The project keeps its own promises: commands, layers, documentation."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_ci_runs_the_test_command_of_the_readme() -> None:
    commands = re.findall(r"```sh\n(.+)\n```", (ROOT / "README.md").read_text())
    ci = (ROOT / ".ci" / "run").read_text().splitlines()
    assert commands[1].endswith(".venv/bin/pytest")
    assert commands[1] in ci


def test_every_module_of_the_harness_has_a_layer() -> None:
    layers = CONFIG["tool"]["importlinter"]["contracts"][0]["layers"]
    named = set(re.findall(r"dpaudit\.\w+", " ".join(layers)))
    package = ROOT / "dpaudit"
    modules = {path.stem for path in package.glob("*.py")} - {"__init__"}
    modules |= {path.parent.name for path in package.glob("*/__init__.py")}
    assert named == {f"dpaudit.{module}" for module in modules}


@pytest.mark.parametrize("group", ["dpaudit.generators", "dpaudit.attacks"])
def test_entry_points_resolve_to_documented_classes(group: str) -> None:
    import inspect

    from dpaudit.plugins.registry import plugins

    registered = CONFIG["project"]["entry-points"][group]
    found = dict(plugins(group))
    assert set(registered) <= set(found)
    for name in registered:
        assert inspect.getdoc(found[name]), f"{name} has no docstring"


def test_public_names_resolve_and_are_documented() -> None:
    import dpaudit

    for name in dpaudit.__all__:
        assert getattr(dpaudit, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = dpaudit.nonsense


def test_links_in_the_documentation_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("reports/**/README.md")]
    for page in pages:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"


def test_no_telemetry() -> None:
    code = "".join(path.read_text() for path in (ROOT / "dpaudit").rglob("*.py"))
    assert not re.search(r"^\s*(import|from) (requests|urllib|http|socket|httpx)\b", code, re.M)
