"""Features that separate the worlds: alone, by a rule with one cut, and in pairs.

A rule guesses "in" above a cut and "out" below it, or the reverse. It detects a leak in a single
feature or in few trials, where an average of many features fails: if only 8 of 80 tables with the
target have a property, and no other table has it, a forest of random feature subsets hardly ever
tests it.

Some features are informative only together: if the same noise is added to two numbers, each alone
hides the record and their difference reveals it. So pairs are screened before single features: for
a difference that separates the worlds, also of logarithms (a ratio), and for two numbers that go
together in one world only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from dpaudit.plugins.protocols import BoolArray, FloatArray, IntArray

SMOOTHING = 0.5
"""Added to every count before log-odds are taken (Jeffreys)."""
BLOCK = 2**16
"""Numbers that are sorted at once, so that memory does not grow with the number of features."""


@lru_cache(maxsize=16)
def n_log_n(most: int) -> FloatArray:
    """K log k for k from 0 to `most`; 0 for 0."""
    counts = np.arange(most + 1, dtype=np.float64)
    return counts * np.log(np.maximum(counts, 1.0))


class Judged(NamedTuple):
    """How well each feature [f] alone distinguishes the worlds.

    Attributes:
        separation: |AUC - 1/2|; ties count one half (Mann-Whitney).
        gains: Log-likelihood of the best cut in nats, minus the logarithm of the number of cuts: a
            feature with many values separates some trials by chance far more often than a count
            that is hardly ever above 0. -infinity for a constant.
        cuts: The best cut.
        below_in: Trials of world "in" at or below the cut.
        below_out: Trials of world "out" at or below the cut.
    """

    separation: FloatArray
    gains: FloatArray
    cuts: FloatArray
    below_in: FloatArray
    below_out: FloatArray


def judge(features: FloatArray, member: BoolArray, places: IntArray) -> Judged:
    """Evaluates features one by one.

    Args:
        features: Feature vectors [n, all features].
        member: Memberships [n], of both worlds.
        places: Positions of the features to evaluate.
    """
    step = max(1, BLOCK // len(member))
    blocks = [
        _judge_rows(np.ascontiguousarray(features[:, places[start : start + step]].T), member)
        for start in range(0, len(places), step)
    ]
    return Judged(*map(np.concatenate, zip(*blocks, strict=True)))


def _judge_rows(rows: FloatArray, member: BoolArray) -> Judged:
    """Judges features [f, n]."""
    (f, n), n_in = rows.shape, int(member.sum())
    order = rows.argsort(axis=1)
    ordered = np.take_along_axis(rows, order, axis=1)
    # Sorted, a feature's values form runs of equal ones; each run but the last may end in a cut.
    ends = np.empty((f, n), dtype=np.bool_)
    np.not_equal(ordered[:, 1:], ordered[:, :-1], out=ends[:, :-1])
    ends[:, -1] = True
    below_in = member[order].cumsum(axis=1, dtype=np.int64)
    below = np.arange(1, n + 1)

    table = n_log_n(n)
    of_in, of_out = (table[: size + 1] + table[size::-1] for size in (n_in, n - n_in))
    likelihood = of_in[below_in]
    likelihood += of_out[below - below_in]
    likelihood -= (table + table[::-1])[1:]
    likelihood[~ends] = -np.inf
    likelihood[:, -1] = -np.inf
    place = likelihood.argmax(axis=1)
    best = (np.arange(f), place)
    low, high = ordered[best], ordered[best[0], np.minimum(place + 1, n - 1)]
    cut_in = below_in[best]
    middle = low / 2 + high / 2
    runs = ends.sum(axis=1)
    without_cut = table[n_in] + table[n - n_in] - table[n]
    return Judged(
        separation=_separation(
            below_in[ends], np.broadcast_to(below, ends.shape)[ends], runs.cumsum() - 1
        ),
        gains=likelihood[best] - without_cut - np.log(np.maximum(runs - 1, 1)),
        cuts=np.where((low <= middle) & (middle < high), middle, low),
        below_in=cut_in.astype(np.float64),
        below_out=(place + 1 - cut_in).astype(np.float64),
    )


def _separation(below_in: IntArray, below: IntArray, last: IntArray) -> FloatArray:
    """|AUC - 1/2| [f], from the numbers of trials at or below the value of each run.

    Args:
        below_in: Trials of world "in" [runs of all features], feature by feature.
        below: Trials of both worlds, in the same order.
        last: Position of each feature's last run [f].
    """
    first = np.append(0, last[:-1] + 1)
    below_out = below - below_in
    run_in, lower_out = np.diff(below_in, prepend=0), np.append(0, below_out[:-1])
    run_in[first], lower_out[first] = below_in[first], 0
    # Twice the number of pairs in which "in" is above "out"; ties count one half.
    above = np.add.reduceat(run_in * (lower_out + below_out), first)
    auc = above / (2.0 * below_in[last] * below_out[last])
    return np.asarray(np.abs(auc - 0.5), dtype=np.float64)


@dataclass(frozen=True)
class FeatureRule:
    """Log-odds of membership from one feature.

    Attributes:
        feature: Position of the feature.
        cut: The cut.
        lower: Log-odds at or below the cut.
        upper: Log-odds above the cut.
    """

    feature: int
    cut: float
    lower: float
    upper: float

    def __call__(self, features: FloatArray) -> FloatArray:
        """Log-odds [n] of feature vectors [n, all features]."""
        return np.where(features[:, self.feature] > self.cut, self.upper, self.lower)


def best_rule(judged: Judged, member: BoolArray, places: IntArray) -> FeatureRule:
    """The rule on the feature whose best cut gains most; log-odds of 0 if no feature has a cut.

    Args:
        judged: The evaluated features.
        member: Memberships [n] of the trials on which they were evaluated.
        places: Positions of the features.
    """
    best = int(judged.gains.argmax())
    if judged.gains[best] == -np.inf:
        return FeatureRule(int(places[best]), 0.0, 0.0, 0.0)
    n_in, n_out = int(member.sum()), int((~member).sum())
    below_in, below_out = float(judged.below_in[best]), float(judged.below_out[best])

    def log_odds(inside: float, outside: float) -> float:
        share_in = (inside + SMOOTHING) / (n_in + 2 * SMOOTHING)
        share_out = (outside + SMOOTHING) / (n_out + 2 * SMOOTHING)
        return float(np.log(share_in / share_out))

    return FeatureRule(
        int(places[best]),
        float(judged.cuts[best]),
        log_odds(below_in, below_out),
        log_odds(n_in - below_in, n_out - below_out),
    )


PAIRED: Final = 400
"""Number of features whose pairs are screened: those with the most distinct values."""
FOUND: Final = 8
"""Largest number of pairs of each kind; no feature is in two of them."""
FEWEST: Final = 32
"""Fewest trials in which a pair can stand out among so many."""
MARGIN: Final = 5.0
"""Gain in nats, beyond the logarithm of the number of pairs, that a pair must reach.

