"""The local engine: the pool of worker processes of this machine, which runs errands too."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from dpaudit.errors import InterruptedRunError
from dpaudit.game import worker
from dpaudit.game.flight import SLACK, Batch, BatchLoss, Landing, Stopwatch, TimeLimit
from dpaudit.game.pool import (
    START_SECONDS,
    TICK_SECONDS,
    TICKETS,
    Pool,
    interrupts_held,
    kill_workers,
    started_pool,
    system_errors,
)
from dpaudit.game.store import RunFolder
from dpaudit.game.trial import Outcome, Payload
from dpaudit.game.worker import PayloadFile, erase_payloads

T = TypeVar("T")


@dataclass(frozen=True)
class LocalEngine:
    """Worker processes of this machine.

    Attributes:
        workers: How many.
    """

    workers: int

    @contextmanager
    def flight(
        self, payload: Payload, *, folder: Path, log: Path, limit: TimeLimit
    ) -> Iterator[LocalFlight]:
        """As `Engine.flight`."""
        with _written(payload, folder, log=log) as file:
            yield LocalFlight(file, workers=self.workers, limit=limit)

    def renewed(self, trials: int) -> LocalEngine:
        """As `Engine.renewed`: no more processes than trials."""
        kill_workers()
        return LocalEngine(min(self.workers, trials))

    def stop(self) -> None:
        """Stops every worker at once."""
        kill_workers()


class LocalFlight:
    """Batches handed to the pool and not collected yet.

    A worker that dies breaks the pool, and a batch that is over its time has it stopped: then all
    that is in flight ends, and the next batch starts another pool.

    Attributes:
        batches: Which batch each future stands for.
        ended: Those that have ended, with outcomes or not.
    """

    def __init__(
        self, payload_file: PayloadFile, *, workers: int, limit: TimeLimit | None = None
    ) -> None:
        self.payload_file = payload_file
        self.batches: dict[Future[list[Outcome]], Batch] = {}
        self.ended: SimpleQueue[Future[list[Outcome]]] = SimpleQueue()
        self._workers = workers
        self._alone = False
        self._landed: list[Landing] = []
        self._limit = limit or TimeLimit()
        self._tickets: dict[Future[list[Outcome]], int] = {}
        self._stopwatch = Stopwatch(longest_step=2 * TICK_SECONDS)
        self._pool: Pool | None = None

    def __len__(self) -> int:
        """How many batches there are."""
        return len(self.batches) + len(self._landed)

    def takes(self, *, suspect: bool) -> bool:
        """Whether to hand over another batch now: all workers stay busy, but a suspect is alone."""
        if suspect or self._alone:
            return not len(self)
        return len(self.batches) < 2 * self._workers

    def submit(self, batch: Batch, *, suspect: bool = False) -> None:
        """Hands a batch to the next free worker."""
        self._alone = suspect
        try:
            self._hand_over(batch)
        except BrokenProcessPool:
            self._landed += self._given_up(frozenset())
            self._hand_over(batch)

    def _hand_over(self, batch: Batch) -> None:
        if self._pool is None:
            self._pool = started_pool(self._workers)
        ticket = next(TICKETS)
        with interrupts_held(), system_errors():
            future = self._pool.executor.submit(worker.work, self.payload_file, batch, ticket)
            self.batches[future] = batch
            self._tickets[future] = ticket
            future.add_done_callback(self.ended.put)

    def collect(self) -> list[Landing]:
        """Waits until a batch ends, or all do with the pool."""
        if self._landed:
            landed, self._landed = self._landed, []
            return landed
        while True:
            late = self._late()
            if late is not None:
                return self._given_up(late)
            try:
                # Not concurrent.futures.wait: a Ctrl-C inside it can leave futures locked for ever.
                future = self.ended.get(timeout=TICK_SECONDS)
                outcomes = future.result()
            except Empty:
                continue
            except BrokenProcessPool:
                return self._given_up(frozenset())
            self._stopwatch.end(self._tickets.pop(future))
            return [Landing(self.batches.pop(future), tuple(outcomes))]

    def _given_up(self, late: frozenset[Batch]) -> list[Landing]:
        """Stops the pool and waits until every batch has ended: some may have finished.

        Args:
            late: Batches that are over their time; that the pool is stopped is no other's fault.
        """
        kill_workers()
        landed = []
        for future, batch in self.batches.items():
            if future.exception() is None:
                landed.append(Landing(batch, tuple(future.result())))
            elif late:
                landed.append(
                    Landing(batch, loss=BatchLoss.LATE if batch in late else BatchLoss.STOPPED)
                )
            else:
                landed.append(Landing(batch, loss=BatchLoss.DIED))
        self.batches.clear()
        self._tickets.clear()
        self.ended = SimpleQueue()
        self._stopwatch = Stopwatch(longest_step=2 * TICK_SECONDS)
        self._pool = None
        return landed

    def _late(self) -> frozenset[Batch] | None:
        """Batches over their time; empty if no worker begins a batch; None if all is well."""
        mine = {
            self._tickets[future]: batch
            for future, batch in self.batches.items()
            if not future.done()
        }
        for ticket in self._pool.begun() if self._pool else ():
            if ticket in mine:  # else of a flight that was given up
                self._stopwatch.begin(ticket)
        self._stopwatch.advance()
        spent = {
            mine[ticket]: seconds / self._limit.of(mine[ticket])
            for ticket, seconds in self._stopwatch.seconds.items()
            if ticket in mine
        }
        if any(share >= SLACK for share in spent.values()):
            return frozenset(batch for batch, share in spent.items() if share >= 1)
        return frozenset() if mine and self._stopwatch.idle > START_SECONDS else None


@contextmanager
def _written(payload: object, folder: Path, *, log: Path) -> Iterator[PayloadFile]:
    """The file of a `Payload`, or of the function of an errand, while the pool's workers use it."""
    with warnings.catch_warnings():
        # Idle workers stop: as an error, this warning would break the pool.
        warnings.filterwarnings("ignore", message="A worker (stopped|was restarted) while")
        path = worker.search_path()
        with worker.written(worker.packed(payload), folder, log=log, search_path=path) as file:
            yield file


