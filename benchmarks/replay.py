"""What listening costs: a world's process in a replay beside the same process without listening.

Usage: python benchmarks/replay.py [--rounds N] [--json] [GENERATOR ...]

Generators: `toy` (Laplace counts of 200 x 3, fitted in a millisecond), and library methods in their
pinned environments (`dpaudit env create`). In turn: a plain fit and a replay, each the median of N
rounds after one that is not timed. CPU time of a world is that of its process; the coordinator's is
that of the process that answers both. A replay takes both worlds at once on two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
import pandas as pd

from dpaudit.auditing.games import audit_settings
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec, build_two_worlds
from dpaudit.external.session import WorkerSession
from dpaudit.model.schema import Schema
from dpaudit.model.tables import load
from dpaudit.plugins.protocols import World
from dpaudit.replaying.fits import Fits
from dpaudit.replaying.processes import open_processes, prepare_start
from dpaudit.versions import versions

ROWS: Final = 200
METHODS: Final = ("toy", "datasynthesizer:independent", "smartnoise-synth:mwem", "dpmm:mst")


class LaplaceCounts:
    """Noisy counts of the cells of `a`."""

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> LaplaceCounts:
        """Adds the noise."""
        rng = np.random.default_rng(seed)
        counts = np.bincount(data["a"], minlength=4) + rng.laplace(0.0, 1.0, size=4)
        kept = np.maximum(counts, 0.0) + 1e-9
        self.shares = kept / kept.sum()
        return self

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Cells by their shares."""
        rng = np.random.default_rng(seed)
        zeros = np.zeros(n)
        return pd.DataFrame({"a": rng.choice(4, size=n, p=self.shares), "b": zeros, "x": zeros})


def table() -> tuple[pd.DataFrame, Schema]:
    """200 records of two small integers and a number."""
    rng = np.random.default_rng(0)
    whole = {"kind": "integer", "lower": 0, "upper": 3}
    columns = [{"name": "a", **whole}, {"name": "b", **whole}]
    columns.append({"name": "x", "kind": "continuous", "lower": 0.0, "upper": 1.0})
    data = pd.DataFrame(
        {"a": rng.integers(4, size=ROWS), "b": rng.integers(4, size=ROWS), "x": rng.random(ROWS)}
    )
    return data, Schema.from_document({"columns": columns})


def spec_of(method: str) -> TwoWorldSpec:
    """The two worlds of a method on the table."""
    data, schema = table()
    generator = LaplaceCounts() if method == "toy" else method
    given: dict[str, Any] = {"neighbours": "replace-one"}  # both worlds train on as much
    if method == "toy":
        given["epsilon"] = 1.0
    else:
        given["parameters"] = {"defaults": "public"}
    return build_two_worlds(generator, load(data, schema), audit_settings(**given))


def children() -> set[int]:
    """The processes that this one has started (Linux)."""
    stats = Path("/proc").glob("[0-9]*/stat")
    return {int(stat.parent.name) for stat in stats if _parent_in(stat) == os.getpid()}


def cpu_of(process: int) -> float:
    """CPU seconds of a process, to the nanosecond (Linux)."""
    threads = Path(f"/proc/{process}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) / 1e9 for task in threads)


def _parent_in(stat: Path) -> int | None:
    """The parent of a process; None if it has ended."""
    try:
        return int(stat.read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def measured(method: str, rounds: int) -> dict[str, Any]:
    """Medians of a plain fit and of a replay, seconds."""
    spec = spec_of(method)
    times: dict[str, list[float]] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        prepare_start(spec) as start,
        open_processes(start) as processes,
    ):
        fits = Fits(processes, spec)
        listening = children()
        session = WorkerSession(start, folder=Path(folder))
        [plain] = children() - listening
        for number in range(rounds + 1):
            begun, before = time.monotonic(), cpu_of(plain)
            session.synthesize(fits.tables[World.IN], rows=ROWS, seed=number)
            used = {"plain": time.monotonic() - begun, "plain_cpu": cpu_of(plain) - before}
            own, before = time.process_time(), sum(map(cpu_of, listening))
            begun = time.monotonic()
            transcript = fits.pair(number)
            used["replay"] = time.monotonic() - begun
            used["coordinator_cpu"] = time.process_time() - own
            used["world_cpu"] = (sum(map(cpu_of, listening)) - before) / 2
            if transcript.parting is not None or transcript.failures != (None, None):
                raise SystemExit(f"{method}: {transcript.failures}, {transcript.parting}")
            for name, value in used.items():
                times.setdefault(name, []).append(value)
        session.end()
    medians = {name: median(found[1:]) for name, found in times.items()}
    medians["ratio"] = medians["world_cpu"] / medians["plain_cpu"]
    return {"generator": method, **medians}


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("generators", nargs="*", default=METHODS, metavar="GENERATOR")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print a JSON document")
    options = parser.parse_args()
    rows = [measured(method, options.rounds) for method in options.generators]
    if options.json:
        document = {"rows": rows, "load": os.getloadavg()[0], "versions": versions()}
        print(json.dumps(document, indent=2))
        return
    print(
        "| generator | plain fit | world in a replay | ratio | coordinator | pair of fits, wall |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    for row in rows:
        print(
            f"| {row['generator']} | {row['plain_cpu']:.3f} s | {row['world_cpu']:.3f} s | "
            f"{row['ratio']:.2f} | {row['coordinator_cpu']:.3f} s | {row['replay']:.2f} s |"
        )


if __name__ == "__main__":
    main()
