"""Probability that the order statistics of a uniform sample all keep their limits."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln

from dpaudit.bounds.clopper_pearson import upper_limits
from dpaudit.bounds.inputs import FloatArray

# The local level is found to this relative error, and lowered by as much.
_TOLERANCE = 1e-6


@lru_cache(maxsize=256)
def local_level(n: int, alpha: float) -> float:
    """Level of each one-sided limit at which all n order statistics keep theirs with 1 − alpha.

    Args:
        n: Scores of one world, at least 1.
        alpha: Probability that any limit fails, in (0, 1).

    Returns:
        The largest η, less at most two millionths of itself, such that any of the
        Clopper-Pearson limits at level η fails with probability at most alpha.
    """
    if n == 1:
        return alpha

    def excess(log_level: float) -> float:
        return 1.0 - _all_hold(upper_limits(n, math.exp(log_level))[:-1]) - alpha

    # At alpha/n Boole's inequality keeps the limits; at alpha the first one alone breaks them.
    root = float(brentq(excess, math.log(alpha / n), math.log(alpha), xtol=_TOLERANCE / 2.0))
    return math.exp(root - _TOLERANCE)


def _all_hold(limits: FloatArray) -> float:
    """Probability that every order statistic of n uniform variables is at most its limit.

    The j-th one is where at least j variables lie below the j-th limit. A Poisson process of
    rate n that has n points in [0, 1] is a uniform sample (as in Moscovich and Nadler 2017): its
    count is carried from limit to limit, dropping the paths that fall short, and divided by the
    probability of n points. All terms are positive; what the truncations lose (below 1e-15) makes
    the result smaller.

    Args:
        limits: Limits in (0, 1), increasing; shape (n,).
    """
    n = limits.size
    steps = n * np.diff(limits, prepend=0.0)
    largest = float(steps.max())
    jumps = np.arange(math.ceil(largest + 10.0 * math.sqrt(largest)) + 30)
    with np.errstate(under="ignore"):
        mass = np.exp(np.log(steps)[:, None] * jumps - steps[:, None] - gammaln(jumps + 1.0))
        # Counts from the smallest allowed upwards; those this far above it do not end at n.
        width = math.ceil(12.0 * math.sqrt(n)) + jumps.size
        reached = np.ones(1)
        for rank, jump in enumerate(mass, start=1):
            reached = np.convolve(reached, jump)[1 : 1 + min(width, n - rank + 1)]
    log_none_beyond = -n * (1.0 - float(limits[-1]))
    log_n_points = n * math.log(n) - n - math.lgamma(n + 1.0)
    return float(reached[0]) * math.exp(log_none_beyond - log_n_points)
