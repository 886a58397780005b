"""Measures what a training costs: seconds and memory of this process and of those it started.

**Why a bound on such numbers is valid on any machine.** The world of every scored trial is a fair
coin that is drawn before any training, independently of the machine: of its load, its temperature
and its caches. So whatever else happens, it does not depend on the coins, except through the
trainings themselves. Suppose that rows, seconds and memory of a training, and whatever it leaves
behind on the machine, are (epsilon, delta)-differentially private in every state of the machine.
Then all that is measured later is post-processing of that, and given all measurements and all other
coins the odds of one coin are at most e^epsilon (but for delta). The bound from fair coins
(`dpaudit.bounds.fair_coin`) and that of a sequential audit need no more, neither that trials are
alike nor that their seconds do not depend on one another; bounds from counts of errors do, and do
not decide here. A busy machine, other workers and drift during the audit make the attack worse, and
the bound smaller; they cannot make it larger than the truth.

What could is work of the audit itself that differs between the worlds. So nothing but the
generator's own `fit` and `sample` is measured, both worlds' tables are made in the same way,
garbage is collected and returned before, what is left is below the noise (`PRECISION`), and the
null control, whose `fit` does nothing, must show no difference.

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
"""What `clear_refs` takes to reset `VmHWM` (proc_pid_clear_refs(5))."""
_SCHEDULED = 2
"""CPUCLOCK_SCHED of the Linux kernel: the clock of all threads of a process, ended ones too."""


class CallCost(NamedTuple):
    """What one call cost.

    Attributes:
        wall: Wall time in seconds.
        processor: Seconds of processor time of all threads and of processes that it started.
        memory: By how many bytes the memory of these was larger at its peak than before; 0 where
            the system does not show it (elsewhere than on Linux).
    """

    wall: float
    processor: float
    memory: float


PRECISION: Final = np.array([*CallCost(1e-3, 1e-3, 2**20)] * 2)
"""Noise of training and of sampling [6]: a cost has a uniform random number times this added.

The table of one world may be a row shorter: then memory is laid out otherwise, and even a generator
that ignores its table costs a few microseconds or pages more or less (`reports/timing`). Such
differences vanish in the noise: the attacker's clock is good to a millisecond, and its view of
memory to a MiB.
"""


def metered(call: Callable[[], T]) -> tuple[T, CallCost]:
    """Calls a function and measures what it costs.

    Wall time shows waiting, such as for a disk, and the load of the machine. Processor time is
    nearly free of that load. Child processes that end and are not waited for are not counted.

    Args:
        call: The function.

    Returns:
        What it returns, and the cost.
    """
    gc.collect()
    _return_free_memory()
    held = peak_memory() or 0 if reset_peaks() else None
    others, own, start = _processor_of_others(), process_time(), perf_counter()
    result = call()
    wall = perf_counter() - start
    processor = process_time() - own
    processor += _processor_of_others() - others
    grown = 0 if held is None else max(0, (peak_memory() or 0) - held)
    return result, CallCost(wall, processor, float(grown))


def _return_free_memory() -> None:
    """Gives memory that is free back to the system (glibc): else what is used again would not show.

    Workers keep it (`dpaudit.game.worker.ENVIRONMENT`).
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _processor_of_others() -> float:
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

    Each process counts with the largest resident set that it has had; pages that several share
    count for each of them, so the sum tends to be too large.

    Returns:
        The sum over the processes that still run; None where the system does not show it (elsewhere
        than on Linux).
    """
    return sum(map(_peak, _own_processes())) or None


def reset_peaks() -> bool:
    """Has the peaks of this process and its descendants begin again at what they hold now.

    Returns:
        Whether the system does that (Linux 4.0 and later).
    """
    return all([_reset(process) for process in _own_processes()])


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


def _own_processes() -> list[int]:
    """Process ids of this process and its descendants."""
    return [os.getpid(), *descendants(os.getpid())]


def _peak(process: int) -> int:
    """The peak resident set of a process in bytes; 0 if it has ended."""
    try:
        status = (_PROCESSES / str(process) / "status").read_text(encoding="utf-8")
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in status.splitlines() if _PEAK in line)


def _children(process: int) -> list[int]:
    """Process ids of the children of all threads of a process."""
    try:
        threads = list((_PROCESSES / str(process) / "task").iterdir())
        listed = [(thread / "children").read_text(encoding="utf-8") for thread in threads]
    except OSError:  # it has ended, or the system has no such files
        return []
    return [int(child) for text in listed for child in text.split()]
