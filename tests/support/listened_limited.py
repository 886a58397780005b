"""Generators whose noisy numbers are rounded and limited, and whose code reads them as floats."""

from __future__ import annotations

import copy
import json
import pickle
import random
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

RECORDS = 40


def table() -> pd.DataFrame:
    """Numbers from 0 to 1, of which the last one is above all thresholds."""
    data = pd.DataFrame({"x": np.random.default_rng(0).uniform(size=RECORDS)})
    data.loc[RECORDS - 1, "x"] = 0.99
    return data


SCHEMA = {"columns": [{"name": "x", "kind": "continuous", "lower": 0, "upper": 1}]}


class Released:
    """A model whose rows are given, again and again."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """The rows."""
        return pd.DataFrame({"x": np.clip(np.resize(np.asarray(self.rows, dtype=float), n), 0, 1)})


class Limited:
    """Releases a number with noise of some scale, for a claim of epsilon 1."""

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def fit(self, data: pd.DataFrame, *, seed: int) -> Released:
        """Draws the noise."""
        return Released(self.released(data["x"].to_numpy(), np.random.default_rng(seed)))

    def released(self, x: Any, rng: Any) -> Any:
        """Rows."""
        raise NotImplementedError

    def laplace(self, value: Any, rng: Any, size: Any = None) -> Any:
        """With Laplace noise."""
        return value + rng.laplace(0.0, self.scale, size)

    def geometric(self, value: Any, rng: Any) -> Any:
        """With two-sided geometric noise."""
        stop = 1.0 - np.exp(-1.0 / self.scale)
        return value + rng.geometric(stop) - rng.geometric(stop)


class RoundedMean(Limited):
    """To two digits, limited by numpy."""

    def released(self, x: Any, rng: Any) -> Any:
        """As above."""
        return np.clip(round(self.laplace(x.sum(), rng) / RECORDS, 2), 0, 1)


class MeanOfFloat(Limited):
    """To two digits, limited by comparisons that replay does not see."""

    def released(self, x: Any, rng: Any) -> Any:
        """As above."""
        return min(max(round(float(self.laplace(x.sum(), rng) / RECORDS), 2), 0.0), 1.0)


class RoundedCounts(Limited):
    """Whole counts, each limited by itself."""

    def released(self, x: Any, rng: Any) -> Any:
        """As above."""
        counts = np.histogram(x, bins=4, range=(0, 1))[0]
        return [round(self.laplace(count, rng)) / RECORDS for count in counts]


class AsLength(Limited):
    """A noisy integer as the length of a list, limited by the number of rows."""

    def released(self, x: Any, rng: Any) -> Any:
        """As above."""
        return [0.75] * self.geometric(np.sum(x > 0.5), rng) + [0.25] * RECORDS


class AsRange(Limited):
    """The same, counted by a loop."""

    def released(self, x: Any, rng: Any) -> Any:
        """As above."""
        above = [0.75 for _ in range(self.geometric(np.sum(x > 0.5), rng))]
        return above + [0.25] * RECORDS


class AsSize(Limited):
    """The same, as the size of draws."""

    def released(self, x: Any, rng: Any) -> Any:
        """As above."""
        count = max(self.geometric(np.sum(x > 0.5), rng), 1)
        coins = np.random.default_rng(0)
        drawn = coins.random(count) + coins.choice(count, size=count) + coins.permutation(count)
        return np.concatenate([drawn / (4 * RECORDS) + 0.5, np.zeros(RECORDS)])


class WholeCounts(Limited):
    """An array of counts that stays whole, as slices need it."""

    def released(self, x: Any, rng: Any) -> Any:
        """As above."""
        counts, stop = np.histogram(x, bins=4, range=(0, 1))[0], 1.0 - np.exp(-1.0 / self.scale)
        noisy = counts + rng.geometric(stop, 4) - rng.geometric(stop, 4)
        return np.repeat(np.arange(4) / 4, np.maximum(noisy, 0))


class Secret(Limited):
    """Noisy numbers that are not released themselves, each rounded, limited and read as a float."""

    def read(self, value: Any, rng: Any, scale: float) -> float:
        """One such number."""
        return float(np.clip(round(float(value + rng.laplace(0.0, scale))), -5, 60))

    def above(self, x: Any, number: int) -> list[float]:
        """Counts that the last record raises, all of them."""
        return [float(np.sum(x >= limit)) for limit in np.linspace(0.0, 0.9, number)]


class NoisyMax(Secret):
    """Report noisy max: scores that a record raises alike."""

    def released(self, x: Any, rng: Any) -> Any:
        """The place of the largest."""
        scores = [
            self.read(count + 2.0 * at, rng, self.scale)
            for at, count in enumerate(self.above(x, 10))
        ]
        return scores.index(max(scores)) / 10


class SparseVector(Secret):
    """Counts compared with one noisy threshold, up to the first below it."""

    def released(self, x: Any, rng: Any) -> Any:
        """The place of the first."""
        threshold = self.read(25.0, rng, 2.0 * self.scale)
        for at, count in enumerate(self.above(x, 100)):
            if self.read(count, rng, 4.0 * self.scale) < threshold:
                return at / 100
        return 1.0


class SecondLargest(Secret):
    """The gap between the two largest of counts that all have the same."""

    def released(self, x: Any, rng: Any) -> Any:
        """The gap."""
        found = sorted(self.read(count, rng, self.scale) for count in self.above(x, 10))
        return (found[-1] - found[-2]) / 60


class DrawnAgain(Secret):
    """Draws again until the number is in range; twice the noise is enough."""

    def released(self, x: Any, rng: Any) -> Any:
        """The number."""
        while True:
            found = self.read(np.sum(x > 0.5), rng, 2.0 * self.scale)
            if 0 <= found <= RECORDS:
                return found / RECORDS


class SameSeed(Limited):
    """Two counts, whose generators have the same seed and so the same noise."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> Released:
        """Draws the noise of each count with a generator of its own."""
        counts = np.histogram(data["x"], bins=2, range=(0, 1))[0][::-1]
        noisy = [count + self.generator(seed, at).laplace() for at, count in enumerate(counts)]
        return Released(np.array(noisy) / (2 * RECORDS))

    def generator(self, seed: int, at: int) -> Any:
        """One with the same stream for every count."""
        del at
        return np.random.default_rng(seed)


