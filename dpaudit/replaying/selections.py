"""Probabilities of what is selected from noisy scores: the largest, an order, comparisons.

All of them are integrals in one variable: the largest score, or a noisy limit. Gumbel noise of one
scale has a closed form (Plackett and Luce).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.replaying.laws import BoundedLaplace, FloatArray, Gamma, Gumbel, NoiseLaw

_REACH: Final = 45.0
"""Integrals reach this many scales around the values before noise; exp(-45) lies beyond."""
_PIECE: Final = 0.5
"""Largest length of a piece of an integral, in units of the smallest scale."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_MOST_KINKS: Final = 128
"""Pieces end at the kinks of this many densities, those of the largest scores."""
_MOST_PIECES: Final = 20_000
_MOST_POINTS: Final = 2e8
"""With more pieces, or points times scores, an integral is not computed."""
_MOST_RANKED: Final = 1e7
"""With more scores times places, the probability of an order is not computed."""
_BLOCK: Final = 1_000_000
_ERROR: Final = 1e-4
"""If the probabilities of all outcomes do not add up to 1 within this, they are not known."""


class Scores(NamedTuple):
    """Noisy scores in one world.

    Attributes:
        before: The scores before noise.
        law: Their noise.
    """

    before: FloatArray
    law: NoiseLaw

    @property
    def is_gumbel(self) -> bool:
        """Whether the largest has a closed form."""
        return isinstance(self.law, Gumbel) and self.law.sign > 0 and np.ptp(self.law.scale) == 0


def is_integrable(law: NoiseLaw) -> bool:
    """Whether the density of a law is known, and smooth but for a kink at 0."""
    if isinstance(law, BoundedLaplace) or law.whole or not law.has_cdf:
        return False
    return not isinstance(law, Gamma) or bool(np.all(law.shape >= 1))


def scale_law(law: NoiseLaw, factor: FloatArray) -> NoiseLaw | None:
    """The law of `factor * noise`; None if it is not known.

    Args:
        law: The law of the noise.
        factor: One for each element.
    """
    size = np.abs(factor)
    if not is_integrable(law) or not np.all(size > 0):
        return None
    if law.symmetric:
        return replace(law, scale=law.scale * size)
    if isinstance(law, Gumbel | Gamma) and np.ptp(np.sign(factor)) == 0:
        return replace(law, scale=law.scale * size, sign=law.sign * float(np.sign(factor[0])))
    return None


def log_largest(scores: Scores) -> FloatArray | None:
    """Log probability of each noisy score to be the largest.

    Score i wins at z with the density f_i(z) prod F_j(z) / F_i(z).

    Args:
        scores: The scores, of a continuous law.

    Returns:
        One logarithm for each score; None if they are too many, or the integral fails.
    """
    before, law = scores
    size = len(before)
    if scores.is_gumbel:
        units = before / law.scale
        return np.asarray(units - scipy.special.logsumexp(units))
    scales = np.broadcast_to(law.scale, (size,))
    low = float(np.max(before - _REACH * scales))
    high = float(np.max(before + _REACH * scales))
    grid = _grid(low, high, float(np.min(scales)), before)
    if grid is None or size * len(grid[0]) > _MOST_POINTS:
        return None
    columns = law.element(np.s_[:, None], size)
    log_chances = np.full(size, -np.inf)
    for points, log_weights in _blocks(grid, size):
        noise = points - before[:, None]
        log_below = columns.log_tail(noise, above=False)
        with np.errstate(invalid="ignore"):
            others = log_below.sum(axis=0) - log_below
        each = columns.log_density(noise) + np.nan_to_num(others, nan=-np.inf, neginf=-np.inf)
        log_chances = np.logaddexp(log_chances, scipy.special.logsumexp(each + log_weights, axis=1))
    total = float(np.exp(scipy.special.logsumexp(log_chances)))
    return log_chances if abs(total - 1.0) < _ERROR else None  # the integral missed some mass


def log_rounds(scores: Scores, places: Sequence[int]) -> list[FloatArray] | None:
    """Log probabilities of the largest score, of the largest of the rest, and so on.

    Args:
        scores: The scores.
        places: The largest, the second largest, ...

    Returns:
        For each place, one logarithm for each score that is left; None if they are too many, or the
        noise is not Gumbel noise of one scale: else each round depends on the rounds before.
    """
    if not scores.is_gumbel or len(places) * len(scores.before) > _MOST_RANKED:
        return None
    units, left = scores.before / scores.law.scale, np.ones(len(scores.before), dtype=bool)
    rounds = []
    for place in places:
        rounds.append(units[left] - scipy.special.logsumexp(units[left]))
        left[place] = False
    return rounds


