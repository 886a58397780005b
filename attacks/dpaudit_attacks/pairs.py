"""Pairs of features that are informative only together.

If one noise is added to two numbers, each hides the record and their difference reveals it. So all
pairs are screened before single features are: for a difference that separates the worlds, also of
logarithms (a ratio), and for two numbers that go together in one world only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from dpaudit.plugins.protocols import BoolArray, FloatArray, IntArray

SCREENED: Final = 400
"""Number of features whose pairs are screened, those with the most distinct values."""
FOUND: Final = 8
"""Largest number of pairs of each kind; no feature is in two of them."""
FEWEST: Final = 32
"""With fewer trials, no pair stands out among so many."""
MARGIN: Final = 5.0
"""Gain in nats, beyond the logarithm of the number of pairs, from which a pair counts.

Without a leak, about one set of trials in 400 has such a pair.
"""
_SAME: Final = 1e-9
"""Features whose squared correlation is this close to 1 are one feature."""


@dataclass(frozen=True)
class Pairs:
    """Features made from pairs; numbers are in standard deviations from their mean.

    Attributes:
        first: Positions of the first ones [p].
        second: Positions of the others [p].
        logarithm: Whether their logarithms are taken [p].
        distance: Whether it is their distance, not their weighted sum [p].
        mean: Means of both [2, p].
        weights: Weights of both [2, p], standard deviations divided out.
    """

    first: IntArray
    second: IntArray
    logarithm: BoolArray
    distance: BoolArray
    mean: FloatArray
    weights: FloatArray

    def __len__(self) -> int:
        return len(self.first)

    def extended(self, features: FloatArray) -> FloatArray:
        """Feature vectors [n, f] with the pairs after them [n, f + p]."""
        if not len(self):
            return features
        both = np.stack([features[:, self.first], features[:, self.second]])
        logarithms = np.log(np.maximum(both, np.finfo(np.float64).tiny))
        both = np.where(self.logarithm, logarithms, both)
        found = ((both - self.mean[:, None]) * self.weights[:, None]).sum(axis=0)
        return np.concatenate([features, np.where(self.distance, np.abs(found), found)], axis=1)


_NOWHERE: Final = np.empty(0, dtype=np.int64)
_NEVER: Final = np.empty(0, dtype=np.bool_)
NO_PAIRS: Final = Pairs(
    _NOWHERE, _NOWHERE, _NEVER, _NEVER, mean=np.empty((2, 0)), weights=np.empty((2, 0))
)


def find_pairs(features: FloatArray, member: BoolArray, places: IntArray) -> Pairs:
    """Screens pairs of features.

    Args:
        features: Feature vectors [n, f].
        member: Memberships [n], of both worlds.
        places: Which features.

    Returns:
        The pairs that separate the worlds better than either of their features, by more than
        chance among all pairs.
    """
    found = [NO_PAIRS]
    if len(member) >= FEWEST and len(places) > 1:
        chosen = features[:, places]
        ordered = np.sort(chosen, axis=0)
        distinct = (ordered[1:] != ordered[:-1]).sum(axis=0)
        kept = np.sort(np.argsort(-distinct, kind="stable")[:SCREENED])
        numbers = chosen[:, kept]
        positive = ordered[0, kept] > 0
        found += _screened(numbers, member, places[kept], logarithm=False)
        if positive.sum() > 1:
            logarithms = np.log(numbers[:, positive])
            found += _screened(logarithms, member, places[kept][positive], logarithm=True)
    return Pairs(
        *(
            np.concatenate([getattr(one, name) for one in found], axis=-1)
            for name in Pairs.__dataclass_fields__
        )
    )


def _screened(
    numbers: FloatArray, member: BoolArray, places: IntArray, *, logarithm: bool
) -> list[Pairs]:
    """The pairs of some numbers [n, f]: weighted sums and, unless of logarithms, distances."""
    n = len(member)
    mean, scale = numbers.mean(axis=0), numbers.std(axis=0)
    varies = scale > 1e-12 * np.maximum(1.0, np.abs(mean))
    mean, scale, places = mean[varies], scale[varies], places[varies]
    unit = (numbers[:, varies] - mean) / scale
    world = (member - member.mean()) / member.std()
    alone = world @ unit / n
    together = unit.T @ unit / n
    unlike = 1.0 - together**2
    same = unlike < _SAME
    unlike[same] = np.inf

    def made(best: IntArray, weights: FloatArray, *, distance: bool) -> Pairs:
        first, second = best.T
        return Pairs(
            places[first],
            places[second],
            np.full(len(best), logarithm),
            np.full(len(best), distance),
            np.stack([mean[first], mean[second]]),
            weights / np.stack([scale[first], scale[second]]),
        )

    # The share of the variance of membership that a linear fit to both explains.
    explained = alone[:, None] ** 2 + alone**2 - 2 * together * np.outer(alone, alone)
    best = _best(explained / unlike, alone, trials=n)
    first, second = best.T
    r, own, other = together[first, second], alone[first], alone[second]
    slopes = np.stack([own - r * other, other - r * own]) / unlike[first, second]
    sums = made(best, slopes, distance=False)
    if logarithm:
        return [sums]
    # The share that is explained by whether both are on the same side of their means.
    side = np.where(unit > 0, 1.0, -1.0)
    agree = side.T @ side / n
    by_world = (side * world[:, None]).T @ side / n
    explained = by_world**2 / np.maximum(1.0 - agree**2, _SAME)
    explained[same] = 0.0
    best = _best(explained, world @ side / n, trials=n)
    apart = -np.where(together[tuple(best.T)] < 0, -1.0, 1.0)
    return [sums, made(best, np.stack([np.ones(len(best)), apart]), distance=True)]


def _best(explained: FloatArray, alone: FloatArray, *, trials: int) -> IntArray:
    """The best pairs [p, 2], each feature in one of them.

    Args:
        explained: Share of the variance of membership that each pair explains [f, f].
        alone: Correlations of features alone [f].
        trials: Number of trials.
    """
    left = 1.0 - np.minimum(np.triu(explained, k=1), 1.0 - _SAME)
    before = np.maximum(1.0 - alone**2, _SAME)
    gains = (trials - 4) / 2 * np.log(np.minimum.outer(before, before) / left)
    least = np.log(max(1, gains.size // 2)) + MARGIN
    rows, columns = np.nonzero(gains > least)
    order = np.argsort(-gains[rows, columns], kind="stable")
    taken: set[int] = set()
    found: list[tuple[int, int]] = []
    for pair in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
        if len(found) < FOUND and taken.isdisjoint(pair):
            found.append(pair)
            taken.update(pair)
    return np.array(found, dtype=np.int64).reshape(-1, 2)
