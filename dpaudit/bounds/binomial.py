"""The binomial distribution, as `scipy.stats.binom` has it, by the incomplete beta function.

Importing `scipy.stats` takes longer than all that an audit computes with SciPy.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.special import betainc

from dpaudit.bounds._checks import BoolArray, FloatArray, IntArray


def sf(k: npt.ArrayLike, n: npt.ArrayLike, p: npt.ArrayLike) -> FloatArray:
    """Probability of more than k successes.

    Args:
        k: Counts, whole.
        n: Trials; broadcast with k and p.
        p: Probability of success, in [0, 1].

    Returns:
        The probabilities, in the broadcast shape.
    """
    k, n, p = np.asarray(k), np.asarray(n), np.asarray(p, dtype=np.float64)
    inside = np.clip(k, 0, n - 1)
    beyond = np.where(k < 0, 1.0, betainc(inside + 1.0, n - inside, p))
    return np.where(k >= n, 0.0, beyond)


def cdf(k: npt.ArrayLike, n: npt.ArrayLike, p: npt.ArrayLike) -> FloatArray:
    """Probability of at most k successes; arguments as of `sf`."""
    return sf(np.asarray(n) - k - 1, n, 1.0 - np.asarray(p))


def isf(q: npt.ArrayLike, n: npt.ArrayLike, p: npt.ArrayLike) -> IntArray:
    """Smallest count that is exceeded with probability at most q.

    Args:
        q: Probabilities, in [0, 1).
        n: Trials; broadcast with q and p.
        p: Probability of success, in [0, 1].

    Returns:
        The counts, in the broadcast shape.
    """
    q, n, p = np.broadcast_arrays(q, n, p)
    return _smallest(lambda k: sf(k, n, p) <= q, n)


def ppf(q: npt.ArrayLike, n: npt.ArrayLike, p: npt.ArrayLike) -> IntArray:
    """Smallest count that is not exceeded with probability at least q; arguments as of `isf`."""
    q, n, p = np.broadcast_arrays(q, n, p)
    return _smallest(lambda k: cdf(k, n, p) >= q, n)


def _smallest(holds: Callable[[IntArray], BoolArray], n: IntArray) -> IntArray:
    """The smallest counts from 0 to n of which something holds, as it does of n, by bisection."""
    low, high = np.full(n.shape, -1), n
    while np.any(high - low > 1):
        middle = (low + high) // 2
        below = holds(middle)
        low, high = np.where(below, low, middle), np.where(below, middle, high)
    return high
