"""The random numbers of a training with one critic; each model has streams of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import ndtr, ndtri
from torch import Tensor

from dpaudit.account import Mechanism
from dpaudit.plugins.protocols import FloatArray
from dpaudit.seeds import rng_of
from dpaudit_generators.pate import IndexArray


class Uniforms(NamedTuple):
    """Uniform numbers in [0, 1) of an iteration, float32.

    Attributes:
        noise: For the inputs of the generator, [M, (k + 1) * batch, noise_width].
        between: Points between generated and real records, [M, k, batch, 1].
        labels: For the noise on labels, [M, k, 2 * batch, 1].
    """

    noise: Tensor
    between: Tensor
    labels: Tensor

    def repeated(self, copies: int) -> Uniforms:
        """The same numbers for minibatches that hold each record so many times."""
        return Uniforms(
            self.noise.repeat_interleave(copies, 1),
            self.between.repeat_interleave(copies, 2),
            self.labels.repeat_interleave(copies, 2),
        )


class UniformSource:
    """Draws uniform numbers for M models.

    Args:
        seeds: One for each; None means the system's entropy.
        steps: Critic steps of an iteration, k.
        batch: Records of a minibatch.
        noise_width: Dimension of the generator's noise.
    """

    def __init__(
        self, seeds: Sequence[int | None], *, steps: int, batch: int, noise_width: int
    ) -> None:
        self._rngs = [rng_of(seed, "critic") for seed in seeds]
        shapes = (
            ((steps + 1) * batch, noise_width),
            (steps, batch, 1),
            (steps, 2 * batch, 1),
        )
        sizes = [int(np.prod(shape)) for shape in shapes]
        self._numbers = np.empty((len(seeds), sum(sizes)), dtype=np.float32)
        parts = torch.split(torch.from_numpy(self._numbers), sizes, dim=1)
        self._uniforms = Uniforms(
            *(part.view(len(seeds), *shape) for part, shape in zip(parts, shapes, strict=True))
        )

    def draw(self) -> Uniforms:
        """Draws those of the next iteration, which overwrite the last."""
        for rng, numbers in zip(self._rngs, self._numbers, strict=True):
            rng.random(out=numbers, dtype=np.float32)
        return self._uniforms


def flipped(law: Mechanism, scale: float) -> float:
    """Probability that a label of 0 or 1 is flipped by noise and a threshold at 1/2."""
    if scale == 0.0:
        return 0.0
    return float(ndtr(-0.5 / scale) if law is Mechanism.GAUSSIAN else np.exp(-0.5 / scale) / 2)


def noise_of(uniforms: npt.NDArray[np.float32], law: Mechanism, scale: float) -> FloatArray:
    """Turns uniform numbers in [0, 1) into noise (inverse transform).

    Args:
        uniforms: Multiples of 2**-24.
        law: Normal or Laplace.
        scale: Standard deviation of normal noise, scale of Laplace noise.
    """
    middles = uniforms.astype(np.float64) + 2.0**-25
    if law is Mechanism.GAUSSIAN:
        return np.asarray(scale * ndtri(middles))
    centred = middles - 0.5
    return np.asarray(-scale * np.sign(centred) * np.log1p(-2.0 * np.abs(centred)))


class Minibatches:
    """Random subsets of parts of each model's rows.

    Args:
        seeds: One for each; None means the system's entropy.
        parts: Row numbers of each part, of each model.
        batch: Records of a minibatch.
    """

    def __init__(
        self, seeds: Sequence[int | None], parts: Sequence[Sequence[IndexArray]], *, batch: int
    ) -> None:
        self._sources = [rng_of(seed, "minibatches").bit_generator for seed in seeds]
        filled = [[part if len(part) else np.array([-1]) for part in mine] for mine in parts]
        sizes = np.array([[len(part) for part in mine] for mine in filled])
        self._longest = sizes.max(axis=1)
        self._words = np.zeros((*sizes.shape, sizes.max()), dtype=np.uint64)
        self._rows = np.zeros(self._words.shape, dtype=np.int64)
        for model, own in enumerate(filled):
            for place, part in enumerate(own):
                self._rows[model, place, : len(part)] = part
        # Random words with the places of rows in their lowest bits: sorted, they shuffle.
        lowest = [(1 << int(longest).bit_length()) - 1 for longest in self._longest]
        self._lowest = np.array(lowest, dtype=np.uint64)[:, None, None]
        places = np.arange(sizes.max(), dtype=np.uint64)
        self._ending = np.where(places < sizes[..., None], places, np.uint64(2**64 - 1))
        self._first = np.arange(sizes.size).reshape(*sizes.shape, 1) * sizes.max()
        self._batch = batch
        self._repeated = None if batch <= sizes.min() else np.arange(batch) % sizes[..., None]

    def draw(self) -> npt.NDArray[np.int64]:
        """Draws each minibatch without replacement.

        Returns:
            Row numbers [M, parts, batch]. A part with fewer rows than a minibatch is taken whole,
            repeatedly in the same random order; an empty one gives -1.
        """
        for words, source, longest in zip(self._words, self._sources, self._longest, strict=True):
            own = words[:, :longest]
            own[:] = source.random_raw(own.size).reshape(own.shape)
        self._words &= ~self._lowest
        self._words |= self._ending
        self._words.sort(axis=2)
        if self._repeated is None:
            drawn = self._words[..., : self._batch]
        else:
            drawn = np.take_along_axis(self._words, self._repeated, axis=2)
        return np.asarray(self._rows.take((drawn & self._lowest).view(np.int64) + self._first))
