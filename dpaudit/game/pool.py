"""The pool of worker processes, which a Ctrl-C at any time leaves whole or stopped."""

from __future__ import annotations

import atexit
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import count
from multiprocessing import Pipe, resource_tracker
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any

from loky import get_reusable_executor
from loky.backend import resource_tracker as loky_resource_tracker
from loky.backend.context import LokyContext

from dpaudit.game import worker
from dpaudit.game.batches import Batch
from dpaudit.game.family import Family
from dpaudit.game.limits import SLACK, Stopwatch, TimeLimit
from dpaudit.game.trial import Outcome

IDLE_SECONDS = 60
"""Idle workers stop after this time."""
TICK_SECONDS = 0.5
"""How often the coordinator looks for batches that are over their time."""
START_SECONDS = 600.0
"""How long workers may take to begin a batch, whatever the limit of a trial."""
_CONTEXT = LokyContext()
"""Named, as joblib puts its own copy of loky in its place when scikit-learn is imported."""
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that ask for a stop."""


class Pool:
    """Worker processes, what they start, and what they report.

    Attributes:
        owner: The process that started it.
        executor: Hands batches to the workers.
    """

    def __init__(self) -> None:
        """Prepares it; workers start with the first batch.

        Raises:
            OSError: If the system refuses.
        """
        self.owner = os.getpid()
        self._marks, self._writer = Pipe(duplex=False)
        self._family = Family()
        self.executor: Any = None

    def resize(self, workers: int) -> None:
        """Sets the number of workers."""
        self.executor = get_reusable_executor(
            max_workers=workers,
            context=_CONTEXT,
            timeout=IDLE_SECONDS,
            initializer=worker.start,
            initargs=(self.owner, self._writer),
            env=worker.ENVIRONMENT | self._family.environment,
            kill_workers=True,
        )

    def begun(self) -> Iterator[int]:
        """Tickets of the batches that workers have begun since the last call."""
        while self._marks.poll():
            pid, ticket = worker.MARK.unpack(self._marks.recv_bytes())
            self._family.note(pid)
            yield ticket

    def end(self) -> None:
        """Stops the workers at once, whatever they are doing, and all that they have started."""
        try:
            if self.executor is not None:
                self.executor.shutdown(wait=True, kill_workers=True)
        finally:
            self._family.end()
            self._marks.close()
            self._writer.close()


class Flight:
    """Batches handed to a pool and not collected yet.

    Attributes:
        batches: Which batch each future stands for.
        late: Those that were over their time when the flight was given up.
    """

    def __init__(
        self, payload_file: worker.PayloadFile, *, workers: int, limit: TimeLimit | None = None
    ) -> None:
        self.payload_file = payload_file
        self.batches: dict[Future[list[Outcome]], Batch] = {}
        self.late: frozenset[Batch] = frozenset()
        self.ended: SimpleQueue[Future[list[Outcome]]] = SimpleQueue()
        self._limit = limit or TimeLimit()
        self._tickets: dict[Future[list[Outcome]], int] = {}
        self._stopwatch = Stopwatch(longest_step=2 * TICK_SECONDS)
        self.pool = started_pool(workers)

    def submit(self, batch: Batch) -> None:
        """Hands a batch to the next free worker."""
        ticket = next(TICKETS)
        with interrupts_held(), _system_errors():
            future = self.pool.executor.submit(worker.work, self.payload_file, batch, ticket)
            self.batches[future] = batch
            self._tickets[future] = ticket
            future.add_done_callback(self.ended.put)

    def collect(self) -> list[Outcome]:
        """Waits for the next batch's outcomes.

        Raises:
            BrokenProcessPool: If a worker died, or a batch is over its time.
        """
        while True:
            self._check_time()
            try:
                # Not concurrent.futures.wait: a Ctrl-C inside it can leave futures locked for ever.
                future = self.ended.get(timeout=TICK_SECONDS)
            except Empty:
                continue
            outcomes = future.result()
            del self.batches[future]
            self._stopwatch.end(self._tickets[future])
            return outcomes

    def salvage(self) -> Iterator[list[Outcome]]:
        """What finished before the pool broke; waits until every future has ended."""
        for future in list(self.batches):
            if future.exception() is None:
                del self.batches[future]
                yield future.result()

    def lost(self) -> list[Batch]:
        """Batches that were lost with the pool, in the order they were submitted."""
        return list(self.batches.values())

    def _check_time(self) -> None:
        mine = {
            self._tickets[future]: batch
            for future, batch in self.batches.items()
            if future in self._tickets and not future.done()
        }
        for ticket in self.pool.begun():
            if ticket in mine:  # else of a flight that was given up
                self._stopwatch.begin(ticket)
        self._stopwatch.advance()
        spent = {
            mine[ticket]: seconds / self._limit.of(mine[ticket])
            for ticket, seconds in self._stopwatch.seconds.items()
            if ticket in mine
        }
        if any(share >= SLACK for share in spent.values()):
            self.late = frozenset(batch for batch, share in spent.items() if share >= 1)
            raise BrokenProcessPool("a batch is over its time")
        if mine and self._stopwatch.idle > START_SECONDS:
            raise BrokenProcessPool("no worker takes a batch")


def started_pool(workers: int) -> Pool:
    """The pool in use, or a new one, with that many workers."""
    global _pool
    with interrupts_held(), _system_errors():
        if _pool is None or _pool.owner != os.getpid():
            _pool = Pool()
        _pool.resize(workers)
        return _pool


@contextmanager
def _system_errors() -> Iterator[None]:
    """Raises what the system refused where loky's own cleaning up hides it."""
    try:
        yield
    except UnboundLocalError as error:
        if isinstance(error.__context__, OSError):
            raise error.__context__ from None
        raise


