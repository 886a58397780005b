"""A worker process: started without a shell, asked line by line, ended with its children."""

from __future__ import annotations

import math
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

from dpaudit.external.messages import MOST_LINE, WorkerError, answer_of, line_of
from dpaudit.formatting import one_line

KEPT_ERRORS: Final = 2**16
"""Bytes of standard error that are kept, the last ones."""
_SHOWN: Final = 300
_CHUNK: Final = 2**16
_POLL_SECONDS: Final = 0.05
_END_SECONDS: Final = 2.0
_LOOK_SECONDS: Final = 0.5
PASSED_ON: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "LD_LIBRARY_PATH")
"""Environment variables passed to a worker, in addition to those that mark and limit workers."""
TAMED: Final = ("OMP_", "MKL_", "OPENBLAS_", "NUMEXPR_", "PYTHONHASHSEED", "DPAUDIT_POOL_")
"""Beginnings of further variables: threads, hashing, and the mark by which the pool ends it."""


class WorkerProcess:
    """One process that speaks the protocol, in a folder and a session of its own.

    Attributes:
        folder: Its working folder, where tables are exchanged.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        memory: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Starts it.

        Args:
            command: Program and arguments; no shell sees them.
            folder: Its working folder.
            memory: Bytes of address space that it may take (Linux); None for no limit.
            environment: Further variables of its environment.

        Raises:
            WorkerError: If the system cannot start it.
        """
        self.folder = folder
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder,
                env={**_environment(os.environ), **(environment or {})},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise WorkerError(f"the worker {command[0]} cannot be started: {reason}") from None
        if memory is not None and sys.platform == "linux":
            _limit_memory(self._process.pid, memory)
        self._errors = bytearray()
        self._lines: queue.SimpleQueue[bytes | WorkerError | None] = queue.SimpleQueue()
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._readers = [
            threading.Thread(target=read, args=(stream,), daemon=True)
            for read, stream in (
                (self._read_lines, self._process.stdout),
                (self._read_errors, self._process.stderr),
            )
        ]
        for reader in self._readers:
            reader.start()

    def ask(self, message: Mapping[str, Any], *, seconds: float | None = None) -> dict[str, Any]:
        """Sends a message and waits for the answer.

        Args:
            message: The message.
            seconds: How long to wait; None for ever (the trial has a limit of its own).

        Returns:
            The answer.

        Raises:
            WorkerError: If the worker ends, is late, says too much or anything but an object, or
                had said something before it was asked.
        """
        with suppress(queue.Empty):
            if self._lines.get_nowait() is None:  # it has ended
                raise self._ended()
            raise WorkerError(
                "the worker said something before it was asked: one answer for each request, and "
                "everything else to standard error"
            )
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended: what is read says so
            self._process.stdin.write(line_of(message))
            self._process.stdin.flush()
        line = self._next_line(seconds)
        if isinstance(line, WorkerError):
            raise line
        if line is None:
            raise self._ended()
        return answer_of(line)

    def _next_line(self, seconds: float | None) -> bytes | WorkerError | None:
        """What it says next; None if it has ended, even if what it started holds its output open.

        Raises:
            WorkerError: If it is late.
        """
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        while True:
            ended = self._process.poll() is not None  # asked first: it may say more, then end
            left = deadline - time.monotonic()
            with suppress(queue.Empty):
                return self._lines.get(timeout=max(0.0, min(left, _LOOK_SECONDS)))
            if ended:
                return None
            if left <= 0:
                raise WorkerError(f"the worker did not answer within {seconds:g} s")

    def end(self) -> None:
        """Ends it, and whatever it started in its session; nothing happens the second time."""
        with suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        assert self._process.stdin is not None
        with suppress(OSError, ValueError):
            self._process.stdin.close()
        for reader in self._readers:
            reader.join(_LOOK_SECONDS)  # longer if what it started, in another session, holds it

    def ends_with_its_input(self, *, seconds: float) -> bool:
        """Closes its standard input; whether it then ends by itself within that time."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
            return True
        return False

    @property
    def last_errors(self) -> str:
        """The last of what it wrote to standard error, in one line."""
        return one_line(bytes(self._errors).decode("utf-8", "replace")).strip()

    def _ended(self) -> WorkerError:
        deadline = time.monotonic() + _END_SECONDS
        while self._process.poll() is None and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        code = self._process.poll()
        if code is None:
            how = "closed its standard output"
        elif code < 0:
            how = f"was ended by signal {-code}"
        else:
            how = f"ended with exit code {code}"
        time.sleep(_POLL_SECONDS)  # for the rest of its standard error
        said = self.last_errors[-_SHOWN:]
        return WorkerError(f"the worker {how}", said)

    def _read_lines(self, stream: IO[bytes]) -> None:
        """Hands on each line; a line that is too long ends the reading."""
        try:
            with stream:
                while line := stream.readline(MOST_LINE + 1):
                    if len(line) > MOST_LINE:
                        said = f"the worker's answer is over {MOST_LINE} bytes"
                        self._lines.put(WorkerError(said))
                        break
                    self._lines.put(line)
        finally:
            self._lines.put(None)

    def _read_errors(self, stream: IO[bytes]) -> None:
        with stream:
            while chunk := os.read(stream.fileno(), _CHUNK):
                self._errors += chunk
                del self._errors[:-KEPT_ERRORS]


def _environment(own: Mapping[str, str]) -> dict[str, str]:
    """The environment of a worker, without anything of dpaudit's interpreter."""
    return {
        name: value for name, value in own.items() if name in PASSED_ON or name.startswith(TAMED)
    }


def _limit_memory(process: int, size: int) -> None:
    import resource

    with suppress(OSError, ValueError):  # it has ended already, or may not be limited
        resource.prlimit(process, resource.RLIMIT_AS, (size, size))
