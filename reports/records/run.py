"""What many records per shadow model prove of simulated leaks, beside one record.

Usage: python -m reports.records.run [LEAK ...]   (about 5 minutes on one core; resumes)

Each audit fixes its calibration on 160 models and scores 240, at delta 1e-5 and 95 % confidence. A
record's score is normal and shifted by mu where the record is in. Writes results/audits.json after
every case, and the table of README.md.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dpaudit.bounds import choose_calibration, count_guesses, fair_coin
from dpaudit.bounds.calibration import calibrate_records, count_record_guesses
from dpaudit.plugins.protocols import BoolArray, FloatArray
from dpaudit.seeds import Stream
from dpaudit.versions import versions
from reports import markdown
from reports.command import StudyParser, start, write_json

AUDITS, QUICK_AUDITS = 40, 1
FITTED, SCORED = 160, 240
DELTA, CONFIDENCE = 1e-5, 0.95


class Leak(NamedTuple):
    """A case of the study: records per model, those of them that leak, and their shift.

    Attributes:
        records: Records per model.
        leaking: Those of them that leak.
        mu: Their shift.
        together: Whether they all shift one statistic, so that each hides the others; else each
            shifts its own.
    """

    records: int
    leaking: int
    mu: float
    together: bool = False


LEAKS = {
    "one record": Leak(1, 1, 1.0),
    "16 records": Leak(16, 16, 1.0),
    "one of 16": Leak(16, 1, 1.0),
    "4 of 16": Leak(16, 4, 1.0),
    "one record, mu 2": Leak(1, 1, 2.0),
    "16 records, mu 2": Leak(16, 16, 2.0),
    "one of 16, mu 2": Leak(16, 1, 2.0),
    "none of 16": Leak(16, 0, 0.0),
    "4 records, one statistic": Leak(4, 4, 1.0, together=True),
    "16 records, one statistic": Leak(16, 16, 1.0, together=True),
}


def audited(leak: Leak, rng: np.random.Generator) -> float:
    """The bound of one audit; of one record by the rule that audits of one target use."""
    halves = np.repeat((np.arange(FITTED) % 2 == 0)[:, None], leak.records, axis=1)
    included = rng.permuted(halves, axis=0)
    scores = _scores(leak, included, rng)
    coins = rng.integers(2, size=(SCORED, leak.records)).astype(np.bool_)
    scored = _scores(leak, coins, rng)
    if leak.records == 1:
        calibration = choose_calibration(
            scores[:, 0], included[:, 0], trials=SCORED, delta=DELTA, confidence=CONFIDENCE
        )
        guesses = count_guesses(scored[:, 0], coins[:, 0], calibration)
    else:
        found = calibrate_records(
            scores, included, trainings=SCORED, delta=DELTA, confidence=CONFIDENCE, rng=rng
        )
        guesses = count_record_guesses(found.calibration.guesses(scored), coins)
    return fair_coin(*guesses, delta=DELTA, confidence=CONFIDENCE)


def _scores(leak: Leak, included: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Scores of each record [n, k] by models that had some of them [n, k]."""
    shifts = np.where(np.arange(leak.records) < leak.leaking, leak.mu, 0.0) * included
    if not leak.together:
        return rng.normal(size=included.shape) + shifts
    seen = rng.normal(size=(len(included), 1)) + shifts.sum(axis=1, keepdims=True)
    return np.repeat(seen, leak.records, axis=1)


def case(name: str, audits: int) -> dict[str, Any]:
    """All audits of one case."""
    rngs = [Stream(3, "", f"records/{name}", number).rng() for number in range(audits)]
    bounds = [round(audited(LEAKS[name], rng), 4) for rng in rngs]
    return {**LEAKS[name]._asdict(), "bounds": bounds}


HEADS = ("records", "that leak", "shift", "mu", "audits", "median bound", "middle half", "above 0")


def page(cases: dict[str, dict[str, Any]]) -> str:
    """The results as a Markdown table."""
    return markdown.table(HEADS, (_row(one) for one in cases.values()))


def _row(one: dict[str, Any]) -> Sequence[object]:
    low, middle, high = np.quantile(one["bounds"], [0.25, 0.5, 0.75])
    return (
        one["records"],
        one["leaking"],
        "one statistic" if one["together"] else "their own",
        f"{one['mu']:g}",
        len(one["bounds"]),
        f"{middle:.2f}",
        f"{low:.2f} to {high:.2f}",
        sum(bound > 0 for bound in one["bounds"]),
    )


def main(given: Sequence[str] | None = None) -> None:
    """Runs the cases that the results lack; writes the page's table if they are its own."""
    parser = StudyParser(__file__, __doc__, parts=tuple(LEAKS))
    run = parser.run_of(parser.parse_args(given))
    path = run.out / "audits.json"
    found = json.loads(path.read_text())["cases"] if path.exists() else {}
    for name in run.parts:
        if name not in found:
            found[name] = case(name, QUICK_AUDITS if run.quick else AUDITS)
        done = {name: found[name] for name in LEAKS if name in found}
        write_json(
            path, {"versions": versions(), "fitted": FITTED, "scored": SCORED, "cases": done}
        )
        if run.is_whole:
            markdown.replace_table(run.home / "README.md", page(done))
        print(name, np.median(found[name]["bounds"]), flush=True)


if __name__ == "__main__":
    start(main)
