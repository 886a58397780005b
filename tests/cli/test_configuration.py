"""What a project says in pyproject.toml or dpaudit.toml about its audits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import typer
from typer.testing import CliRunner, Result

from dpaudit.auditing.configuration import (
    SCHEMA_FILE,
    configuration_schema,
    file_in_use,
    read_options,
)
from dpaudit.auditing.games import audit_settings, keywords
from dpaudit.auditing.settings import AuditSettings
from dpaudit.cli.console import ExitCode
from dpaudit.cli.main import app
from dpaudit.errors import SettingsError
from dpaudit.model.choices import check_sampler, sampler_of, sampler_text

SAMPLER = "[[samplers]]\nfunction = 'listened_noise:sample_laplace'\nscale = 'width'\n"
"""A sampler of a project's own, but for its law."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of a repository, with a folder below it where commands run."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    return tmp_path


def dpaudit(*words: str, **environment: str) -> Result:
    return CliRunner().invoke(app, list(words), env=environment)


def planned(*words: str, **environment: str) -> dict[str, Any]:
    done = dpaudit("audit", "--plan", "--json", *words, **environment)
    assert done.exit_code == ExitCode.PASS, done.output
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def asked(monkeypatch: pytest.MonkeyPatch, *words: str) -> dict[str, Any]:
    """What `dpaudit audit` would have audited."""
    found: dict[str, Any] = {}

    def table(data: str, schema: object, settings: AuditSettings) -> None:
        found.update(data=data, schema=schema, settings=settings)
        raise SettingsError("enough")

    monkeypatch.setattr("dpaudit.auditing.games.audited_table", table)
    assert dpaudit("audit", *words).stderr.splitlines()[-1] == "error: enough"
    return found


def test_command_line_before_environment_before_file_before_default(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.dpaudit]\nepsilon = 2.0\nseed = 3\n")
    assert planned()["claim"]["epsilon"] == 2.0
    assert planned(DPAUDIT_AUDIT_EPSILON="3")["claim"]["epsilon"] == 3.0
    assert planned("--epsilon", "4", DPAUDIT_AUDIT_EPSILON="3")["claim"]["epsilon"] == 4.0
    assert planned()["confidence"] == audit_settings().confidence


def test_an_effort_stands_for_its_sizes_before_whatever_comes_after_it(project: Path) -> None:
    (project / "dpaudit.toml").write_text("epsilon = 1.0\nshadow-models = 200\n")
    assert planned()["asked"]["size"] == 200
    assert planned("--effort", "quick")["asked"]["size"] == 100
    assert planned(DPAUDIT_AUDIT_EFFORT="quick")["asked"]["size"] == 100
    assert planned("--effort", "quick", DPAUDIT_AUDIT_SHADOW_MODELS="60")["asked"]["size"] == 100
    assert planned("--effort", "quick", "--shadow-models", "60")["asked"]["size"] == 60
    assert (
        dpaudit("audit", "--plan", "--effort", "quick").stderr == "from ../dpaudit.toml: epsilon\n"
    )
    (project / "dpaudit.toml").write_text("epsilon = 1.0\nshadow-models = 200\neffort = 'quick'\n")
    assert planned()["asked"]["size"] == 200
    assert planned("--shadow-models", "60")["asked"]["size"] == 60


def test_the_nearest_file_up_to_the_root_of_the_repository_is_taken(project: Path) -> None:
    below, outside = project / "below", project.parent
    assert file_in_use(None, below) is None
    (outside / "dpaudit.toml").write_text("epsilon = 1.0")
    try:
        assert file_in_use(None, below) is None
    finally:
        (outside / "dpaudit.toml").unlink()
    (project / "pyproject.toml").write_text("[tool.dpaudit]\nepsilon = 1.0")
    assert file_in_use(None, below) == project / "pyproject.toml"
    (project / "dpaudit.toml").write_text("epsilon = 1.0")
    assert file_in_use(None, below) == project / "dpaudit.toml"
    (below / "pyproject.toml").write_text("[tool.other]\nname = 'dpaudit'")
    assert file_in_use(None, below) == project / "dpaudit.toml"
    (project / ".git").rmdir()
    assert file_in_use(None, below) is None


def test_another_file_or_none_can_be_named(project: Path) -> None:
    (project / "dpaudit.toml").write_text("epsilon = 2.0")
    Path("other.toml").write_text("epsilon = 5.0")
    words = ("audit", "--plan", "--json", "--epsilon", "1")
    assert "from ../dpaudit.toml" not in dpaudit("--config", "none", *words).stderr
    done = dpaudit("--config", "other.toml", "audit", "--plan", "--json")
    assert json.loads(done.stdout)["claim"]["epsilon"] == 5.0
    assert done.stderr == "from other.toml: epsilon\n"


def test_paths_lie_beside_the_file_and_values_become_settings(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "dpaudit.toml").write_text(
        'generator = "gan.py:Gan"\ndata = "table.csv"\nschema = "table.json"\n'
        'target = 7\nattacks = ["form"]\ncurve = [[0.5, 1e-3], [1.0, 1e-5]]\nprobe = false\n'
        'sequential = true\nthreshold = "cross-validated"\nshadow-models = 60\n'
        '[parameters]\nhidden = 64\nname = "1"\n'
    )
    found = asked(monkeypatch)
    assert (found["data"], found["schema"]) == (["../table.csv"], Path("../table.json"))
    assert found["settings"] == audit_settings(
        parameters={"hidden": 64, "name": "1"},
        target="row:7",
        attacks=("form",),
        curve=((0.5, 1e-3), (1.0, 1e-5)),
        probe=False,
        sequential=True,
        shadow_models=60,
    )
    assert read_options(project / "dpaudit.toml")["generator"] == "../gan.py:Gan"


