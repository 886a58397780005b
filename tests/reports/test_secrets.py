"""The study of secrets: no more is proved than holds, and a copy is found."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from scipy.stats import binom

from reports.secrets import run as study
from reports.secrets.run import PARTS

RESULTS = Path(study.__file__).parent / "results"
NOMINAL = 0.025
"""Probability that the bound of the guess exceeds the truth."""


def audits(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((RESULTS / f"{name}.json").read_text())["audits"]
    assert len(found) == PARTS[name].audits
    return found


def test_at_exactly_the_claim_the_bound_exceeds_it_no_more_often_than_allowed() -> None:
    above = sum(audit["proved"] > 1.0 for audit in audits("calibration"))
    assert above > 0
    assert binom.sf(above - 1, 1000, NOMINAL) > 0.05


def test_of_a_known_epsilon_more_models_prove_more_and_not_too_much() -> None:
    known = [audits(f"answer_{models}") for models in (100, 400, 1600)]
    proved = [mean(audit["proved"] for audit in of) for of in known]
    assert proved == sorted(proved)
    assert 1.5 < proved[-1] < 2.0
    assert sum(audit["proved"] > 2.0 for of in known for audit in of) <= 4


def test_a_copy_is_found_and_nothing_where_there_is_nothing() -> None:
    assert sum(audit["proved"] > 1.0 for audit in audits("copy")) >= 18
    assert {audit["proved"] for audit in audits("nothing")} == {0.0}
    assert {audit["verdict"] for audit in audits("whole_copy")} == {"violation"}
    assert sum(audit["verdict"] == "violation" for audit in audits("whole")) <= 4


@pytest.mark.parametrize("name", ["nothing", "copy"])
def test_the_study_gives_the_same_numbers_again(name: str) -> None:
    assert study._guessed(PARTS[name], name, 0) == audits(name)[0]
