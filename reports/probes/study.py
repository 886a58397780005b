"""Seeded runs of all probes on generators that keep their claims.

Usage: python study.py results.json [RUNS] [GENERATOR ...]   (stops and resumes)

Writes results.json after every run, and the table of README.md. Each run has its own seed: other
inserted records, coins, seeds of trainings and samples. At the stated rate at most one run in a
hundred accuses such a generator on average.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpaudit.model.schema import Column, Kind, Schema
from dpaudit.probe import PROBES, ProbeStatus, probe
from dpaudit.versions import versions

RUNS = 100
RECORDS = 150
GENERATORS = ("null", "laplace-histogram", "randomised-response", "pate-gan")
TABLE = "<!-- table -->"
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


def run(generator: str, seed: int) -> dict[str, Any]:
    """One run: how each probe ended."""
    start = time.perf_counter()
    report = probe(generator, table(), schema=SCHEMA, seed=seed)
    ended = {
        status.value: [result.id for result in report.of(status)]
        for status in ProbeStatus
        if status is not ProbeStatus.PASSED
    }
    seconds = round(time.perf_counter() - start, 2)
    return {"seed": seed, "fits": report.fits, "seconds": seconds, **ended}


def page(rows: dict[str, list[dict[str, Any]]]) -> str:
    """The results as a Markdown table."""
    lines = [
        "| generator | runs | runs with an alarm | failed probes | not applicable in some run "
        "| fits per run | seconds per run |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for generator, runs in rows.items():
        skipped = {name: sum(name in row["not_applicable"] for row in runs) for name in _ids()}
        shown = ", ".join(f"{name} ({count})" for name, count in skipped.items() if count)
        lines.append(
            f"| {generator} | {len(runs)} | {sum(bool(row['alarm']) for row in runs)} "
            f"| {sum(len(row['failed']) for row in runs)} | {shown or 'none'} "
            f"| {np.mean([row['fits'] for row in runs]):.0f} "
            f"| {np.median([row['seconds'] for row in runs]):.1f} |"
        )
    return "\n".join(lines)


def _ids() -> list[str]:
    return [one.id for one in PROBES]


def _write(rows: dict[str, list[dict[str, Any]]], path: Path) -> None:
    document = {"versions": versions(), "records": RECORDS, "runs": rows}
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    readme = Path(__file__).with_name("README.md")
    before, _, after = readme.read_text(encoding="utf-8").split(TABLE)
    readme.write_text(f"{before}{TABLE}\n{page(rows)}\n{TABLE}{after}", encoding="utf-8")


def main(path: Path, runs: int, generators: list[str]) -> None:
    """Plays the runs that the file lacks."""
    rows = json.loads(path.read_text())["runs"] if path.exists() else {}
    rows = {generator: rows.get(generator, []) for generator in GENERATORS}
    for generator in generators:
        for seed in range(len(rows[generator]), runs):
            rows[generator].append(run(generator, seed))
            _write({name: found for name, found in rows.items() if found}, path)
        print(generator, len(rows[generator]), flush=True)


if __name__ == "__main__":
    words = sys.argv[1:]
    if not words:
        raise SystemExit(__doc__)
    asked = int(words[1]) if len(words) > 1 else RUNS
    main(Path(words[0]), asked, words[2:] or list(GENERATORS))
