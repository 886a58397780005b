"""Which record an audit attacked, and why that one, as data: a part of `result.json`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from dpaudit.game.target import Exposure
from dpaudit.model.choices import WorstCase
from dpaudit.results.document import Limits
from dpaudit.results.fields import OPTIONAL, Positive, Whole


@dataclass(frozen=True, kw_only=True)
class Selection:
    """How the most vulnerable record was searched for.

    Attributes:
        candidates: Records compared.
        trainings: Models trained for it; none of them is among the shadow models.
    """

    candidates: Annotated[int, Limits(minimum=2)]
    trainings: Positive


@dataclass(frozen=True, kw_only=True)
class TargetOfAudit:
    """The record whose membership is attacked.

    Attributes:
        choice: How it was chosen: exposing, farthest, vulnerable, row:N, record:FILE,
            worst-case:NAME or neighbours-file:FILE; canaries in a one-run audit, records in one
            of many records per model.
        row: Its row in the table, from 0; null if it is not a row of the table.
        exposures: Of an exposing target, the facts that it was chosen for, what counts most first;
            empty if nothing in the table exposes a record, so that the farthest was taken; absent
            where it was chosen otherwise.
        selection: How a vulnerable target was searched for; absent where it was named.
        compared: Of a table too large to compare all records with each other, how many were
            compared with all others to find the farthest; absent where all were, or none had to be.
        worst_case: The name of the worst case; absent where there is none.
        neighbours_file: The file of the neighbouring table; absent where there is none.
        tables: Of a worst case or a pair of one's own: what both tables are and why they make a
            valid game; absent where a target was chosen.
    """

    choice: str
    row: Whole | None
    exposures: tuple[Exposure, ...] | None = field(default=None, metadata=OPTIONAL)
    selection: Selection | None = field(default=None, metadata=OPTIONAL)
    compared: Positive | None = field(default=None, metadata=OPTIONAL)
    worst_case: WorstCase | None = field(default=None, metadata=OPTIONAL)
    neighbours_file: str | None = field(default=None, metadata=OPTIONAL)
    tables: str | None = field(default=None, metadata=OPTIONAL)
