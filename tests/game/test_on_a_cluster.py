"""Trials on a real scheduler with real workers: the same results, whatever becomes of a worker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle
import pandas as pd
import pytest

import batch_toys
from batch_toys import TRIALS, Model, Together, features, payload, seed_of
from clusters import LocalDask, local_dask
from dpaudit.errors import ClusterError
from dpaudit.game.engine import opened_engine, run_trials
from dpaudit.game.flight import OnProgress, TrialProgress, ignore_progress
from dpaudit.game.pool import LocalEngine
from dpaudit.game.store import RunFolder
from dpaudit.game.trial import Outcome, Role, Trial, TrialStatus
from dpaudit.plugins.protocols import Job

cloudpickle.register_pickle_by_value(batch_toys)
cloudpickle.register_pickle_by_value(sys.modules[__name__])

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalDask]:
    with local_dask(tmp_path_factory.mktemp("cluster"), workers=2) as cluster:
        yield cluster


@dataclass
class Faulty(Together):
    """Does at some seeds what it must not."""

    kills: tuple[int, ...] = ()
    hangs: tuple[int, ...] = ()
    pause: float = 0.0

    def model(self, data: pd.DataFrame, job: Job) -> Model:
        sys.stdout.write("printed\n")
        time.sleep(self.pause)
        if job.seed in self.kills:
            os.kill(os.getpid(), signal.SIGKILL)
        if job.seed in self.hangs:
            time.sleep(600)
        return super().model(data, job)


def played(
    cluster: LocalDask | None,
    path: Path,
    generator: object,
    *,
    trial_timeout: float | None = None,
    on_progress: OnProgress = ignore_progress,
) -> dict[Trial, Outcome]:
    name, scheduler = ("dask", cluster.file) if cluster else ("local", None)
    with (
        opened_engine(name, jobs=None, scheduler=scheduler) as engine,
        RunFolder(path, spec={}, versions={}) as folder,
    ):
        run_trials(
            TRIALS,
            payload(generator),
            folder,
            engine=engine,
            trial_timeout=trial_timeout,
            on_progress=on_progress,
        )
        return {trial: folder.outcome(trial) for trial in folder.outcomes(Role.AUDIT)}


def test_a_cluster_gives_what_this_machine_gives(two: LocalDask, tmp_path: Path) -> None:
    here = played(None, tmp_path / "here", Together())
    there = played(two, tmp_path / "there", Faulty())
    assert features(there) == features(here)
    assert len(features(there)) == len(TRIALS)
    log = (tmp_path / "there" / "workers.log").read_text()
    assert log.count("printed") >= len(TRIALS)
    assert not list((tmp_path / "there").glob("payload*"))


def test_trials_that_kill_or_never_end_fail_alone(two: LocalDask, tmp_path: Path) -> None:
    killer, stuck = TRIALS[2], TRIALS[5]
    generator = Faulty(kills=(seed_of(killer),), hangs=(seed_of(stuck),))
    outcomes = played(two, tmp_path / "run", generator, trial_timeout=2)
    assert outcomes[killer].status is TrialStatus.CRASHED
    assert outcomes[killer].attempts == 3
    assert outcomes[stuck].error == "timed out after 2 s"
    calm = features(played(None, tmp_path / "calm", Together()))
    others = [trial for trial in TRIALS if trial not in (killer, stuck)]
    assert features(outcomes) == {trial: calm[trial] for trial in others}
    # Trials that shared a batch with the killer are repeated alone.
    assert {outcomes[trial].attempts for trial in others} <= {1, 2}


def test_a_killed_worker_costs_only_its_trial(two: LocalDask, tmp_path: Path) -> None:
    victim = two.workers()[0]

    def kill(progress: TrialProgress) -> None:
        if progress.done == 3:
            os.kill(victim, signal.SIGKILL)

    outcomes = played(two, tmp_path / "run", Faulty(pause=0.3), on_progress=kill)
    assert features(outcomes) == features(played(None, tmp_path / "calm", Together()))
    attempts = sorted(outcome.attempts for outcome in outcomes.values())
    assert attempts == [1] * (len(TRIALS) - 1) + [2]
    two.wait_for(2)


def test_all_workers_killed_at_once_are_waited_for(two: LocalDask, tmp_path: Path) -> None:
    victims = two.workers()

    def kill(progress: TrialProgress) -> None:
        if progress.done == 3:
            for victim in victims:
                os.kill(victim, signal.SIGKILL)

    outcomes = played(two, tmp_path / "run", Faulty(pause=0.3), on_progress=kill)
    assert features(outcomes) == features(played(None, tmp_path / "calm", Together()))
    assert max(outcome.attempts for outcome in outcomes.values()) == 2
    two.wait_for(2)


GENERATOR = """
import os, time
import numpy as np
import pandas as pd

