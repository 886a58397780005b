"""The program of a worker process, and the file that passes the private table to it.

A worker makes calls one after another; `pool.PoolWorker` starts it and holds the other end of its
pair of sockets. Whatever generators do to this process, the coordinator and the worker of a cluster
are not affected.

The file is removed as early as possible. A worker maps its arrays into memory instead of copying
them. Its parts start at multiples of 64 bytes: the lengths of the other parts, the pickle, and the
arrays that were pickled out of band (PEP 574).
"""

from __future__ import annotations

import hashlib
import mmap
import os
import pickle
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from multiprocessing.connection import Connection
from pathlib import Path
from time import sleep
from typing import Any, NamedTuple, TypeVar

import numpy as np

from dpaudit.errors import ClusterError, DpauditError
from dpaudit.formatting import error_line
from dpaudit.game.flight import Batch
from dpaudit.game.training import leave_torch_one_thread, run_batch
from dpaudit.game.trial import Outcome, Payload
from dpaudit.plugins.foreign import patches_apart, pickled
from dpaudit.plugins.registry import travels_by_value
from dpaudit.plugins.source import source_digest
from dpaudit.versions import versions

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
        digest: SHA-256 of the payload: another payload at the same path has another digest.
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
def write_payload(
    blob: bytes, folder: Path, *, log: Path, search_path: tuple[str, ...]
) -> Iterator[PayloadFile]:
    """Writes a payload once, readable by its owner alone, for workers to map into their memory.

    Where the system shows open files below `/proc` (Linux), the file loses its name before anything
    is written to it, so nothing is left if the coordinator is killed. Elsewhere the file is removed
    on leaving.

    Args:
        blob: The payload, as `pack` gives it.
        folder: The folder of the file.
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
            if _is_same_file(place, path):
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
    """Removes the files with the private table that a killed run has left."""
    for path in folder.glob("payload-*.pickle"):
        path.unlink(missing_ok=True)


def _is_same_file(place: Path, path: Path) -> bool:
    """Whether workers can open the file at `path` through its descriptor at `place`."""
    with suppress(OSError), place.open("rb") as opened:
        return os.path.samestat(os.fstat(opened.fileno()), path.stat())
    return False


ALIGNMENT = 64
"""Arrays begin at multiples of this, as numpy and Arrow prefer."""


def pack(payload: object) -> bytes:
    """Packs a payload for workers: its pickle, and the arrays it holds, as `unpack` reads them.

    Raises:
        RegistryError: If it cannot be pickled.
    """
    arrays: list[pickle.PickleBuffer] = []
    blob = pickled(payload, name="an attack or the table", out_of_band=arrays)
    parts = [memoryview(blob), *(array.raw() for array in arrays)]
    lengths = np.array([len(parts), *map(len, parts)], dtype="<u8")
    return b"".join(_pad_parts([lengths.data.cast("B"), *parts]))


def unpack(content: memoryview) -> object:
    """The object that `pack` was given.

    Args:
        content: The packed bytes; the object's arrays are views of them.

    Returns:
        The object.
    """
    count = int(np.frombuffer(content, dtype="<u8", count=1)[0])
    lengths = np.frombuffer(content, dtype="<u8", count=1 + count)
    begin, parts = _round_up(lengths.nbytes), []
    for length in map(int, lengths[1:]):
        parts.append(content[begin : begin + length])
        begin += _round_up(length)
    blob, *arrays = parts
    return pickle.loads(blob, buffers=arrays)


def _pad_parts(parts: Sequence[memoryview]) -> Iterator[bytes | memoryview]:
    """The parts, each padded to a multiple of `ALIGNMENT`."""
    for part in parts:
        yield part
        yield bytes(_round_up(len(part)) - len(part))


def _round_up(length: int) -> int:
    return -(-length // ALIGNMENT) * ALIGNMENT


def lead(parent: int) -> None:
    """Prepares a worker: it ignores Ctrl-C and a closed terminal, and ends with its coordinator.

    Args:
        parent: Process id of the coordinator.
    """
    for number in OF_THE_GROUP:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, OF_THE_GROUP)  # blocked when it was started
    threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()


def work(payload_file: PayloadFile, batch: Batch) -> list[Outcome]:
    """Runs the trials of one batch.

    Args:
        payload_file: Loaded once by each worker.
        batch: The trials.

    Returns:
        Their outcomes, in the order of the batch.

    Raises:
        AttackError: If an attack fails on a valid table.
    """
    with _loaded(payload_file) as payload:
        return run_batch(payload, batch)


def call(function: Callable[[Any], T], payload_file: PayloadFile) -> T:
    """Calls a function with the content of a payload file, under the conditions of a trial.

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
    """Yields the content of a file, with torch on one thread and warnings going to the log."""
    payload = _load(payload_file)
    leave_torch_one_thread()
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # a generator's warnings must not become errors
        yield payload


