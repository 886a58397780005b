"""The local engine: the worker processes of this machine, which run errands too."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import TypeVar

from dpaudit.errors import InterruptedRunError
from dpaudit.game import worker
from dpaudit.game.flight import Batch, BatchLoss, Landing, TimeLimit
from dpaudit.game.pool import TICK_SECONDS, PoolWorker, current_pool, kill_workers
from dpaudit.game.store import RunFolder
from dpaudit.game.trial import Payload
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
    """Batches handed to workers: each runs one and has the next one at hand."""

    def __init__(self, payload_file: PayloadFile, *, workers: int, limit: TimeLimit) -> None:
        self._payload_file = payload_file
        self._workers = workers
        self._limit = limit
        self._batches: dict[PoolWorker, deque[Batch]] = {}
        self._alone = False

    def __len__(self) -> int:
        """How many batches there are."""
        return sum(map(len, self._batches.values()))

    def takes(self, *, suspect: bool) -> bool:
        """Whether to hand over another batch now: all workers stay busy, but a suspect is alone."""
        if suspect or self._alone:
            return not len(self)
        return len(self) < 2 * self._workers

    def submit(self, batch: Batch, *, suspect: bool = False) -> None:
        """Hands a batch to the worker that has the least to do."""
        self._alone = suspect
        process = current_pool().least_busy(self._workers)
        process.ask(worker.work, self._payload_file, batch)
        self._batches.setdefault(process, deque()).append(batch)

    def collect(self) -> list[Landing]:
        """Waits until a batch ends, or is over its time."""
        while True:
            landed = [one for process in list(self._batches) for one in self._landed(process)]
            if landed:
                return landed
            wait([process.connection for process in self._batches], TICK_SECONDS)

    def _landed(self, process: PoolWorker) -> list[Landing]:
        """How the first batch of a worker ended, and the others if they are lost with it."""
        batches = self._batches[process]
        report = process.poll(self._limit.of(batches[0]))
        if report is None:
            return []
        batch = batches.popleft()
        if report.loss is not None:
            current_pool().end(process)
            del self._batches[process]
            stopped = [Landing(one, loss=BatchLoss.STOPPED) for one in batches]
            return [Landing(batch, loss=report.loss), *stopped]
        if not batches:
            del self._batches[process]
        if isinstance(report.answer, Exception):
            raise report.answer
        return [Landing(batch, tuple(report.answer))]


def _written(payload: object, folder: Path, *, log: Path) -> AbstractContextManager[PayloadFile]:
    """The file of a `Payload`, or of the function of an errand, while workers use it."""
    blob = worker.packed(payload)
    return worker.written(blob, folder, log=log, search_path=worker.search_path())


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
            process = current_pool().least_busy(jobs)
            process.ask(worker.call, operator.call, file)
            report = process.report(seconds)
        if isinstance(report.answer, Exception):
            raise report.answer
    except KeyboardInterrupt:
        kill_workers()
        raise InterruptedRunError(f"interrupted: what finished is kept in {folder.path}") from None
    except BaseException:
        kill_workers()  # else the program would wait for the errand
        raise
    if report.loss is not None:
        kill_workers()
    found: T | None = report.answer
    return found
