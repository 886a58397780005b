"""Records from noise: the generators of M models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dpaudit.seeds import rng_of
from dpaudit_generators.pate_gan.draws import Streams, gumbel, normal, uniform
from dpaudit_generators.pate_gan.rows import Generated, Head
from dpaudit_generators.pate_gan.stack import Generators, with_ones
from dpaudit_generators.pate_gan.trainee import FloatArray, Weights

_PART: Final = 256
"""Records that are sampled at a time."""


class Noise(NamedTuple):
    """What records are made of, apart from the weights.

    Attributes:
        normal: What the network makes records of, [M, n, noise width].
        gumbel: Draws categories, [M, n, choices].
        labels: The labels that are given, one-hot, [M, n, classes].
    """

    normal: Tensor
    gumbel: Tensor
    labels: Tensor

    def split(self, sizes: Sequence[int]) -> list[Noise]:
        """The noise of so many records, one after the other."""
        parts = (torch.split(part, list(sizes), dim=1) for part in self)
        return [Noise(*part) for part in zip(*parts, strict=True)]


class Source:
    """The generators of M models: records from noise.

    Args:
        networks: One of each model.
        head: Makes records of raw outputs.
        proportions: Of the label's classes, of each model; empty ones if the label is generated.
        noise_width: Dimension of the noise.
    """

    def __init__(
        self,
        networks: Generators,
        head: Head,
        proportions: Sequence[Sequence[float]],
        *,
        noise_width: int,
    ) -> None:
        self._networks, self._head, self._noise_width = networks, head, noise_width
        self._cumulative = torch.tensor(proportions, dtype=torch.float64).cumsum(1)

    def noise(self, n: int, rngs: Streams) -> Noise:
        """What n records of each model are made of, apart from the weights."""
        width, classes = self._noise_width, self._head.classes
        labels = torch.empty(len(rngs), n, 0)
        if classes:
            drawn = torch.searchsorted(self._cumulative, uniform(rngs, n), right=True)
            labels = torch.nn.functional.one_hot(drawn.clamp_max(classes - 1), classes).float()
        return Noise(normal(rngs, n, width), gumbel(rngs, n, self._head.choices), labels)

    def generate(self, noise: Noise) -> tuple[list[Tensor], Generated]:
        """Records of each model, with what entered each layer."""
        values, raw = self._networks.forward(with_ones(noise.normal, noise.labels))
        return values, self._head(raw, noise.gumbel, noise.labels)

    def train(self, values: Sequence[Tensor], generated: Generated, slope: Tensor) -> None:
        """One step down the gradient by generated records."""
        back = self._head.backward(generated, slope)
        self._networks.descend(values, back)


def sample(
    weights: Sequence[Weights],
    head: Head,
    proportions: Sequence[Sequence[float]],
    n: int,
    *,
    seeds: Sequence[int | None],
) -> FloatArray:
    """Records of trained generators.

    Args:
        weights: Of each model, all of one shape.
        head: The head they were trained with.
        proportions: Of the label's classes, of each model.
        n: Number of records of each.
        seeds: One for each; None means the system's entropy.

    Returns:
        Encoded records in the schema's order, [M, n, width].
    """
    source = Source(
        Generators(weights, rate=0.0, betas=(0.0, 0.0)),
        head,
        proportions,
        noise_width=weights[0][0].shape[1] - head.classes,
    )
    rngs = [rng_of(seed, "sample") for seed in seeds]
    records = np.empty((len(weights), n, head.width), dtype=np.float32)
    for start in range(0, n, _PART):
        part = source.generate(source.noise(min(_PART, n - start), rngs))[1].records
        records[:, start : start + _PART, head.order] = part[..., : head.width].numpy()
    return records
