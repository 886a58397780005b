"""What a budget in epsilon and delta buys."""

from __future__ import annotations

import pytest
from dp_accounting import GaussianDpEvent
from dp_accounting.pld import PLDAccountant

from dpaudit.account import ORDERS, epsilon_from_rdp
from dpaudit.account.conversion import concentrated_rho, gaussian_mu
from dpaudit.errors import SettingsError
from dpaudit.model.gaussian import gaussian_epsilon

BUDGETS = [(0.01, 1e-9), (0.5, 1e-6), (1.0, 1e-5), (3.0, 0.1), (10.0, 1e-5), (50.0, 1e-12)]


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_mu_is_the_largest_that_the_budget_allows(epsilon: float, delta: float) -> None:
    mu = gaussian_mu(epsilon=epsilon, delta=delta)
    assert gaussian_epsilon(mu, delta) <= epsilon < gaussian_epsilon(1.000001 * mu, delta)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (10.0, 1e-5)])
def test_mu_is_that_of_another_accountant(epsilon: float, delta: float) -> None:
    accountant = PLDAccountant()
    accountant.compose(GaussianDpEvent(1.0 / gaussian_mu(epsilon=epsilon, delta=delta)))
    assert accountant.get_epsilon(delta) == pytest.approx(epsilon, rel=1e-3)


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_rho_is_the_largest_that_the_budget_allows(epsilon: float, delta: float) -> None:
    rho = concentrated_rho(epsilon=epsilon, delta=delta)

    def cost(rho: float) -> float:
        return epsilon_from_rdp(ORDERS, rho * ORDERS, delta=delta)

    assert cost(rho) <= epsilon < cost(1.000001 * rho)
    assert rho < gaussian_mu(epsilon=epsilon, delta=delta) ** 2 / 2


@pytest.mark.parametrize("buys", [gaussian_mu, concentrated_rho])
@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ({"epsilon": 0.0, "delta": 1e-5}, "epsilon"),
        ({"epsilon": float("inf"), "delta": 1e-5}, "epsilon"),
        ({"epsilon": 1.0, "delta": 0.0}, "delta"),
    ],
)
def test_a_senseless_budget_is_refused(buys: object, budget: dict[str, float], said: str) -> None:
    assert callable(buys)
    with pytest.raises(SettingsError, match=said):
        buys(**budget)
