"""CPU time of a default audit of a generator that costs nothing, and of its forest.

Usage: python benchmarks/default_audit.py [--models 100 400] [--json]

`dpaudit audit null --data sample:breast-cancer --epsilon 1 --set probe=false` as a program of its
own: CPU time of the coordinator and of its workers, imports included. Then the forest of
`classifier=chosen` beside scikit-learn's random forest with as many trees, on the same normal
features, one of which has another spread in world "in": CPU time and AUC on trials that neither
saw, the mean of interleaved rounds in one process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score

from dpaudit.versions import versions
from dpaudit_attacks.chosen import CUTS, MANY
from dpaudit_attacks.trees import grow

FEATURES: Final = 64
TREES: Final = 16
UNSEEN: Final = 500
ROUNDS: Final = 10
AUDIT: Final = (
    "audit",
    "null",
    "--data",
    "sample:breast-cancer",
    "--epsilon",
    "1",
    "--set",
    "probe=false",
)
_MEASURED: Final = """
import resource, sys
from dpaudit.cli.main import main
try:
    main()
finally:
    used = [resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    with open(sys.argv[-1] + "/cpu", "w") as file:
        print(*(one.ru_utime + one.ru_stime for one in used), file=file)
"""
"""The program; its last argument is the run folder, where it leaves its CPU times."""


def audit(models: int) -> dict[str, float]:
    """CPU seconds of one audit with that many shadow models."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--shadow-models", str(models), "--quiet", "--out", folder]
        command = [sys.executable, "-c", _MEASURED, *AUDIT, *options]
        subprocess.run(
            command,
            check=False,
            stdout=subprocess.DEVNULL,
            env=os.environ | {"PYTHONDONTWRITEBYTECODE": ""},
        )
        coordinator, workers = map(float, (Path(folder) / "cpu").read_text().split())
    return {"models": models, "coordinator": coordinator, "workers": workers}


def forests(trials: int, seed: int) -> dict[str, float]:
    """Seconds and AUC of both forests, fitted to that many trials."""
    rng = np.random.default_rng(seed)
    member = rng.permutation(np.arange(trials + UNSEEN) % 2 == 1)
    features = rng.normal(size=(len(member), FEATURES))
    features[:, 4] *= np.where(member, 0.3, 1.2)
    cuts = FEATURES * (CUTS if trials < MANY else 1)
    start = time.process_time()
    ours = grow(features[:trials], member[:trials], trees=TREES, cuts=cuts, rng=rng)
    between = time.process_time()
    theirs = RandomForestClassifier(TREES, max_features=1 / 3, random_state=seed, n_jobs=1)
    theirs.fit(features[:trials], member[:trials])
    end = time.process_time()
    votes, shares = ours.votes(features[trials:]), theirs.predict_proba(features[trials:])[:, 1]
    return {
        "trials": trials,
        "seconds": between - start,
        "sklearn_seconds": end - between,
        "auc": float(roc_auc_score(member[trials:], votes)),
        "sklearn_auc": float(roc_auc_score(member[trials:], shares)),
    }


def mean(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    """The mean of each value."""
    return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]}


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--models", type=int, nargs="+", default=[100, 400])
    parser.add_argument("--json", action="store_true", help="print a JSON document")
    options = parser.parse_args()
    result: dict[str, Any] = {
        "audits": [audit(models) for models in options.models],
        "forests": [
            mean([forests(trials, seed) for seed in range(ROUNDS)])
            for trials in (85, 128, 400, 1600)
        ],
        "load": os.getloadavg()[0],
        "versions": versions(),
    }
    if options.json:
        print(json.dumps(result, indent=2))
        return
    for row in (*result["audits"], *result["forests"]):
        print("  ".join(f"{name} {value:.4g}" for name, value in row.items()))


if __name__ == "__main__":
    main()
