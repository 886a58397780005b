"""The study of many records per shadow model: what its results say, and that it runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reports.records import run as study

RESULTS = Path(study.__file__).parent / "results" / "audits.json"


@pytest.fixture(scope="module")
def medians() -> dict[str, float]:
    cases: dict[str, dict[str, Any]] = json.loads(RESULTS.read_text())["cases"]
    assert list(cases) == list(study.LEAKS)
    assert all(len(case["bounds"]) == study.AUDITS for case in cases.values())
    return {name: float(np.median(case["bounds"])) for name, case in cases.items()}


def test_sixteen_records_that_leak_prove_more_than_one(medians: dict[str, float]) -> None:
    assert medians["16 records"] >= 1.9
    assert medians["one record"] < 1.4


@pytest.mark.parametrize("shift", ["", ", mu 2"])
def test_one_leak_among_sixteen_costs_at_most_a_fifth(
    shift: str, medians: dict[str, float]
) -> None:
    assert medians[f"one of 16{shift}"] >= 0.8 * medians[f"one record{shift}"]


def test_records_that_shift_one_statistic_hide_one_another(medians: dict[str, float]) -> None:
    assert 0 < medians["16 records, one statistic"] < medians["one record"]
    assert medians["16 records, one statistic"] < medians["4 records, one statistic"]


def test_none_is_accused_without_a_leak(medians: dict[str, float]) -> None:
    assert medians["none of 16"] == 0.0


def test_a_case_runs_again_to_the_same_bounds() -> None:
    kept = json.loads(RESULTS.read_text())["cases"]["one record, mu 2"]["bounds"]
    assert study.case("one record, mu 2", 1)["bounds"] == kept[:1]
