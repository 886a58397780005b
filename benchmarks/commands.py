"""How long commands take: two that train nothing, and the first audit of the README.

Usage: python benchmarks/commands.py [--rounds N] [--json]

Median CPU time of `dpaudit --help` and of `dpaudit audit --plan` for a pure and an approximate
claim, in turn, each as a program of its own. Then the audit that README.md starts with, once.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Final

from pytest_sessions import measured

from dpaudit.versions import versions

COMMANDS: Final = ("--help", "audit --plan --epsilon 1", "audit --plan --epsilon 1 --delta 1e-5")

README: Final = Path(__file__).parents[1] / "README.md"


def first_audit() -> tuple[str, ...]:
    """The audit that README.md starts with, without lines of progress."""
    [words] = re.findall(r"&& \S+/dpaudit (audit .+)", README.read_text(encoding="utf-8"))
    return (*shlex.split(words), "-q")


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true", help="print a JSON document")
    options = parser.parse_args()
    times: dict[str, list[float]] = {words: [] for words in COMMANDS}
    program, first = (sys.executable, "-m", "dpaudit"), first_audit()
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds + 1):
            for words, found in times.items():
                found.append(measured((*program, *words.split()), folder)[0])
        used, seconds, ended = measured((*program, *first), folder)
    audit = {"cpu_seconds": used, "seconds": seconds, "exit": ended}
    rows = [  # the first round fills caches
        {"command": f"dpaudit {words}", "cpu_seconds": statistics.median(found[1:])}
        for words, found in times.items()
    ]
    if options.json:
        result = {
            "commands": rows,
            "first_audit": audit,
            "load": os.getloadavg()[0],
            "versions": versions(),
        }
        print(json.dumps(result, indent=2))
        return
    for row in rows:
        print(f"{row['cpu_seconds']:.2f} s  {row['command']}")
    print(f"{used:.2f} s  dpaudit {' '.join(first)}")


if __name__ == "__main__":
    main()
