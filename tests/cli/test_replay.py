"""`dpaudit replay`: exit codes, output and what is refused; the replay itself is replaced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dpaudit.cli.console import ExitCode
from dpaudit.cli.main import app
from dpaudit.results.verdict import Verdict
from replay_records import replay_record

TABLE = ("--data", "sample:breast-cancer", "--epsilon", "1")


def dpaudit(*words: str) -> Result:
    return CliRunner().invoke(app, ["--config", "none", "replay", *words])


@pytest.mark.parametrize(
    ("found", "code"),
    [
        ({"verdict": Verdict.VIOLATION}, ExitCode.VIOLATION),
        ({"verdict": Verdict.VIOLATION, "of_proof": True}, ExitCode.VIOLATION),
        ({"verdict": Verdict.OVERSPENT}, ExitCode.INCONCLUSIVE),
        ({"verdict": Verdict.INCONCLUSIVE}, ExitCode.INCONCLUSIVE),
        ({}, ExitCode.PASS),
    ],
)
def test_the_exit_code_is_that_of_the_verdict(
    found: dict[str, Any], code: ExitCode, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    record = replay_record(**found)
    monkeypatch.setattr("dpaudit.replaying.run.replay", lambda *_, **__: record)
    page = tmp_path / "replay.html"
    done = dpaudit("gan", *TABLE, "--html", str(page))
    assert done.exit_code == code
    assert done.stdout == f"{record}\n"
    assert f'<h1 class="{record.verdict}">' in page.read_text(encoding="utf-8")
    quiet = dpaudit("gan", *TABLE, "-q")
    assert (quiet.exit_code, quiet.stdout) == (code, f"{record.headline}\n")
    as_json = dpaudit("gan", *TABLE, "--json")
    assert (as_json.exit_code, json.loads(as_json.stdout)) == (code, record.to_document())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--access", "all"), "--access is 'all': give 'model' or 'rows'"),
        (("--proof", "magic"), "--proof is 'magic': give 'composition'"),
        (("--internal", "a.py"), "--internal is 'a.py': give FILE:LINE"),
        (("--fits", "0"), "--fits must be a whole number of at least 1"),
        (("--replays", "3"), "no such option --replays"),
    ],
)
def test_wrong_options_are_refused_in_a_line(words: tuple[str, ...], says: str) -> None:
    done = dpaudit("laplace-histogram", *TABLE, *words)
    assert done.exit_code == ExitCode.USAGE
    assert says in done.stderr


@pytest.mark.parametrize("is_module", [False, True], ids=["file", "module"])
def test_a_generator_that_does_not_import_is_refused_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_module: bool
) -> None:
    (tmp_path / "broken_gan.py").write_text("import json\n\nraise ValueError('no licence')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    done = dpaudit(f"broken_gan{'' if is_module else '.py'}:Gan", *TABLE)
    assert done.exit_code == ExitCode.USAGE
    assert done.stderr.count("\n") == 1
    assert "ValueError at broken_gan.py:3 in <module>: no licence" in done.stderr


def test_each_stage_is_one_line_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def replay(*_: Any, on_progress: Any, **__: Any) -> Any:
        for number in range(40):
            on_progress(f"replay {number + 1}")
        for number in range(40):
            on_progress(f"search for released answers: {number + 1} of 40")
        return replay_record()

    monkeypatch.setattr("dpaudit.replaying.run.replay", replay)
    done = dpaudit("gan", *TABLE)
    assert done.stderr.splitlines() == ["replay 1", "search for released answers: 1 of 40"]
    assert not dpaudit("gan", *TABLE, "-q").stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--data", "x.csv", "--schema", "s.json"), "makes its own tables: leave out --data"),
        ((), "a search makes its tables from a schema: give --schema"),
        (("--schema", "s.json", "--target", "row:3"), "makes its own tables: leave out --target"),
        (("--schema", "s.json", "--seconds", "0"), "--seconds must be a number above 0"),
    ],
)
def test_what_a_search_cannot_do_is_said_in_a_line(
    words: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    done = dpaudit("null", "--search", "--out", str(tmp_path), "--epsilon", "1", *words)
    assert done.exit_code == ExitCode.USAGE
    assert says in done.stderr


def test_options_of_a_search_are_refused_without_it() -> None:
    done = dpaudit("null", *TABLE, "--seconds", "5")
    assert done.exit_code == ExitCode.USAGE
    assert "--out are for --search: add it" in done.stderr
