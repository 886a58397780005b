"""Generated records, made of noise by the generator networks of M models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from dpaudit_generators.networks.draws import Streams
from dpaudit_generators.networks.perceptron import Float32Array, Weights
from dpaudit_generators.networks.rows import Generated, Head
from dpaudit_generators.networks.slices import padded
from dpaudit_generators.networks.stack import Generators

_PART: Final = 256
"""Records that are sampled at a time."""


class Noise(NamedTuple):
    """The random numbers that records are made of.

    Attributes:
        rows: Inputs of the network: normal numbers, given labels one-hot, ones;
            [M, n, padded(noise width + classes)].
        gumbel: Gumbel noise that draws categories, [M, n, choices].
        labels: The given labels, one-hot, [M, n, classes].
    """

    rows: Tensor
    gumbel: Tensor
    labels: Tensor

    def part(self, records: slice) -> Noise:
        """The noise of some of the records."""
        return Noise(*(tensor[:, records] for tensor in self))


class NoiseSource:
    """Draws the random numbers that records of M models are made of.

    Args:
        streams: Their streams.
        head: Fixes how many categories are drawn.
        proportions: For each model, those of the label's classes; none if the label is generated.
        width: Dimension of the normal noise.
        device: Where the tensors are placed.
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
        """Draws the noise of n records of each model."""
        inputs = self._width + self._classes
        rows = self._streams.normal(n, padded(inputs))
        rows[..., self._width :] = self._tail
        labels = rows[..., self._width : inputs]
        if self._classes:
            drawn = torch.searchsorted(self._cumulative, self._streams.uniform(n), right=True)
            labels.scatter_(-1, drawn.clamp_max_(self._classes - 1)[..., None], 1.0)
        return Noise(rows, self._streams.gumbel(n, self._choices), labels)


class RecordNetworks(Protocol):
    """Generator networks of M models: `Generators`, or others."""

    def forward(self, rows: Tensor) -> tuple[list[Tensor], Tensor]:
        """What `descend` needs, and the raw outputs [M, n, padded(outputs)]."""
        ...

    def descend(self, values: Sequence[Tensor], slope: Tensor) -> None:
        """Takes one step down the gradient with respect to the raw outputs."""
        ...


class RecordSource:
    """The generator networks of M models, with the head that makes records of their outputs.

    Args:
        networks: One of each model.
        head: Makes records of raw outputs.
    """

    def __init__(self, networks: RecordNetworks, head: Head) -> None:
        self._networks, self._head = networks, head

    def generate(self, noise: Noise) -> tuple[list[Tensor], Generated]:
        """Makes records of each model; also gives what entered each layer."""
        values, raw = self._networks.forward(noise.rows)
        return values, self._head(raw, noise.gumbel, noise.labels)

    def train(self, values: Sequence[Tensor], generated: Generated, slope: Tensor) -> None:
        """Takes one step down the gradient with respect to generated records."""
        back = self._head.backward(generated, slope)
        self._networks.descend(values, back)


def sample(
    weights: Sequence[Weights],
    head: Head,
    proportions: Sequence[Sequence[float]],
    n: int,
    *,
    seeds: Sequence[int | None],
    on_noise: Callable[[Noise], None] | None = None,
    networks: RecordNetworks | None = None,
) -> Float32Array:
    """Draws records from trained generator networks.

    Args:
        weights: The weights of each model, all of one shape.
        head: The head they were trained with.
        proportions: For each model, those of the label's classes, or none.
        n: Number of records of each model.
        seeds: One for each model; None means the system's entropy.
        on_noise: Called with what the generators are fed.
        networks: What makes records of these weights; by default `Generators`.

    Returns:
        Encoded records in the schema's order, [M, n, width].
    """
    device = torch.device("cpu")
    made = Generators(weights, rate=0.0, betas=(0.0, 0.0)) if networks is None else networks
    source = RecordSource(made, head)
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
        if on_noise is not None:
            on_noise(drawn)
        part = source.generate(drawn)[1].records
        records[:, start : start + _PART, head.order] = part[..., : head.width].numpy()
    return records
