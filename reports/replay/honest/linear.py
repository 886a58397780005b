"""Linear functions of noisy counts: sums, filters and fitted lines, of which only they are kept."""

# ruff: noqa: D102 (overridden methods: their class says what they do)

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.signal import savgol_filter
from sklearn.linear_model import Ridge

from reports.replay.honest.exact import (
    DELTA,
    gaussian_epsilon,
    linear_mu,
    matrix_of,
    moved_mu,
    worst_place,
)
from reports.replay.honest.models import Levels, Rng, cells_case, levels_case

FAMILY: Final = "linear functions of noisy counts"
DAYS: Final = 12
SIGMA: Final = 1.5
ALONE: Final = gaussian_epsilon(1 / SIGMA)
"""What one noisy count of a day costs."""


class Daily(Levels):
    """Noisy counts of twelve days."""

    levels = DAYS
    sigma = SIGMA

    def learn(self, counts: Any, rng: Rng) -> Any:
        noisy = counts + rng.normal(0.0, self.sigma, size=DAYS)  # fault: weights, ridge
        return self.reduce(noisy)

    def reduce(self, noisy: Any) -> Any:
        """What is kept of them."""
        raise NotImplementedError


class Total(Daily):
    """Their total."""

    def reduce(self, noisy: Any) -> Any:
        return float(noisy.sum())


class TotalAndDays(Total):
    """The daily numbers stay in the model."""

    def reduce(self, noisy: Any) -> Any:
        self.daily = noisy  # fault: total
        return float(noisy.sum())


class TwoSites(Levels):
    """Each of two sites adds its noise, and the sum of both is published."""

    scale = 2.0

    def learn(self, counts: Any, rng: Rng) -> Any:
        here = counts[2:].sum() + rng.laplace(0.0, 1.0)
        there = self.there(counts[:2].sum(), rng)
        return float(here + there)

    def there(self, count: float, rng: Rng) -> float:
        """The noisy count of the other site."""
        return count + rng.laplace(0.0, self.scale)


class OneSiteWithoutNoise(TwoSites):
    """The other site trusts this one's noise."""

    def there(self, count: float, rng: Rng) -> float:
        return count  # fault: sites


class WeightedSum(Daily):
    """An index of recent days."""

    weights = np.arange(1.0, DAYS + 1) ** 2 / 100

    def reduce(self, noisy: Any) -> Any:
        return float(self.weights @ noisy)


class WeightedSumOfLessNoise(WeightedSum):
    """Half the deviation."""

    sigma = SIGMA / 2


class MovingAverage(Levels):
    """Means of three days each."""

    levels = DAYS
    window = np.ones(3) / 3

    def learn(self, counts: Any, rng: Rng) -> Any:
        noisy = counts + rng.normal(scale=SIGMA, size=DAYS)
        return np.convolve(noisy, self.window, mode="valid")


class NoiseAfterAveraging(MovingAverage):
    """Noise for means of three, as if each day were in one of them."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        means = np.convolve(counts, self.window, mode="valid")
        return means + rng.normal(scale=SIGMA / 3, size=DAYS - 2)  # fault: average


class LastSmoothed:
    """The last value of an exponential moving average."""

    alpha = 0.3

    def fit(self, data: pd.DataFrame, *, seed: int) -> LastSmoothed:
        """Goes through the days."""
        counts = data["a"].value_counts().reindex(range(DAYS), fill_value=0)
        rng = self.generator(counts, seed)
        level = 0.0
        for count in counts:
            level += self.alpha * (count + SIGMA * rng.standard_normal() - level)
        self.level = float(level)
        return self

    def generator(self, counts: Any, seed: int) -> Rng:
        """Random numbers."""
        return np.random.default_rng(seed)

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Rows of the last day, as many as the level says."""
        del seed
        return pd.DataFrame({"a": np.where(np.arange(n) < self.level, DAYS - 1, 0)})


class SmoothedWithSeedOfData(LastSmoothed):
    """The same table gives the same model."""

    def generator(self, counts: Any, seed: int) -> Rng:
        return np.random.default_rng(int(counts @ np.arange(DAYS)))  # fault: smoothed


class TrendLine(Daily):
    """A line through the days."""

    def reduce(self, noisy: Any) -> Any:
        return np.polyfit(np.arange(DAYS), noisy, deg=1)


