"""The study of noisy marginals: what its tables count, and what the page of the generator cites."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

from reports.marginals import audits, run

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "reports" / "marginals" / "results"


def test_a_limit_above_the_claim_is_counted_whatever_the_verdict_makes_of_it() -> None:
    case = audits.AUDITS[0]
    rows: list[dict[str, Any]] = [
        {"verdict": "consistent", "proved": 1.5},
        {"verdict": "consistent", "proved": audits.MU},
        {"verdict": "violation", "proved": 2.125},
        {"verdict": "invalid", "proved": None},
    ]
    [line] = audits.page({"cases": {case.name: rows}}).splitlines()[2:]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells == [
        "released", "300", "1.75 (0 to 2.12)", "2 consistent, 1 invalid, 1 violation", "1 of 4",
        "0.13 % to 88.9 %",
    ]  # fmt: skip


def test_the_generator_s_page_says_what_the_study_found() -> None:
    limits = json.loads((RESULTS / "limits.json").read_text())["cases"]
    whole = json.loads((RESULTS / "audits.json").read_text())["cases"]
    page = " ".join((ROOT / "docs" / "generators" / "marginals.md").read_text().split())
    worst, *by_budget = (limits[case.name] for case in run.CASES)
    for case, rows in zip(run.CASES[1:], by_budget, strict=True):
        share = median(one["proved"] / one["claimed"] for one in rows)
        assert f"{case.models:,} models prove {share:.2f} of it".replace(" 0.", " .") in page
    default = [one for rows in by_budget[1:4] for one in rows]
    above = sum(one["proved"] > one["claimed"] for one in default)
    assert f"of these {len(default)} limits {above} was above the claim" in page
    above = sum(one["proved"] > one["claimed"] for one in worst)
    assert f"of {len(worst)} limits at the true claim {above} was above it" in page
    for case in audits.AUDITS:
        rows = whole[case.name]
        above = sum((one["proved"] or 0.0) > audits.MU for one in rows)
        assert f"{above} of {len(rows)} at `--access {case.access}`" in page
