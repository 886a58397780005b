"""Generators that select by noisy scores in styles that a replay does not follow, and one leak."""

from __future__ import annotations

import math
import random
import statistics
from typing import Any

import numpy as np
import pandas as pd

from listened import CELLS, Counting, pointing_at, shares


class Scores(Counting):
    """Report noisy max; a record may raise every score, for which noise of scale 1 is enough."""

    def train(self, counts: Any) -> Any:
        above = np.cumsum(counts[::-1])[::-1] + 2.0 * np.arange(CELLS)
        return pointing_at(int(self.largest(above)))

    def largest(self, scores: Any) -> Any:
        raise NotImplementedError


class ByPartition(Scores):
    """With a function that only orders."""

    def largest(self, scores: Any) -> Any:
        return np.argpartition(-(scores + self.rng.laplace(size=CELLS)), 0)[0]


class ByTuples(Scores):
    """One by one, as pairs of score and place."""

    def largest(self, scores: Any) -> Any:
        return max((one + self.rng.laplace(), at) for at, one in enumerate(scores))[1]


class InPandas(Scores):
    """In a series."""

    def largest(self, scores: Any) -> Any:
        noisy = pd.Series(scores) + self.rng.laplace(size=CELLS)
        return noisy.sort_values(ascending=False).index[0]


class EqualToLargest(Scores):
    """By comparison with the largest."""

    def largest(self, scores: Any) -> Any:
        noisy = scores + self.rng.laplace(size=CELLS)
        return np.flatnonzero(noisy == noisy.max())[0]


class Gap(Counting):
    """The noisy maximum and its gap to the next: a record that raises every score changes none."""

    def train(self, counts: Any) -> Any:
        noisy = counts.sum() + 2.0 * np.arange(CELLS) + self.rng.laplace(size=CELLS)
        p = pointing_at(int(np.argmax(noisy)))
        p[0] += self.gap(noisy)
        return p / p.sum()

    def gap(self, noisy: Any) -> Any:
        ordered = np.sort(noisy)
        return ordered[-1] - ordered[-2]


class GapInPandas(Gap):
    """The same in a series."""

    def gap(self, noisy: Any) -> Any:
        largest = pd.Series(noisy).nlargest(2)
        return largest.iloc[0] - largest.iloc[1]


class GapOfFloats(Gap):
    """The same of numbers, one by one."""

    def train(self, counts: Any) -> Any:
        scores = counts.sum() + 2.0 * np.arange(CELLS)
        noisy = [float(one + self.rng.laplace()) for one in scores]
        ordered = sorted(noisy)
        p = pointing_at(noisy.index(ordered[-1]))
        p[0] += ordered[-1] - ordered[-2]
        return p / p.sum()


class CloseGap(Gap):
    """The same of scores that noise may put in any order."""

    def train(self, counts: Any) -> Any:
        noisy = counts.sum() + 0.1 * np.arange(CELLS) + self.rng.laplace(size=CELLS)
        p = pointing_at(int(np.argmax(noisy)))
        p[0] += self.gap(noisy)
        return p / p.sum()


class RangeInPandas(CloseGap):
    """The largest without the smallest."""

    def gap(self, noisy: Any) -> Any:
        return pd.Series(noisy).max() - pd.Series(noisy).min()


class CentredInPandas(CloseGap):
    """Noisy scores without their mean: what moves all of them alike does not show."""

    def train(self, counts: Any) -> Any:
        noisy = pd.Series(counts.sum() + np.arange(CELLS) + self.rng.laplace(size=CELLS))
        return shares((noisy - noisy.mean()).abs().to_numpy())


class Softmax(CloseGap):
    """The same by a softmax."""

    def train(self, counts: Any) -> Any:
        from scipy.special import softmax

        noisy = counts.sum() + np.arange(CELLS) + self.rng.laplace(size=CELLS)
        return np.asarray(softmax(noisy))


class LargestShown(Counting):
    """The largest noisy score itself: only this one of the scores moves."""

    scale = 1.0

    def train(self, counts: Any) -> Any:
        noisy = np.array([1.0, 2.0, 3.0, 5.0 + counts[-1]]) + self.rng.laplace(0, self.scale, CELLS)
        return self.shown(noisy)

    def shown(self, noisy: Any) -> Any:
        return shares(np.array([abs(np.max(noisy)), 10.0, 10.0, 10.0]))


class LargestWithLittle(LargestShown):
    """The same with less noise."""

    scale = 0.3


class LargestAndPlace(LargestShown):
    """The largest noisy score and its place."""

    def shown(self, noisy: Any) -> Any:
        p = pointing_at(int(np.argmax(noisy)))
        p[0] += abs(noisy.max())
        return p / p.sum()


class LargestAndPlaceWithLittle(LargestAndPlace):
    scale = 0.3


class LargestCompared(LargestShown):
    """Whether the largest is above a limit: all scores move, and only this bit is released."""

    def train(self, counts: Any) -> Any:
        noisy = counts.sum() + np.arange(CELLS) + self.rng.laplace(size=CELLS)
        return pointing_at(int(noisy.max() > 43.0))


