"""Training without PATE: one critic, with the partition and noise that switches ask for."""

from __future__ import annotations

from collections.abc import Sequence

from dpaudit.account import Mechanism
from dpaudit.plugins.recorder import Recorder
from dpaudit_generators.published.accountant import gaussian_deviation
from dpaudit_generators.published.critic import CriticSettings, CriticSubject, train_critics
from dpaudit_generators.published.partition import Partition
from dpaudit_generators.published.recipes import Recipe
from dpaudit_generators.published.shown import ShownRecords
from dpaudit_generators.published.switches import Switch
from dpaudit_generators.published.trainee import (
    Form,
    PublishedSettings,
    PublishedTrainee,
    TrainedAndShown,
)

PENALTY = 10.0
"""Weight of the gradient penalty (Gulrajani et al. 2017)."""


def train(
    trainees: Sequence[PublishedTrainee],
    *,
    form: Form,
    recipe: Recipe,
    settings: PublishedSettings,
    recorder: Recorder | None = None,
) -> list[TrainedAndShown]:
    """Trains M models; each is bit-identical to training alone.

    Labels of the critic have Laplace noise of scale 1 / epsilon, or normal noise.

    Args:
        trainees: What each model is trained on; all of one shape.
        form: The form of the records.
        recipe: The hyperparameters.
        settings: The public constants.
        recorder: Records the training of the first model.

    Returns:
        The networks of each model, and what its critic, which stands for the student, was shown.
    """
    switches, k = settings.switches, settings.teachers
    if Switch.NOISE_GAUSSIAN_ON_LABELS in switches:
        law, scale = Mechanism.GAUSSIAN, gaussian_deviation(settings.inverse, settings.epsilon)
    else:
        law, scale = Mechanism.LAPLACE, 1.0 / settings.epsilon
        if Switch.NOISE_SCALE_INVERTED in switches:
            scale = settings.epsilon
    subjects = [
        CriticSubject(
            rows=trainee.records[:, : form.made],
            conditions=trainee.records[:, form.made :],
            parts=Partition(
                trainee.public,
                teachers=k,
                switches=switches,
                larger=recipe.larger,
                seed=trainee.seed,
            ).parts,
            positions=trainee.positions,
            seed=trainee.seed,
        )
        for trainee in trainees
    ]
    shown = ShownRecords(len(trainees), width=form.width, hints=0, iterations=settings.iterations)
    networks = train_critics(
        subjects,
        settings=CriticSettings(
            iterations=settings.iterations,
            batch=settings.batch,
            noise_width=recipe.noise_width,
            generator_hidden=recipe.generator.hidden,
            critic_hidden=recipe.student.hidden,
            rate=recipe.rate,
            betas=recipe.betas,
            penalty=float(k) if Switch.PENALTY_FROM_TEACHERS in switches else PENALTY,
            law=law,
            scale=scale,
        ),
        recorder=recorder,
        shown=shown,
    )
    return [TrainedAndShown(one, shown.of(model)) for model, one in enumerate(networks)]
