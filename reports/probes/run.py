"""Seeded runs of all probes on generators that keep their claims.

Usage: python -m reports.probes.run [GENERATOR ...]   (about 15 minutes on one core; resumes)

Writes results/runs.json after every run, and the table of README.md. Each run has its own seed:
other inserted records, coins, seeds of trainings and samples. At the stated rate at most one run in
a hundred flags such a generator on average.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.probe import PROBES, ProbeStatus, probe
from dpaudit.versions import versions
from reports import markdown
from reports.command import StudyParser, start, write_json

RUNS, QUICK_RUNS = 100, 1
RECORDS = 150
GENERATORS = ("null", "laplace-histogram", "randomised-response", "pate-gan-marginals")
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
    report = probe(generator, table(), schema=SCHEMA, seed=seed)
    ended = {
        status.value: [result.id for result in report.of(status)]
        for status in ProbeStatus
        if status is not ProbeStatus.PASSED
    }
    seconds = round(time.perf_counter() - begun, 2)
    return {"seed": seed, "fits": report.fits, "seconds": seconds, **ended}


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
    """The results as a Markdown table."""
    return markdown.table(HEADS, (_row(generator, runs) for generator, runs in rows.items()))


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
        for seed in range(len(rows[generator]), QUICK_RUNS if run.quick else RUNS):
            rows[generator].append(probed(generator, seed))
            done = {name: own for name, own in rows.items() if own}
            write_json(path, {"versions": versions(), "records": RECORDS, "runs": done})
            if run.is_whole:
                markdown.replace_table(run.home / "README.md", page(done))
        print(generator, len(rows[generator]), flush=True)


if __name__ == "__main__":
    start(main)