class RoundedInPandas(Counting):
    """Counts with half the noise, rounded where replay has lost sight of them."""

    def train(self, counts: Any) -> Any:
        noisy = pd.Series(counts) + self.rng.laplace(0.0, 0.5, size=CELLS)
        return shares(noisy.clip(lower=0).round().astype(int).to_numpy())


class AroundEachCount(Counting):
    """A sampler adds the noise to each count; a count is 0 in one world alone."""

    scale = 1.0

    def train(self, counts: Any) -> Any:
        return shares(np.array([self.rng.laplace(one, self.scale) for one in counts]))


class NotAroundEachCount(AroundEachCount):
    """The same with half the noise."""

    scale = 0.5


class AroundEachCountInPython(AroundEachCount):
    """The same with Python's generator."""

    epsilon, delta = 4.3771781, 1e-5

    def train(self, counts: Any) -> Any:
        return shares(np.array([random.gauss(one, 1.0) for one in counts.tolist()]))


class AroundEachCountInTorch(AroundEachCount):
    """The same with a distribution of torch."""

    def train(self, counts: Any) -> Any:
        import torch

        noisy = [torch.distributions.Laplace(float(one), 1.0).sample() for one in counts]
        return shares(torch.stack(noisy).numpy().astype(float))


class CountsPlusNoiseInTorch(AroundEachCount):
    """The same with noise that is added to a number."""

    def train(self, counts: Any) -> Any:
        import torch

        law = torch.distributions.Laplace(0.0, 1.0)
        noisy = [float(one) + law.sample() for one in counts]
        return shares(torch.stack(noisy).numpy().astype(float))


class NoiseTakenBack(Counting):
    """The noise is subtracted again from one of the noisy counts."""

    def train(self, counts: Any) -> Any:
        noise = self.rng.laplace(0.0, 1.0, size=CELLS)
        noisy = counts + noise
        return shares(np.append(noisy[:-1], (noisy - noise)[-1]))


class NoiseShown(Counting):
    """The noise is released next to the noisy counts."""

    def train(self, counts: Any) -> Any:
        noise = self.rng.laplace(0.0, 1.0, size=CELLS)
        noisy = counts + noise
        return shares(np.append(noisy[:2], np.abs(noise[2:])))


class ResidualShown(Counting):
    """The distance of the noisy counts from the exact ones is released next to them."""

    def train(self, counts: Any) -> Any:
        noisy = counts + self.rng.laplace(0.0, 1.0, size=CELLS)
        distance = np.abs(noisy - counts)
        return shares(np.append(np.abs(noisy[:2]), distance[2:]))


class Scattered(Counting):
    """One count in four parts by position: a record moves all of them, and their sum by 1."""

    def train(self, counts: Any) -> Any:
        parts = [float((self.values[start::CELLS] == 0).sum()) for start in range(CELLS)]
        total = self.total(np.array(parts) + self.rng.laplace(size=CELLS))
        return shares(np.array([float(total), 10.0, 10.0, 10.0]))

    def total(self, noisy: Any) -> Any:
        raise NotImplementedError


class ByProduct(Scattered):
    """Releases the product with a vector."""

    def total(self, noisy: Any) -> Any:
        return np.ones(CELLS) @ noisy


class ByEinsum(Scattered):
    """Releases a sum by indices."""

    def total(self, noisy: Any) -> Any:
        return np.einsum("i->", noisy)


class ByDot(Scattered):
    """Releases the product, by a method."""

    def total(self, noisy: Any) -> Any:
        return noisy.dot(np.ones(CELLS))


class ByAverage(Scattered):
    """Releases the average."""

    def total(self, noisy: Any) -> Any:
        return CELLS * np.average(noisy)


class ByExactSum(Scattered):
    """Releases their sum, of plain numbers."""

    def total(self, noisy: Any) -> Any:
        return math.fsum(noisy.tolist())


class ByStatistics(Scattered):
    """Releases their mean, by a function for lists."""

    def total(self, noisy: Any) -> Any:
        return CELLS * statistics.mean([float(one) for one in noisy])


class InSeries(Scattered):
    """Releases their sum in a series."""

    def total(self, noisy: Any) -> Any:
        return pd.Series(noisy).sum()


class ByGroup(Scattered):
    """Releases the sum of a group."""

    def total(self, noisy: Any) -> Any:
        frame = pd.DataFrame({"noisy": noisy, "group": np.zeros(CELLS)})
        return frame.groupby("group")["noisy"].sum().iloc[0]


class InTorch(Scattered):
    """Releases the product of a tensor of noisy parts with a vector."""

    scale = 1.0

    def train(self, counts: Any) -> Any:
        import torch

        parts = [float((self.values[start::CELLS] == 0).sum()) for start in range(CELLS)]
        exact = torch.tensor(parts, dtype=torch.float64)
        noisy = exact + self.scale * torch.distributions.Laplace(0 * exact, 1.0).sample()
        return shares(np.array([float(self.total(noisy)), 10.0, 10.0, 10.0]))

    def total(self, noisy: Any) -> Any:
        import torch

        return torch.ones(CELLS, dtype=torch.float64) @ noisy


