"""Rejection regions of the two-world test, and how probable they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from dpaudit.bounds import binomial
from dpaudit.bounds.inputs import BoolArray, FloatArray, IntArray

# Outcomes this close to the boundary of a region count as inside: ties survive rounding, and a
# region that is too large only makes a p-value larger.
_TIE_SLACK = 1e-12
# The search for the least favourable rates: a grid at half a standard deviation of the counts,
# then its best peaks enlarged five times. Compared with a grid 50 times as fine, it fell short of
# the maximum by at most 7e-9; the margin, added to every size, keeps the test valid.
_GRID_MINIMUM = 81
_PEAKS = 4
_ZOOMS = 5
_ZOOM_POINTS = 9
_SEARCH_MARGIN = 2e-8
# Beyond this epsilon e^-epsilon underflows; the region of rates no longer changes.
_LARGEST_EPSILON = 700.0
_EPSILON_TOLERANCE = 1e-12


class _Extreme(NamedTuple):
    """The largest probability found on the boundary of the (ε, δ) region, and where."""

    probability: float
    position: float
    mirrored: bool


@dataclass(frozen=True, eq=False)
class RejectionRegion:
    """Outcomes (fp, fn) of a test that rejects when both errors are few.

    Attributes:
        most_fn: The largest number of false negatives inside the region for each number of
            false positives, −1 for none; not increasing; shape (n_out + 1,).
        n_in: Trials of the "in" world.
    """

    most_fn: IntArray
    n_in: int

    @classmethod
    def of_ratio(
        cls, ratio: float, *, fn_upper: FloatArray, fp_upper: FloatArray, delta: float
    ) -> RejectionRegion:
        """Collects the outcomes whose privacy ratio, e^statistic, is at least `ratio`.

        Args:
            ratio: Smallest ratio inside, at least 0 (0: every outcome).
            fn_upper: Upper limits on the false-negative rate; shape (n_in + 1,), increasing.
            fp_upper: Upper limits on the false-positive rate; shape (n_out + 1,), increasing.
            delta: δ of the claim.

        Returns:
            The region, ties included.
        """
        n_in = fn_upper.size - 1
        if ratio <= 0.0:
            return cls(np.full(fp_upper.size, n_in, dtype=np.int64), n_in)
        limit = np.maximum(1.0 - delta - ratio * fp_upper, (1.0 - delta - fp_upper) / ratio)
        limit += _TIE_SLACK
        return cls(np.searchsorted(fn_upper, limit, side="right").astype(np.int64) - 1, n_in)

    def after_errors(self, *, false_negatives: int, false_positives: int) -> RejectionRegion:
        """Restricts the region to the remaining trials once some are known to be errors."""
        return RejectionRegion(
            self.most_fn[false_positives:] - false_negatives, self.n_in - false_negatives
        )

    def __or__(self, other: RejectionRegion) -> RejectionRegion:
        """The outcomes of either region."""
        return RejectionRegion(np.maximum(self.most_fn, other.most_fn), self.n_in)

    def __and__(self, other: RejectionRegion) -> RejectionRegion:
        """The outcomes of both regions."""
        return RejectionRegion(np.minimum(self.most_fn, other.most_fn), self.n_in)

    def contains(self, other: RejectionRegion) -> bool:
        """Whether every outcome of the other region is in this one."""
        return bool(np.all(self.most_fn >= other.most_fn))

    @property
    def n_out(self) -> int:
        """Trials of the "out" world."""
        return self.most_fn.size - 1

    @property
    def is_full(self) -> bool:
        """Whether every outcome is inside."""
        return bool(self.most_fn[-1] >= self.n_in)

    @property
    def is_empty(self) -> bool:
        """Whether not even an attack without errors rejects."""
        return bool(self.most_fn[0] < 0)

    def probability(self, fpr: FloatArray, fnr: FloatArray) -> FloatArray:
        """Probability of rejecting at the given true error rates.

        Args:
            fpr: False-positive rates; shape (m,).
            fnr: False-negative rates; shape (m,).

        Returns:
            Σ_i P[Bin(n_out, fpr) = i] · P[Bin(n_in, fnr) ≤ most_fn(i)]; shape (m,). Exact up
            to an absolute error of about 1e-15.
        """
        fp_start, fp_mass = binomial.mass(self.most_fn.size - 1, fpr)
        fn_start, fn_mass = binomial.mass(self.n_in, fnr)
        cumulative = np.zeros((fnr.size, fn_mass.shape[1] + 1))
        np.cumsum(fn_mass, axis=1, out=cumulative[:, 1:])
        most_fn = self.most_fn[fp_start[:, None] + np.arange(fp_mass.shape[1])]
        position = np.clip(most_fn - fn_start[:, None] + 1, 0, fn_mass.shape[1])
        at_most = np.take_along_axis(cumulative, position, axis=1)
        rejected: FloatArray = np.minimum(np.sum(fp_mass * at_most, axis=1), 1.0)
        return rejected

    def worst_case(self, epsilon: float, delta: float) -> float:
        """Largest probability of rejecting an (ε, δ)-DP mechanism: the size of the test.

        Rejection becomes rarer as either rate grows, so the least favourable rates lie on the lower
        left boundary of the (ε, δ) region: the segment from (0, 1 − δ) to (k, k), k = (1 − δ)/(1 +
        e^ε), and its mirror image.
        """
        if self.most_fn[-1] >= self.n_in:
            return 1.0
        largest = self._least_favourable(epsilon, delta).probability
        return min(1.0, largest * (1.0 + _SEARCH_MARGIN))

    def largest_epsilon(self, alpha: float, *, delta: float, low: float, high: float) -> float:
        """Largest ε at which the size of the test stays within α.

        At a fixed position on the boundary both rates fall as ε grows, so the probability of
        rejection rises, and its root at any position is an upper limit on the answer. Each step
        goes to the root at the least favourable position of the last limit, starting at the corner.
        This is a form of Newton's method and converges from above as fast: two to four searches of
        the whole boundary are enough.

        Args:
            alpha: Size allowed, in (0, 1).
            delta: δ of the claim.
            low: Returned if the size already exceeds α there.
            high: A value that the answer does not exceed.

        Returns:
            The answer, in [low, high], short of the root by the margin of the search.
        """
        if high <= low or self.most_fn[-1] >= self.n_in:
            return low
        log_target = math.log(alpha * (1.0 - 2.0 * _SEARCH_MARGIN))
        position, mirrored = np.array([1.0]), np.array([False])  # the corner
        while True:

            def excess(
                epsilon: float, position: FloatArray = position, mirrored: BoolArray = mirrored
            ) -> float:
                rates = _boundary(epsilon, delta, position, mirrored)
                return math.log(max(float(self.probability(*rates)[0]), 1e-300)) - log_target

            if excess(low) >= 0.0:
                return low
            if excess(high) > 0.0:
                high = float(scipy.optimize.brentq(excess, low, high, xtol=_EPSILON_TOLERANCE))
            extreme = self._least_favourable(high, delta)
            if extreme.probability * (1.0 + _SEARCH_MARGIN) <= alpha:
                return high
            position, mirrored = np.array([extreme.position]), np.array([extreme.mirrored])

    def _least_favourable(self, epsilon: float, delta: float) -> _Extreme:
        """Searches both halves of the boundary for the most probable rejection."""

        def probability_at(position: FloatArray, mirrored: BoolArray) -> FloatArray:
            return self.probability(*_boundary(epsilon, delta, position, mirrored))

        corner = _corner(epsilon, delta)
        grid = _boundary_grid(corner, 1.0 - delta, max(self.n_in, self.most_fn.size - 1))
        sides = np.repeat([False, True], grid.size)
        values = probability_at(np.tile(grid, 2), sides).reshape(2, -1)
        padded = np.pad(values, ((0, 0), (1, 1)), constant_values=-1.0)
        peaks = (values >= padded[:, :-2]) & (values >= padded[:, 2:])
        ranked = np.argsort(np.where(peaks, values, -1.0), axis=None)[::-1][:_PEAKS]
        side, index = np.unravel_index(ranked, values.shape)
        low = grid[np.maximum(index - 1, 0)]
        high = grid[np.minimum(index + 1, grid.size - 1)]
        best = _Extreme(float(values[side[0], index[0]]), float(grid[index[0]]), bool(side[0]))
        # Zooms into all peaks at once: the most probable point and its two neighbours bound the
        # next stretch of each.
        row = np.arange(ranked.size)
        for _ in range(_ZOOMS):
            points = np.linspace(low, high, _ZOOM_POINTS, axis=1)
            refined = probability_at(points.ravel(), np.repeat(side == 1, _ZOOM_POINTS))
            refined = refined.reshape(points.shape)
            top = refined.argmax(axis=1)
            first = int(refined[row, top].argmax())
            if refined[first, top[first]] > best.probability:
                best = _Extreme(
                    float(refined[first, top[first]]),
                    float(points[first, top[first]]),
                    bool(side[first]),
                )
            low = points[row, np.maximum(top - 1, 0)]
            high = points[row, np.minimum(top + 1, _ZOOM_POINTS - 1)]
        return best


class _Rates(NamedTuple):
    """False-positive and false-negative rates; shape (m,) each."""

    fpr: FloatArray
    fnr: FloatArray


def _corner(epsilon: float, delta: float) -> float:
    """The error rate k = (1 − δ)/(1 + e^ε) where the boundary of the region meets its mirror."""
    return (1.0 - delta) * float(scipy.special.expit(-min(epsilon, _LARGEST_EPSILON)))


def _boundary(epsilon: float, delta: float, position: FloatArray, mirrored: BoolArray) -> _Rates:
    """Rates at positions in [0, 1] on the segment from (0, 1 − δ) to (k, k), or its mirror."""
    corner = _corner(epsilon, delta)
    small = corner * position
    large = (1.0 - delta) - (1.0 - delta - corner) * position
    return _Rates(np.where(mirrored, large, small), np.where(mirrored, small, large))


def _boundary_grid(corner: float, top: float, n: int) -> FloatArray:
    """Positions in [0, 1] on the segment from (0, top) to (corner, corner).

    Evenly spaced in arcsin √rate, where a binomial proportion has standard deviation
    1/(2 √n) whatever the rate, for either of the two rates in turn.
    """
    low, high = math.asin(math.sqrt(corner)), math.asin(math.sqrt(top))
    steps = 4.0 * math.sqrt(n)
    small = np.linspace(0.0, low, max(_GRID_MINIMUM, math.ceil(steps * low)))
    large = np.linspace(low, high, max(_GRID_MINIMUM, math.ceil(steps * (high - low))))
    by_small = np.sin(small) ** 2 / corner
    by_large = (top - np.sin(large) ** 2) / (top - corner)
    grid = np.sort(np.clip(np.concatenate([[0.0, 1.0], by_small, by_large]), 0.0, 1.0))
    # Twins that differ by rounding would leave a peak without a neighbour to search up to.
    return grid[np.diff(grid, prepend=-1.0) > 1e-10]
