"""Whatever a worker does, the trial has a clear outcome, and the next one a new worker."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from dpaudit.errors import RegistryError, TrialError
from dpaudit.external import generator as external
from dpaudit.external.generator import WorkerGenerator
from dpaudit.external.session import SynthesisError, WorkerError, WorkerProcess
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema

FILE = Path(__file__).with_name("misbehaving.py")
SCHEMA = Schema(
    columns=(
        Column(name="x", kind=Kind.CONTINUOUS, lower=0.0, upper=1.0),
        Column(name="c", kind=Kind.CATEGORICAL, categories=("a", "b")),
    )
)
DATA = SCHEMA.canonical(pd.DataFrame({"x": [0.25, 0.75], "c": ["a", "b"]}))


def worker(fault: str, **settings: object) -> WorkerGenerator:
    command = f"{sys.executable} -I -S {FILE} '{fault}'"
    return WorkerGenerator(command=command, schema=SCHEMA, **settings)


def synthesized(generator: WorkerGenerator) -> pd.DataFrame:
    return generator.fit(DATA, seed=1).sample(3, seed=2)


FAULTS = {
    "prints": "no JSON object",
    "answers another": "answered request 0 instead of 1",
    "is not done": 'neither "done": true nor an "error"',
    "dies": "ended (signal 9, SIGKILL: often too little memory)",
    "exits": "ended (exit code 3): out of luck",
    "leaves a child": "ended (exit code 4)",
    "leaves a daemon": "ended (exit code 4)",
    "closes": "closed its standard output",
    "no output": "wrote no output",
    "link": "cannot be read",
    "hard link": "not a plain file",
    "pipe": "not a plain file",
    "folder": "not a plain file",
    "bytes": "not a CSV table",
    "longer rows": "not a CSV table",
    "endless answer": "over 1048576 bytes",
    "list": "no JSON object",
    "not text": "no JSON object",
    "endless errors": "the last words",
}


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(one, marks=[pytest.mark.ci] if one in ("leaves a daemon", "closes") else [])
        for one in FAULTS
    ],
)
def test_a_fault_is_one_line_and_ends_the_worker(fault: str) -> None:
    with pytest.raises(WorkerError) as caught:
        synthesized(worker(fault))
    assert FAULTS[fault] in str(caught.value)
    assert "\n" not in str(caught.value)
    assert external._current is None
    assert len(synthesized(worker("none"))) == 3


def test_a_second_answer_is_noticed_at_the_next_request() -> None:
    twice = worker("answers twice")
    synthesized(twice)
    with pytest.raises(WorkerError, match=r"before it was asked|instead of 2"):
        synthesized(twice)


def test_a_worker_that_says_that_it_failed_goes_on() -> None:
    generator = worker("fails")
    synthesized(worker("none"))
    with pytest.raises(SynthesisError, match="ValueError: no rows at all"):
        synthesized(generator)
    running = external._current
    assert running is not None
    with pytest.raises(SynthesisError):
        synthesized(generator)
    assert external._current is running


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc")
def test_memory_is_limited() -> None:
    with pytest.raises(TrialError, match="MemoryError"):
        synthesized(worker("memory", memory=2**30))


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("no hello", "speaks None"),
        ("other protocol", "dpaudit-worker/9"),
        ("claim", "claim has no meaning"),
        ("no csv", "'csv'"),
    ],
)
def test_a_wrong_hello_is_refused_before_any_training(fault: str, says: str) -> None:
    with pytest.raises(RegistryError, match=says):
        worker(fault)


def test_a_command_that_cannot_run_is_refused() -> None:
    for command, says in (
        ("", "needs a command"),
        ("no-such-program-here x", "does not exist"),
        ("'unbalanced", "cannot be read"),
        (f"{sys.executable} -c 'import time; raise SystemExit(7)'", "exit code 7"),
    ):
        with pytest.raises(RegistryError, match=says):
            WorkerGenerator(command=command, schema=SCHEMA)


def test_a_late_answer_is_an_error(tmp_path: Path) -> None:
    process = WorkerProcess([sys.executable, "-c", "input(); input()"], folder=tmp_path)
    with pytest.raises(WorkerError, match=r"did not answer within 0\.2 s"):
        process.ask({"op": "hello"}, seconds=0.2)
    process.end()
    process.end()


def test_a_worker_sees_nothing_of_this_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    monkeypatch.setenv("SECRET_TOKEN", "hush")
    program = (
        "import json, os; input();"
        "print(json.dumps({'seen': sorted(os.environ), 'folder': os.getcwd()}))"
    )
    process = WorkerProcess([sys.executable, "-c", program], folder=tmp_path)
    answer = process.ask({}, seconds=20)
    process.end()
    assert {"PYTHONPATH", "SECRET_TOKEN"}.isdisjoint(answer["seen"])
    assert Path(answer["folder"]) == tmp_path.resolve()


HOLDS = """
import pathlib, time
pathlib.Path("there").touch()
while not pathlib.Path("enough").exists():
    time.sleep(0.05)
"""
LEAVES = """
import subprocess, sys
subprocess.Popen([sys.executable, "holds.py"], start_new_session=True)
sys.stdin.read()
"""


def test_output_that_a_stranger_holds_open_is_closed_once_it_ends(tmp_path: Path) -> None:
    (tmp_path / "holds.py").write_text(HOLDS)
    process = WorkerProcess([sys.executable, "-c", LEAVES], folder=tmp_path)
    while not (tmp_path / "there").exists():
        time.sleep(0.05)
    process.end()
    assert all(reader.is_alive() for reader in process._readers)
    (tmp_path / "enough").touch()
    for reader in process._readers:
        reader.join(30)
    held = process._process
    assert held.stdout is not None
    assert held.stderr is not None
    assert held.stdout.closed
    assert held.stderr.closed
