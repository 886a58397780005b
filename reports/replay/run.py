"""Replays of mechanisms whose privacy is known: how often they are accused, and how much is proved.

Usage: python -m reports.replay.run [honest]   (about 20 minutes on two idle cores; resumes)

Whole replays through `dpaudit.replay`, 20 counted replays each, at exactly the claims; written to
results/honest.json after every mechanism, and the table of README.md.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from scipy.stats import beta

from dpaudit.replaying.run import replays_of
from dpaudit.versions import versions
from reports import markdown
from reports.command import StudyParser, start, write_json
from reports.replay.mechanisms import MECHANISMS, SCHEMA, Mechanism, table

WHOLE: Final = 60
"""Whole replays of each mechanism."""
QUICK: Final = 2
COUNTED: Final = 20


def case(mechanism: Mechanism, whole: int) -> dict[str, Any]:
    """What whole replays of one mechanism say."""
    records = list(
        replays_of(
            mechanism, table(), range(whole), schema=SCHEMA, replays=COUNTED, target="row:39"
        )
    )
    proved = [np.inf if one.proved is None else one.proved for one in records]
    return {
        "mechanism": mechanism.name,
        "epsilon": round(mechanism.epsilon, 4),
        "delta": mechanism.delta,
        "replays": whole,
        "verdicts": {
            word: sum(one.verdict == word for one in records)
            for word in ("consistent", "inconclusive", "violation")
        },
        "proved": round(float(np.median(proved)), 4),
        "above": sum(one > mechanism.epsilon * (1 + 1e-9) for one in proved),
        "computed": records[0].computed,
        "seconds": round(float(np.median([one.seconds for one in records])), 2),
    }


def page(cases: Sequence[dict[str, Any]]) -> str:
    """The results as a table, and the rate over all."""
    rows = [
        (
            one["mechanism"],
            f"{one['epsilon']:.3g}",
            one["replays"],
            f"{one['proved']:.3g} ({100 * one['proved'] / one['epsilon']:.0f} %)",
            "–" if one["computed"] is None else f"{one['computed']:.3g}",
            one["verdicts"]["violation"],
            one["verdicts"]["inconclusive"],
            f"{one['seconds']:.1f}",
        )
        for one in cases
    ]
    heads = (
        "mechanism",
        "true ε",
        "whole replays",
        "proved, median",
        "computed",
        "violation",
        "inconclusive",
        "seconds",
    )
    count = sum(one["replays"] for one in cases)
    wrong = sum(one["verdicts"]["violation"] for one in cases)
    limit = float(beta.ppf(0.99, wrong + 1, count - wrong)) if count > wrong else 1.0
    said = (
        f"\n{wrong} of {count} whole replays at exactly the claim end in a violation: with 99 % "
        f"confidence at most {100 * limit:.2f} % do, where 5 % may.\n"
    )
    return markdown.table(heads, rows) + said


def main(given: Sequence[str] | None = None) -> None:
    """Runs the mechanisms that the results lack; writes the page's table if they are its own."""
    parser = StudyParser(__file__, __doc__, parts=("honest",))
    run = parser.run_of(parser.parse_args(given))
    path = run.out / "honest.json"
    cases: list[dict[str, Any]] = json.loads(path.read_text())["cases"] if path.exists() else []
    done = {one["mechanism"] for one in cases}
    for mechanism in MECHANISMS:
        if mechanism.name in done:
            continue
        cases.append(case(mechanism, QUICK if run.quick else WHOLE))
        write_json(path, {"versions": versions(), "counted": COUNTED, "cases": cases})
        if run.is_whole:
            markdown.replace_table(run.home / "README.md", page(cases))
        print(mechanism.name, cases[-1]["proved"], cases[-1]["verdicts"], flush=True)


if __name__ == "__main__":
    start(main)
