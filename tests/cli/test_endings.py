"""How a command ends: its exit code is that of what was found, whatever happens on the way."""

from __future__ import annotations

import errno
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dpaudit.cli import console
from dpaudit.cli.main import app
from program import Program
from samples import QUICK_ATTACKS

HEAD = """
import os, sys, threading, time
import numpy as np
import pandas as pd
from dpaudit import PrivacyClaim

class Honest:
    claim = PrivacyClaim(epsilon=1.0)
    def fit(self, data, *, seed):
        return self
    def sample(self, n, *, seed):
        rng = np.random.default_rng(seed)
        return pd.DataFrame({"a": rng.integers(0, 101, n), "b": rng.integers(-3, 4, n)})

class Leaver(Exception):
    def __str__(self):
        sys.exit(0)
"""

HOSTILE = {
    "leaves on import": "os._exit(0)",
    "becomes another program": "os.execv('/bin/true', ['true'])",
    "raises what leaves": "raise Leaver",
    "exits on import": "sys.exit(0)",
    "leaves when built": "class G(Honest):\n  def __init__(self): os._exit(0)",
    "leaves when checked": "class G(Honest):\n  def check(self, data): os._exit(0)",
    "raises when checked": "class G(Honest):\n  def check(self, data): raise Leaver",
    "checks nothing": "class G(Honest): check = 3",
    "leaves when asked for its claim": (
        "class G(Honest):\n  @property\n  def claim(self): os._exit(0)"
    ),
    "claims a number": "class G(Honest): claim = 1.0",
    "cannot be pickled": "class G(Honest):\n  def __init__(self): self.lock = threading.Lock()",
    "leaves when pickled": "class G(Honest):\n  def __reduce__(self): os._exit(0)",
    "nests too deep to pickle": (
        "class G(Honest):\n  def __init__(self):\n    self.deep = []\n"
        "    for _ in range(10**5): self.deep = [self.deep]"
    ),
}

ALIKE = {
    "exits on import",
    "leaves when built",
    "leaves when checked",
    "leaves when asked for its claim",
    "leaves when pickled",
}
"""Those of `HOSTILE` that end the program as others do, elsewhere."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where commands run: a tiny table, its schema, and one file for a generator."""
    rows = [f"{10 * n},{n % 7 - 3}" for n in range(11)]
    (tmp_path / "tiny.csv").write_text("\n".join(["a,b", *rows, ""]))
    return tmp_path


def command(generator: str, *more: str) -> list[str]:
    words = ["audit", generator, "--data", "tiny.csv"]
    words += ["--target", "row:10", "--attack", QUICK_ATTACKS[0], "--jobs", "1"]
    return [*words, "--shadow-models", "40", "--out", "run", *more]


def afresh(words: list[str]) -> list[str]:
    """The command in a process that starts afresh."""
    return [sys.executable, "-m", "dpaudit", *words]


