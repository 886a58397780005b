"""Generators that train on secret sub-samples, and ones that only look as if they did."""

from __future__ import annotations

import random
from typing import Any, ClassVar

import numpy as np

from dpaudit.model.claim import Neighbours
from listened import CELLS, Counting, shares


class Sampling(Counting):
    """Gaussian noise on the counts of a Poisson sub-sample of rate 1/2: mu 1 with the record in."""

    epsilon: ClassVar[float] = 3.534
    delta: ClassVar[float] = 1e-5
    scale: ClassVar[float] = 1.0
    rate: ClassVar[float] = 0.5

    def chosen(self) -> Any:
        return self.values[self.rng.random(len(self.values)) < self.rate]

    def counted(self) -> Any:
        return np.bincount(self.chosen(), minlength=CELLS)

    def train(self, counts: Any) -> Any:
        return shares(self.counted() + self.rng.normal(0.0, self.scale, size=CELLS))


class TwiceTheRate(Sampling):
    """The rate of the claim is 1/2."""

    rate = 0.999


class HalfTheSamplingNoise(Sampling):
    """The scale of the claim is 1."""

    scale = 0.5


class KeptAbove(Sampling):
    """What is in is what a mask of those that are out leaves."""

    def chosen(self) -> Any:
        out = self.rng.random(len(self.values)) < 1.0 - self.rate
        return self.values[~out]


class ByBinomial(Sampling):
    """Coins as binomial draws of one trial."""

    def chosen(self) -> Any:
        return self.values[self.rng.binomial(1, self.rate, len(self.values)) == 1]


class OneByOne(Sampling):
    """Python's own random numbers, a coin for each record in turn."""

    def chosen(self) -> Any:
        own = random.Random(int(self.rng.integers(2**31)))
        return np.array([one for one in self.values if own.random() < self.rate], dtype=int)


class ElementByElement(Sampling):
    """Coins of an array that are looked at one by one."""

    def chosen(self) -> Any:
        coins = self.rng.random(len(self.values))
        found = [one for one, coin in zip(self.values, coins, strict=True) if coin < self.rate]
        return np.array(found, dtype=int)


class ManySteps(Sampling):
    """Ten steps, each with a sub-sample of its own, and a model that is made of their answers."""

    epsilon = 2.86
    rate = 0.1
    steps: ClassVar[int] = 10

    def train(self, counts: Any) -> Any:
        model = np.zeros(CELLS)
        for _ in range(self.steps):
            noisy = self.counted() + self.rng.normal(0.0, self.scale, size=CELLS)
            model = 0.9 * model + np.clip(noisy, -99.0, 99.0)
        return shares(model)


class TwoAnswersOfACoin(Sampling):
    """Two answers of one sub-sample: together of mu 1."""

    scale = 2**0.5

    def train(self, counts: Any) -> Any:
        counted = self.counted()
        first, second = (
            shares(counted + self.rng.normal(0.0, self.scale, size=CELLS)) for _ in range(2)
        )
        return (first + second) / 2


class LaplaceSample(Sampling):
    """Laplace noise: log(1 + (e - 1) / 2)."""

    epsilon, delta = float(np.log1p((np.e - 1) / 2)), 0.0

    def train(self, counts: Any) -> Any:
        return shares(self.counted() + self.rng.laplace(0.0, 1.0, size=CELLS))


class MaxOfASample(LaplaceSample):
    """Report noisy max of a sub-sample."""

    def train(self, counts: Any) -> Any:
        p = np.full(CELLS, 0.1)
        p[int(np.argmax(self.counted() + self.rng.laplace(0.0, 2.0, size=CELLS)))] = 0.7
        return p


class SumOfSteps(ManySteps):
    """The sum of all answers is all that is used: what coins hide in a sum is not followed."""

    scale = 0.3

    def train(self, counts: Any) -> Any:
        return shares(
            sum(
                self.counted() + self.rng.normal(0.0, self.scale, size=CELLS)
                for _ in range(self.steps)
            )
        )


class KeepsSamples(ManySteps):
    """What earlier sub-samples had is used again: a step depends on more than its own coin."""

    rate = 0.95

    def train(self, counts: Any) -> Any:
        model, kept = np.zeros(CELLS), np.zeros(CELLS)
        for _ in range(3):
            kept = 0.5 * kept + self.counted()
            model = model + np.clip(kept + self.rng.normal(0.0, 0.3, size=CELLS), -99.0, 99.0)
        return shares(model)


class CountOfASample(Sampling):
    """How many records are in the sub-sample is added without noise: coins could hide it."""

    def train(self, counts: Any) -> Any:
        counted = self.counted()
        noisy = np.clip(counted + self.rng.normal(0.0, self.scale, size=CELLS), 0.0, 99.0)
        self.size = int(counted.sum())
        return shares(noisy)

    def sample(self, n: int, *, seed: int) -> Any:
        found = super().sample(n, seed=seed)
        return found.assign(x=self.size / 100.0)


class NoiseByCoins(Sampling):
    """A coin of each record is noise, not a sub-sample: together they protect the sum."""

    rate = 0.95

    def train(self, counts: Any) -> Any:
        coins = self.rng.random(len(self.values)) < self.rate
        total = float(np.sum(self.values == 0)) + float(np.sum(coins))
        return shares(np.array([total + self.rng.normal(0.0, 0.2), 5.0, 5.0, 5.0]))


class SmallestCoins(Sampling):
    """A sub-sample of fixed size: those with the smallest coins."""

    def chosen(self) -> Any:
        coins = self.rng.random(len(self.values))
        return self.values[np.argsort(coins)[:38]]

    scale = 0.3


class RateByRows(Sampling):
    """The rate follows the number of records."""

    scale = 0.3

    def chosen(self) -> Any:
        return self.values[self.rng.random(len(self.values)) < 20 / len(self.values)]


class Replaced(Sampling):
    """Each world has its own record under one coin: not followed."""

    rate = 0.95
    neighbours = Neighbours.REPLACE_ONE
    scale = 0.2


class FromTorch(Sampling):
    """Coins of torch."""

    def chosen(self) -> Any:
        import torch

        mask = torch.rand(len(self.values)) < self.rate
        return self.values[mask.nonzero(as_tuple=False).reshape(-1).tolist()]


class FromTorchBits(Sampling):
    """Bernoulli draws of torch."""

    def chosen(self) -> Any:
        import torch

        bits = torch.bernoulli(torch.full((len(self.values),), self.rate))
        return self.values[bits.numpy() == 1]


class TorchSteps(Sampling):
    """DP-SGD by hand: ten steps of rate 1/10, clipped gradients and Gaussian noise."""

    epsilon = 2.8545
    rate = 0.1

    def train(self, counts: Any) -> Any:
        import torch

        records = torch.as_tensor(self.values / 3.0).float().reshape(-1, 1)
        weights = torch.zeros(1)
        for _ in range(10):
            batch = records[torch.rand(len(records)) < self.rate]
            gradients = torch.clamp(4.0 * (weights - batch), -1.0, 1.0)
            noisy = gradients.sum(0) + torch.normal(0.0, self.scale, size=(1,))  # the noise
            weights = weights - 0.01 * noisy
        level = float(torch.sigmoid(weights))
        return np.array([level, 1.0 - level, 0.0, 0.0])


class TorchStepsHalfTheNoise(TorchSteps):
    """The scale of the claim is 1."""

    scale = 0.4
