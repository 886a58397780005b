"""From Rényi differential privacy to (epsilon, delta)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

from dpaudit.account import ORDERS, epsilon_from_rdp
from dpaudit.errors import SettingsError


def test_zcdp_curves_match_the_reference_vectors(accounting_vectors: dict[str, Any]) -> None:
    for row in accounting_vectors["rdp_to_eps"]:
        epsilon = epsilon_from_rdp(ORDERS, row["rho_zcdp"] * ORDERS, delta=row["delta"])
        # The vectors were taken on a coarser grid of orders: never below ours, and close.
        assert epsilon == pytest.approx(row["cks"], rel=3e-4)
        assert epsilon <= row["cks"]


@pytest.mark.parametrize("rho", [1e-6, 1e-3, 0.1, 1.0, 50.0])
@pytest.mark.parametrize("delta", [1e-10, 1e-5])
def test_the_grid_of_orders_is_as_good_as_the_continuum(rho: float, delta: float) -> None:
    def at(log_excess: float) -> float:
        a = 1.0 + math.exp(log_excess)
        return rho * a + math.log1p(-1 / a) - math.log(delta * a) / (a - 1)

    best = minimize_scalar(
        at, bounds=(math.log(0.01), math.log(4095.0)), method="bounded", options={"xatol": 1e-9}
    ).fun
    assert best * (1 - 1e-9) <= epsilon_from_rdp(ORDERS, rho * ORDERS, delta=delta)
    assert epsilon_from_rdp(ORDERS, rho * ORDERS, delta=delta) <= best * (1 + 1e-3)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 4.0, 30.0])
def test_the_proven_epsilon_covers_the_gaussian_mechanism(sigma: float) -> None:
    # Balle and Wang 2018, Theorem 8: the exact delta of the Gaussian mechanism at epsilon.
    delta = 1e-5
    epsilon = epsilon_from_rdp(ORDERS, ORDERS / (2 * sigma**2), delta=delta)
    a, b = 1 / (2 * sigma), epsilon * sigma
    exact_delta = ndtr(a - b) - math.exp(epsilon) * ndtr(-a - b)
    assert delta / 30 < exact_delta <= delta


def test_one_order_is_the_formula() -> None:
    expected = 0.3 + math.log(1 - 1 / 9) - math.log(1e-6 * 9) / 8
    assert epsilon_from_rdp([9.0], [0.3], delta=1e-6) == pytest.approx(expected, rel=1e-14)


def test_no_divergence_is_no_epsilon() -> None:
    assert epsilon_from_rdp(ORDERS, np.zeros_like(ORDERS), delta=1e-5) == 0.0
    assert epsilon_from_rdp(ORDERS, np.zeros_like(ORDERS), delta=0.0) == 0.0


def test_a_total_variation_within_delta_is_no_epsilon() -> None:
    # Without the total-variation bound the finite orders would still report about 0.0005.
    assert epsilon_from_rdp(ORDERS, np.full_like(ORDERS, 0.9e-10), delta=1e-5) == 0.0
    assert epsilon_from_rdp(ORDERS, np.full_like(ORDERS, 1.1e-10), delta=1e-5) > 1e-4


def test_finite_orders_prove_nothing_at_delta_zero() -> None:
    assert epsilon_from_rdp(ORDERS, 1e-3 * ORDERS, delta=0.0) == math.inf


def test_an_infinite_curve_proves_nothing_and_one_finite_order_suffices() -> None:
    assert epsilon_from_rdp([2.0, 3.0], [math.inf, math.inf], delta=1e-5) == math.inf
    assert math.isfinite(epsilon_from_rdp([2.0, 3.0], [0.1, math.inf], delta=1e-5))


def test_epsilon_is_never_negative() -> None:
    assert epsilon_from_rdp(ORDERS, 0.1 * ORDERS, delta=0.9) == 0.0


@pytest.mark.parametrize(
    ("orders", "rdp", "delta"),
    [
        ([2.0, 3.0], [0.1], 1e-5),
        ([], [], 1e-5),
        ([1.0], [0.1], 1e-5),
        ([math.inf], [0.1], 1e-5),
        ([2.0], [-0.1], 1e-5),
        ([2.0], [math.nan], 1e-5),
        ([2.0], [0.1], -1e-5),
        ([2.0], [0.1], 1.0),
        ([2.0], [0.1], math.nan),
    ],
)
def test_a_curve_without_meaning_is_refused(
    orders: list[float], rdp: list[float], delta: float
) -> None:
    with pytest.raises(SettingsError):
        epsilon_from_rdp(orders, rdp, delta=delta)


def test_the_default_orders_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        ORDERS[0] = 2.0
    assert ORDERS[0] == pytest.approx(1.01)
    assert ORDERS[-1] == pytest.approx(5000.0)
    assert np.all(np.diff(ORDERS) > 0)
