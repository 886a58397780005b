"""A trial that takes too long fails alone; no process outlives the run that started it."""

from __future__ import annotations

import ctypes
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import cloudpickle
import pandas as pd
import pytest

import batch_toys
from batch_toys import TRIALS, Model, Together, features, played, seed_of
from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.errors import SettingsError
from dpaudit.game.flight import FACTOR, FIRST_SECONDS, FLOOR_SECONDS, Stopwatch, TimeLimit
from dpaudit.game.pool import kill_workers
from dpaudit.game.trial import Outcome, TrialStatus
from dpaudit.plugins.protocols import Job
from program import Program
from samples import QUICK_ATTACKS

cloudpickle.register_pickle_by_value(batch_toys)
cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(autouse=True)
def _no_worker_is_left() -> Iterator[None]:
    yield
    kill_workers()


def sleeps() -> None:
    time.sleep(600)


def holds_the_lock() -> None:
    ctypes.PyDLL(None).sleep(600)  # C code that keeps the interpreter's lock


def blocks_signals() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    time.sleep(600)


HANGS = (sleeps, holds_the_lock, blocks_signals)


@dataclass
class Hanging(Together):
    """Never ends at some seeds."""

    hangs: tuple[int, ...] = ()

    def model(self, data: pd.DataFrame, job: Job) -> Model:
        if job.seed in self.hangs:
            HANGS[self.hangs.index(job.seed)]()
        return super().model(data, job)


@pytest.mark.parametrize("together", [False, pytest.param(True, marks=pytest.mark.ci)])
def test_a_trial_that_never_ends_is_recorded_and_no_other_is_lost(
    tmp_path: Path, together: bool
) -> None:
    stuck = (TRIALS[1], TRIALS[2], TRIALS[8])
    generator = Hanging(hangs=tuple(map(seed_of, stuck)))
    outcomes = played(tmp_path / "run", generator, together=together, trial_timeout=1)
    for trial in stuck:
        assert outcomes[trial].status is TrialStatus.FAILED
        assert outcomes[trial].error == "timed out after 1 s"
        assert outcomes[trial].attempts <= 4  # once by its own fault, not three times
    calm = features(played(tmp_path / "calm", Together()))
    assert features(outcomes) == {t: calm[t] for t in TRIALS if t not in stuck}


def test_a_limit_is_derived_from_the_slowest_batch() -> None:
    def ended(seconds: float, status: TrialStatus = TrialStatus.FINISHED) -> Sequence[Outcome]:
        return [Outcome(trial=trial, status=status, seconds=seconds) for trial in TRIALS[:2]]

    limit, batch = TimeLimit(), tuple(TRIALS[:3])
    limit.learn(ended(1.0, TrialStatus.FAILED))
    assert limit.of(batch) == FIRST_SECONDS
    limit.learn(ended(1.0))
    assert limit.of(batch) == FLOOR_SECONDS
    limit.learn(ended(1000.0))
    limit.learn(ended(10.0))
    assert limit.of(batch) == FACTOR * 2000.0
    assert TimeLimit(5.0).of(batch) == 15.0


def test_time_in_which_the_coordinator_was_suspended_does_not_count() -> None:
    time_of_day = 0.0
    watch = Stopwatch(longest_step=1.0, now=lambda: time_of_day)
    watch.begin(1)
    for step in (0.5, 3600.0, 0.5):
        time_of_day += step
        watch.advance()
    assert watch.seconds == {1: 2.0}
    assert watch.idle == 0
    watch.end(1)
    time_of_day += 0.5
    watch.advance()
    assert watch.idle == 0.5


@pytest.mark.parametrize("seconds", [0.5, -1, math.nan])
def test_a_limit_of_no_time_is_refused(seconds: float) -> None:
    with pytest.raises(SettingsError, match="`trial_timeout` must be a number of at least 1, got "):
        audit_by_keywords("null", "sample:breast-cancer", trial_timeout=seconds)


FAMILY = """
import os, subprocess, sys, threading, time
import numpy as np
import pandas as pd

MOST = 25  # of so many processes that it starts one must be left if any can

def note(pid):
    with open("pids", "a") as file:
        file.write(f"{pid}\\n")

def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            note(os.getpid())
            time.sleep(600)
        os._exit(0)
    os.wait()

def starts(data, n_rows, seed):
    rng = np.random.default_rng(seed)
    made = pd.DataFrame({"a": rng.integers(0, 101, n_rows), "b": rng.integers(-3, 4, n_rows)})
    if os.path.exists("pids") and len(open("pids").readlines()) >= MOST:
        return made
    note(os.getpid())
    daemon()
    if os.fork() == 0:
        note(os.getpid())
        time.sleep(600)
    words = ["/bin/sleep", "600"]
    note(subprocess.Popen(words, start_new_session=True).pid)
    note(subprocess.Popen(words, env={}).pid)
    threading.Thread(target=time.sleep, args=(600,)).start()
    if os.path.exists("hold"):
        time.sleep(2)  # in which the watcher sees them
        open("held", "w").close()
        time.sleep(600)
    return made
"""
COMMAND = (
    *("audit", "g.py:starts", "--data", "tiny.csv"),
    *("--target", "row:10", "--epsilon", "1", "--attack", QUICK_ATTACKS[0], "--jobs", "2"),
    *("--shadow-models", "24", "--out", "run"),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [f"{10 * n},{n % 7 - 3}" for n in range(11)]
    (tmp_path / "tiny.csv").write_text("\n".join(["a,b", *rows, ""]))
    (tmp_path / "g.py").write_text(FAMILY)
    return tmp_path


def alive(folder: Path) -> list[int]:
    """Noted processes that run; ids are given again late."""
    found = []
    for pid in {int(line) for line in (folder / "pids").read_text().split()}:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state != "Z":
            found.append(pid)
    return found


def gone(folder: Path, *, within: float = 5.0) -> bool:
    deadline = time.monotonic() + within
    while alive(folder):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only process groups end")
def test_whatever_a_generator_starts_ends_with_the_run(folder: Path, program: Program) -> None:
    done = program.run(COMMAND, cwd=folder, fresh_workers=True)  # known by their environment
    assert done.returncode == 3, done.stderr
    assert len((folder / "pids").read_text().split()) >= 25
    assert not alive(folder)  # not even for a moment


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only process groups end")
@pytest.mark.parametrize(
    ("number", "whole_group"),
    [
        (signal.SIGKILL, False),
        pytest.param(signal.SIGKILL, True, marks=pytest.mark.ci),
        pytest.param(signal.SIGTERM, False, marks=pytest.mark.ci),
    ],
)
def test_whatever_a_generator_started_ends_with_a_killed_coordinator(
    folder: Path, number: int, whole_group: bool
) -> None:
    (folder / "hold").touch()
    words = (sys.executable, "-m", "dpaudit", *COMMAND)
    process = subprocess.Popen(
        words, cwd=folder, stdout=-3, stderr=-3, text=True, start_new_session=True
    )
    while not (folder / "held").exists() and process.poll() is None:
        time.sleep(0.05)
    assert len(alive(folder)) >= 5
    (os.killpg if whole_group else os.kill)(process.pid, number)
    process.wait(timeout=60)
    assert gone(folder)
