"""Training without PATE: one critic reads real records, its labels flipped at random.

Two of the published PATE-GANs ("original" and "turing" in Ganev, Annamalai and De Cristofaro 2025)
have no teachers' votes, no student and no accountant. In each iteration a Wasserstein critic with
gradient penalty (Gulrajani et al. 2017) takes k steps on real and generated records; noise is added
to their labels, 1 and 0, and thresholded at 1/2. Then the generator takes one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dpaudit.account import Mechanism
from dpaudit.plugins.protocols import IntArray
from dpaudit.plugins.recorder import NoiseOn, Reader, Recorder, Stage
from dpaudit.seeds import rng_of
from dpaudit_generators.networks.model import Float32Array, Weights
from dpaudit_generators.networks.stack import padded, with_ones
from dpaudit_generators.pate import IndexArray
from dpaudit_generators.published.critic_networks import (
    Minibatches,
    TanhGenerators,
    Uniforms,
    UniformSource,
    WassersteinCritics,
    flipped,
    noise_of,
)
from dpaudit_generators.published.networks import drawn as drawn_weights
from dpaudit_generators.published.recipes import Architecture, Recipe, Start, Switch
from dpaudit_generators.published.student import ShownRecords
from dpaudit_generators.published.teachers import Partition
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
        The generator and the critic of each model, and what its critic, which stands for the
        student, was shown.
    """
    switches, k = settings.switches, settings.teachers
    if Switch.NOISE_GAUSSIAN_ON_LABELS in switches:
        law, scale = Mechanism.GAUSSIAN, settings.deviation
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
    return [(*one, shown.of(model)) for model, one in enumerate(networks)]


AT_ONCE: Final = 2**20
"""Most numbers in the minibatches of an iteration, for all models that are trained side by side.

With 29 columns these are 25 models; from 12 to 64 models, the cost of one is about the same.
"""


class CriticSubject(NamedTuple):
    """What one model is trained on.

    Attributes:
        rows: Encoded private records, float32 [n, width].
        conditions: Conditions of critic and generator for them, float32 [n, c]; c may be 0.
        parts: Row numbers that each of k critic steps draws its minibatch from.
        positions: Row numbers in the traced table, int64 [n].
        seed: Its seed; None draws everything from the system's entropy.
    """

    rows: Float32Array
    conditions: Float32Array
    parts: Sequence[IndexArray]
    positions: IntArray
    seed: int | None


@dataclass(frozen=True, kw_only=True)
class CriticSettings:
    """Sizes, numbers of steps and rates of a training with one critic.

    Attributes:
        iterations: Number of steps of the generator.
        batch: Records of a minibatch.
        noise_width: Dimension of the generator's noise, uniform in (-1, 1).
        generator_hidden: Widths of the generator's hidden layers (tanh; the outputs are logistic).
        critic_hidden: Widths of the critic's two hidden layers (rectifiers; its output is linear).
        rate: Learning rate of Adam.
        betas: Adam's decay rates.
        penalty: Weight of the gradient penalty.
        law: Distribution of the noise on labels, normal or Laplace.
        scale: Standard deviation of normal noise, scale of Laplace noise; 0 means no noise.
    """

    iterations: int
    batch: int
    noise_width: int
    generator_hidden: Sequence[int]
    critic_hidden: Sequence[int]
    rate: float
    betas: Sequence[float]
    penalty: float
    law: Mechanism
    scale: float


