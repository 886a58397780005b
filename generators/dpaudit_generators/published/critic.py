"""Training without PATE: one critic reads real records, its labels flipped at random.

Two of the published PATE-GANs ("original" and "turing" in Ganev, Annamalai and De Cristofaro 2025)
have no teachers' votes, no student and no accountant. In each iteration a Wasserstein critic with
gradient penalty (Gulrajani et al. 2017) takes k steps on real and generated records; noise is added
to their labels, 1 and 0, and thresholded at 1/2. Then the generator takes one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import torch
from torch import Tensor

from dpaudit.account import Mechanism
from dpaudit.plugins.protocols import IntArray
from dpaudit.plugins.recorder import NoiseOn, Reader, Recorder, Stage
from dpaudit.seeds import rng_of
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
from dpaudit_generators.published.recipes import Recipe, Switch
from dpaudit_generators.published.student import ShownRecords
from dpaudit_generators.published.teachers import Partition
from dpaudit_generators.published.trainee import (
    Form,
    PublishedSettings,
    PublishedTrainee,
    TrainedAndShown,
)

PENALTY: Final = 10.0
"""Weight of the gradient penalty (Gulrajani et al. 2017)."""

AT_ONCE: Final = 2**20
"""Most numbers in the minibatches of an iteration, for all models that are trained side by side.

