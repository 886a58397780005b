"""Kendall's rank test beside that of `scipy.stats`."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kendalltau

from dpaudit.auditing.checks import drift_p_value


@pytest.mark.parametrize("n", [3, 4, 12, 33, 34, 90])
@pytest.mark.parametrize("distinct", [2, 5, 1000])
@pytest.mark.parametrize("slope", [0.0, 0.4])
def test_p_values_are_those_of_scipy(n: int, distinct: int, slope: float) -> None:
    rng = np.random.default_rng(n + distinct)
    scores = rng.integers(0, distinct, n) + slope * distinct * np.arange(n) / n
    scores[0] += 1.0  # never all equal
    expected = kendalltau(scores, np.arange(n)).pvalue
    assert drift_p_value(scores) == pytest.approx(expected, rel=1e-9)


def test_few_orders_can_be_counted_by_hand() -> None:
    # One of the 24 orders of four scores has no inversion, and one has all of them.
    assert drift_p_value(np.array([1.0, 2.0, 3.0, 4.0])) == pytest.approx(2 / 24)
    assert drift_p_value(np.array([4.0, 3.0, 2.0, 1.0])) == pytest.approx(2 / 24)


def test_what_cannot_drift_has_no_evidence() -> None:
    assert drift_p_value(np.array([1.0, 2.0])) == 1.0
    assert drift_p_value(np.full(50, 3.0)) == 1.0