def run_errand(
    errand: Callable[[], T], folder: RunFolder, *, jobs: int, seconds: float
) -> T | None:
    """Calls a function in a worker, so a generator can neither end nor block the program.

    Args:
        errand: The function; it is pickled with everything it holds, and so is its result.
        folder: The run folder, whose log takes what generators print.
        jobs: Worker processes of the pool; one of them runs it.
        seconds: Wall time after which it is stopped.

    Returns:
        What the function returns; None if its worker died or it was stopped.

    Raises:
        RegistryError: If it cannot be pickled for workers.
        InterruptedRunError: On Ctrl-C.
    """
    erase_payloads(folder.path)
    try:
        with _written(errand, folder.path, log=folder.log) as file:
            found: T = _awaited(file, jobs=jobs, seconds=seconds)
            return found
    except BrokenProcessPool:
        kill_workers()
        return None
    except KeyboardInterrupt:
        kill_workers()
        raise InterruptedRunError(f"interrupted: what finished is kept in {folder.path}") from None
    except BaseException:
        kill_workers()  # else the program would wait for the errand
        raise


def _awaited(file: PayloadFile, *, jobs: int, seconds: float) -> Any:
    """What the errand returns.

    Raises:
        BrokenProcessPool: If its worker died, or it is over its time.
    """
    ended: SimpleQueue[Future[Any]] = SimpleQueue()
    executor, ticket = started_pool(jobs).executor, next(TICKETS)
    with interrupts_held():
        executor.submit(worker.call, operator.call, file, ticket).add_done_callback(ended.put)
    watch = Stopwatch(longest_step=2 * TICK_SECONDS)
    watch.begin(ticket)
    while watch.seconds[ticket] < seconds:
        try:
            # Not `Future.result` at once: a Ctrl-C inside it can leave futures locked for ever.
            return ended.get(timeout=TICK_SECONDS).result()
        except Empty:
            watch.advance()
    raise BrokenProcessPool("the errand is over its time")
