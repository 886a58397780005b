"""Runs batches of trials on worker processes and commits each trial as its batch arrives.

The coordinator alone writes the store. A worker that dies costs only its own trial: what was in
flight is run again one trial at a time, so that the trial that kills its worker is found, and
after three attempts that trial is recorded as crashed.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import threading
import warnings
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import resource_tracker
from pathlib import Path
from queue import SimpleQueue
from types import FrameType
from typing import Any

import cloudpickle
from loky import get_reusable_executor
from loky.backend import resource_tracker as loky_resource_tracker

from dpaudit.errors import InterruptedRunError
from dpaudit.game import worker
from dpaudit.game.batches import Batch, make_batches
from dpaudit.game.progress import OnProgress, TrialProgress, ignore_progress
from dpaudit.game.store import RunFolder
from dpaudit.game.trial import Outcome, Payload, Role, Trial, TrialStatus

MAX_ATTEMPTS = 3
IDLE_SECONDS = 60


def run_trials(
    trials: Sequence[Trial],
    payload: Payload,
    folder: RunFolder,
    *,
    jobs: int,
    generator: object = None,
    on_progress: OnProgress = ignore_progress,
    among: Sequence[Trial] | None = None,
) -> None:
    """Runs those trials that the folder does not hold yet.

    Their outcomes depend neither on how they are grouped into batches nor on the number of workers.

    Args:
        trials: Trials of one role, in the order to run them.
        payload: What workers need.
        folder: The run folder; every outcome is committed as it arrives.
        jobs: Number of worker processes.
        generator: What the trials train, where that may be a `BatchGenerator`; never trained here.
        on_progress: Called after every outcome.
        among: The trials that progress is counted among, where `trials` are only some of them.

    Raises:
        InterruptedRunError: On Ctrl-C; what finished is in the folder.
        AttackError: If an attack fails on a valid table.
        RunFolderError: If the folder takes no more outcomes.
    """
    _erase_payloads(folder.path)  # of a coordinator that was killed before any worker started
    done = folder.finished(trials)
    pending = [trial for trial in trials if trial not in done]
    if not pending:
        return
    counted = trials if among is None else among
    counted_done = len(done if among is None else folder.finished(counted))
    state = _State(folder, on_progress, total=len(counted), done=counted_done)
    state.report(trials[0].role)
    try:
        with warnings.catch_warnings():
            # Idle workers stop: as an error, this warning would break the pool.
            warnings.filterwarnings("ignore", message="A worker (stopped|was restarted) while")
            batches = make_batches(pending, payload, generator, workers=jobs)
            _run(batches, _write(payload, folder.path), state, jobs=jobs)
    except KeyboardInterrupt:
        with _interrupts_held() as held:
            _kill_workers()
            kept = len(folder.finished(counted))
            held.clear()  # a second Ctrl-C asks for the same stop
        raise InterruptedRunError(
            f"interrupted: {kept} of {len(counted)} trials ({trials[0].role}) are kept in "
            f"{folder.path}"
        ) from None
    except BaseException:
        _kill_workers()  # else the program would wait for the trials under way
        raise
    finally:
        _erase_payloads(folder.path)


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
        self.failed += outcome.status is not TrialStatus.FINISHED
        self.report(outcome.trial.role)

    def report(self, role: Role) -> None:
        self.on_progress(TrialProgress(role, self.done, self.total, self.failed))


def _run(
    batches: Sequence[Batch], payload_file: worker.PayloadFile, state: _State, *, jobs: int
) -> None:
    queue = deque(batches)
    suspects: deque[Batch] = deque()
    attempts: Counter[Trial] = Counter()

    def commit(outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            state.commit(replace(outcome, attempts=attempts[outcome.trial]))

    while queue or suspects:
        alone = bool(suspects)
        source = suspects if alone else queue
        in_flight = _Flight(payload_file, workers=jobs)
        try:
            while source or in_flight.batches:
                # A suspect runs alone, so that a crash identifies it; else all workers stay busy.
                while source and len(in_flight.batches) < (1 if alone else 2 * jobs):
                    in_flight.submit(source[0])
                    attempts.update(source.popleft())
                commit(in_flight.collect())
        except BrokenProcessPool:
            for outcomes in in_flight.salvage():
                commit(outcomes)
            for trial in in_flight.lost():
                if alone and attempts[trial] >= MAX_ATTEMPTS:
                    commit([_crashed(trial)])
                else:
                    suspects.append((trial,))


class _Flight:
    """Batches handed to an executor and not collected yet."""

    def __init__(self, payload_file: worker.PayloadFile, *, workers: int) -> None:
        self.payload_file = payload_file
        self.batches: dict[Future[list[Outcome]], Batch] = {}
        self.ended: SimpleQueue[Future[list[Outcome]]] = SimpleQueue()
        with _interrupts_held():
            self.executor: Any = get_reusable_executor(
                max_workers=workers,
                timeout=IDLE_SECONDS,
                initializer=worker.start,
                initargs=(os.getpid(),),
                env=worker.ENVIRONMENT,
                kill_workers=True,
            )

    def submit(self, batch: Batch) -> None:
        with _interrupts_held():
            future = self.executor.submit(worker.work, self.payload_file, batch)
            self.batches[future] = batch
            future.add_done_callback(self.ended.put)

    def collect(self) -> list[Outcome]:
        """Waits for the next batch's outcomes; raises BrokenProcessPool if a worker died."""
        # Not concurrent.futures.wait: a Ctrl-C inside it can leave futures locked for ever.
        future = self.ended.get()
        outcomes = future.result()
        del self.batches[future]
        return outcomes

    def salvage(self) -> Iterator[list[Outcome]]:
        """What finished before the pool broke; waits until every future has ended."""
        for future in list(self.batches):
            if future.exception() is None:
                del self.batches[future]
                yield future.result()

    def lost(self) -> list[Trial]:
        """Trials that were lost with the pool, in the order they were submitted."""
        return [trial for batch in self.batches.values() for trial in batch]


