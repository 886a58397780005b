"""Runs batches of trials on worker processes and commits each trial as its batch arrives.

The coordinator alone writes the store. A worker that dies costs only its own trial: what was in
flight is run again one trial at a time, so that the trial that kills its worker is found, and
after three attempts that trial is recorded as crashed. A trial that is over its time is recorded as
failed at once; what else was in flight is run again.
"""

from __future__ import annotations

import warnings
from collections import Counter, deque
from collections.abc import Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace

from dpaudit.errors import InterruptedRunError
from dpaudit.game import worker
from dpaudit.game.batches import Batch, make_batches
from dpaudit.game.limits import TimeLimit
from dpaudit.game.payload import erase_payloads, payload_file
from dpaudit.game.pool import Flight, interrupts_held, kill_workers
from dpaudit.game.progress import OnProgress, TrialProgress, ignore_progress
from dpaudit.game.store import RunFolder
from dpaudit.game.trial import Outcome, Payload, Role, Trial, TrialStatus

MAX_ATTEMPTS = 3


def run_trials(
    trials: Sequence[Trial],
    payload: Payload,
    folder: RunFolder,
    *,
    jobs: int,
    trial_timeout: float | None = None,
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
        trial_timeout: Seconds after which a trial has failed; derived if None (`TimeLimit`).
        generator: What the trials train, where that may be a `BatchGenerator`; never trained here.
        on_progress: Called after every outcome.
        among: The trials that progress is counted among, where `trials` are only some of them.

    Raises:
        InterruptedRunError: On Ctrl-C; what finished is in the folder.
        AttackError: If an attack fails on a valid table.
        RegistryError: If an attack cannot be pickled for workers.
        RunFolderError: If the folder takes no more outcomes.
    """
    erase_payloads(folder.path)  # of a coordinator that was killed before any worker started
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
            with payload_file(payload, folder.path, log=folder.log) as file:
                _run(batches, file, state, jobs=jobs, limit=TimeLimit(trial_timeout))
    except KeyboardInterrupt:
        with interrupts_held() as held:
            kill_workers()
            kept = len(folder.finished(counted))
            held.clear()  # a second Ctrl-C asks for the same stop
        raise InterruptedRunError(
            f"interrupted: {kept} of {len(counted)} trials ({trials[0].role}) are kept in "
            f"{folder.path}"
        ) from None
    except BaseException:
        kill_workers()  # else the program would wait for the trials under way
        raise


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
    batches: Sequence[Batch],
    payload_file: worker.PayloadFile,
    state: _State,
    *,
    jobs: int,
    limit: TimeLimit,
) -> None:
    queue = deque(batches)
    suspects: deque[Batch] = deque()
    attempts: Counter[Trial] = Counter()

    def commit(outcomes: Sequence[Outcome]) -> None:
        limit.learn(outcomes)
        for outcome in outcomes:
            state.commit(replace(outcome, attempts=attempts[outcome.trial]))

    while queue or suspects:
        alone = bool(suspects)
        source = suspects if alone else queue
        in_flight = Flight(payload_file, workers=jobs, limit=limit)
        try:
            while source or in_flight.batches:
                # A suspect runs alone, so that a crash identifies it; else all workers stay busy.
                while source and len(in_flight.batches) < (1 if alone else 2 * jobs):
                    in_flight.submit(source[0])
                    attempts.update(source.popleft())
                commit(in_flight.collect())
        except BrokenProcessPool:
            kill_workers()
            for outcomes in in_flight.salvage():
                commit(outcomes)
            again: list[Batch] = []
            for batch in in_flight.lost():
                if in_flight.late and batch not in in_flight.late:
                    again.append(batch)  # that others are late is not its fault
                elif batch in in_flight.late and len(batch) == 1:
                    commit([_timed_out(*batch, seconds=limit.of(batch))])
                elif alone and attempts[batch[0]] >= MAX_ATTEMPTS:
                    commit([_crashed(*batch)])
                else:
                    suspects.extend((trial,) for trial in batch)
            queue.extendleft(reversed(again))


def _timed_out(trial: Trial, *, seconds: float) -> Outcome:
    return Outcome(
        trial=trial,
        status=TrialStatus.FAILED,
        error=f"timed out after {seconds:g} s",
        seconds=seconds,
    )


def _crashed(trial: Trial) -> Outcome:
    return Outcome(
        trial=trial,
        status=TrialStatus.CRASHED,
        error=f"its worker process died in each of {MAX_ATTEMPTS} attempts",
    )
