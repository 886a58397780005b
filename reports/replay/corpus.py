"""Real bugs of released software, replayed: the broken release and its twin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from dpaudit.bugs.bug import Bug, known_bugs
from dpaudit.bugs.run import library_of
from dpaudit.errors import DpauditError
from dpaudit.external.environments import create_environment
from dpaudit.formatting import clipped
from dpaudit.model.tables import load
from dpaudit.replaying.run import replay
from reports.replay.released import MOST_OF_AN_ERROR, kept

COUNTED: Final = 5
_OF_REPLAY: Final = frozenset({"epsilon", "delta", "neighbours", "rows", "mu", "rho"})
"""Settings of an audit that a replay has, too."""


class BugSide(NamedTuple):
    """One side of a bug.

    Attributes:
        bug: A row of the corpus with a case.
        side: "broken" or "twin".
    """

    bug: Bug
    side: str

    def __str__(self) -> str:
        """As results name it."""
        return f"{self.bug.id}, {self.side}"


def bug_sides() -> Sequence[BugSide]:
    """Both sides of every bug that can be run."""
    return [
        BugSide(bug, side)
        for bug in known_bugs().values()
        if bug.case is not None
        for side in ("broken", "twin")
    ]


def bug_case(one: BugSide) -> dict[str, Any]:
    """What a replay says of a side; the error where it cannot be replayed."""
    case = one.bug.case
    assert case is not None
    release = case.broken if one.side == "broken" else case.twin
    found = {"method": str(one), "account": release.account}
    try:
        create_environment(release.environment, on_step=print)
        library = library_of(one.bug, case, release)
        schema = load(case.table, case.schema).schema
        record = replay(
            library.generator(case.method, schema=schema, parameters=release.parameters),
            case.table,
            schema=case.schema,
            neighbours_file=case.neighbour,
            replays=COUNTED,
            **{name: value for name, value in case.settings.items() if name in _OF_REPLAY},
        )
    except DpauditError as error:
        return {**found, "error": clipped(str(error), MOST_OF_AN_ERROR)}
    return {**found, "result": kept(record)}