class TrendWithBareIntercept(TrendLine):
    """Noise goes to the slope alone."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        slope, level = np.polyfit(np.arange(DAYS), counts, deg=1)
        return np.array([slope + rng.normal(0.0, 0.5), level])  # fault: trend


class RidgeCurve(Daily):
    """A parabola by ridge regression."""

    def reduce(self, noisy: Any) -> Any:
        return Ridge(alpha=2.0, fit_intercept=False).fit(self.powers(), noisy).coef_

    @staticmethod
    def powers() -> Any:
        """Powers of the day."""
        return np.vander(np.linspace(-1.0, 1.0, DAYS), 3)


class RidgeOfLessNoise(RidgeCurve):
    """Half the deviation."""

    sigma = SIGMA / 2


class SavitzkyGolay(Daily):
    """Smoothed days, every third of them."""

    def reduce(self, noisy: Any) -> Any:
        return savgol_filter(noisy, window_length=5, polyorder=2)[1::3]


class SavitzkyGolayWithAClosedDay(SavitzkyGolay):
    """A day on which nobody was expected needs no noise."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        noise = rng.normal(0.0, SIGMA, size=DAYS)
        noise[4] = 0.0
        return self.reduce(counts + noise)  # fault: filter


class CumulatedCounts(Levels):
    """How many until each day."""

    levels = DAYS

    def learn(self, counts: Any, rng: Rng) -> Any:
        return np.cumsum(counts + rng.laplace(size=DAYS))


class NoiseAfterCumulating(CumulatedCounts):
    """The same noise on cumulated counts: a record is in many of them."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        return np.cumsum(counts) + rng.laplace(size=DAYS)  # fault: cumulated


class SeasonalMeans(Levels):
    """Mean noisy counts of four weekdays, over three weeks."""

    levels = DAYS

    def learn(self, counts: Any, rng: Rng) -> Any:
        frame = pd.DataFrame({"day": np.arange(DAYS) % 4, "n": counts})
        frame["n"] = frame["n"] + self.noise(rng)  # fault: seasons
        return frame.groupby("day")["n"].mean().to_dict()

    def noise(self, rng: Rng) -> Any:
        """Noise of the days."""
        return rng.laplace(0.0, 1.0, size=DAYS)

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        self_rng = np.random.default_rng(seed)
        weights = np.maximum(list(self.learned.values()), 0.1)
        return pd.DataFrame({"a": self_rng.choice(4, size=n, p=weights / weights.sum())})


class SeasonalMeansOfOneWeek(SeasonalMeans):
    """The noise of one week, repeated, for means of three: it is divided by three twice."""

    def noise(self, rng: Rng) -> Any:
        return np.tile(rng.laplace(0.0, 1.0 / 9, size=4), 3)


class Changes(Levels):
    """Changes from day to day."""

    levels = DAYS

    def learn(self, counts: Any, rng: Rng) -> Any:
        return np.diff(counts + rng.laplace(size=DAYS))


class NoisyChanges(Changes):
    """Noise for changes, of which a record is in two."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        return np.diff(counts) + rng.laplace(size=DAYS - 1)  # fault: changes


