"""Worker processes of this machine: the pool, the engine that runs trials on it, and errands.

Each worker has its own pipe; one that dies loses only the call under way, and its pipe shows which
one that is. When workers end, so do all processes they started.
"""

from __future__ import annotations

import atexit
import operator
import os
import pickle
import secrets
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import wait
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple, TypeVar

from dpaudit.errors import InterruptedRunError
from dpaudit.game import watcher, worker
from dpaudit.game.flight import Batch, BatchLoss, Landing, Stopwatch, TimeLimit
from dpaudit.game.store import RunFolder
from dpaudit.game.trial import Payload
from dpaudit.game.worker import PayloadFile, erase_payloads

TICK_SECONDS = 0.5
"""Interval at which the coordinator checks for batches over their time limit."""
START_SECONDS = 600.0
"""How long a worker may take to begin a call, whatever the limit of a trial."""
END_SECONDS = 8.0
"""Time for the watcher to kill remaining processes; it gives up earlier itself."""
_START: Final = (
    "import sys; sys.path[:] = sys.argv[2:]; from dpaudit.game.worker import main; "
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
