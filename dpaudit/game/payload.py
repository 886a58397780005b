"""The file that passes the private table to workers, removed as early as possible.

Its arrays a worker maps into its memory and does not copy: parts follow each other at multiples of
64 bytes, the lengths of all others, the pickle, and the arrays that pickle out of band (PEP 574).
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dpaudit.plugins.foreign import pickled

_OPEN_FILES = Path("/proc")


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


@contextmanager
def payload_file(payload: object, folder: Path, *, log: Path) -> Iterator[PayloadFile]:
    """Writes a payload once for workers to map into their memory, readable by its owner alone.

    Where the system shows open files below `/proc` (Linux), the file has no name from before
    anything is written to it: if the coordinator is killed, nothing is left. Elsewhere the file is
    removed at the end.

    Args:
        payload: What workers need: a `Payload`, or the function of an errand.
        folder: The run folder.
        log: The file that takes whatever generators print.

    Yields:
        Where workers find it.

    Raises:
        OSError: If it cannot be written.
    """
    with written(packed(payload), folder, log=log, search_path=search_path()) as file:
        yield file


def search_path() -> tuple[str, ...]:
    """Where this process imports modules from."""
    return tuple(entry for entry in sys.path if entry)


@contextmanager
def written(
    blob: bytes, folder: Path, *, log: Path, search_path: tuple[str, ...]
) -> Iterator[PayloadFile]:
    """As `payload_file`, of a payload that is pickled.

    Args:
        blob: The payload.
        folder: Where the file goes.
        log: As for `payload_file`.
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
