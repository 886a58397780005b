"""What the part `access` audits: the six, their common trainer, and each of its switches alone.

The settings of the worst case were chosen on other trials (other seeds), one generator at a time,
because the largest proof is looked for: all of them are public, and the claim holds for any.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import Any, Final

import pandas as pd

from dpaudit.model.choices import Access
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit_generators.published import Switch
from reports.pate_gan_audit.published import SIX

REFERENCE: Final = "pate-gan-switched"
"""The trainer without a deviation."""
SWITCHES: Final = tuple(str(switch) for switch in Switch)
SHOWN: Final = (Access.OUTPUT, Access.MODEL, Access.RELEASED)
"""Levels at which each is audited."""
SUBJECTS: Final = (*SIX, REFERENCE, *SWITCHES)
FIXED: Final = {
    "original": "bounds-from-data,labels-copied",
    "updated": "bounds-from-data",
    "synthcity": "bounds-from-data",
    "borealis": "bounds-from-data",
}
"""What a valid game fixes: bounds are public.

Of original the copied labels, too: its published audit's copy has none, and with them no attack is
needed, as the switch alone shows.
"""


@dataclass(frozen=True, kw_only=True)
class Worst:
    """A worst case: records of equal values, and one of ones, which is the target.

    Attributes:
        columns: Their number.
        kind: Of every column, from 0 to 1.
        records: Records of the table of world "in".
        others: Values of those that are not the target, in turn; each has one in every column.
        teachers: Their number k.
        gamma: Inverse noise scale (lambda in the papers).
        iterations: Most iterations of a training.
        models: Shadow models, of both worlds together.
        rows: Synthetic rows of each.
        chosen: Whether attacks choose their classifier; else it is a logistic regression.
    """

    columns: int = 3
    kind: Kind = Kind.INTEGER
    records: int = 5
    others: tuple[float, ...] = (0.0,)
    teachers: int = 2
    gamma: float = 1e-3
    iterations: int = 5
    models: int = 200
    rows: int = 64
    chosen: bool = False

    @property
    def table(self) -> pd.DataFrame:
        """World "in", the target first."""
        others = islice(cycle(self.others), self.records - 1)
        values = [1.0, *others]
        return pd.DataFrame({name: values for name in self.schema.names})

    @property
    def schema(self) -> Schema:
        """Its public schema."""
        names = (f"c{number}" for number in range(self.columns))
        return Schema(
            columns=tuple(Column(name=name, kind=self.kind, lower=0.0, upper=1.0) for name in names)
        )

    @property
    def unusual(self) -> dict[str, Any]:
        """What makes the table another than one of whole numbers 0 and 1."""
        if self.kind is Kind.INTEGER:
            return {}
        return {"kind": str(self.kind), "others": list(self.others)}

    @property
    def output_attack(self) -> str:
        """The attack on synthetic rows."""
        few = self.columns <= 3 and self.kind is Kind.INTEGER
        return "query-absolute" if few else "groundhog-naive"


_LONG: Final = Worst(columns=40, records=2, teachers=1, gamma=5e-4, iterations=132, models=100)
"""As many labels as the budget pays for, and time for teachers to learn."""
_CRITIC: Final = Worst(
    columns=48, kind=Kind.CONTINUOUS, records=2, iterations=800, models=40, chosen=True
)

WORST: Final[dict[str, Worst]] = {
    "original": Worst(columns=96, records=2, iterations=1500, models=100, chosen=True),
    "updated": Worst(columns=12, iterations=20, models=800, chosen=True),
    "synthcity": Worst(records=2, iterations=15, rows=200, models=160, chosen=True),
    "turing": Worst(
        columns=48, kind=Kind.CONTINUOUS, records=2, iterations=2500, models=100, chosen=True
    ),
    "borealis": Worst(records=6, gamma=0.01, iterations=20, models=400, chosen=True),
    "smartnoise": Worst(
        records=2000, teachers=1, gamma=100.0, iterations=1, models=2000, chosen=True
    ),
    REFERENCE: replace(_LONG, models=160),
    "noise-scale-inverted": _LONG,
    "noise-gaussian-on-labels": _LONG,
    "no-pate": _CRITIC,
    "penalty-from-teachers": replace(_CRITIC, columns=24, iterations=300),
    "bounds-from-data": Worst(kind=Kind.CONTINUOUS, others=(0.0, 0.5)),
    "student-sees-real-rows": Worst(columns=24, records=2, iterations=20),
    "generator-sees-real-rows": Worst(records=2, iterations=33, rows=200),
    "conditions-from-data": Worst(records=2, rows=500, chosen=True),
    "batch-from-rows": Worst(records=6, gamma=0.01, iterations=20),
    "delta-ignored": Worst(gamma=0.01, iterations=20),
    "budget-exceeded": Worst(columns=40, records=2, teachers=1, gamma=100.0, iterations=2),
    "teachers-from-rows": Worst(records=2000, gamma=0.01, iterations=3),
}
"""The worst case of each; the default where nothing was found that shows more."""

AVERAGE_ITERATIONS: Final = {
    "original": 300,
    "turing": 300,
    "updated": 158,
    "synthcity": 5,
}
"""Iterations in the average case."""
SPENT: Final = 33
"""Iterations after which a budget of 1 is spent at lambda 0.001: those of the others."""


def generator_of(name: str) -> tuple[str, dict[str, Any]]:
    """Registered name and parameters of one that is audited, besides its settings."""
    if name in SIX:
        fixed = FIXED.get(name)
        return name, {"without": fixed} if fixed else {}
    if name == REFERENCE:
        return name, {}
    also = f"no-pate,{name}" if name == "penalty-from-teachers" else name
    return REFERENCE, {"also": also}
