"""The public tables that studies read: where they are, and whether a file is the right one."""

from __future__ import annotations

import gzip
import hashlib
import tomllib
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dpaudit.errors import DataError

CATALOGUE = Path(__file__).with_name("data.toml")
FETCH = "`python -m reports.fetch DIR` makes it"


@dataclass(frozen=True, kw_only=True)
class PublicTable:
    """A public table, as data.toml describes it.

    Attributes:
        title: Its name where it is published.
        page: Its page there.
        doi: Its DOI.
        licence: Its licence.
        version: Which version.
        rows: Number of records.
        columns: Number of columns.
        file: Name of the file that studies read, a CSV in gzip.
        sha256: SHA-256 of that CSV.
        archive: Address of the public archive.
        member: The file in it.
        member_sha256: SHA-256 of that file.
        conversion: How the CSV is made from it, in words.
    """

    title: str
    page: str
    doi: str
    licence: str
    version: str
    rows: int
    columns: int
    file: str
    sha256: str
    archive: str
    member: str
    member_sha256: str
    conversion: str


@cache
def catalogue() -> dict[str, PublicTable]:
    """All public tables by name."""
    entries = tomllib.loads(CATALOGUE.read_text(encoding="utf-8"))
    return {name: PublicTable(**entry) for name, entry in entries.items()}


def table_file(name: str, folder: Path | None) -> Path:
    """The file of a public table, after its checksum was compared.

    Args:
        name: Name of the table in data.toml.
        folder: Folder of the tables; None if none was named.

    Returns:
        Path of the CSV in gzip.

    Raises:
        DataError: If no folder was named, or the file is missing, unreadable or another one.
    """
    table = catalogue()[name]
    if folder is None:
        raise DataError(f"name the folder of {table.file} with --data or DPAUDIT_DATA; {FETCH}")
    path = folder / table.file
    try:
        found = sha256(gzip.decompress(path.read_bytes()))
    except FileNotFoundError:
        raise DataError(f"{path} is missing; {FETCH} ({table.title}, {table.page})") from None
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    if found != table.sha256:
        raise DataError(
            f"{path} is not the table of the studies: its CSV has SHA-256 {found}, not "
            f"{table.sha256}; {FETCH}"
        )
    return path


def sha256(content: bytes) -> str:
    """The SHA-256, in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()
