"""The code that runs inside a worker process."""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import struct
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from multiprocessing.connection import Connection
from pathlib import Path
from time import sleep
from typing import Any, TypeVar

from dpaudit.game.flight import Batch
from dpaudit.game.payload import PayloadFile, unpacked
from dpaudit.game.training import leave_torch_one_thread, run_batch
from dpaudit.game.trial import Outcome

T = TypeVar("T")

PARENT_POLL_SECONDS = 0.5
_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
OF_THE_GROUP = frozenset((signal.SIGINT, signal.SIGHUP))
"""Signals that a terminal sends to a whole process group: the coordinator's to handle."""
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",  # else the order of a set of strings differs between workers
    # Memory given back and asked for again costs up to a fifth of a training (glibc).
    "MALLOC_MMAP_THRESHOLD_": str(2**26),
    "MALLOC_TRIM_THRESHOLD_": str(2**28),
}
"""Environment of every worker, so that a trial does not depend on which worker runs it."""


MARK = struct.Struct("<qq")
"""A worker's message at the start of a batch: its process id and the batch's ticket."""


def start(parent: int, marks: Connection) -> None:
    """Prepares a worker: Ctrl-C and a closed terminal are the coordinator's; none outlives it.

    It leads a session of its own, so that what it starts can be ended with it.

    Args:
        parent: Process id of the coordinator.
        marks: Takes a `MARK` for every batch that is begun.
    """
    _die_with_parent()
    lead(parent, marks)


def lead(parent: int, marks: Connection) -> None:
    """As `start`, for a process that a thread may have started which ends before the parent does.

    Args:
        parent: Process id of the one that started it.
        marks: As for `start`.
    """
    global _marks, _own
    _marks, _own = marks, os.getpid()
    with suppress(OSError):  # it leads one already
        os.setsid()
    for number in OF_THE_GROUP:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, OF_THE_GROUP)  # `pool` starts it with them blocked
    # Else loky's workers outlive a killed coordinator by a minute and more.
    threading.Thread(target=_follow, args=(parent,), daemon=True).start()


def work(payload_file: PayloadFile, batch: Batch, ticket: int) -> list[Outcome]:
    """Runs the trials of one batch.

    Args:
        payload_file: Loaded once by each worker.
        batch: Which trials.
        ticket: The coordinator's name for the batch: its time runs from here.

    Returns:
        Their outcomes, in the order of the batch.

    Raises:
        AttackError: If an attack fails on a valid table.
    """
    with _loaded(payload_file, ticket) as payload:
        return run_batch(payload, batch)


def call(function: Callable[[Any], T], payload_file: PayloadFile, ticket: int) -> T:
    """Calls a function with what a payload file holds, as trials are run.

    Args:
        function: The function.
        payload_file: As for `work`.
        ticket: As for `work`.

    Returns:
        What the function returns.
    """
    with _loaded(payload_file, ticket) as payload:
        return function(payload)


@contextmanager
def _loaded(payload_file: PayloadFile, ticket: int) -> Iterator[Any]:
    """What a file holds, where torch has one thread and warnings go into the log."""
    if _marks is not None:
        with suppress(OSError):  # the coordinator has died
            _marks.send_bytes(MARK.pack(_own, ticket))
    payload = _load(payload_file)
    leave_torch_one_thread()
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # a generator's warnings are not dpaudit's
        yield payload


_marks: Connection | None = None
_own = 0  # its process id, which foreign code may make `os` lie about
_payloads: set[str] = set()
"""Files that this worker has loaded; they hold private tables."""


@lru_cache(maxsize=1)
def _load(payload_file: PayloadFile) -> Any:
    _payloads.add(payload_file.path)
    # Whatever generators print goes to the log, never into the coordinator's results.
    log = os.open(payload_file.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for descriptor in (1, 2):
        os.dup2(log, descriptor)
    os.close(log)
    sys.path[:] = list(dict.fromkeys([*payload_file.search_path, *sys.path]))
    with open(payload_file.path, "rb") as file:
        # Workers share its pages; a page that one of them writes to becomes its own copy.
        return unpacked(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)))


def _follow(parent: int) -> None:
    while os.getppid() == parent:
        sleep(PARENT_POLL_SECONDS)
    for path in _payloads:
        with suppress(OSError):  # it has no name any more
            Path(path).unlink()
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)  # with whatever it has started
    os._exit(1)


def _die_with_parent() -> None:
    """Has the kernel kill this process with the thread that started it (Linux).

    A thread that asks would not run while foreign code holds the interpreter's lock.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
