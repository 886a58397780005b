"""A row of the corpus: a flaw in a release, and the two audits that show it.

Rows are found through the entry point group `dpaudit.bugs`, in dpaudit and other packages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from dpaudit.errors import RegistryError
from dpaudit.external.environments import Environment
from dpaudit.formatting import did_you_mean
from dpaudit.plugins.registry import plugins


class Status(StrEnum):
    """The state of knowledge about a bug."""

    PROVED = "proved"
    """Proved by an audit of the unmodified release, and not found in its twin."""
    READ = "read"
    """Found in the code, but no audit of ours proves it reliably."""
    NOT_BUILT = "not built"
    """The release could not be installed here."""


@dataclass(frozen=True, kw_only=True)
class Release:
    """One side of a bug: an installed release, and how it is called.

    Attributes:
        environment: Where it is installed.
        account: A description: the release, and its inputs.
        parameters: Parameters of the adapter's class.
    """

    environment: Environment
    account: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Case:
    """The game in which a bug shows: the same for the broken release and its twin.

    Attributes:
        broken: The release with the bug.
        twin: The code without the bug: a release that fixes it or, before there is one, the same
            release with the leaking values passed as public. Its account says which.
        adapter: A Python file that the environment's interpreter runs.
        method: The adapter's class.
        tables: `NAME.csv`, `NAME-out.csv` and `NAME.schema.json` in one folder, without their
            endings: the table of world "in", its neighbour and their public schema.
        settings: Settings of the audit: fields of `dpaudit.AuditSettings`.
        replay_access: What the attacker of the replay sees: "rows" as that of the audit, or the
            fitted "model", too, where the library's users hand it out.
    """

    broken: Release
    twin: Release
    adapter: Path
    method: str
    tables: Path
    settings: Mapping[str, Any]
    replay_access: str = "rows"

    @property
    def table(self) -> Path:
        """The table of world "in"."""
        return self.tables.with_name(f"{self.tables.name}.csv")

    @property
    def neighbour(self) -> Path:
        """The table of world "out"."""
        return self.tables.with_name(f"{self.tables.name}-out.csv")

    @property
    def schema(self) -> Path:
        """The public schema of both."""
        return self.tables.with_name(f"{self.tables.name}.schema.json")


@dataclass(frozen=True, kw_only=True)
class Bug:
    """A privacy bug of released software.

    Attributes:
        id: Its stable name.
        package: The distribution that has it.
        versions: The affected releases, in words.
        flaw: What is wrong, in one sentence.
        source: Where it was reported or fixed; "ours" if dpaudit found it.
        status: The state of knowledge about it.
        case: The game in which it shows; None if there is none yet.
        note: Why it is not proved, or another remark.
    """

    id: str
    package: str
    versions: str
    flaw: str
    source: str
    status: Status
    case: Case | None = None
    note: str = ""


GROUP: Final = "dpaudit.bugs"
"""An entry point of this group is a sequence of `Bug`."""


def known_bugs() -> dict[str, Bug]:
    """Every registered bug by its id, sorted.

    Raises:
        RegistryError: If an entry point is no sequence of bugs, or an id is there twice.
    """
    bugs: dict[str, Bug] = {}
    for name, value in plugins(GROUP).items():
        rows = list(value) if isinstance(value, Iterable) else []
        if not rows or not all(isinstance(row, Bug) for row in rows):
            raise RegistryError(f"plugin {name!r} is no sequence of dpaudit.bugs.bug.Bug")
        for row in rows:
            if row.id in bugs:
                raise RegistryError(f"plugin {name!r}: the bug {row.id} is registered twice")
            bugs[row.id] = row
    return dict(sorted(bugs.items()))


def known_environments() -> list[Environment]:
    """The environments of all bugs that can be run, of both sides.

    Raises:
        RegistryError: As `known_bugs`.
    """
    cases = [bug.case for bug in known_bugs().values() if bug.case is not None]
    return [side.environment for case in cases for side in (case.broken, case.twin)]


def bug_named(name: str) -> Bug:
    """The bug with an id.

    Raises:
        RegistryError: If there is no such bug.
    """
    known = known_bugs()
    if name not in known:
        raise RegistryError(f"no bug {name!r}{did_you_mean(name, list(known))}; see `dpaudit bugs`")
    return known[name]