class InTorchWithLittle(InTorch):
    scale = 0.3


class InTorchByEinsum(InTorch):
    """The sum by indices."""

    def total(self, noisy: Any) -> Any:
        import torch

        return torch.einsum("i->", noisy)


class InTorchByProduct(InTorch):
    """A product of matrices."""

    def total(self, noisy: Any) -> Any:
        import torch

        return torch.mv(torch.ones(1, CELLS, dtype=torch.float64), noisy)[0]


class InTorchByMean(InTorch):
    """The mean along two dimensions."""

    def total(self, noisy: Any) -> Any:
        return CELLS * noisy.reshape(2, 2).mean(dim=(0, 1))


class SharesInPython(Counting):
    """Three shares of noise for each count, as plain numbers that are summed in a dictionary."""

    epsilon, delta = 4.3771781, 1e-5

    def train(self, counts: Any) -> Any:
        total: dict[int, float] = {}
        for share in range(3):
            for cell, count in enumerate(counts):
                own = (count if share == 0 else 0) + self.rng.normal(0.0, 3**-0.5)
                total[cell] = total.get(cell, 0.0) + float(own)
        return shares(np.array([total[cell] for cell in range(CELLS)]))


class SharedByParties(Counting):
    """The same, each share around a part of its own of the count."""

    epsilon, delta = 4.3771781, 1e-5

    def train(self, counts: Any) -> Any:
        total = np.zeros(CELLS).tolist()
        for party in range(3):
            for cell in range(CELLS):
                part = float((self.values[party::3] == cell).sum())
                total[cell] += float(self.rng.normal(part, 3**-0.5))
        return shares(np.array(total))


class TwoSidedByCoin(Counting):
    """Discrete Laplace noise from a geometric draw and a sign, drawn again if it is minus 0."""

    def train(self, counts: Any) -> Any:
        return shares(np.array([count + self.draw() for count in counts], dtype=float))

    def draw(self) -> Any:
        while True:
            sign = self.rng.integers(2)
            size = self.rng.geometric(1.0 - math.exp(-1.0)) - 1
            if not (sign and size == 0):
                return -size if sign else size


class DividedByProduct(Counting):
    """Half the noise; all noisy counts are released, divided by their product with a vector."""

    def train(self, counts: Any) -> Any:
        noisy = counts + self.rng.laplace(scale=0.5, size=CELLS)
        return shares(noisy / (np.ones(CELLS) @ noisy))


class Redrawn(Counting):
    """Three cells by the exponential mechanism, drawn again until they differ: a third each."""

    draws = 3

    def train(self, counts: Any) -> Any:
        weights = np.exp(counts / 3.0)
        found: list[int] = []
        while len(found) < self.draws:
            place = self.drawn(weights / weights.sum())
            if self.accepts(place, found):
                found.append(place)
        return self.shown(found)

    def drawn(self, p: Any) -> int:
        return int(self.rng.choice(CELLS, p=p))

    def accepts(self, place: int, found: list[int]) -> bool:
        return place not in found

    def shown(self, found: list[int]) -> Any:
        return shares(np.array([10.0 * found.index(at) if at in found else 1.0 for at in range(4)]))


class RedrawnByCoins(Redrawn):
    """The same, by comparing a coin with running sums."""

    def drawn(self, p: Any) -> int:
        coin, total, place = self.rng.random(), 0.0, 0
        for place in range(CELLS):
            total += p[place]
            if coin < total:
                break
        return place


class DrawnOften(Redrawn):
    """Twelve cells, which all are shown: four times the claim."""

    draws = 12

    def accepts(self, place: int, found: list[int]) -> bool:
        return True

    def shown(self, found: list[int]) -> Any:
        return shares(1.0 + np.bincount(found, minlength=CELLS))


class RedrawnNoise(Counting):
    """Noise on each count, drawn again until the noisy count is at least 3."""

    scale = 4.0

    def train(self, counts: Any) -> Any:
        return shares(np.array([self.noisy(count) for count in counts]))

    def noisy(self, count: Any) -> Any:
        found = count + self.rng.laplace(0.0, self.scale)
        while found < 3.0:
            found = count + self.rng.laplace(0.0, self.scale)
        return found


class MeasuredInRounds(Counting):
    """The total two or three times, as the first says, then all counts, at one line of noise."""

    def train(self, counts: Any) -> Any:
        total = counts.sum(keepdims=True)
        found = [self.measured(total)[0]]
        found += [self.measured(total)[0] for _ in range(1 if found[0] < 40.0 else 2)]
        return shares(np.maximum(self.measured(counts), 0.0) + np.abs(np.mean(found)) / 40.0)

    def measured(self, values: Any) -> Any:
        return values + self.rng.laplace(0.0, 5.0, size=len(values))


class RedrawnNextToTooLittle(RedrawnNoise):
    """The same, and a total with too little noise."""

    def train(self, counts: Any) -> Any:
        total = counts.sum() + self.rng.laplace(0.0, 0.4)
        return shares(np.append(super().train(counts)[1:], total / 40.0))
