"""100 black-box audits of the reference PATE-GAN at (1, 1e-5) on Cervical Cancer.

Usage: python -m reports.pate_gan.run   (about 15 minutes on 2 cores; resumes where it was stopped)

The table is the one of the published audit (686 x 29), the target its record 397. Each audit has
its own seed: other partitions, other teachers, other label noise, other synthetic tables. A valid
95 % bound on a generator that keeps its promise exceeds the claim in at most 5 of 100 audits on
average.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.versions import versions
from reports import cervical
from reports.command import StudyParser, start, write_json

TABLES = ("cervical-cancer",)
EPSILON, DELTA = 1.0, 1e-5


class Size(NamedTuple):
    """How many audits, and with how many shadow models."""

    audits: int
    shadow_models: int


FULL = Size(audits=100, shadow_models=60)
QUICK = Size(audits=1, shadow_models=20)


def main(given: Sequence[str] | None = None) -> None:
    """Runs the audits that the results do not hold yet, writing them after each."""
    parser = StudyParser(__file__, __doc__, tables=TABLES, has_jobs=True)
    run = parser.run_of(parser.parse_args(given))
    size = QUICK if run.quick else FULL
    table = cervical.published_table(run.data)
    path = run.out / "audits.json"
    rows: list[dict[str, Any]] = json.loads(path.read_text())["audits"] if path.exists() else []
    for seed in range(len(rows), size.audits):
        result = audit_by_keywords(
            "pate-gan",
            table,
            schema=cervical.SCHEMA_FILE,
            parameters={"epsilon": EPSILON, "delta": DELTA},
            target=cervical.TARGET,
            shadow_models=size.shadow_models,
            seed=seed,
            jobs=run.jobs,
        )
        rows.append(
            {
                "seed": seed,
                "verdict": result.verdict.value,
                "bound": round(result.epsilon_lower_bound, 4),
                "auc": {one.name: round(one.auc, 4) for one in result.attacks},
                "max_provable_epsilon": result.max_provable_epsilon,
            }
        )
        write_json(path, summary(rows, size))
        print(rows[-1], flush=True)


def summary(rows: list[dict[str, Any]], size: Size) -> dict[str, Any]:
    """What the audits found so far."""
    verdicts = [row["verdict"] for row in rows]
    aucs = [auc for row in rows for auc in row["auc"].values()]
    return {
        "versions": versions(),
        "claim": {"epsilon": EPSILON, "delta": DELTA},
        "shadow_models": size.shadow_models,
        "verdicts": {verdict: verdicts.count(verdict) for verdict in sorted(set(verdicts))},
        "bounds_above_the_claim": sum(row["bound"] > EPSILON for row in rows),
        "bounds_above_0": sum(row["bound"] > 0 for row in rows),
        "mean_auc": round(float(np.mean(aucs)), 4),
        "audits": rows,
    }


if __name__ == "__main__":
    start(main)
