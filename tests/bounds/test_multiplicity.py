"""Counting hypotheses, Bonferroni and Holm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from dpaudit.bounds import Hypotheses, bonferroni
from dpaudit.errors import SettingsError
from dpaudit.research.holm import holm


def families(number: int) -> Iterator[list[float]]:
    """Families of 2 to 13 p-values, the first of them tied, many of them near 0.1/m."""
    rng = np.random.default_rng(12)
    for _ in range(number):
        p_values = (0.1 * rng.random(int(rng.integers(1, 13))) ** 2).tolist()
        yield [p_values[0], *p_values]


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
        lambda: holm([0.01], confidence=confidence),
    ):
        with pytest.raises(SettingsError, match="confidence"):
            refused()


def test_holm_by_hand() -> None:
    # 0.01 ≤ 0.05/4; 0.0125 ≤ 0.05/3; 0.03 > 0.05/2 stops; 0.04 ≤ 0.05/1 comes too late.
    assert holm([0.04, 0.01, 0.03, 0.0125], confidence=0.95) == [False, True, False, True]
    # Bonferroni, at 0.05/4 = 0.0125 for each, would refute only one here.
    assert holm([0.9, 0.01, 0.9, 0.016], confidence=0.95) == [False, True, False, True]


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_holm_agrees_with_statsmodels(confidence: float) -> None:
    refuted = kept = 0
    for p_values in families(10):
        expected = multipletests(p_values, alpha=1.0 - confidence, method="holm")[0].tolist()
        assert holm(p_values, confidence=confidence) == expected
        refuted += sum(expected)
        kept += len(expected) - sum(expected)
    assert refuted > 3
    assert kept > 3


def test_holm_refutes_whatever_bonferroni_does() -> None:
    more = 0
    for p_values in families(200):
        alpha = 1.0 - bonferroni(0.9, len(p_values))
        alone = [p_value <= alpha for p_value in p_values]
        together = holm(p_values, confidence=0.9)
        assert all(also for also, one in zip(together, alone, strict=True) if one)
        more += sum(together) - sum(alone)
    assert more > 0


def test_holm_errs_as_rarely_as_promised() -> None:
    # Three false claims with tiny p-values; five true ones, uniform and independent. Any of the
    # five is refuted with probability 1 − (1 − α/5)^5 = 0.183 at α = 0.2.
    rng = np.random.default_rng(8)
    runs = 2000
    wrong = sum(
        any(holm([1e-6] * 3 + rng.random(5).tolist(), confidence=0.8)[3:]) for _ in range(runs)
    )
    assert wrong / runs == pytest.approx(0.183, abs=0.03)


@pytest.mark.parametrize("p_values", [[], [[0.1]], [0.1, 1.1], [-0.1], [float("nan")]])
def test_holm_refuses_what_is_no_p_value(p_values: Any) -> None:
    with pytest.raises(SettingsError, match="p_values"):
        holm(p_values, confidence=0.95)
