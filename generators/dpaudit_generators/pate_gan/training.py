"""PATE-GAN's training loop (Jordon, Yoon and van der Schaar 2019, Algorithm 1), stacked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import torch
from torch import Tensor

from dpaudit.account import LabelBudget, LabelPlan
from dpaudit.seeds import rng_of
from dpaudit_generators.pate import IndexArray, LabelReleases
from dpaudit_generators.pate_gan.draws import Streams
from dpaudit_generators.pate_gan.rounds import Round, rounds
from dpaudit_generators.pate_gan.rows import Head
from dpaudit_generators.pate_gan.settings import TrainingSettings
from dpaudit_generators.pate_gan.source import NoiseSource, RecordSource
from dpaudit_generators.pate_gan.stack import Critics, Generators, initial
from dpaudit_generators.pate_gan.student import StudentCritics
from dpaudit_generators.pate_gan.teachers import Teachers
from dpaudit_generators.pate_gan.trainee import Trainee, Weights

GAIN: Final = 2.0
"""On the generator's last layer: spreads the first synthetic records over the bounds.

The teachers' labels tell nothing unless some synthetic records look real (section 4 of the paper),
and votes on a narrow cloud are all alike.
"""


class Observer(Protocol):
    """Is shown a training as it goes, and changes nothing of it."""

    def begins(self, this: Round, chosen: Tensor, teachers: Teachers) -> None:
        """A round: the real records chosen for it [M, steps, k, batch]; before any step."""
        ...

    def released(self, votes: IndexArray, labels: IndexArray) -> None:
        """Labels of its queries [M, n], drawn from votes; after the teachers' steps."""
        ...


class InitialNetworks:
    """The networks that a training starts from, without padding.

    Attributes:
        teachers: k critics.
        student: One critic.
        generator: One generator.
    """

    def __init__(
        self, seed: int | None, *, head: Head, teachers: int, settings: TrainingSettings
    ) -> None:
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


@torch.inference_mode()
def train(
    trainees: Sequence[Trainee],
    *,
    head: Head,
    plan: LabelPlan,
    settings: TrainingSettings,
    device: torch.device,
    observer: Observer | None = None,
) -> list[Weights]:
    """Trains teachers, student and generator of each model; none depends on the others.

    A model stops at the first round whose labels its budget does not pay for.

    Args:
        trainees: What each model is trained on.
        head: Makes generated records of the form of the private ones.
        plan: How many labels may be released, with which noise.
        settings: The public constants.
        device: Where the networks are.
        observer: Is shown every round.

    Returns:
        The generator's weights of each model.
    """
    seeds = [trainee.seed for trainee in trainees]
    start = [
        InitialNetworks(seed, head=head, teachers=plan.teachers, settings=settings)
        for seed in seeds
    ]
    rate, betas, batch = settings.learning_rate, settings.betas, settings.batch
    teachers = Teachers(
        Critics([one.teachers for one in start], rate=rate, betas=betas, device=device),
        [trainee.records for trainee in trainees],
        device=device,
    )
    student = StudentCritics(
        Critics([one.student for one in start], rate=rate, betas=betas, device=device), settings
    )
    generators = Generators([one.generator for one in start], rate=rate, betas=betas, device=device)
    source = RecordSource(generators, head)
    budgets = [LabelBudget(trainee.labels) for trainee in trainees]
    releases = LabelReleases(plan.table, budgets, seeds=seeds)
    streams = Streams(seeds, "training", device=device)
    noise = NoiseSource(
        streams,
        head,
        [trainee.proportions for trainee in trainees],
        width=settings.noise_width,
        device=device,
    )
    teaching = settings.teacher_steps * batch
    fixed = teaching + settings.generator_steps * batch

    finished: dict[int, Weights] = {}
    for this in rounds(streams, noise, plan=plan, settings=settings):
        going = [budget.left >= this.queries for budget in budgets]
        stopping = [i for i, goes in enumerate(going) if not goes and i not in finished]
        finished |= dict(zip(stopping, generators.weights(stopping), strict=True))
        if not any(going):
            break
        chosen = teachers.minibatches(this.minibatches)
        if observer is not None:
            observer.begins(this, chosen, teachers)
        # The generator moves at the end of a round alone: one pass makes the records of all steps.
        fakes = source.generate(this.noise.part(slice(teaching)))[1].records
        for step, fake in enumerate(torch.split(fakes, batch, dim=1)):
            teachers.train(chosen[:, step], fake)
        asked = source.generate(this.noise.part(slice(fixed, fixed + this.queries)))[1].records
        votes = teachers.votes(asked)
        labels = releases.release(votes, going=going)
        if observer is not None:
            observer.released(votes, labels)
        student.train(asked, torch.from_numpy(labels).float().to(device), this.replay)
        for first in range(teaching, fixed, batch):
            values, generated = source.generate(this.noise.part(slice(first, first + batch)))
            source.train(values, generated, student.slope(generated.records))
    return [finished.get(i, weights) for i, weights in enumerate(generators.weights())]
