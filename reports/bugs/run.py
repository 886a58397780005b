"""Every bug of the corpus that has a case: the broken release and its twin, audited.

Usage: python -m reports.bugs.run [ID ...]   (about 40 minutes on two cores; resumes)

Writes results/ID.json after each, and the table of README.md. Environments are made where they are
not there yet; their making is not timed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dpaudit.bugs.bug import Bug, known_bugs
from dpaudit.bugs.run import Side, run_bug
from dpaudit.plugins.protocols import World
from dpaudit.versions import versions
from reports import markdown
from reports.command import StudyParser, start, write_json

HEADS = (
    "bug",
    "audited",
    "models",
    "claimed",
    "proved",
    "provable",
    "verdict",
    "seconds",
)
QUICK_MODELS = 20


def main(given: Sequence[str] | None = None) -> None:
    """Runs the bugs that the results lack; writes the page's table if they are its own."""
    bugs = {name: bug for name, bug in known_bugs().items() if bug.case is not None}
    parser = StudyParser(__file__, __doc__, parts=tuple(bugs), has_jobs=True)
    run = parser.run_of(parser.parse_args(given))
    for name in run.parts:
        path = run.out / f"{name}.json"
        if not path.exists():
            bug = _quick(bugs[name]) if run.quick else bugs[name]
            sides = run_bug(bug, jobs=run.jobs, on_step=_say)
            document = {"id": name, "versions": versions(), "sides": [_side(of) for of in sides]}
            write_json(path, document)
            _say(f"{name}: {', '.join(of.result.verdict for of in sides)}")
    found = [run.out / f"{name}.json" for name in bugs]
    done = [json.loads(path.read_text()) for path in found if path.exists()]
    if run.is_whole:
        markdown.replace_table(run.home / "README.md", page(done))


def page(done: Sequence[Mapping[str, Any]]) -> str:
    """The results as a Markdown table."""
    return markdown.table(HEADS, [row for one in done for row in _rows(one)])


def _rows(one: Mapping[str, Any]) -> list[Sequence[object]]:
    return [
        (
            f"`{one['id']}`" if side["name"] == "broken" else "",
            side["account"],
            side["models"],
            f"{side['claimed']:g}",
            markdown.number(side["proved"]),
            markdown.number(side["provable"]),
            side["verdict"] + ("" if side["as_expected"] else " (not as expected)"),
            f"{side['seconds']:.0f}",
        )
        for side in one["sides"]
    ]


def _side(side: Side) -> dict[str, Any]:
    result = side.result
    return {
        "name": side.name,
        "account": side.account,
        "verdict": result.verdict.value,
        "as_expected": side.as_expected,
        "claimed": result.claimed_epsilon,
        "delta": getattr(result.claim, "delta", None),
        "neighbours": result.claim.neighbours.value,
        "proved": result.proved,
        "provable": result.max_provable_epsilon,
        "models": sum(result.shadow_models.values()),
        "failed": {world.value: result.failures.get(world, 0) for world in World},
        "seconds": round(side.seconds, 1),
    }


def _quick(bug: Bug) -> Bug:
    assert bug.case is not None
    small = {**bug.case.settings, "shadow_models": QUICK_MODELS}
    return replace(bug, case=replace(bug.case, settings=small))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    start(main)
