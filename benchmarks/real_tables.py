"""Time and memory of audits of a marginal generator on large real tables, in each kind of game.

Usage: python benchmarks/real_tables.py --data DIR [--table adult credit] [--jobs N] > RESULTS.json

Adult as it is (32,561 x 15, strings and missing values) and a fifth of Credit Card Fraud
(56,962 x 30), `marginals` at epsilon 1: the game of two worlds, sequential, and one run with many
canaries, each as a program of its own, after its plan with `--set time-one=true`. Prints a JSON
document: the seconds that the plan foretold and that the audit took, and the most memory
that all processes together held (proportional set sizes, Linux: a page that several share counts
once).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from dpaudit.versions import versions

FILES: Final = {"adult": "adult.csv.gz", "credit": "credit_20pct.csv.gz"}
TIMED: Final = ("--set", "time-one=true")
GAMES: Final = {
    "two worlds": ("--shadow-models", "100"),
    "sequential": ("--sequential", "--shadow-models", "100"),
    "one run": ("--one-run", "--set", "canaries=1000"),
}
DPAUDIT: Final = (sys.executable, "-m", "dpaudit")
GENERATOR: Final = ("marginals", "-p", "epsilon=1", "-p", "delta=1e-5")
POLL_SECONDS: Final = 0.25


def descendants(process: int) -> Iterator[int]:
    """A process and those that it started, and so on."""
    yield process
    try:
        threads = list(Path(f"/proc/{process}/task").iterdir())
        children = [int(one) for of in threads for one in (of / "children").read_text().split()]
    except OSError:  # it has ended
        return
    for child in children:
        yield from descendants(child)


def proportional(process: int) -> int:
    """Its proportional set size in bytes; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def measured(command: Sequence[str]) -> dict[str, Any]:
    """One command: its seconds, exit code and peak memory in MiB, of all processes together."""
    begun, peak = time.perf_counter(), 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as run:
        assert run.stdout is not None
        while run.poll() is None:
            peak = max(peak, sum(proportional(one) for one in descendants(run.pid)))
            time.sleep(POLL_SECONDS)
        said = run.stdout.read().decode()
    seconds = time.perf_counter() - begun
    print(said, file=sys.stderr)
    return {"seconds": round(seconds, 1), "MiB": peak >> 20, "exit": run.returncode}


def main() -> None:
    """Measures what was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the public tables")
    parser.add_argument("--table", nargs="+", choices=FILES, default=list(FILES))
    parser.add_argument("--jobs", default="2")
    asked = parser.parse_args()
    audits = []
    for table in asked.table:
        data = ("--data", str(asked.data / FILES[table]))
        for game, options in GAMES.items():
            said = subprocess.run(
                [*DPAUDIT, "audit", "--plan", *GENERATOR, *data, *options, *TIMED, "--json"],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            foretold = round(json.loads(said.stdout)["seconds"])
            with tempfile.TemporaryDirectory() as folder:
                run = (
                    *options,
                    "--jobs",
                    asked.jobs,
                    "--set",
                    "probe=false",
                    "--quiet",
                    "--out",
                    folder,
                )
                found = measured([*DPAUDIT, "audit", *GENERATOR, *data, *run])
            audits.append({"table": table, "game": game, "foretold": foretold, **found})
            print(audits[-1], file=sys.stderr, flush=True)
    print(
        json.dumps({"audits": audits, "load": os.getloadavg()[0], "versions": versions()}, indent=2)
    )


if __name__ == "__main__":
    main()
