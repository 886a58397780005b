"""How fast: the benchmarks that docs/performance.md quotes, one after another.

Usage: python -m reports.performance.run [PART ...] [--peer-python PEER/bin/python] [--data DIR]
(about 40 minutes on 2 cores)
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from dpaudit.errors import DpauditError
from reports.command import Run, StudyParser, start, write_text
from reports.data import table_file

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PEER = "--peer-python"


class Benchmark(NamedTuple):
    """One benchmark.

    Attributes:
        script: Name of the script under benchmarks/.
        full: Its arguments.
        quick: Its arguments in a quick run; None if it has no quick version.
        has_jobs: Whether it takes a number of worker processes.
        table: The public table whose file is its last argument; None if it needs none.
    """

    script: str
    full: tuple[str, ...] = ()
    quick: tuple[str, ...] | None = None
    has_jobs: bool = False
    table: str | None = None


TABLES = ("adult",)
FEW = ("--models", "10", "--iterations", "33")
PARTS = {
    "training": Benchmark("training.py", quick=("--quick",)),
    "features": Benchmark("features.py", full=("--quick",), quick=("--quick",)),
    "audit-33": Benchmark("audit.py", full=("--iterations", "33"), quick=FEW, has_jobs=True),
    "audit-33-large": Benchmark(
        "audit.py", full=("--iterations", "33", "--models", "10000"), has_jobs=True
    ),
    "audit-1000": Benchmark("audit.py", has_jobs=True),
    "default-audit": Benchmark("default_audit.py"),
    "generators": Benchmark("generators.py", quick=("marginals",)),
    "pytest": Benchmark("pytest_sessions.py"),
    "commands": Benchmark("commands.py"),
    "replay": Benchmark("replay.py", quick=("toy",)),
    "scaling": Benchmark("scaling.py"),
    "released-adult": Benchmark("released_data.py", full=("adult",), table="adult"),
    "released-rows": Benchmark("released_data.py", full=("rows",), quick=("rows", "500")),
}


def measure(part: str, run: Run, peer: Path | None) -> None:
    """Runs one benchmark and writes what it measured.

    Raises:
        DpauditError: If the benchmark fails.
    """
    benchmark = PARTS[part]
    arguments = benchmark.quick if run.quick else benchmark.full
    if arguments is None:
        print(f"{part}: has no quick version", flush=True)
        return
    command = [sys.executable, str(BENCHMARKS / benchmark.script), *arguments]
    if benchmark.has_jobs:
        command += ["--jobs", str(run.jobs or os.cpu_count() or 1)]
    if part == "training" and peer is not None:
        command += [PEER, str(peer)]
    if benchmark.table is not None:
        command.append(str(table_file(benchmark.table, run.data)))
    writes_files = part == "scaling"
    if writes_files:
        command += [str(run.out / "scaling.json"), str(run.out / "scaling.svg")]
    else:
        command.append("--json")
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise DpauditError(f"{benchmark.script} ended with exit code {done.returncode}")
    if not writes_files:
        write_text(run.out / f"{part}.json", done.stdout)
    print(f"{part}: done", flush=True)


def main(given: Sequence[str] | None = None) -> None:
    """Runs the benchmarks that are asked for."""
    parser = StudyParser(__file__, __doc__, parts=tuple(PARTS), tables=TABLES, has_jobs=True)
    parser.add_argument(
        PEER,
        type=Path,
        metavar="PATH",
        help="interpreter of the public peer, as benchmarks/peers.py makes it (default: no peer)",
    )
    asked = parser.parse_args(given)
    run = parser.run_of(asked)
    for part in run.parts:
        measure(part, run, asked.peer_python)


if __name__ == "__main__":
    start(main)
