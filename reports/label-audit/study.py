"""White-box audits of released label bits: the reference and three published mistakes.

Usage: python study.py [--quick] OUTDIR   (about four minutes on one core; --quick: seconds)

Writes results.json and the table of README.md; the same numbers every time.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import mistakes

from dpaudit.formatting import rounded, rounded_down
from dpaudit.labels import LabelAudit, audit_labels

TABLE = "<!-- table -->"


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


def played(plan: Plan) -> dict[str, Any]:
    """All repeats of one scenario."""
    scenario = plan.scenario()
    audits = [_audit(scenario, plan.runs, seed) for seed in range(plan.repeats)]
    first = audits[0].to_document()
    print(f"{scenario.name}, {plan.runs} runs: {first['verdict']}", flush=True)
    fixed = ("claim", "leak_of_the_table", "detectable_epsilon", "teachers", "noise", "labels")
    return {
        "name": scenario.name,
        "runs": plan.runs,
        "drawing": scenario.drawing.value,
        **{key: first[key] for key in (*fixed, "votes", "attack")},
        "audits": [
            {"seed": audit.settings.seed, **{key: audit.to_document()[key] for key in _EACH}}
            for audit in audits
        ],
    }


_EACH = ("verdict", "proved", "estimate_if_gaussian", "counts")


def _audit(scenario: mistakes.Scenario, runs: int, seed: int) -> LabelAudit:
    return audit_labels(
        scenario.pair, scenario.claim, runs=runs, seed=seed, drawing=scenario.drawing
    )


def table(found: list[dict[str, Any]]) -> str:
    """The results as a Markdown table."""
    lines = [
        "| what is released | runs per world | claimed ε | leaks by its table | proved, median "
        "(range) | Gaussian estimate, median (largest) | violations |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for cell in found:
        proved = [audit["proved"] for audit in cell["audits"]]
        estimates = [audit["estimate_if_gaussian"] for audit in cell["audits"]]
        violations = sum(audit["verdict"] == "violation" for audit in cell["audits"])
        median, low, high = (
            rounded_down(value) for value in (statistics.median(proved), min(proved), max(proved))
        )
        estimate = f"{rounded(statistics.median(estimates))} ({rounded(max(estimates))})"
        lines.append(
            f"| {cell['name']} | {cell['runs']} | {rounded(cell['claim']['epsilon'])} "
            f"| {rounded(cell['leak_of_the_table'])} | {median} ({low} to {high}) | {estimate} "
            f"| {violations} of {len(proved)} |"
        )
    return "\n".join(lines)


def write(found: list[dict[str, Any]], folder: Path) -> None:
    """Writes the numbers, and the table between its marks in the page."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    before, _, after = (
        Path(__file__).with_name("README.md").read_text(encoding="utf-8").split(TABLE)
    )
    page = f"{before}{TABLE}\n{table(found)}\n{TABLE}{after}"
    (folder / "README.md").write_text(page, encoding="utf-8")


def main() -> None:
    """Plays the study and writes it."""
    quick = "--quick" in sys.argv[1:]
    folders = [word for word in sys.argv[1:] if word != "--quick"]
    if len(folders) != 1:
        raise SystemExit(__doc__)
    write([played(plan) for plan in (QUICK if quick else FULL)], Path(folders[0]))


if __name__ == "__main__":
    main()
