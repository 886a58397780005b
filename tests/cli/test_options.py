"""Settings as options: every field has one, and messages name what the reader can type."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner, Result

import dpaudit
import dpaudit.auditing.entry  # before a test replaces what it imports
from dpaudit import AuditSettings
from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.auditing.games import audit_settings, by_name, keywords, keywords_of
from dpaudit.auditing.settings import OneRun, TwoWorlds
from dpaudit.cli.console import REPEATABLE, ExitCode, spell_options
from dpaudit.cli.main import app
from dpaudit.errors import SettingsError

NAMES = list(keywords())


def commands() -> dict[str, Any]:
    group: Any = typer.main.get_command(app)
    names = group.list_commands(None)
    return {name: group.get_command(None, name) for name in names}


def options_of(command: Any) -> Iterator[Any]:
    return (one for one in command.params if one.param_type_name == "option")


# Each setting is a field, a keyword and an option.


def test_every_keyword_of_an_audit_is_an_option_with_a_description() -> None:
    options = {one.name: one for one in options_of(commands()["audit"])}
    assert set(options) >= {*NAMES, *by_name()}
    for name in NAMES:
        assert keywords()[name].description.endswith(".")
        assert options[name].hidden == (name in by_name())


@pytest.mark.parametrize("name", NAMES)
def test_the_option_says_the_default_of_the_setting(name: str) -> None:
    [option] = [one for one in options_of(commands()["audit"]) if one.name == name]
    default = keywords()[name].default
    if name == "attacks":
        *first, last = default
        assert option.help.endswith(f"Default: {', '.join(first)} and {last}.")
    elif name not in REPEATABLE and not isinstance(default, bool):
        shown = default.value if isinstance(default, Enum) else default
        assert f"Default: {'' if shown is None else f'{shown}.'}" in option.help


def test_audit_has_24_options_and_all_are_in_its_help() -> None:
    shown = CliRunner().invoke(app, ["audit", "--help"]).stdout
    options = [one for one in options_of(commands()["audit"]) if not one.hidden]
    assert len([one for one in options if one.name != "help"]) == 24
    assert all(
        one.default is None for one in options if one.name in NAMES
    )  # what is given is known
    assert all(re.search(rf"^  (-\w, )?{max(one.opts, key=len)} ", shown, re.M) for one in options)


def test_every_other_setting_is_given_by_name(monkeypatch: pytest.MonkeyPatch, table: str) -> None:
    beside = {"engine", "scheduler", "trial_timeout", "junit", "after_replay", "time_one"}
    assert set(NAMES) > set(by_name()) - beside
    run: dict[str, Any] = {}

    def stop(spec: Any, folder: Path, *, jobs: Any, **_: object) -> None:
        run.update(settings=spec.settings, machine=jobs)
        raise SettingsError("enough")

    monkeypatch.setattr("dpaudit.auditing.entry.run_audit", stop)
    pairs = (
        "rho=0.5",
        "rows=9",
        "probe=false",
        "trial-timeout=60",
        "confidence=0.9",
    )
    words = [word for pair in pairs for word in ("--set", pair)]
    assert "enough" in audit(table, *words).stderr
    expected = {"rho": 0.5, "rows": 9, "probe": False, "confidence": 0.9}
    assert run["settings"] == audit_settings(**expected)
    assert run["machine"].trial_timeout == 60
    monkeypatch.setenv("DPAUDIT_AUDIT_ROWS", "8")
    Path("dpaudit.toml").write_text("rows = 7\nconfidence = 0.8\n")
    audit(table)
    assert (run["settings"].rows, run["settings"].confidence) == (8, 0.8)


def test_settings_come_back_from_the_keywords_that_they_differ_in() -> None:
    for given in (
        {},
        {"one_run": True, "canaries": 30, "epsilon": 1.0, "delta": 1e-5},
        {"records": 4, "shadow_models": 8, "multiplicity": "select"},
        {"access": "model", "mu": 1.0, "effort": "quick", "probe": False},
        {"curve": "1:1e-5", "neighbours": "replace-one", "rows": 9, "seed": 3},
    ):
        settings = audit_settings(**given)
        assert audit_settings(**keywords_of(settings)) == settings


def test_an_effort_chooses_sizes_and_a_size_that_is_given_wins() -> None:
    assert audit_settings(effort="standard") == audit_settings()
    for effort, models, canaries in (("quick", 100, 50), ("thorough", 1000, 400)):
        assert audit_settings(effort=effort).game == TwoWorlds(shadow_models=models)
        assert audit_settings(effort=effort, one_run=True).game == OneRun(canaries=canaries)
        assert TwoWorlds.sized(effort) == TwoWorlds(shadow_models=models)
    given = audit_settings(effort="thorough", shadow_models=400, sequential=True)
    assert given.game == TwoWorlds(shadow_models=400, sequential=True)
    with pytest.raises(SettingsError, match="`effort`: 'much' is not one of quick, standard"):
        audit_settings(effort="much")


@pytest.mark.parametrize("command", commands())
def test_every_command_says_in_the_third_person_what_it_does(command: str) -> None:
    first = commands()[command].help.split()[0]
    assert re.fullmatch(r"[A-Z][a-z]+s", first), first


def test_the_command_builds_the_settings_that_were_asked_for(
    monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    built: list[AuditSettings] = []

    def stop(generator: object, table: object, settings: AuditSettings) -> None:
        built.append(settings)
        raise SettingsError("enough")

    monkeypatch.setattr("dpaudit.auditing.games.build_spec", stop)
    audit(table)
    audit(
        table,
        *(
            "-p",
            "epsilon=2",
            "--epsilon",
            "3",
            "--delta",
            "1e-6",
            "--neighbours",
            "replace-one",
        ),
        *("--target", "row:3", "--attack", "groundhog", "--attack", "query-target"),
        *("--shadow-models", "50", "--set", "rows=9", "--set", "confidence=0.9"),
        *(
            "--set",
            "threshold=hold-out",
            "--set",
            "multiplicity=select",
            "--sequential",
            "--seed",
            "7",
        ),
    )
    audit(table, "--one-run", "--set", "canaries=30")
    audit(table, "--records", "16", "--shadow-models", "8")
    audit(table, "--set", "neighbours-file=other.csv")
    CliRunner().invoke(app, ["audit", "null", "--worst-case", "mst"])
    assert built == [
        audit_settings(),
        audit_settings(
            parameters={"epsilon": 2},
            epsilon=3.0,
            delta=1e-6,
            neighbours=dpaudit.Neighbours.REPLACE_ONE,
            target="row:3",
            attacks=("groundhog", "query-target"),
            shadow_models=50,
            rows=9,
            confidence=0.9,
            threshold="hold-out",
            multiplicity="select",
            sequential=True,
            seed=7,
        ),
        audit_settings(one_run=True, canaries=30),
        audit_settings(records=16, shadow_models=8),
        audit_settings(neighbours_file="other.csv"),
        audit_settings(worst_case="mst"),
    ]


# Words of messages.


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("`one_run` trains once", "--one-run trains once"),
        ("`shadow_models` must be even", "--shadow-models must be even"),
        ("leave out `attacks`, `target`", "leave out --attack, --target"),
        ("`parameters` are refused", "-p are refused"),
        ('use `target="row:N"`', "use --target row:N"),
        ('`neighbours="replace-one"`', "--neighbours replace-one"),
        ("set `one_run=True`", "set --one-run"),
        ("`shadow_models=40`", "--shadow-models 40"),
        ("give another `out`", "give another --out"),
        ("the file `out.csv` and `whatever`", "the file `out.csv` and `whatever`"),
        ("`fit(data)` fails", "`fit(data)` fails"),
        ("nothing in quotes", "nothing in quotes"),
        ('`neighbours="replace-one"`, `probe=False`', "--neighbours replace-one, --probe False"),
    ],
)
def test_settings_are_spelled_as_options(message: str, words: str) -> None:
    assert spell_options(message, options=["out"]) == words
    if "probe" in message:
        assert (
            spell_options(message, options=["set"]) == "--neighbours replace-one, --set probe=false"
        )


def test_every_option_of_every_command_is_spelled_as_it_is_typed() -> None:
    for command in commands().values():
        names = [option.name for option in options_of(command)]
        for option in options_of(command):
            if option.name != "help" and not option.hidden:
                assert spell_options(f"`{option.name}`", options=names) in option.opts


# One message, two readers.


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A table of 40 rows, in the folder that commands run in."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    data = {"age": rng.integers(20, 60, 40), "pay": rng.normal(30, 5, 40)}
    pd.DataFrame(data).to_csv("table.csv", index=False)
    return "table.csv"


def audit(table: str, *words: str) -> Result:
    return CliRunner().invoke(app, ["audit", "null", "--data", table, *words])


REFUSED: dict[str, tuple[dict[str, Any], list[str], list[str]]] = {
    "few models": ({"shadow_models": 18}, ["--shadow-models", "18"], ["shadow_models"]),
    "odd models": ({"shadow_models": 41}, ["--shadow-models", "41"], ["shadow_models"]),
    "confidence": ({"confidence": 1.0}, ["--set", "confidence=1"], ["confidence"]),
    "rows": ({"rows": 0}, ["--set", "rows=0"], ["rows"]),
    "seed": ({"seed": -1}, ["--seed", "-1"], ["seed"]),
    "canaries alone": ({"canaries": 30}, ["--set", "canaries=30"], ["canaries", "one_run"]),
    "few canaries": (
        {"one_run": True, "canaries": 2},
        ["--one-run", "--set", "canaries=2"],
        ["canaries"],
    ),
    "attacks of one run": (
        {"one_run": True, "attacks": ["groundhog"]},
        ["--one-run", "--attack", "groundhog"],
        ["one_run", "attacks"],
    ),
    "rules of one run": (
        {"one_run": True, "sequential": True, "multiplicity": "select", "threshold": "hold-out"},
        [
            "--one-run",
            "--sequential",
            "--set",
            "multiplicity=select",
            "--set",
            "threshold=hold-out",
        ],
        ["one_run", "sequential", "multiplicity", "threshold"],
    ),
    "models and target of one run": (
        {"one_run": True, "shadow_models": 40, "target": "row:1"},
        ["--one-run", "--shadow-models", "40", "--target", "row:1"],
        ["one_run", "shadow_models", "target"],
    ),
    "search of one run": (
        {"one_run": True, "target": "vulnerable"},
        ["--one-run", "--target", "vulnerable"],
        ["one_run", "target"],
    ),
    "neighbours of one run": (
        {"one_run": True, "canaries": 20, "neighbours": "replace-one"},
        ["--one-run", "--set", "canaries=20", "--neighbours", "replace-one"],
        ["one_run"],
    ),
    "records in sequence": (
        {"records": 4, "sequential": True},
        ["--records", "4", "--sequential"],
        ["records", "sequential"],
    ),
    "target of many records": (
        {"records": 4, "target": "row:1"},
        ["--records", "4", "--target", "row:1"],
        ["records", "target"],
    ),
    "records of a published rule": (
        {"records": 4, "threshold": "hold-out"},
        ["--records", "4", "--set", "threshold=hold-out"],
        ["records", "threshold"],
    ),
    "neighbours of many records": (
        {"records": 4, "neighbours": "replace-one"},
        ["--records", "4", "--neighbours", "replace-one"],
        ["records"],
    ),
    "records of one run": (
        {"one_run": True, "records": 4},
        ["--one-run", "--records", "4"],
        ["one_run", "records"],
    ),
    "table of a worst case": (
        {"worst_case": "mst"},
        ["--worst-case", "mst"],
        ["worst_case", "data"],
    ),
    "two pairs": (
        {"worst_case": "mst", "neighbours_file": "other.csv"},
        ["--worst-case", "mst", "--set", "neighbours-file=other.csv"],
        ["worst_case", "neighbours_file"],
    ),
    "target of a worst case": (
        {"worst_case": "mst", "target": "row:1"},
        ["--worst-case", "mst", "--target", "row:1"],
        ["worst_case", "target"],
    ),
    "pair of one run": (
        {"neighbours_file": "other.csv", "one_run": True},
        ["--set", "neighbours-file=other.csv", "--one-run"],
        ["neighbours_file", "one_run"],
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_names_settings_in_python_and_options_on_the_command_line(
    case: str, table: str
) -> None:
    given, words, named = REFUSED[case]
    with pytest.raises(dpaudit.InputError) as refused:
        audit_by_keywords("null", table, **given)
    python = str(refused.value)
    assert "--" not in python
    done = audit(table, *words)
    assert done.exit_code == ExitCode.USAGE
    line = done.stderr.splitlines()[-1]
    assert line.startswith("error: ")
    assert "`" not in line
    for name in named:
        assert f"`{name}" in python
        option = REPEATABLE.get(name, f"--{name.replace('_', '-')}")
        if name in by_name():
            option = f"--set {name.replace('_', '-')}"
        assert re.search(rf"(?<![\w-]){option}(?![\w-])", line)
        assert "_" not in name or name not in line
    assert line == f"error: {spell_options(python, options=['data', 'jobs', 'set'])}"


def test_no_attack_at_all_is_refused_in_python() -> None:
    with pytest.raises(SettingsError, match="`attacks` is empty"):
        audit_settings(attacks=())
