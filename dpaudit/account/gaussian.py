"""What a budget in epsilon and delta buys: mu of Gaussian, rho of concentrated privacy."""

from __future__ import annotations

import math
from typing import Final

from scipy.optimize import brentq

from dpaudit.account._checks import check_positive_delta
from dpaudit.account.conversion import ORDERS, epsilon_from_rdp
from dpaudit.errors import SettingsError
from dpaudit.model.gaussian import gaussian_delta

_SAFE: Final = 1.0 - 1e-9
"""Takes off what the search for a root may have put on."""


def gaussian_mu(*, epsilon: float, delta: float) -> float:
    """The largest mu of which mu-Gaussian DP implies (epsilon, delta)-DP.

    Exact (Dong, Roth and Su 2022, Corollary 2.13; the same curve as Balle and Wang 2018, Theorem
    8): the Gaussian mechanism of this mu has no smaller epsilon at this delta.

    Args:
        epsilon: Epsilon of the budget, positive and finite.
        delta: Its delta, in (0, 1).

    Returns:
        Mu, within a relative error of 1e-8 and not above the largest.

    Raises:
        SettingsError: If an argument is outside its range.
    """
    _check(epsilon, delta)
    high = 1.0
    while gaussian_delta(epsilon, high) < delta:
        high *= 2.0
    low = high
    while gaussian_delta(epsilon, low) >= delta:
        low /= 2.0
    found = brentq(lambda mu: gaussian_delta(epsilon, mu) - delta, low, high, xtol=1e-14)
    return _SAFE * float(found)


def concentrated_rho(*, epsilon: float, delta: float) -> float:
    """The largest rho of which rho-zCDP proves (epsilon, delta)-DP by its Rényi curve.

    Args:
        epsilon: Epsilon of the budget, positive and finite.
        delta: Its delta, in (0, 1).

    Returns:
        Rho, not above the largest for which `epsilon_from_rdp` gives this epsilon.

    Raises:
        SettingsError: If an argument is outside its range.
    """
    _check(epsilon, delta)

    def excess(log_rho: float) -> float:
        return epsilon_from_rdp(ORDERS, math.exp(log_rho) * ORDERS, delta=delta) - epsilon

    # The mechanism with the least cost for its rho is Gaussian, so no rho above its is proved.
    high = 2.0 * math.log(gaussian_mu(epsilon=epsilon, delta=delta)) - math.log(2.0) + 1e-6
    low = high
    while excess(low) > 0.0:
        low -= 1.0
    found = float(brentq(excess, low, high, xtol=1e-12)) if low < high else high
    return _SAFE * math.exp(found)


def _check(epsilon: float, delta: float) -> None:
    if not 0.0 < epsilon < math.inf:
        raise SettingsError(f"`epsilon` is {epsilon}: choose it positive and finite")
    check_positive_delta(delta)
