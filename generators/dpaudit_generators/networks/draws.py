"""Uniform words, and the random numbers that are made of them.

Each model draws nothing but uniform words from its one stream, as many as its public settings say,
and turns them into other numbers by functions (inverse transforms). So neither records nor the
other models of a stack shift anything in the stream.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dpaudit.seeds import rng_of
from dpaudit_generators.networks.slices import PAIR

WordArray: TypeAlias = npt.NDArray[np.uint64]

_QUANTILE_BITS: Final = 16
"""Bits of the uniform numbers that normal noise is made of, each by a lookup in a table."""
_BELOW_ONE: Final = 1.0 - 2.0**-24


class Streams:
    """One stream of uniform words for each of M models.

    Args:
        seeds: One for each; None means the system's entropy.
        purpose: What the draws are for.
        device: Where the tensors are placed.
    """

    def __init__(self, seeds: Sequence[int | None], purpose: str, *, device: torch.device) -> None:
        self._sources = [rng_of(seed, purpose).bit_generator for seed in seeds]
        self._device = device
        # Kept, because fresh pages for so many numbers would cost as much as the numbers.
        self._normal = np.empty((len(seeds), 0), dtype=np.float32)

    def integers(self, *shape: int) -> Tensor:
        """Uniform integers in [0, 2**32), int64 [M, *shape]."""
        size = math.prod(shape)
        numbers = np.empty((len(self._sources), size), dtype=np.int64)
        for mine, words in zip(numbers, self._words(size, bits=32), strict=True):
            mine[:] = words.view(np.uint32)[:size]
        return self._tensor(numbers, shape)

    def uniform(self, *shape: int) -> Tensor:
        """Uniform numbers in [0, 1), float64 [M, *shape]."""
        words = np.stack(list(self._words(math.prod(shape), bits=64)))
        return self._tensor((words >> np.uint64(11)) * 2.0**-53, shape)

    def normal(self, *shape: int) -> Tensor:
        """Standard normal numbers, float32 [M, *shape]; the next call may overwrite them."""
        table, size = _normal_quantiles(), math.prod(shape)
        if self._normal.shape[1] != size:
            self._normal = np.empty((len(self._sources), size), dtype=np.float32)
        for mine, words in zip(self._normal, self._words(size, bits=_QUANTILE_BITS), strict=True):
            table.take(words.view(np.uint16)[:size], out=mine, mode="wrap")
        return self._tensor(self._normal, shape)

    def gumbel(self, *shape: int) -> Tensor:
        """Standard Gumbel numbers, float32 [M, *shape], for drawing categories.

        Each is made of 32 bits, and of the complement of a uniform number: the frequency of a rare
        category depends on the upper tail, where floats near 1 would be too coarse.
        """
        size = math.prod(shape)
        if size == 0:
            return torch.empty(len(self._sources), *shape, device=self._device)
        padded = size + -size % PAIR  # nothing is left over, as in `slices.in_whole_vectors`
        numbers = np.empty((len(self._sources), padded), dtype=np.float32)
        for mine, words in zip(numbers, self._words(padded, bits=32), strict=True):
            mine[:] = words.view(np.uint32)
        drawn = torch.from_numpy((numbers + np.float32(0.5)) * np.float32(2.0**-32))
        drawn.clamp_max_(_BELOW_ONE).neg_().log1p_().neg_().log_().neg_()
        return drawn[:, :size].reshape(len(drawn), *shape).to(self._device)

    def _words(self, size: int, *, bits: int) -> Iterator[WordArray]:
        """Words of each model that hold so many numbers of so many bits."""
        words = -(-size * bits // 64)
        for source in self._sources:
            yield source.random_raw(words)

    def _tensor(self, numbers: npt.NDArray[np.generic], shape: Sequence[int]) -> Tensor:
        return torch.from_numpy(numbers).view(len(numbers), *shape).to(self._device)


@cache
def _normal_quantiles() -> npt.NDArray[np.float32]:
    places = torch.arange(2**_QUANTILE_BITS, dtype=torch.float64, device="cpu")
    middles = (places + 0.5) / 2**_QUANTILE_BITS
    quantiles: npt.NDArray[np.float32] = torch.special.ndtri(middles).float().numpy()
    return quantiles