class Decayed:
    """Noisy gradient steps with weight decay; the last weight alone is kept."""

    steps, decay, sigma = 8, 0.2, 4.0

    def fit(self, data: pd.DataFrame, *, seed: int) -> Decayed:
        """Descends."""
        rng = np.random.default_rng(seed)
        signal, weight = float((data["a"] == 3).sum()), 0.0
        for _ in range(self.steps):
            gradient = signal + self.sigma * rng.standard_normal()
            weight = (1.0 - self.decay) * weight + 0.1 * gradient
        self.keep(weight, gradient)
        return self

    def keep(self, weight: float, gradient: float) -> None:
        """What the model keeps."""
        self.weight = float(weight)

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Rows whose share of threes follows the weight."""
        share = 1.0 / (1.0 + math.exp(-self.weight))
        return pd.DataFrame({"a": np.where(np.random.default_rng(seed).random(n) < share, 3, 0)})


class DecayedAndGradient(Decayed):
    """The state of the optimiser is kept, with its last gradient."""

    def keep(self, weight: float, gradient: float) -> None:
        self.weight, self.last = float(weight), float(gradient)  # fault: decay


def decayed_mu(steps: int) -> float:
    """Mu of a weighted sum of so many noisy gradients."""
    factors = (1.0 - Decayed.decay) ** np.arange(steps)
    return float(factors.sum() / np.linalg.norm(factors)) / Decayed.sigma


def daily(name: str, generator: type[Daily], twin: type[Any], **known: Any) -> Any:
    """A case of noisy days, of which one matrix is kept: exact by its row space."""
    matrix = matrix_of(generator().reduce, DAYS)
    place = worst_place(matrix)
    stated = {
        "epsilon": gaussian_epsilon(linear_mu(matrix, place, SIGMA)),
        "delta": DELTA,
        "spends": ALONE,
        "note": "Gaussian noise through a matrix: mu is the moved count's part in its row space",
    }
    return levels_case(
        name, FAMILY, generator, levels=DAYS, place=place, twin=twin, **(stated | known)
    )


def halved(generator: type[Daily]) -> dict[str, float]:
    """Both costs of the twin with half the deviation."""
    matrix = matrix_of(generator().reduce, DAYS)
    shown = linear_mu(matrix, worst_place(matrix), SIGMA / 2)
    return {
        "twin_spends": gaussian_epsilon(2 / SIGMA),
        "twin_shows": gaussian_epsilon(shown),
    }


SMOOTH: Final = 0.3 * 0.7 ** np.arange(DAYS - 1, -1, -1.0)
AVERAGING: Final = matrix_of(lambda row: np.convolve(row, MovingAverage.window, "valid"), DAYS)
AVERAGED: Final = worst_place(AVERAGING)
WINDOWS: Final = float(np.linalg.norm(AVERAGING[:, AVERAGED]))
FILTER: Final = matrix_of(SavitzkyGolay().reduce, DAYS)
CASES: Final = (
    daily("total", Total, TotalAndDays, twin_spends=ALONE, twin_shows=ALONE),
    cells_case(
        "sites",
        FAMILY,
        TwoSites,
        epsilon=0.5,
        spends=1.0,
        twin=OneSiteWithoutNoise,
        twin_spends=1.0,
        twin_shows=1.0,
        note="either site's Laplace noise alone, then more: the larger scale decides, in the tails",
    ),
    daily("weights", WeightedSum, WeightedSumOfLessNoise, **halved(WeightedSum)),
    levels_case(
        "average",
        FAMILY,
        MovingAverage,
        levels=DAYS,
        place=AVERAGED,
        epsilon=gaussian_epsilon(linear_mu(AVERAGING, AVERAGED, SIGMA)),
        delta=DELTA,
        spends=ALONE,
        twin=NoiseAfterAveraging,
        twin_spends=gaussian_epsilon(WINDOWS / (SIGMA / 3)),
        twin_shows=gaussian_epsilon(WINDOWS / (SIGMA / 3)),
        note="Gaussian noise through a matrix: mu is the moved count's part in its row space",
    ),
    levels_case(
        "smoothed",
        FAMILY,
        LastSmoothed,
        levels=DAYS,
        place=DAYS - 1,
        epsilon=gaussian_epsilon(linear_mu(SMOOTH, DAYS - 1, SIGMA)),
        delta=DELTA,
        spends=ALONE,
        twin=SmoothedWithSeedOfData,
        twin_spends=math.inf,
        twin_shows=math.inf,
        note="a weighted sum: the moved count's weight over the norm of all weights",
    ),
    daily("trend", TrendLine, TrendWithBareIntercept, twin_spends=math.inf, twin_shows=math.inf),
    daily("ridge", RidgeCurve, RidgeOfLessNoise, **halved(RidgeCurve)),
    daily(
        "filter",
        SavitzkyGolay,
        SavitzkyGolayWithAClosedDay,
        twin_spends=math.inf,
        twin_shows=gaussian_epsilon(moved_mu(np.delete(FILTER, 4, axis=1), FILTER[:, 4], SIGMA)),
    ),
    levels_case(
        "cumulated",
        FAMILY,
        CumulatedCounts,
        levels=DAYS,
        place=3,
        epsilon=1.0,
        spends=1.0,
        twin=NoiseAfterCumulating,
        twin_spends=9.0,
        twin_shows=9.0,
        note="noisy counts can be computed from it and it from them",
    ),
    levels_case(
        "seasons",
        FAMILY,
        SeasonalMeans,
        levels=DAYS,
        place=5,
        epsilon=1.0,
        spends=1.0,
        twin=SeasonalMeansOfOneWeek,
        twin_spends=math.inf,
        twin_shows=3.0,
        note="sums of three Laplace numbers: their tails fall as one's, so all of 1 is shown",
    ),
    levels_case(
        "changes",
        FAMILY,
        Changes,
        levels=DAYS,
        place=5,
        epsilon=1.0,
        spends=1.0,
        twin=NoisyChanges,
        twin_spends=2.0,
        twin_shows=2.0,
        note="Laplace counts, post-processed; all of 1 is shown where one change is large",
    ),
    cells_case(
        "decay",
        FAMILY,
        Decayed,
        epsilon=gaussian_epsilon(decayed_mu(Decayed.steps)),
        delta=DELTA,
        spends=gaussian_epsilon(math.sqrt(Decayed.steps) / Decayed.sigma),
        twin=DecayedAndGradient,
        twin_spends=gaussian_epsilon(math.sqrt(Decayed.steps) / Decayed.sigma),
        twin_shows=gaussian_epsilon(math.hypot(1 / Decayed.sigma, decayed_mu(Decayed.steps - 1))),
        note="the last weight is a weighted sum of Gaussian gradients, older ones count less",
    ),
)
