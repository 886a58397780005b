"""The calibration study: how often each rule accuses falsely, and how much it proves.

Usage: python study.py [--quick] OUTDIR   (about 15 minutes on one core; --quick: seconds)

Writes study.json, README.md and pictures; the same numbers every time (every random stream is
derived from its name). Our rules are called from the package; those of other tools are written
again in `peers`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import other_tools
import pages
import pictures
import sections
import strength
from budget import FULL, QUICK, Budget

CELLS: tuple[Callable[[Budget], Iterable[Any]], ...] = (
    sections.preset,
    sections.any_attack,
    sections.thresholds,
    sections.several_attacks,
    sections.bands,
    sections.sequential,
    sections.one_training,
    other_tools.counted,
    other_tools.on_test_data,
    other_tools.looking,
)


def run(budget: Budget) -> dict[str, Any]:
    """Every number of the study."""
    found: dict[str, Any] = {"cells": []}
    for section in CELLS:
        started = time.perf_counter()
        found["cells"] += [cell.record() for cell in section(budget)]
        _report(section.__name__, started)
    for name, measured in (("tightness", strength.tightness), ("speed", strength.speed)):
        started = time.perf_counter()
        found[name] = measured(budget)
        _report(name, started)
    return found


def _report(name: str, started: float) -> None:
    print(f"{name}: {time.perf_counter() - started:.0f} s", flush=True)


def write(found: dict[str, Any], folder: Path) -> None:
    """Writes the numbers, the tables and the pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "study.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    (folder / "README.md").write_text(pages.readme(found))
    pictures.draw(found, folder)


def main(arguments: list[str]) -> None:
    """Runs the study."""
    quick = "--quick" in arguments
    (folder,) = [argument for argument in arguments if argument != "--quick"]
    write(run(QUICK if quick else FULL), Path(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
