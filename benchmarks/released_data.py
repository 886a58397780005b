"""Time and memory of `dpaudit split` and `dpaudit audit-data`, as programs with one thread each.

Usage: python benchmarks/released_data.py adult ADULT    a release that keeps 1 % of Adult
       python benchmarks/released_data.py rows [N]        N (1,000,000) synthetic rows against N

`adult` splits Adult, permutes each column of train by itself, copies 1 % of train whole, and audits
that. `rows` draws 2 N rows of 12 columns of every kind that depend on three factors, splits them
into about N train and N hold-out rows, and audits N further rows of the same population, of which
1 % are copied from train. With --json one JSON object, else a line for each step.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from dpaudit.versions import versions

KEPT: Final = 0.01
"""Share of the synthetic rows that are copied from train."""
ROWS: Final = 1_000_000
ONE_THREAD: Final = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}


def population(rows: int, seed: int) -> pd.DataFrame:
    """Rows of 12 columns: numbers, whole numbers and categories, all from three factors."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(rows, 3))

    def mixed(*weights: float) -> np.ndarray[Any, np.dtype[np.float64]]:
        found: np.ndarray[Any, np.dtype[np.float64]] = factors @ np.asarray(weights)
        return found + rng.normal(size=rows)

    def cut(name: str, many: int, *weights: float) -> np.ndarray[Any, Any]:
        places = np.clip((mixed(*weights) + 3.0) / 6.0 * many, 0, many - 1).astype(int)
        return np.array([f"{name} {place}" for place in range(many)])[places]

    return pd.DataFrame(
        {
            "age": np.clip(40 + 10 * mixed(1, 0, 0), 17, 90).astype(int),
            "income": np.exp(10 + 0.5 * mixed(0.5, 1, 0)).round(0),
            "hours": np.clip(40 + 6 * mixed(0, 1, 0), 1, 99).astype(int),
            "score": mixed(0, 0, 1).round(3),
            "weight": (70 + 8 * mixed(0, 0.5, 0.5)).round(1),
            "distance": np.exp(2 + 0.7 * mixed(0.3, 0.3, 0.3)).round(2),
            "sex": cut("sex", 2, 0.2, 0, 0),
            "town": cut("town", 20, 0, 0.4, 0.4),
            "job": cut("job", 12, 0.5, 0.5, 0),
            "school": cut("school", 8, 1, 0, 0),
            "home": cut("home", 4, 0, 0, 1),
            "owner": cut("owner", 2, 0, 1, 0),
        }
    )


def keeping(drawn: pd.DataFrame, train: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Drawn rows, some of which are replaced by the train row in their place."""
    most = min(len(drawn), len(train))
    kept = np.flatnonzero(np.random.default_rng(seed).random(most) < KEPT)
    drawn.iloc[kept] = train.iloc[kept].to_numpy()
    return drawn


def permuted(train: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Each column of a table in an order of its own."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: rng.permutation(train[name].to_numpy()) for name in train})


def measured(*arguments: str) -> dict[str, Any]:
    """Runs `dpaudit` and says what it took; a leak that is found is no error."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "dpaudit", *arguments]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | ONE_THREAD)
    assert program.stdout is not None
    output = program.stdout.read()
    _, status, used = os.wait4(program.pid, 0)
    program.returncode = os.waitstatus_to_exitcode(status)
    if program.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} ended with {program.returncode}")
    return {
        "seconds": round(time.perf_counter() - began, 1),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "peak_mib": round(used.ru_maxrss / 1024),
        "output": output.decode(),
    }


def audited(table: str, drawn: pd.DataFrame | None, folder: Path) -> dict[str, Any]:
    """Splits a file, makes a synthetic table of its train rows, and audits it.

    Args:
        table: The file.
        drawn: Synthetic rows, of which some are replaced; None for permuted columns of train.
        folder: For the files.

    Returns:
        What both commands took, and the finding.
    """
    split = measured("split", "--data", table, "--to", str(folder / "split"), "--seed", "1")
    train = pd.read_csv(folder / "split" / "train.csv", keep_default_na=False)
    made = keeping(permuted(train, 2) if drawn is None else drawn, train, 3)
    made.to_csv(folder / "synthetic.csv", index=False)
    del train, made
    files = ("synthetic.csv", "split/train.csv", "split/holdout.csv", "split/coins.json")
    options = [part for file in files for part in (f"--{Path(file).stem}", str(folder / file))]
    audit = measured("audit-data", *options, "--json")
    found = json.loads(audit.pop("output"))
    split.pop("output")
    return {
        "split": split,
        "audit": audit,
        "rows": found["rows"],
        "finding": found["finding"],
        "p_value": found["membership"]["p_value"],
        "proved": found["bound"]["proved"],
    }


def adult(source: str, folder: Path) -> dict[str, Any]:
    """A release of Adult that keeps 1 % of its rows."""
    return audited(source, None, folder)


def rows(number: str, folder: Path) -> dict[str, Any]:
    """Synthetic rows against as many train rows and hold-out rows."""
    size, table = int(number), folder / "table.csv"
    population(2 * size, 1).to_csv(table, index=False)
    return audited(str(table), population(size, 2), folder)


def main() -> None:
    """Measures what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("mode", choices=["adult", "rows"])
    parser.add_argument("of", nargs="?", metavar="ADULT|N", default=str(ROWS))
    asked = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        found = {"adult": adult, "rows": rows}[asked.mode](asked.of, Path(folder))
    if asked.json:
        found["load_average"] = [round(load, 1), round(os.getloadavg()[0], 1)]
        found["versions"] = versions()
        print(json.dumps(found, indent=1))
        return
    for step in ("split", "audit"):
        took = found[step]
        print(
            f"{step}: {took['cpu_seconds']} s CPU, {took['seconds']} s, {took['peak_mib']} MiB peak"
        )
    print(f"{found['finding']}, epsilon at least {found['proved']:.2f}")


if __name__ == "__main__":
    main()
