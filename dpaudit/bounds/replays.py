"""Lower confidence bounds from replays, whose privacy loss is computed and not guessed.

A replay gives a privacy loss L = log P(y) - log P'(y) of answers y that were drawn from Q, and the
weight w = P(y) / Q(y). The hockey-stick divergence at epsilon is the mean of w (1 - e^(epsilon -
L))_+, and (epsilon, delta)-differential privacy says that it is at most delta (Dwork and Roth 2014,
Section 3.5; importance sampling after Owen 2013, Chapter 9).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from dpaudit.bounds.inputs import BoolArray, FloatArray
from dpaudit.errors import SettingsError

_BETS: Final = 1.0 - np.geomspace(1e-3, 0.999, 24)
"""Shares of the capital that are bet on each replay; the total capital averages over them."""
_STEPS: Final = 45
_MOST: Final = 1e3


def mean_lower(values: FloatArray, *, confidence: float) -> float:
    """A lower confidence bound on the mean of independent, non-negative values.

    The capital of bets that the mean exceeds m, the average over shares b of the product of
    1 + b (x / m - 1), is a non-negative supermartingale that starts at 1 if the mean is at most m,
    so it reaches 1/alpha with probability at most alpha (Ville 1939; Waudby-Smith and Ramdas 2024,
    Section 4). No upper bound on the values is needed.

    Args:
        values: Shape (n,), each at least 0.
        confidence: One-sided, in (0.5, 1).

    Returns:
        The bound; 0 if nothing is shown.

    Raises:
        SettingsError: If an argument is out of range.
    """
    values = np.asarray(values, dtype=float)
    if not 0.5 < confidence < 1:
        raise SettingsError(f"`confidence` must be in (0.5, 1), got {confidence:g}")
    if np.any(np.isnan(values)) or np.any(values < 0):
        raise SettingsError("the values of replays must be at least 0")
    if not values.size or not np.any(values > 0):
        return 0.0
    high = float(np.max(np.minimum(values, 1e200)))
    low = max(high * 1e-100, 1e-300)
    if high <= low or not mean_exceeds(values, low, confidence=confidence):
        return 0.0
    for _ in range(_STEPS):
        middle = math.sqrt(low) * math.sqrt(high)
        low, high = (
            (middle, high) if mean_exceeds(values, middle, confidence=confidence) else (low, middle)
        )
    return low


def mean_exceeds(values: FloatArray, mean: float | FloatArray, *, confidence: float) -> BoolArray:
    """Whether the mean of non-negative values is shown to exceed this one.

    As `mean_lower`: the capital does not increase in the mean.

    Args:
        values: Shape (..., n).
        mean: Above 0; a shape that broadcasts with (...).
        confidence: One-sided.

    Returns:
        Shape (...).
    """
    mean = np.asarray(mean)[..., None]
    ratios = np.minimum(values, 1e250 * mean) / mean
    logs = np.log1p(_BETS[:, None] * (ratios[..., None, :] - 1.0)).sum(axis=-1)
    most = logs.max(axis=-1)
    capital = most + np.log(np.exp(logs - most[..., None]).sum(axis=-1) / len(_BETS))
    return np.asarray(capital >= -math.log1p(-confidence))


def hockey_stick(
    losses: FloatArray, log_weights: FloatArray, epsilon: float | FloatArray
) -> FloatArray:
    """Unbiased estimates of the hockey-stick divergence at epsilon, one for each replay.

    Args:
        losses: The privacy loss of each replay, perhaps infinite; shape (..., n).
        log_weights: log P(y) - log Q(y) of each; shape (..., n).
        epsilon: One epsilon, or several: a shape that broadcasts with (..., n).
    """
    with np.errstate(invalid="ignore"):
        excess = np.asarray(losses) - epsilon
    excess = np.where(np.isnan(excess), np.inf, excess)  # both without limit: delta counts whole
    share = -np.expm1(np.minimum(-excess, 0.0))
    return np.asarray(share * np.exp(np.minimum(log_weights, 700.0)))


def replayed_epsilon(
    losses: FloatArray, log_weights: FloatArray, *, delta: float, confidence: float
) -> float:
    """The lower bound on epsilon at delta from counted replays.

    For delta 0 no statistics are needed: the answers have positive probability (density), so their
    loss bounds epsilon. Else the bound is the largest epsilon at which the hockey-stick divergence
    is shown to exceed delta. The estimates do not increase in epsilon, and the capital of
    `mean_lower` increases in each of them, so a test that rejects an epsilon above the true one
    rejects the true one, too: all epsilons may be tried at once.

    Args:
        losses: Shape (n,); the direction was chosen beforehand, on other replays.
        log_weights: Shape (n,).
        delta: In [0, 1).
        confidence: One-sided.

    Returns:
        The bound, at least 0; infinite if even the largest epsilon that is tried is rejected.

    Raises:
        SettingsError: If an argument is out of range.
    """
    losses, log_weights = np.asarray(losses, dtype=float), np.asarray(log_weights, dtype=float)
    if losses.shape != log_weights.shape or losses.ndim != 1:
        raise SettingsError("replays need one loss and one weight each")
    if not 0 <= delta < 1:
        raise SettingsError(f"`delta` must be in [0, 1), got {delta:g}")
    if not losses.size:
        return 0.0
    if delta == 0:
        return max(0.0, float(np.max(losses)))

    def rejected(epsilon: float) -> BoolArray:
        found = hockey_stick(losses, log_weights, epsilon)
        return mean_exceeds(found, delta, confidence=confidence)

    if not rejected(0.0):
        return 0.0
    if rejected(_MOST):
        return math.inf
    finite = losses[np.isfinite(losses)]
    low, high = 0.0, min(_MOST, float(np.max(finite, initial=0.0)))
    if rejected(high):  # some replays have an infinite loss
        low, high = high, _MOST
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if rejected(middle) else (low, middle)
    return low
