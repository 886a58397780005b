"""How probable a rejection is at most under a trade-off function: estimated, and certified."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from dpaudit.bounds._checks import FloatArray
from dpaudit.bounds._region import RejectionRegion
from dpaudit.bounds.trade_off import TradeOff

# Rates beyond these normal scores are taken in one stretch each.
_FAR = 5.0
_BEYOND = 38.5
# Distance of the grid's scores in units of 1/sqrt(n): a binomial proportion has a standard
# deviation of at least 1.25 of them.
_SPACING = 0.6
# Stretches of the boundary that may still be undecided, and how short they may become.
_MOST_OPEN = 4096
_SHORTEST = 1e-7


def boundary_scores(n: int) -> FloatArray:
    """Normal scores of 1 − FPR for a grid along the whole boundary, from FPR = 1 to FPR = 0."""
    steps = math.ceil(2.0 * _FAR * math.sqrt(n) / _SPACING)
    return np.concatenate([[-_BEYOND], np.linspace(-_FAR, _FAR, steps + 1), [_BEYOND]])


class Boundary(NamedTuple):
    """Rates on a grid of the boundary of a region of rates; shape (m,) each."""

    fpr: FloatArray
    fnr: FloatArray

    @classmethod
    def of(cls, trade_off: TradeOff, level: float, *, n: int) -> Boundary:
        """The boundary at a level, as dense as counts of n trials need."""
        fpr = ndtr(-boundary_scores(n))
        return cls(fpr, trade_off.least_fnr(fpr, level))

    def rejected_at_most(self, region: RejectionRegion) -> float:
        """Largest probability of rejecting on the grid: an estimate from below."""
        return float(region.probability(self.fpr, self.fnr).max())


def certified(region: RejectionRegion, trade_off: TradeOff, level: float, *, alpha: float) -> bool:
    """Whether no mechanism with this guarantee is rejected with a probability above α.

    Rejection gets rarer as either rate grows, so that it is most probable on the lower boundary
    (x, f(x)) of the region of rates, f not increasing. On a stretch of it, x from a to b, its
    probability is at most that at (a, f(b)). Stretches where that exceeds α are halved.

    Returns:
        True only if it is shown for the whole boundary; False also where that takes too many
        stretches.
    """
    score = boundary_scores(max(region.n_in, region.n_out))[::-1]  # increasing FPR
    fpr = ndtr(-score)
    fnr = trade_off.least_fnr(fpr, level)
    if np.any(region.probability(fpr, fnr) > alpha):
        return False
    left, right = score[:-1], score[1:]
    least_fpr, least_fnr = fpr[:-1], fnr[1:]
    while True:
        undecided = region.probability(least_fpr, least_fnr) > alpha
        if not undecided.any():
            return True
        if undecided.sum() > _MOST_OPEN:
            return False
        left, right, least_fpr, least_fnr = (
            of[undecided] for of in (left, right, least_fpr, least_fnr)
        )
        if np.min(left - right) < _SHORTEST:
            return False
        middle = (left + right) / 2.0
        fpr = ndtr(-middle)
        fnr = trade_off.least_fnr(fpr, level)
        if np.any(region.probability(fpr, fnr) > alpha):
            return False
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
        least_fpr, least_fnr = (
            np.concatenate([least_fpr, fpr]),
            np.concatenate([fnr, least_fnr]),
        )
