"""The GAN whose critic is PATE-G's student, for M models at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from dpaudit.plugins.protocols import FloatArray, IntArray
from dpaudit.seeds import rng_of
from dpaudit_generators.gan.settings import GanSettings
from dpaudit_generators.gan.training import GAIN, TrainedGan, UniformSelection
from dpaudit_generators.gan.wgan_training import SeluGenerators, SeluStack, filled, with_ones
from dpaudit_generators.networks.source import Head, NoiseSource, RecordSource, Streams
from dpaudit_generators.networks.stack import in_whole_vectors, initial

if TYPE_CHECKING:
    from dpaudit_generators.pate import TeacherEnsemble

_CPU: Final = torch.device("cpu")


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


class PateGObserver(Protocol):
    """Follows the training of one model."""

    def on_labels(self, teachers: TeacherEnsemble, votes: IntArray, labels: IntArray) -> None:
        """Teachers have voted for each class [n, k], and labels were drawn [n]."""
        ...

    def on_rows(self, rows: IntArray) -> None:
        """The student reads unlabelled rows; -1 stands for a row of zeros if there are none."""
        ...


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
def train(
    rows: FloatArray,
    queries: Sequence[Query],
    seeds: Sequence[int | None],
    *,
    head: Head,
    classes: int,
    settings: GanSettings,
    observer: PateGObserver | None = None,
) -> list[TrainedGan]:
    """Trains student and generator of each model; nothing here reads private labels.

    The generator matches the means of the student's last hidden layer over real rows and its own.

    Args:
        rows: Encoded rows that all models share, in the head's order [n, width].
        queries: The rows that each model has, and their noisy labels.
        seeds: One for each model; None draws everything from the system's entropy.
        head: Gives generated rows the form of real ones.
        classes: Number of classes.
        settings: The public constants.
        observer: Follows the first model.

    Returns:
        The networks of each model, the student as critic.
    """
    batch, held = settings.batch, torch.from_numpy(with_ones(rows))
    widths = [head.width, settings.critic_hidden, settings.critic_hidden, classes]
    students = SeluStack(
        [initial(1, widths, rng_of(seed, "student weights")) for seed in seeds],
        rate=settings.critic_learning_rate,
        betas=settings.betas,
    )
    widths = [settings.noise_width, *settings.generator_hidden, head.inputs]
    generators = SeluGenerators(
        [initial(1, widths, rng_of(seed, "generator weights"), gain=GAIN) for seed in seeds],
        rate=settings.learning_rate,
        betas=settings.betas,
    )
    source = RecordSource(generators, head)
    streams = Streams(seeds, "training", device=_CPU)
    noise = NoiseSource(streams, head, [()] * len(seeds), width=settings.noise_width, device=_CPU)
    picks = [
        UniformSelection(query.owned, batch=batch, seed=seed)
        for query, seed in zip(queries, seeds, strict=True)
    ]

    def numbers() -> Tensor:
        """Row numbers of the next minibatch of each model [M, batch]."""
        drawn = np.stack([filled(one.next(), batch) for one in picks])
        if observer is not None:
            observer.on_rows(drawn[0])
        return torch.from_numpy(drawn)

    asked = held[torch.from_numpy(np.stack([query.asked for query in queries]))]
    positions = torch.from_numpy(np.stack([query.labels for query in queries]))
    labels = torch.nn.functional.one_hot(positions, classes).float()
    for _ in range(settings.rounds):
        with torch.no_grad():
            made = source.generate(noise.draw(settings.critic_steps * batch))[1].records
        for fakes in torch.split(made, batch, dim=1):
            unlabelled = held[numbers()]
            students.step(student_loss(students, asked, labels, unlabelled, fakes.contiguous()))
        values, generated = source.generate(noise.draw(batch))
        records = generated.records.requires_grad_()
        with torch.no_grad():
            wanted = students.hidden(held[numbers()]).mean(1)
        missed = (students.hidden(records).mean(1) - wanted).square().sum()
        [slope] = torch.autograd.grad(missed, records)
        with torch.no_grad():
            records.requires_grad_(False)
            source.train(values, generated, slope)
    return [
        TrainedGan(*both) for both in zip(generators.weights(), students.weights(), strict=True)
    ]
