"""Conversions: Rényi divergences and log moments to (epsilon, delta), and a budget to mu or rho."""

from __future__ import annotations

import math
from typing import Final, TypeAlias

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dpaudit.errors import SettingsError
from dpaudit.model.gaussian import gaussian_delta
from dpaudit.model.setting import BETWEEN_0_AND_1, DELTA, POSITIVE, check_number

FloatArray: TypeAlias = NDArray[np.float64]
_SAFE: Final = 1.0 - 1e-9
"""Factor that keeps a root on the safe side despite the error of its search."""
# Epsilon is flat around the best order, so this grid costs about 1e-4 of it. Orders of a few units
# serve the usual budgets, orders next to 1 those above 10, orders in the thousands those below 0.1.
ORDERS: Final[FloatArray] = np.concatenate(
    [
        1.0 + np.geomspace(0.01, 1.0, 60, endpoint=False),
        np.arange(2.0, 20.0, 0.25),
        np.geomspace(20.0, 5000.0, 140),
    ]
)
"""Default Rényi orders, increasing from 1.01 to 5000; read-only."""
ORDERS.setflags(write=False)


def epsilon_from_moments(moments: ArrayLike, alpha: ArrayLike, *, delta: float) -> float:
    """Epsilon by the conversion of the moments accountant, which PATE and PATE-GAN use.

    ``min over l of (alpha(l) + ln(1/delta)) / l`` (Abadi et al. 2016, Theorem 2). It is valid and
    never better than `epsilon_from_rdp` on the same curve, alpha(l) = l D_{l+1}: with the moments
    1..L it cannot report less than ln(1/delta)/L, however little was spent.

    Args:
        moments: The moments l, positive, shape [m].
        alpha: The log moments, shape [m].
        delta: The delta of the statement, in (0, 1).

    Returns:
        Epsilon in nats.

    Raises:
        SettingsError: If the moments are not a curve of positive orders, or delta is out of range.
    """
    moment = np.asarray(moments, dtype=np.float64)
    log_moment = np.asarray(alpha, dtype=np.float64)
    if moment.ndim != 1 or moment.size == 0 or moment.shape != log_moment.shape:
        raise SettingsError(
            f"moments of shape {moment.shape} and alpha of shape {log_moment.shape} make no "
            "curve: give one log moment for each"
        )
    if not np.all((moment > 0.0) & np.isfinite(moment)) or np.any(np.isnan(log_moment)):
        raise SettingsError("a moment is not positive or a log moment is NaN: correct the curve")
    check_number("delta", delta, BETWEEN_0_AND_1)
    return float(np.min((log_moment - np.log(delta)) / moment))


def epsilon_from_rdp(orders: ArrayLike, rdp: ArrayLike, *, delta: float) -> float:
    """The smallest epsilon that a Rényi curve proves at a given delta.

    Each order a with divergence D_a proves
    ``epsilon = D_a + ln(1 - 1/a) - ln(delta * a) / (a - 1)``
    (Canonne, Kamath and Steinke 2020, "The Discrete Gaussian for Differential Privacy",
    Proposition 12); the best order counts. Where the total variation distance, at most
    ``sqrt(1 - exp(-D_a))`` (Bretagnolle and Huber 1979; KL is at most D_a), is already within
    delta, epsilon is 0.

    Args:
        orders: Rényi orders, finite and above 1, shape [m].
        rdp: Rényi divergence at each order in nats, at least 0, may be infinite, shape [m].
        delta: The delta of the statement, in [0, 1). At 0 a finite set of orders proves nothing
            (pure differential privacy is the limit of infinite order): the answer is infinity,
            unless the divergence is 0.

    Returns:
        Epsilon in nats, at least 0; infinity if no order proves anything.

    Raises:
        SettingsError: If orders and divergences are not a Rényi curve, or delta is out of range.
    """
    order = np.asarray(orders, dtype=np.float64)
    divergence = np.asarray(rdp, dtype=np.float64)
    if order.ndim != 1 or order.size == 0 or order.shape != divergence.shape:
        raise SettingsError(
            f"orders of shape {order.shape} and rdp of shape {divergence.shape} make no Rényi "
            "curve: give one divergence for each order"
        )
    if not np.all((order > 1.0) & np.isfinite(order)):
        raise SettingsError("a Rényi order is not a finite number above 1: drop it")
    if not np.all(divergence >= 0.0):
        raise SettingsError("a Rényi divergence is negative or NaN: correct the curve")
    check_number("delta", delta, DELTA)
    if np.any(-np.expm1(-divergence) <= delta**2):
        return 0.0
    if delta == 0.0:
        return float("inf")
    epsilons = divergence + np.log1p(-1.0 / order) - np.log(delta * order) / (order - 1.0)
    return max(0.0, float(np.min(epsilons)))


def gaussian_mu(*, epsilon: float, delta: float) -> float:
    """The largest mu for which mu-Gaussian DP implies (epsilon, delta)-DP.

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
    check_number("epsilon", epsilon, POSITIVE)
    check_number("delta", delta, BETWEEN_0_AND_1)
    high = 1.0
    while gaussian_delta(epsilon, high) < delta:
        high *= 2.0
    low = high
    while gaussian_delta(epsilon, low) >= delta:
        low /= 2.0
    root = scipy.optimize.brentq(
        lambda mu: gaussian_delta(epsilon, mu) - delta, low, high, xtol=1e-14
    )
    return _SAFE * float(root)


def concentrated_rho(*, epsilon: float, delta: float) -> float:
    """The largest rho for which the Rényi curve of rho-zCDP proves (epsilon, delta)-DP.

    Args:
        epsilon: Epsilon of the budget, positive and finite.
        delta: Its delta, in (0, 1).

    Returns:
        Rho, not above the largest for which `epsilon_from_rdp` gives this epsilon.

    Raises:
        SettingsError: If an argument is outside its range.
    """
    check_number("epsilon", epsilon, POSITIVE)
    check_number("delta", delta, BETWEEN_0_AND_1)

    def excess(log_rho: float) -> float:
        return epsilon_from_rdp(ORDERS, math.exp(log_rho) * ORDERS, delta=delta) - epsilon

    # The Gaussian mechanism costs least for its rho, so no larger rho than its own is proved.
    high = 2.0 * math.log(gaussian_mu(epsilon=epsilon, delta=delta)) - math.log(2.0) + 1e-6
    low = high
    while excess(low) > 0.0:
        low -= 1.0
    log_root = float(scipy.optimize.brentq(excess, low, high, xtol=1e-12)) if low < high else high
    return _SAFE * math.exp(log_root)
