"""Where PATE-GAN's records come from in a training: networks that learn, or noisy marginals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from dpaudit.model.encoding import encode_values
from dpaudit_generators.marginals import TreeModel
from dpaudit_generators.networks.model import Weights
from dpaudit_generators.networks.source import Head, Noise, NoiseSource, RecordSource, Streams
from dpaudit_generators.networks.stack import Generators, with_ones
from dpaudit_generators.pate_gan.model import candidates
from dpaudit_generators.pate_gan.settings import TrainingSettings


class Source(Protocol):
    """Makes the records of M models in a training.

    Attributes:
        steps: Number of its steps in a round; 0 if it does not learn.
    """

    @property
    def steps(self) -> int: ...  # noqa: D102 - see above

    def draw(self, n: int) -> Noise:
        """Draws the inputs of n records of each model."""
        ...

    def records(self, noise: Noise) -> Tensor:
        """Encoded records with their ones, [M, n, padded(width)]."""
        ...

    def learn(self, noise: Noise, slope: Callable[[Tensor], Tensor]) -> None:
        """Takes one step; `slope` gives the gradient with respect to records."""
        ...

    def weights(self, models: Sequence[int]) -> list[Weights]:
        """The weights of some models' generator networks, without padding; empty without any."""
        ...


class LearningSource:
    """Generator networks that learn: a `Source`.

    Args:
        networks: One network per model.
        head: Turns raw outputs into records.
        streams: The streams of the models.
        proportions: For each model, the proportions of the label's classes; none if the label is
            generated.
        settings: The public constants.
        device: Where the tensors are placed.

    Attributes:
        steps: Steps of the networks in a round.
    """

    def __init__(
        self,
        networks: Generators,
        head: Head,
        streams: Streams,
        proportions: Sequence[Sequence[float]],
        settings: TrainingSettings,
        *,
        device: torch.device,
    ) -> None:
        self.steps = settings.generator_steps
        self._networks, self._maker = networks, RecordSource(networks, head)
        self._noise = NoiseSource(
            streams, head, proportions, width=settings.noise_width, device=device
        )

    def draw(self, n: int) -> Noise:
        """Draws the inputs of the networks."""
        return self._noise.draw(n)

    def records(self, noise: Noise) -> Tensor:
        """The records that the networks make."""
        return self._maker.generate(noise)[1].records

    def learn(self, noise: Noise, slope: Callable[[Tensor], Tensor]) -> None:
        """Takes one step down the gradient with respect to generated records."""
        values, generated = self._maker.generate(noise)
        self._maker.train(values, generated, slope(generated.records))

    def weights(self, models: Sequence[int]) -> list[Weights]:
        """The weights of the networks."""
        return self._networks.weights(models)


class CandidateSource:
    """Draws records from the noisy marginals of M models: a `Source` that does not learn.

    Args:
        starts: The marginals of each model.
        head: Fixes the order of columns.
        streams: The streams of the models.
        device: Where the tensors are placed.

    Attributes:
        steps: 0.
    """

    steps = 0

    def __init__(
        self, starts: Sequence[TreeModel], head: Head, streams: Streams, *, device: torch.device
    ) -> None:
        self._starts, self._streams, self._device = starts, streams, device
        self._schema, self._order = starts[0].tables.domain.schema, head.order

    def draw(self, n: int) -> Noise:
        """Draws n records of each model: the rows are the records themselves, with their ones."""
        uniforms = self._streams.uniform(n, 2 * len(self._schema.columns)).cpu().numpy()
        rows = [
            encode_values(candidates(start, own), self._schema)[:, self._order]
            for start, own in zip(self._starts, uniforms, strict=True)
        ]
        records = with_ones(torch.from_numpy(np.stack(rows)).float()).to(self._device)
        return Noise(records, records[..., :0], records[..., :0])

    def records(self, noise: Noise) -> Tensor:
        """The records."""
        return noise.rows

    def learn(self, noise: Noise, slope: Callable[[Tensor], Tensor]) -> None:
        """Does nothing: there are no steps."""

    def weights(self, models: Sequence[int]) -> list[Weights]:
        """An empty list of weights for each model."""
        return [()] * len(models)
