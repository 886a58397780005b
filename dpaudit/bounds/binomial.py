"""The binomial distribution as in `scipy.stats.binom`, computed by the incomplete beta function.

Importing `scipy.stats` takes longer than all that an audit computes with SciPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import scipy

from dpaudit.bounds.inputs import BoolArray, FloatArray, IntArray

# Hoeffding: a binomial count strays further than sqrt(20 n) from its mean with probability
# below 2 exp(-40) < 1e-17, less than the rounding of the sums.
_WINDOW = 20.0


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
    beyond = np.where(k < 0, 1.0, scipy.special.betainc(inside + 1.0, n - inside, p))
    return np.where(k >= n, 0.0, beyond)


def cdf(k: npt.ArrayLike, n: npt.ArrayLike, p: npt.ArrayLike) -> FloatArray:
    """Probability of at most k successes; arguments as for `sf`."""
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
    """Smallest count that is not exceeded with probability at least q; arguments as for `isf`."""
    q, n, p = np.broadcast_arrays(q, n, p)
    return _smallest(lambda k: cdf(k, n, p) >= q, n)


def mass(n: int, rate: FloatArray) -> tuple[IntArray, FloatArray]:
    """The first count (m,) of those that hold all but 1e-17 of each Bin(n, rate); rates (m,).

    Returns:
        These, and the probabilities of the counts from there on; shape (m, width).
    """
    half = math.ceil(math.sqrt(_WINDOW * n))
    width = min(n + 1, 2 * half + 1)
    start = np.clip(np.floor(n * rate).astype(np.int64) - half, 0, n + 1 - width)
    tiny = np.finfo(np.float64)
    rate = np.clip(rate, tiny.tiny, 1.0 - tiny.epsneg)
    log_odds = np.log(rate) - np.log1p(-rate)
    count = start[:, None] + np.arange(width)
    log_mass = _log_choose(n)[count]
    log_mass += count * log_odds[:, None]
    log_mass += (n * np.log1p(-rate))[:, None]
    return start, np.exp(log_mass, out=log_mass)


def _smallest(holds: Callable[[IntArray], BoolArray], n: IntArray) -> IntArray:
    """The smallest counts from 0 to n that meet a monotone condition (n does), by bisection."""
    low, high = np.full(n.shape, -1), n
    while np.any(high - low > 1):
        middle = (low + high) // 2
        below = holds(middle)
        low, high = np.where(below, low, middle), np.where(below, middle, high)
    return high


@lru_cache(maxsize=8)
def _log_choose(n: int) -> FloatArray:
    """Logarithms of the binomial coefficients of n; shape (n + 1,), not to be written to."""
    every = np.arange(n + 1)
    gammaln = scipy.special.gammaln
    coefficients: FloatArray = gammaln(n + 1) - gammaln(every + 1) - gammaln(n - every + 1)
    coefficients.flags.writeable = False
    return coefficients
