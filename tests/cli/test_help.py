"""The help of a command, and completion in a shell."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from dpaudit.cli.main import Commands, app
from dpaudit.cli.options import built_with
from dpaudit.errors import InputError
from dpaudit.model.setting import Panel

TWO_SCREENS = 100
WIDTH = 80


@pytest.mark.parametrize("command", [name for part in Commands.sections.values() for name in part])
def test_the_help_of_a_command_is_short(command: str) -> None:
    lines = CliRunner().invoke(app, [command, "--help"]).stdout.splitlines()
    assert sum(line.startswith("  -") for line in lines) <= (25 if command == "audit" else 21)
    assert max(map(len, lines)) <= WIDTH


@pytest.mark.parametrize("group", ["account", "bugs", "env", "evidence"])
def test_no_line_about_a_command_of_a_group_is_cut_off(group: str) -> None:
    shown = CliRunner().invoke(app, [group, "--help"], env={"COLUMNS": "80"}).stdout
    assert not [line for line in shown.splitlines() if line.endswith("...") and "Usage" not in line]


def test_the_help_of_audit_is_two_screens_of_panels_with_every_option_and_examples() -> None:
    every = CliRunner().invoke(app, ["audit", "--help"], prog_name="dpaudit").stdout
    lines = every.splitlines()
    assert len(lines) <= TWO_SCREENS
    assert max(map(len, lines)) <= WIDTH
    headings = [line.removesuffix(":") for line in lines if line and line[0] != " "]
    assert set(headings[1:]) | {Panel.RULES} == {"Arguments", *Panel, "Exit codes", "Examples"}
    group: Any = typer.main.get_command(app)
    for option in group.get_command(None, "audit").params[1:]:
        if option.hidden:
            continue
        shown = [line for line in lines if f" {option.opts[-1]} " in f"{line} "]
        assert shown, option.opts
    examples = lines[lines.index("Examples:") + 1 :]
    assert len(examples) >= 3
    audit = group.get_command(None, "audit")
    for example in examples:
        program, command, *words = example.split()
        assert (program, command) == ("dpaudit", "audit")
        assert ("--epsilon" in words) == ("--delta" in words), example  # without one: pure DP
        audit.make_context("audit", words, resilient_parsing=True)


def test_a_help_text_ends_with_the_default_and_breaks_no_name_at_a_hyphen() -> None:
    every = CliRunner().invoke(app, ["audit", "--help"], prog_name="dpaudit").stdout
    assert "[default" not in every
    assert "[x>=" not in every
    fail_on = every[every.index("--fail-on VERDICT") : every.index("  --json")]
    assert " ".join(fail_on.split()).endswith("Default: inconclusive.")
    assert "\N{NON-BREAKING HYPHEN}" not in every
    assert not [line for line in every.splitlines() if line.endswith("-")]


def test_only_commands_that_attack_have_a_panel_for_it() -> None:
    for name in ("trace", "utility", "synthesize", "probe", "account labels", "replay"):
        text = CliRunner().invoke(app, [*name.split(), "--help"], prog_name="dpaudit").stdout
        assert "\nAttack:" not in text
        assert " --seed S " in text


def test_the_inputs_of_a_command_come_first_in_its_help() -> None:
    group: Any = typer.main.get_command(app)
    read = 0
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "commands"):
            continue
        lines = CliRunner().invoke(app, [name, "--help"], prog_name="dpaudit").stdout.splitlines()
        places = {}
        for one in command.params:
            needed = one.required or getattr(one, "rich_help_panel", None) == Panel.INPUT
            flag = one.opts[0] if one.param_type_name == "option" else f"  {one.metavar}"
            where = [at for at, line in enumerate(lines) if line.lstrip().startswith(flag)]
            if where and one.param_type_name == "option":
                places.setdefault(needed, []).append(where[0])
        if True in places and False in places:
            read += 1
            assert max(places[True]) < min(places[False]), name
    assert read >= 8
    data = CliRunner().invoke(app, ["audit-data", "--help"], prog_name="dpaudit").stdout
    order = [data.index(one) for one in ("--synthetic FILE", "--train", "--holdout", "--schema")]
    assert order == sorted(order)


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("dpaudit au", ["audit", "audit-data"]),
        ("dpaudit audit cop", ["copycat"]),
        ("dpaudit audit copycat --shad", ["--shadow-models"]),
    ],
)
def test_a_shell_completes_commands_generators_and_options(line: str, offered: list[str]) -> None:
    words = line.split()
    asked = {"_DPAUDIT_COMPLETE": "complete_bash", "COMP_WORDS": line}
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; sys.argv[0] = 'dpaudit'; from dpaudit.cli.main import main; main()",
        ],
        env={**os.environ, **asked, "COMP_CWORD": str(len(words) - 1), "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == offered


def test_a_generator_built_by_name_takes_epsilon_and_delta_as_its_parameters() -> None:
    pairs = ["bins=3", "delta=0.1"]
    assert built_with(pairs, 1.0, None) == {"bins": 3, "delta": 0.1, "epsilon": 1.0}
    assert built_with(None, None, None) == {}
    with pytest.raises(InputError, match="`delta` is also given with -p"):
        built_with(pairs, None, 0.5)
    group: Any = typer.main.get_command(app)
    for name in ("utility", "synthesize", "trace"):
        flags = {flag for one in group.get_command(None, name).params for flag in one.opts}
        assert {"--epsilon", "--delta"} <= flags


def test_the_exit_codes_are_one_table_for_all_commands() -> None:
    group: Any = typer.main.get_command(app)
    for name in group.list_commands(None):
        if hasattr(group.get_command(None, name), "commands"):
            continue
        text = CliRunner().invoke(app, [name, "--help"], prog_name="dpaudit").stdout
        assert "Exit codes:\n  0    passed" in text
        assert text.count("Exit codes") == 1
