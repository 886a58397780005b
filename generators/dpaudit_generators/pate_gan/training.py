"""PATE-GAN's training loop (Jordon, Yoon and van der Schaar 2019, Algorithm 1), stacked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import torch

from dpaudit.account import LabelBudget, LabelPlan
from dpaudit.seeds import rng_of
from dpaudit_generators.pate import LabelRelease
from dpaudit_generators.pate_gan.draws import uniform
from dpaudit_generators.pate_gan.rows import Head
from dpaudit_generators.pate_gan.settings import Settings
from dpaudit_generators.pate_gan.source import Source
from dpaudit_generators.pate_gan.stack import Critics, Generators, initial
from dpaudit_generators.pate_gan.student import Student
from dpaudit_generators.pate_gan.teachers import Teachers
from dpaudit_generators.pate_gan.trainee import Trainee, Weights

GAIN: Final = 2.0
"""On the generator's last layer: spreads the first synthetic records over the bounds.

The teachers' labels tell nothing unless some synthetic records look real (section 4 of the paper),
and votes on a narrow cloud are all alike.
"""


class InitialNetworks:
    """The networks that a training starts from, without padding.

    Attributes:
        teachers: k critics.
        student: One critic.
        generator: One generator.
    """

    def __init__(self, seed: int | None, *, head: Head, teachers: int, settings: Settings) -> None:
        noise = settings.noise_width + head.classes
        self.teachers = initial(
            teachers, [head.width, *settings.teacher_hidden, 1], rng_of(seed, "teacher weights")
        )
        self.student = initial(
            1, [head.width, *settings.student_hidden, 1], rng_of(seed, "student weights")
        )
        self.generator = initial(
            1,
            [noise, *settings.generator_hidden, head.inputs],
            rng_of(seed, "generator weights"),
            gain=GAIN,
        )


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
    trainees: Sequence[Trainee], *, head: Head, plan: LabelPlan, settings: Settings
) -> list[Weights]:
    """Trains teachers, student and generator of each model; none depends on the others.

    Args:
        trainees: What each model is trained on.
        head: Makes generated records of the form of the private ones.
        plan: How many labels may be released, with which noise.
        settings: The public constants.

    Returns:
        The generator's weights of each model.
    """
    seeds = [trainee.seed for trainee in trainees]
    start = [
        InitialNetworks(seed, head=head, teachers=plan.teachers, settings=settings)
        for seed in seeds
    ]
    rate, betas = settings.learning_rate, settings.betas
    teachers = Teachers(
        Critics([networks.teachers for networks in start], rate=rate, betas=betas),
        [trainee.records for trainee in trainees],
    )
    student = Student(
        Critics([networks.student for networks in start], rate=rate, betas=betas), settings
    )
    generators = Generators([networks.generator for networks in start], rate=rate, betas=betas)
    source = Source(
        generators,
        head,
        [trainee.proportions for trainee in trainees],
        noise_width=settings.noise_width,
    )
    table = plan.table
    releases = [LabelRelease(table, LabelBudget(plan.labels), seed=seed) for seed in seeds]
    rngs = [rng_of(seed, "training") for seed in seeds]
    batch, steps = settings.batch, settings.teacher_steps

    for queries in labels_per_round(plan.labels, settings.rounds):
        chosen = teachers.minibatches(uniform(rngs, steps, plan.teachers, batch))
        asked = [min(batch, queries - start) for start in range(0, queries, batch)]
        sizes = [*[batch] * steps, *asked, *[batch] * settings.generator_steps]
        noise = iter(source.noise(sum(sizes), rngs).split(sizes))
        for step in range(steps):
            teachers.train(chosen[:, step], source.generate(next(noise))[1].records)
        records = [source.generate(next(noise))[1].records for _ in asked]
        votes = np.concatenate([teachers.votes(part) for part in records], axis=1)
        labels = [release.release(mine) for release, mine in zip(releases, votes, strict=True)]
        student.train(records, torch.from_numpy(np.stack(labels)).float(), rngs)
        for rest in noise:
            values, generated = source.generate(rest)
            source.train(values, generated, student.slope(generated.records))
    return generators.weights()
