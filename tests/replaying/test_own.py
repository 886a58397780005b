"""Replays of this project's generators: what they spend is what their accountants charge."""

from __future__ import annotations

import pytest

import dpaudit
from dpaudit.results.verdict import Verdict


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "parameters", "target", "total"),
    [
        ("marginals", {"tree": "label"}, "exposing", 1.0),
        ("marginals", {"tree": "deviations"}, "row:212", 1.0),  # of the largest deviations
        ("pate-gan-marginals", {}, "row:461", 0.9486),  # votes stay
    ],
)
def test_honest_generators_cost_what_they_claim_where_the_worst_case_is_met(
    name: str, parameters: dict[str, str], target: str, total: float
) -> None:
    record = dpaudit.replay(
        name, "sample:breast-cancer", parameters=parameters, target=target, fits=1
    )
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.spent == pytest.approx(total, abs=1e-4)
    assert not record.not_followed
