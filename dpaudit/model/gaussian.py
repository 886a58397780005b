"""The (ε, δ) profile of Gaussian differential privacy."""

from __future__ import annotations

import math

import scipy


def gaussian_delta(epsilon: float, mu: float) -> float:
    """The δ of a μ-GDP mechanism at ε (Dong, Roth and Su 2022, Corollary 2.13).

    Args:
        epsilon: ε, at least 0.
        mu: μ, positive.

    Returns:
        Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2).
    """
    above = scipy.special.log_ndtr(mu / 2.0 - epsilon / mu)
    below = epsilon + scipy.special.log_ndtr(-mu / 2.0 - epsilon / mu)
    return math.exp(above) - math.exp(below)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The ε of a μ-GDP mechanism at δ.

    Args:
        mu: μ; at 0 or below the tables cannot be distinguished.
        delta: δ, in (0, 1).

    Returns:
        The smallest ε ≥ 0 whose δ is at most the one given.
    """
    if mu <= 0.0 or gaussian_delta(0.0, mu) <= delta:
        return 0.0
    # The first term alone is below delta once epsilon exceeds mu^2/2 + mu z, where z, the quantile
    # of delta, is at most sqrt(2 ln(1/delta)) (Chernoff).
    high = mu * mu / 2.0 + mu * math.sqrt(2.0 * math.log(1.0 / delta))
    return float(
        scipy.optimize.brentq(
            lambda epsilon: gaussian_delta(epsilon, mu) - delta, 0.0, high, xtol=1e-12
        )
    )
