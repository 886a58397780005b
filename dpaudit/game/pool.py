"""Worker processes, each with its own pipe; when they end, so do all processes they started.

A worker that dies loses only the call under way; its pipe shows which one that is.
"""

from __future__ import annotations

import atexit
import os
import pickle
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import Pipe
from multiprocessing.connection import wait
from types import FrameType
from typing import Any, Final, NamedTuple

from dpaudit.game import watcher, worker
from dpaudit.game.flight import BatchLoss, Stopwatch

TICK_SECONDS = 0.5
"""Interval at which the coordinator checks for batches over their time limit."""
START_SECONDS = 600.0
"""How long a worker may take to begin a call, whatever the limit of a trial."""
END_SECONDS = 8.0
"""Time for the watcher to kill remaining processes; it gives up earlier itself."""
_START: Final = (
    "import sys; sys.path[:] = sys.argv[2:]; from dpaudit.game.runner import main; "
    "main(int(sys.argv[1]))"
)
"""The program of a worker. It sets the search path first: dpaudit may be imported from it."""
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that ask for a stop."""


class Report(NamedTuple):
    """The result of a call in a worker.

    Attributes:
        answer: What the function returned, or an error of dpaudit that it raised.
        loss: Why there is no answer; None if there is one.
        printed: What was printed meanwhile; only workers of a cluster report it.
        code: Exit code of a worker that died, negative for a signal; None if it is not known.
    """

    answer: Any = None
    loss: BatchLoss | None = None
    printed: bytes = b""
    code: int | None = None


class PoolWorker:
    """A process that runs `runner` and makes calls one after another.

    Attributes:
        waiting: Calls without a report; only the first of them is under way.
        connection: Readable when there may be a report.
        process: The process.
    """

    def __init__(self, family: Family) -> None:
        """Starts the process.

        Raises:
            OSError: If the system refuses.
        """
        self.waiting = 0
        self.connection, theirs = Pipe()
        self._watch = Stopwatch(longest_step=2 * TICK_SECONDS)
        # Blocked here, and in the process until it has finished its imports.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, worker.OF_THE_GROUP)
        try:
            with theirs:
                self.process = subprocess.Popen(
                    [sys.executable, "-c", _START, str(theirs.fileno()), *worker.search_path()],
                    env=os.environ | worker.ENVIRONMENT | family.environment,
                    stdin=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,  # Ctrl-C in a terminal is for the coordinator alone
                )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def ask(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Hands over a call."""
        self.waiting += 1
        with suppress(OSError):  # it has ended: `poll` says so
            self.connection.send((function, arguments))

    def poll(self, seconds: float | None) -> Report | None:
        """Checks on the first call without a report.

        Args:
            seconds: Time limit of the call, from when it begins; None for no limit.

        Returns:
            The report, or None while the call is under way. After a loss, end the process.
        """
        ended = self.process.poll() is not None  # asked first: it may answer and then end
        try:
            while self.connection.poll():
                message = self.connection.recv_bytes()
                if self._watch.seconds:
                    self._watch.end(0)
                    self.waiting -= 1
                    return Report(pickle.loads(message))
                self._watch.begin(0)
        except (EOFError, OSError):
            ended = True
        self._watch.advance()
        if ended:
            with suppress(subprocess.TimeoutExpired):  # its pipe may close before it has ended
                self.process.wait(TICK_SECONDS)
            return Report(loss=BatchLoss.DIED, code=self.process.returncode)
        if self._watch.idle > START_SECONDS:
            return Report(loss=BatchLoss.DIED)
        late = seconds is not None and self._watch.seconds.get(0, 0.0) >= seconds
        return Report(loss=BatchLoss.LATE) if late else None

    def report(self, seconds: float) -> Report:
        """Waits until the call has ended, then reports as `poll` does."""
        while (report := self.poll(seconds)) is None:
            wait([self.connection], TICK_SECONDS)
        return report

    def end(self) -> None:
        """Kills the process and its group; the family ends processes that have left the group."""
        self.process.kill()
        with suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.connection.close()
        self.process.wait()


