"""A run that is killed, stopped or started twice: nothing is lost, left over or different."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from program import Program

GENERATOR = '''
import time
from pathlib import Path
import numpy as np
import pandas as pd
from dpaudit.plugins.protocols import FeatureName

class Copies:
    """An attack that needs no time: how many records have the target's value of column a."""

    def check(self, game):
        pass

    def feature_names(self, game):
        return (FeatureName("a", "count"),)

    def features(self, table, game):
        return np.array([(table["a"] == 100).sum()])

    def fit(self, features, member, *, seed):
        return lambda features: features[:, 0]

class Slow(Copies):
    """Says when it is being fitted on more trials than controls have, and takes its time."""

    def fit(self, features, member, *, seed):
        if len(features) > 14:
            Path("fitting").touch()
            time.sleep(0.5)
        return super().fit(features, member, seed=seed)

def noise(data, n_rows, seed):
    time.sleep(0.01)
    rng = np.random.default_rng(seed)
    level = data["a"].sum() + rng.laplace(scale=100.0)
    return pd.DataFrame({"a": rng.integers(0, 101, n_rows), "b": np.full(n_rows, round(level))})

def forever(data, n_rows, seed):
    time.sleep(600)
'''
LINGER_SECONDS = 5.0
PATIENCE_SECONDS = 60.0
TRIALS = "SELECT role, world, number, status, features, error FROM trial"


class Process(NamedTuple):
    """A process that may be gone and its number taken by another."""

    pid: int
    started: str


class Life(NamedTuple):
    """How one coordinator lived and died."""

    code: int
    stdout: str
    stderr: str
    lingered: float


def furnished(folder: Path) -> Path:
    """Puts a tiny table and a generator where a run is to be started."""
    rows = [f"{10 * n},{n % 7 - 3}" for n in range(11)]
    (folder / "tiny.csv").write_text("\n".join(["a,b", *rows, ""]))
    (folder / "own.py").write_text(GENERATOR)
    return folder


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A folder to start runs in."""
    return furnished(tmp_path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, program: Program) -> Path:
    """The run folder of an audit that nobody disturbed."""
    folder = furnished(tmp_path_factory.mktemp("undisturbed"))
    done = program.run(command("whole", "--jobs", "2"), cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "whole"


def command(out: str, *more: str, generator: str = "own.py:noise", trials: int = 60) -> list[str]:
    words = ["audit", generator, "--out", out]
    words += ["--data", "tiny.csv", "--target", "row:10", "--fail-on", "never"]
    words += ["--epsilon", "1", "--attack", "own.py:Copies", "--shadow-models", str(trials)]
    return [*words, *more]


def started(folder: Path, words: Sequence[str]) -> subprocess.Popen[str]:
    pipe, afresh = subprocess.PIPE, [sys.executable, "-m", "dpaudit", *words]
    return subprocess.Popen(
        afresh, cwd=folder, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    )


def stat(pid: int) -> list[str] | None:
    """Fields of a process from its state on; None if it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields


def descendants(pid: int) -> set[Process]:
    """Everything that a process has started and that still runs."""
    parent_of, born = {}, {}
    for entry in Path("/proc").iterdir():
        fields = stat(int(entry.name)) if entry.name.isdigit() else None
        if fields is not None:
            parent_of[int(entry.name)], born[int(entry.name)] = int(fields[1]), fields[19]
    found = {pid}
    while more := {child for child, parent in parent_of.items() if parent in found} - found:
        found |= more
    return {Process(child, born[child]) for child in found - {pid}}


def running(processes: set[Process]) -> set[Process]:
    now = {process: stat(process.pid) for process in processes}
    return {process for process, fields in now.items() if fields and fields[19] == process.started}


def seconds_until(done: Callable[[], bool], *, patience: float) -> float:
    start = time.monotonic()
    while not done() and time.monotonic() - start < patience:
        time.sleep(0.01)
    return time.monotonic() - start


def rows(run: Path) -> set[tuple[object, ...]]:
    """Every trial in the folder; empty if there is no store yet."""
    if not (run / "trials.sqlite").exists():
        return set()
    try:
        with sqlite3.connect(f"file:{run / 'trials.sqlite'}?mode=ro", uri=True) as db:
            found = set(db.execute(TRIALS))
        db.close()
    except sqlite3.OperationalError:  # the first run is just making it
        return set()
    return found


def stopped(
    folder: Path, words: Sequence[str], stop: Callable[[int], None], *, after: Callable[[], bool]
) -> Life:
    """Starts a run, stops it once it has come far enough, and sees what it leaves running."""
    process = started(folder, [*words, "--jobs", "2"])
    seconds_until(lambda: after() or process.poll() is not None, patience=PATIENCE_SECONDS)
    # All that it started: the pool's workers, and the trackers of their semaphores.
    left = descendants(process.pid)
    stop(process.pid)
    code = process.wait(PATIENCE_SECONDS)
    lingered = seconds_until(lambda: not running(left), patience=LINGER_SECONDS)
    survivors = running(left)
    assert not survivors, f"{survivors} outlived their coordinator"
    stdout, stderr = process.communicate(timeout=PATIENCE_SECONDS)
    return Life(code, stdout, stderr, lingered)


def result(run: Path) -> str:
    """The result document as it was written, but for time and the folder's salt."""
    text = (run / "result.json").read_text()
    assert json.loads(text)["seconds"] > 0
    text = re.sub(r'"sha256": "[0-9a-f]{64}"', '"sha256": ""', text)
    text = re.sub(r'"date": "[0-9-]+"', '"date": ""', text)
    return re.sub(r'"seconds": [0-9.]+', '"seconds": 0', text)


def open_files() -> Iterator[str]:
    """Names of the files that any process has open, the removed ones too (Linux)."""
    for place in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):
            yield os.readlink(place)


def payloads(run: Path) -> list[Path]:
    return list(run.glob("payload*"))


def kill_at_random_moments(
    program: Program, folder: Path, whole: Path, *, kills: int, trials: int, seed: int
) -> None:
    total = len(rows(whole))
    run = folder / "killed"
    rng = random.Random(seed)
    kept: set[tuple[object, ...]] = set()
    alive, steps = 0, []
    for kill in range(kills):
        aim = len(kept) + rng.randint(1, max(1, 2 * (total - len(kept)) // (kills - kill + 1)))
        pause = rng.uniform(0, 0.02)

        def far_enough(aim: int = aim, pause: float = pause) -> bool:
            if len(rows(run)) < aim:
                return False
            time.sleep(pause)
            return True

        life = stopped(
            folder,
            command("killed", trials=trials),
            lambda pid: os.kill(pid, signal.SIGKILL),
            after=far_enough,
        )
        if life.code == 0:
            break
        assert life.code == -signal.SIGKILL, life.stderr
        assert life.stdout == ""
        alive += 1
        steps.append((len(rows(run)), round(life.lingered, 2)))
        assert kept <= rows(run), "a finished trial is lost or has changed"
        kept = rows(run)
    last = program.run(command("killed", trials=trials), cwd=folder)
    assert last.returncode == 0, last.stderr
    steps = f"trials kept and seconds that workers lived on: {steps}, of {total}"
    sys.stdout.write(f"{alive} kills; {steps}\n")  # the study's record, shown by pytest -s
    assert alive >= kills - 1
    assert kept <= rows(run)
    assert result(run) == result(whole)
    assert not payloads(run)


@pytest.mark.ci
@pytest.mark.parametrize(
    "kills", [1, *(pytest.param(one, marks=pytest.mark.slow) for one in (2, 5))]
)
def test_kills_lose_no_trial_and_change_no_number(
    program: Program, table: Path, whole: Path, kills: int
) -> None:
    kill_at_random_moments(program, table, whole, kills=kills, trials=60, seed=1)


@pytest.mark.slow
def test_twenty_kills_lose_no_trial_and_change_no_number(program: Program, table: Path) -> None:
    done = program.run(command("whole", trials=200), cwd=table)
    assert done.returncode == 0, done.stderr
    kill_at_random_moments(program, table, table / "whole", kills=20, trials=200, seed=2)


def interrupt_group(pid: int) -> None:
    """Ctrl-C at a terminal: the whole process group gets it."""
    os.killpg(pid, signal.SIGINT)


def terminate(pid: int) -> None:
    os.kill(pid, signal.SIGTERM)


@pytest.mark.ci
@pytest.mark.parametrize("stop", [interrupt_group, terminate])
def test_a_stopped_run_says_how_to_resume_and_resumes(
    program: Program, table: Path, whole: Path, stop: Callable[[int], None]
) -> None:
    run = table / "out"
    life = stopped(table, command("out"), stop, after=lambda: len(rows(run)) > 70)
    assert life.code == 130
    assert life.stdout == ""
    kept, total = map(int, re.findall(r"interrupted: (\d+) of (\d+) shadow models", life.stderr)[0])
    assert 0 <= kept < total == 60
    assert "resume with: dpaudit audit own.py:noise" in life.stderr
    assert "Traceback" not in life.stderr
    assert not payloads(run)
    assert not (run / "result.json").exists()
    kept_rows = rows(run)
    # Another number of workers, too, makes no difference.
    assert program.run(command("out", "--jobs", "1"), cwd=table).returncode == 0
    assert kept_rows <= rows(run) == rows(whole)
    assert result(run) == result(whole)


@pytest.mark.ci
@pytest.mark.parametrize(
    "number",
    [
        signal.SIGKILL,
        *(pytest.param(one, marks=pytest.mark.slow) for one in (signal.SIGINT, signal.SIGTERM)),
    ],
)
def test_a_run_that_is_stopped_while_it_attacks_resumes_without_training(
    program: Program, table: Path, number: signal.Signals
) -> None:
    words = [word.replace("own.py:Copies", "own.py:Slow") for word in command("out")]
    assert program.run([*words, "--jobs", "2"], cwd=table).returncode == 0
    undisturbed = result(table / "out")
    (table / "out").rename(table / "undisturbed")
    mark = table / "fitting"
    mark.unlink()
    life = stopped(table, words, lambda pid: os.kill(pid, number), after=mark.exists)
    assert life.code == (-number if number == signal.SIGKILL else 130)
    assert "Traceback" not in life.stderr
    if number != signal.SIGKILL:
        [again] = re.findall(r"resume with: dpaudit (.*)", life.stderr)
        assert shlex.split(again) == [*words, "--jobs", "2"]
    trained = rows(table / "out")
    assert program.run([*words, "--jobs", "2"], cwd=table).returncode == 0
    assert rows(table / "out") == trained
    assert result(table / "out") == undisturbed


@pytest.mark.ci
def test_a_second_interrupt_leaves_nothing_behind_either(table: Path) -> None:
    run = table / "out"

    def twice(pid: int) -> None:
        interrupt_group(pid)
        time.sleep(0.01)
        interrupt_group(pid)

    life = stopped(table, command("out"), twice, after=lambda: len(rows(run)) > 10)
    assert life.code == 130
    assert "Traceback" not in life.stderr
    assert not payloads(run)


@pytest.mark.ci
@pytest.mark.parametrize("pause", [0.03, 0.06])
def test_an_interrupt_while_workers_start_makes_no_noise(table: Path, pause: float) -> None:
    run = table / "out"

    def starting() -> bool:  # the pool is made right after the payload is written
        return bool(payloads(run)) or any(
            link.startswith(f"{run.resolve()}/payload-") for link in open_files()
        )

    def interrupt(pid: int) -> None:
        time.sleep(pause)  # workers are importing what they need
        interrupt_group(pid)

    life = stopped(table, command("out"), interrupt, after=starting)
    assert life.code == 130
    assert "0 of 60 shadow models" in life.stderr
    assert "Traceback" not in life.stderr
    assert not payloads(run)


@pytest.mark.ci
def test_a_long_trial_does_not_hold_up_a_stop_and_leaves_no_payload(table: Path) -> None:
    run = table / "out"

    words = command("out", generator="own.py:forever")
    start = time.monotonic()
    life = stopped(table, words, interrupt_group, after=payloads_loaded(run))
    assert life.code == 130
    assert "0 of 60" in life.stderr
    assert not payloads(run)
    # The private table goes even if the coordinator cannot clean up.
    life = stopped(
        table, words, lambda pid: os.kill(pid, signal.SIGKILL), after=payloads_loaded(run)
    )
    assert life.code == -signal.SIGKILL
    assert not payloads(run)
    assert time.monotonic() - start < PATIENCE_SECONDS


def payloads_loaded(run: Path) -> Callable[[], bool]:
    """Whether a worker has begun with the run's payload: it opens the log when it loads it."""
    log = run / "workers.log"
    log.unlink(missing_ok=True)
    return log.exists


@pytest.mark.ci
def test_a_folder_serves_one_process_at_a_time_and_one_audit(program: Program, table: Path) -> None:
    run = table / "out"
    process = started(table, command("out", generator="own.py:forever"))
    try:
        seconds_until(lambda: (run / "trials.sqlite").exists(), patience=PATIENCE_SECONDS)
        second = program.run(command("out", generator="own.py:forever"), cwd=table)
    finally:
        os.kill(process.pid, signal.SIGTERM)
        process.communicate(timeout=PATIENCE_SECONDS)
    assert second.returncode == 2
    assert "another process is using out" in second.stderr
    other = program.run(command("out", "--seed", "5", generator="own.py:forever"), cwd=table)
    assert other.returncode == 2
    assert "seed is 0 there and 5 here" in other.stderr
    assert "Traceback" not in second.stderr + other.stderr


def test_a_folder_that_cannot_be_written_is_an_error_of_input(
    program: Program, table: Path
) -> None:
    refused = program.run(command("tiny.csv/out"), cwd=table)
    assert refused.returncode == 2
    assert "run folder tiny.csv/out cannot be written: Not a directory" in refused.stderr
    assert "Traceback" not in refused.stderr
