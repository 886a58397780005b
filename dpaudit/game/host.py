"""Runs inside a worker of a cluster and passes requests to a separate process.

That process trains; this one stays in touch with the scheduler, whatever a generator does, and ends
requests that are late or no longer wanted.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

from distributed import get_worker

from dpaudit.errors import ClusterError
from dpaudit.formatting import error_line
from dpaudit.game.flight import BatchLoss
from dpaudit.game.pool import TICK_SECONDS, Pool, Report
from dpaudit.game.worker import PayloadFile, written

IDLE_SECONDS = 60
"""After this time without a request, process and payload are given up."""
MOST_PRINTED = 2**16
"""The last bytes of a generator's output during one batch, which are passed on."""


class Request(NamedTuple):
    """A request to a worker of a cluster.

    Attributes:
        key: The name of the task: once the scheduler has dropped it, its answer is no longer
            needed.
        payload: Names the payload; a request with another name has a new process.
        search_path: Where the coordinator imports modules from.
        function: Called with the payload's file and the arguments.
        arguments: Its arguments.
        seconds: How long it may take; None for no limit.
    """

    key: str
    payload: str
    search_path: tuple[str, ...]
    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    seconds: float | None = None


class Host:
    """The process that runs trials for a worker of a cluster, and its copy of the payload.

    Both are given up after `IDLE_SECONDS` without a request.
    """

    def __init__(self) -> None:
        """Nothing is started yet."""
        self._lock = threading.Lock()
        self._pool: Pool | None = None
        self._payload: PayloadFile | None = None
        self._name = ""
        self._open = ExitStack()
        self._timer: threading.Timer | None = None

    def serve(self, request: Request, blob: bytes, *, wanted: Callable[[], bool]) -> Report:
        """Does what is asked for.

        Args:
            request: What.
            blob: The payload.
            wanted: Whether the answer still is.

        Returns:
            What came of it.

        Raises:
            OSError: If this machine has no room for the payload or another process.
        """
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            try:
                file = self._file(request, blob)
                report = self._answered(request, file, wanted)
                if report.loss is not None:
                    self._end_process()
                return report._replace(printed=_taken(Path(file.log)))
            finally:
                self._timer = threading.Timer(IDLE_SECONDS, self.retire)
                self._timer.daemon = True
                self._timer.start()

    def _answered(self, request: Request, file: PayloadFile, wanted: Callable[[], bool]) -> Report:
        if self._pool is None:
            self._pool = Pool()
        process = self._pool.least_busy(1)
        process.ask(request.function, file, *request.arguments)
        while (report := process.poll(request.seconds)) is None:
            if not (process.connection.poll(TICK_SECONDS) or wanted()):
                return Report(loss=BatchLoss.STOPPED)
        return report

    def retire(self) -> None:
        """Ends the process and gives up the payload."""
        with self._lock:
            self._end_process()
            self._forget()

    def _file(self, request: Request, blob: bytes) -> PayloadFile:
        """The payload on this machine, in a folder that this worker's end removes."""
        if self._payload is None or self._name != request.payload:
            self._end_process()  # it holds the log of the payload before
            self._forget()
            place = tempfile.mkdtemp(prefix="dpaudit-", dir=get_worker().local_directory)
            self._open.callback(shutil.rmtree, place, ignore_errors=True)
            folder = Path(place)
            self._payload = self._open.enter_context(
                written(blob, folder, log=folder / "printed.log", search_path=request.search_path)
            )
            self._name = request.payload
        return self._payload

    def _end_process(self) -> None:
        if self._pool is not None:
            self._pool.end_all()
            self._pool = None

    def _forget(self) -> None:
        self._payload = None
        self._open.close()


def serve(request: Request, blob: bytes) -> Report:
    """Serves one request in this worker of a cluster, as its task.

    It raises nothing: the worker would write its arguments, and so the table, into its log.

    Args:
        request: What is asked for.
        blob: The payload.

    Returns:
        What came of it.
    """
    tasks = get_worker().state.tasks

    def wanted() -> bool:
        task = tasks.get(request.key)
        return task is not None and task.state not in ("cancelled", "released", "forgotten")

    try:
        return _host.serve(request, blob, wanted=wanted)
    except OSError as error:
        return Report(ClusterError(f"a worker cannot run trials: {error_line(error)}"))


def _taken(log: Path) -> bytes:
    """Takes the printed output out of the file."""
    with suppress(OSError), log.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - MOST_PRINTED))
        said = file.read()
        file.truncate(0)
        return said
    return b""


_host = Host()
"""The host of this process."""

atexit.register(_host.retire)
