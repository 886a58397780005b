"""Every proved bug of the corpus from its schema alone: a fixed worst case, and one searched for.

Usage: python -m reports.worst_cases.run [ID ...]   (about 40 minutes in one process; resumes)

Writes results/ID.json after each, and the table of README.md. Environments are made where they are
not there yet; one of a library with the same pins serves too.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.bugs.bug import Release, Status, known_bugs
from dpaudit.bugs.run import library_of
from dpaudit.errors import RegistryError
from dpaudit.external.environments import Environment, create_environment
from dpaudit.model.tables import load
from dpaudit.plugins.named import libraries
from dpaudit.plugins.protocols import World
from dpaudit.versions import versions
from reports import markdown
from reports.command import Run, StudyParser, start, write_json

HEADS = ("bug", "side", "worst case", "models", "searched with", "proved", "provable", "verdict")
AUDITS = (("broken", "opposite"), ("broken", "search"), ("twin", "search"))
"""Sides of a bug, and the worst case that is asked for."""
QUICK_MODELS = 20


def main(given: Sequence[str] | None = None) -> None:
    """Runs the bugs that the results lack; writes the page's table if they are its own."""
    proved = [name for name, bug in known_bugs().items() if bug.status is Status.PROVED]
    parser = StudyParser(__file__, __doc__, parts=proved, has_jobs=True)
    run = parser.run_of(parser.parse_args(given))
    for name in run.parts:
        path = run.out / f"{name}.json"
        if not path.exists():
            try:
                audits = [_audited(name, side, asked, run) for side, asked in AUDITS]
            except RegistryError as error:  # such as a Python that is not there
                _say(f"{name}: {error}")
                continue
            write_json(path, {"id": name, "versions": versions(), "audits": audits})
    found = [run.out / f"{name}.json" for name in proved]
    done = [json.loads(path.read_text()) for path in found if path.exists()]
    if run.is_whole:
        markdown.replace_table(run.home / "README.md", page(done))


def page(done: Sequence[Mapping[str, Any]]) -> str:
    """The results as a Markdown table."""
    return markdown.table(HEADS, [row for one in done for row in _rows(one)])


def _rows(one: Mapping[str, Any]) -> list[Sequence[object]]:
    return [
        (
            f"`{one['id']}`" if audit["asked"] == "opposite" else "",
            audit["side"],
            f"`{audit['worst_case']}`",
            audit["models"],
            audit["searched_with"] or "",
            markdown.number(audit["proved"]),
            markdown.number(audit["provable"]),
            audit["verdict"],
        )
        for audit in one["audits"]
    ]


def _audited(name: str, side: str, asked: str, run: Run) -> dict[str, Any]:
    """One audit: the generator as the corpus calls it, its schema, and no table."""
    bug = known_bugs()[name]
    case = bug.case
    assert case is not None
    release: Release = getattr(case, side)
    release = replace(release, environment=_environment(release.environment))
    generator = library_of(bug, case, release).generator(
        case.method,
        schema=load(case.table, case.schema).schema,
        parameters=release.parameters,
    )
    begun = time.perf_counter()
    result = audit_by_keywords(
        generator,
        schema=case.schema,
        worst_case=asked,
        shadow_models=QUICK_MODELS if run.quick else case.settings["shadow_models"],
        jobs=run.jobs,
        probe=False,
    )
    selection = result.target.selection
    _say(f"{name}, {side}, {asked}: {result.target.choice}, {result.verdict}")
    return {
        "side": side,
        "asked": asked,
        "worst_case": result.target.worst_case,
        "verdict": result.verdict.value,
        "claimed": result.claimed_epsilon,
        "neighbours": result.claim.neighbours.value,
        "proved": result.proved,
        "provable": result.max_provable_epsilon,
        "models": sum(result.shadow_models.values()),
        "searched_with": selection and selection.trainings,
        "failed": {world.value: result.failures.get(world, 0) for world in World},
        "leaks": [f"{leak.feature} ({leak.column})" for leak in result.leaks[:2]],
        "seconds": round(time.perf_counter() - begun, 1),
    }


def _environment(wanted: Environment) -> Environment:
    """The environment, or one of a library that has the same pins and is there already."""
    for library in libraries():
        own = library.environment
        if own.built and set(own.requirements) == set(wanted.requirements):
            return own
    create_environment(wanted, on_step=_say)
    return wanted


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    start(main)
