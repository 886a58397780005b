"""The interface of engine and coordinator: batches of trials, their time limits and their ends.

A batch has the trials whose models a worker trains together, or trials of a fast generator that it
runs in turn. An engine hands batches to workers, each with a time limit, and reports how they end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from pathlib import Path
from time import monotonic
from typing import NamedTuple, Protocol

from dpaudit.errors import DpauditError
from dpaudit.game.trial import Outcome, Payload, Role, Trial, TrialStatus
from dpaudit.model.encoding import width
from dpaudit.plugins.foreign import refusing
from dpaudit.plugins.protocols import World, trains_many

MEMORY = 256 * 2**20
"""Memory limit for the synthetic records of one batch, in bytes."""

Batch = tuple[Trial, ...]
"""Trials that one worker runs, and whose features it computes, together."""


def make_batches(
    trials: Sequence[Trial], payload: Payload, generator: object, *, workers: int
) -> list[Batch]:
    """Groups trials into batches of nearly equal size, so that all workers have the same load.

    Args:
        trials: The trials, in the order to run them; a batch keeps that order.
        payload: The input of the workers.
        generator: The generator; without a `BatchGenerator` each batch has one trial.
        workers: Number of worker processes.

    Returns:
        The batches; the models of a batch have one shape and one number of requested rows. Each
        batch has one trial if trainings are timed or the generator fails to group models.
    """
    groups: dict[Hashable, list[Trial]] = {}
    try:
        with refusing("it cannot say what it trains together"):
            if payload.is_timed or not trains_many(generator):
                return [(trial,) for trial in trials]
            most = min(int(generator.models_at_once), affordable(payload))
            for trial in trials:
                key = generator.batch_key(payload.job(trial))
                group = (payload.game.rows_requested(trial.world), key)
                groups.setdefault(group, []).append(trial)
    except DpauditError:  # the generator's error, which its trials will show
        return [(trial,) for trial in trials]
    # As few rounds as possible, in which all workers get equal shares.
    rounds = -(-len(trials) // (workers * max(1, most)))
    size = -(-len(trials) // (workers * rounds))
    return [batch for group in groups.values() for batch in _shares(group, size)]


def affordable(payload: Payload) -> int:
    """The number of models whose synthetic records fit into `MEMORY`, encoded and as values.

    At least 1.
    """
    view = payload.game.view
    rows = max(payload.game.rows_requested(world) for world in World)
    numbers = rows * (width(view.schema) + len(view.schema.columns))
    return max(1, MEMORY // (8 * numbers))


def _shares(trials: Sequence[Trial], size: int) -> list[Batch]:
    """Splits trials into parts of at most this size, as equal as possible."""
    parts = -(-len(trials) // size)
    bounds = [len(trials) * part // parts for part in range(parts + 1)]
    return [tuple(trials[start:stop]) for start, stop in pairwise(bounds)]


BATCH_SECONDS = 0.5
"""Aimed duration of a batch of trials that run in turn, and so the work lost with a killed worker.

