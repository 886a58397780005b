"""Words that are no command: one line says what was wrong, where, and which help says more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from dpaudit.cli.console import ExitCode
from dpaudit.cli.main import Commands, app

WRONG = {
    "audit": "GENERATOR is missing; see dpaudit audit --help",
    "audit-data": "--synthetic FILE is missing; see dpaudit audit-data --help",
    "compare": "RUN RUN...|FOLDER is missing; see dpaudit compare --help",
    "audit null --bogus 3": "no such option --bogus; see dpaudit audit --help",
    "audit null --models 3": (
        "no such option --models (did you mean '--shadow-models'?); see dpaudit audit --help"
    ),
    "account --eps 1": (
        "no such option --eps (did you mean '--epsilon'?); see dpaudit account labels --help"
    ),
    "audit -z7 null": "no such option -z; see dpaudit audit --help",
    "audit null --epsilon x": "--epsilon must be a number, not x; see dpaudit audit --help",
    "audit --jobs 1.5": "--jobs must be a whole number, not 1.5; see dpaudit audit --help",
    "audit null --jobs 0": "--jobs must be a whole number of at least 1, got 0",
    "audit null --fail-on maybe": (
        "--fail-on: 'maybe' is not one of 'violation', 'inconclusive', 'never'; "
        "see dpaudit audit --help"
    ),
    "audit null --worst-case search": (
        "--worst-case: 'search' is gone; `dpaudit replay GENERATOR --schema FILE --search` finds "
        "the worst pair of tables and writes both, and `dpaudit audit --data WITH --set "
        "neighbours-file=WITHOUT` audits them; see dpaudit audit --help"
    ),
    "audit null --rows": "--rows requires an argument",
    "audit null --exit-zero": (
        "--exit-zero is no option: give --fail-on never; see dpaudit audit --help"
    ),
    "audit null --set row=3": (
        "--set row=3: write NAME=VALUE (did you mean 'rows'?); NAME is one of after-replay, "
        "bound, canaries, confidence, curve, encoding, engine, ignore-bits, junit, links, "
        "max-rows-per-unit, mu, multiplicity, neighbours-file, probe, rho, rows, scheduler, "
        "secret, separator, show-values, threshold, time-one, trial-timeout, unit, worker-memory"
    ),
    "audit null --set rows=many": (
        "--set rows must be a whole number, not many; see dpaudit audit --help"
    ),
    "audit null --set probe=no": "--set probe=no: write probe=true or probe=false",
    "audit null --set rows=3 --set rows=4": "--set rows is given twice: give it once",
    "audit people.csv": (
        "GENERATOR is refused: people.csv is a table: name a generator, then --data people.csv; "
        "see dpaudit audit --help"
    ),
    "list nonsense": "unknown name 'nonsense': `dpaudit list` lists all names",
    "audit --data": "--data requires an argument",
    "audit --quiet=3 null": "--quiet does not take a value",
    "report a b c": "too many arguments: b c; see dpaudit report --help",
    "adit": "no such command 'adit' (did you mean 'audit'?); see dpaudit --help",
    "env creat x": "no such command 'creat' (did you mean 'create'?); see dpaudit env --help",
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_words_are_one_line_and_exit_2(words: str) -> None:
    ended = CliRunner().invoke(app, words.split(), prog_name="dpaudit")
    assert ended.exit_code == ExitCode.USAGE
    assert ended.stdout == ""
    assert ended.stderr.splitlines() == [f"error: {WRONG[words]}"]


@pytest.mark.parametrize(
    "words", ["audit LONG --data sample:breast-cancer", "list LONG", "LONG", "audit null --LONG 1"]
)
def test_a_name_of_ten_thousand_characters_is_cut_in_one_line(words: str) -> None:
    ended = CliRunner().invoke(app, words.replace("LONG", "x" * 10_000).split())
    assert ended.exit_code == ExitCode.USAGE
    [line] = ended.stderr.splitlines()
    assert len(line) < 600
    assert "xxx…" in line


@pytest.mark.parametrize("gone", Commands.renamed)
def test_a_command_that_is_gone_is_answered_with_its_new_form(gone: str) -> None:
    ended = CliRunner().invoke(app, [gone, "x", "--json"], prog_name="dpaudit")
    assert ended.exit_code == ExitCode.USAGE
    assert ended.stdout == ""
    new = Commands.renamed[gone]
    assert ended.stderr == f"error: no such command '{gone}': did you mean `{new}`?\n"
    program, command, *_ = new.split()
    assert program == "dpaudit"
    assert any(command in part for part in Commands.sections.values())


def test_a_wrong_value_of_a_variable_names_the_variable() -> None:
    env = {"DPAUDIT_AUDIT_EPSILON": "x"}
    ended = CliRunner().invoke(app, ["audit", "null"], env=env, prog_name="dpaudit")
    assert ended.exit_code == ExitCode.USAGE
    [line] = ended.stderr.splitlines()
    assert line.startswith("error: DPAUDIT_AUDIT_EPSILON must be a number, not x; ")


def test_a_command_without_words_is_answered_with_its_help() -> None:
    for words in ([], ["env"]):
        ended = CliRunner().invoke(app, words, prog_name="dpaudit")
        assert ended.exit_code == ExitCode.USAGE
        assert ended.stderr.startswith("Usage: dpaudit ")


def every_command() -> dict[str, Any]:
    """The commands by what is typed, those inside a group included."""
    group: Any = typer.main.get_command(app)
    found = {}
    for name in (name for part in Commands.sections.values() for name in part):
        one = group.get_command(None, name)
        inside = getattr(one, "commands", None)
        found |= {f"{name} {of}": each for of, each in inside.items()} if inside else {name: one}
    return found


def test_every_command_refuses_an_unknown_option_and_a_number_that_is_none() -> None:
    numbers = 0
    for name, command in every_command().items():
        tries = {"--no-such-option-at-all=1": "no such option --no-such-option-at-all"}
        for one in command.params:
            kind = getattr(one, "type_descriptor", None)
            flag = max(one.opts, key=len)
            if getattr(one, "hidden", False):
                continue
            if kind is not None and str(kind.annotation).startswith(("<class 'i", "<class 'f")):
                tries[f"{flag}=many"] = f"{flag} must be a "
                numbers += 1
        for word, said in tries.items():
            ended = CliRunner().invoke(app, [*name.split(), word], prog_name="dpaudit")
            assert ended.exit_code == ExitCode.USAGE, (name, word)
            [line] = ended.stderr.splitlines()
            needs = "is missing; see" in line and word.endswith("many")
            assert line.startswith(f"error: {said}") or needs, (name, word, line)
    assert numbers >= 40


def test_usage_lines_write_needed_arguments_bare() -> None:
    for name, command in every_command().items():
        usage = CliRunner().invoke(app, [*name.split(), "--help"], prog_name="dpaudit").stdout
        first = usage.splitlines()[0]
        words = [
            f"{bare}{'...' * (one.nargs != 1 and not bare.endswith('...'))}"
            for one in command.params
            if one.param_type_name == "argument"
            for bare in [one.metavar if one.required else f"[{one.metavar}]"]
        ]
        assert first == " ".join(["Usage: dpaudit", name, "[OPTIONS]", *words])
        assert " <str>" not in usage


TABLES = {
    "short": "a,b\n1,2\n4\n",
    "long": "a,b\n1,2\n4,5,6\n",
    "empty": "",
    "header": "a,b\n",
    "semicolons": "a;b\n1,5;2\n",
    "identifiers": "id,a\n" + "".join(f"{i},Nr. {i}\n" for i in range(50)),
    "words": "a,b\n" + "".join(f"{i if i else 'unknown'},{i % 3}\n" for i in range(80)),
}
READERS = (
    *(
        "audit null",
        "audit null --one-run --set canaries=20",
        "replay null",
        "probe null",
        "audit --plan null",
    ),
    *("trace pate-gan", "utility null"),
    "audit-data --synthetic SAME",
)


@pytest.mark.parametrize("words", READERS)
@pytest.mark.parametrize("kind", TABLES)
def test_a_table_that_is_none_is_one_line_before_any_training(
    words: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("BAD", "SAME"):
        Path(name).write_text(TABLES[kind])
    data = "--train" if words.startswith("audit-data") else "--data"
    ended = CliRunner().invoke(app, [*words.split(), data, "BAD"], prog_name="dpaudit")
    assert ended.exit_code == ExitCode.USAGE
    assert ended.stdout == ""
    line = ended.stderr.splitlines()[-1]
    assert line.startswith("error: ")
    assert "BAD" in line or "the train table" in line
    assert sorted(path.name for path in tmp_path.iterdir()) == ["BAD", "SAME"]  # no run was begun
