"""Audits of two tables: leaks that only the keys show, honest twins, and the leaks without keys.

Usage: python -m reports.linked_tables.run [PART ...]   (20 minutes in one process; resumes)

Writes results/PART.json after every few audits, and the table of README.md.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.game.pool import workers_ended
from dpaudit.seeds import Stream
from reports import markdown
from reports.audits import audits_table, run_audits
from reports.command import Run, StudyParser, start
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
    "answer": Part("randomised response", 1000),
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
    part = PARTS[name]
    run_audits(
        run.out / f"{name}.json",
        lambda number: _audited(name, number, quick=run.quick),
        wanted=2 if run.quick else part.audits,
        at_once=AT_ONCE,
    )


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


def page(out: Path) -> str:
    """The results as a Markdown table.

    Args:
        out: Folder of the results.
    """
    return audits_table(out, {name: part.asks for name, part in PARTS.items()})


if __name__ == "__main__":
    start(main)
