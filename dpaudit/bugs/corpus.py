"""Finds the rows of the corpus: ours and other packages', through the group `dpaudit.bugs`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dpaudit.bugs.bug import Bug
from dpaudit.errors import RegistryError
from dpaudit.external.environments import Environment
from dpaudit.formatting import did_you_mean
from dpaudit.plugins.registry import plugins

GROUP: Final = "dpaudit.bugs"
"""An entry point of this group is a sequence of `Bug`."""


def known_bugs() -> dict[str, Bug]:
    """Every registered bug by its id, sorted.

    Raises:
        RegistryError: If an entry point is no sequence of bugs, or an id is there twice.
    """
    found: dict[str, Bug] = {}
    for name, value in plugins(GROUP):
        rows = list(value) if isinstance(value, Iterable) else []
        if not rows or not all(isinstance(row, Bug) for row in rows):
            raise RegistryError(f"plugin {name!r} is no sequence of dpaudit.bugs.bug.Bug")
        for row in rows:
            if row.id in found:
                raise RegistryError(f"plugin {name!r}: the bug {row.id} is registered twice")
            found[row.id] = row
    return dict(sorted(found.items()))


def known_environments() -> list[Environment]:
    """The environments of all bugs that can be run, of both sides.

    Raises:
        RegistryError: As `known_bugs`.
    """
    cases = [bug.case for bug in known_bugs().values() if bug.case is not None]
    return [side.environment for case in cases for side in (case.broken, case.twin)]


def bug_named(name: str) -> Bug:
    """The bug of an id.

    Raises:
        RegistryError: If there is none.
    """
    known = known_bugs()
    if name not in known:
        raise RegistryError(f"no bug {name!r}{did_you_mean(name, list(known))}; see `dpaudit bugs`")
    return known[name]