class Slow:
    def fit(self, data, *, seed):
        open(os.environ["TOUCHED"] + f"-{os.getpid()}", "w").close()
        time.sleep(600)

    def sample(self, n, *, seed):
        raise NotImplementedError
"""


def test_workers_stop_when_the_coordinator_is_killed(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(GENERATOR)
    touched = {"TOUCHED": str(tmp_path / "touched")}
    with local_dask(tmp_path / "cluster", workers=0) as cluster:
        cluster.add_worker("--nthreads", "1", env=touched)
        cluster.wait_for(1)
        words = [sys.executable, "-m", "dpaudit", "audit", "slow.py:Slow", "--epsilon", "1"]
        words += [
            "--data",
            "sample:breast-cancer",
            "--set",
            "engine=dask",
            "--set",
            f"scheduler={cluster.file}",
        ]
        words += ["--set", "probe=false", "--out", "run", "-q"]
        coordinator = subprocess.Popen(words, cwd=tmp_path)
        deadline = time.monotonic() + 60
        while not (found := list(tmp_path.glob("touched-*"))):
            assert time.monotonic() < deadline
            assert coordinator.poll() is None
            time.sleep(0.1)
        runner = Path("/proc") / found[0].name.partition("-")[2]
        assert runner.exists()
        coordinator.kill()
        coordinator.wait()
        deadline = time.monotonic() + 20
        while runner.exists():
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert len(cluster.workers()) == 1


PATCH = """
import importlib.metadata as metadata
real = metadata.version
metadata.version = lambda name: "0.1" if name == "scipy" else real(name)
"""


def test_workers_that_are_not_fit_are_refused_before_any_training(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(PATCH)
    with local_dask(tmp_path / "cluster", workers=0) as cluster:
        while not Path(cluster.file).exists():
            time.sleep(0.1)
        with pytest.raises(ClusterError, match=r"has no workers: start some with `dask worker tcp"):
            played(cluster, tmp_path / "run", Together())
        cluster.add_worker("--nthreads", "1", env={"PYTHONPATH": str(tmp_path)})
        with pytest.raises(ClusterError, match=r"has scipy 0\.1, and this process has "):
            played(cluster, tmp_path / "run", Together())
        cluster.family.end()
        cluster.start("scheduler", "--port", "0")
        cluster.add_worker("--nthreads", "2")
        cluster.wait_for(1)
        with pytest.raises(ClusterError, match=r"has 2 threads, .*`--nthreads 1`"):
            played(cluster, tmp_path / "run", Together())


def result(folder: Path, *words: str) -> dict[str, Any]:
    """The result document of an audit, without what differs from run to run."""
    command = [sys.executable, "-m", "dpaudit", "audit", "copycat", "--json", "-q"]
    command += ["--data", "sample:breast-cancer", "--shadow-models", "60", "--epsilon", "1"]
    command += ["--out", str(folder), "--fail-on", "never", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    document.pop("seconds")
    document.pop("date")
    document["data"].pop("sha256")  # each folder has its salt
    return document


def test_an_audit_ends_with_the_same_result_to_the_last_digit(
    two: LocalDask, tmp_path: Path
) -> None:
    there = result(tmp_path / "there", "--set", "engine=dask", "--set", f"scheduler={two.file}")
    here = result(tmp_path / "here", "--jobs", "2")
    assert there == here
    assert here["verdict"] == "violation"


def test_a_cluster_resumes_what_this_machine_began(two: LocalDask, tmp_path: Path) -> None:
    with RunFolder(tmp_path / "run", spec={}, versions={}) as folder:
        run_trials(TRIALS[:7], payload(Together()), folder, engine=LocalEngine(2))
    outcomes = played(two, tmp_path / "run", Together())
    assert features(outcomes) == features(played(None, tmp_path / "whole", Together()))
