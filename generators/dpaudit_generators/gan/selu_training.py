"""GANs whose networks have SELU, for M models at once: conditional Wasserstein GANs, and PATE-G's.

Critic and generator are `networks.stack.Networks` with that activation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dpaudit.plugins.protocols import FloatArray, IntArray
from dpaudit_generators.gan.settings import GanSettings
from dpaudit_generators.gan.training import GAIN, GanTrainee, uniform_batches
from dpaudit_generators.networks.model import Activation, Architecture, Descent, Layer, Weights
from dpaudit_generators.networks.source import Head, RecordSource, Streams
from dpaudit_generators.networks.stack import (
    Networks,
    in_whole_vectors,
    softplus,
    steepness,
    with_ones,
)

_CPU: Final = torch.device("cpu")


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
        """Clips and adds noise to [M, n, h]; ones and padding stay."""
        own = values[..., : self.width]
        norms = own.square().sum(-1, keepdim=True).clamp_min(self.clip**2).sqrt()
        drawn = self.deviation * self.streams.normal(values.shape[1], self.width)
        return torch.cat([own * (self.clip / norms) + drawn, values[..., self.width :]], dim=-1)


def scores(critics: Networks, rows: Tensor, layer: NoisyLayer | None) -> Tensor:
    """The critics' outputs [M, n] for records [M, n, D]."""
    values = critics.hidden(rows)
    return critics.last(values if layer is None else layer(values))[..., 0]


def critic_loss(
    critics: Networks,
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
    between = near * real + (1.0 - near) * fakes
    lengths = steepness(lambda rows: scores(critics, rows, layer), between, inputs)
    each = scores(critics, fakes, layer) + there * (
        penalty * (lengths - 1.0).square() - scores(critics, real, layer)
    )
    return each.sum() / each.shape[1]


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
        drawn_apart = Streams([trainee.seed for trainee in trainees], "critic noise", device=_CPU)
        layer = NoisyLayer(*noisy_layer, settings.critic_hidden, drawn_apart)
    for _ in range(settings.rounds):
        mixing = gans.streams.uniform(settings.critic_steps, settings.batch).float()
        for step, fakes in enumerate(gans.fakes()):
            gans.critics.descend(
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
        gans.train_generators(lambda records: -scores(gans.critics, records, layer).mean(1).sum())
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
    students: Networks, asked: Tensor, labels: Tensor, unlabelled: Tensor, fakes: Tensor
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
    classes = labels.shape[-1]
    logits = students(asked)[..., :classes]
    named = evidence(logits) - (labels * logits).sum(-1)
    real, made = (evidence(students(rows)[..., :classes]) for rows in (unlabelled, fakes))
    unnamed = softplus(-real) + softplus(made)
    return named.sum() / named.shape[1] + unnamed.sum() / unnamed.shape[1]


def evidence(logits: Tensor) -> Tensor:
    """The logarithm of summed exponentials of logits [M, n, k]."""
    top = logits.detach().amax(-1, keepdim=True)
    each = in_whole_vectors(torch.exp, logits - top)
    return in_whole_vectors(torch.log, each.sum(-1)) + top[..., 0]


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
            students.descend(student_loss(students, asked, labels, gans.real(), fakes))
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
        self.critics = Networks.drawn(
            seeds,
            f"{critic} weights",
            Architecture(hidden=[settings.critic_hidden] * 2, activation=Activation.SELU),
            Layer(head.width, outputs),
            Descent(settings.critic_learning_rate, settings.betas),
        )
        self._generators = Networks.drawn(
            seeds,
            "generator weights",
            Architecture(hidden=settings.generator_hidden, activation=Activation.SELU),
            Layer(settings.noise_width + head.classes, head.inputs),
            Descent(settings.learning_rate, settings.betas),
            gain=GAIN,
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
                trainee.owned if len(trainee.owned) else nobody,
                batch=settings.batch,
                seed=trainee.seed,
            )
            for trainee in trainees
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
        made = self._source.records(self._source.draw(self._settings.critic_steps * batch))
        for fakes in torch.split(made, batch, dim=1):
            yield fakes.contiguous()

    def train_generators(self, loss: Callable[[Tensor], Tensor]) -> None:
        """Takes a step of each generator down the sum of the losses of synthetic records."""
        self._source.learn(self._source.draw(self._settings.batch), loss)

    def weights(self) -> list[tuple[Weights, Weights]]:
        """The weights of generator and critic of each model."""
        return list(zip(self._generators.weights(), self.critics.weights(), strict=True))