def test_parameters_are_those_of_the_generator_of_the_file(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "dpaudit.toml").write_text(
        'generator = "gan.py:Gan"\ndata = "sample:breast-cancer"\n[parameters]\nhidden = 64\n'
    )
    assert asked(monkeypatch)["settings"].parameters == {"hidden": 64}
    assert asked(monkeypatch, "copycat")["settings"].parameters == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("epsilom = 1", "dpaudit.toml: 'epsilom' is no setting (did you mean 'epsilon'?)"),
        ("[audit]\nepsilon = 2", "dpaudit.toml: there is no section [audit]: move its settings"),
        ("shadow_models = 60", "did you mean 'shadow-models'?"),
        ("jobs = 'many'", "dpaudit.toml: jobs: 'many' is not of type 'integer'"),
        ("fail-on = 'always'", "dpaudit.toml: fail-on: 'always' is not one of"),
        ("epsilon =", "dpaudit.toml is not TOML"),
        ("shadow-models = 41", "--shadow-models must be even"),
        (f"{SAMPLER}law = 'laplac'", "dpaudit.toml: samplers.0.law: 'laplac' is not one of"),
        (f"{SAMPLER}law = 'laplace'\nscael = 'b'", "dpaudit.toml: samplers.0: Additional"),
        (f"{SAMPLER}law = 'gamma'", "dpaudit.toml: samplers.0: 'shape' is a required property"),
    ],
)
def test_what_is_no_setting_is_refused_and_named(project: Path, text: str, said: str) -> None:
    (project / "dpaudit.toml").write_text(f"epsilon = 1\n{text}" if "epsilon" not in text else text)
    done = dpaudit("audit", "--plan")
    assert done.exit_code == ExitCode.USAGE
    assert said in " ".join(done.stderr.split())
    assert dpaudit("audit", "--plan", "--help").exit_code == ExitCode.PASS


def test_a_file_that_was_named_must_be_one(project: Path) -> None:
    assert "cannot be read" in dpaudit("--config", "missing.toml", "audit").stderr
    (project / "pyproject.toml").write_text("[tool.dpaudit-like]\n")
    done = dpaudit("--config", "../pyproject.toml", "audit")
    assert "no table [tool.dpaudit]" in " ".join(done.stderr.split())
    assert done.exit_code == ExitCode.USAGE


def test_the_schema_that_is_shipped_is_that_of_the_settings() -> None:
    shipped = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(shipped)
    text = json.dumps(configuration_schema(), indent=2) + "\n"
    assert SCHEMA_FILE.read_text(encoding="utf-8") == text, "write configuration_schema() there"
    names = {name.replace("-", "_") for name in shipped["properties"]}
    assert names > set(keywords())
    assert all(of["description"] for of in shipped["properties"].values())
    group: Any = typer.main.get_command(app)
    taken = {
        one.name for name in ("audit", "replay") for one in group.get_command(None, name).params
    }
    assert names <= taken


def test_replay_hears_the_samplers_of_the_file_and_repeats_them(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: dict[str, Any] = {}

    def replay(generator: str, data: str, **settings: Any) -> None:
        found.update(settings, generator=generator, data=data)
        raise SettingsError("enough")

    monkeypatch.setattr("dpaudit.replaying.run.replay", replay)
    (project / "dpaudit.toml").write_text(
        'generator = "gan.py:Gan"\ndata = "table.csv"\nepsilon = 2.0\n'
        f"{SAMPLER}law = 'gamma'\nshape = 2.0\n[parameters]\nhidden = 64\n"
    )
    assert "samplers" in dpaudit("replay").stderr
    expected = {
        "function": "listened_noise:sample_laplace",
        "law": "gamma",
        "scale": "width",
        "shape": 2.0,
    }
    assert found["samplers"] == [expected]
    assert (found["generator"], found["epsilon"]) == ("../gan.py:Gan", 2.0)
    assert found["parameters"] == {"hidden": 64}
    check_sampler(expected)
    assert sampler_of(sampler_text(expected)) == expected
    assert (found["access"], found["fits"], found["internal"]) == ("model", None, ())
    file = project / "dpaudit.toml"
    file.write_text(f'access = "output"\n{file.read_text()}')
    dpaudit("replay", "--fits", "9", "--internal", "a.py:1: a log")
    assert (found["access"], found["fits"], found["internal"]) == ("rows", 9, ["a.py:1: a log"])
    dpaudit("replay", "--sampler", "my:noise,law=laplace,scale=b")
    assert found["samplers"] == [{"function": "my:noise", "law": "laplace", "scale": "b"}]
    assert (
        "from ../dpaudit.toml: access, data, epsilon, generator"
        in dpaudit("audit", "--plan").stderr
    )


def test_options_of_earlier_releases_are_read_with_a_note(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = "written as {} from the next release on"
    for words, option, given in (
        (("--rows", "3"), "--set NAME=VALUE", {"rows": 3}),
        (("--one-run", "--canaries=30"), "--set NAME=VALUE", {"one_run": True, "canaries": 30}),
        (("--no-probe",), "--set NAME=VALUE", {"probe": False}),
        (("--set", "neighbours=replace-one"), "--neighbours", {"neighbours": "replace-one"}),
        (("--set=effort=quick",), "--effort", {"effort": "quick"}),
    ):
        assert asked(monkeypatch, "null", *words)["settings"] == audit_settings(**given)
        assert note.format(option) in dpaudit("audit", "null", *words).stderr
        assert "written as" not in dpaudit("audit", "null", "-q", *words).stderr
    assert note.format("--set NAME=VALUE") in dpaudit("audit", "--plan", "--time-one").stderr
