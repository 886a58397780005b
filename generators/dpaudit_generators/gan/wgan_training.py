"""The training loop of conditional Wasserstein GANs, for M models at once.

Their networks have SELU (Klambauer et al. 2017) and are trained side by side by automatic
gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dpaudit.plugins.protocols import FloatArray, IntArray
from dpaudit.seeds import rng_of
from dpaudit_generators.gan.settings import GanSettings
from dpaudit_generators.gan.training import GAIN, GanTrainee, TrainedGan, UniformSelection
from dpaudit_generators.networks.model import Weights
from dpaudit_generators.networks.source import Head, NoiseSource, RecordSource, Streams
from dpaudit_generators.networks.stack import PAIR, Adam, initial, padded

_CPU: Final = torch.device("cpu")
_TINY: Final = 1e-12
"""Keeps the slope of a length finite at 0."""


class NoisyLayer(NamedTuple):
    """Clipping and noise of the critic's last hidden layer.

    Attributes:
        clip: Norm that the layer does not exceed.
        deviation: Standard deviation of the noise.
        width: Width of the layer without padding.
        streams: Draw the noise of each model.
    """

    clip: float
    deviation: float
    width: int
    streams: Streams

    def __call__(self, values: Tensor) -> Tensor:
        """Clips and adds noise to [M, n, h]; padding stays 0."""
        norms = values.square().sum(-1, keepdim=True).clamp_min(self.clip**2).sqrt()
        drawn = self.deviation * self.streams.normal(values.shape[1], self.width)
        missing = values.shape[2] - self.width
        return values * (self.clip / norms) + torch.nn.functional.pad(drawn, (0, missing))


def scores(critics: SeluStack, rows: Tensor, layer: NoisyLayer | None) -> Tensor:
    """The critics' outputs [M, n] for records [M, n, D]."""
    values = critics.hidden(rows)
    return critics.last(values if layer is None else layer(values))[..., 0]


def critic_loss(
    critics: SeluStack,
    real: Tensor,
    fakes: Tensor,
    mixing: Tensor,
    *,
    penalty: float,
    inputs: int,
    layer: NoisyLayer | None,
) -> Tensor:
    """The sum of the models' losses (Gulrajani et al. 2017, Algorithm 1).

    Args:
        critics: The critics.
        real: Real records [M, n, D]; rows of zeros, without ones, where there is none.
        fakes: Synthetic records [M, n, D].
        mixing: Where between the synthetic (0) and the real record (1) the penalty is taken [M, n].
        penalty: Its weight.
        inputs: Number of columns of a record, before its ones.
        layer: Clipping and noise of the last hidden layer, if any.
    """
    there = real[..., inputs]
    near = mixing[..., None]
    between = (near * real + (1.0 - near) * fakes).requires_grad_()
    [slope] = torch.autograd.grad(scores(critics, between, layer).sum(), between, create_graph=True)
    steepness = slope[..., :inputs].square().sum(-1).add(_TINY).sqrt()
    each = scores(critics, fakes, layer) + there * (
        penalty * (steepness - 1.0).square() - scores(critics, real, layer)
    )
    return each.sum() / each.shape[1]


@torch.enable_grad()  # type: ignore[untyped-decorator, unused-ignore]
def train(
    rows: FloatArray,
    trainees: Sequence[GanTrainee],
    proportions: Sequence[Sequence[float]],
    *,
    head: Head,
    settings: GanSettings,
    penalty: float,
    noisy_layer: tuple[float, float] | None,
) -> list[TrainedGan]:
    """Trains critic and generator of each model.

    Args:
        rows: Encoded records that all models share, in the head's order [n, width].
        trainees: The records that each model is trained on.
        proportions: For each model, the proportions of the label's classes, or none.
        head: Turns raw outputs into records of the form of real ones.
        settings: The public constants.
        penalty: Weight of the gradient penalty.
        noisy_layer: Largest norm of the last hidden layer, and its noise; None for neither.

    Returns:
        The networks of each model.
    """
    seeds, batch = [trainee.seed for trainee in trainees], settings.batch
    held = torch.from_numpy(with_ones(rows))
    widths = [head.width, settings.critic_hidden, settings.critic_hidden, 1]
    critics = SeluStack(
        [initial(1, widths, rng_of(seed, "critic weights")) for seed in seeds],
        rate=settings.critic_learning_rate,
        betas=settings.betas,
    )
    widths = [settings.noise_width + head.classes, *settings.generator_hidden, head.inputs]
    generators = SeluGenerators(
        [initial(1, widths, rng_of(seed, "generator weights"), gain=GAIN) for seed in seeds],
        rate=settings.learning_rate,
        betas=settings.betas,
    )
    streams = Streams(seeds, "training", device=_CPU)
    source = RecordSource(generators, head)
    noise = NoiseSource(streams, head, proportions, width=settings.noise_width, device=_CPU)
    layer = None
    if noisy_layer is not None:
        drawn_apart = Streams(seeds, "critic noise", device=_CPU)
        layer = NoisyLayer(*noisy_layer, settings.critic_hidden, drawn_apart)
    picks = [UniformSelection(own.owned, batch=batch, seed=own.seed) for own in trainees]
    for _ in range(settings.rounds):
        mixing = streams.uniform(settings.critic_steps, batch).float()
        # The generator moves only at the end of a round: one pass makes the records of all steps.
        with torch.no_grad():
            made = source.generate(noise.draw(settings.critic_steps * batch))[1].records
        for step, fakes in enumerate(torch.split(made, batch, dim=1)):
            real = held[torch.from_numpy(np.stack([filled(one.next(), batch) for one in picks]))]
            critics.step(
                critic_loss(
                    critics,
                    real,
                    fakes.contiguous(),
                    mixing[:, step],
                    penalty=penalty,
                    inputs=head.width,
                    layer=layer,
                )
            )
        values, generated = source.generate(noise.draw(batch))
        records = generated.records.requires_grad_()
        loss = -scores(critics, records, layer).sum() / batch
        [slope] = torch.autograd.grad(loss, records)
        with torch.no_grad():
            records.requires_grad_(False)
            source.train(values, generated, slope)
    return [TrainedGan(*both) for both in zip(generators.weights(), critics.weights(), strict=True)]


