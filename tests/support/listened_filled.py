"""Generators that fill an array of zeros with noise or noisy counts, one element at a time."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from listened import CELLS, Counting, pointing_at, shares


class Filled(Counting):
    """Noisy counts; at a factor of 1 the noise is what the claim needs."""

    epsilon = 1.0
    scale: ClassVar[float] = 1.0

    def __init__(self, factor: float = 1.0) -> None:
        self.factor = factor

    def draw(self) -> Any:
        return self.rng.laplace(0.0, self.scale * self.factor)


class WithNoise(Filled):
    """Noise alone, which is added to the counts at once."""

    def train(self, counts: Any) -> Any:
        noise = np.zeros(CELLS)
        for cell in range(CELLS):
            noise[cell] = self.draw()
        return shares(counts + noise)


class WithAnswers(Filled):
    """Noisy counts."""

    def train(self, counts: Any) -> Any:
        noisy = np.empty(CELLS)
        for cell, count in enumerate(counts):
            noisy[cell] = count + self.draw()
        return shares(noisy)


class RowByRow(Filled):
    """Noisy rows of a table."""

    def train(self, counts: Any) -> Any:
        noisy = np.zeros((2, 2))
        for row in range(2):
            noisy[row] = counts[2 * row : 2 * row + 2] + np.array([self.draw(), self.draw()])
        return shares(noisy.ravel())


class RowsForTorch(Filled):
    """Rows of noise in zeros, as a batch of models has them, added to the counts as a tensor."""

    def train(self, counts: Any) -> Any:
        import torch

        noise = np.zeros((1, CELLS + 1))
        for mine in noise:
            mine[:-1] = self.rng.laplace(0.0, self.scale * self.factor, size=CELLS)
        return shares((torch.from_numpy(counts) + torch.from_numpy(noise)[0, :-1]).numpy())


class MirroredByHand(Filled):
    """A symmetric matrix of noise, of which the counted cell is on the diagonal."""

    epsilon, delta = 4.3771781, 1e-5

    def draw(self) -> Any:
        return self.rng.normal(0.0, self.scale * self.factor)

    def train(self, counts: Any) -> Any:
        noise = np.zeros((2, 2))
        for row in range(2):
            for column in range(row + 1):
                noise[row, column] = noise[column, row] = self.draw()
        exact = np.array([[10.0, 10.0], [10.0, 10.0 + counts[-1]]])
        return shares((exact + noise).ravel())


class LargestOfFilled(Filled):
    """Report noisy max: every score moves, and none of them is released."""

    scale = 2.0

    def train(self, counts: Any) -> Any:
        scores = np.zeros_like(counts, dtype=float)
        for cell in range(CELLS):
            scores[cell] = counts.sum() + cell + self.draw()
        return pointing_at(int(np.argmax(scores)))


class ExactBeforeNoise(Filled):
    """A noisy total next to exact counts, which get their noise afterwards."""

    scale = 2.0

    def train(self, counts: Any) -> Any:
        found = np.zeros(CELLS + 1)
        found[0] = counts.sum() + self.draw()
        found[1:] = counts
        found[1:] += np.array([self.draw() for _ in range(CELLS)])
        return shares(found[1:] + 0.01 * found[0])


class NoisedInPlace(Filled):
    """Exact counts, to which noise is added one by one."""

    def train(self, counts: Any) -> Any:
        found = np.zeros(CELLS)
        for cell, count in enumerate(counts):
            found[cell] = count
        for cell in range(CELLS):
            found[cell] += self.draw()
        return shares(found)
