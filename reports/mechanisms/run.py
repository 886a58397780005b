"""What `dpaudit.mechanism` finds in mechanisms of the literature, and how often falsely.

Usage: python -m reports.mechanisms.run [found] [null]   (twenty minutes on one core)

`found`: broken and honest mechanisms, ten seconds each. `null`: 500 runs of few draws of each of
four mechanisms that meet their claim exactly; 5 % of violations are due. Writes results/PART.json
and the tables of README.md; counts of `null` are the same every time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dpaudit import mechanism
from dpaudit.bounds.clopper_pearson import upper_limit
from dpaudit.results.verdict import Verdict
from dpaudit.versions import versions
from reports import markdown
from reports.command import StudyParser, start, write_json
from reports.mechanisms.literature import EXACT, MECHANISMS, Mechanism

PARTS: Final = ("found", "null")
SECONDS: Final = 10.0
RUNS: Final = 500
DRAWS: Final = 2000
QUICK: Final = 2


def _inputs(case: Mechanism) -> dict[str, Any]:
    """Inputs and claim of a case, as arguments."""
    claim: dict[str, Any] = {"epsilon": case.epsilon, "delta": case.delta}
    if case.length is not None:
        return claim | {"length": case.length}
    return claim | {"x": case.inputs[0], "x_prime": case.inputs[1]}


def found(*, quick: bool) -> list[dict[str, Any]]:
    """What ten seconds show of each mechanism."""
    cases = []
    for case in MECHANISMS[: QUICK if quick else None]:
        result = mechanism(case.function, **_inputs(case), seconds=SECONDS)
        cases.append(
            {
                "mechanism": case.what,
                "is_broken": case.is_broken,
                "claimed": case.epsilon,
                "true": case.true,
                "verdict": result.verdict,
                "is_floating_point": result.is_floating_point,
                "proved": result.proved,
                "event": result.event,
                "draws": result.draws,
                "seconds": result.seconds,
            }
        )
        print(case.what, result.verdict, flush=True)
    return cases


def null(*, quick: bool) -> list[dict[str, Any]]:
    """How often mechanisms at exactly their claim are violations."""
    runs = QUICK if quick else RUNS
    cases = []
    for case in EXACT:
        results = [
            mechanism(case.function, **_inputs(case), draws=DRAWS, seconds=600.0, seed=seed)
            for seed in range(runs)
        ]
        violations = sum(result.verdict is Verdict.VIOLATION for result in results)
        cases.append({"mechanism": case.what, "runs": runs, "violations": violations})
        print(case.what, violations, flush=True)
    return cases


STUDY: Final = {"found": found, "null": null}


def found_table(cases: Sequence[Mapping[str, Any]]) -> str:
    """What was found, and in what time."""
    heads = ("mechanism", "claimed ε", "true ε", "verdict", "proved ε", "seconds")
    rows = [
        (
            case["mechanism"],
            f"{case['claimed']:g}",
            case["true"],
            case["verdict"] + (" in floating point" if case["is_floating_point"] else ""),
            f"{case['proved']:.2f}",
            f"{case['seconds']:.0f}",
        )
        for case in cases
    ]
    broken = [case for case in cases if case["is_broken"]]
    accused = sum(case["verdict"] == Verdict.VIOLATION for case in cases if not case["is_broken"])
    told = sum(case["verdict"] == Verdict.VIOLATION for case in broken)
    counts = f"{told} of {len(broken)} broken mechanisms found, {accused} of "
    return markdown.table(heads, rows) + f"\n{counts}{len(cases) - len(broken)} honest accused.\n"


def null_table(cases: Sequence[Mapping[str, Any]]) -> str:
    """How often each was falsely a violation, and all of them."""
    runs, violations = (sum(case[key] for case in cases) for key in ("runs", "violations"))
    rows = [(case["mechanism"], case["runs"], case["violations"]) for case in cases]
    most = 100.0 * upper_limit(violations, runs, 0.05)
    said = f"{100.0 * violations / runs:.2f} % of {runs:,} runs (at most {most:.2f} %, with 95 %"
    heads = ("mechanism at exactly its claim", "runs", "violations")
    return markdown.table(heads, rows) + f"\n{said} confidence); 5 % are allowed.\n"


TABLE_OF: Final = {"found": found_table, "null": null_table}


def main(given: Sequence[str] | None = None) -> None:
    """Runs the parts, and writes the page's tables if the results are its own."""
    parser = StudyParser(__file__, __doc__, parts=PARTS)
    run = parser.run_of(parser.parse_args(given))
    for part in run.parts:
        cases = STUDY[part](quick=run.quick)
        write_json(run.out / f"{part}.json", {"versions": versions(), "cases": cases})
    if run.is_whole:
        markdown.replace_table(run.home / "README.md", page(run.out))


def page(results: Path) -> str:
    """The tables of README.md."""
    files = {part: results / f"{part}.json" for part in PARTS}
    return "\n".join(
        TABLE_OF[part](json.loads(file.read_text())["cases"])
        for part, file in files.items()
        if file.exists()
    )


if __name__ == "__main__":
    start(main)
