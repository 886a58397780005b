"""Seeded runs of all probes on generators that keep their claims.

Usage: python -m reports.probes.run [GENERATOR ...]   (about an hour on one core; resumes)

Writes results/runs.json after every ten runs, and the table of README.md. Each run has its own
seed: other inserted records, coins, seeds of trainings and samples. At the stated rate at most one
run in a hundred flags such a generator on average.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from dpaudit.auditing.games import audit_settings
from dpaudit.formatting import percent
from dpaudit.model.choices import Severity
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.probe import PROBES, ProbeStatus, probe
from dpaudit.versions import versions
from reports import markdown
from reports.command import StudyParser, start, write_json
from reports.probes.followers import QUESTIONS, Copier, Follower

RUNS, QUICK_RUNS = 200, 1
SLOW = {"pate-gan-marginals": 40}
"""Fewer runs, of a generator that takes seconds for one."""
AT_ONCE = 10
"""Runs between two writes of the results."""
RECORDS = 150
REGISTERED = ("null", "laplace-histogram", "randomised-response", "pate-gan-marginals")
COPIER = "copies"
GENERATORS = (*REGISTERED, *QUESTIONS, COPIER)
CONFIDENCE = 0.99
SCHEMA = Schema(
    columns=(
        Column(name="age", kind=Kind.INTEGER, lower=0, upper=120),
        Column(name="income", kind=Kind.CONTINUOUS, lower=0, upper=100, missing=True),
        Column(name="job", kind=Kind.CATEGORICAL, categories=("a", "b", "c", "d")),
        Column(name="sick", kind=Kind.BINARY, categories=(0, 1)),
    ),
    label="sick",
)


def table() -> pd.DataFrame:
    """A table in which every probe but that of rare records has something to do."""
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 60, RECORDS),
            "income": rng.normal(30, 5, RECORDS).round(3),
            "job": rng.choice(["a", "b", "c"], RECORDS),
            "sick": rng.choice([0, 1], RECORDS, p=[0.7, 0.3]),
        }
    )


def probed(generator: str, seed: int) -> dict[str, Any]:
    """One run: how each probe ended."""
    begun = time.perf_counter()
    report = probe(_built(generator), table(), schema=SCHEMA, seed=seed, confidence=CONFIDENCE)
    ended = {
        status.value: [result.id for result in report.of(status)]
        for status in ProbeStatus
        if status is not ProbeStatus.PASSED
    }
    seconds = round(time.perf_counter() - begun, 2)
    p_values = [
        one.p_value
        for one in report.probes
        if one.severity is Severity.VIOLATION and one.p_value is not None
    ]
    least = min(p_values, default=1.0)
    return {"seed": seed, "fits": report.fits, "seconds": seconds, "least_p": least, **ended}


def _built(generator: str) -> object:
    """A registered generator by its name, or one at the edge of its claim."""
    if generator in REGISTERED:
        return generator
    return Copier(table()) if generator == COPIER else Follower(generator, table())


HEADS = (
    "generator",
    "runs",
    "runs with an alarm",
    "failed probes",
    "not applicable in some run",
    "fits per run",
    "seconds per run",
)


def page(rows: dict[str, list[dict[str, Any]]]) -> str:
    """The results as a Markdown table, and the rate of alarms over all runs."""
    table = markdown.table(HEADS, (_row(generator, runs) for generator, runs in rows.items()))
    return f"{table}\n{_rates([run for runs in rows.values() for run in runs])}\n"


def _rates(runs: Sequence[dict[str, Any]]) -> str:
    """How many honest runs raised an alarm, at the level of `probe` and at that of an audit."""
    before_audit = audit_settings().probes_confidence
    said = []
    for what, confidence in (
        ("dpaudit probe", CONFIDENCE),
        ("probes before an audit", before_audit),
    ):
        nominal = 1.0 - confidence
        alarms = sum(run["least_p"] <= nominal / len(PROBES) for run in runs)
        most = binomtest(alarms, len(runs), alternative="less").proportion_ci(0.99).high
        said.append(
            f"At the level of {what}, {alarms} of {len(runs)} honest runs raise an alarm with the "
            f"severity of a violation: with 99 % confidence at most {100 * most:.2f} % do, where "
            f"{percent(round(nominal, 12))} may."
        )
    return "\n\n".join(said)


def _row(generator: str, runs: list[dict[str, Any]]) -> Sequence[object]:
    skipped = {one.id: sum(one.id in row["not_applicable"] for row in runs) for one in PROBES}
    shown = ", ".join(f"{name} ({count})" for name, count in skipped.items() if count)
    return (
        generator,
        len(runs),
        sum(bool(row["alarm"]) for row in runs),
        sum(len(row["failed"]) for row in runs),
        shown or "none",
        f"{np.mean([row['fits'] for row in runs]):.0f}",
        f"{np.median([row['seconds'] for row in runs]):.1f}",
    )


def main(given: Sequence[str] | None = None) -> None:
    """Makes the runs that the results lack; writes the page's table if they are the study's own."""
    parser = StudyParser(__file__, __doc__, parts=GENERATORS)
    run = parser.run_of(parser.parse_args(given))
    path = run.out / "runs.json"
    found = json.loads(path.read_text())["runs"] if path.exists() else {}
    rows: dict[str, list[dict[str, Any]]] = {name: found.get(name, []) for name in GENERATORS}
    for generator in run.parts:
        wanted = QUICK_RUNS if run.quick else SLOW.get(generator, RUNS)
        for seed in range(len(rows[generator]), wanted):
            rows[generator].append(probed(generator, seed))
            if len(rows[generator]) not in (wanted, *range(0, wanted, AT_ONCE)):
                continue
            done = {name: own for name, own in rows.items() if own}
            write_json(path, {"versions": versions(), "records": RECORDS, "runs": done})
            if run.is_whole:
                markdown.replace_table(run.home / "README.md", page(done))
        print(generator, len(rows[generator]), flush=True)


if __name__ == "__main__":
    start(main)
