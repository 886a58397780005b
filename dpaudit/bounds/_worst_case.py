"""How probable a rejection is at most under a trade-off function: estimated, and certified."""

from __future__ import annotations

import math
from dataclasses import dataclass

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
# The peak of the grid is enlarged, most of all where the boundary has a corner.
_ZOOMS = 3
_ZOOM_POINTS = 9
# Stretches of the boundary that may still be undecided, and how short they may become.
_MOST_OPEN = 2048
_SHORTEST = 1e-7


def boundary_scores(n: int) -> FloatArray:
    """Normal scores of 1 − FPR for a grid along the whole boundary, from FPR = 1 to FPR = 0."""
    steps = math.ceil(2.0 * _FAR * math.sqrt(n) / _SPACING)
    return np.concatenate([[-_BEYOND], np.linspace(-_FAR, _FAR, steps + 1), [_BEYOND]])


@dataclass(frozen=True, eq=False)
class Boundary:
    """A grid along the lower boundary of the rates that a guarantee allows.

    Attributes:
        trade_off: The family.
        level: The level.
        scores: Normal scores of 1 − FPR, increasing; shape (m,).
        fnr: The least false-negative rates there; shape (m,).
    """

    trade_off: TradeOff
    level: float
    scores: FloatArray
    fnr: FloatArray

    @classmethod
    def of(cls, trade_off: TradeOff, level: float, *, n: int) -> Boundary:
        """The boundary at a level, as dense as counts of n trials need."""
        scores = boundary_scores(n)
        return cls(trade_off, level, scores, trade_off.least_fnr(ndtr(-scores), level))

    def rejected_at_most(self, region: RejectionRegion) -> float:
        """Largest probability of rejecting: an estimate from below, from the grid and its peak."""
        values = region.probability(ndtr(-self.scores), self.fnr)
        best, scores = int(values.argmax()), self.scores
        largest = float(values[best])
        for _ in range(_ZOOMS):
            low, high = scores[max(best - 1, 0)], scores[min(best + 1, scores.size - 1)]
            scores = np.linspace(low, high, _ZOOM_POINTS)
            fpr = ndtr(-scores)
            values = region.probability(fpr, self.trade_off.least_fnr(fpr, self.level))
            best = int(values.argmax())
            largest = max(largest, float(values[best]))
        return largest


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