Without a leak, about one in 400 sets of trials has such a pair.
"""
_NEGLIGIBLE: Final = 1e-9
"""Features whose squared correlation is this close to 1 are one feature."""


@dataclass(frozen=True)
class Pairs:
    """Features made from pairs: weighted sums of two numbers, or their distance.

    Attributes:
        first: Positions of the first numbers [p].
        second: Positions of the second numbers [p].
        logarithm: Whether the logarithms of both are used [p].
        distance: Whether the feature is a distance instead of a weighted sum [p].
        mean: Means of both [2, p].
        weights: Weights of both [2, p], divided by their standard deviations.
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
        """Feature vectors [n, f], followed by the pairs [n, f + p]."""
        if not len(self):
            return features
        both = np.stack([features[:, self.first], features[:, self.second]])
        logarithms = np.log(np.maximum(both, np.finfo(np.float64).tiny))
        both = np.where(self.logarithm, logarithms, both)
        sums = ((both - self.mean[:, None]) * self.weights[:, None]).sum(axis=0)
        return np.concatenate([features, np.where(self.distance, np.abs(sums), sums)], axis=1)


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
        places: Positions of the features to pair.

    Returns:
        The pairs that separate the worlds better than either of their features, by more than chance
        among all pairs.
    """
    parts = [NO_PAIRS]
    if len(member) >= FEWEST and len(places) > 1:
        chosen = features[:, places]
        ordered = np.sort(chosen, axis=0)
        distinct = (ordered[1:] != ordered[:-1]).sum(axis=0)
        kept = np.sort(np.argsort(-distinct, kind="stable")[:PAIRED])
        numbers = chosen[:, kept]
        positive = ordered[0, kept] > 0
        parts += _screen(numbers, member, places[kept], logarithm=False)
        if positive.sum() > 1:
            logarithms = np.log(numbers[:, positive])
            parts += _screen(logarithms, member, places[kept][positive], logarithm=True)
    return Pairs(
        *(
            np.concatenate([getattr(part, name) for part in parts], axis=-1)
            for name in Pairs.__dataclass_fields__
        )
    )


def _screen(
    numbers: FloatArray, member: BoolArray, places: IntArray, *, logarithm: bool
) -> list[Pairs]:
    """The best pairs among numbers [n, f]: weighted sums and, unless of logarithms, distances."""
    n = len(member)
    mean, scale = numbers.mean(axis=0), numbers.std(axis=0)
    varies = scale > 1e-12 * np.maximum(1.0, np.abs(mean))
    mean, scale, places = mean[varies], scale[varies], places[varies]
    unit = (numbers[:, varies] - mean) / scale
    world = (member - member.mean()) / member.std()
    alone = world @ unit / n
    together = unit.T @ unit / n
    unlike = 1.0 - together**2
    same = unlike < _NEGLIGIBLE
    unlike[same] = np.inf

    def pairs_of(best: IntArray, weights: FloatArray, *, distance: bool) -> Pairs:
        first, second = best.T
        return Pairs(
            places[first],
            places[second],
            np.full(len(best), logarithm),
            np.full(len(best), distance),
            np.stack([mean[first], mean[second]]),
            weights / np.stack([scale[first], scale[second]]),
        )

    # The share of the variance of membership that a linear fit to both numbers explains.
    explained = alone[:, None] ** 2 + alone**2 - 2 * together * np.outer(alone, alone)
    best = _best_pairs(explained / unlike, alone, trials=n)
    first, second = best.T
    r, of_first, of_second = together[first, second], alone[first], alone[second]
    slopes = np.stack([of_first - r * of_second, of_second - r * of_first])
    slopes /= unlike[first, second]
    sums = pairs_of(best, slopes, distance=False)
    if logarithm:
        return [sums]
    # The share that is explained by whether both numbers are on the same side of their means.
    side = np.where(unit > 0, 1.0, -1.0)
    agree = side.T @ side / n
    by_world = (side * world[:, None]).T @ side / n
    explained = by_world**2 / np.maximum(1.0 - agree**2, _NEGLIGIBLE)
    explained[same] = 0.0
    best = _best_pairs(explained, world @ side / n, trials=n)
    apart = -np.where(together[tuple(best.T)] < 0, -1.0, 1.0)
    return [sums, pairs_of(best, np.stack([np.ones(len(best)), apart]), distance=True)]


def _best_pairs(explained: FloatArray, alone: FloatArray, *, trials: int) -> IntArray:
    """The best pairs [p, 2], each feature in at most one of them.

    Args:
        explained: Share of the variance of membership that each pair explains [f, f].
        alone: Correlations of features alone [f].
        trials: Number of trials.
    """
    unexplained = 1.0 - np.minimum(np.triu(explained, k=1), 1.0 - _NEGLIGIBLE)
    by_one = np.maximum(1.0 - alone**2, _NEGLIGIBLE)  # unexplained by one of the two
    gains = (trials - 4) / 2 * np.log(np.minimum.outer(by_one, by_one) / unexplained)
    least = np.log(max(1, gains.size // 2)) + MARGIN
    rows, columns = np.nonzero(gains > least)
    order = np.argsort(-gains[rows, columns], kind="stable")
    paired: set[int] = set()
    pairs: list[tuple[int, int]] = []
    for pair in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
        if len(pairs) < FOUND and paired.isdisjoint(pair):
            pairs.append(pair)
            paired.update(pair)
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)