def ended(folder: Path, words: list[str], **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload,no-any-return]
        words,
        **({"cwd": folder, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options),
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize(
    "what",
    [pytest.param(what, marks=[pytest.mark.ci] if what in ALIKE else []) for what in HOSTILE],
)
def test_a_generator_that_ends_or_breaks_the_program_is_one_line(
    folder: Path, program: Program, what: str
) -> None:
    (folder / "g.py").write_text(f"{HEAD}\n{HOSTILE[what]}\n")
    done = program.run(command("g.py:G", "-q"), cwd=folder)
    assert done.returncode == 2, done.stderr
    [line] = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert not (folder / "run" / "result.json").exists()


@pytest.mark.parametrize(
    ("ends", "says"),
    [
        ("os.kill(os.getpid(), 11)", "error: the generator's process died (signal 11, SIGSEGV): "),
        ("os._exit(0)", "NOTHING PROBED  1 probe failed: SystemExit at g.py:"),
    ],
)
def test_a_generator_that_ends_its_process_while_it_is_probed_fails(
    folder: Path, program: Program, ends: str, says: str
) -> None:
    (folder / "g.py").write_text(
        f"{HEAD}\nclass G(Honest):\n  def fit(self, data, *, seed): {ends}\n"
    )
    words = ["probe", "g.py:G", "--data", "tiny.csv", "--only", "seed-ignored", "-q"]
    done = program.run(words, cwd=folder)
    assert done.returncode == 2, done.stderr
    [line] = (done.stderr + done.stdout).splitlines()
    assert line.startswith(says)


def test_a_generator_that_raises_while_rows_are_synthesized_is_one_line(
    folder: Path, program: Program
) -> None:
    (folder / "g.py").write_text(
        f"{HEAD}\nclass G(Honest):\n  def fit(self, data, *, seed): raise OSError('no GPU')\n"
    )
    done = program.run(["synthesize", "g.py:G", "--data", "tiny.csv", "--out", "s.csv"], cwd=folder)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: g.py:G gave no synthetic table: fit or sample raises: ")


STAYS = """
def wait():
    time.sleep(600)

threading.Thread(target=wait).start()

class G(Honest):
    def fit(self, data, *, seed):
        threading.Thread(target=wait).start()
        if os.fork() == 0:
            wait()
        time.time = time.perf_counter = np.mean = np.std = np.histogram = None
        return self
"""


@pytest.mark.ci
def test_threads_forks_and_patches_neither_stop_a_run_nor_keep_it_from_ending(
    folder: Path, program: Program
) -> None:
    (folder / "g.py").write_text(f"{HEAD}\nimport atexit\natexit.register(os._exit, 0)\n{STAYS}")
    done = program.run(command("g.py:G", "--epsilon", "9"), cwd=folder)
    assert done.returncode == 3, done.stderr  # nothing can prove more than 9
    document = json.loads((folder / "run" / "result.json").read_text())
    assert document["failures"] == {"in": 0, "out": 0}


VERDICTS = [pytest.param("null", 0, marks=pytest.mark.ci), ("copycat", 1)]


ENDS = (("/dev/full", ""), ("broken pipe", ""), ("", "/dev/full"))


@pytest.mark.parametrize("ends", [ENDS[:1], pytest.param(ENDS, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("generator", "code"), VERDICTS)
def test_a_verdict_keeps_its_exit_code_whatever_becomes_of_its_words(
    folder: Path, program: Program, generator: str, code: int, ends: tuple[tuple[str, str], ...]
) -> None:
    words = command(generator, "--json")
    for out, err in ends:
        done = program.run(words, cwd=folder, stdout=out, stderr=err)
        assert done.returncode == code, done.stderr
        if out:
            assert "note: standard output cannot be written: " in done.stderr
            assert "Traceback" not in done.stderr


@pytest.mark.ci
@pytest.mark.parametrize(("generator", "code"), VERDICTS)
def test_a_verdict_keeps_its_exit_code_where_workers_start_and_nothing_can_be_said(
    folder: Path, program: Program, generator: str, code: int
) -> None:
    words = command(generator, "--json")
    done = program.run(words, cwd=folder, stderr="/dev/full", fresh_workers=True)
    assert done.returncode == code


@pytest.mark.ci
@pytest.mark.parametrize("again", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("generator", "code"), VERDICTS)
def test_a_verdict_keeps_its_exit_code_where_streams_are_closed(
    folder: Path, program: Program, generator: str, code: int, again: bool
) -> None:
    words = command(generator, "--json")
    if again:  # else workers start
        assert program.run(words, cwd=folder).returncode == code
    closed = ["sh", "-c", f"{shlex.join(afresh(words))} >&- 2>&-"]
    assert ended(folder, closed).returncode == code


def test_a_command_that_only_prints_fails_if_it_cannot(folder: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = ended(folder, afresh(["list"]), stdout=full)
    assert done.returncode == 4
    assert done.stderr == "error: standard output cannot be written: No space left on device\n"


def test_a_stream_that_takes_nothing_is_noted_and_given_up() -> None:
    with Path("/dev/full").open("w") as full:
        output = console._Tolerant(full)
        output.write("lost")
        output.flush()
        assert output.failure is not None
        assert output.failure.errno == errno.ENOSPC
        full.write("whoever writes to it next, such as loky, does not fail")
        full.flush()


def test_what_a_stream_still_holds_changes_no_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "enumerate", lambda: [threading.main_thread()])
    with Path("/dev/full").open("w") as full:
        full.write("held")
        monkeypatch.setattr(sys, "stdout", full)
        with pytest.raises(SystemExit) as ended:
            console.end_program(3)
        monkeypatch.undo()
    assert ended.value.code == 3


@pytest.mark.parametrize(
    "words",
    [
        *("audit null --data t.csv", "replay null --data t.csv", "probe null --data t.csv"),
        *("audit-data --synthetic s.csv --train t.csv", "trace pate-gan --data t.csv"),
        *("audit --plan null --data t.csv", "utility null --data t.csv"),
        "split --data t.csv --to s",
    ],
)
def test_an_interrupt_is_one_line_that_says_how_to_go_on(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pandas.read_csv", interrupted)
    monkeypatch.chdir(tmp_path)
    for name in ("s.csv", "t.csv"):
        Path(name).write_text("a,b\n1,2\n")
    ended = CliRunner().invoke(app, words.split())
    assert ended.exit_code == console.ExitCode.INTERRUPTED
    assert ended.stdout == ""
    assert ended.stderr.splitlines()[-1] == "interrupted: run the same command again"


@pytest.mark.ci
def test_a_closed_terminal_stops_a_run_as_a_polite_kill_does(folder: Path) -> None:
    (folder / "g.py").write_text(
        f"{HEAD}\nclass G(Honest):\n  def fit(self, data, *, seed):\n"
        f"    open({str(folder / 'training')!r}, 'w').close()\n    time.sleep(600)\n"
    )
    pipe = subprocess.PIPE
    words = afresh(command("g.py:G"))
    process = subprocess.Popen(
        words, cwd=folder, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    )
    while not (folder / "training").exists() and process.poll() is None:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGHUP)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert stdout == ""
    assert "resume with: dpaudit audit g.py:G" in stderr
    assert "Traceback" not in stderr
    assert not list((folder / "run").glob("payload*"))


LONG = "n" * 300
DEEP = "[" * 100_000 + "]" * 100_000

UNUSABLE = {
    "long table": ["audit", "null", "--data", f"{LONG}.csv"],
    "long schema": ["audit", "null", "--data", "tiny.csv", "--schema", f"{LONG}.json"],
    "long generator": ["audit", f"{LONG}.py:G", "--data", "tiny.csv"],
    "long folder": ["audit", "null", "--data", "tiny.csv", "--out", LONG],
    "long target": ["audit", "null", "--data", "tiny.csv", "--target", f"record:{LONG}"],
    "long result": ["report", LONG],
    "long bounds": ["report", LONG, "--bounds"],
    "long explain": ["explain", LONG],
    "long output": ["synthesize", "null", "--data", "tiny.csv", "--out", f"{LONG}.csv"],
    "deep schema": ["audit", "null", "--data", "tiny.csv", "--schema", "deep.json"],
    "deep result": ["report", "deep.json"],
    "rows": ["audit", "null", "--data", "tiny.csv", "--set", "rows=1000000000"],
    "rows of one run": [
        "audit",
        "null",
        "--data",
        "tiny.csv",
        "--one-run",
        "--set",
        "rows=1000000000",
    ],
    "rows of a table": [
        *("synthesize", "null", "--data", "tiny.csv", "--out", "o.csv", "--rows", "1000000000"),
    ],
    "rows of probes": ["probe", "null", "--data", "tiny.csv", "--rows", "1000000000"],
}


@pytest.mark.parametrize("in_a_process", [False, pytest.param(True, marks=pytest.mark.ci)])
@pytest.mark.parametrize("what", UNUSABLE)
def test_what_the_system_or_the_stack_cannot_take_is_one_line(
    folder: Path, program: Program, monkeypatch: pytest.MonkeyPatch, what: str, in_a_process: bool
) -> None:
    (folder / "deep.json").write_text(DEEP)
    monkeypatch.chdir(folder)
    done: Any
    if in_a_process:
        done = program.run(UNUSABLE[what], cwd=folder)
        code = done.returncode
    else:
        done = CliRunner().invoke(app, UNUSABLE[what])
        code = done.exit_code
    assert code == 2, done.stderr
    lines = [line for line in done.stderr.splitlines() if not line.startswith("auditing ")]
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("error: ")


VANISHES = """
import shutil
class G(Honest):
    def check(self, data):
        threading.Timer(3, shutil.rmtree, ["run"], {"ignore_errors": True}).start()
    def fit(self, data, *, seed):
        time.sleep(0.2)
        return self
"""


@pytest.mark.ci
def test_a_run_folder_that_disappears_is_one_line(folder: Path, program: Program) -> None:
    (folder / "g.py").write_text(HEAD + VANISHES)
    done = program.run(command("g.py:G", "-q", "--shadow-models", "200"), cwd=folder)
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


@pytest.mark.ci
@pytest.mark.parametrize("limit", [16, pytest.param(28, marks=pytest.mark.slow)])
def test_too_few_open_files_are_one_line(folder: Path, limit: int) -> None:
    import resource

    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

    done = ended(folder, afresh(command("null", "-q")), preexec_fn=few)
    assert "Traceback" not in done.stderr
    assert (done.returncode == 0) == (folder / "run" / "result.json").exists()
    assert not list((folder / "run").glob("payload*"))
