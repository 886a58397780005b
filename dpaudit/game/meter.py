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
from collections.abc import Callable
from contextlib import suppress
from resource import RUSAGE_CHILDREN, getrusage
from time import clock_gettime, perf_counter, process_time
from typing import Final, NamedTuple, TypeVar

import numpy as np

from dpaudit.game.memory import descendants, peak_memory, reset_peaks

T = TypeVar("T")

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
