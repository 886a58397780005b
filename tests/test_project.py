"""The project keeps its own promises: commands, layers, documentation."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_ci_runs_the_test_command_of_the_readme() -> None:
    commands = re.findall(r"```sh\n(.+)\n```", (ROOT / "README.md").read_text())
    ci = (ROOT / ".ci" / "run").read_text().splitlines()
    assert commands[1].endswith(".venv/bin/pytest")
    assert commands[1] in ci


def test_coverage_counts_what_the_pytest_plugin_imports() -> None:
    """pytest loads pytest-cov after our plugin, whose imports it would call untested."""
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert "coverage run -m pytest" in workflow
    assert "--cov" not in workflow
    assert "pytest-cov" not in (ROOT / "pyproject.toml").read_text()


def test_the_layers_of_the_architecture_are_the_contract_and_the_tree() -> None:
    layers = CONFIG["tool"]["importlinter"]["contracts"][0]["layers"]
    in_contract = [name for layer in layers for name in layer.split(" | ")]
    page = (ROOT / "ARCHITECTURE.md").read_text()
    rows = re.findall(r"^\| `([\w/]+)` \| [^|]+ \|$", page, re.MULTILINE)
    assert [f"dpaudit.{name.removesuffix('/')}" for name in rows] == in_contract
    package = ROOT / "dpaudit"
    loose = {path.stem for path in package.glob("*.py")} - {"__init__"}
    assert loose == {name for name in rows if not name.endswith("/")}
    packages = {path.parent.name for path in package.glob("*/__init__.py")}
    assert packages == {name.removesuffix("/") for name in rows if name.endswith("/")}


def test_the_files_that_the_architecture_names_are_there() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    named = re.findall(r"`((?:\w+/)*\w+\.py)`", page)
    assert len(named) > 20
    files = [path.as_posix() for path in (ROOT / "dpaudit").rglob("*.py")]
    assert [name for name in named if not any(path.endswith(f"/{name}") for path in files)] == []


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """Every statement of a file, however deep: its expressions hold no class and no function."""
    found: list[ast.AST] = [ast.parse(path.read_text())]
    for node in found:
        parts = ast.iter_child_nodes(node)
        found += (
            one for one in parts if isinstance(one, ast.stmt | ast.excepthandler | ast.match_case)
        )
    return found


def test_no_two_public_classes_have_one_name() -> None:
    homes: dict[str, list[str]] = {}
    for folder in ("dpaudit", "generators", "attacks"):
        for path in (ROOT / folder).rglob("*.py"):
            if path.parent.name == "adapters":  # each runs alone, in its library's environment
                continue
            for node in nodes_of(path):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    homes.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


def test_functions_are_short_and_few_modules_are_loose() -> None:
    long = {
        f"{path.relative_to(ROOT).as_posix()}:{node.name}"
        for folder in ("dpaudit", "generators", "attacks")
        for path in (ROOT / folder).rglob("*.py")
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno >= 80
    }
    assert long == set()
    assert len(list((ROOT / "dpaudit").glob("*.py"))) <= 8


def test_no_package_has_a_circle_of_imports_counting_those_for_types() -> None:
    """Those of `pyproject.toml`, without the cache: it goes by times of files."""
    assert "exclude_type_checking_imports" not in CONFIG["tool"]["importlinter"]
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout


@pytest.mark.parametrize("group", ["dpaudit.generators", "dpaudit.attacks"])
def test_entry_points_resolve_to_documented_classes(group: str) -> None:
    import inspect

    from dpaudit.plugins.registry import plugins

    registered = CONFIG["project"]["entry-points"][group]
    found = plugins(group)
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
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("reports/**/README.md")]
    for page in pages:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"


def test_no_telemetry() -> None:
    code = "".join(path.read_text() for path in (ROOT / "dpaudit").rglob("*.py"))
    assert not re.search(r"^\s*(import|from) (requests|urllib|http|socket|httpx)\b", code, re.M)
