"""What the pytest plugin costs: a session without audits, and one audit at each scale.

Usage: python benchmarks/pytest_sessions.py [--rounds N] [--json]

CPU time of `pytest --collect-only` in an empty folder with the plugin and with `-p no:dpaudit`, in
turn, and the median of the differences. Then CPU and wall time of a session with one test, which
audits `marginals` on a table of 569 x 31 at the scales smoke and ci: imports, controls, shadow
models, attacks, report.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from dpaudit.versions import versions

PYTEST: Final = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
WITHOUT: Final = ("-p", "no:dpaudit")
SCALES: Final = ("smoke", "ci")
TEST: Final = """
def test_promise(dp_audit):
    claim = {"epsilon": 1.0, "delta": 1e-5}
    result = dp_audit("marginals", "sample:breast-cancer", parameters=claim, jobs=1)
    assert result.verdict != "violation"
"""


def measured(command: tuple[str, ...], folder: str) -> tuple[float, float, int]:
    """CPU seconds of a command with all that it started, its wall seconds and its exit code."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=False)
    seconds, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, seconds, done.returncode


def start_up(rounds: int) -> dict[str, float]:
    """Medians of CPU seconds with and without the plugin, and of their differences."""
    with tempfile.TemporaryDirectory() as folder:
        pairs = []
        for _ in range(rounds + 1):
            without = measured((*PYTEST, *WITHOUT, "--collect-only"), folder)[0]
            pairs.append((without, measured((*PYTEST, "--collect-only"), folder)[0]))
    without, with_it = zip(*pairs[1:], strict=True)  # the first round fills caches
    slower = [after - before for before, after in pairs[1:]]
    return {
        "rounds": rounds,
        "without": statistics.median(without),
        "with": statistics.median(with_it),
        "difference": statistics.median(slower),
    }


def audited(scale: str) -> dict[str, Any]:
    """A session with one audit."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "test_promise.py").write_text(TEST)
        command = (*PYTEST, "--dpaudit-scale", scale)
        used, seconds, ended = measured(command, folder)
    return {"scale": scale, "cpu_seconds": used, "seconds": seconds, "exit": ended}


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true", help="print a JSON document")
    options = parser.parse_args()
    result = {
        "start_up": start_up(options.rounds),
        "audits": [audited(scale) for scale in SCALES],
        "load": os.getloadavg()[0],
        "versions": versions(),
    }
    if options.json:
        print(json.dumps(result, indent=2))
        return
    for row in (result["start_up"], *result["audits"]):
        print("  ".join(f"{name} {value}" for name, value in row.items()))


if __name__ == "__main__":
    main()