_payloads: set[str] = set()
"""Files that this worker has loaded; they hold private tables."""


@lru_cache(maxsize=1)
def _load(payload_file: PayloadFile) -> Any:
    """Reads the payload, redirects output to the log, and sets the search path."""
    _payloads.add(payload_file.path)
    # What generators print goes to the log, never into the coordinator's results.
    log = os.open(payload_file.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for descriptor in (1, 2):
        os.dup2(log, descriptor)
    os.close(log)
    sys.path[:] = list(dict.fromkeys([*payload_file.search_path, *sys.path]))
    with open(payload_file.path, "rb") as file:
        # Workers share the pages of the file; a worker that writes to a page gets its own copy.
        return unpack(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)))


def _end_with_parent(parent: int) -> None:
    """Waits until the parent has ended, then ends this process group."""
    while os.getppid() == parent:
        sleep(PARENT_POLL_SECONDS)
    for path in _payloads:
        with suppress(OSError):  # the file has lost its name
            Path(path).unlink()
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)  # with the processes it has started
    os._exit(1)


class Greeting(NamedTuple):
    """The versions and sources that must be equal wherever trials of one run are run.

    Attributes:
        versions: Versions of libraries, by name.
        sources: Digests of source code, by its part of the audit; None if it travels with the
            payload.
        trouble: Why the payload cannot be loaded; empty if it can.
    """

    versions: dict[str, str]
    sources: dict[str, str | None]
    trouble: str = ""

    def difference(self, other: Greeting) -> str:
        """The first difference of another process, to complete "it has ..."; empty if equal."""
        for name, own_version in self.versions.items():
            if other.versions.get(name) != own_version:
                return f"{name} {other.versions.get(name)}, and this process has {own_version}"
        if other.trouble:
            return f"no way to load what is audited: {other.trouble}"
        for name, digest in self.sources.items():
            if None not in (digest, there := other.sources.get(name)) and digest != there:
                return f"other source code of {name} than this process"
        return ""


def greeting_of(payload: Payload) -> Greeting:
    """The versions and sources with which this process would run the trials of a payload."""
    parts: dict[str, object] = {"dpaudit": payload}
    with patches_apart():
        for role, blob in payload.generators.items():
            parts[f"the generator ({role.in_words})"] = pickle.loads(blob)
        parts |= {f"the attack {type(attack).__name__}": attack for attack in payload.attacks}
        return Greeting(versions(), {name: _digest(part) for name, part in parts.items()})


def greet(payload_file: PayloadFile) -> Greeting:
    """As `greeting_of`, in a worker; a payload that cannot be loaded is part of the answer."""
    try:
        return call(greeting_of, payload_file)
    except BaseException as error:  # noqa: BLE001 - a generator's or an attack's module raised it
        return Greeting(versions(), {}, error_line(error))


def _digest(part: object) -> str | None:
    """The digest of the source of a part; None if the part is sent by value."""
    if travels_by_value(part):
        return None
    try:
        return source_digest(part)
    except OSError:  # it was sent by value, and its file is not here
        return None


def main(descriptor: int) -> None:
    """Answers calls until the other end is closed."""
    connection = Connection(descriptor)
    lead(os.getppid())
    with suppress(EOFError, OSError):  # the coordinator has ended
        while True:
            function, arguments = connection.recv()
            connection.send_bytes(b"")  # the time limit of the call starts here
            connection.send(_answer(function, arguments))


def _answer(function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """The result of a function, or an error of dpaudit that it raised."""
    try:
        return function(*arguments)
    except DpauditError as error:
        return error
    except Exception as error:  # noqa: BLE001 - the worker's own trouble, such as a full disk
        if not isinstance(
            error, OSError
        ):  # the message of a missing folder or a full disk says it all
            traceback.print_exc()  # into the log
        return ClusterError(f"a worker cannot run trials: {error_line(error)}")