class OwnSeeds(SameSeed):
    """The same with a stream for each count."""

    def generator(self, seed: int, at: int) -> Any:
        """One with a stream of its own."""
        return np.random.default_rng([seed, at])


class AsPythonHasThem(Limited):
    """A noisy integer where numpy, pandas and Python expect one of their own."""

    def released(self, x: Any, rng: Any) -> Any:
        """Rows that it counts; raises AssertionError if anything is not as it is elsewhere."""
        count = min(max(self.geometric(np.sum(x > 0.9), rng), 0), 30)
        table = pd.DataFrame({"place": range(50), "times": [count] * 50})
        assert isinstance(count, (int, np.integer))
        assert len(table.head(count)) == len(table.iloc[:count]) == len(table.tail(count))
        assert np.arange(50)[np.arange(count)].tolist() == list(range(count))
        assert np.arange(50)[np.full(2, count)].tolist() == [count, count]
        assert len(table.index.repeat(table["times"])) == 50 * count
        assert pd.Series({"one": count}).astype(str).tolist() == [str(count)]
        return np.array([count / 30])


class AsNumpyHasThem(Limited):
    """Zeros, uniform draws and answers where code uses them as numpy's own."""

    def released(self, x: Any, rng: Any) -> Any:
        """A noisy share; raises an error if anything is not as it is elsewhere."""
        weights = np.zeros(3)
        weights[1] = 0.5
        assert {weights.max(): 1} == {0.5: 1}
        assert json.dumps([weights.max(), weights.sum()]) == "[0.5, 0.5]"
        drawn = rng.random(3)
        assert {max(drawn): f"{min(drawn):.2f}"}
        assert json.dumps([round(one, 2) for one in drawn])
        noisy = self.laplace(np.array([np.sum(x > 0.9)]), rng, 1)
        assert np.array(noisy, ndmin=2).shape == (1, 1)
        return np.clip(noisy / 30, 0, 1)


