"""Noisy matrices of products: some draws of noise occur in several cells. Of mu = 1."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd


class Symmetric:
    """The average of a matrix of noise and its transpose; rows show the noisy matrix.

    The record moves all nine cells by 1. At a factor of 1 noise has the scale that makes mu 1.
    """

    moved: ClassVar[float] = 4.5**0.5
    """How far answers move in units of the noise: squares of the diagonal count half."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def fit(self, data: pd.DataFrame, *, seed: int) -> Symmetric:
        values = data["x"].to_numpy()
        rows = np.stack([np.ones(len(values)), values, values], axis=1)
        rng = np.random.default_rng(seed)
        self.matrix = self.noisy(rows.T @ rows, self.moved * self.factor, rng)
        return self

    def noisy(self, products: Any, scale: float, rng: np.random.Generator) -> Any:
        noise = rng.normal(0.0, scale, (3, 3))
        return products + (noise + noise.T) / 2**0.5

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        rows = 0.5 + 0.001 * np.resize(self.matrix.ravel(), n)
        return pd.DataFrame({"x": np.clip(rows, 0.0, 1.0)})


class Mirrored(Symmetric):
    """Noise above the diagonal, mirrored."""

    moved = 6**0.5

    def noisy(self, products: Any, scale: float, rng: np.random.Generator) -> Any:
        noise = np.triu(rng.normal(0.0, scale, (3, 3)))
        return products + (noise + np.triu(noise, 1).T)


class MirroredInTorch(Symmetric):
    moved = 6**0.5

    def noisy(self, products: Any, scale: float, rng: np.random.Generator) -> Any:
        import torch

        noise = torch.triu(scale * torch.randn(3, 3, dtype=torch.float64))
        return (torch.tensor(products) + (noise + torch.triu(noise, 1).T)).numpy()


class SymmetricAfter(Symmetric):
    """The average of the noisy matrix and its transpose: answers that share parts."""

    def noisy(self, products: Any, scale: float, rng: np.random.Generator) -> Any:
        noisy = products + rng.normal(0.0, scale * 2**0.5, (3, 3))
        return (noisy + noisy.T) / 2


class Centred(Symmetric):
    """Noisy cells without the mean of each row: what moves a row alike does not show."""

    moved = 3**0.5

    def noisy(self, products: Any, scale: float, rng: np.random.Generator) -> Any:
        noisy = products * np.array([1.0, 2.0, 3.0]) + rng.normal(0.0, 2**0.5 * scale, (3, 3))
        return noisy - noisy.mean(axis=1)[:, None]


class Queried(Symmetric):
    """The product of a row of cells with two vectors, which share a cell."""

    moved = (8 / 3) ** 0.5

    def noisy(self, products: Any, scale: float, rng: np.random.Generator) -> Any:
        noisy = products[1] + rng.normal(0.0, scale, 3)
        first, second = noisy @ np.array([1.0, 1.0, 0.0]), np.dot([0.0, 1.0, 1.0], noisy)
        return np.array([[first, second], [second, first]])


class TwiceTheNoise(Symmetric):
    """The same noise, added to itself."""

    moved = 1.5

    def noisy(self, products: Any, scale: float, rng: np.random.Generator) -> Any:
        noise = rng.normal(0.0, scale, (3, 3))
        return products + (noise + noise)


class OneForAll(Symmetric):
    """One draw for all cells, which all move alike: they show one number."""

    moved = 1.0

    def noisy(self, products: Any, scale: float, rng: np.random.Generator) -> Any:
        return products + rng.normal(0.0, scale)


class OneForARow(Symmetric):
    """One draw for the cells of a row, which move by unlike steps: their differences are bare."""

    def noisy(self, products: Any, scale: float, rng: np.random.Generator) -> Any:
        return products * np.array([1.0, 2.0, 3.0]) + rng.normal(0.0, scale, (3, 1))


class Bare(Symmetric):
    """The diagonal has the difference of a draw and itself: no noise."""

    def noisy(self, products: Any, scale: float, rng: np.random.Generator) -> Any:
        noise = rng.normal(0.0, scale, (3, 3))
        return products + (noise - noise.T)


class Cumulated(Symmetric):
    """Each cell has its own draw and the one above it, the last one at the top: correlated."""

    moved = 1.5

    def noisy(self, products: Any, scale: float, rng: np.random.Generator) -> Any:
        draws = rng.normal(0.0, scale, (3, 3))
        return products + (draws + np.roll(draws, 1, axis=0))


class CumulatedLaplace(Symmetric):
    """The same with Laplace noise, whose law together is not known."""

    def noisy(self, products: Any, scale: float, rng: np.random.Generator) -> Any:
        draws = rng.laplace(0.0, scale, (3, 3))
        return products + (draws + np.roll(draws, 1, axis=0))


class ByMatrix(Symmetric):
    """Noise of running sums, as in a matrix mechanism."""

    moved = 1.0

    def noisy(self, products: Any, scale: float, rng: np.random.Generator) -> Any:
        noise = np.tril(np.ones((3, 3))) @ rng.normal(0.0, scale, 3)
        return np.outer(np.ones(3), products[1] + noise)


class ByMatrixInTorch(Symmetric):
    """The same in torch."""

    moved = 1.0

    def noisy(self, products: Any, scale: float, rng: np.random.Generator) -> Any:
        import torch

        ones = torch.ones(3, 3, dtype=torch.float64)
        noise = torch.tril(ones) @ (scale * torch.randn(3, dtype=torch.float64))
        return np.outer(np.ones(3), (torch.tensor(products[1]) + noise).numpy())


class Correlated(Symmetric):
    """One vector with a covariance."""

    moved = 1.0

    def noisy(self, products: Any, scale: float, rng: np.random.Generator) -> Any:
        covariance = scale**2 * np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]])
        return np.outer(np.ones(3), rng.multivariate_normal(products[1], covariance))


class Balanced(Symmetric):
    """Noise that adds up to 0: the sum has none."""

    def noisy(self, products: Any, scale: float, rng: np.random.Generator) -> Any:
        noise = rng.normal(0.0, scale, 3)
        return np.outer(np.ones(3), products[1] + (noise - noise.mean()))


class OneTriangle(Symmetric):
    """The matrix of its eigenvalues and eigenvectors, which are those of one noisy triangle."""

    moved = 6**0.5

    def noisy(self, products: Any, scale: float, rng: np.random.Generator) -> Any:
        values, vectors = np.linalg.eigh(products + rng.normal(0.0, scale, (3, 3)))
        return vectors @ np.diag(values) @ vectors.T
