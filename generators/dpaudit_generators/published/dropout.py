"""Which numbers a network drops at random in training."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from dpaudit_generators.networks.draws import Streams
from dpaudit_generators.networks.slices import padded


class Dropouts:
    """Draws factors of the numbers that enter a layer, for one network of each of M models.

    Args:
        seeds: One for each model; None means the system's entropy.
        share: The share that is dropped (Srivastava et al. 2014); the others are scaled up, so that
            the mean stays.
    """

    def __init__(self, seeds: Sequence[int | None], share: float) -> None:
        self._streams = Streams(seeds, "dropout", device=torch.device("cpu"))
        self._share = share

    def __call__(self, n: int, width: int) -> Tensor:
        """Draws factors [M, n, padded(width)]; ones and padding have factor 1."""
        kept = self._streams.uniform(n, width) >= self._share
        factors = torch.ones(*kept.shape[:-1], padded(width))
        factors[..., :width] = kept / (1.0 - self._share)
        return factors
