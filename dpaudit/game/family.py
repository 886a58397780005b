"""What the workers of one pool start, and how it ends with them."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from contextlib import suppress

from dpaudit.game import watcher

END_SECONDS = 8.0
"""How long the watcher has to kill what is left; it gives up earlier itself."""


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
