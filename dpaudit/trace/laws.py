"""Tests of the distribution that noise was drawn from; each errs with probability 1e-6."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Final, NamedTuple

import numpy as np
from scipy import stats

from dpaudit.plugins.protocols import FloatArray

ERROR: Final = 1e-6
"""Probability of a false alarm of one test."""
FEWEST: Final = 1200
"""Fewest draws by which normal and Laplace noise are distinguished with both errors at `ERROR`."""


class Law(StrEnum):
    """Distributions of noise with mean 0."""

    NORMAL = "normal"
    LAPLACE = "Laplace"


class _Shape(NamedTuple):
    """Mean absolute value over root mean square, and sqrt(n) times its standard error."""

    ratio: float
    error: float


# The error is that of the delta method: of log(mean |x|) - log(mean x^2) / 2.
_SHAPES: Final = {
    Law.NORMAL: _Shape(math.sqrt(2 / math.pi), math.sqrt(1 - 3 / math.pi)),
    Law.LAPLACE: _Shape(math.sqrt(1 / 2), math.sqrt(1 / 2) / 2),
}
_BEYOND: Final = float(stats.norm.isf(ERROR / 20))
"""Standard errors; the spare factor of 20 covers that the ratio is only roughly normal."""


def laws_of(draws: FloatArray) -> tuple[Law, ...]:
    """The distributions that draws [n] may come from, whatever their scale.

    The ratio of mean absolute value and root mean square is the likelihood ratio of the two, each
    at its likeliest scale.

    Args:
        draws: At least `FEWEST`.

    Returns:
        Those that are not rejected: none, one, or both if there are too few draws.
    """
    root = math.sqrt(float(np.mean(draws**2)))
    if not 0.0 < root < math.inf:
        return ()
    ratio = float(np.mean(np.abs(draws))) / root
    room = _BEYOND / math.sqrt(draws.size)
    return tuple(
        law for law, shape in _SHAPES.items() if abs(ratio - shape.ratio) < room * shape.error
    )


def scale_of(draws: FloatArray, law: Law) -> float:
    """The likeliest scale: standard deviation of normal draws, scale of Laplace draws."""
    if law is Law.NORMAL:
        return math.sqrt(float(np.mean(draws**2)))
    return float(np.mean(np.abs(draws)))


def may_have_scale(draws: FloatArray, law: Law, scale: float) -> bool:
    """Whether draws may have a scale: an exact two-sided test at `ERROR`.

    The sum of squares over the variance is chi-square with n degrees of freedom; the sum of
    absolute values over the Laplace scale is Gamma(n).

    Args:
        draws: Noise with mean 0; shape [n].
        law: Its distribution.
        scale: The scale in question: standard deviation or Laplace scale.

    Returns:
        False if the test rejects it.
    """
    n = draws.size
    if law is Law.NORMAL:
        found = float(np.sum((draws / scale) ** 2))
        tails = stats.chi2.cdf(found, n), stats.chi2.sf(found, n)
    else:
        found = float(np.sum(np.abs(draws / scale)))
        tails = stats.gamma.cdf(found, n), stats.gamma.sf(found, n)
    return bool(min(tails) > ERROR / 2)


def more_than_chance(cells: int, draws: int, empty: int) -> bool:
    """Whether more cells are empty than uniform draws from all of them would leave.

    Each is empty with probability (1 - 1/cells)^draws, or less if draws are without replacement.
    An empty cell makes other empty cells less likely, so the binomial tail is an upper bound.

    Args:
        cells: Number of cells.
        draws: Number of draws.
        empty: Number of cells that no draw fell into.

    Returns:
        True if chance would leave so many with a probability below `ERROR`.
    """
    if cells < 1 or empty < 1:
        return False
    alone = math.exp(draws * math.log1p(-1.0 / cells)) if cells > 1 else float(draws == 0)
    return bool(stats.binom.sf(empty - 1, cells, alone) < ERROR)
