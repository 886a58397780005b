"""Ends all processes that the workers of a pool have started, once the pool is done (Linux).

Also a stand-alone program that needs only this file: `python -I -S watcher.py MARKER PARENT` waits
until its parent, the coordinator, has closed its standard input or has died, in whatever way. Every
process whose environment holds the marker is then killed, and so are their descendants. A process
that starts its own session, or whose parents have ended, still has the marker. A process started
with another environment is known if its parents were running a second ago.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

POLL_SECONDS = 1.0
SHARE_OF_A_CORE = 0.04
"""With thousands of processes the watcher checks less often, to use no more than this."""
PATIENCE_SECONDS = 4.0
"""Longest time spent on killing."""
PAUSE_SECONDS = 0.02
PROCESSES = Path("/proc")
_ENDED = ("Z", "X")


class Process(NamedTuple):
    """A process: with its start, because an id may be used again.

    Attributes:
        pid: Process id.
        started: Start of the process, in clock ticks after that of the system.
    """

    pid: int
    started: int


def end_all(marker: str, known: set[Process], *, spare: int) -> bool:
    """Kills all marked and known processes and their descendants, until none is left.

    Args:
        marker: Name of a variable in their environment.
        known: Further processes to kill.
        spare: Id of a process that is left alone, in addition to this one.

    Returns:
        Whether all were gone in time.
    """
    spared = {os.getpid(), spare}
    deadline = time.monotonic() + PATIENCE_SECONDS
    empty_rounds = 0
    while empty_rounds < 2:  # a process that is just starting may be missed once
        targets = {process for process in _family(marker, known) if process.pid not in spared}
        known |= targets
        for process in targets:
            with suppress(OSError):
                os.kill(process.pid, signal.SIGKILL)
        empty_rounds = 0 if targets else empty_rounds + 1
        if time.monotonic() > deadline:
            return not targets
        time.sleep(PAUSE_SECONDS)
    return True


def _family(marker: str, known: set[Process], *, parent: int | None = None) -> set[Process]:
    """Running processes that are marked or known, or descend from one of these.

    Args:
        marker: Name of a variable in their environment.
        known: Processes seen before; those still running count, whatever their parent is now.
        parent: Id of the process whose marked children count; None to count all marked ones.
    """
    running = _running()
    family = {
        process.pid
        for process, its_parent in running.items()
        if process in known or (parent in (None, its_parent) and _is_marked(process.pid, marker))
    }
    while (
        children := {process.pid for process, its_parent in running.items() if its_parent in family}
        - family
    ):
        family |= children
    return {process for process in running if process.pid in family}


def _running() -> dict[Process, int]:
    """The running processes of this machine, with the ids of their parents."""
    parents = {}
    for pid in filter(str.isdecimal, os.listdir(PROCESSES)):
        with suppress(OSError):  # it has ended
            # Fields start after the name, which is in parentheses and may hold spaces.
            status = (PROCESSES / pid / "stat").read_bytes().decode("latin-1")
            fields = status.rpartition(")")[2].split()
            if fields[0] not in _ENDED:
                parents[Process(int(pid), int(fields[19]))] = int(fields[1])
    return parents


def _is_marked(pid: int, marker: str) -> bool:
    with suppress(OSError):
        variables = (PROCESSES / str(pid) / "environ").read_bytes().split(b"\0")
        return any(variable.startswith(f"{marker}=".encode()) for variable in variables)
    return False


def main() -> None:
    """Watches, then kills; exits with 0 if nothing is left."""
    marker, parent = sys.argv[1], int(sys.argv[2])
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the watcher ends with its coordinator, not before
    known: set[Process] = set()
    while os.getppid() == parent:
        begun = time.monotonic()
        with suppress(OSError):
            known = _family(marker, known, parent=parent)
        pause = max(POLL_SECONDS, (time.monotonic() - begun) / SHARE_OF_A_CORE)
        if select.select([0], [], [], pause)[0]:
            break
    sys.exit(0 if end_all(marker, known, spare=parent) else 1)


if __name__ == "__main__":
    main()
