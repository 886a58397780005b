"""The pool of worker processes, which a Ctrl-C at any time leaves whole or stopped."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from multiprocessing import resource_tracker
from queue import SimpleQueue
from types import FrameType
from typing import Any

from loky import get_reusable_executor
from loky.backend import resource_tracker as loky_resource_tracker

from dpaudit.game import worker
from dpaudit.game.batches import Batch
from dpaudit.game.trial import Outcome, Trial

IDLE_SECONDS = 60
"""Idle workers stop after this time."""
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that ask for a stop."""


class Flight:
    """Batches handed to an executor and not collected yet."""

    def __init__(self, payload_file: worker.PayloadFile, *, workers: int) -> None:
        self.payload_file = payload_file
        self.batches: dict[Future[list[Outcome]], Batch] = {}
        self.ended: SimpleQueue[Future[list[Outcome]]] = SimpleQueue()
        global _executor
        with interrupts_held():
            self.executor = _executor = get_reusable_executor(
                max_workers=workers,
                timeout=IDLE_SECONDS,
                initializer=worker.start,
                initargs=(os.getpid(),),
                env=worker.ENVIRONMENT,
                kill_workers=True,
            )

    def submit(self, batch: Batch) -> None:
        """Hands a batch to the next free worker."""
        with interrupts_held():
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
    """Stops every worker at once, whatever it is doing; nothing happens if there is none."""
    global _executor
    with interrupts_held():
        executor, _executor = _executor, None
        if executor is not None:
            executor.shutdown(wait=True, kill_workers=True)


_executor: Any = None
"""The pool that was used last; loky makes another once it has broken or was stopped."""
