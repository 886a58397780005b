"""The calibration study: how often each rule flags falsely, and how much it proves.

Usage: python -m reports.calibration.run [paths] [rules] [audits] [defaults] [pages]

`paths` simulates thousands of audits on every path of an audit, of mechanisms exactly at their
claim and of leaks that are to be caught (about two hours on one core; what was run is kept; `--path
NAME` runs one path, `--again` anew). `rules` puts each rule alone, ours and those of other tools,
to mechanisms of known epsilon (about half an hour on one core). `audits` runs more than a thousand
whole audits of honest generators (about 90 minutes on one core; what was run is kept, and the same
command goes on); `defaults` runs two thousand more, all with the default attacks (about three hours
on one core). `pages` draws the pictures and writes README.md. The same numbers every time: every
random stream is derived from its name. Our rules are called from the package; those of other tools
are written again in `peers`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from reports.calibration import (
    audits,
    coins,
    other_tools,
    pages,
    paths,
    pictures,
    sections,
    strength,
)
from reports.calibration.budget import FULL, QUICK, Budget
from reports.command import Run, StudyParser, start, write_json, write_text

SECTIONS: tuple[Callable[[Budget], Iterable[Any]], ...] = (
    sections.preset,
    sections.any_attack,
    coins.preset_weights,
    sections.bands,
    coins.betting,
    coins.universal,
    sections.one_training,
    other_tools.counted,
    other_tools.on_test_data,
    other_tools.peeking,
)


def measure_rules(run: Run) -> None:
    """Writes every rate, tightness and speed."""
    budget = QUICK if run.quick else FULL
    found: dict[str, Any] = {"cells": []}
    for section in SECTIONS:
        started = time.perf_counter()
        found["cells"] += [cell.record() for cell in section(budget)]
        _report(section.__name__, started)
    for measured in (strength.tightness, strength.violations, strength.speed):
        started = time.perf_counter()
        found[measured.__name__] = measured(budget)
        _report(measured.__name__, started)
    write_json(run.out / "rules.json", found)


def run_paths(
    run: Run, names: Sequence[str] = (), *, audits: int | None = None, again: bool = False
) -> None:
    """Writes how often the paths flag and catch; exits if one flags honest mechanisms too often.

    Args:
        run: What was asked for.
        names: Paths to run; all if empty.
        audits: How many of each honest mechanism; those of the study if None.
        again: Whether to forget what was found on them.
    """
    size = paths.QUICK if run.quick else paths.FULL
    if audits is not None:
        size = size._replace(honest=audits, failing=audits)
    found = paths.measure(
        size, run.jobs, run.out / "paths.json", paths=names or paths.PATHS, again=again
    )
    wrong = paths.problems(found)
    if wrong:
        sys.exit("\n".join(wrong))


def run_audits(run: Run) -> None:
    """Writes bounds and verdicts of whole audits; exits if they flag honest ones too often."""
    size = audits.QUICK if run.quick else audits.FULL
    found = audits.measure(size, run.jobs, run.out / "audits.json")
    wrong = audits.problems(found, at_least=0 if run.quick else audits.AT_LEAST)
    if wrong:
        sys.exit("\n".join(wrong))


def run_defaults(run: Run) -> None:
    """Writes bounds and verdicts of audits by the default attacks; exits as `run_audits`."""
    size = audits.QUICK if run.quick else audits.DEFAULTS
    out = run.out / "defaults.json"
    found = audits.measure(size, run.jobs, out, cases=audits.DEFAULT_CASES)
    wrong = audits.problems(found, at_least=0 if run.quick else audits.AT_LEAST)
    if wrong:
        sys.exit("\n".join(wrong))


def write_pages(run: Run) -> None:
    """Draws the pictures, and writes README.md if the results are the study's own."""
    found = json.loads((run.out / "rules.json").read_text(encoding="utf-8"))
    pictures.draw(found, run.out)
    if run.is_whole:
        others = (_if_there(run.out / f"{part}.json") for part in ("paths", "audits", "defaults"))
        write_text(run.home / "README.md", pages.readme(found, *others))


def _if_there(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None


PARTS: dict[str, Callable[[Run], None]] = {
    "paths": run_paths,
    "rules": measure_rules,
    "audits": run_audits,
    "defaults": run_defaults,
    "pages": write_pages,
}


def _report(name: str, started: float) -> None:
    print(f"{name}: {time.perf_counter() - started:.0f} s", flush=True)


def main(given: Sequence[str] | None = None) -> None:
    """Runs the parts that are asked for."""
    parser = StudyParser(__file__, __doc__, parts=tuple(PARTS), has_jobs=True)
    parser.add_argument(
        "--path",
        action="append",
        choices=paths.PATHS,
        metavar="NAME",
        help=f"of `paths`, this one alone; may be repeated: {', '.join(paths.PATHS)}",
    )
    parser.add_argument(
        "--audits",
        type=int,
        metavar="N",
        help="of `paths`, how many of each honest mechanism (default: 3,000, 2,000 where it fails)",
    )
    parser.add_argument(
        "--again", action="store_true", help="of `paths`, forget what was found before"
    )
    asked = parser.parse_args(given)
    run = parser.run_of(asked)
    chosen = PARTS | {
        "paths": partial(run_paths, names=asked.path or (), audits=asked.audits, again=asked.again)
    }
    for part in run.parts:
        chosen[part](run)


if __name__ == "__main__":
    start(main)
