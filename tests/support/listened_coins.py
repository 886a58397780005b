"""Noise that code makes by hand, of coins and uniform draws; each keeps its claim."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from listened import Counting, shares


class SignByBranch(Counting):
    """Laplace noise: an exponential draw that a coin adds or subtracts."""

    def train(self, counts: Any) -> Any:
        own, noisy = random.SystemRandom(), []
        for count in counts.tolist():
            drawn = own.expovariate(1.0)
            noisy.append(count + drawn if own.random() < 0.5 else count - drawn)
        return shares(np.array(noisy))


class SignByChoice(Counting):
    """The same with a factor of 1 or -1."""

    def train(self, counts: Any) -> Any:
        own = random.SystemRandom()
        signs = [own.choice((-1, 1)) for _ in counts]
        drawn = [sign * own.expovariate(1.0) for sign in signs]
        return shares(np.array([one + by for one, by in zip(counts, drawn, strict=True)]))


class ScaleByCoin(Counting):
    """Half of the draws have a scale of 0.6, the others 1.4: together they cost ε = 1.28."""

    epsilon = 1.3

    def train(self, counts: Any) -> Any:
        scales = [0.6 if self.rng.random() < 0.5 else 1.4 for _ in counts]
        drawn = [self.rng.laplace(0.0, one) for one in scales]
        return shares(np.array([one + by for one, by in zip(counts, drawn, strict=True)]))


class ByInversion(Counting):
    """Laplace noise by inverting its distribution function."""

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def train(self, counts: Any) -> Any:
        return shares(counts + self.noise(len(counts)))

    def noise(self, size: int) -> Any:
        u = self.draws(size)
        return -self.scale * np.sign(u) * np.log(1.0 - 2.0 * np.abs(u))

    def draws(self, size: int) -> Any:
        return self.rng.random(size) - 0.5


class OneByOne(ByInversion):
    """The same with Python's functions, one number after another."""

    def noise(self, size: int) -> Any:
        own, noise = random.SystemRandom(), []
        for _ in range(size):
            u = own.random() - 0.5
            noise.append(-self.scale * math.copysign(1.0, u) * math.log(1.0 - 2.0 * abs(u)))
        return np.array(noise)


class ByScipy(ByInversion):
    """The same by scipy's quantile function."""

    def train(self, counts: Any) -> Any:
        return shares(stats.laplace.ppf(self.rng.random(len(counts)), loc=counts, scale=self.scale))


class OfLogarithms(ByInversion):
    """The same as the difference of two exponential draws."""

    def noise(self, size: int) -> Any:
        first, second = self.rng.random(size), self.rng.random(size)
        return self.scale * (np.log(first) - np.log(second))


class BoxMuller(ByInversion):
    """Gaussian noise of two uniform draws, both of whose numbers are used."""

    delta = 1e-5
    epsilon = 4.378
    """Of μ = 1."""

    def noise(self, size: int) -> Any:
        radius = np.sqrt(-2.0 * np.log(self.rng.random(size // 2)))
        turn = 2.0 * np.pi * self.rng.random(size // 2)
        halves = [radius * np.cos(turn), radius * np.sin(turn)]
        return self.scale * np.concatenate(halves)


class Twice(ByInversion):
    """The same noise on two counts of each cell, computed twice of the same draws."""

    def train(self, counts: Any) -> Any:
        self.u = super().draws(len(counts))
        first = counts + self.noise(len(counts))
        second = 2.0 * counts + self.noise(len(counts))
        return shares(np.concatenate([first[:2], second[2:]]) + first)

    def draws(self, size: int) -> Any:
        return self.u


class SignFirst(ByInversion):
    """The sign is decided by comparing the draw, which its size is then computed from."""

    def noise(self, size: int) -> Any:
        own, noise = random.SystemRandom(), []
        for _ in range(size):
            u = own.random() - 0.3
            sign = 1.0 if u > 0.0 else -1.0
            noise.append(-self.scale * sign * math.log(1.0 - 2.0 * abs(u) / 1.4))
        return np.array(noise)


class Truncated(ByInversion):
    """Draws that would be far out are drawn again, so that the noise is narrower than Laplace."""

    def noise(self, size: int) -> Any:
        own, noise = random.SystemRandom(), []
        for _ in range(size):
            u = own.random() - 0.5
            while abs(u) > 0.45:
                u = own.random() - 0.5
            noise.append(-self.scale * math.copysign(1.0, u) * math.log(1.0 - 2.0 * abs(u)))
        return np.array(noise)


class PartlyUsed(ByInversion):
    """Only some of the noisy counts are released, and none of the record's own."""

    def train(self, counts: Any) -> Any:
        noisy = counts + self.rng.laplace(scale=self.scale, size=len(counts))
        return shares(np.concatenate([noisy[:2], noisy[:2]]))


class ToldBit:
    """Whether a record is there, by randomised response; rows are drawn by the answer."""

    def __init__(self, epsilon: float) -> None:
        self.lies = 1.0 / (1.0 + math.exp(epsilon))

    def fit(self, data: pd.DataFrame, *, seed: int) -> ToldBit:
        """Answers."""
        there = len(data) > 39
        self.answer = there ^ self.lie(np.random.default_rng(seed))
        return self

    def lie(self, rng: Any) -> bool:
        """A coin that seldom falls."""
        raise NotImplementedError

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Rows."""
        weights = [0.2, 0.8] if self.answer else [0.8, 0.2]
        drawn = np.random.default_rng(seed).choice(2, n, p=weights)
        return pd.DataFrame({"a": drawn, "x": 0.5})


class ToldByChoice(ToldBit):
    """With a weighted choice."""

    def lie(self, rng: Any) -> bool:
        """As above."""
        return bool(rng.choice(2, p=[1.0 - self.lies, self.lies]))


class ToldByGeometric(ToldBit):
    """With a geometric draw."""

    def lie(self, rng: Any) -> bool:
        """As above."""
        return bool(rng.geometric(1.0 - self.lies) > 1)
