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


class Flight:
    """Batches handed to an executor and not collected yet."""

    def __init__(self, payload_file: worker.PayloadFile, *, workers: int) -> None:
        self.payload_file = payload_file
        self.batches: dict[Future[list[Outcome]], Batch] = {}
        self.ended: SimpleQueue[Future[list[Outcome]]] = SimpleQueue()
        with interrupts_held():
            self.executor: Any = get_reusable_executor(
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


def kill_workers() -> None:
    """Stops every worker at once, whatever it is doing."""
    with interrupts_held():
        get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)
