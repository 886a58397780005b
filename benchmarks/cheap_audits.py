"""CPU time of audits whose generators cost nothing, compared with another checkout.

Usage: python benchmarks/cheap_audits.py [--against CHECKOUT] [--models 10000] [--rounds 3] [--json]

`null`: `dpaudit audit null` with 400 shadow models on `sample:breast-cancer` (569 x 31).
`mechanism`: a noisy count of a table of 20 x 1, which takes a microsecond, with `--models` shadow
models. CPU seconds of all processes, imports included. Both checkouts take turns, because the speed
of a machine drifts: quote their ratio. A faster audit must be the same one: their stored trials are
compared too.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
import pandas as pd

from dpaudit.versions import versions

HERE: Final = Path(__file__).parents[1]
ALIKE: Final = ("--epsilon", "1", "--set", "probe=false", "--seed", "7", "--quiet")
STORED: Final = "role, world, number, status, error, claimed_epsilon, table_hash, features_sha"


def noisy_count(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """The mechanism: a sum with Laplace noise, in every row."""
    return pd.DataFrame(
        {"x": np.full(n_rows, data["x"].sum() + np.random.default_rng(seed).laplace())}
    )


def audit(checkout: Path, audited: tuple[str, ...]) -> tuple[float, str]:
    """CPU seconds of one audit by the code of a checkout, and a digest of its trials."""
    path = os.pathsep.join(str(checkout / part) for part in ("", "generators", "attacks"))
    with tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-m", "dpaudit", "audit", *audited, *ALIKE, "--out", folder],
            check=False,
            stdout=subprocess.DEVNULL,
            cwd=checkout,
            env=os.environ | {"PYTHONPATH": path},
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        with sqlite3.connect(Path(folder) / "trials.sqlite") as store:
            rows = store.execute(f"SELECT {STORED} FROM trial ORDER BY role, world, number")
            digest = hashlib.sha256(repr(rows.fetchall()).encode()).hexdigest()
        store.close()
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, digest


def compare(audited: tuple[str, ...], against: Path | None, rounds: int) -> dict[str, Any]:
    """CPU seconds of each round, here and in the other checkout."""
    checkouts = {"here": HERE} | ({} if against is None else {"against": against})
    runs = [(name, audit(path, audited)) for _ in range(rounds) for name, path in checkouts.items()]
    seconds = {name: [run[0] for key, run in runs if key == name] for name in checkouts}
    same = len({digest for _, (_, digest) in runs}) == 1
    result: dict[str, Any] = {"seconds": seconds, "same_trials": same}
    if against is not None:
        result["ratio"] = median(seconds["here"]) / median(seconds["against"])
    return result


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--against", type=Path, help="another checkout of dpaudit")
    parser.add_argument("--models", type=int, default=10_000, help="of the mechanism's audit")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print a JSON document")
    options = parser.parse_args()
    against = options.against and options.against.resolve()
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        numbers = np.random.default_rng(0).random(20).round(3)
        pd.DataFrame({"x": numbers}).to_csv(table, index=False)
        mechanism = (f"{Path(__file__).resolve()}:noisy_count", "--data", str(table))
        audits = {
            "null": ("null", "--data", "sample:breast-cancer", "--shadow-models", "400"),
            "mechanism": (*mechanism, "--shadow-models", str(options.models)),
        }
        result: dict[str, Any] = {
            name: compare(audited, against, options.rounds) for name, audited in audits.items()
        }
    if options.json:
        document = result | {"load": os.getloadavg()[0], "versions": versions()}
        print(json.dumps(document, indent=2))
        return
    for name, row in result.items():
        print(name, *(f"{key} {value}" for key, value in row.items()), sep="  ")


if __name__ == "__main__":
    main()
