"""Runs inside a worker of a cluster and passes requests to a separate process.

That process trains. This one stays in touch with the scheduler, whatever a generator does, and ends
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
from dpaudit.game.worker import PayloadFile, write_payload

IDLE_SECONDS = 60
"""Time without a request after which process and payload are dropped."""
MOST_PRINTED = 2**16
"""Bytes of a generator's output that are passed on for each batch: the last ones."""


class Request(NamedTuple):
    """A request to a worker of a cluster.

    Attributes:
        key: Name of the task; once the scheduler has dropped it, the answer is no longer needed.
        payload: Name of the payload; a request with another name starts a new process.
        search_path: Where the coordinator imports modules from.
        function: Called with the payload's file and the arguments.
        arguments: Its arguments.
        seconds: Time limit; None for no limit.
    """

    key: str
    payload: str
    search_path: tuple[str, ...]
    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    seconds: float | None = None


class Host:
    """The process that runs trials for a worker of a cluster, and its copy of the payload.

    Both are dropped after `IDLE_SECONDS` without a request.
    """

    def __init__(self) -> None:
        """Starts nothing yet."""
        self._lock = threading.Lock()
        self._pool: Pool | None = None
        self._payload: PayloadFile | None = None
        self._name = ""
        self._open = ExitStack()
        self._timer: threading.Timer | None = None

    def serve(self, request: Request, blob: bytes, *, wanted: Callable[[], bool]) -> Report:
        """Serves a request.

        Args:
            request: The request.
            blob: The payload.
            wanted: Whether the answer is still wanted.

        Returns:
            The report.

        Raises:
            OSError: If this machine has no room for the payload or another process.
        """
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            try:
                file = self._payload_file(request, blob)
                report = self._answer(request, file, wanted)
                if report.loss is not None:
                    self._end_process()
                return report._replace(printed=_take_output(Path(file.log)))
            finally:
                self._timer = threading.Timer(IDLE_SECONDS, self.retire)
                self._timer.daemon = True
                self._timer.start()

    def _answer(self, request: Request, file: PayloadFile, wanted: Callable[[], bool]) -> Report:
        """Runs a request in the process; stops waiting once the answer is not wanted."""
        if self._pool is None:
            self._pool = Pool()
        process = self._pool.least_busy(1)
        process.ask(request.function, file, *request.arguments)
        while (report := process.poll(request.seconds)) is None:
            if not (process.connection.poll(TICK_SECONDS) or wanted()):
                return Report(loss=BatchLoss.STOPPED)
        return report

    def retire(self) -> None:
        """Ends the process and drops the payload."""
        with self._lock:
            self._end_process()
            self._drop_payload()

    def _payload_file(self, request: Request, blob: bytes) -> PayloadFile:
        """The payload on this machine, in a folder that this worker's end removes."""
        if self._payload is None or self._name != request.payload:
            self._end_process()  # it writes to the log of the previous payload
            self._drop_payload()
            place = tempfile.mkdtemp(prefix="dpaudit-", dir=get_worker().local_directory)
            self._open.callback(shutil.rmtree, place, ignore_errors=True)
            folder = Path(place)
            self._payload = self._open.enter_context(
                write_payload(
                    blob, folder, log=folder / "printed.log", search_path=request.search_path
                )
            )
            self._name = request.payload
        return self._payload

    def _end_process(self) -> None:
        if self._pool is not None:
            self._pool.end_all()
            self._pool = None

    def _drop_payload(self) -> None:
        self._payload = None
        self._open.close()


def serve(request: Request, blob: bytes) -> Report:
    """Serves one request in this worker of a cluster, as its task.

    It raises nothing: the worker would write its arguments, and so the table, into its log.

    Args:
        request: The request.
        blob: The payload.

    Returns:
        The report.
    """
    tasks = get_worker().state.tasks

    def wanted() -> bool:
        task = tasks.get(request.key)
        return task is not None and task.state not in ("cancelled", "released", "forgotten")

    try:
        return _host.serve(request, blob, wanted=wanted)
    except OSError as error:
        return Report(ClusterError(f"a worker cannot run trials: {error_line(error)}"))


def _take_output(log: Path) -> bytes:
    """Returns the printed output, and empties its file."""
    with suppress(OSError), log.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - MOST_PRINTED))
        output = file.read()
        file.truncate(0)
        return output
    return b""


_host = Host()
"""The host of this process."""

atexit.register(_host.retire)