class EmptyCells(Limited):
    """Counts one after the other, of which one is 0 with and without the record."""

    def released(self, x: Any, rng: Any) -> Any:
        """The noisy shares."""
        cells = [x[x > 0.9], x[x > 5], x[x < 0.5]]
        noisy = [max(len(cell) + rng.laplace(0.0, self.scale), 0.0) for cell in cells]
        return [(one + 0.1) / (sum(noisy) + 1.0) for one in noisy]


class Race(Limited):
    """The first of two exponential times, whose means follow the record."""

    def released(self, x: Any, rng: Any) -> Any:
        """Which one was first."""
        rates = np.array([1.0, np.exp(np.sum(x > 0.9))])
        return [float(np.argmin(rng.exponential(size=2) / rates))] * RECORDS


class RowsOfUnknownNoise(Limited):
    """Rows drawn from noisy shares, whose noise comes from a table of probabilities."""

    def released(self, x: Any, rng: Any) -> Any:
        """Rows."""
        steps = np.arange(-40, 41)
        chances = np.exp(-np.abs(steps) / self.scale)
        noise = stats.rv_discrete(values=(steps, chances / chances.sum()))
        counts = np.array([np.sum(x > 0.9), np.sum(x < 0.3), np.sum((x >= 0.3) & (x <= 0.9))])
        noisy = np.maximum(counts + noise.rvs(size=3, random_state=rng), 0) + 1e-9
        return rng.choice([0.95, 0.2, 0.6], RECORDS, p=noisy / noisy.sum())


class GeometricOfOneSeed(SameSeed):
    """Integers with the same noise."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> Released:
        """Draws the noise of each count with a generator of its own."""
        counts = np.histogram(data["x"], bins=2, range=(0, 1))[0][::-1]
        noisy = [self.geometric(one, self.generator(seed, at)) for at, one in enumerate(counts)]
        return Released(np.array(noisy) / (2 * RECORDS))


class TensorsOfOneSeed(Limited):
    """Two counts with Gaussian noise of a torch generator that begins anew for each."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> Released:
        """Draws the noise."""
        import torch

        noisy = []
        for count in np.histogram(data["x"], bins=2, range=(0, 1))[0][::-1]:
            generator = self.begun(seed)
            noise = torch.normal(0.0, 6.0, (1,), generator=generator)[0]
            noisy.append(float(count + noise) / (2 * RECORDS))
        return Released(noisy)

    def begun(self, seed: int) -> Any:
        """Torch's own generator, seeded."""
        import torch

        torch.manual_seed(seed)  # noqa: TID251 - what this class is about


class OwnGeneratorsOfTorch(TensorsOfOneSeed):
    """The same with a generator of its own for each count."""

    def begun(self, seed: int) -> Any:
        """A new generator, with the same seed."""
        import torch

        return torch.Generator().manual_seed(seed)


class BetweenLimits(Limited):
    """A count of 0 or 1 with Gaussian noise, cut off at both: epsilon 1.148 by its three parts."""

    def released(self, x: Any, rng: Any) -> Any:
        """The number."""
        return np.clip(min(np.sum(x == 0.99), 1) + rng.normal(0.0, self.scale), 0.0, 1.0)


class AboveALimit(Limited):
    """The same, cut off at 0 alone: the loss above has no limit."""

    def released(self, x: Any, rng: Any) -> Any:
        """The number."""
        noisy = min(np.sum(x == 0.99), 1) + rng.normal(0.0, self.scale)
        return max(float(noisy), 0.0) / 50


class NeverThatFar(Limited):
    """A number that differs from a constant only where the noise never is."""

    def released(self, x: Any, rng: Any) -> Any:
        """The constant."""
        noisy = min(np.sum(x == 0.99), 20) + rng.laplace(0.0, self.scale)
        return float(np.rint(noisy / 100)) / 10 + 0.5


