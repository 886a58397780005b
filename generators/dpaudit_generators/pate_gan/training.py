"""PATE-GAN's training loop (Jordon, Yoon and van der Schaar 2019, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, softplus

from dpaudit.account import LabelBudget, LabelPlan
from dpaudit.seeds import rng_of
from dpaudit_generators.pate import IndexArray, LabelRelease
from dpaudit_generators.pate_gan.minibatches import all_minibatches
from dpaudit_generators.pate_gan.networks import Adam, Network, forward, network, torch_rng
from dpaudit_generators.pate_gan.rows import Head, generate
from dpaudit_generators.pate_gan.settings import Settings
from dpaudit_generators.pate_gan.teachers import Teachers

_GENERATOR_GAIN: Final = 2.0
"""Spreads the first synthetic records over the bounds.

The teachers' labels tell nothing unless some synthetic records look real (section 4 of the paper),
and votes on a narrow cloud are all alike.
"""


class Student:
    """The critic that learns from released labels alone, all of them in every round.

    Replay is post-processing. The paper's student sees each label once; a small budget has too few
    for that.

    Args:
        weights: Its network (one, stacked), trained in place.
        rate: Learning rate.
        rng: Chooses minibatches.
    """

    def __init__(self, weights: Network, *, rate: float, rng: torch.Generator) -> None:
        self.weights = weights
        self._adam = Adam(weights, rate=rate)
        self._rng = rng
        self._records = torch.empty(0, weights[0].shape[1])
        self._labels = torch.empty(0)

    def learn(self, records: Tensor, labels: IndexArray) -> None:
        """Adds records [n, width] with their labels [n] to what is replayed."""
        self._records = torch.cat([self._records, records])
        self._labels = torch.cat([self._labels, torch.from_numpy(labels).to(torch.float32)])

    def train(self, *, steps: int, batch: int) -> None:
        """Steps on the cross-entropy of minibatches drawn with replacement."""
        for _ in range(steps):
            chosen = torch.randint(len(self._labels), (batch,), generator=self._rng)
            logits = forward(self.weights, self._records[None, chosen])[0, :, 0]
            self._adam.step(binary_cross_entropy_with_logits(logits, self._labels[chosen]))


def labels_per_round(labels: int, rounds: int) -> list[int]:
    """Spreads labels evenly over at most so many rounds, at least one in each.

    Args:
        labels: How many the budget pays for.
        rounds: How many rounds there are at most.

    Returns:
        Labels of each round; they add up to `labels`.
    """
    rounds = min(rounds, labels)
    return [labels * (r + 1) // rounds - labels * r // rounds for r in range(rounds)]


def train(
    rows: npt.NDArray[np.float32],
    *,
    owned: Sequence[IndexArray],
    head: Head,
    plan: LabelPlan,
    settings: Settings,
    seed: int | None,
) -> tuple[npt.NDArray[np.float32], ...]:
    """Trains teachers, student and generator.

    Args:
        rows: Encoded private records, shape [n, width].
        owned: Row numbers of each teacher.
        head: Makes generated records of the form of the private ones.
        plan: How many labels may be released, with which noise.
        settings: The public constants.
        seed: None draws everything from the system's entropy.

    Returns:
        The generator's weights.
    """
    width, rate = rows.shape[1], settings.learning_rate
    hidden = settings.hidden
    schedule = labels_per_round(plan.labels, settings.rounds)

    teachers = Teachers(
        network(plan.teachers, [width, hidden // 4, 1], torch_rng(seed, "teacher weights")),
        rows=rows,
        owned=owned,
        minibatches=all_minibatches(
            owned,
            steps=len(schedule) * settings.teacher_steps,
            batch=settings.batch,
            rngs=[rng_of(seed, f"teacher {teacher}") for teacher in range(plan.teachers)],
        ),
        rate=rate,
    )
    student = Student(
        network(1, [width, hidden // 2, 1], torch_rng(seed, "student weights")),
        rate=rate,
        rng=torch_rng(seed, "student"),
    )
    generator = network(
        1,
        [settings.noise_width + head.classes, hidden, head.inputs],
        torch_rng(seed, "generator weights"),
        gain=_GENERATOR_GAIN,
    )
    adam = Adam(generator, rate=rate)
    rng = torch_rng(seed, "generator")
    labels = LabelRelease(plan.table, LabelBudget(plan.labels), seed=seed)

    def synthetic(n: int) -> Tensor:
        with torch.no_grad():
            return generate(generator, head, n, rng=rng)

    for queries in schedule:
        for _ in range(settings.teacher_steps):
            teachers.train(synthetic(settings.batch))
        asked = synthetic(queries)
        student.learn(asked, labels.release(teachers.votes(asked)))
        student.train(steps=settings.student_steps, batch=settings.batch)
        for _ in range(settings.generator_steps):
            fake = generate(generator, head, settings.batch, rng=rng)
            # Non-saturating loss -log S(G(z)) (Goodfellow et al. 2014, section 3).
            adam.step(softplus(-forward(student.weights, fake[None])).mean())
    return tuple(weight.detach().numpy() for weight in generator)
