"""White-box audits of released label bits: the reference and three published mistakes.

Usage: python -m reports.label_audit.run   (about four minutes on one core)

Writes results/audits.json and the table of README.md; the same numbers every time.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dpaudit.formatting import rounded, rounded_down
from dpaudit.labels import LabelAudit, audit_labels
from reports import markdown
from reports.command import StudyParser, start, write_json
from reports.label_audit import mistakes

HEADS = (
    "what is released",
    "runs per world",
    "claimed ε",
    "leaks by its table",
    "proved, median (range)",
    "Gaussian estimate, median (largest)",
    "violations",
)


class Plan(NamedTuple):
    """How often a scenario is audited, and with how many runs of each world."""

    scenario: Callable[[], mistakes.Scenario]
    runs: int
    repeats: int


FULL = (
    Plan(mistakes.reference, 100_000, 20),
    Plan(mistakes.reference, 10_000, 20),
    *(Plan(mistake, 100_000, 5) for mistake in mistakes.MISTAKES),
)
QUICK = (
    Plan(mistakes.reference, 10_000, 3),
    *(Plan(mistake, 10_000, 1) for mistake in mistakes.MISTAKES),
)


_FIXED = ("claim", "leak_of_the_table", "detectable_epsilon", "teachers", "noise", "labels")
_EACH = ("verdict", "proved", "estimate_if_gaussian", "counts")


def audited(plan: Plan) -> dict[str, Any]:
    """All repeats of one scenario."""
    scenario = plan.scenario()
    audits = [_audit(scenario, plan.runs, seed) for seed in range(plan.repeats)]
    first = audits[0].to_document()
    print(f"{scenario.name}, {plan.runs} runs: {first['verdict']}", flush=True)
    return {
        "name": scenario.name,
        "runs": plan.runs,
        "drawing": scenario.drawing.value,
        **{key: first[key] for key in (*_FIXED, "votes", "attack")},
        "audits": [
            {"seed": audit.seed, **{key: audit.to_document()[key] for key in _EACH}}
            for audit in audits
        ],
    }


def _audit(scenario: mistakes.Scenario, runs: int, seed: int) -> LabelAudit:
    return audit_labels(
        scenario.pair, scenario.claim, runs=runs, seed=seed, drawing=scenario.drawing
    )


def table(found: list[dict[str, Any]]) -> str:
    """The results as a Markdown table."""
    return markdown.table(HEADS, map(_row, found))


def _row(cell: dict[str, Any]) -> Sequence[object]:
    proved = [audit["proved"] for audit in cell["audits"]]
    estimates = [audit["estimate_if_gaussian"] for audit in cell["audits"]]
    violations = sum(audit["verdict"] == "violation" for audit in cell["audits"])
    median, low, high = (
        rounded_down(value) for value in (statistics.median(proved), min(proved), max(proved))
    )
    return (
        cell["name"],
        cell["runs"],
        rounded(cell["claim"]["epsilon"]),
        rounded(cell["leak_of_the_table"]),
        f"{median} ({low} to {high})",
        f"{rounded(statistics.median(estimates))} ({rounded(max(estimates))})",
        f"{violations} of {len(proved)}",
    )


def main(given: Sequence[str] | None = None) -> None:
    """Runs the study; writes the numbers, and the table of the page if they are the study's own."""
    parser = StudyParser(__file__, __doc__)
    run = parser.run_of(parser.parse_args(given))
    found = [audited(plan) for plan in (QUICK if run.quick else FULL)]
    write_json(run.out / "audits.json", found)
    if run.is_whole:
        markdown.replace_table(run.home / "README.md", table(found))
    else:
        print(table(found))


if __name__ == "__main__":
    start(main)
