"""Faults: what becomes of audits that are killed, starved, spoilt, or given a hostile generator.

Usage: python -m reports.faults.run [PART ...]   (about 40 minutes on 2 cores; Linux)

Runs benchmarks/faults once for each part, writes results/PART.json and the table of README.md.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpaudit.errors import DpauditError
from reports import markdown
from reports.command import StudyParser, start

CAMPAIGN = Path(__file__).parents[2] / "benchmarks" / "faults"
PARTS = (
    *("coordinator", "process-group", "worker", "grandchild", "watcher", "generator"),
    "worker-protocol",
    *("disk", "files", "changed", "output", "two-coordinators"),
)
HEADS = ("what", "fault", "faults", "failures", "seconds")


def inject(part: str, *, out: Path, quick: bool) -> None:
    """Injects the faults of one part.

    Raises:
        DpauditError: If any of them did what it must not.
    """
    words = [sys.executable, str(CAMPAIGN), "--only", f"{part.replace('-', ' ')}: "]
    words += ["--out", str(out), *(["--quick"] if quick else [])]
    if subprocess.run(words, stdout=subprocess.DEVNULL, check=False).returncode:
        raise DpauditError(f"{part}: not every fault was harmless; see {out / part}.json")


def page(kinds: Sequence[dict[str, Any]]) -> str:
    """The results as Markdown."""
    faults = sum(kind["faults"] for kind in kinds)
    failures = sum(len(kind["failures"]) for kind in kinds)
    there = sum(kind["faults"] > 0 for kind in kinds)
    rows = (
        (
            *(kind["group"], kind["name"], kind["not_here"] or kind["faults"]),
            *(len(kind["failures"]), f"{kind['seconds']:.0f}"),
        )
        for kind in kinds
    )
    total = f"**{faults} faults of {there} kinds, {failures} failures.**\n\n"
    return total + markdown.table(HEADS, rows)


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the parts asked for; writes the page's table from all that are there."""
    parser = StudyParser(__file__, __doc__, parts=PARTS)
    run = parser.run_of(parser.parse_args(argv))
    for part in run.parts:
        inject(part, out=run.out, quick=run.quick)
    if run.is_whole:
        files = [file for part in PARTS if (file := run.out / f"{part}.json").exists()]
        kinds = [kind for file in files for kind in json.loads(file.read_text())["kinds"]]
        markdown.replace_table(run.home / "README.md", page(kinds))


if __name__ == "__main__":
    start(main)
