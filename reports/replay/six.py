"""Replays of the six published PATE-GANs: what a handful of fits says of each.

Usage: python -m reports.replay.six   (some minutes; a generator whose result is there is skipped)

Each on a table and at settings where its mistake shows, of equal records with and without one
other: those of `pate_gan_audit`, or simpler ones. Every claim is (1, 1e-5) for adding or removing a
record. Where coins could hide the loss of its labels, replay is told that PATE's proof counts on
noise alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import dpaudit
from dpaudit.versions import versions
from reports import markdown
from reports.command import StudyParser, start, write_json
from reports.pate_gan_audit.access_settings import WORST, Worst
from reports.pate_gan_audit.published import DELTA, EPSILON

COUNTED: Final = 3
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


CASES: Final = (
    Case("original", Worst(records=4, iterations=10), _BOUNDS),
    Case("updated", WORST["updated"], _BOUNDS, public_coins=True),
    Case("synthcity", WORST["synthcity"], _BOUNDS),
    Case("turing", replace(WORST["turing"], iterations=100), {}, public_coins=True),
    Case("borealis", WORST["borealis"], _BOUNDS, public_coins=True),
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
        replays=COUNTED,
        public_coins=case.public_coins,
    )
    return {
        "generator": case.name,
        "records": worst.records,
        "public_coins": case.public_coins,
        "verdict": str(record.verdict),
        "proved": None if record.proved is None else round(record.proved, 3),
        "guesses": record.guesses,
        "fits": record.fits,
        "reason": record.reasons[0],
        "parting": None if record.parting is None else record.parting.meaning,
        "costliest": record.ledger[0].place if record.ledger else None,
    }


def page(found: Sequence[dict[str, Any]]) -> str:
    """The results as a table."""
    rows = [
        (
            one["generator"],
            one["verdict"],
            "no limit" if one["proved"] is None else one["proved"],
            one["fits"],
            "public" if one["public_coins"] else "secret",
            one["reason"],
        )
        for one in found
    ]
    return markdown.table(("generator", "verdict", "ε at least", "fits", "coins", "why"), rows)


def main(given: Sequence[str] | None = None) -> None:
    """Replays what the results lack, and prints the table."""
    parser = StudyParser(__file__, __doc__, parts=tuple(case.name for case in CASES))
    run = parser.run_of(parser.parse_args(given))
    path = run.out / "six.json"
    found: list[dict[str, Any]] = json.loads(path.read_text())["cases"] if path.exists() else []
    done = {one["generator"] for one in found}
    for case in CASES:
        if case.name in run.parts and case.name not in done:
            found.append(replayed(case))
            write_json(path, {"versions": versions(), "counted": COUNTED, "cases": found})
            print(case.name, found[-1]["verdict"], found[-1]["fits"], flush=True)
    print(page(found))


if __name__ == "__main__":
    start(main)