def with_ones(rows: FloatArray) -> FloatArray:
    """Rows [n, width] with a column of ones and padding, and a last row of zeros for no record.

    Args:
        rows: Encoded records.
    """
    n, width = rows.shape
    whole = np.zeros((n + 1, padded(width)), dtype=np.float32)
    whole[:n, :width], whole[:n, width] = rows, 1.0
    return whole


def filled(selected: IntArray, batch: int) -> IntArray:
    """Row numbers of a whole minibatch: the selected ones, or only -1, which stands for no record.

    Args:
        selected: Row numbers; `batch` of them, or none.
        batch: How many are needed.
    """
    return selected if len(selected) else np.full(batch, -1)


class SeluStack:
    """Networks of one shape: hidden layers with SELU and a linear last layer.

    Args:
        networks: One network for each of M models, as `networks.stack.initial` draws them.
        rate: Learning rate of Adam.
        betas: Its decay rates.
    """

    def __init__(self, networks: Sequence[Weights], *, rate: float, betas: Sequence[float]) -> None:
        first = networks[0]
        self._widths = [first[0].shape[1], *(bias.shape[2] for bias in first[1::2])]
        # Records bring a column of ones, whose weights are the first layer's biases.
        entering = padded(self._widths[0])
        self._parts: list[Tensor] = []
        for layer, (inputs, outputs) in enumerate(pairwise(self._widths)):
            leaving = -(-outputs // PAIR) * PAIR
            weight = np.zeros((len(networks), entering, leaving), dtype=np.float32)
            bias = np.zeros((len(networks), 1, leaving), dtype=np.float32)
            for own, shift, network in zip(weight, bias, networks, strict=True):
                own[:inputs, :outputs] = network[2 * layer][0]
                shift[:, :outputs] = network[2 * layer + 1][0]
            if layer == 0:
                weight[:, inputs] = bias[:, 0]
                self._parts.append(torch.from_numpy(weight))
            else:
                self._parts += [torch.from_numpy(weight), torch.from_numpy(bias)]
            entering = leaving
        for part in self._parts:
            part.requires_grad_()
        self._adam = Adam(self._parts, rate=rate, betas=betas)

    @property
    def outputs(self) -> int:
        """Width of the last layer."""
        return int(self._widths[-1])

    def hidden(self, rows: Tensor) -> Tensor:
        """The last hidden layer, with padding.

        Args:
            rows: Inputs with their ones [M, n, padded(inputs)].
        """
        values = torch.nn.functional.selu(torch.bmm(rows, self._parts[0]))
        for weight, bias in zip(self._parts[1:-2:2], self._parts[2:-2:2], strict=True):
            values = torch.nn.functional.selu(torch.bmm(values, weight) + bias)
        return values

    def last(self, values: Tensor) -> Tensor:
        """The outputs [M, n, outputs], of what leaves the last hidden layer."""
        return (torch.bmm(values, self._parts[-2]) + self._parts[-1])[..., : self.outputs]

    def step(self, loss: Tensor) -> None:
        """Takes one step of each model down a sum of their losses."""
        self._descend(torch.autograd.grad(loss, self._parts))

    def _descend(self, gradients: Sequence[Tensor]) -> None:
        with torch.no_grad():
            self._adam.step([one.contiguous() for one in gradients])

    def weights(self) -> list[Weights]:
        """The weights of each network without padding."""
        packed = [part.detach().numpy() for part in self._parts]
        inputs, outputs = self._widths[:2]
        first = (packed[0][:, :inputs, :outputs], packed[0][:, inputs : inputs + 1, :outputs])
        layers = [first] + [
            (weight[:, :before, :after], bias[:, :, :after])
            for weight, bias, (before, after) in zip(
                packed[1::2], packed[2::2], pairwise(self._widths[1:]), strict=True
            )
        ]
        return [
            tuple(part[model : model + 1].copy() for layer in layers for part in layer)
            for model in range(len(packed[0]))
        ]


class SeluGenerators(SeluStack):
    """Networks that make records, as `networks.source.RecordSource` uses them."""

    def forward(self, rows: Tensor) -> tuple[list[Tensor], Tensor]:
        """The raw outputs: once for `descend`, and once as numbers with padding.

        Args:
            rows: Inputs with their ones [M, n, padded(inputs)].
        """
        raw = self.last(self.hidden(rows))
        missing = padded(self.outputs) - self.outputs
        return [raw], torch.nn.functional.pad(raw.detach(), (0, missing))

    def descend(self, values: Sequence[Tensor], slope: Tensor) -> None:
        """Takes one step, down the gradient with respect to the raw outputs and their padding."""
        own = slope[..., : self.outputs].contiguous()
        self._descend(torch.autograd.grad(values[0], self._parts, grad_outputs=own))
