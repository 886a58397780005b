"""Report noisy max and top-k with Laplace, exponential, Gaussian and Gumbel noise.

The target votes for three of four candidates: released scores cost three times what one costs,
and the winner alone hardly anything.
"""

from __future__ import annotations

import heapq
import math
from typing import Any

import numpy as np
import pandas as pd

from reports.replay.honest.bases import BITS, VOTES_SCHEMA, BitsModel, Rng, votes_table
from reports.replay.honest.case import Case


class Winners(BitsModel):
    """Bits that say which candidates won.

    Attributes:
        scale: Of the noise.
        keep_scores: The twins' mistake: noisy scores stay in the model.
    """

    columns = tuple(f"b{place}" for place in range(BITS))

    def __init__(self, scale: float = 2.0, *, keep_scores: bool = False) -> None:
        self.scale = scale
        self.keep_scores = keep_scores

    def fit(self, data: pd.DataFrame, *, seed: int) -> Winners:
        """Counts votes and lets candidates win."""
        votes = data[list(self.columns)].sum().to_numpy(dtype=float)
        won = self._win(votes, np.random.default_rng(seed))
        self.order = [int(place) for place in np.atleast_1d(won)]
        self.told = [int(place in self.order) for place in range(BITS)]
        return self

    def _win(self, votes: Any, rng: Rng) -> Any:
        raise NotImplementedError

    def _kept(self, noisy: Any) -> Any:
        if self.keep_scores:
            self.scores = np.array(noisy)
        return noisy


class LaplaceMax(Winners):
    """The largest after Laplace noise."""

    def _win(self, votes: Any, rng: Rng) -> Any:
        noisy = votes + rng.laplace(scale=self.scale, size=BITS)  # fault: laplace-max
        return np.argmax(self._kept(noisy))


class ExponentialMax(Winners):
    """The largest after exponential noise."""

    def _win(self, votes: Any, rng: Rng) -> Any:
        noisy = votes + rng.exponential(self.scale, size=BITS)  # fault: exponential-max
        return np.argmax(self._kept(noisy))


class GaussianMax(Winners):
    """The largest after Gaussian noise."""

    def _win(self, votes: Any, rng: Rng) -> Any:
        noisy = votes + rng.normal(scale=self.scale, size=BITS)  # fault: gaussian-max
        return self._kept(noisy).argmax()


class LoopMax(Winners):
    """Laplace noise, candidate by candidate."""

    def _win(self, votes: Any, rng: Rng) -> Any:
        best, winner = -np.inf, 0
        for candidate, count in enumerate(votes):
            noisy = count + rng.laplace(scale=self.scale)  # fault: loop-max
            if noisy > best:
                best, winner = noisy, candidate
        if self.keep_scores:
            self.best = float(best)
        return winner


class KeyMax(Winners):
    """Python's `max` with the noisy score as key."""

    def _win(self, votes: Any, rng: Rng) -> Any:
        noisy = {c: v + rng.laplace(scale=self.scale) for c, v in enumerate(votes)}  # fault: key
        if self.keep_scores:
            self.scores = dict(noisy)
        return max(noisy, key=noisy.__getitem__)


class LeastError(Winners):
    """The least noisy number of records that did not vote for a candidate, of 20 in public."""

    def _win(self, votes: Any, rng: Rng) -> Any:
        errors = (20 - votes) + rng.laplace(0.0, self.scale, BITS)  # fault: least-error
        return int(np.nanargmin(self._kept(errors)))


class LaplaceTopTwo(Winners):
    """The two largest after one draw of Laplace noise for each, in order."""

    def _win(self, votes: Any, rng: Rng) -> Any:
        noisy = votes + rng.laplace(scale=self.scale, size=BITS)  # fault: top-two
        return np.argsort(self._kept(noisy))[::-1][:2]


class GumbelTopTwo(Winners):
    """The same with Gumbel noise, which is a peeling exponential mechanism."""

    def _win(self, votes: Any, rng: Rng) -> Any:
        noisy = votes + rng.gumbel(scale=self.scale, size=BITS)  # fault: gumbel-two
        return (-self._kept(noisy)).argsort()[:2]


class HeapTopTwo(Winners):
    """The same by a heap of pairs."""

    def _win(self, votes: Any, rng: Rng) -> Any:
        noisy = votes + rng.gumbel(scale=self.scale, size=BITS)  # fault: heap-two
        pairs = heapq.nlargest(2, zip(self._kept(noisy), range(BITS), strict=True))
        return [candidate for _, candidate in pairs]