@contextmanager
def interrupts_held() -> Iterator[list[int]]:
    """Holds back requests to stop: a pool that is half started or half stopped cannot be killed.

    Workers and threads of the pool that start in here start with those signals blocked that reach
    the whole process group: they would stop a worker in the middle of its imports.

    Yields:
        The signals held; the first is raised at the end.
    """
    held: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield held  # signals are handled in the main thread alone
        return
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        for tracker in (resource_tracker, loky_resource_tracker):
            tracker.ensure_running()  # starting one unblocks Ctrl-C; it ignores all but SIGHUP
    except BaseException:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        raise

    def hold(number: int, frame: FrameType | None) -> None:
        del frame
        held.append(number)

    handlers = {number: signal.getsignal(number) for number in _STOPS}
    ours = [number for number, handler in handlers.items() if callable(handler)]
    for number in ours:
        signal.signal(number, hold)
    signal.pthread_sigmask(signal.SIG_BLOCK, worker.OF_THE_GROUP)
    try:
        yield held
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for number in ours:
            signal.signal(number, handlers[number])
        if held:
            signal.raise_signal(held[0])


@contextmanager
def workers_ended() -> Iterator[None]:
    """Stops every worker at the end, however that is reached: a generator's threads and forks too.

    Of several in each other the outermost does, so that runs in a row share their workers.
    """
    global _users
    _users += 1
    try:
        yield
    finally:
        _users -= 1
        if not _users:
            kill_workers()


_users = 0
"""Runs under way that share the pool."""


def kill_workers() -> None:
    """Stops every worker at once, whatever it is doing, with all that it has started.

    Nothing happens if there is none, nor in a fork of the process that started them.
    """
    global _pool
    if _pool is None or _pool.owner != os.getpid():
        return
    with interrupts_held():
        pool, _pool = _pool, None
        pool.end()


_pool: Pool | None = None
"""The pool in use; the next flight makes another once it was stopped."""

TICKETS = count()
"""Every batch or errand that is handed to a worker has its own."""

atexit.register(kill_workers)
