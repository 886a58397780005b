"""Whether scores drift with the order of the trials: Kendall's rank test.

The p-value is that of `scipy.stats.kendalltau`, whose import takes longer than the test.
"""

from __future__ import annotations

import math

import numpy as np

from dpaudit.plugins.protocols import FloatArray

MOST_EXACT = 33
"""Up to this many trials the distribution of the statistic is exact, unless scores are tied."""


def drift_p_value(scores: FloatArray) -> float:
    """The two-sided p-value of Kendall's test that scores do not depend on their order.

    Args:
        scores: Scores [n] in the order of their trials.

    Returns:
        The two-sided p-value; 1 for fewer than three scores, and for equal ones. Exact for few
        scores without ties (where the usual approximation of Spearman's test rejects sound runs),
        else by the normal approximation with the variance corrected for ties (Kendall 1970).
    """
    n = len(scores)
    ties = np.unique(scores, return_counts=True)[1].astype(np.float64)
    if n < 3 or len(ties) == 1:
        return 1.0
    later = [np.sign(scores[place + 1 :] - scores[place]).sum() for place in range(n - 1)]
    excess = abs(float(sum(later)))  # of pairs in order over pairs out of order
    if len(ties) == n <= MOST_EXACT:
        return _exact(n, round((n * (n - 1) / 2 - excess) / 2))
    variance = (n * (n - 1) * (2 * n + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    return math.erfc(excess / math.sqrt(2.0 * variance))


def _exact(n: int, most: int) -> float:
    """Twice the probability of at most this many inversions in a random permutation."""
    shares = np.ones(1)
    for size in range(2, n + 1):  # the next element is in front of 0 to size - 1 earlier ones
        shares = np.convolve(shares, np.full(size, 1.0 / size))
    return min(1.0, 2.0 * float(shares[: most + 1].sum()))
