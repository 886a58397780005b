"""Where PATE-GAN's records come from in a training: generator networks that learn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor

from dpaudit_generators.networks.draws import Streams
from dpaudit_generators.networks.perceptron import Weights
from dpaudit_generators.networks.rows import Head
from dpaudit_generators.networks.source import Noise, NoiseSource, RecordSource
from dpaudit_generators.networks.stack import Generators
from dpaudit_generators.pate_gan.settings import TrainingSettings


class Source(Protocol):
    """Makes the records of M models in a training.

    Attributes:
        steps: Its steps in a round; 0 if it does not learn.
    """

    @property
    def steps(self) -> int: ...  # noqa: D102 - see above

    def draw(self, n: int) -> Noise:
        """Draws what n records of each model are made of."""
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
        networks: One of each model.
        head: Makes records of raw outputs.
        streams: The streams of the models.
        proportions: For each model, those of the label's classes; none if the label is generated.
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
        """What the networks make of them."""
        return self._maker.generate(noise)[1].records

    def learn(self, noise: Noise, slope: Callable[[Tensor], Tensor]) -> None:
        """Takes one step down the gradient with respect to generated records."""
        values, generated = self._maker.generate(noise)
        self._maker.train(values, generated, slope(generated.records))

    def weights(self, models: Sequence[int]) -> list[Weights]:
        """The weights of the networks."""
        return self._networks.weights(models)
