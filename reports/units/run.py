"""Audits by unit: leaks over ten rows of a patient, honest twins, calibration, OpenDP, and cost.

Usage: python -m reports.units.run [PART ...]   (about two hours in one process; resumes)

Writes results/PART.json after every few audits, and the tables of README.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

import numpy as np

from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.game.pool import workers_ended
from dpaudit.game.target import choose_target
from dpaudit.game.worlds import build_game
from dpaudit.model.claim import Neighbours
from dpaudit.model.encoding import values_of_table
from dpaudit.plugins.named import named_attacks
from dpaudit.seeds import Stream, rng_of
from dpaudit.versions import versions
from dpaudit_generators.toys import uniform_table
from reports import markdown
from reports.audits import audits_table, run_audits
from reports.command import Run, StudyParser, start, write_json
from reports.units import released
from reports.units.mechanisms import (
    LEAKS,
    ROW_SCHEMA,
    SCHEMA,
    TARGET,
    UNIT,
    Answer,
    ByRow,
    FirstShare,
    visits,
)
from reports.units.towns import SCHEMA as TOWN_SCHEMA
from reports.units.towns import TOWN_LEAKS, Answers
from reports.units.towns import visits as town_visits

DEFAULT: Final = ("groundhog", "query-target", "form")
QUICK: Final = ("groundhog-naive,classifier=logistic-regression", "query-target")
AT_ONCE: Final = 10
"""Audits between two writes of the results."""


class Part(NamedTuple):
    """Audits of one kind.

    Attributes:
        asks: What is audited, in words.
        audits: How many.
        settings: Settings of each.
        by_row: Whether single rows are audited.
        many: Whether many patients are audited at once, each with a town of their own.
        honest: Whether the generators keep their claims.
    """

    asks: str
    audits: int
    settings: dict[str, Any]
    by_row: bool = False
    many: bool = False
    honest: bool = False


class Released(NamedTuple):
    """Audits or replays of a released library.

    Attributes:
        asks: What is audited, in words.
        audits: How many.
        audited: What one of them found, by its number.
        settings: Settings of each.
        quick: The same for a small version.
    """

    asks: str
    audits: int
    audited: Callable[..., dict[str, Any]]
    settings: dict[str, Any]
    quick: dict[str, Any]


ONE_RUN: Final = {"one_run": True, "canaries": 30, "rows": 3000}
RECORDS: Final = {"records": 15, "shadow_models": 8, "attacks": QUICK[1:]}

PARTS: Final = {
    "leaks": Part("leaks, by patient", 50, {"shadow_models": 60, "attacks": QUICK}),
    "honest": Part(
        "honest twins, by patient", 200, {"shadow_models": 60, "attacks": QUICK}, honest=True
    ),
    "rows": Part(
        "leaks, by row",
        50,
        {"shadow_models": 60, "attacks": QUICK, "target": "row:0"},
        by_row=True,
    ),
    "calibration": Part(
        "randomised response, by patient",
        2000,
        {"shadow_models": 40, "attacks": (FirstShare(),), "target": TARGET},
    ),
    "one_run": Part("leaks, 30 patients in one run", 50, ONE_RUN, many=True),
    "one_run_honest": Part(
        "honest twins, 30 patients in one run", 200, ONE_RUN, many=True, honest=True
    ),
    "one_run_calibration": Part(
        "randomised response, 30 patients in one run", 1000, ONE_RUN, many=True
    ),
    "records": Part("leaks, 15 patients a model", 50, RECORDS, many=True),
    "records_honest": Part(
        "honest twins, 15 patients a model", 200, RECORDS, many=True, honest=True
    ),
}
RELEASED: Final = {
    "opendp": Released(
        "opendp 0.16.0, by patient",
        20,
        released.audited,
        {"shadow_models": 60, "attacks": QUICK},
        {"shadow_models": 20, "attacks": QUICK},
    ),
    "opendp_replays": Released(
        "opendp 0.16.0, replays by patient", 30, released.replayed, {}, {"fits": 20}
    ),
}


def main(given: Sequence[str] | None = None) -> None:
    """Runs the audits that the results lack; writes the page's tables if they are its own."""
    parser = StudyParser(__file__, __doc__, parts=(*PARTS, *RELEASED, "cost"))
    run = parser.run_of(parser.parse_args(given))
    for name in run.parts:
        with workers_ended():
            if name == "cost":
                write_json(run.out / "cost.json", measured(quick=run.quick))
            else:
                _audits(name, run)
    if run.is_whole:
        markdown.replace_table(run.home / "README.md", page(run.out))


