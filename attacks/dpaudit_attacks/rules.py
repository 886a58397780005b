"""Rules on one feature: beyond a cut it says "in", below it "out", or the other way round.

A leak that shows in one feature only, or in few trials only, is found by such a rule and by no
average of many features: where 8 of 80 tables with the target hold what none of the others does, a
forest of random feature subsets hardly ever asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpaudit.plugins.protocols import BoolArray, FloatArray, IntArray

SMOOTHING = 0.5
"""Added to every count of which log-odds are taken (Jeffreys)."""


@lru_cache(maxsize=16)
def n_log_n(most: int) -> FloatArray:
    """K log k for k from 0 to `most`; 0 for 0."""
    counts = np.arange(most + 1, dtype=np.float64)
    return counts * np.log(np.maximum(counts, 1.0))


@dataclass(frozen=True)
class Ranked:
    """Features in ascending order, for everything that depends on their order alone.

    Attributes:
        ordered: Values [f, n], ascending.
        inside: Memberships [f, n] in that order.
    """

    ordered: FloatArray
    inside: BoolArray

    @staticmethod
    def of(features: FloatArray, member: BoolArray) -> Ranked:
        """From features [n, f] and memberships [n]."""
        rows = np.ascontiguousarray(features.T)
        order = rows.argsort(axis=1)
        return Ranked(np.take_along_axis(rows, order, axis=1), member[order])

    def separation(self) -> FloatArray:
        """|AUC - 1/2| [f] of each feature alone; ties count one half (Mann-Whitney)."""
        place = np.arange(self.ordered.shape[1])
        new = np.diff(self.ordered, axis=1, prepend=-np.inf) > 0
        first = np.maximum.accumulate(np.where(new, place, 0), axis=1)
        ends = np.where(np.roll(new, -1, axis=1), place, place[-1])
        last = np.minimum.accumulate(ends[:, ::-1], axis=1)[:, ::-1]
        n_in = int(self.inside[0].sum())
        n_out = len(place) - n_in
        ranks = np.where(self.inside, first + last, 0).sum(axis=1) / 2 + n_in
        auc = (ranks - n_in * (n_in + 1) / 2) / (n_in * n_out)
        found: FloatArray = np.abs(auc - 0.5)
        return found

    def cuts(self) -> Cuts:
        """The best cut of each feature.

        Its gain is that of log-likelihood, less the logarithm of the number of cuts that the
        feature has: of a thousand features with many values one separates some trials by chance,
        and a count that is hardly ever above 0 does so far more seldom.
        """
        n = self.ordered.shape[1]
        table = n_log_n(n)
        below_in = self.inside.cumsum(axis=1)[:, :-1]
        below = np.arange(1, n)
        n_in = int(self.inside[0].sum())
        likelihood = (
            table[below_in]
            + table[below - below_in]
            + table[n_in - below_in]
            + table[n - below - n_in + below_in]
            - table[below]
            - table[n - below]
        )
        possible = np.diff(self.ordered, axis=1) > 0
        likelihood = np.where(possible, likelihood, -np.inf)
        place = likelihood.argmax(axis=1)
        best = np.take_along_axis(likelihood, place[:, None], axis=1)[:, 0]
        none = table[n_in] + table[n - n_in] - table[n]
        choices = np.maximum(possible.sum(axis=1), 1)
        return Cuts(best - none - np.log(choices), place)


@dataclass(frozen=True)
class Cuts:
    """The best cut of each of some features.

    Attributes:
        gains: Gain [f] of log-likelihood, in nats, less the price of choosing the cut.
        places: How many trials, less one, lie below it [f].
    """

    gains: FloatArray
    places: IntArray


@dataclass(frozen=True)
class Rule:
    """Log-odds of membership from one feature.

    Attributes:
        feature: Position of the feature.
        cut: Values above it are on the upper side.
        lower: Log-odds at or below the cut.
        upper: Log-odds above it.
    """

    feature: int
    cut: float
    lower: float
    upper: float

    def __call__(self, features: FloatArray) -> FloatArray:
        """Log-odds [n] of feature vectors [n, f]."""
        return np.where(features[:, self.feature] > self.cut, self.upper, self.lower)


def best_rule(ranked: Ranked) -> Rule:
    """The rule on the feature whose best cut gains most; log-odds of 0 if none has a cut."""
    cuts = ranked.cuts()
    feature = int(cuts.gains.argmax())
    if cuts.gains[feature] == -np.inf:
        return Rule(feature, 0.0, 0.0, 0.0)
    ordered, inside = ranked.ordered[feature], ranked.inside[feature]
    place = int(cuts.places[feature])
    low, high = float(ordered[place]), float(ordered[place + 1])
    middle = low / 2 + high / 2
    n_in, n_out = int(inside.sum()), int((~inside).sum())

    def log_odds(side: BoolArray) -> float:
        share_in = (side.sum() + SMOOTHING) / (n_in + 2 * SMOOTHING)
        share_out = ((~side).sum() + SMOOTHING) / (n_out + 2 * SMOOTHING)
        return float(np.log(share_in / share_out))

    return Rule(
        feature,
        middle if low <= middle < high else low,
        log_odds(inside[: place + 1]),
        log_odds(inside[place + 1 :]),
    )
