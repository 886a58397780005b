"""Records from noise: the generators of M models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dpaudit_generators.pate_gan.draws import Streams
from dpaudit_generators.pate_gan.rows import Generated, Head
from dpaudit_generators.pate_gan.slices import padded
from dpaudit_generators.pate_gan.stack import Generators
from dpaudit_generators.pate_gan.trainee import Float32Array, Weights

_PART: Final = 256
"""Records that are sampled at a time."""


class Noise(NamedTuple):
    """What records are made of, apart from the weights.

    Attributes:
        rows: What the network makes records of: normal numbers, given labels one-hot, ones;
            [M, n, padded(noise width + classes)].
        gumbel: Draws categories, [M, n, choices].
        labels: The labels that are given, one-hot, [M, n, classes].
    """

    rows: Tensor
    gumbel: Tensor
    labels: Tensor

    def part(self, records: slice) -> Noise:
        """The noise of some of the records."""
        return Noise(*(tensor[:, records] for tensor in self))


class NoiseSource:
    """Draws what records are made of, for M models.

    Args:
        streams: Their streams.
        head: Says how many categories are drawn.
        proportions: Of the label's classes, of each model; empty ones if the label is generated.
        width: Dimension of the normal noise.
        device: Where the tensors are to be.
    """

    def __init__(
        self,
        streams: Streams,
        head: Head,
        proportions: Sequence[Sequence[float]],
        *,
        width: int,
        device: torch.device,
    ) -> None:
        self._streams, self._choices, self._classes = streams, head.choices, head.classes
        self._width = width
        inputs = width + head.classes
        self._tail = torch.zeros(padded(inputs) - width, device=device)
        self._tail[head.classes] = 1.0
        self._cumulative = torch.tensor(proportions, dtype=torch.float64, device=device).cumsum(1)

    def draw(self, n: int) -> Noise:
        """The noise of n records of each model."""
        inputs = self._width + self._classes
        rows = self._streams.normal(n, padded(inputs))
        rows[..., self._width :] = self._tail
        labels = rows[..., self._width : inputs]
        if self._classes:
            drawn = torch.searchsorted(self._cumulative, self._streams.uniform(n), right=True)
            labels.scatter_(-1, drawn.clamp_max_(self._classes - 1)[..., None], 1.0)
        return Noise(rows, self._streams.gumbel(n, self._choices), labels)


class RecordSource:
    """The generators of M models: records from noise.

    Args:
        networks: One of each model.
        head: Makes records of raw outputs.
    """

    def __init__(self, networks: Generators, head: Head) -> None:
        self._networks, self._head = networks, head

    def generate(self, noise: Noise) -> tuple[list[Tensor], Generated]:
        """Records of each model, with what entered each layer."""
        values, raw = self._networks.forward(noise.rows)
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
    watch: Callable[[Noise], None] | None = None,
) -> Float32Array:
    """Records of trained generators.

    Args:
        weights: Of each model, all of one shape.
        head: The head they were trained with.
        proportions: Of the label's classes, of each model.
        n: Number of records of each.
        seeds: One for each; None means the system's entropy.
        watch: Is shown what the generators are fed.

    Returns:
        Encoded records in the schema's order, [M, n, width].
    """
    device = torch.device("cpu")
    source = RecordSource(Generators(weights, rate=0.0, betas=(0.0, 0.0)), head)
    noise = NoiseSource(
        Streams(seeds, "sample", device=device),
        head,
        proportions,
        width=weights[0][0].shape[1] - head.classes,
        device=device,
    )
    records = np.empty((len(weights), n, head.width), dtype=np.float32)
    for start in range(0, n, _PART):
        drawn = noise.draw(min(_PART, n - start))
        if watch is not None:
            watch(drawn)
        part = source.generate(drawn)[1].records
        records[:, start : start + _PART, head.order] = part[..., : head.width].numpy()
    return records
