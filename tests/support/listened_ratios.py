"""Means and shares that are made of noisy numbers alone, with (1, 1e-5) at a factor of 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpaudit.model.claim import Neighbours, PrivacyClaim

SCALE = 2**0.5 / 0.268
"""Noise of each of two numbers that move by 1: together mu = .268, epsilon 1 at delta 1e-5."""


class Mean:
    """Sum and count, both noisy. `fit` returns None: the generator is its own model."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    @property
    def claim(self) -> PrivacyClaim:
        return PrivacyClaim(epsilon=1.0, delta=1e-5, neighbours=Neighbours.ADD_REMOVE)

    def fit(self, data: pd.DataFrame, *, seed: int) -> None:
        self.spread = 0.1
        rng = np.random.default_rng(seed)
        self.mean = self.computed(data["x"].to_numpy(), SCALE * self.factor, rng)

    def computed(self, x: NDArray[Any], scale: float, rng: np.random.Generator) -> float:
        return float((x.sum() + rng.normal(0, scale)) / (len(x) + rng.normal(0, scale)))

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        rows = self.mean + self.spread * np.random.default_rng(seed + 1).normal(size=n)
        return pd.DataFrame({"x": np.clip(rows, 0, 1)})


class MeanAndCount(Mean):
    """The count is shown, too."""

    def computed(self, x: NDArray[Any], scale: float, rng: np.random.Generator) -> float:
        count = len(x) + rng.normal(0, scale)
        self.spread = 1.0 / round(count)
        return float((x.sum() + rng.normal(0, scale)) / count)


class MeanOfSome(Mean):
    """The count is at least 1."""

    def computed(self, x: NDArray[Any], scale: float, rng: np.random.Generator) -> float:
        count = max(len(x) + rng.normal(0, scale), 1.0)
        return float((x.sum() + rng.normal(0, scale)) / count)


class LaplaceMean(Mean):
    def computed(self, x: NDArray[Any], scale: float, rng: np.random.Generator) -> float:
        scale = 2.0 * scale / SCALE
        return float((x.sum() + rng.laplace(0, scale)) / (len(x) + rng.laplace(0, scale)))


class Shares(Mean):
    """A noisy histogram, divided by its sum."""

    def computed(self, x: NDArray[Any], scale: float, rng: np.random.Generator) -> float:
        counts = np.histogram(x, bins=4, range=(0, 1))[0] + rng.normal(0, scale / 2**0.5, 4)
        return float(counts / counts.sum() @ np.array([0.125, 0.375, 0.625, 0.875]))


class Moments(Mean):
    """Mean and variance of three noisy numbers."""

    def computed(self, x: NDArray[Any], scale: float, rng: np.random.Generator) -> float:
        scale *= 1.5**0.5
        count = len(x) + rng.normal(0, scale)
        mean = (x.sum() + rng.normal(0, scale)) / count
        self.spread = (
            max((np.square(x).sum() + rng.normal(0, scale)) / count - mean**2, 1e-6) ** 0.5
        )
        return float(mean)


class InTorch(Mean):
    def computed(self, x: NDArray[Any], scale: float, rng: np.random.Generator) -> float:
        import torch

        values = torch.tensor(x)
        top = values.sum() + scale * torch.randn(())
        return float(top / (len(values) + scale * torch.randn(())))