Shorter than any limit that a user may set for a trial.
"""


@dataclass
class BatchSize:
    """How many trials of a fast generator make a batch, from how long earlier batches took.

    One trial at first; a batch has at most twice as many as one that has ended. So a generator with
    trials of `BATCH_SECONDS` or more, or one that ends its worker, runs one trial at a time.

    Attributes:
        workers: Number of workers, which share the last trials.
        most: The largest batch; 1 if trials must not run in turn.
        size: The size of the next batch.
    """

    workers: int
    most: int
    size: int = 1

    def take(self, queue: deque[Batch]) -> Batch:
        """Removes the first batch of a queue, joined with the next ones up to the size."""
        size = min(self.size, -(-sum(map(len, queue)) // self.workers))
        batch = queue.popleft()
        while queue and len(batch) + len(queue[0]) <= size:
            batch += queue.popleft()
        return batch

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """Records the duration of a batch."""
        seconds = sum(outcome.seconds for outcome in outcomes) / len(outcomes)
        size = min(2 * len(outcomes), self.most, int(BATCH_SECONDS / max(seconds, 1e-9)))
        self.size = max(1, size)


FLOOR_SECONDS = 3600.0
"""The smallest limit derived from other trials."""
FACTOR = 20
"""A derived limit is this many times the slowest batch so far."""
FIRST_SECONDS = 86_400.0
"""The limit of a batch while none has finished."""


@dataclass
class TimeLimit:
    """The wall time that a batch may take.

    Attributes:
        per_trial: Seconds for each trial of a batch; if None, the limit is derived: `FACTOR` times
            the slowest batch so far, at least `FLOOR_SECONDS`, and `FIRST_SECONDS` until a batch
            has finished.
        slowest: Seconds of the slowest batch so far in which a trial finished.
        first: Trainings that a new worker may run in addition, before its first batch.
        in_turn: Whether a batch has the limit of one trial, so that no trial over it hides among
            faster ones; the trials of a late batch run again one by one.
    """

    per_trial: float | None = None
    slowest: float = 0.0
    first: int = 0
    in_turn: bool = False

    def of(self, batch: Batch) -> float:
        """The limit of one batch, in seconds."""
        if self.per_trial is not None:
            return self.per_trial * ((1 if self.in_turn else len(batch)) + self.first)
        return max(FLOOR_SECONDS, FACTOR * self.slowest) if self.slowest else FIRST_SECONDS

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """Records the duration of a batch."""
        if any(outcome.status is TrialStatus.FINISHED for outcome in outcomes):
            self.slowest = max(self.slowest, sum(outcome.seconds for outcome in outcomes))


class Stopwatch:
    """Counts the running time of batches, but not time during which this process was suspended.

    A coordinator that was suspended (Ctrl-Z, a laptop that slept) must not find its trials late.
    """

    def __init__(self, *, longest_step: float, now: Callable[[], float] = monotonic) -> None:
        """Starts the clock.

        Args:
            longest_step: Most seconds counted between two calls of `advance`.
            now: The clock, in seconds.
        """
        self.seconds: dict[int, float] = {}
        self.idle = 0.0
        self._longest_step = longest_step
        self._now = now
        self._last = now()

    def begin(self, ticket: int) -> None:
        """Starts counting for a ticket."""
        self.seconds[ticket] = 0.0
        self.idle = 0.0

    def end(self, ticket: int) -> None:
        """Stops counting for a ticket."""
        self.seconds.pop(ticket, None)
        self.idle = 0.0

    def advance(self) -> None:
        """Adds the time since the last call to all running tickets; to `idle` if none runs."""
        now = self._now()
        step, self._last = min(now - self._last, self._longest_step), now
        for ticket in self.seconds:
            self.seconds[ticket] += step
        self.idle = 0.0 if self.seconds else self.idle + step


class BatchLoss(Enum):
    """Why a batch ended without outcomes."""

    DIED = "its worker died, perhaps through it"
    LATE = "it was over its time"
    STOPPED = "its worker was stopped for a reason that lies elsewhere"


class Landing(NamedTuple):
    """How a batch ended.

    Attributes:
        batch: The batch.
        outcomes: Outcomes of its trials, in the order of the batch; empty if it was lost.
        loss: Why it was lost; None if it was not.
        code: Exit code of its worker if that died, as in `dpaudit.game.pool.Report`.
    """

    batch: Batch
    outcomes: tuple[Outcome, ...] = ()
    loss: BatchLoss | None = None
    code: int | None = None


class Flight(Protocol):
    """Batches handed to workers that have not ended yet."""

    def __len__(self) -> int:
        """The number of batches."""
        ...

    def takes(self, *, suspect: bool) -> bool:
        """Whether to hand over another batch now.

        Args:
            suspect: Whether the batch was lost with its worker before. Its next worker must then
                run nothing else, so that a second death is the batch's fault.
        """
        ...

    def submit(self, batch: Batch, *, suspect: bool) -> None:
        """Hands over a batch; `suspect` as for `takes`."""
        ...

    def collect(self) -> list[Landing]:
        """Waits until batches end; returns an empty list while none can run.

        Raises:
            DpauditError: If an attack or the engine's workers raise it.
        """
        ...


class Engine(Protocol):
    """Workers that run trials: processes of this machine, or of a cluster."""

    @property
    def workers(self) -> int:
        """The number of workers."""
        ...

    def flight(
        self, payload: Payload, *, folder: Path, log: Path, limit: TimeLimit
    ) -> AbstractContextManager[Flight]:
        """Opens a flight.

        Args:
            payload: The input of the workers.
            folder: The run folder.
            log: The file in it that takes what generators print.
            limit: Time limit of a batch; it learns from the batches of the flight.

        Raises:
            InputError: If the workers cannot run these trials.
            RegistryError: If an attack cannot be pickled for workers.
        """
        ...

    def renewed(self, trials: int) -> Engine:
        """The engine with new processes, free of traces of earlier trials, for this many trials."""
        ...

    def stop(self) -> None:
        """Ends all work of the workers at once."""
        ...


class TrialProgress(NamedTuple):
    """Progress of the trials of one role.

    Attributes:
        role: What the trials are run for.
        done: Trials with an outcome, including those of an earlier run of the same audit.
        total: Planned trials; a sequential audit may need fewer.
        failed: Trials with an outcome that failed.
    """

    role: Role
    done: int
    total: int
    failed: int


OnProgress = Callable[[TrialProgress], None]
"""Called for every trial after its batch is stored, and once before the first."""


def ignore_progress(progress: TrialProgress) -> None:
    """Does nothing with progress: the default callback."""


OnWarning = Callable[[str], None]
"""Called with a warning before the trials of an audit, if there is one."""


def ignore_warning(text: str) -> None:
    """Does nothing with a warning, which the result repeats: the default callback."""
