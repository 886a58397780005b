"""Audits of two tables: leaks that only the keys show, honest twins, and the leaks without keys.

Usage: python -m reports.linked_tables.run [PART ...]   (20 minutes in one process; resumes)

Writes results/PART.json after every few audits, and the table of README.md.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.game.pool import workers_ended
from dpaudit.results.verdict import Verdict
from dpaudit.seeds import Stream
from dpaudit.versions import versions
from reports import markdown
from reports.command import Run, StudyParser, start, write_json
from reports.linked_tables.mechanisms import LEAKS, SCHEMA, Answer, WithoutKeys, hospital

QUICK: Final = ("groundhog-naive,classifier=logistic-regression", "query-target")
AT_ONCE: Final = 5
"""Audits between two writes of the results."""


class Part(NamedTuple):
    """Audits of one kind.

    Attributes:
        asks: What is audited, in words.
        audits: How many.
    """

    asks: str
    audits: int


PARTS: Final = {
    "leaks": Part("leaks", 20),
    "honest": Part("honest twins", 20),
    "without_keys": Part("leaks, keys not released", 20),
    "answer": Part("randomised response", 40),
}
GENERATORS: Final = {
    "leaks": lambda leak: LEAKS[leak](),
    "honest": lambda leak: LEAKS[leak](honest=True),
    "without_keys": lambda leak: WithoutKeys(LEAKS[leak]()),
    "answer": lambda leak: Answer(),
}


def main(given: Sequence[str] | None = None) -> None:
    """Runs the audits that the results lack; writes the page's table if they are its own."""
    parser = StudyParser(__file__, __doc__, parts=tuple(PARTS))
    run = parser.run_of(parser.parse_args(given))
    for name in run.parts:
        with workers_ended():
            _audits(name, run)
    if run.is_whole:
        markdown.replace_table(run.home / "README.md", page(run.out))


def _audits(name: str, run: Run) -> None:
    part, path = PARTS[name], run.out / f"{name}.json"
    found = json.loads(path.read_text())["audits"] if path.exists() else []
    wanted = 2 if run.quick else part.audits
    for number in range(len(found), wanted):
        found.append(_audited(name, number, quick=run.quick))
        if len(found) % AT_ONCE == 0 or len(found) == wanted:
            write_json(path, {"part": name, "versions": versions(), "audits": found})
            print(f"{name}: {len(found)} of {wanted}", file=sys.stderr, flush=True)


def _audited(name: str, number: int, *, quick: bool) -> dict[str, Any]:
    leak = list(LEAKS)[number % len(LEAKS)]
    began = time.perf_counter()
    result = audit_by_keywords(
        GENERATORS[name](leak),
        hospital(number),
        schema=SCHEMA,
        seed=Stream(number, "linked tables", name).seed(),
        jobs=1,
        attacks=QUICK,
        shadow_models=20 if quick else 60,
    )
    return {
        "generator": "answer" if name == "answer" else leak,
        "verdict": result.verdict.value,
        "proved": result.proved,
        "auc": result.auc,
        "rows": result.target.rows_of_unit,
        "attack": result.attack,
        "seconds": round(time.perf_counter() - began, 1),
    }


HEADS: Final = ("audits", "generator", "number", "violations", "median proved", "median seconds")


def page(out: Path) -> str:
    """The results as a Markdown table.

    Args:
        out: Folder of the results.
    """
    return markdown.table(HEADS, [row for name in PARTS for row in _rows(out / f"{name}.json")])


def _rows(path: Path) -> Iterator[Sequence[object]]:
    if not path.exists():
        return
    audits = json.loads(path.read_text())["audits"]
    for generator in sorted({one["generator"] for one in audits}):
        own = [one for one in audits if one["generator"] == generator]
        flagged = sum(one["verdict"] == Verdict.VIOLATION.value for one in own)
        proved = [one["proved"] for one in own if one["proved"] is not None]
        yield (
            PARTS[path.stem].asks,
            generator,
            len(own),
            flagged,
            markdown.number(median(proved)),
            markdown.number(median(one["seconds"] for one in own), 1),
        )


if __name__ == "__main__":
    start(main)
