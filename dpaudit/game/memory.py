"""The memory that a process and what it started have held."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

_PROCESSES = Path("/proc")
_PEAK = "VmHWM:"
_RESET_PEAK = "5"
"""What `clear_refs` takes to reset `VmHWM` (proc_pid_clear_refs(5))."""


def peak_memory() -> int | None:
    """The most memory that this process and its descendants have held, in bytes.

    Each process counts with the largest resident set that it has had; pages that several share
    count for each of them, so the sum tends to be too large.

    Returns:
        The sum over the processes that still run; None where the system does not show it (elsewhere
        than on Linux).
    """
    return sum(_peaks(os.getpid())) or None


def reset_peaks() -> bool:
    """Has the peaks of this process and its descendants begin again at what they hold now.

    Returns:
        Whether the system does that (Linux 4.0 and later).
    """
    processes = [os.getpid(), *descendants(os.getpid())]
    return all([_reset(process) for process in processes])


def _reset(process: int) -> bool:
    try:
        (_PROCESSES / str(process) / "clear_refs").write_text(_RESET_PEAK, encoding="utf-8")
    except ProcessLookupError:  # it has ended
        return True
    except OSError:
        return False
    return True


def descendants(process: int) -> Iterator[int]:
    """Process ids of what a process has started, and of what that has; of those that still run."""
    for child in _children(process):
        yield child
        yield from descendants(child)


def _peaks(process: int) -> Iterable[int]:
    """Peak resident sets of a process and its descendants, in bytes; of those that still run."""
    try:
        status = (_PROCESSES / str(process) / "status").read_text(encoding="utf-8")
    except OSError:  # it has ended
        return
    yield from (1024 * int(line.split()[1]) for line in status.splitlines() if _PEAK in line)
    for child in _children(process):
        yield from _peaks(child)


def _children(process: int) -> list[int]:
    """Process ids of the children of all threads of a process."""
    try:
        threads = list((_PROCESSES / str(process) / "task").iterdir())
        listed = [(thread / "children").read_text(encoding="utf-8") for thread in threads]
    except OSError:  # it has ended, or the system has no such files
        return []
    return [int(child) for text in listed for child in text.split()]