def _audits(name: str, run: Run) -> None:
    if name in RELEASED:
        settings = RELEASED[name].quick if run.quick else RELEASED[name].settings
        wanted, audited = RELEASED[name].audits, partial(RELEASED[name].audited, **settings)
    else:
        wanted, audited = PARTS[name].audits, partial(_audited, name, quick=run.quick)
    run_audits(
        run.out / f"{name}.json",
        audited,
        wanted=3 if run.quick else wanted,
        at_once=AT_ONCE,
    )


def _audited(name: str, number: int, *, quick: bool) -> dict[str, Any]:
    part = PARTS[name]
    leaks: Mapping[str, Callable[..., Any]] = TOWN_LEAKS if part.many else LEAKS
    leak = list(leaks)[number % len(leaks)]
    generator = leaks[leak](honest=part.honest)
    if "calibration" in name:
        leak, generator = "answer", Answers() if part.many else Answer()
    schema, table = (TOWN_SCHEMA, town_visits) if part.many else (SCHEMA, visits)
    fewer = {"shadow_models": 20} if quick and "shadow_models" in part.settings else {}
    began = time.perf_counter()
    result = audit_by_keywords(
        ByRow(generator=generator) if part.by_row else generator,
        table(number),
        schema=ROW_SCHEMA if part.by_row else schema,
        seed=Stream(number, "units", name).seed(),
        jobs=1,
        **part.settings | fewer,
    )
    return {
        "generator": leak,
        "verdict": result.verdict.value,
        "proved": result.proved,
        "rows": result.target.rows_of_unit,
        "attack": result.attack,
        "seconds": round(time.perf_counter() - began, 1),
    }


COSTED: Final = 1000
"""Rows of the table, and of each synthetic one, whose features are timed."""
TIMES: Final = 9


def measured(*, quick: bool) -> dict[str, Any]:
    """Seconds of the default attacks' features, for rows and for units of one row each.

    Args:
        quick: Whether to time only a small table.

    Returns:
        The medians, and whether both give the same bits.
    """
    rows = 100 if quick else COSTED
    data = uniform_table(replace(SCHEMA, unit=None), rows, rng_of(0, "cost"))
    plain = replace(SCHEMA, unit=None)
    named = data.assign(**{UNIT.column: range(rows)})
    tables = [uniform_table(plain, rows, rng_of(number, "cost tables")) for number in range(5)]
    values = np.stack([values_of_table(table, plain) for table in tables])
    seconds: dict[str, list[float]] = {"rows": [], "units": []}
    features: dict[str, Any] = {}
    chosen: dict[str, list[float]] = {"rows": [], "units": []}
    for _ in range(TIMES):
        for name, schema, table in (("rows", plain, data), ("units", SCHEMA, named)):
            began = time.perf_counter()
            target = choose_target("exposing", schema.canonical(table), schema)
            chosen[name].append(time.perf_counter() - began)
            game = build_game(
                schema.canonical(table),
                schema,
                target,
                n_rows=rows,
                neighbours=Neighbours.ADD_REMOVE,
                replacement=None,
            )
            attacks = [attack for _, attack in named_attacks(DEFAULT)]
            began = time.perf_counter()
            features[name] = [attack.features_many(values, game.view) for attack in attacks]  # type: ignore[union-attr]
            seconds[name].append(time.perf_counter() - began)
    equal = all(map(np.array_equal, features["rows"], features["units"]))
    return {
        "rows_of_tables": rows,
        "same_features": equal,
        "seconds_of_features": {name: round(median(of), 4) for name, of in seconds.items()},
        "seconds_of_choice": {name: round(median(of), 4) for name, of in chosen.items()},
        "versions": versions(),
    }


def page(out: Path) -> str:
    """The results as a Markdown table.

    Args:
        out: Folder of the results.
    """
    return audits_table(out, {name: part.asks for name, part in (PARTS | RELEASED).items()})


if __name__ == "__main__":
    start(main)
