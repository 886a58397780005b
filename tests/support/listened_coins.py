"""Noise that code makes by hand, of coins and uniform draws; each keeps its claim."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

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
