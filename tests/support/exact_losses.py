"""Exact privacy losses by brute force: tables of chances, integrals, and composition on a grid.

Written for the tests of honest generators, and independent of everything that a replay computes.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from scipy import signal, stats
from scipy.optimize import brentq

Chances = dict[Hashable, float]
GRID = np.arange(-160.0, 160.0, 0.01) + 0.0037
"""Places of noise for integrals, none at a kink."""


def pure(one: Chances, other: Chances) -> float:
    """The largest loss of an outcome; infinite if it has chance 0 in one world."""
    outcomes = {key for table in (one, other) for key, p in table.items() if p > 0.0}
    losses = [
        abs(math.log(one[key] / other[key])) if one.get(key) and other.get(key) else math.inf
        for key in outcomes
    ]
    return max(losses)


def largest(one: Any, other: Any) -> float:
    """The largest loss between two arrays of densities on the same places."""
    return float(np.abs(np.log(one) - np.log(other)).max())


def excess(one: Any, other: Any, epsilon: float) -> float:
    """The delta at epsilon of two arrays of chances, the worse of both directions."""
    factor = math.exp(epsilon)
    ahead = np.maximum(one - factor * other, 0.0).sum()
    return float(max(ahead, np.maximum(other - factor * one, 0.0).sum()))


def approximate(one: Any, other: Any, delta: float) -> float:
    """The least epsilon at delta of two arrays of chances."""
    delta += 1e-13
    if excess(one, other, 0.0) <= delta:
        return 0.0
    if excess(one, other, 200.0) > delta:
        return math.inf
    return float(brentq(lambda epsilon: excess(one, other, epsilon) - delta, 0.0, 200.0))


def gaussian(mu: float, delta: float) -> float:
    """Epsilon at delta of a Gaussian answer, from its trade-off of two normal tails."""

    def above(epsilon: float) -> float:
        left = stats.norm.sf(epsilon / mu - mu / 2)
        return float(left - math.exp(epsilon + stats.norm.logsf(epsilon / mu + mu / 2))) - delta

    return float(brentq(above, 0.0, 200.0))


def winners(scores: Sequence[float], law: Any, places: int = 1) -> Chances:
    """Chances of the largest of scores with noise of a law, or of the ordered largest two."""
    scores = np.asarray(scores, float)
    step, chances = GRID[1] - GRID[0], {}
    pdf = [law.pdf(GRID - one) for one in scores]
    cdf = [law.cdf(GRID - one) for one in scores]
    sf = [law.sf(GRID - one) for one in scores]
    for order in itertools.permutations(range(len(scores)), places):
        rest = [cdf[at] for at in range(len(scores)) if at not in order]
        ahead = [sf[at] for at in order[:-1]]
        chances[order] = float(np.prod([pdf[order[-1]], *rest, *ahead], axis=0).sum() * step)
    return chances


def sparse(
    counts: Sequence[float], threshold: float, of_threshold: Any, of_counts: Any, most: int = 1
) -> Chances:
    """Chances of the places of the first counts above a noisy threshold; laws or None."""
    noise = np.zeros(1) if of_threshold is None else GRID[np.abs(GRID) < 60.0]
    step = GRID[1] - GRID[0]
    weights = np.ones(1) if of_threshold is None else of_threshold.pdf(noise) * step
    if of_counts is None:
        above = [(count >= threshold + noise).astype(float) for count in counts]
    else:
        above = [of_counts.sf(threshold + noise - count) for count in counts]
    open_, done = {(): weights}, {}
    for place, chance in enumerate(above):
        following = {}
        for found, weight in open_.items():
            following[found] = weight * (1.0 - chance)
            longer = (*found, place)
            if len(longer) == most:
                done[longer] = float((weight * chance).sum())
            else:
                following[longer] = weight * chance
        open_ = following
    return done | {found: float(weight.sum()) for found, weight in open_.items()}


def in_proportion(weights: Any) -> Any:
    """Weights as probabilities."""
    weights = np.asarray(weights, float)
    return weights / weights.sum()


def permute_and_flip(scores: Sequence[float]) -> Any:
    """Chances of permute and flip, over all orders."""
    scores = np.asarray(scores) - max(scores)
    chances = np.zeros(len(scores))
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        left = 1.0 / len(orders)
        for place in order:
            chances[place] += left * math.exp(scores[place])
            left *= 1.0 - math.exp(scores[place])
    return chances


@functools.cache
def composed(rate: float, sigma: float, steps: int, delta: float) -> float:
    """Epsilon at delta of equal sub-sampled Gaussian steps whose number moves by 1.

    The loss of a step is put on a grid and convolved; the worse of both directions.
    """
    z = np.arange(-30.0, 30.0, 0.001)
    other = stats.norm.pdf(z, 0.0, sigma)
    one, found = (1.0 - rate) * other + rate * stats.norm.pdf(z, 1.0, sigma), []
    for first, second in ((one, other), (other, one)):
        kept = (first > 0) & (second > 0)
        loss = np.log(first[kept] / second[kept])
        mesh = 2e-4
        at = np.rint(loss / mesh).astype(int)
        lowest = at.min()
        mass = np.bincount(at - lowest, weights=first[kept] * 0.001)
        total = mass
        for _ in range(steps - 1):
            total = signal.fftconvolve(total, mass)
        losses = (np.arange(len(total)) + steps * lowest) * mesh
        total = np.maximum(total, 0.0)

        def above(epsilon: float, losses: Any = losses, total: Any = total) -> float:
            over = losses > epsilon
            return float((total[over] * -np.expm1(epsilon - losses[over])).sum()) - delta

        found.append(float(brentq(above, 0.0, float(losses[-1]))))
    return max(found)
