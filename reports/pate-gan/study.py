"""100 black-box audits of the reference PATE-GAN at (1, 1e-5) on Cervical Cancer.

Usage: python study.py DATA_FOLDER results.json   (about 15 minutes on 2 cores; stops and resumes)

DATA_FOLDER holds cervical_cancer.csv.gz (UCI). The table is the one of the published audit
(686 x 29), the target its record 397. Each audit has its own seed: other partitions, other
teachers, other label noise, other synthetic tables. A valid 95 % bound on a generator that keeps
its promise exceeds the claim in at most 5 of 100 audits on average.
"""

from __future__ import annotations

import json
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import numpy as np

import dpaudit
from dpaudit.versions import versions

AUDITS = 100
SHADOW_MODELS = 60
EPSILON, DELTA = 1.0, 1e-5
FIRST_LIGHT = Path(__file__).parents[1] / "first-light"


def main(data_folder: Path, path: Path) -> None:
    """Plays the audits that `path` does not hold yet, writing it after each."""
    prepare = SourceFileLoader("prepare", str(FIRST_LIGHT / "prepare_cervical.py")).load_module()
    table = prepare.published_table(str(data_folder / "cervical_cancer.csv.gz"))
    rows: list[dict[str, Any]] = json.loads(path.read_text())["audits"] if path.exists() else []
    for seed in range(len(rows), AUDITS):
        result = dpaudit.audit(
            "pate-gan",
            table,
            schema=FIRST_LIGHT / "cervical.schema.json",
            parameters={"epsilon": EPSILON, "delta": DELTA},
            target=397,
            shadow_models=SHADOW_MODELS,
            seed=seed,
        )
        document = result.document
        rows.append(
            {
                "seed": seed,
                "verdict": result.verdict.value,
                "bound": round(result.epsilon_lower_bound, 4),
                "auc": {a["name"]: round(a["auc"], 4) for a in document["attacks"]},
                "max_provable_epsilon": document["max_provable_epsilon"],
            }
        )
        path.write_text(json.dumps(summary(rows), indent=1) + "\n")
        print(rows[-1], flush=True)


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What the audits found so far."""
    verdicts = [row["verdict"] for row in rows]
    aucs = [auc for row in rows for auc in row["auc"].values()]
    return {
        "versions": versions(),
        "claim": {"epsilon": EPSILON, "delta": DELTA},
        "shadow_models": SHADOW_MODELS,
        "verdicts": {verdict: verdicts.count(verdict) for verdict in sorted(set(verdicts))},
        "bounds_above_the_claim": sum(row["bound"] > EPSILON for row in rows),
        "bounds_above_0": sum(row["bound"] > 0 for row in rows),
        "mean_auc": round(float(np.mean(aucs)), 4),
        "audits": rows,
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
