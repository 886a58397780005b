"""What a case is: a generator at exactly its claim, a table, and its twin with one mistake.

A family module has a tuple `CASES`. Its generators look like a library's code and know nothing of
dpaudit; what is true of them is stated here, by formula, and checked in tests/reports.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from dpaudit.model.claim import Neighbours, PrivacyClaim
from dpaudit.model.schema import Schema

CELLS: Final = 4


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """A generator that is honest at exactly its claim for one pair of tables.

    Attributes:
        name: Unique over all families.
        family: What it is an example of.
        generator: Makes the generator: `fit(data, *, seed)` returns a model, whose
            `sample(n, *, seed)` returns rows that conform to the schema.
        epsilon: Its claim, exactly what the release may show for this pair.
        delta: The delta of the claim.
        table: The table.
        schema: Its schema.
        target: The record by which the two worlds differ, as "row:N".
        neighbours: How they differ.
        other: The table of the other world where a record is replaced; None where it is removed.
        spends: What its steps spend for this pair by composition, at delta; None if not known.
            It is more than epsilon where later noise protects or only a combination is released.
        twin: The same code with one mistake; None if none makes sense.
        twin_marker: The comment at the end of the faulty line, `# fault: NAME`; a line that twins
            have in common ends with `# fault: NAME, OTHER`. Several lines may have it.
        twin_spends: What the twin's steps spend for this pair, at delta; infinity if no limit
            holds, None if not known.
        twin_shows: What the twin's model and rows show for this pair, at delta, by formula;
            infinity if no limit holds, None if not known.
        released: Whether noisy numbers stand in the model or in rows as they were drawn.
        disputable: Whether honest readers may differ about the claim; the note says why.
        note: Why it is honest at exactly its claim.
    """

    name: str
    family: str
    generator: Callable[[], Any]
    epsilon: float
    delta: float = 0.0
    table: pd.DataFrame
    schema: Schema
    target: str
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    other: pd.DataFrame | None = None
    spends: float | None = None
    twin: Callable[[], Any] | None = None
    twin_marker: str = ""
    twin_spends: float | None = None
    twin_shows: float | None = None
    released: bool = False
    disputable: bool = False
    note: str

    @property
    def claim(self) -> PrivacyClaim:
        """The claim."""
        return PrivacyClaim(epsilon=self.epsilon, delta=self.delta, neighbours=self.neighbours)

    @property
    def row(self) -> int:
        """The number of the target's row."""
        return int(self.target.removeprefix("row:"))

    @property
    def without(self) -> pd.DataFrame:
        """The other world's table, rows numbered from 0."""
        if self.other is not None:
            return self.other
        return self.table.drop(index=self.row).reset_index(drop=True)

    @property
    def fault_places(self) -> frozenset[str]:
        """Where the twin's mistake is: the lines of the functions that have a marked line.

        Lines are "lib.py:88"; what a marked line stores in the model is "model.name" too.
        """
        if self.twin is None:
            return frozenset()
        file = Path(inspect.getsourcefile(self.twin) or "")
        source = file.read_text(encoding="utf-8")
        named = self.twin_marker.removeprefix("# fault: ")
        marked = {
            number
            for number, line in enumerate(source.splitlines(), 1)
            if named in line.partition("# fault: ")[2].split(", ")
        }
        places = {f"{file.name}:{number}" for number in marked}
        for node in ast.walk(ast.parse(source)):
            lines = range(getattr(node, "lineno", 0), (getattr(node, "end_lineno", 0) or 0) + 1)
            if isinstance(node, ast.FunctionDef) and marked & set(lines):
                places |= {f"{file.name}:{number}" for number in lines}
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                places |= {f"model.{node.attr}"} if node.lineno in marked else set()
        return frozenset(places)


def cells_table(records: int = 40) -> pd.DataFrame:
    """Records in four cells of column `a`; the last record is alone in the last cell."""
    rng = np.random.default_rng(3)
    return pd.DataFrame({"a": np.append(rng.integers(0, CELLS - 1, size=records - 1), CELLS - 1)})


CELLS_SCHEMA: Final = Schema.from_document(
    {"columns": [{"name": "a", "kind": "integer", "lower": 0, "upper": CELLS - 1}]}
)
"""The schema of `cells_table`; its target is the last row."""


def numbers_table(records: int = 40, *, last: float = 1.0) -> pd.DataFrame:
    """Numbers `x` between 0 and .5, and the target's number, the last."""
    rng = np.random.default_rng(5)
    return pd.DataFrame({"x": np.append(rng.uniform(0.0, 0.5, size=records - 1).round(3), last)})


NUMBERS_SCHEMA: Final = Schema.from_document(
    {"columns": [{"name": "x", "kind": "continuous", "lower": 0.0, "upper": 1.0}]}
)
"""The schema of `numbers_table`."""