@contextmanager
def _interrupts_held() -> Iterator[list[int]]:
    """Holds Ctrl-C and SIGTERM back: a pool that is half started or half stopped cannot be killed.

    Workers and threads of the pool that start in here start with Ctrl-C blocked: it reaches the
    whole process group and would stop a worker in the middle of its imports.

    Yields:
        The signals held; the first is raised at the end.
    """
    held: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield held  # signals are handled in the main thread alone
        return
    for tracker in (resource_tracker, loky_resource_tracker):
        tracker.ensure_running()  # starting one unblocks Ctrl-C

    def hold(number: int, frame: FrameType | None) -> None:
        del frame
        held.append(number)

    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    ours = [number for number, handler in handlers.items() if callable(handler)]
    for number in ours:
        signal.signal(number, hold)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield held
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for number in ours:
            signal.signal(number, handlers[number])
        if held:
            signal.raise_signal(held[0])


def _kill_workers() -> None:
    with _interrupts_held():
        get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)


def _crashed(trial: Trial) -> Outcome:
    return Outcome(
        trial=trial,
        status=TrialStatus.CRASHED,
        error=f"its worker process died in each of {MAX_ATTEMPTS} attempts",
    )


def _write(payload: Payload, folder: Path) -> worker.PayloadFile:
    """Pickles the payload once, readable by its owner alone; workers load it once each."""
    blob = cloudpickle.dumps(payload)
    # Named after this process: a worker whose coordinator died erases that coordinator's file.
    path = folder / f"payload-{os.getpid()}.pickle"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(blob)
    return worker.PayloadFile(
        path=str(path.resolve()),
        digest=hashlib.sha256(blob).hexdigest(),
        log=str((folder / "workers.log").resolve()),
        search_path=tuple(entry for entry in sys.path if entry),
    )


def _erase_payloads(folder: Path) -> None:
    """Removes the files that hold the private table."""
    for path in folder.glob("payload-*.pickle"):
        path.unlink(missing_ok=True)
