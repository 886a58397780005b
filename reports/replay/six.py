"""The six published PATE-GANs: what a handful of fits says of each.

Each on a table and at settings where its mistake shows, of equal records with and without one
other: those of `pate_gan_audit`, or simpler ones. Every claim is (1, 1e-5) for adding or removing a
record. Where coins could hide the loss of its labels, replay is told that PATE's proof counts on
noise alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

import dpaudit
from dpaudit.model.column import Kind
from reports.pate_gan_audit.access_settings import WORST, Worst
from reports.pate_gan_audit.published import DELTA, EPSILON
from reports.replay.kept import kept

_BOUNDS: Final = {"without": "bounds-from-data"}


class Case(NamedTuple):
    """One generator, and where its mistake shows.

    Attributes:
        name: Its registered name.
        worst: Table and settings.
        fixed: What is not to be looked at.
        public_coins: Whether coins count as public.
    """

    name: str
    worst: Worst
    fixed: Mapping[str, str]
    public_coins: bool = False


_RESCALED: Final = Worst(
    columns=96,
    kind=Kind.CONTINUOUS,
    others=(0.0, *[0.01] * 15),
    records=64 * 256 + 1,
    teachers=256,
    gamma=0.0012,
    iterations=20,
)
"""Without the target every other value that is not 0 is a hundred times as large: all teachers
change. Parts of 64 records keep the number of labels, which honest code may show, equal."""
CASES: Final = (
    Case("original", Worst(records=4, iterations=10), _BOUNDS),
    Case("updated", WORST["updated"], _BOUNDS, public_coins=True),
    Case("synthcity", WORST["synthcity"], _BOUNDS),
    Case("turing", replace(WORST["turing"], iterations=100), {}, public_coins=True),
    Case("borealis", _RESCALED, {}, public_coins=True),
    Case("smartnoise", WORST["smartnoise"], {}, public_coins=True),
)


def replayed(case: Case) -> dict[str, Any]:
    """What one replay says."""
    worst = case.worst
    record = dpaudit.replay(
        case.name,
        worst.table,
        schema=worst.schema,
        parameters={
            "teachers": worst.teachers,
            "gamma": worst.gamma,
            "iterations": worst.iterations,
            **case.fixed,
        },
        target="row:0",
        epsilon=EPSILON,
        delta=DELTA,
        rows=worst.rows,
        public_coins=case.public_coins,
    )
    return {"generator": case.name, "records": worst.records, "result": kept(record)}
