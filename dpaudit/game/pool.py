"""The pool of worker processes; a Ctrl-C at any time leaves it intact or stopped.

When it ends, so do all processes that its workers started.
"""

from __future__ import annotations

import atexit
import os
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from multiprocessing import Pipe, resource_tracker
from types import FrameType
from typing import Any

from loky import get_reusable_executor
from loky.backend import resource_tracker as loky_resource_tracker
from loky.backend.context import LokyContext

from dpaudit.game import watcher, worker

IDLE_SECONDS = 60
"""Idle workers stop after this time."""
TICK_SECONDS = 0.5
"""Interval at which the coordinator looks for batches over their time."""
START_SECONDS = 600.0
"""How long workers may take to begin a batch, whatever the limit of a trial."""
_CONTEXT = LokyContext()
"""Named, because joblib replaces it with its own copy of loky when scikit-learn is imported."""
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
        """Stops the workers at once, with all processes that they have started."""
        try:
            if self.executor is not None:
                self.executor.shutdown(wait=True, kill_workers=True)
        finally:
            self._family.end()
            self._marks.close()
            self._writer.close()


def started_pool(workers: int) -> Pool:
    """The pool in use, or a new one, with that many workers."""
    global _pool
    with interrupts_held(), system_errors():
        if _pool is None or _pool.owner != os.getpid():
            _pool = Pool()
        _pool.resize(workers)
        return _pool


@contextmanager
def system_errors() -> Iterator[None]:
    """Raises the system's error where loky's cleanup hides it."""
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
    """Stops every worker at the end, however it is reached, with a generator's threads and forks.

    If nested, only the outermost does so, and consecutive runs share their workers.
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
    """Stops every worker at once, with all processes that it has started.

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


END_SECONDS = 8.0
"""Time for the watcher to kill remaining processes; it gives up earlier itself."""


class Family:
    """The workers of one pool and their descendants: none outlives the pool or its coordinator.

    On Linux a small process of its own, in its own session, watches the coordinator and finds the
    descendants by a variable of their environment. Elsewhere workers watch the coordinator
    themselves, and only their process groups are ended with them.

    Attributes:
        environment: What every worker's environment must hold.
    """

    def __init__(self) -> None:
        """Starts the watcher.

        Raises:
            OSError: If the system refuses.
        """
        # A name of its own, not a value: audits inside a worker leave it there.
        self._marker = f"DPAUDIT_POOL_{secrets.token_hex(8).upper()}"
        self._coordinator = os.getpid()
        self._groups: set[int] = set()
        self.environment = {self._marker: "1"}
        self._watcher = self._watched() if sys.platform == "linux" else None

    def note(self, worker: int) -> None:
        """Takes in the process id of a worker that leads a process group."""
        self._groups.add(worker)

    def end(self) -> None:
        """Kills whatever is left of the family; nothing happens in a fork of the coordinator."""
        if os.getpid() != self._coordinator:
            return
        if self._watcher is None:
            for group in self._groups:
                with suppress(OSError):
                    os.killpg(group, signal.SIGKILL)
            return
        assert self._watcher.stdin is not None
        self._watcher.stdin.close()
        try:
            done = self._watcher.wait(END_SECONDS) == 0
        except subprocess.TimeoutExpired:
            self._watcher.kill()
            self._watcher.wait()
            done = False
        if not done:  # foreign code has stopped or killed it
            watcher.end_all(self._marker, set(), spare=os.getpid())

    def _watched(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", watcher.__file__, self._marker, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
