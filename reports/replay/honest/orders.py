"""Order statistics of noisy copies: one of several noisy numbers, or their spread, is released."""

# ruff: noqa: D102 (overridden methods: their class says what they do)

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.stats import norm, trim_mean

from reports.replay.honest.exact import DELTA, epsilon_at, gaussian_epsilon
from reports.replay.honest.models import Levels, Rng, cells_case

FAMILY: Final = "order statistics of noisy copies"


class MedianOfCopies(Levels):
    """The median of five noisy copies of a count."""

    scale = 3.0

    def learn(self, counts: Any, rng: Rng) -> Any:
        copies = [counts[3] + rng.laplace(0.0, self.scale) for _ in range(5)]  # fault: median
        return float(np.median(copies))


class MedianOfTooNoisyCopies(MedianOfCopies):
    """Half the scale."""

    scale = 1.5


class MinimumOfCopies(Levels):
    """The least of four noisy copies, a cautious estimate."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        return min(float(count) for count in self.copies(counts[3], rng))

    def copies(self, count: Any, rng: Rng) -> list[Any]:
        """Noisy copies."""
        return [count + rng.laplace(scale=4.0) for _ in range(4)]


class MinimumWithTheTruth(MinimumOfCopies):
    """One copy is the count itself."""

    def copies(self, count: Any, rng: Rng) -> list[Any]:
        return [count] + [count + rng.laplace(scale=4.0) for _ in range(3)]  # fault: minimum


class MaximumOfCopies:
    """The largest of five Gaussian copies."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> MaximumOfCopies:
        """Takes the largest."""
        rng = self.generator(seed)
        count = (data["a"] == 3).sum()
        self.level = float(np.max(count + rng.normal(0.0, 3.0, size=5)))
        return self

    def generator(self, seed: int) -> Rng:
        """Random numbers."""
        return np.random.default_rng(seed)

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Rows with a share of threes that follows the level."""
        share = 1.0 / (1.0 + math.exp(-self.level / 10))
        return pd.DataFrame({"a": np.where(np.arange(n) < share * n, 3, 0)})


class MaximumOfFewSeeds(MaximumOfCopies):
    """Sixteen seeds."""

    def generator(self, seed: int) -> Rng:
        return np.random.default_rng(seed % 16)  # fault: maximum


def maximum_epsilon() -> float:
    """From the density of the largest of five."""
    at = np.linspace(-30.0, 40.0, 700_001)
    one, other = (
        5 * norm.cdf(at, count, 3.0) ** 4 * norm.pdf(at, count, 3.0) * 1e-4 for count in (1, 0)
    )
    return epsilon_at(one, other, DELTA)


class TrimmedMean(Levels):
    """A trimmed mean of six noisy copies of each count."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        noise = self.noise(rng)
        return trim_mean(counts + noise, 0.2, axis=0)

    def noise(self, rng: Rng) -> Any:
        """Noise of six copies."""
        return rng.laplace(0.0, 6.0, size=(6, 4))


class TrimmedMeanOfCutNoise(TrimmedMean):
    """Noise beyond 7 scales is taken for an error of the generator, and left out."""

    def noise(self, rng: Rng) -> Any:
        noise = rng.laplace(0.0, 6.0, size=(6, 4))
        return np.where(np.abs(noise) > 42.0, 0.0, noise)  # fault: trimmed mean


class SpreadOfCopies(Levels):
    """How far noisy copies of a count are from each other: an estimate of the noise."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        copies = counts[3] + rng.laplace(0.0, 1.0, size=8)
        return round(float(copies.std()), 6)


class SpreadAroundTheTruth(SpreadOfCopies):
    """The last copy is the count, and the largest distance to it is kept beside the least copy."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        copies = counts[3] + rng.laplace(0.0, 1.0, size=8)
        away = copies - counts[3]  # fault: spread
        return np.array([copies.min(), away.min()])


class LargestNoisyCount(Levels):
    """How many records the fullest cell has, as far as noisy counts say."""

    scale = 1.0

    def learn(self, counts: Any, rng: Rng) -> Any:
        noisy = counts + rng.laplace(0.0, self.scale, size=4)  # fault: noisy order
        return np.sort(noisy)[::-1].round(3)


class LargestOfLessNoise(LargestNoisyCount):
    """Half the scale."""

    scale = 0.5


CASES: Final = (
    cells_case(
        "median",
        FAMILY,
        MedianOfCopies,
        epsilon=1.0,
        spends=5 / 3,
        twin=MedianOfTooNoisyCopies,
        twin_spends=10 / 3,
        twin_shows=2.0,
        note="density F^2 (1-F)^2 f of the median of 5: its slope is at most 3 / scale, in tails",
    ),
    cells_case(
        "minimum",
        FAMILY,
        MinimumOfCopies,
        epsilon=1.0,
        spends=1.0,
        twin=MinimumWithTheTruth,
        twin_spends=math.inf,
        twin_shows=math.inf,
        note="density (1-F)^3 f: slope 4 / scale above the count, so all that composition charges",
    ),
    cells_case(
        "maximum",
        FAMILY,
        MaximumOfCopies,
        epsilon=maximum_epsilon(),
        delta=DELTA,
        spends=gaussian_epsilon(math.sqrt(5) / 3.0),
        twin=MaximumOfFewSeeds,
        twin_spends=math.inf,
        twin_shows=math.inf,
        note="integral of the density 5 F^4 f of the largest of five",
    ),
    cells_case(
        "trimmed mean",
        FAMILY,
        TrimmedMean,
        epsilon=1.0,
        spends=1.0,
        twin=TrimmedMeanOfCutNoise,
        twin_spends=math.inf,
        note="post-processing of six Laplace copies; the release shows less, without a formula",
    ),
    cells_case(
        "spread",
        FAMILY,
        SpreadOfCopies,
        epsilon=0.1,
        spends=8.0,
        twin=SpreadAroundTheTruth,
        twin_spends=math.inf,
        twin_shows=math.inf,
        note="the spread of copies does not depend on the count at all: it shows 0",
    ),
    cells_case(
        "noisy order",
        FAMILY,
        LargestNoisyCount,
        epsilon=1.0,
        spends=1.0,
        twin=LargestOfLessNoise,
        twin_spends=2.0,
        twin_shows=2.0,
        note="sorted Laplace counts: post-processing; the far left tail shows all of 1",
    ),
)
