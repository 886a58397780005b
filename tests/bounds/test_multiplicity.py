"""Counting hypotheses and Bonferroni."""

from __future__ import annotations

from typing import Any

import pytest

from dpaudit.bounds import Hypotheses, bonferroni
from dpaudit.errors import SettingsError


def test_factors_multiply() -> None:
    assert Hypotheses(attacks=2).count == 2
    assert Hypotheses(2, thresholds=3, directions=2, targets=5).count == 60


def test_each_bound_gets_its_share_of_the_error() -> None:
    assert Hypotheses(1).confidence(0.95) == 0.95
    each = Hypotheses(attacks=2, thresholds=5).confidence(0.95)
    assert each == bonferroni(0.95, 10) == pytest.approx(0.995)


@pytest.mark.parametrize("name", ["attacks", "thresholds", "directions", "targets"])
@pytest.mark.parametrize("number", [0, -1, 1.5, float("inf"), "2"])
def test_hypotheses_are_counted_in_whole_numbers(name: str, number: Any) -> None:
    with pytest.raises(SettingsError, match=name):
        Hypotheses(**{"attacks": 1, name: number})


@pytest.mark.parametrize("hypotheses", [0, -3, 2.5])
def test_bonferroni_needs_a_hypothesis(hypotheses: Any) -> None:
    with pytest.raises(SettingsError, match="hypotheses"):
        bonferroni(0.95, hypotheses)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.1, float("nan")])
def test_confidence_out_of_range(confidence: float) -> None:
    for refused in (
        lambda: bonferroni(confidence, 2),
        lambda: Hypotheses(2).confidence(confidence),
    ):
        with pytest.raises(SettingsError, match="confidence"):
            refused()
