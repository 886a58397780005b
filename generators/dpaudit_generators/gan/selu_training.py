"""GANs whose networks have SELU, for M models at once: conditional Wasserstein GANs, and PATE-G's.

The networks (Klambauer et al. 2017) are trained side by side by automatic gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dpaudit.plugins.protocols import FloatArray, IntArray
from dpaudit.seeds import rng_of
from dpaudit_generators.gan.settings import GanSettings
from dpaudit_generators.gan.training import GAIN, GanTrainee, uniform_batches
from dpaudit_generators.networks.model import Weights
from dpaudit_generators.networks.source import Head, RecordSource, Streams
from dpaudit_generators.networks.stack import (
    PAIR,
    Adam,
    in_whole_vectors,
    initial,
    padded,
    with_ones,
)

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
def train_wgans(
    rows: FloatArray,
    trainees: Sequence[GanTrainee],
    proportions: Sequence[Sequence[float]],
    *,
    head: Head,
    settings: GanSettings,
    penalty: float,
    noisy_layer: tuple[float, float] | None,
) -> list[tuple[Weights, Weights]]:
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
        The weights of generator and critic of each model.
    """
    gans = _SeluGans(rows, trainees, proportions, head=head, settings=settings)
    layer = None
    if noisy_layer is not None:
        drawn_apart = Streams([one.seed for one in trainees], "critic noise", device=_CPU)
        layer = NoisyLayer(*noisy_layer, settings.critic_hidden, drawn_apart)
    for _ in range(settings.rounds):
        mixing = gans.streams.uniform(settings.critic_steps, settings.batch).float()
        for step, fakes in enumerate(gans.fakes()):
            gans.critics.step(
                critic_loss(
                    gans.critics,
                    gans.real(),
                    fakes,
                    mixing[:, step],
                    penalty=penalty,
                    inputs=head.width,
                    layer=layer,
                )
            )
        gans.train_generators(
            lambda records: -scores(gans.critics, records, layer).sum() / settings.batch
        )
    return gans.weights()


class Query(NamedTuple):
    """What one model's student learns from.

    Attributes:
        owned: Row numbers of the unlabelled rows.
        asked: Row numbers of those that the teachers labelled.
        labels: Their noisy labels, as positions of classes.
    """

    owned: IntArray
    asked: IntArray
    labels: IntArray


def student_loss(
    students: SeluStack, asked: Tensor, labels: Tensor, unlabelled: Tensor, fakes: Tensor
) -> Tensor:
    """The sum of the students' losses (Salimans et al. 2016, section 5).

    Generated rows are one further class, whose logit is 0.

    Args:
        students: The students.
        asked: Rows that teachers labelled [M, n, D].
        labels: Their noisy classes, one-hot [M, n, k].
        unlabelled: Rows without labels [M, m, D].
        fakes: Generated rows [M, m, D].
    """
    logits = students.last(students.hidden(asked))
    named = evidence(logits) - (labels * logits).sum(-1)
    real = evidence(students.last(students.hidden(unlabelled)))
    made = evidence(students.last(students.hidden(fakes)))
    unnamed = in_whole_vectors(_softplus, -real) + in_whole_vectors(_softplus, made)
    return named.sum() / named.shape[1] + unnamed.sum() / unnamed.shape[1]


def evidence(logits: Tensor) -> Tensor:
    """The logarithm of summed exponentials of logits [M, n, k]."""
    top = logits.detach().amax(-1, keepdim=True)
    each = in_whole_vectors(torch.exp, logits - top)
    return in_whole_vectors(torch.log, each.sum(-1)) + top[..., 0]


def _softplus(values: Tensor) -> Tensor:
    return torch.nn.functional.softplus(values)


