"""Runs batches of trials on worker processes and commits each batch as it arrives.

Only the coordinator writes the store. A worker that dies costs only its own trial: the trials of
its batch are run again one at a time, with nothing else running, to find the one that kills its
worker. After three attempts that trial is recorded as crashed. A trial over its time limit is
recorded as failed at once.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import loky

from dpaudit.errors import InterruptedRunError, MissingExtraError, SettingsError
from dpaudit.formatting import how_it_died
from dpaudit.game.flight import (
    Batch,
    BatchLoss,
    BatchSize,
    Engine,
    Flight,
    OnProgress,
    TimeLimit,
    TrialProgress,
    affordable,
    ignore_progress,
    make_batches,
)
from dpaudit.game.pool import LocalEngine, interrupts_held
from dpaudit.game.store import RunFolder
from dpaudit.game.trial import Outcome, Payload, Role, Trial, TrialStatus
from dpaudit.game.worker import erase_payloads
from dpaudit.model.choices import EngineName
from dpaudit.plugins.protocols import World, trains_many

MAX_ATTEMPTS = 3
FIRST_REVIEW = 16
"""After this many trials, and each doubling, a run decides whether to go on."""

Hopeless = Callable[[Sequence[Trial]], bool]
"""Whether a run can no longer prove anything, given its first trials."""


def never(trials: Sequence[Trial]) -> bool:
    """Never stops a run."""
    del trials
    return False


def run_trials(
    trials: Sequence[Trial],
    payload: Payload,
    folder: RunFolder,
    *,
    engine: Engine,
    trial_timeout: float | None = None,
    generator: object = None,
    on_progress: OnProgress = ignore_progress,
    among: Sequence[Trial] | None = None,
    hopeless: Hopeless = never,
) -> Sequence[Trial]:
    """Runs the trials that the folder does not hold yet.

    Neither their outcomes nor what is returned depend on the batches or the number of workers.

    Args:
        trials: Trials of one role, in the order to run them.
        payload: The input of the workers.
        folder: The run folder; the outcomes of a batch are committed as they arrive.
        engine: The engine that runs them.
        trial_timeout: Seconds after which a trial has failed; derived if None (`TimeLimit`).
        generator: The generator of the trials, if it may be a `BatchGenerator`; never trained here.
            Trials of others are fast enough to run in turn, or each is a batch.
        on_progress: Called after every outcome.
        among: All trials of the role, if `trials` are only some of them; progress counts all.
        hopeless: Called regularly to decide whether to stop; batches in flight still finish.

    Returns:
        The trials; if the run became hopeless, only those up to that point.

    Raises:
        InterruptedRunError: On Ctrl-C; what finished is in the folder.
        AttackError: If an attack fails on a valid table.
        RegistryError: If an attack cannot be pickled for workers.
        RunFolderError: If the folder cannot take more outcomes.
    """
    erase_payloads(folder.path)  # left by a coordinator that was killed before it had workers
    counted = trials if among is None else among
    state = _State(trials, folder, on_progress, counted=counted, hopeless=hopeless)
    pending = [trial for trial in trials if trial not in state.stored]
    if not pending or state.gave_up:
        return state.kept
    state.report(trials[0].role)
    try:
        batches = make_batches(pending, payload, generator, workers=engine.workers)
        # A replay shows whether a trial depends on others, so it shares no batch with any.
        alone = payload.is_timed or trains_many(generator) or trials[0].role is Role.REPLAY
        size = BatchSize(engine.workers, most=1 if alone else affordable(payload))
        limit = TimeLimit(
            trial_timeout, first=len(World) if payload.is_timed else 0, in_turn=not alone
        )
        with engine.flight(payload, folder=folder.path, log=folder.log, limit=limit) as flight:
            _run(batches, flight, state, limit=limit, size=size)
    except KeyboardInterrupt:
        with interrupts_held() as held:
            engine.stop()
            kept = folder.count(trials[0].role) if among else len(folder.finished(trials))
            held.clear()  # a second Ctrl-C asks for the same stop
        raise InterruptedRunError(
            f"interrupted: {kept} of {len(counted)} shadow models ({trials[0].role}) are kept in "
            f"{folder.path}"
        ) from None
    except BaseException:
        engine.stop()  # else the program would wait for running trials
        raise
    return state.kept


class _State:
    """Commits outcomes, counts them, and asks whether to go on.

    It asks when the first 16, 32, 64... trials are stored, regardless of later ones, so the answer
    does not depend on the number of workers or on resuming.
    """

    def __init__(
        self,
        trials: Sequence[Trial],
        folder: RunFolder,
        on_progress: OnProgress,
        *,
        counted: Sequence[Trial],
        hopeless: Hopeless,
    ) -> None:
        self.trials = trials
        self.folder = folder
        self.on_progress = on_progress
        self.hopeless = hopeless
        self.stored = folder.finished(trials)
        self.total = len(counted)
        self.done = len(self.stored) if counted is trials else folder.count(trials[0].role)
        self.failed = folder.count(trials[0].role, failed=True)
        self.gave_up = False
        self._prefix = 0
        self._review = FIRST_REVIEW
        self._review_prefix()

    def commit(self, outcomes: Sequence[Outcome]) -> None:
        self.folder.save(*outcomes)
        self.stored.update(outcome.trial for outcome in outcomes)
        for outcome in outcomes:
            self.done += 1
            self.failed += outcome.status is not TrialStatus.FINISHED
            self.report(outcome.trial.role)
        self._review_prefix()

    @property
    def kept(self) -> Sequence[Trial]:
        """The trials that count: all, or those up to the review that found the run hopeless."""
        return self.trials[: self._review] if self.gave_up else self.trials

    def _review_prefix(self) -> None:
        """Asks whether to go on each time the stored prefix of the trials has doubled."""
        while (
            not self.gave_up
            and self._prefix < len(self.trials)
            and self.trials[self._prefix] in self.stored
        ):
            self._prefix += 1
            if self._prefix == self._review < len(self.trials):
                self.gave_up = self.hopeless(self.trials[: self._review])
                self._review *= 1 if self.gave_up else 2

    def report(self, role: Role) -> None:
        self.on_progress(TrialProgress(role, self.done, self.total, self.failed))


def _run(
    batches: Sequence[Batch], flight: Flight, state: _State, *, limit: TimeLimit, size: BatchSize
) -> None:
    """Runs batches until all have outcomes; trials of a lost batch are suspects, run one by one."""
    queue = deque(batches)
    suspects: deque[Batch] = deque()
    attempts: Counter[Trial] = Counter()
    deaths: Counter[Trial] = Counter()

    def commit(outcomes: Sequence[Outcome]) -> None:
        limit.learn(outcomes)
        size.learn(outcomes)
        state.commit(
            [
                replace(outcome, attempts=attempts[outcome.trial])
                for outcome in outcomes
                if outcome.trial not in state.stored  # else its worker was given up too soon
            ]
        )

    while len(flight) or ((queue or suspects) and not state.gave_up):
        while (source := suspects or queue) and not state.gave_up:
            suspect = source is suspects
            if not flight.takes(suspect=suspect):
                break
            batch = suspects.popleft() if suspect else size.take(queue)
            flight.submit(batch, suspect=suspect)
            attempts.update(batch)
        to_rerun: list[Batch] = []
        for batch, outcomes, loss, code in flight.collect():
            if loss is None:
                commit(outcomes)
            elif loss is BatchLoss.STOPPED:
                to_rerun.append(batch)
            elif loss is BatchLoss.LATE and len(batch) == 1:
                commit([_timed_out_outcome(*batch, seconds=limit.of(batch))])
            else:
                deaths.update(batch if loss is BatchLoss.DIED else ())
                if deaths[batch[0]] >= MAX_ATTEMPTS:
                    commit([_crashed_outcome(*batch, code=code)])
                else:
                    suspects.extend((trial,) for trial in batch)
        queue.extendleft(reversed(to_rerun))


def _timed_out_outcome(trial: Trial, *, seconds: float) -> Outcome:
    return Outcome(
        trial=trial,
        status=TrialStatus.FAILED,
        error=f"timed out after {seconds:g} s",
        seconds=seconds,
    )


def _crashed_outcome(trial: Trial, *, code: int | None) -> Outcome:
    return Outcome(
        trial=trial,
        status=TrialStatus.CRASHED,
        error=f"its worker process died in each of {MAX_ATTEMPTS} attempts{how_it_died(code)}",
    )


@contextmanager
def opened_engine(name: str, *, jobs: int | None, scheduler: str | None) -> Iterator[Engine]:
    """Opens an engine; ends its processes or connections on exit.

    Args:
        name: An `EngineName`.
        jobs: Worker processes on this machine; one per available core if None.
        scheduler: Address of a dask scheduler, or the JSON file that it writes.

    Yields:
        The engine.

    Raises:
        SettingsError: If the settings do not fit together.
        MissingExtraError: If dask is not installed.
        ClusterError: If no scheduler answers, or its workers cannot run trials.
    """
    if name == EngineName.LOCAL:
        if scheduler is not None:
            raise SettingsError("`scheduler` is for the engine dask: give it as `engine` too")
        yield LocalEngine(jobs or loky.cpu_count())
        return
    if scheduler is None:
        raise SettingsError("the engine dask needs the address of its scheduler: give `scheduler`")
    if jobs is not None:
        raise SettingsError("`jobs` are of this machine: with the engine dask the scheduler says")
    try:
        from dpaudit.game.cluster import cluster_engine
    except ModuleNotFoundError:
        raise MissingExtraError("the engine dask", "distributed", "cluster") from None
    with cluster_engine(scheduler) as engine:
        yield engine
