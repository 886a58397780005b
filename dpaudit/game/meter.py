"""Measures what a training costs: seconds and memory of this process and of those it started.

**Why a bound on such numbers is valid on any machine.** The world of every scored trial is a fair
coin that is drawn before any training, independently of the machine: its load, temperature and
caches. So nothing depends on the coins except through the trainings themselves. Suppose that the
rows, seconds and memory of a training, and whatever it leaves behind on the machine, are (epsilon,
delta)-differentially private in every state of the machine. Then all later measurements are
post-processing of these, and given all measurements and all other coins the odds of one coin are at
most e^epsilon (except with probability delta). The fair-coin bound (`dpaudit.bounds.fair_coin`) and
the sequential bound need nothing else: trials may differ, and their seconds may depend on one
another. Bounds from error counts would need both, so they do not decide here. A busy machine, other
workers and drift during the audit weaken the attack and lower the bound; they cannot raise it above
the truth.

Only work of the audit itself that differs between the worlds could raise it. So nothing but the
generator's own `fit` and `sample` is measured, both worlds' tables are made in the same way,
garbage is collected and its memory returned before, remaining differences are below the noise
(`PRECISION`), and the null control, whose `fit` does nothing, must show no difference.

The first trainings of a process load modules and fill caches. A worker therefore trains a model of
each world first and drops it (`dpaudit.game.training`): dropping the first trials instead
would leave fewer of one world than of the other.
"""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from time import clock_gettime, perf_counter, process_time
from typing import Final, NamedTuple, TypeVar

import numpy as np

T = TypeVar("T")

_PROCESSES = Path("/proc")
_PEAK = "VmHWM:"
_RESET_PEAK = "5"
"""Written to `clear_refs`, it resets `VmHWM` (proc_pid_clear_refs(5))."""
_SCHEDULED = 2
"""CPUCLOCK_SCHED of the Linux kernel: the clock of all threads of a process, ended ones too."""


class CallCost(NamedTuple):
    """What one call cost.

    Attributes:
        wall: Wall time in seconds.
        processor: Seconds of processor time of all threads and of processes that it started.
        memory: Bytes by which the peak memory of all these exceeds their memory before; 0 on
            systems other than Linux, which do not show it.
    """

    wall: float
    processor: float
    memory: float


PRECISION: Final = np.array([*CallCost(1e-3, 1e-3, 2**20)] * 2)
"""Range of the uniform noise added to the costs of training and sampling [6].

The table of one world may be a row shorter. Its memory is then laid out differently, and even a
generator that ignores its table costs a few microseconds or pages more or less (`reports/timing`).
The noise hides such differences: the attacker's clock is good to a millisecond, and its view of
memory to a MiB.
"""


def measure_cost(call: Callable[[], T]) -> tuple[T, CallCost]:
    """Calls a function and measures what it costs.

    Wall time includes waiting, such as for a disk, and the load of the machine; processor time is
    nearly free of that load. Child processes that end without being waited for are not counted.

    Args:
        call: The function.

    Returns:
        What it returns, and the cost.
    """
    gc.collect()
    _return_free_memory()
    memory_before = peak_memory() or 0 if reset_peaks() else None
    children_before, own_before, start = _processor_of_children(), process_time(), perf_counter()
    result = call()
    wall = perf_counter() - start
    processor = process_time() - own_before
    processor += _processor_of_children() - children_before
    growth = 0 if memory_before is None else max(0, (peak_memory() or 0) - memory_before)
    return result, CallCost(wall, processor, float(growth))


def _return_free_memory() -> None:
    """Returns free memory to the system (glibc); otherwise its reuse would not show.

    Workers are set up to keep free memory (`dpaudit.game.worker.ENVIRONMENT`).
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _processor_of_children() -> float:
    """Seconds of processor time of the processes that this one started."""
    ended = getrusage(RUSAGE_CHILDREN)
    running = sum(_processor_of(process) for process in descendants(os.getpid()))
    return ended.ru_utime + ended.ru_stime + running


def _processor_of(process: int) -> float:
    """Seconds of processor time of another process (clock_getcpuclockid(3) of Linux)."""
    with suppress(OSError):  # it has ended
        return clock_gettime(~process << 3 | _SCHEDULED)
    return 0.0


def peak_memory() -> int | None:
    """The most memory that this process and its descendants have held, in bytes.

    Each process counts with its largest resident set so far. Pages that several processes share
    count for each of them, so the sum tends to be too large.

    Returns:
        The sum over the processes that still run; None on systems other than Linux, which do not
        show it.
    """
    return sum(map(_peak_of, _process_tree())) or None


def reset_peaks() -> bool:
    """Resets the peaks of this process and its descendants to the memory they hold now.

    Returns:
        Whether the system can do that (Linux 4.0 and later).
    """
    return all([_reset_peak(process) for process in _process_tree()])


def _reset_peak(process: int) -> bool:
    """Resets the peak of a process; true if that worked or the process has ended."""
    try:
        (_PROCESSES / str(process) / "clear_refs").write_text(_RESET_PEAK, encoding="utf-8")
    except ProcessLookupError:  # it has ended
        return True
    except OSError:
        return False
    return True


def descendants(process: int) -> Iterator[int]:
    """Process ids of the running descendants of a process."""
    for child in _children_of(process):
        yield child
        yield from descendants(child)


def _process_tree() -> list[int]:
    """Process ids of this process and its descendants."""
    return [os.getpid(), *descendants(os.getpid())]


def _peak_of(process: int) -> int:
    """The peak resident set of a process in bytes; 0 if it has ended."""
    try:
        status = (_PROCESSES / str(process) / "status").read_text(encoding="utf-8")
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in status.splitlines() if _PEAK in line)


def _children_of(process: int) -> list[int]:
    """Process ids of the children of all threads of a process."""
    try:
        threads = list((_PROCESSES / str(process) / "task").iterdir())
        listed = [(thread / "children").read_text(encoding="utf-8") for thread in threads]
    except OSError:  # it has ended, or the system has no such files
        return []
    return [int(child) for text in listed for child in text.split()]
