"""PATE-GAN's training loop (Jordon, Yoon and van der Schaar 2019, Algorithm 1), stacked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np
import torch
from torch import Tensor

from dpaudit.account import LabelBudget, LabelPlan
from dpaudit.seeds import rng_of
from dpaudit_generators.networks.draws import Streams
from dpaudit_generators.networks.rows import Head
from dpaudit_generators.networks.stack import Critics, Generators, initial
from dpaudit_generators.pate import IndexArray, LabelReleases
from dpaudit_generators.pate_gan.candidates import CandidateSource
from dpaudit_generators.pate_gan.learning import LearningSource, Source
from dpaudit_generators.pate_gan.rounds import Round, rounds
from dpaudit_generators.pate_gan.settings import TrainingSettings
from dpaudit_generators.pate_gan.student import StudentCritics
from dpaudit_generators.pate_gan.teachers import Teachers
from dpaudit_generators.pate_gan.trainee import Trained, Trainee

GAIN: Final = 2.0
"""Factor on the generator's last layer: spreads the first synthetic records over the bounds.

The teachers' labels say nothing unless some synthetic records look real (section 4 of the paper),
and votes on a narrow cloud are all alike.
"""


class Observer(Protocol):
    """Follows a training without changing it."""

    def on_round(self, drawn: Round, chosen: Tensor, teachers: Teachers) -> None:
        """A round begins; called before any of its steps.

        Args:
            drawn: Its random numbers.
            chosen: Row numbers of the real records of its minibatches [M, steps, k, batch].
            teachers: The teachers.
        """
        ...

    def on_labels(self, votes: IndexArray, labels: IndexArray) -> None:
        """The labels of a round were released; called after the teachers' steps.

        Args:
            votes: How many teachers voted 1 [M, n].
            labels: The labels drawn from these votes [M, n].
        """
        ...


class InitialNetworks:
    """The networks that a training starts from, without padding.

    Args:
        seed: Of the model; None draws everything from the system's entropy.
        head: Fixes how many columns a record has.
        teachers: Number k of teachers.
        settings: The public constants.
        calm: Whether the student begins with a logit of 0 for every record.

    Attributes:
        teachers: k critics.
        student: One critic.
        generator: One generator.
    """

    def __init__(
        self,
        seed: int | None,
        *,
        head: Head,
        teachers: int,
        settings: TrainingSettings,
        calm: bool = False,
    ) -> None:
        noise = settings.noise_width + head.classes
        self.teachers = initial(
            teachers, [head.width, *settings.teacher_hidden, 1], rng_of(seed, "teacher weights")
        )
        self.student = initial(
            1,
            [head.width, *settings.student_hidden, 1],
            rng_of(seed, "student weights"),
            gain=0.0 if calm else 1.0,
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
) -> list[Trained]:
    """Trains teachers, student and generator of each model, bit-identical to training it alone.

    A model stops at the first round whose labels its budget does not pay for. Where records are
    drawn from noisy marginals, there is no generator to train.

    Args:
        trainees: What each model is trained on; noisy marginals for all of them or for none.
        head: Gives generated records the form of private ones.
        plan: How many labels may be released, with which noise.
        settings: The public constants.
        device: Where the networks are.
        observer: Follows every round.

    Returns:
        The networks of each model, as they were when it stopped, and its labels.
    """
    seeds = [trainee.seed for trainee in trainees]
    marginals = [trainee.start for trainee in trainees if trainee.start is not None]
    start = [
        InitialNetworks(
            seed, head=head, teachers=plan.teachers, settings=settings, calm=bool(marginals)
        )
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
    budgets = [LabelBudget(trainee.labels) for trainee in trainees]
    releases = LabelReleases(plan.table, budgets, seeds=seeds)
    streams = Streams(seeds, "training", device=device)
    source: Source
    if marginals:
        source = CandidateSource(marginals, head, streams, device=device)
    else:
        source = LearningSource(
            Generators([one.generator for one in start], rate=rate, betas=betas, device=device),
            head,
            streams,
            [trainee.proportions for trainee in trainees],
            settings,
            device=device,
        )
    teaching = settings.teacher_steps * batch
    fixed = teaching + source.steps * batch

    ones = np.zeros((min(settings.rounds, plan.labels), len(trainees)))

    def trained(models: Sequence[int]) -> list[Trained]:
        shares = ones[:, models].T.tolist()
        networks = zip(source.weights(models), student.weights(models), strict=True)
        return [Trained(*both, tuple(mine)) for both, mine in zip(networks, shares, strict=True)]

    finished: dict[int, Trained] = {}
    planned = rounds(streams, source.draw, source.steps, plan=plan, settings=settings)
    for place, drawn in enumerate(planned):
        going = [budget.left >= drawn.queries for budget in budgets]
        stopping = [i for i, goes in enumerate(going) if not goes and i not in finished]
        finished |= dict(zip(stopping, trained(stopping), strict=True))
        if not any(going):
            break
        chosen = teachers.minibatches(drawn.minibatches)
        if observer is not None:
            observer.on_round(drawn, chosen, teachers)
        # The generator moves only at the end of a round: one pass makes the records of all steps.
        fakes = source.records(drawn.noise.part(slice(teaching)))
        for step, fake in enumerate(torch.split(fakes, batch, dim=1)):
            teachers.train(chosen[:, step], fake)
        asked = source.records(drawn.noise.part(slice(fixed, fixed + drawn.queries)))
        votes = teachers.votes(asked)
        labels = releases.release(votes, going=going)
        ones[place] = labels.mean(axis=1)
        if observer is not None:
            observer.on_labels(votes, labels)
        student.train(asked, torch.from_numpy(labels).float().to(device), drawn.replay)
        for first in range(teaching, fixed, batch):
            source.learn(drawn.noise.part(slice(first, first + batch)), student.slope)
    return [finished.get(i, last) for i, last in enumerate(trained(range(len(trainees))))]