class SavedState(SameSeed):
    """A generator whose state is saved and set again between the counts, as its methods name it."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> Released:
        """Draws the noise."""
        low, high = np.histogram(data["x"], bins=2, range=(0, 1))[0]
        get, put, draw = self.generator(seed, 0)
        state = get()
        first = high + draw()
        put(state)
        return Released(np.array([first, low + draw()]) / (2 * RECORDS))

    def generator(self, seed: int, at: int) -> Any:
        """How its state is read, how it is set, and noise."""
        del at
        rng = np.random.default_rng(seed)
        bits = rng.bit_generator
        return lambda: bits.state, lambda state: setattr(bits, "state", state), rng.laplace


class SavedInNumpy(SavedState):
    """numpy's own generator."""

    def generator(self, seed: int, at: int) -> Any:
        """As above."""
        rng = np.random.RandomState(seed)
        return rng.get_state, rng.set_state, rng.laplace


class SavedInPython(SavedState):
    """Python's."""

    def generator(self, seed: int, at: int) -> Any:
        """As above."""
        rng = random.Random(seed)
        return rng.getstate, rng.setstate, lambda: rng.expovariate(1.0) - rng.expovariate(1.0)


class Copied(Limited):
    """A generator that goes through pickle, copies and a copied object of its own."""

    def released(self, x: Any, rng: Any) -> Any:
        """A share."""
        rng = copy.deepcopy(pickle.loads(pickle.dumps(rng)))
        for made in (np.random.RandomState(5), np.random.MT19937(5), np.random.PCG64(5)):
            assert type(pickle.loads(pickle.dumps(made))) is type(made)
        return [float(np.clip(self.laplace(np.sum(x > 0.9), rng) / 30, 0, 1))]


class ScipyOfOneSeed(SameSeed):
    """Two counts, whose noise scipy draws from one integer."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> Released:
        """Draws the noise."""
        counts = np.histogram(data["x"], bins=2, range=(0, 1))[0][::-1]
        noisy = [count + stats.laplace.rvs(random_state=seed) for count in counts]
        return Released(np.array(noisy) / (2 * RECORDS))


class ItemsOfTorch(Limited):
    """Noise that leaves torch as a number, a list and an array before anything is added."""

    def released(self, x: Any, rng: Any) -> Any:
        """Three counts."""
        import torch

        law = torch.distributions.Laplace(torch.zeros(2), torch.ones(2))
        one, two, three = law.sample()[0].item(), law.sample().tolist(), law.sample().numpy()
        counts = [np.sum(x > 0.9), np.sum(x < 0.2), np.sum((x >= 0.2) & (x <= 0.9))]
        noisy = [counts[0] + one, counts[1] + two[0], *(counts[2] + three)[:1]]
        return [float(np.clip(value / RECORDS, 0, 1)) for value in noisy]


class RoundedNoise(Limited):
    """Noise that is rounded before anything is added to it."""

    def released(self, x: Any, rng: Any) -> Any:
        """A count."""
        return [(np.sum(x > 0.9) + np.round(rng.laplace(0.0, self.scale))) / 30]


class ShuffledBatches(Limited):
    """Noisy sums of three batches of a secret permutation of the records."""

    def released(self, x: Any, rng: Any) -> Any:
        """The sums."""
        order = self.shuffled(len(x), rng)
        sums = [np.sum(x[order[at::3]] > 0.5) for at in range(3)]
        return np.clip(self.laplace(np.array(sums), rng, 3) / RECORDS, 0, 1)

    def shuffled(self, length: int, rng: Any) -> Any:
        """The permutation."""
        return rng.permutation(length)


class ShuffledInPython(ShuffledBatches):
    """The same with a list."""

    def shuffled(self, length: int, rng: Any) -> Any:
        """As above."""
        order = list(range(length))
        random.Random(int(rng.integers(1000))).shuffle(order)
        return np.array(order)
