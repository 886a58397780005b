"""The oracle: one PATE-GAN at a time in plain torch, for reading and to compare `training` with.

The same algorithm on the same uniform numbers, with modules and `torch.optim.Adam` instead of
stacks. Tests and `training.py` compare with it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle, islice, pairwise
from typing import Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, one_hot, softplus

from dpaudit.account import LabelBudget, LabelPlan
from dpaudit_generators.networks.model import SLOPE, Architecture, Float32Array, Weights
from dpaudit_generators.networks.source import TEMPERATURE, Head, Noise, RecordSource, Streams
from dpaudit_generators.networks.stack import Networks
from dpaudit_generators.pate import IndexArray, LabelRelease
from dpaudit_generators.pate_gan.settings import Trainee, TrainingSettings
from dpaudit_generators.pate_gan.training import InitialNetworks, rounds

_CPU: Final = torch.device("cpu")


class Network(nn.Module):
    """A perceptron with its own optimiser.

    Args:
        weights: Networks without padding.
        index: Which of them.
        settings: The learning rate and decay rates of Adam.
    """

    def __init__(self, weights: Weights, index: int, settings: TrainingSettings) -> None:
        super().__init__()
        widths = [weights[0].shape[1], *(bias.shape[2] for bias in weights[1::2])]
        layers: list[nn.Module] = []
        for layer, (inputs, outputs) in enumerate(pairwise(widths)):
            linear = nn.Linear(inputs, outputs, device="meta").to_empty(device="cpu")
            with torch.no_grad():
                linear.weight.copy_(torch.from_numpy(weights[2 * layer][index].T))
                linear.bias.copy_(torch.from_numpy(weights[2 * layer + 1][index, 0]))
            layers += [linear, nn.LeakyReLU(SLOPE)]
        self.layers = nn.Sequential(*layers[:-1])
        first, second = settings.betas
        self._adam = torch.optim.Adam(
            self.parameters(), lr=settings.learning_rate, betas=(first, second)
        )

    def forward(self, rows: Tensor) -> Tensor:
        """Raw outputs [n, outputs] of rows [n, inputs]."""
        outputs: Tensor = self.layers(rows)
        return outputs

    def descend(self, loss: Tensor) -> None:
        """Takes one step down the gradient of a scalar loss."""
        self._adam.zero_grad()
        torch.autograd.backward(loss)
        self._adam.step()

    def weights(self) -> Weights:
        """The network without padding."""
        plain: list[Float32Array] = []
        for layer in self.layers:
            if isinstance(layer, nn.Linear):
                plain += [
                    layer.weight.detach().numpy().T[None],
                    layer.bias.detach().numpy()[None, None],
                ]
        return tuple(plain)


def records_of(raw: Tensor, noise: Tensor, labels: Tensor, head: Head) -> Tensor:
    """Draws records as `Head` does, for autograd: hard values forward, soft gradients back.

    Args:
        raw: Raw outputs [n, inputs].
        noise: Gumbel noise [n, choices].
        labels: Given labels [n, classes].
        head: Fixes the columns.

    Returns:
        Records in the head's order, [n, width].
    """
    numbers = torch.sigmoid(raw[:, : head.numbers])
    logits = (raw[:, head.numbers :] + noise) / TEMPERATURE
    drawn = [_hard(part) for part in torch.split(logits, head.sizes, dim=1)] if head.sizes else []
    optional = len(head.optional)
    missing = [pair[:, 1] for pair in drawn[:optional]]
    columns = list(numbers.unbind(dim=1))
    for number, gone in zip(head.optional, missing, strict=True):
        columns[number] = columns[number] * (1.0 - gone) + 0.5 * gone
    return torch.cat([torch.stack([*columns, *missing], 1), *drawn[optional:], labels], dim=1)


def _hard(logits: Tensor) -> Tensor:
    soft = torch.softmax(logits, dim=1)
    hard = one_hot(soft.argmax(dim=1), soft.shape[1]).to(soft.dtype)
    return hard + soft - soft.detach()


def train_one(
    trainee: Trainee,
    *,
    head: Head,
    plan: LabelPlan,
    settings: TrainingSettings,
    on_votes: Callable[[IndexArray], None] = lambda votes: None,
) -> Weights:
    """Trains one model as `training.train` does, up to rounding.

    Args:
        trainee: What it is trained on.
        head: Gives generated records the form of private ones.
        plan: How many labels may be released, with which noise.
        settings: The public constants.
        on_votes: Called with the votes of each round.

    Returns:
        The generator's weights.
    """
    start = InitialNetworks(trainee.seed, head=head, teachers=plan.teachers, settings=settings)
    teachers = [Network(start.teachers, t, settings) for t in range(plan.teachers)]
    student = Network(start.student, 0, settings)
    generator = Network(start.generator, 0, settings)
    release = LabelRelease(plan.table, LabelBudget(trainee.labels), seed=trainee.seed)
    streams = Streams([trainee.seed], "training", device=_CPU)
    source = RecordSource(  # only its random numbers are used
        Networks([start.generator], Architecture(hidden=())),
        streams,
        head,
        [trainee.proportions],
        width=settings.noise_width,
        device=_CPU,
    )
    batch, inputs = settings.batch, settings.noise_width + head.classes
    teaching = settings.teacher_steps * batch
    fixed = teaching + settings.generator_steps * batch

    replayed, replayed_labels = torch.empty(0, head.width), torch.empty(0)
    for queries, (indices,), noise, (replay,) in rounds(
        streams, source.draw, settings.generator_steps, plan=plan, settings=settings
    ):

        def generate(first: int, last: int, noise: Noise = noise) -> Tensor:
            (rows,), (choices,), (labels,) = noise.part(slice(first, last))
            return records_of(generator(rows[:, :inputs]), choices, labels, head)

        if release.left < queries:
            break
        with torch.no_grad():
            fakes, asked = generate(0, teaching), generate(fixed, fixed + queries)

        for fake, index in zip(torch.split(fakes, batch), indices.numpy(), strict=True):
            for teacher, cell, own in zip(teachers, trainee.records.owned, index, strict=True):
                real = torch.from_numpy(_drawn(trainee.records.rows, cell, own))
                loss = softplus(-teacher(real)).mean() + softplus(teacher(fake)).mean()
                teacher.descend(loss)

        votes = np.zeros(queries, dtype=np.int64)
        with torch.no_grad():
            for teacher, cell in zip(teachers, trainee.records.owned, strict=True):
                votes += (teacher(asked)[:, 0] > 0).numpy() * (len(cell) > 0)
        on_votes(votes)
        labels = torch.from_numpy(release.release(votes)).float()

        chosen = torch.arange(queries)
        if settings.replay:
            asked = replayed = torch.cat([replayed, asked])
            labels = replayed_labels = torch.cat([replayed_labels, labels])
            chosen = replay * len(labels) >> 32
        for some in islice(cycle(torch.split(chosen, batch)), settings.student_steps):
            logits = student(asked[some])[:, 0]
            student.descend(binary_cross_entropy_with_logits(logits, labels[some]))

        for first in range(teaching, fixed, batch):
            own = generate(first, first + batch)
            generator.descend(softplus(-student(own)).mean())
    return generator.weights()


def _drawn(rows: Float32Array, cell: IndexArray, drawn: IndexArray) -> Float32Array:
    """The minibatch of a cell that uniform integers in [0, 2**32) select; zeros if it is empty."""
    if len(cell) == 0:
        return np.zeros((len(drawn), rows.shape[1]), dtype=np.float32)
    minibatch: Float32Array = rows[cell[drawn * len(cell) >> 32]]
    return minibatch
