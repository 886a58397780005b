"""Which noise a function of uniform draws is: known quantiles, and functions that are none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpaudit.replaying.listening import curves

FIRST, SECOND = curves.units(0), curves.units(1)


@pytest.mark.parametrize(
    ("law", "reference"),
    [
        ("laplace", stats.laplace),
        ("gaussian", stats.norm),
        ("exponential", stats.expon),
        ("gumbel", stats.gumbel_r),
        ("logistic", stats.logistic),
    ],
)
def test_quantiles_of_a_law_are_that_law(law: str, reference: Any) -> None:
    values = np.multiply.outer([2.0, -0.5], reference.ppf(FIRST))
    known = curves.law_of(values, (FIRST,))
    assert known is not None
    assert known.law == law
    assert known.factor == pytest.approx([2.0, -0.5])
    falling = curves.law_of(reference.isf(FIRST), (FIRST,))
    assert falling is not None
    assert falling.law == law


def test_box_and_mullers_two_numbers_are_different_draws() -> None:
    radius, turn = np.sqrt(-2.0 * np.log(FIRST)), 2.0 * np.pi * SECOND
    one, other = (
        curves.law_of(3.0 * radius * function(turn), (FIRST, SECOND))
        for function in (np.cos, np.sin)
    )
    assert one is not None
    assert other is not None
    assert (one.law, one.factor, one.form) == ("gaussian", pytest.approx(3.0), other.form)
    assert one.turn != other.turn


@pytest.mark.parametrize(
    "function",
    [
        lambda u: u,
        lambda u: np.log(u) + 1.0,
        lambda u: np.log(2.0 * u),
        lambda u: np.abs(np.log(u) - np.log1p(-u)),
        lambda u: np.log(u) ** 2,
        lambda u: np.zeros_like(u),
        lambda u: np.full_like(u, np.inf),
        lambda u: np.log(u) * (1.0 + 1e-6 * u),
    ],
)
def test_other_functions_are_no_noise(function: Callable[[Any], Any]) -> None:
    assert curves.law_of(function(FIRST), (FIRST,)) is None


def test_points_of_two_draws_differ_and_lie_inside() -> None:
    for number in range(10):
        drawn = curves.units(number)
        assert drawn.shape == (curves.POINTS,)
        assert np.all((drawn > 0.0) & (drawn < 1.0))
        assert len(np.unique(drawn)) == curves.POINTS
    assert not np.isin(FIRST, SECOND).any()
