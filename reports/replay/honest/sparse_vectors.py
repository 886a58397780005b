"""Sparse vectors, in loops and written with arrays; twenty counts, of which the target moves ten.

The first columns with more than six ones are sought, so that a threshold without noise, or noise
that is not drawn for each count, shows the target ten times over.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from reports.replay.honest.bases import FLAGS, FLAGS_SCHEMA, BitsModel, Rng, flags_table
from reports.replay.honest.case import Case

THRESHOLD = 6.5


class Sparse(BitsModel):
    """The places of the first counts above the threshold.

    Attributes:
        of_threshold: Scale of the noise of the threshold.
        of_counts: Scale of the noise of each count.
        most: How many counts above it are sought.
    """

    columns = tuple(f"b{place}" for place in range(FLAGS))

    def __init__(self, of_threshold: float = 2.0, of_counts: float = 4.0, most: int = 1) -> None:
        self.of_threshold = of_threshold
        self.of_counts = of_counts
        self.most = most

    def fit(self, data: pd.DataFrame, *, seed: int) -> Sparse:
        """Seeks them."""
        counts = data[list(self.columns)].sum().to_numpy()
        self.places = [int(p) for p in self._seek(counts, np.random.default_rng(seed))]
        self.told = [int(place in self.places) for place in range(FLAGS)]
        return self

    def _seek(self, counts: Any, rng: Rng) -> Any:
        raise NotImplementedError


class AboveThreshold(Sparse):
    """The textbook: a noisy threshold, and fresh noise on each count."""

    def _seek(self, counts: Any, rng: Rng) -> Any:
        threshold = THRESHOLD + rng.laplace(scale=self.of_threshold)  # fault: above
        for place, count in enumerate(counts):
            if count + rng.laplace(scale=self.of_counts) >= threshold:  # fault: above
                return [place]
        return []


class BareThreshold(AboveThreshold):
    """The twin: the threshold has no noise."""

    def _seek(self, counts: Any, rng: Rng) -> Any:
        for place, count in enumerate(counts):
            if count + rng.laplace(scale=self.of_counts) >= THRESHOLD:  # fault: above
                return [place]
        return []


class FirstOfArray(Sparse):
    """The same with arrays."""

    def _seek(self, counts: Any, rng: Rng) -> Any:
        threshold = THRESHOLD + rng.laplace(scale=self.of_threshold)  # fault: array
        noisy = counts + rng.laplace(scale=self.of_counts, size=FLAGS)  # fault: array
        return np.nonzero(noisy >= threshold)[0][: self.most]


class ArrayWithoutNoise(FirstOfArray):
    """The twin: counts have no noise of their own."""

    def _seek(self, counts: Any, rng: Rng) -> Any:
        threshold = THRESHOLD + rng.laplace(scale=self.of_threshold)  # fault: array
        return np.nonzero(counts >= threshold)[0][: self.most]  # fault: array


class ArrayBareThreshold(FirstOfArray):
    """Another twin: the threshold has no noise."""

    def _seek(self, counts: Any, rng: Rng) -> Any:
        noisy = counts + rng.laplace(scale=self.of_counts, size=FLAGS)  # fault: array
        return np.nonzero(noisy >= THRESHOLD)[0][: self.most]


class ByArgmax(Sparse):
    """The same by the first true comparison."""

    def _seek(self, counts: Any, rng: Rng) -> Any:
        noisy = counts + rng.laplace(scale=self.of_counts, size=FLAGS)
        above = noisy > THRESHOLD + self._threshold_noise(rng)  # fault: by-argmax
        return [above.argmax()] if above.any() else []

    def _threshold_noise(self, rng: Rng) -> float:
        return float(rng.laplace(scale=self.of_threshold))


class ByArgmaxBare(ByArgmax):
    """The twin: no noise for the threshold."""

    def _threshold_noise(self, rng: Rng) -> float:
        return 0.0


class Several(Sparse):
    """Up to three counts above one noisy threshold; their noise is scaled by three."""

    def _seek(self, counts: Any, rng: Rng) -> Any:
        threshold, found = THRESHOLD + rng.laplace(scale=self.of_threshold), []
        for place, count in enumerate(counts):
            if count + rng.laplace(scale=self.of_counts * self._divided()) >= threshold:  # fault: c
                found.append(place)
                if len(found) == self.most:
                    break
        return found

    def _divided(self) -> int:
        return self.most


class SeveralUndivided(Several):
    """The twin: the budget is not divided among counts above, and each is sought to the end."""

    def _divided(self) -> float:
        return 0.25


class Refreshed(Sparse):
    """Two runs in a row, each with a threshold of its own and half of the budget."""

    def _seek(self, counts: Any, rng: Rng) -> Any:
        found: list[int] = []
        for _ in range(self.most):
            threshold = THRESHOLD + self._threshold_noise(rng)
            start = found[-1] + 1 if found else 0
            for place in range(start, FLAGS):
                noisy = counts[place] + rng.laplace(scale=self.of_counts)  # fault: refreshed
                if noisy >= threshold:
                    found.append(place)
                    break
            else:
                return found
        return found

    def _threshold_noise(self, rng: Rng) -> float:
        return float(rng.laplace(scale=self.of_threshold))


class RefreshedBare(Refreshed):
    """The twin: thresholds have no noise."""

    def _threshold_noise(self, rng: Rng) -> float:
        return 0.0


class WithValue(Sparse):
    """The place, and its count with fresh noise of scale 2."""

    def _seek(self, counts: Any, rng: Rng) -> Any:
        threshold = THRESHOLD + rng.laplace(scale=self.of_threshold)
        for place, count in enumerate(counts):
            noisy = count + rng.laplace(scale=self.of_counts)
            if noisy >= threshold:
                self.count = self._released(count, noisy, rng)
                return [place]
        self.count = 0.0
        return []

    def _released(self, count: int, noisy: float, rng: Rng) -> float:
        return float(count + rng.laplace(scale=2.0))


class WithBareValue(WithValue):
    """The twin: the count itself."""

    def _released(self, count: int, noisy: float, rng: Rng) -> float:
        return float(count)  # fault: value


class WithFreeGap(Sparse):
    """The place, and how far its noisy count is above the noisy threshold."""

    def _seek(self, counts: Any, rng: Rng) -> Any:
        threshold = THRESHOLD + self._threshold_noise(rng)
        noisy = counts + rng.laplace(scale=self.of_counts, size=FLAGS)  # fault: free-gap
        above = np.flatnonzero(noisy >= threshold)[:1]
        self.gap = float(noisy[above[0]] - threshold) if len(above) else 0.0
        return above

    def _threshold_noise(self, rng: Rng) -> float:
        return float(rng.laplace(scale=self.of_threshold))


class WithFreeGapBare(WithFreeGap):
    """The twin: the threshold has no noise, so the gap is a noisy count."""

    def _threshold_noise(self, rng: Rng) -> float:
        return 0.0


class Exponentials(Sparse):
    """One-sided noise: exponential draws for threshold and counts."""

    def _seek(self, counts: Any, rng: Rng) -> Any:
        threshold = THRESHOLD + rng.exponential(self.of_threshold)  # fault: one-sided
        for place, count in enumerate(counts):
            if count + rng.exponential(self.of_counts) >= threshold:  # fault: one-sided
                return [place]
        return []


class Gaussians(Sparse):
    """Gaussian noise for both."""

    def _seek(self, counts: Any, rng: Rng) -> Any:
        threshold = rng.normal(THRESHOLD, self.of_threshold)  # fault: gaussians
        noisy = counts + rng.normal(scale=self.of_counts, size=FLAGS)  # fault: gaussians
        return np.nonzero(noisy >= threshold)[0][:1]


def _case(name: str, generator: Any, twin: Any, marker: str, **known: Any) -> Case:
    return Case(
        name=name,
        family="sparse vectors",
        generator=generator,
        table=flags_table(),
        schema=FLAGS_SCHEMA,
        target="row:10",
        twin=twin,
        twin_marker=f"# fault: {marker}",
        **({"note": "probabilities of the places, integrated over the threshold"} | known),
    )


CASES = (
    _case(
        "sparse vector in a loop",
        AboveThreshold,
        BareThreshold,
        "above",
        epsilon=0.445167,
        twin_shows=1.81328,
    ),
    _case(
        "sparse vector with arrays",
        FirstOfArray,
        ArrayBareThreshold,
        "array",
        epsilon=0.445167,
        twin_shows=1.81328,
    ),
    _case(
        "sparse vector by argmax",
        ByArgmax,
        ByArgmaxBare,
        "by-argmax",
        epsilon=0.445167,
        twin_shows=1.81328,
    ),
    _case(
        "sparse vector, three above",
        lambda: Several(most=3),
        lambda: SeveralUndivided(most=3),
        "c",
        epsilon=0.413839,
        twin_shows=2.803472,
    ),
    _case(
        "sparse vector, three above, with arrays",
        lambda: FirstOfArray(2.0, 12.0, most=3),
        lambda: ArrayWithoutNoise(2.0, 12.0, most=3),
        "array",
        epsilon=0.413839,
        twin_shows=math.inf,
    ),
    _case(
        "sparse vector, fresh threshold after each",
        lambda: Refreshed(4.0, 8.0, most=2),
        lambda: RefreshedBare(4.0, 8.0, most=2),
        "refreshed",
        epsilon=0.397648,
        twin_shows=1.033712,
    ),
    _case(
        "sparse vector with a noisy count",
        WithValue,
        WithBareValue,
        "value",
        epsilon=0.669938,
        twin_spends=math.inf,
        twin_shows=math.inf,
        note="the place costs what the sparse vector costs, the count 1/2 more",
    ),
    _case(
        "sparse vector with its gap",
        WithFreeGap,
        WithFreeGapBare,
        "free-gap",
        epsilon=0.446703,
        twin_shows=1.81328,
        note="the largest ratio of the densities of place and gap; the gap costs nothing more",
    ),
    _case(
        "sparse vector, exponential noise",
        Exponentials,
        lambda: Exponentials(0.2, 0.4),
        "one-sided",
        epsilon=0.705105,
        twin_shows=7.499998,
    ),
    _case(
        "sparse vector, Gaussian noise",
        Gaussians,
        lambda: Gaussians(0.2, 4.0),
        "gaussians",
        epsilon=0.716386,
        twin_shows=1.713566,
    ),
)
