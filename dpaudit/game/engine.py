"""Plays trials on worker processes and commits each as it finishes.

The coordinator alone writes the store. A worker that dies takes only its own trial with it: what
was in flight is played again one at a time, so that the trial that kills its worker is found, and
after three attempts that trial is recorded as crashed.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import cloudpickle
from loky import get_reusable_executor

from dpaudit.errors import InterruptedRunError
from dpaudit.game import worker
from dpaudit.game.store import RunFolder
from dpaudit.game.trial import Outcome, Payload, Role, Status, Trial

MAX_ATTEMPTS = 3
IDLE_SECONDS = 60


class Progress(NamedTuple):
    """How far one role's trials are."""

    role: Role
    done: int
    total: int
    failed: int


OnProgress = Callable[[Progress], None]


def ignore_progress(progress: Progress) -> None:
    """Consumes progress silently."""


def run_trials(
    trials: Sequence[Trial],
    payload: Payload,
    folder: RunFolder,
    *,
    jobs: int,
    on_progress: OnProgress = ignore_progress,
) -> None:
    """Plays those trials that the folder does not hold yet.

    Args:
        trials: Trials of one role, in the order to play them.
        payload: What workers need.
        folder: The run folder; every outcome is committed as it arrives.
        jobs: Number of worker processes.
        on_progress: Told after every outcome.

    Raises:
        InterruptedRunError: On Ctrl-C; what finished is in the folder.
        AttackError: If an attack fails on a valid table.
    """
    done = folder.finished(trials)
    pending = [trial for trial in trials if trial not in done]
    state = _State(folder, on_progress, total=len(trials), done=len(done))
    if not pending:
        return
    state.report(trials[0].role)
    payload_file = _write(payload, folder.path)
    try:
        _play(pending, payload_file, state, jobs=jobs)
    except KeyboardInterrupt:
        get_reusable_executor(max_workers=jobs).shutdown(wait=True, kill_workers=True)
        raise InterruptedRunError(
            f"interrupted: {state.done} of {state.total} trials are kept in {folder.path}"
        ) from None
    finally:
        Path(payload_file.path).unlink(missing_ok=True)  # it holds the private table


class _State:
    """Commits outcomes and counts them."""

    def __init__(
        self, folder: RunFolder, on_progress: OnProgress, *, total: int, done: int
    ) -> None:
        self.folder = folder
        self.on_progress = on_progress
        self.total = total
        self.done = done
        self.failed = 0

    def commit(self, outcome: Outcome) -> None:
        self.folder.save(outcome)
        self.done += 1
        self.failed += outcome.status is not Status.FINISHED
        self.report(outcome.trial.role)

    def report(self, role: Role) -> None:
        self.on_progress(Progress(role, self.done, self.total, self.failed))


def _play(
    pending: Sequence[Trial], payload_file: worker.PayloadFile, state: _State, *, jobs: int
) -> None:
    queue = deque(pending)
    attempts = dict.fromkeys(pending, 0)
    suspects: deque[Trial] = deque()
    while queue or suspects:
        alone = bool(suspects)
        source = suspects if alone else queue
        in_flight = _Flight(payload_file, workers=1 if alone else jobs)
        try:
            while source or in_flight.trials:
                # A suspect flies alone, so that a crash names it; the rest keep workers fed.
                while source and len(in_flight.trials) < (1 if alone else 2 * jobs):
                    in_flight.submit(source[0])
                    attempts[source.popleft()] += 1
                for outcome in in_flight.collect():
                    state.commit(replace(outcome, attempts=attempts[outcome.trial]))
        except BrokenProcessPool:
            for outcome in in_flight.salvage():
                state.commit(replace(outcome, attempts=attempts[outcome.trial]))
            for trial in in_flight.lost():
                if alone and attempts[trial] >= MAX_ATTEMPTS:
                    state.commit(_crashed(trial, attempts[trial]))
                else:
                    suspects.append(trial)


class _Flight:
    """Trials handed to an executor and not collected yet."""

    def __init__(self, payload_file: worker.PayloadFile, *, workers: int) -> None:
        self.payload_file = payload_file
        self.trials: dict[Future[Outcome], Trial] = {}
        self.executor: Any = get_reusable_executor(
            max_workers=workers,
            timeout=IDLE_SECONDS,
            initializer=worker.start,
            initargs=(os.getpid(),),
            env=worker.ONE_THREAD,
            kill_workers=True,
        )

    def submit(self, trial: Trial) -> None:
        future = self.executor.submit(worker.work, self.payload_file, trial)
        self.trials[future] = trial

    def collect(self) -> Iterator[Outcome]:
        """Waits for at least one outcome; raises BrokenProcessPool if a worker died."""
        finished, _ = wait(self.trials, return_when=FIRST_COMPLETED)
        for future in finished:
            outcome = future.result()
            del self.trials[future]
            yield outcome

    def salvage(self) -> Iterator[Outcome]:
        """What finished before the pool broke; waits until every future knows its fate."""
        finished, _ = wait(self.trials)
        for future in finished:
            if future.exception() is None:
                del self.trials[future]
                yield future.result()

    def lost(self) -> list[Trial]:
        """Trials that went down with the pool, in the order they were handed out."""
        return list(self.trials.values())


def _crashed(trial: Trial, attempts: int) -> Outcome:
    return Outcome(
        trial=trial,
        status=Status.CRASHED,
        error=f"its worker process died in each of {attempts} attempts",
        attempts=attempts,
    )


def _write(payload: Payload, folder: Path) -> worker.PayloadFile:
    """Pickles the payload once, readable by its owner alone; workers load it once each."""
    blob = cloudpickle.dumps(payload)
    path = folder / "payload.pickle"
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(blob)
    return worker.PayloadFile(
        path=str(path.resolve()),
        digest=hashlib.sha256(blob).hexdigest(),
        log=str((folder / "workers.log").resolve()),
        search_path=tuple(entry for entry in sys.path if entry),
    )