With 29 columns these are 25 models; from 12 to 64 models, the cost of one is about the same.
"""


@torch.inference_mode()
def train(
    trainees: Sequence[PublishedTrainee],
    *,
    form: Form,
    recipe: Recipe,
    settings: PublishedSettings,
    recorder: Recorder | None = None,
) -> list[TrainedAndShown]:
    """Trains M models; each is bit-identical to training alone.

    Labels of the critic have Laplace noise of scale 1 / epsilon, or normal noise. The generator
    takes noise and conditions, the columns that are given to it; the critic whole records.

    Args:
        trainees: What each model is trained on; all of one shape, of at least two columns.
        form: The form of the records.
        recipe: The hyperparameters: a critic with two hidden layers of rectifiers, a generator with
            tanh and logistic outputs.
        settings: The public constants.
        recorder: Records the training of the first model.

    Returns:
        The generator and the critic of each model, and what its critic, which stands for the
        student, was shown.
    """
    numbers = 2 * settings.teachers * settings.batch * padded(form.width)
    size = max(1, AT_ONCE // numbers)
    trained: list[TrainedAndShown] = []
    for first in range(0, len(trainees), size):
        part, own = trainees[first : first + size], None if first else recorder
        trained += _train(part, form, recipe, settings, own)
    return trained


def _train(
    trainees: Sequence[PublishedTrainee],
    form: Form,
    recipe: Recipe,
    settings: PublishedSettings,
    recorder: Recorder | None,
) -> list[TrainedAndShown]:
    models, steps, given = len(trainees), settings.teachers, form.given
    # In a stack of one, a product of one row would use another routine, so the row is there twice.
    copies = 2 if settings.batch == 1 else 1
    batch, noise_width = settings.batch * copies, recipe.noise_width
    conditions = slice(form.made, form.width)
    noise = _label_noise(settings)
    penalty = float(steps) if Switch.PENALTY_FROM_TEACHERS in settings.switches else PENALTY
    critics, generators = _networks(trainees, form, recipe, penalty)
    seeds = [trainee.seed for trainee in trainees]
    uniforms = UniformSource(seeds, steps=steps, batch=settings.batch, noise_width=noise_width)
    minibatches = Minibatches(
        seeds,
        # The last part is the generator's, which gets the conditions of any row.
        [
            Partition(one, recipe, settings).parts + [np.arange(len(one.records))] * (given > 0)
            for one in trainees
        ],
        batch=settings.batch,
    )
    table, starts = _stacked(trainees)
    columns = table.shape[1]
    inputs = with_ones(torch.zeros(models, (steps + 1) * batch, noise_width + given))
    real = torch.empty(models, steps + (given > 0), batch, columns)
    rows = torch.empty(models, steps, 2, batch, columns)
    own = torch.empty(models, batch, columns)
    flip = flipped(*noise)
    shown = ShownRecords(models, width=form.width, hints=0, iterations=settings.iterations)
    if recorder is not None:
        recorder.constant("batch", settings.batch)
        recorder.constant("teachers", steps)
        recorder.constant("gradient_penalty", penalty)

    for iteration in range(settings.iterations):
        chosen, drawn = minibatches.draw(), uniforms.draw()
        if recorder is not None:
            _record(recorder, trainees[0].positions, chosen[0, :steps], drawn, noise)
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
        seen, labels = rows[:, :, :, ::copies], slopes[:, :, ::copies] < 0.0  # 1 slopes down
        shown.add(seen.flatten(1, 3), labels.flatten(1), iteration=iteration)
        for step in range(steps):
            critics.train(rows[:, step].flatten(1, 2), slopes[:, step], drawn.between[:, step])
        slope = critics.slope(own).mul_(-1.0 / batch)
        generators.descend([value[:, steps * batch :] for value in values], own, slope)
    sums = [shown.of(model) for model in range(models)]
    return list(zip(generators.weights(), critics.weights(), sums, strict=True))


def _label_noise(settings: PublishedSettings) -> tuple[Mechanism, float]:
    """The distribution of the noise on labels, and its standard deviation or scale."""
    if Switch.NOISE_GAUSSIAN_ON_LABELS in settings.switches:
        return Mechanism.GAUSSIAN, settings.deviation
    inverted = Switch.NOISE_SCALE_INVERTED in settings.switches
    return Mechanism.LAPLACE, settings.epsilon if inverted else 1.0 / settings.epsilon


def _networks(
    trainees: Sequence[PublishedTrainee], form: Form, recipe: Recipe, penalty: float
) -> tuple[WassersteinCritics, TanhGenerators]:
    """The critic and the generator of each model before training."""
    critic = recipe.student.layers(form.width, 1)
    generator = recipe.generator.layers(recipe.noise_width + form.given, form.made)
    seeds = [trainee.seed for trainee in trainees]
    critics = WassersteinCritics(
        [drawn_weights(recipe.start, critic, rng_of(seed, "critic weights")) for seed in seeds],
        rate=recipe.rate,
        betas=recipe.betas,
        width=form.made,
        penalty=penalty,
    )
    generators = TanhGenerators(
        [
            drawn_weights(recipe.start, generator, rng_of(seed, "generator weights"))
            for seed in seeds
        ],
        rate=recipe.rate,
        betas=recipe.betas,
        ones=form.width,
    )
    return critics, generators


def _stacked(trainees: Sequence[PublishedTrainee]) -> tuple[Tensor, IndexArray]:
    """Records of all models, each model's after a record of zeros, and where they start."""
    padding = ((1, 0), (0, 0))
    tables = [with_ones(torch.from_numpy(np.pad(one.records, padding))) for one in trainees]
    starts = np.cumsum([1] + [len(one.records) + 1 for one in trainees[:-1]])
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


def _record(
    recorder: Recorder,
    positions: IntArray,
    chosen: IndexArray,
    drawn: Uniforms,
    noise: tuple[Mechanism, float],
) -> None:
    """Records what an iteration of the first model draws.

    Args:
        recorder: Takes the records.
        positions: Positions of its rows in the traced table [n].
        chosen: Row numbers of the critic's minibatches, [k, batch].
        drawn: The uniform numbers.
        noise: The distribution of the noise on labels, and its scale.
    """
    recorder.iteration()
    for step, (rows, labels) in enumerate(zip(chosen, drawn.labels[0], strict=True)):
        read = positions[rows[rows >= 0]]
        recorder.read(Reader.TEACHER, read, index=step)
        recorder.read(Reader.STUDENT, read)
        recorder.noise(noise_of(labels[:, 0].numpy(), *noise), on=NoiseOn.LABELS)
    recorder.fed(Stage.TRAINING, 2.0 * drawn.noise[0].double().numpy() - 1.0)