def log_cells(scores: Scores, bounds: FloatArray) -> FloatArray:
    """Log probabilities of the cells into which increasing bounds cut each noisy score.

    Args:
        scores: The scores.
        bounds: The bounds of each score; shape (scores, bounds).

    Returns:
        Shape (scores, bounds + 1).
    """
    size = len(scores.before)
    noise = bounds - scores.before[:, None]
    columns = scores.law.element(np.s_[:, None], size)
    below, above = (columns.log_tail(noise, above=side) for side in (False, True))
    never, sure = np.full((size, 1), -np.inf), np.zeros((size, 1))
    from_below = _log_minus(np.hstack([below, sure]), np.hstack([never, below]))
    from_above = _log_minus(np.hstack([sure, above]), np.hstack([above, never]))
    upper = np.hstack([np.zeros((size, 1), dtype=bool), noise > 0])  # the smaller tails
    return np.where(upper, from_above, from_below)


class Comparisons(NamedTuple):
    """Noisy scores compared with one noisy limit t: whether each exceeds `slope * t + offset`.

    Attributes:
        scores: The scores, in one world.
        slope: Of each score's limit.
        offset: Of each score's limit.
        limit: t before noise, and its noise: one element.
    """

    scores: Scores
    slope: FloatArray
    offset: FloatArray
    limit: Scores


def log_bits(
    comparisons: Comparisons, is_above: NDArray[np.bool_]
) -> tuple[float, FloatArray] | None:
    """Log probability of the outcomes of comparisons with a noisy limit (sparse vector).

    Args:
        comparisons: The comparisons; all laws are integrable.
        is_above: Whether each score exceeds its limit.

    Returns:
        The logarithm for these outcomes, and those for each outcome reversed in turn; None if the
        integral over the limit is too large.
    """
    (before, law), slope, offset, limit = comparisons
    middle, wide = float(limit.before[0]), float(np.max(limit.law.scale))
    narrow = float(np.min(law.scale / np.maximum(np.abs(slope), 1e-300)))
    kinks = np.append((before - offset) / np.where(slope == 0, 1.0, slope), middle)
    grid = _grid(middle - _REACH * wide, middle + _REACH * wide, min(wide, narrow), kinks)
    if grid is None or len(before) * len(grid[0]) > _MOST_POINTS:
        return None
    columns = law.element(np.s_[:, None], len(before))
    seen, reversed_ = np.array(-np.inf), np.full(len(before), -np.inf)
    for points, log_weights in _blocks(grid, len(before)):
        noise = slope[:, None] * points + offset[:, None] - before[:, None]
        above, below = (columns.log_tail(noise, above=side) for side in (True, False))
        own = np.where(is_above[:, None], above, below)
        other = np.where(is_above[:, None], below, above)
        whole = limit.law.log_density(points - middle) + log_weights + own.sum(axis=0)
        with np.errstate(invalid="ignore"):
            away = np.nan_to_num(whole - own, nan=-np.inf, neginf=-np.inf) + other
        seen = np.logaddexp(seen, scipy.special.logsumexp(whole))
        reversed_ = np.logaddexp(reversed_, scipy.special.logsumexp(away, axis=1))
    return float(seen), reversed_


def _grid(
    low: float, high: float, scale: float, kinks: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """Points of an integral, and their log weights: Gauss-Legendre on pieces between kinks."""
    pieces = np.ceil((high - low) / (_PIECE * scale))
    if not pieces <= _MOST_PIECES:
        return None
    kinks = kinks[(kinks > low) & (kinks < high)]
    edges = np.linspace(low, high, int(pieces) + 1)
    edges = np.unique(np.concatenate([edges, np.unique(kinks)[-_MOST_KINKS:]]))
    half = 0.5 * np.diff(edges)[:, None]
    points = edges[:-1, None] + half * (1.0 + _NODES)
    return points.ravel(), np.log(half * _WEIGHTS).ravel()


def _blocks(grid: tuple[FloatArray, FloatArray], rows: int) -> Iterator[tuple[FloatArray, ...]]:
    """The points of an integral and their log weights, in blocks."""
    size = max(_BLOCK // rows, 1)
    for start in range(0, len(grid[0]), size):
        yield tuple(values[start : start + size] for values in grid)


def _log_minus(larger: FloatArray, smaller: FloatArray) -> FloatArray:
    """log(exp(x) - exp(y)) for x >= y."""
    with np.errstate(invalid="ignore", divide="ignore"):
        gap = np.minimum(smaller - larger, 0.0)
        return np.asarray(np.where(np.isneginf(larger), -np.inf, larger + np.log(-np.expm1(gap))))
