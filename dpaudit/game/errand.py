"""A function called once in a worker process, for runs of a generator that are not trials."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from dpaudit.errors import InterruptedRunError
from dpaudit.game import worker
from dpaudit.game.flight import Stopwatch
from dpaudit.game.payload import PayloadFile, erase_payloads, payload_file
from dpaudit.game.pool import TICK_SECONDS, TICKETS, interrupts_held, kill_workers, started_pool
from dpaudit.game.store import RunFolder

T = TypeVar("T")


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
        with warnings.catch_warnings():
            # Idle workers stop: as an error, this warning would break the pool.
            warnings.filterwarnings("ignore", message="A worker (stopped|was restarted) while")
            with payload_file(errand, folder.path, log=folder.log) as file:
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
        executor.submit(worker.run_errand, file, ticket).add_done_callback(ended.put)
    watch = Stopwatch(longest_step=2 * TICK_SECONDS)
    watch.begin(ticket)
    while watch.seconds[ticket] < seconds:
        try:
            # Not `Future.result` at once: a Ctrl-C inside it can leave futures locked for ever.
            return ended.get(timeout=TICK_SECONDS).result()
        except Empty:
            watch.advance()
    raise BrokenProcessPool("the errand is over its time")
