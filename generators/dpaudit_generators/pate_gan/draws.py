"""Uniform numbers, and what is made of them.

A model takes from its one stream uniform numbers alone, in each round as many as its public
settings say. What they stand for is a function of theirs (inverse transform), so neither records
nor the other models of a stack move anything in the stream.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Streams: TypeAlias = Sequence[np.random.Generator]
"""One for each model."""

_BITS: Final = 16
"""Of the uniform numbers that noise is made of: one quantile of a table for each."""


def uniform(rngs: Streams, *shape: int) -> Tensor:
    """Uniform numbers in [0, 1) for choices among records: float64 [M, *shape]."""
    size = math.prod(shape)
    return torch.from_numpy(np.stack([rng.random(size) for rng in rngs])).view(len(rngs), *shape)


def normal(rngs: Streams, *shape: int) -> Tensor:
    """Standard normal numbers, float32 [M, *shape]."""
    return _quantiles(rngs, shape, _normal_quantiles())


def gumbel(rngs: Streams, *shape: int) -> Tensor:
    """Standard Gumbel numbers, float32 [M, *shape]: they draw categories.

    No 16 bits here: the frequency of a rare category is read off the tail.
    """
    size = math.prod(shape)
    # Each model's by itself: the last elements of an array may be computed by another routine.
    numbers = [np.maximum(rng.random(size), 2.0**-53) for rng in rngs]
    drawn = np.stack([-np.log(-np.log(mine)) for mine in numbers])
    return torch.from_numpy(drawn.astype(np.float32)).view(len(rngs), *shape)


def _quantiles(rngs: Streams, shape: Sequence[int], table: npt.NDArray[np.float32]) -> Tensor:
    size = math.prod(shape)
    numbers = np.empty((len(rngs), size), dtype=np.float32)
    for share, rng in zip(numbers, rngs, strict=True):
        words: npt.NDArray[np.uint64] = rng.bit_generator.random_raw(-(-size * _BITS // 64))
        table.take(words.view(np.uint16)[:size], out=share, mode="wrap")
    return torch.from_numpy(numbers).view(len(rngs), *shape)


@cache
def _normal_quantiles() -> npt.NDArray[np.float32]:
    middles = (torch.arange(2**_BITS, dtype=torch.float64) + 0.5) / 2**_BITS
    quantiles: npt.NDArray[np.float32] = torch.special.ndtri(middles).float().numpy()
    return quantiles
