"""The local engine: worker processes of this machine, which also run errands."""

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
from dpaudit.game.pool import TICK_SECONDS, PoolWorker, Report, current_pool, kill_workers
from dpaudit.game.store import RunFolder
from dpaudit.game.trial import Payload
from dpaudit.game.worker import PayloadFile, erase_payloads

T = TypeVar("T")


@dataclass(frozen=True)
class LocalEngine:
    """Worker processes of this machine.

    Attributes:
        workers: Number of processes.
    """

    workers: int

    @contextmanager
    def flight(
        self, payload: Payload, *, folder: Path, log: Path, limit: TimeLimit
    ) -> Iterator[LocalFlight]:
        """As `Engine.flight`."""
        with _write_payload(payload, folder, log=log) as file:
            yield LocalFlight(file, workers=self.workers, limit=limit)

    def renewed(self, trials: int) -> LocalEngine:
        """As `Engine.renewed`, with no more processes than trials."""
        kill_workers()
        return LocalEngine(min(self.workers, trials))

    def stop(self) -> None:
        """Stops every worker at once."""
        kill_workers()


class LocalFlight:
    """Batches handed to workers: each worker runs one and has the next one waiting."""

    def __init__(self, payload_file: PayloadFile, *, workers: int, limit: TimeLimit) -> None:
        self._payload_file = payload_file
        self._workers = workers
        self._limit = limit
        self._batches: dict[PoolWorker, deque[Batch]] = {}
        self._has_suspect = False

    def __len__(self) -> int:
        """The number of batches in flight."""
        return sum(map(len, self._batches.values()))

    def takes(self, *, suspect: bool) -> bool:
        """Whether to hand over another batch: two per worker, but a suspect runs alone."""
        if suspect or self._has_suspect:
            return not len(self)
        return len(self) < 2 * self._workers

    def submit(self, batch: Batch, *, suspect: bool = False) -> None:
        """Hands a batch to the worker with the fewest batches."""
        self._has_suspect = suspect
        process = current_pool().least_busy(self._workers)
        process.ask(worker.work, self._payload_file, batch)
        self._batches.setdefault(process, deque()).append(batch)

    def collect(self) -> list[Landing]:
        """Waits until a batch ends or exceeds its time limit."""
        while True:
            landed = [
                landing
                for process in list(self._batches)
                for landing in self._ended_batches(process)
            ]
            if landed:
                return landed
            wait([process.connection for process in self._batches], TICK_SECONDS)

    def _ended_batches(self, process: PoolWorker) -> list[Landing]:
        """How the first batch of a worker ended, with the others if they are lost with it."""
        batches = self._batches[process]
        report = process.poll(self._limit.of(batches[0]))
        if report is None:
            return []
        batch = batches.popleft()
        if report.loss is not None:
            current_pool().end(process)
            del self._batches[process]
            stopped = [Landing(waiting, loss=BatchLoss.STOPPED) for waiting in batches]
            return [Landing(batch, loss=report.loss, code=report.code), *stopped]
        if not batches:
            del self._batches[process]
        if isinstance(report.answer, Exception):
            raise report.answer
        return [Landing(batch, tuple(report.answer))]


def _write_payload(
    payload: object, folder: Path, *, log: Path
) -> AbstractContextManager[PayloadFile]:
    """The file of a `Payload`, or of an errand's function, which exists while workers use it."""
    blob = worker.pack(payload)
    return worker.write_payload(blob, folder, log=log, search_path=worker.search_path())


def run_errand(
    errand: Callable[[], T], folder: RunFolder, *, jobs: int, seconds: float
) -> T | None:
    """Calls a function in a worker, so a generator can neither end nor block the program.

    Args:
        errand: The function; it is pickled with everything it holds, and so is its result.
        folder: The run folder, whose log takes what generators print.
        jobs: Worker processes of the pool, one of which runs the errand.
        seconds: Wall time after which the errand is stopped.

    Returns:
        The result of the function; None if its worker was stopped, or died twice: once is seldom
        the errand's fault, and a run must not depend on it.

    Raises:
        RegistryError: If the errand cannot be pickled for workers.
        InterruptedRunError: On Ctrl-C.
    """
    erase_payloads(folder.path)
    try:
        with _write_payload(errand, folder.path, log=folder.log) as file:
            report = _call(file, jobs=jobs, seconds=seconds)
            if report.loss is BatchLoss.DIED:
                report = _call(file, jobs=jobs, seconds=seconds)
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
    result: T | None = report.answer
    return result


def _call(errand: PayloadFile, *, jobs: int, seconds: float) -> Report:
    """Calls the function of a file in a worker."""
    process = current_pool().least_busy(jobs)
    process.ask(worker.call, operator.call, errand)
    report = process.report(seconds)
    if report.loss is BatchLoss.DIED:
        current_pool().end(process)
    return report
