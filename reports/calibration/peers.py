"""Rules of other tools, written again in a few lines: to measure them, never to use them."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import betainccinv

from dpaudit.bounds import clopper_pearson, gdp, statistic, upper_limits
from dpaudit.plugins.protocols import BoolArray
from reports.calibration.mechanisms import FloatArray

IntArray = npt.NDArray[np.int64]


def unsplit(
    false_negatives: int,
    false_positives: int,
    n_in: int,
    n_out: int,
    *,
    delta: float,
    confidence: float,
) -> float:
    """Clopper-Pearson with all of alpha for each rate: either may fail, so 2 alpha in all."""
    return clopper_pearson(
        false_negatives,
        false_positives,
        n_in,
        n_out,
        delta=delta,
        confidence=1.0 - 2.0 * (1.0 - confidence),
    )


def gaussian_estimate(
    false_negatives: int,
    false_positives: int,
    n_in: int,
    n_out: int,
    *,
    delta: float,
    confidence: float,
) -> float:
    """The Gaussian trade-off curve through one point, whatever the mechanism is."""
    return gdp(
        false_negatives,
        false_positives,
        n_in,
        n_out,
        delta=max(delta, 1e-5),
        confidence=confidence,
        assume="gaussian",
    )


def best_on_test(
    scores: FloatArray, limits: FloatArray, *, delta: float, both_directions: bool
) -> float:
    """The largest bound of any threshold on the scored trials, as if it had been fixed before.

    Args:
        scores: Scores [2, n] of worlds "in" and "out", without ties.
        limits: Upper limit [n + 1] on an error rate after each count of errors.
        delta: Delta of the claim.
        both_directions: Whether "in" may also be guessed for low scores.

    Returns:
        The largest bound.
    """
    n = scores.shape[1]
    is_in = np.argsort(scores, axis=None) < n
    in_below = np.concatenate([[0], np.cumsum(is_in)])
    out_below = np.concatenate([[0], np.cumsum(~is_in)])
    bounds = [_largest(limits[in_below], limits[n - out_below], delta)]
    if both_directions:
        bounds.append(_largest(limits[n - in_below], limits[out_below], delta))
    return max(bounds)


def _largest(fnr: FloatArray, fpr: FloatArray, delta: float) -> float:
    # A rate of 0 (no interval) gives an infinite ratio; 0/0 is no evidence.
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.nanmax(statistic(fnr, fpr, delta)))


def delta_siege_limits(n: int, alpha: float) -> FloatArray:
    """The DKW band with log(min(2, 1/alpha)) where log(max(2, 1/alpha)) is meant."""
    return np.arange(n + 1) / n + math.sqrt(math.log(min(2.0, 1.0 / alpha)) / (2.0 * n))


def jeffreys_limits(n: int, alpha: float) -> FloatArray:
    """Jeffreys upper limits at level alpha/2 per rate."""
    errors = np.arange(n)
    return np.append(betainccinv(errors + 0.5, n - errors + 0.5, alpha / 2.0), 1.0)


def clopper_pearson_limits(n: int, alpha: float) -> FloatArray:
    """Clopper-Pearson upper limits at level alpha/2 per rate."""
    return upper_limits(n, alpha / 2.0)


def no_interval(n: int, alpha: float) -> FloatArray:
    """The observed rates themselves, whatever alpha is."""
    return np.arange(n + 1) / n


def peeking(
    fn: IntArray, fp: IntArray, *, looks: range, epsilon: float, delta: float, alpha: float
) -> BoolArray:
    """Whether Clopper-Pearson exceeds epsilon at any of several interim analyses.

    Args:
        fn: False negatives [draws, pairs] so far, after each pair.
        fp: The same for false positives.
        looks: After how many pairs each of them is made.
        epsilon: True epsilon.
        delta: Delta of the claim.
        alpha: Nominal error of each.

    Returns:
        One answer per draw.
    """
    exceeded = np.zeros(len(fn), dtype=np.bool_)
    for pairs in looks:
        limits = upper_limits(pairs, alpha / 2.0)
        exceeded |= statistic(limits[fn[:, pairs - 1]], limits[fp[:, pairs - 1]], delta) > epsilon
    return exceeded
