"""What every part of the study audits: the table, the worst case, the six as their audit ran them.

How the published audit ran them was read in its released code (spalabUCR/pategan-audit). Its
copies differ from what Table 2 describes, and so do the settings here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import pandas as pd

from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from reports import cervical

TEACHERS, GAMMA = 5, 1e-3
BOUNDS_FROM_DATA = "bounds-from-data"


class Game(StrEnum):
    """How the two worlds are made."""

    PUBLISHED = "published"
    """Bounds of each world's own table, by the implementation's doing or by the harness's.

    In the worst case 4 rows are asked in one world and 5 in the other as well: no valid game.
    """
    EQUAL_ROWS = "equal-rows"
    """Worst case only: as published but for the rows, equal in both worlds."""
    VALID = "valid"
    """The same public bounds and the same number of rows in both worlds."""


@dataclass(frozen=True)
class Harness:
    """What the published audit changed in an implementation.

    Attributes:
        adds: Deviations that it brings along.
        removes: Deviations that it fixes.
        gamma_worst: Its lambda in the worst case.
        why: In words.
    """

    why: str
    adds: frozenset[str] = frozenset()
    removes: frozenset[str] = frozenset()
    gamma_worst: float = GAMMA

    @property
    def hands_in_bounds(self) -> bool:
        """Whether bounds of each world's table are its doing, not the implementation's."""
        return BOUNDS_FROM_DATA in self.adds


HARNESS = {
    "original": Harness("its copy generates without labels", removes=frozenset({"labels-copied"})),
    "updated": Harness("scales the output back itself", removes=frozenset({"output-not-inverted"})),
    "synthcity": Harness("nothing"),
    "turing": Harness(
        "its copy reads minimum and maximum off the table it is fitted on and rounds integers; it "
        "also trains on one column more than the table has, whose memory is never written: models "
        "that end in NaN for it are left out here (`unwritten_memory` re-creates them)",
        adds=frozenset({BOUNDS_FROM_DATA}),
        removes=frozenset({"integers-truncated"}),
    ),
    "borealis": Harness(
        "scales the output back itself; its lambda is 1e-4 in the worst case",
        removes=frozenset({"output-not-inverted"}),
        gamma_worst=1e-4,
    ),
    "smartnoise": Harness(
        "its copy passes minimum and maximum of the table as bounds, takes the number of teachers "
        "as given, and batches of at most n // k",
        adds=frozenset({BOUNDS_FROM_DATA, "batch-from-rows"}),
        removes=frozenset({"teachers-from-rows"}),
    ),
}


def parameters(
    name: str,
    game: Game,
    *,
    iterations: int,
    teachers: int = TEACHERS,
    worst_case: bool = False,
    fixed: str = "",
) -> dict[str, Any]:
    """Constructor parameters of a registered generator for one game.

    Args:
        name: One of the six, or any other generator, which is taken with its defaults.
        game: How the worlds are made.
        iterations: Cap on the iterations of the generator network.
        teachers: Their number.
        worst_case: Whether this is the worst case, where one lambda differs.
        fixed: One more deviation to fix.

    Returns:
        The parameters, plain values.
    """
    if name not in HARNESS and name != "pate-gan-switched":
        return {}
    harness = HARNESS.get(name, Harness("nothing"))
    adds, removes = set(harness.adds), set(harness.removes)
    if game is Game.VALID:
        adds.discard(BOUNDS_FROM_DATA)
        if name in HARNESS:
            removes.add(BOUNDS_FROM_DATA)
    if fixed:
        adds.discard(fixed)
        removes.add(fixed)
    given: dict[str, Any] = {
        "teachers": teachers,
        "gamma": harness.gamma_worst if worst_case else GAMMA,
        "iterations": iterations,
    }
    if adds:
        given["also"] = ",".join(sorted(adds))
    if removes:
        given["without"] = ",".join(sorted(removes))
    return given


def average_table(folder: Path | None) -> pd.DataFrame:
    """Cervical Cancer as published, 686 x 29, from the folder of the public tables."""
    return cervical.published_table(folder)


def average_schema() -> Schema:
    """Its public schema, all columns numbers, as the published audit treats them."""
    schema = Schema.from_document(json.loads(cervical.SCHEMA_FILE.read_text(encoding="utf-8")))
    return replace(schema, columns=tuple(map(_as_number, schema.columns)))


def _as_number(column: Column) -> Column:
    """A binary column as the whole numbers 0 and 1."""
    if column.kind.numeric:
        return column
    lower, upper = (float(str(category)) for category in column.categories)
    return replace(column, kind=Kind.INTEGER, categories=(), lower=lower, upper=upper)


def worst_table() -> pd.DataFrame:
    """D of the worst case: (1, 1, 1), the target, before four times (0, 0, 0)."""
    return pd.DataFrame({name: [1, 0, 0, 0, 0] for name in "ABC"})


def worst_schema() -> Schema:
    """Three whole numbers, 0 or 1."""
    return Schema(
        columns=tuple(Column(name=n, kind=Kind.INTEGER, lower=0.0, upper=1.0) for n in "ABC")
    )
