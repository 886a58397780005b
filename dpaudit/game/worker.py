"""The code that runs inside a worker process, and the file that passes the private table to it.

That file is removed as early as possible. Its arrays a worker maps into its memory and does not
copy: parts follow each other at multiples of 64 bytes, the lengths of all others, the pickle, and
the arrays that pickle out of band (PEP 574).
"""

from __future__ import annotations

import hashlib
import mmap
import os
import pickle
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from time import sleep
from typing import Any, NamedTuple, TypeVar

import numpy as np

from dpaudit.game.flight import Batch
from dpaudit.game.training import leave_torch_one_thread, run_batch
from dpaudit.game.trial import Outcome
from dpaudit.plugins.foreign import pickled

T = TypeVar("T")

PARENT_POLL_SECONDS = 0.5
_OPEN_FILES = Path("/proc")
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


class PayloadFile(NamedTuple):
    """Where a worker finds the payload of a run.

    Attributes:
        path: The packed `Payload` of trials, or the function of an errand.
        digest: SHA-256 of it, so that a worker notices another payload at the same path.
        log: The file that takes whatever generators print.
        search_path: Where the coordinator imports modules from.
    """

    path: str
    digest: str
    log: str
    search_path: tuple[str, ...]


def search_path() -> tuple[str, ...]:
    """Where this process imports modules from; "" in `sys.path` is its working directory."""
    return tuple(entry or os.getcwd() for entry in sys.path)


@contextmanager
def written(
    blob: bytes, folder: Path, *, log: Path, search_path: tuple[str, ...]
) -> Iterator[PayloadFile]:
    """Writes a payload once for workers to map into their memory, readable by its owner alone.

    Where the system shows open files below `/proc` (Linux), the file has no name from before
    anything is written to it: if the coordinator is killed, nothing is left. Elsewhere the file is
    removed at the end.

    Args:
        blob: The payload, as `packed` gives it.
        folder: Where the file goes.
        log: The file that takes whatever generators print.
        search_path: Where workers import modules from.

    Yields:
        Where workers find it.

    Raises:
        OSError: If it cannot be written.
    """
    # Named after this process: a worker whose coordinator died erases that coordinator's file.
    path = folder / f"payload-{os.getpid()}.pickle"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        place = _OPEN_FILES / str(os.getpid()) / "fd" / str(descriptor)
        try:
            if _same(place, path):
                path.unlink()
                path = place
            file.write(blob)
            file.flush()
            digest = hashlib.sha256(blob).hexdigest()
            del blob  # as large as the table, and not read again
            yield PayloadFile(
                path=str(path if path is place else path.resolve()),
                digest=digest,
                log=str(log.resolve()),
                search_path=search_path,
            )
        finally:
            if path is not place:
                path.unlink(missing_ok=True)


def erase_payloads(folder: Path) -> None:
    """Removes the files that hold the private table and that a killed run left."""
    for path in folder.glob("payload-*.pickle"):
        path.unlink(missing_ok=True)


def _same(place: Path, path: Path) -> bool:
    """Whether a descriptor can be opened by its place, as workers will."""
    with suppress(OSError), place.open("rb") as opened:
        return os.path.samestat(os.fstat(opened.fileno()), path.stat())
    return False


ALIGNMENT = 64
"""Where an array may begin: what numpy and Arrow want."""


def packed(payload: object) -> bytes:
    """A payload as workers receive it and `unpacked` takes it: its pickle and the arrays it holds.

    Raises:
        RegistryError: If it cannot be pickled.
    """
    arrays: list[pickle.PickleBuffer] = []
    blob = pickled(payload, name="an attack or the table", out_of_band=arrays)
    parts = [memoryview(blob), *(array.raw() for array in arrays)]
    lengths = np.array([len(parts), *map(len, parts)], dtype="<u8")
    return b"".join(_padded([lengths.data.cast("B"), *parts]))


def unpacked(content: memoryview) -> object:
    """The object that `packed` was given.

    Args:
        content: Those bytes, of which the object's arrays are views.

    Returns:
        The object.
    """
    count = int(np.frombuffer(content, dtype="<u8", count=1)[0])
    lengths = np.frombuffer(content, dtype="<u8", count=1 + count)
    begin, parts = _rounded(lengths.nbytes), []
    for length in map(int, lengths[1:]):
        parts.append(content[begin : begin + length])
        begin += _rounded(length)
    blob, *arrays = parts
    return pickle.loads(blob, buffers=arrays)


def _padded(parts: Sequence[memoryview]) -> Iterator[bytes | memoryview]:
    for part in parts:
        yield part
        yield bytes(_rounded(len(part)) - len(part))


def _rounded(length: int) -> int:
    return -(-length // ALIGNMENT) * ALIGNMENT


def lead(parent: int) -> None:
    """Prepares a worker: Ctrl-C and a closed terminal are the coordinator's; none outlives it.

    Args:
        parent: Process id of the coordinator.
    """
    for number in OF_THE_GROUP:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, OF_THE_GROUP)  # it was started with them blocked
    threading.Thread(target=_follow, args=(parent,), daemon=True).start()


def work(payload_file: PayloadFile, batch: Batch) -> list[Outcome]:
    """Runs the trials of one batch.

    Args:
        payload_file: Loaded once by each worker.
        batch: Which trials.

    Returns:
        Their outcomes, in the order of the batch.

    Raises:
        AttackError: If an attack fails on a valid table.
    """
    with _loaded(payload_file) as payload:
        return run_batch(payload, batch)


def call(function: Callable[[Any], T], payload_file: PayloadFile) -> T:
    """Calls a function with what a payload file holds, as trials are run.

    Args:
        function: The function.
        payload_file: As for `work`.

    Returns:
        What the function returns.
    """
    with _loaded(payload_file) as payload:
        return function(payload)


@contextmanager
def _loaded(payload_file: PayloadFile) -> Iterator[Any]:
    """What a file holds, where torch has one thread and warnings go into the log."""
    payload = _load(payload_file)
    leave_torch_one_thread()
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # a generator's warnings are not dpaudit's
        yield payload


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
