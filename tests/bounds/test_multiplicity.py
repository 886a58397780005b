"""Bonferroni."""

from __future__ import annotations

from typing import Any

import pytest

from dpaudit.bounds import bonferroni
from dpaudit.errors import SettingsError


def test_each_bound_gets_its_share_of_the_error() -> None:
    assert bonferroni(0.95, 1) == 0.95
    assert bonferroni(0.95, 10) == pytest.approx(0.995)


@pytest.mark.parametrize("hypotheses", [0, -3, 2.5, float("inf"), "2"])
def test_hypotheses_are_counted_in_whole_numbers(hypotheses: Any) -> None:
    with pytest.raises(SettingsError, match="hypotheses"):
        bonferroni(0.95, hypotheses)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.1, float("nan")])
def test_confidence_out_of_range(confidence: float) -> None:
    with pytest.raises(SettingsError, match="confidence"):
        bonferroni(confidence, 2)
