"""How long the published average-case audit takes, and how much memory: shadow models to verdict.

Usage: python benchmarks/audit.py [--models 1000] [--iterations 1000] [--jobs 2] [--json]

The network and the size of the published audit (686 x 29, 5 logistic teachers), a random table,
GroundHog features, one forest, bounds and report. Wall time and CPU time are those of the whole
audit, its controls, worker processes and their start included; memory is the largest sum of what
all its processes hold at a time, sampled every 50 ms. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from training import COLUMNS, ROWS, published

from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.versions import versions

PAGE = os.sysconf("SC_PAGE_SIZE")


def held(root: int) -> dict[int, int]:
    """Resident bytes of a process and of its descendants, by process id."""
    parents, resident = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # The name, in parentheses, may hold spaces.
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        parents[int(folder.name)] = int(fields[1])
        resident[int(folder.name)] = int(fields[21]) * PAGE
    family = {root}
    while grown := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= grown
    return {pid: resident[pid] for pid in family}


class MemoryMonitor(threading.Thread):
    """Samples the memory of this process and its workers until `ended` is set.

    Attributes:
        most: The largest sum, bytes.
        largest: The most that one process held, bytes.
        ended: Ends the sampling once it is set.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most = self.largest = 0
        self.ended = threading.Event()

    def run(self) -> None:
        """Samples until the end."""
        while not self.ended.wait(0.05):
            family = held(os.getpid())
            self.most = max(self.most, sum(family.values()))
            self.largest = max(self.largest, *family.values())


def cpu() -> float:
    """CPU seconds of this process and of those that have ended."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    used = [resource.getrusage(kind) for kind in kinds]
    return sum(one.ru_utime + one.ru_stime for one in used)


def measure(*, models: int, iterations: int, jobs: int, attack: str) -> dict[str, Any]:
    """Runs one audit.

    Args:
        models: Number of shadow models of each world.
        iterations: Number of iterations of each training.
        jobs: Number of worker processes.
        attack: Name of the attack.
    """
    generator = published(iterations)
    rows = np.random.default_rng(0).random((ROWS, COLUMNS))
    data = pd.DataFrame(rows, columns=generator.schema.names)
    monitor, start, used = MemoryMonitor(), time.perf_counter(), cpu()
    monitor.start()
    with tempfile.TemporaryDirectory() as folder:
        result = audit_by_keywords(
            generator,
            data,
            schema=generator.schema,
            attacks=[attack],
            shadow_models=2 * models,
            probe=False,
            jobs=jobs,
            out=folder,
        )
        taken = time.perf_counter() - start
    monitor.ended.set()
    monitor.join()
    return {
        "audit": f"2 x {models} models, {ROWS} x {COLUMNS}, {iterations} iterations, {attack}",
        "seconds": taken,
        "cpu_seconds": cpu() - used,
        "jobs": jobs,
        "peak_mib": monitor.most / 2**20,
        "largest_process_mib": monitor.largest / 2**20,
        "verdict": result.verdict,
        "versions": versions(),
    }


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--models", type=int, default=1000, help="shadow models of each world")
    parser.add_argument("--iterations", type=int, default=1000, help="of each training")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    parser.add_argument("--attack", default="groundhog-naive", help="name of the attack")
    parser.add_argument("--json", action="store_true", help="print a JSON document")
    options = parser.parse_args()
    result = measure(
        models=options.models,
        iterations=options.iterations,
        jobs=options.jobs,
        attack=options.attack,
    )
    if options.json:
        print(json.dumps(result, indent=2))
        return
    for name, value in result.items():
        print(f"{name:>20}  {value:.1f}" if isinstance(value, float) else f"{name:>20}  {value}")


if __name__ == "__main__":
    main()
