"""From Rényi differential privacy to (epsilon, delta)."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.account._checks import check_delta, check_positive_delta
from dpaudit.errors import SettingsError

FloatArray: TypeAlias = NDArray[np.float64]


def _order_grid() -> FloatArray:
    """Orders as dense as epsilon is flat around the best one: the grid costs some 1e-4 of it.

    Orders of a few units serve the usual budgets, orders next to 1 those above 10, orders in the
    thousands those below 0.1.
    """
    orders = np.concatenate(
        [
            1.0 + np.geomspace(0.01, 1.0, 60, endpoint=False),
            np.arange(2.0, 20.0, 0.25),
            np.geomspace(20.0, 5000.0, 140),
        ]
    )
    orders.setflags(write=False)
    return orders


ORDERS: Final[FloatArray] = _order_grid()
"""Default Rényi orders, increasing from 1.01 to 5000; read-only."""


def epsilon_from_moments(moments: ArrayLike, alpha: ArrayLike, *, delta: float) -> float:
    """Epsilon by the moments accountant's own conversion, the one of PATE and PATE-GAN.

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
        SettingsError: If the moments or delta have no meaning.
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
    check_positive_delta(delta)
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
        SettingsError: If the curve or delta has no meaning.
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
    check_delta(delta)
    if np.any(-np.expm1(-divergence) <= delta**2):
        return 0.0
    if delta == 0.0:
        return float("inf")
    epsilons = divergence + np.log1p(-1.0 / order) - np.log(delta * order) / (order - 1.0)
    return max(0.0, float(np.min(epsilons)))