class Pool:
    """The worker processes of one coordinator.

    Attributes:
        owner: The process that started them.
        processes: The running workers.
    """

    def __init__(self) -> None:
        """Prepares the pool; workers start when they are needed.

        Raises:
            OSError: If the system refuses.
        """
        self.owner = os.getpid()
        self.processes: list[PoolWorker] = []
        self._family = Family()

    def least_busy(self, workers: int) -> PoolWorker:
        """Picks one of at most `workers`: idle, else new, else the one with the fewest calls."""
        for process in list(self.processes):
            if not process.waiting and process.process.poll() is not None:
                self.end(process)
        chosen = min(self.processes[:workers], key=lambda process: process.waiting, default=None)
        if chosen is None or (chosen.waiting and len(self.processes) < workers):
            chosen = PoolWorker(self._family)
            self.processes.append(chosen)
        return chosen

    def end(self, process: PoolWorker) -> None:
        """Stops one worker at once."""
        self.processes.remove(process)
        process.end()

    def end_all(self) -> None:
        """Stops all workers at once, with all processes that they have started."""
        try:
            for process in self.processes:
                process.end()
        finally:
            self._family.end()


_pool: Pool | None = None
"""The pool in use."""


def current_pool() -> Pool:
    """The pool of this process, or a new one."""
    global _pool
    if _pool is None or _pool.owner != os.getpid():
        _pool = Pool()
    return _pool


def kill_workers() -> None:
    """Stops every worker at once, with all processes that it has started.

    Does nothing if there are no workers, or in a fork of the process that started them.
    """
    global _pool
    if _pool is None or _pool.owner != os.getpid():
        return
    with interrupts_held():
        pool, _pool = _pool, None
        pool.end_all()


atexit.register(kill_workers)


@contextmanager
def interrupts_held() -> Iterator[list[int]]:
    """Holds back requests to stop while workers are stopped.

    Yields:
        The signals held; the first is raised at the end.
    """
    held: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield held  # only the main thread handles signals
        return

    def hold(number: int, frame: FrameType | None) -> None:
        del frame
        held.append(number)

    handlers = {number: signal.getsignal(number) for number in _STOPS}
    ours = [number for number, handler in handlers.items() if callable(handler)]
    for number in ours:
        signal.signal(number, hold)
    try:
        yield held
    finally:
        for number in ours:
            signal.signal(number, handlers[number])
        if held:
            signal.raise_signal(held[0])


_users = 0
"""Runs under way that share the pool."""


@contextmanager
def workers_ended() -> Iterator[None]:
    """Stops every worker on leaving, in whatever way, with a generator's threads and forks.

    If nested, only the outermost stops them, so consecutive runs share their workers.
    """
    global _users
    _users += 1
    try:
        yield
    finally:
        _users -= 1
        if not _users:
            kill_workers()


class Family:
    """Workers and their descendants: none outlives the pool or its coordinator (Linux).

    A small process of its own, in its own session, watches the coordinator and finds the
    descendants by a variable of their environment. Elsewhere workers watch the coordinator
    themselves, and only their process groups are ended with them.

    Attributes:
        environment: Variables that every worker's environment must hold.
    """

    def __init__(self) -> None:
        """Starts the watcher.

        Raises:
            OSError: If the system refuses.
        """
        # The marker is the name of a variable, not its value, so an audit inside a worker adds its
        # own and keeps this one.
        self._marker = f"DPAUDIT_POOL_{secrets.token_hex(8).upper()}"
        self._coordinator = os.getpid()
        self.environment = {self._marker: "1"}
        self._watcher = self._start_watcher() if sys.platform == "linux" else None

    def end(self) -> None:
        """Kills whatever is left of the family; does nothing in a fork of the coordinator."""
        if self._watcher is None or os.getpid() != self._coordinator:
            return
        assert self._watcher.stdin is not None
        self._watcher.stdin.close()
        try:
            all_ended = self._watcher.wait(END_SECONDS) == 0
        except subprocess.TimeoutExpired:
            self._watcher.kill()
            self._watcher.wait()
            all_ended = False
        if not all_ended:  # foreign code has stopped or killed it
            watcher.end_all(self._marker, set(), spare=os.getpid())

    def _start_watcher(self) -> subprocess.Popen[bytes]:
        """Starts the watcher, whose open standard input keeps it waiting."""
        return subprocess.Popen(
            [sys.executable, "-I", "-S", watcher.__file__, self._marker, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