class SetOfTwo(Winners):
    """Which two are largest, not in which order."""

    def _win(self, votes: Any, rng: Rng) -> Any:
        noisy = votes + rng.laplace(scale=self.scale, size=BITS)  # fault: set-of-two
        return sorted(np.argpartition(self._kept(noisy), -2)[-2:])


class Peeling(Winners):
    """Two rounds of the exponential mechanism, the second without the first's winner."""

    def _win(self, votes: Any, rng: Rng) -> Any:
        left, order = list(range(BITS)), []
        for _ in range(2):
            weights = np.exp(votes[left] / self.scale)
            order.append(int(rng.choice(left, p=weights / weights.sum())))  # fault: peeling
            left.remove(order[-1])
        return order


class WithGap(Winners):
    """The winner, and by how much it won: the gap is free."""

    def _win(self, votes: Any, rng: Rng) -> Any:
        noisy = votes + rng.laplace(scale=self.scale, size=BITS)  # fault: gap
        order = np.argsort(noisy)[::-1]
        self.gap = float(noisy[order[0]] - noisy[order[1]])
        if self.keep_scores:
            self.best = float(noisy[order[0]])
        return order[0]


def _case(name: str, kind: type[Winners], marker: str, **known: Any) -> Case:
    scale = known.pop("scale", 2.0)
    return Case(
        name=name,
        family="noisy max and top-k",
        generator=lambda: kind(scale),
        table=votes_table(),
        schema=VOTES_SCHEMA,
        target="row:12",
        twin=lambda: kind(scale, keep_scores=True),
        twin_marker=f"# fault: {marker}",
        note="probabilities of the winners by one-dimensional integrals; all four noisy scores "
        "cost three answers",
        **known,
    )


KEPT: dict[str, Any] = {"twin_spends": 1.5, "twin_shows": 1.5}
ONE_SIDED: dict[str, Any] = {"twin_spends": math.inf, "twin_shows": math.inf}
"""Of noise whose tails fall faster, or on one side only: no limit holds for scores with delta 0."""

CASES = (
    _case(
        "noisy max, Laplace", LaplaceMax, "laplace-max", epsilon=0.461253, spends=0.461253, **KEPT
    ),
    _case(
        "noisy max, exponential",
        ExponentialMax,
        "exponential-max",
        epsilon=0.5,
        spends=0.5,
        **ONE_SIDED,
    ),
    _case(
        "noisy max, Gaussian",
        GaussianMax,
        "gaussian-max",
        epsilon=0.580025,
        spends=0.580025,
        **ONE_SIDED,
    ),
    _case(
        "noisy max in a loop",
        LoopMax,
        "loop-max",
        epsilon=0.461253,
        spends=0.461253,
        twin_spends=1.5,
    ),
    _case("noisy max by key", KeyMax, "key", epsilon=0.461253, spends=0.461253, **KEPT),
    _case(
        "least noisy error", LeastError, "least-error", epsilon=0.461253, spends=0.461253, **KEPT
    ),
    _case("top two by argsort, Laplace", LaplaceTopTwo, "top-two", epsilon=0.461253, **KEPT),
    _case(
        "top two by argsort, Gumbel",
        GumbelTopTwo,
        "gumbel-two",
        epsilon=0.396452,
        spends=0.396452,
        **ONE_SIDED,
    ),
    _case(
        "top two by a heap, Gumbel",
        HeapTopTwo,
        "heap-two",
        epsilon=0.396452,
        spends=0.396452,
        **ONE_SIDED,
    ),
    _case("set of two by argpartition", SetOfTwo, "set-of-two", epsilon=0.353974, **KEPT),
    Case(
        name="top two by peeling",
        family="noisy max and top-k",
        generator=Peeling,
        epsilon=0.396452,
        table=votes_table(),
        schema=VOTES_SCHEMA,
        target="row:12",
        spends=0.396452,
        twin=lambda: Peeling(0.25),
        twin_marker="# fault: peeling",
        twin_shows=3.718405,
        note="products of two probabilities; the twin multiplies by 4 where it should divide",
    ),
    _case("noisy max with its gap", WithGap, "gap", epsilon=0.5, twin_spends=1.5),
)
