"""The file that hands the private table to workers, and goes as soon as it can."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dpaudit.game import worker
from dpaudit.game.packing import packed

_OPEN_FILES = Path("/proc")


@contextmanager
def payload_file(payload: object, folder: Path, *, log: Path) -> Iterator[worker.PayloadFile]:
    """Writes a payload once for workers to map into their memory, readable by its owner alone.

    Where the system shows open files below `/proc` (Linux), the file has no name from before
    anything is written to it: whatever kills the coordinator, nothing is left. Elsewhere the file
    is removed at the end.

    Args:
        payload: What workers need: a `Payload`, or the function of an errand.
        folder: The run folder.
        log: The file that takes whatever generators print.

    Yields:
        Where workers find it.

    Raises:
        OSError: If it cannot be written.
    """
    with written(payload_blob(payload), folder, log=log, search_path=search_path()) as file:
        yield file


def payload_blob(payload: object) -> bytes:
    """A payload as workers receive it.

    Raises:
        RegistryError: If it cannot be pickled.
    """
    return packed(payload, name="an attack or the table")


def search_path() -> tuple[str, ...]:
    """Where this process imports modules from."""
    return tuple(entry for entry in sys.path if entry)


@contextmanager
def written(
    blob: bytes, folder: Path, *, log: Path, search_path: tuple[str, ...]
) -> Iterator[worker.PayloadFile]:
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
            del blob  # as large as the table, and nobody reads it again
            yield worker.PayloadFile(
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
