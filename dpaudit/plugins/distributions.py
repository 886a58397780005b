"""Installed distributions: their modules, what they require, and which build of them it is."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from dpaudit.external.environments import distribution_key

SITE_FOLDERS: Final = ("site-packages", "dist-packages")
_REQUIRED: Final = re.compile(r"\s*([A-Za-z0-9][\w.-]*)\s*(?:\[([^\]]*)\])?")
_EXTRA: Final = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")
_NOT_CODE: Final = (b".dist-info/", b"__pycache__")


class Requirement(NamedTuple):
    """A distribution that another one requires, whatever its other conditions are.

    Attributes:
        key: Its name, as `distribution_key` has it.
        extras: Extras of it that are required.
        under: Extras of the other one under which it is; if there are none, always.
    """

    key: str
    extras: frozenset[str] = frozenset()
    under: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Distribution:
    """An installed distribution.

    Attributes:
        name: Its name.
        version: Its version.
        site: The folder that it is installed in.
        record: Its list of files with their hashes; empty where the installer left none.
        metadata: The head of its metadata.
        listed: Its own list of its top-level modules, for want of a record.
    """

    name: str
    version: str
    site: Path
    record: bytes
    metadata: str
    listed: str

    @cached_property
    def modules(self) -> frozenset[str]:
        """Top-level names of its modules and packages."""
        if not self.record:
            return frozenset(self.listed.split() or [self.name.replace("-", "_")])
        tops = {line.partition(b"/")[0].partition(b",")[0] for line in self.record.splitlines()}
        return frozenset(top.decode("utf-8", "replace").partition(".")[0] for top in tops)

    @property
    def is_installed(self) -> bool:
        """Whether its files were copied to where it is: else they are those that are edited."""
        return bool(self.record) or self.site.name in SITE_FOLDERS

    @cached_property
    def requirements(self) -> tuple[Requirement, ...]:
        """What it requires."""
        return tuple(_requirements(self.metadata))

    @cached_property
    def build(self) -> str:
        """A digest of what was installed: the same version may be another build.

        Scripts and byte code are left out, for they differ from one interpreter to the next.
        """
        lines = [line for line in self.record.splitlines() if not line.startswith(b"..")]
        code = [line for line in lines if not any(part in line for part in _NOT_CODE)]
        text = b"\n".join(sorted(code)) + self.metadata.encode()
        return hashlib.blake2b(text, digest_size=4).hexdigest()


def installed() -> dict[str, Distribution]:
    """Every installed distribution by its key; of several of one name the one that is imported."""
    found: dict[str, Distribution] = {}
    for entry in dict.fromkeys(sys.path):
        for folder in _info_folders(Path(entry)):
            one = _read(folder, *(_stamp(folder / name) for name in ("METADATA", "RECORD")))
            if one is not None:
                found.setdefault(distribution_key(one.name), one)
    return found


def required(wanted: Iterable[str], known: Mapping[str, Distribution]) -> set[str]:
    """Keys of installed distributions and of all that they require, one through another.

    Args:
        wanted: Keys to begin with.
        known: All that is installed, as `installed` has it.
    """
    new = [Requirement(key) for key in wanted if key in known]
    done = set[Requirement]()
    while new:
        one = new.pop()
        if one in done:
            continue
        done.add(one)
        for further in known[one.key].requirements:
            if further.key in known and (not further.under or further.under & one.extras):
                new.append(further._replace(under=frozenset()))
    return {one.key for one in done}


def _info_folders(entry: Path) -> list[Path]:
    try:
        inside = sorted(entry.iterdir())
    except OSError:  # an archive, or nothing at all
        return []
    return [path for path in inside if path.suffix in (".dist-info", ".egg-info")]


def _stamp(file: Path) -> tuple[int, int]:
    try:
        status = file.stat()
    except OSError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=4096)
def _read(folder: Path, *stamps: tuple[int, int]) -> Distribution | None:
    """A distribution by its metadata; None where there is none. The stamps notice changes."""
    texts = {
        name: _content(folder / name)
        for name in ("METADATA", "PKG-INFO", "RECORD", "top_level.txt", "requires.txt")
    }
    about = texts["METADATA"] or texts["PKG-INFO"] or _content(folder)  # or an egg in one file
    text = about.decode("utf-8", "replace")
    head = text.replace("\r\n", "\n").partition("\n\n")[0]
    fields = dict(re.findall(r"^(Name|Version):[ \t]*(\S+)", head, re.MULTILINE))
    if "Name" not in fields:
        return None
    return Distribution(
        name=fields["Name"],
        version=fields.get("Version", ""),
        site=folder.parent.resolve(),
        record=texts["RECORD"],
        metadata="\n".join([head, *_of_egg(texts["requires.txt"].decode("utf-8", "replace"))]),
        listed=texts["top_level.txt"].decode("utf-8", "replace"),
    )


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _of_egg(text: str) -> Iterator[str]:
    """The requirements of an egg, whichever extra they stand under, as lines of metadata."""
    for line in text.splitlines():
        if line.strip() and not line.startswith(("[", "#")):
            yield f"Requires-Dist: {line}"


def _requirements(metadata: str) -> Iterator[Requirement]:
    for line in re.findall(r"^Requires-Dist:(.+)$", metadata, re.MULTILINE):
        found = _REQUIRED.match(line)
        if found is not None:
            extras = frozenset(distribution_key(one) for one in re.split(r"[,\s]+", found[2] or ""))
            under = frozenset(distribution_key(one) for one in _EXTRA.findall(line))
            yield Requirement(distribution_key(found[1]), extras - {""}, under)
