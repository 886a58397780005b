"""Ends all processes started by the workers of a pool, once these are no longer needed (Linux).

Also a stand-alone program that needs only this file: `python -I -S watcher.py MARKER PARENT` waits
until its parent, the coordinator, has closed its standard input or has died, in whatever way. Every
process whose environment holds the marker is then killed, and so are their descendants. A process
that starts its own session, or whose parents have ended, still has the marker; one that was started
with another environment is known if its parents were there a second ago.
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
"""Where thousands of processes run, it looks at them less often."""
PATIENCE_SECONDS = 4.0
"""How long killing goes on while there is still something to kill."""
PAUSE_SECONDS = 0.02
PROCESSES = Path("/proc")
_ENDED = ("Z", "X")


class Process(NamedTuple):
    """One process; with its start, as its id may be given to another.

    Attributes:
        pid: Its id.
        started: Clock ticks between the start of the system and its own.
    """

    pid: int
    started: int


def end_all(marker: str, known: set[Process], *, spare: int) -> bool:
    """Kills all marked and known processes and their descendants, until none is left.

    Args:
        marker: Name of a variable in their environment.
        known: Others to kill.
        spare: Id of another process that is left alone, in addition to this one.

    Returns:
        Whether none was left in time.
    """
    spared = {os.getpid(), spare}
    deadline = time.monotonic() + PATIENCE_SECONDS
    quiet = 0
    while quiet < 2:  # one that is being started may be missed once
        found = {of for of in _family(marker, known) if of.pid not in spared}
        known |= found
        for process in found:
            with suppress(OSError):
                os.kill(process.pid, signal.SIGKILL)
        quiet = 0 if found else quiet + 1
        if time.monotonic() > deadline:
            return not found
        time.sleep(PAUSE_SECONDS)
    return True


def _family(marker: str, known: set[Process], *, parent: int | None = None) -> set[Process]:
    """Running processes that are marked or known, or descend from one of these.

    Args:
        marker: Name of a variable in their environment.
        known: Processes seen before: those that still run stay, whatever their parent is now.
        parent: Id of the one whose marked children count; None for all that are marked.
    """
    running = _running()
    found = {
        of.pid
        for of, its_parent in running.items()
        if of in known or (parent in (None, its_parent) and _marked(of.pid, marker))
    }
    while grown := {of.pid for of, its_parent in running.items() if its_parent in found} - found:
        found |= grown
    return {of for of in running if of.pid in found}


def _running() -> dict[Process, int]:
    """The processes of this machine, and the id of each one's parent."""
    found = {}
    for pid in filter(str.isdecimal, os.listdir(PROCESSES)):
        with suppress(OSError):  # it has ended
            # The name, in parentheses, may hold spaces.
            words = (PROCESSES / pid / "stat").read_bytes().decode("latin-1")
            fields = words.rpartition(")")[2].split()
            if fields[0] not in _ENDED:
                found[Process(int(pid), int(fields[19]))] = int(fields[1])
    return found


def _marked(pid: int, marker: str) -> bool:
    with suppress(OSError):
        variables = (PROCESSES / str(pid) / "environ").read_bytes().split(b"\0")
        return any(variable.startswith(f"{marker}=".encode()) for variable in variables)
    return False


def main() -> None:
    """Watches; ends with 0 if nothing is left."""
    marker, parent = sys.argv[1], int(sys.argv[2])
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # it ends with its coordinator, not before
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