@torch.inference_mode()
def train_critics(
    subjects: Sequence[CriticSubject],
    *,
    settings: CriticSettings,
    recorder: Recorder | None = None,
    shown: ShownRecords | None = None,
) -> list[tuple[Weights, Weights]]:
    """Trains a critic and a generator for each model; each is bit-identical to training alone.

    Args:
        subjects: What each is trained on; all of the same widths, of at least two columns, and with
            the same number of parts.
        settings: The public constants.
        recorder: Records the training of the first model.
        shown: Sums what each critic is trained on.

    Returns:
        The generator and the critic of each model: the generator takes noise and conditions, the
        critic records and conditions.
    """
    width = padded(subjects[0].rows.shape[1] + subjects[0].conditions.shape[1])
    numbers = 2 * len(subjects[0].parts) * settings.batch * width
    size = max(1, AT_ONCE // numbers)
    trained: list[tuple[Weights, Weights]] = []
    for first in range(0, len(subjects), size):
        part = slice(first, first + size)
        trained += _train(subjects[part], settings, None if first else recorder, shown, part)
    return trained


def _train(
    subjects: Sequence[CriticSubject],
    settings: CriticSettings,
    recorder: Recorder | None,
    shown: ShownRecords | None,
    part: slice,
) -> list[tuple[Weights, Weights]]:
    models, steps = len(subjects), len(subjects[0].parts)
    # In a stack of one, a product of one row would use another routine, so the row is there twice.
    copies = 2 if settings.batch == 1 else 1
    batch = settings.batch * copies
    width, given = subjects[0].rows.shape[1], subjects[0].conditions.shape[1]
    conditions = slice(width, width + given)
    noise_width = settings.noise_width
    critic = Architecture(hidden=tuple(settings.critic_hidden)).layers(width + given, 1)
    generator = Architecture(hidden=tuple(settings.generator_hidden)).layers(
        noise_width + given, width
    )
    seeds = [subject.seed for subject in subjects]
    critics = WassersteinCritics(
        [drawn_weights(Start.HE, critic, rng_of(seed, "critic weights")) for seed in seeds],
        rate=settings.rate,
        betas=settings.betas,
        width=width,
        penalty=settings.penalty,
    )
    generators = TanhGenerators(
        [drawn_weights(Start.HE, generator, rng_of(seed, "generator weights")) for seed in seeds],
        rate=settings.rate,
        betas=settings.betas,
        ones=width + given,
    )
    uniforms = UniformSource(seeds, steps=steps, batch=settings.batch, noise_width=noise_width)
    minibatches = Minibatches(
        seeds,
        # The last part is the generator's, which gets the conditions of any row.
        [[*one.parts, *([np.arange(len(one.rows))] if given else [])] for one in subjects],
        batch=settings.batch,
    )
    table, starts = _stacked(subjects)
    columns = table.shape[1]
    inputs = with_ones(torch.zeros(models, (steps + 1) * batch, noise_width + given))
    real = torch.empty(models, steps + (given > 0), batch, columns)
    rows = torch.empty(models, steps, 2, batch, columns)
    own = torch.empty(models, batch, columns)
    flip = flipped(settings.law, settings.scale)
    recording = _Recording(recorder, subjects[0], settings)

    for iteration in range(settings.iterations):
        chosen, drawn = minibatches.draw(), uniforms.draw()
        recording.iteration(chosen[0, :steps], drawn)
        if copies > 1:
            chosen, drawn = chosen.repeat(copies, axis=2), drawn.repeated(copies)
        indices = torch.from_numpy((chosen + starts).ravel())
        torch.index_select(table, 0, indices, out=real.view(-1, columns))
        torch.sub(drawn.noise.mul_(2.0), 1.0, out=inputs[..., :noise_width])
        if given:
            inputs[..., noise_width : noise_width + given] = real[..., conditions].flatten(1, 2)
        values, raw = generators.forward(inputs)
        rows[:, :, 0] = real[:, :steps]
        torch.sigmoid(raw[:, : steps * batch].view(real[:, :steps].shape), out=rows[:, :, 1])
        torch.sigmoid(raw[:, steps * batch :], out=own)
        if given:
            rows[:, :, 1, :, conditions] = rows[:, :, 0, :, conditions]
            own[..., conditions] = real[:, -1, :, conditions]
        slopes = _slopes(drawn.labels, flip)
        if shown is not None:
            seen, labels = rows[:, :, :, ::copies], slopes[:, :, ::copies] < 0.0  # 1 slopes down
            shown.add(seen.flatten(1, 3), labels.flatten(1), iteration=iteration, going=part)
        for step in range(steps):
            critics.train(rows[:, step].flatten(1, 2), slopes[:, step], drawn.between[:, step])
        slope = critics.slope(own).mul_(-1.0 / batch)
        generators.descend([value[:, steps * batch :] for value in values], own, slope)
    return list(zip(generators.weights(), critics.weights(), strict=True))


def _stacked(subjects: Sequence[CriticSubject]) -> tuple[Tensor, IndexArray]:
    """Records of all models, each model's after a record of zeros, and where they start."""
    tables = [
        with_ones(*(torch.from_numpy(np.pad(part, ((1, 0), (0, 0)))) for part in subject[:2]))
        for subject in subjects
    ]
    starts = np.cumsum([1] + [len(subject.rows) + 1 for subject in subjects[:-1]])
    return torch.cat(tables), starts[:, None, None]


def _slopes(uniforms: Tensor, flip: float) -> Tensor:
    """Gradients of the critic's loss with respect to its outputs, with noisy labels.

    Args:
        uniforms: Uniform numbers for the labels, [M, k, 2 * batch, 1], real records (1) first.
        flip: Probability that a label is flipped.
    """
    both = uniforms.shape[2]
    # Low noise takes a 1 below 1/2, high noise takes a 0 above it.
    high = uniforms >= torch.tensor([flip, 1.0 - flip]).repeat_interleave(both // 2)[:, None]
    return high.float().mul_(-2.0 / both).add_(1.0 / both)


class _Recording:
    """Records the training of one model, if there is a recorder."""

    def __init__(
        self, recorder: Recorder | None, subject: CriticSubject, settings: CriticSettings
    ) -> None:
        self._recorder, self._subject, self._settings = recorder, subject, settings
        if recorder is not None:
            recorder.constant("batch", settings.batch)
            recorder.constant("teachers", len(subject.parts))
            recorder.constant("gradient_penalty", settings.penalty)

    def iteration(self, chosen: IndexArray, drawn: Uniforms) -> None:
        """Records what an iteration draws.

        Args:
            chosen: Row numbers of the critic's minibatches, [k, batch].
            drawn: Its uniform numbers.
        """
        if self._recorder is None:
            return
        law, scale = self._settings.law, self._settings.scale
        self._recorder.iteration()
        for step, (rows, labels) in enumerate(zip(chosen, drawn.labels[0], strict=True)):
            positions = self._subject.positions[rows[rows >= 0]]
            self._recorder.read(Reader.TEACHER, positions, index=step)
            self._recorder.read(Reader.STUDENT, positions)
            self._recorder.noise(noise_of(labels[:, 0].numpy(), law, scale), on=NoiseOn.LABELS)
        self._recorder.fed(Stage.TRAINING, 2.0 * drawn.noise[0].double().numpy() - 1.0)