@torch.enable_grad()  # type: ignore[untyped-decorator, unused-ignore]
def train_students(
    rows: FloatArray,
    queries: Sequence[Query],
    seeds: Sequence[int | None],
    *,
    head: Head,
    classes: int,
    settings: GanSettings,
    on_rows: Callable[[IntArray], None] | None = None,
) -> list[tuple[Weights, Weights]]:
    """Trains student and generator of each PATE-G; nothing here reads private labels.

    The generator matches the means of the student's last hidden layer over real rows and its own.

    Args:
        rows: Encoded rows that all models share, in the head's order [n, width].
        queries: The rows that each model has, and their noisy labels.
        seeds: One for each model; None draws everything from the system's entropy.
        head: Gives generated rows the form of real ones.
        classes: Number of classes.
        settings: The public constants.
        on_rows: Called with the unlabelled rows that the first model's student reads; -1 stands
            for a row of zeros if there are none.

    Returns:
        The weights of generator and student of each model.
    """
    trainees = [GanTrainee(query.owned, seed) for query, seed in zip(queries, seeds, strict=True)]
    gans = _SeluGans(
        rows,
        trainees,
        [()] * len(trainees),
        head=head,
        settings=settings,
        critic="student",
        outputs=classes,
        on_rows=on_rows,
    )
    students = gans.critics
    asked = gans.held[torch.from_numpy(np.stack([query.asked for query in queries]))]
    positions = torch.from_numpy(np.stack([query.labels for query in queries]))
    labels = torch.nn.functional.one_hot(positions, classes).float()

    def missed(records: Tensor) -> Tensor:
        with torch.no_grad():
            wanted = students.hidden(gans.real()).mean(1)
        return (students.hidden(records).mean(1) - wanted).square().sum()

    for _ in range(settings.rounds):
        for fakes in gans.fakes():
            students.step(student_loss(students, asked, labels, gans.real(), fakes))
        gans.train_generators(missed)
    return gans.weights()


class _SeluGans:
    """Critics and generators of M models, with the records that they learn from.

    Args:
        rows: Encoded records that all models share, in the head's order [n, width].
        trainees: The records that each model is trained on.
        proportions: For each model, the proportions of the label's classes, or none.
        head: Turns raw outputs into records of the form of real ones.
        settings: The public constants.
        critic: What the critic's stream is named after.
        outputs: Number of the critic's outputs.
        on_rows: Called with the row numbers of the first model's real records.
    """

    def __init__(
        self,
        rows: FloatArray,
        trainees: Sequence[GanTrainee],
        proportions: Sequence[Sequence[float]],
        *,
        head: Head,
        settings: GanSettings,
        critic: str = "critic",
        outputs: int = 1,
        on_rows: Callable[[IntArray], None] | None = None,
    ) -> None:
        seeds = [trainee.seed for trainee in trainees]
        # A last row of zeros stands for no record.
        self.held = torch.nn.functional.pad(with_ones(torch.from_numpy(rows).float()), (0, 0, 0, 1))
        widths = [head.width, settings.critic_hidden, settings.critic_hidden, outputs]
        self.critics = SeluStack(
            [initial(1, widths, rng_of(seed, f"{critic} weights")) for seed in seeds],
            rate=settings.critic_learning_rate,
            betas=settings.betas,
        )
        widths = [settings.noise_width + head.classes, *settings.generator_hidden, head.inputs]
        self._generators = SeluGenerators(
            [initial(1, widths, rng_of(seed, "generator weights"), gain=GAIN) for seed in seeds],
            rate=settings.learning_rate,
            betas=settings.betas,
        )
        self.streams = Streams(seeds, "training", device=_CPU)
        self._source = RecordSource(
            self._generators,
            self.streams,
            head,
            proportions,
            width=settings.noise_width,
            device=_CPU,
        )
        self._settings, self._on_rows = settings, on_rows
        nobody = np.array([-1])
        self._batches = [
            uniform_batches(
                one.owned if len(one.owned) else nobody, batch=settings.batch, seed=one.seed
            )
            for one in trainees
        ]

    def real(self) -> Tensor:
        """The next minibatch of each model [M, batch, D]; rows of zeros where it has no record."""
        drawn = np.stack([next(batches) for batches in self._batches])
        if self._on_rows is not None:
            self._on_rows(drawn[0])
        return self.held[torch.from_numpy(drawn)]

    def fakes(self) -> Iterator[Tensor]:
        """Synthetic minibatches for the steps of a round [M, batch, D]."""
        # The generator moves only at the end of a round: one pass makes the records of all steps.
        batch = self._settings.batch
        with torch.no_grad():
            made = self._source.records(self._source.draw(self._settings.critic_steps * batch))
        for fakes in torch.split(made, batch, dim=1):
            yield fakes.contiguous()

    def train_generators(self, loss: Callable[[Tensor], Tensor]) -> None:
        """Takes a step of each generator down the sum of the losses of synthetic records."""

        def slope(records: Tensor) -> Tensor:
            records = records.detach().requires_grad_()
            [gradient] = torch.autograd.grad(loss(records), records)
            return gradient

        self._source.learn(self._source.draw(self._settings.batch), slope)

    def weights(self) -> list[tuple[Weights, Weights]]:
        """The weights of generator and critic of each model."""
        return list(zip(self._generators.weights(), self.critics.weights(), strict=True))


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
