"""Training without PATE: one critic reads real records, its labels flipped at random.

Two of the published PATE-GANs ("original" and "turing" in Ganev, Annamalai and De Cristofaro 2025)
have no teachers' votes, no student and no accountant. In each iteration a Wasserstein critic with
gradient penalty (Gulrajani et al. 2017) takes k steps on real and generated records; noise is added
to their labels, 1 and 0, and thresholded at 1/2. Then the generator takes one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import ndtr, ndtri
from torch import Tensor

from dpaudit.account import Mechanism
from dpaudit.plugins.protocols import FloatArray, IntArray
from dpaudit.plugins.recorder import NoiseOn, Reader, Recorder, Stage
from dpaudit.seeds import rng_of
from dpaudit_generators.networks.model import Descent, Layer
from dpaudit_generators.networks.stack import Networks, padded, steepness, with_ones
from dpaudit_generators.pate import IndexArray
from dpaudit_generators.published.recipes import Recipe, Switch
from dpaudit_generators.published.source import PublishedRecordSource
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

_SMALL: Final = 1e-8
"""Added to the square of each entry of a gradient before its length is taken."""

AT_ONCE: Final = 2**20
"""Most numbers in the minibatches of an iteration, for all models that are trained side by side.

With 29 columns these are 25 models; from 12 to 64 models, the cost of one is about the same.
"""


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
    batch = settings.batch * copies
    noise = _label_noise(settings)
    penalty = float(steps) if Switch.PENALTY_FROM_TEACHERS in settings.switches else PENALTY
    critics, source = _networks(trainees, form, recipe)
    seeds = [trainee.seed for trainee in trainees]
    uniforms = UniformSource(
        seeds, steps=steps, batch=settings.batch, noise_width=recipe.noise_width
    )
    minibatches = Minibatches(
        seeds,
        # The last part is the generator's, which gets the conditions of any row.
        [
            Partition(own, recipe, settings).parts + [np.arange(len(own.records))] * (given > 0)
            for own in trainees
        ],
        batch=settings.batch,
    )
    table, starts = _stacked(trainees)
    flip = flipped(*noise)
    shown = ShownRecords(models, width=form.width, hints=0, iterations=settings.iterations)
    if recorder is not None:
        recorder.constant("batch", settings.batch)
        recorder.constant("teachers", steps)
        recorder.constant("gradient_penalty", penalty)

    def made(noise: Tensor, real: Tensor) -> Tensor:
        """Generated records, with the conditions of as many real ones."""
        conditions = real[..., form.made : form.width] if given else noise[..., :0]
        return source(2.0 * noise - 1.0, conditions, noise[..., :0])

    for iteration in range(settings.iterations):
        chosen, drawn = minibatches.draw(), uniforms.draw()
        if recorder is not None:
            _record(recorder, trainees[0].positions, chosen[0, :steps], drawn, noise)
        if copies > 1:
            chosen, drawn = chosen.repeat(copies, axis=2), drawn.repeated(copies)
        real = table[torch.from_numpy(chosen + starts)].flatten(1, 2)
        # The generator moves only at the end: one pass makes the records of all steps.
        with torch.no_grad():
            fakes = made(drawn.noise[:, : steps * batch], real[:, : steps * batch])
        slopes = _slopes(drawn.labels, flip)
        for step in range(steps):
            part = slice(step * batch, (step + 1) * batch)
            rows = torch.cat([real[:, part], fakes[:, part]], dim=1)
            labels = slopes[:, step, ::copies, 0] < 0.0  # 1 slopes down
            shown.add(rows[:, ::copies], labels, iteration=iteration)
            loss = critic_loss(
                critics,
                rows,
                slopes[:, step],
                drawn.between[:, step],
                penalty=penalty,
                width=form.made,
            )
            critics.descend(loss)
        own = made(drawn.noise[:, steps * batch :], real[:, steps * batch :])
        source.networks.descend(-critics(own)[..., 0].sum() / batch)
    sums = [shown.of(model) for model in range(models)]
    return list(zip(source.networks.weights(), critics.weights(), sums, strict=True))


def critic_loss(
    critics: Networks,
    rows: Tensor,
    slopes: Tensor,
    between: Tensor,
    *,
    penalty: float,
    width: int,
) -> Tensor:
    """The sum of the models' losses, linear in the outputs but for the gradient penalty.

    Args:
        critics: The critics.
        rows: Real and generated records, conditions and ones, [M, 2n, padded(inputs)].
        slopes: What each output counts, [M, 2n, 1].
        between: The points between a generated record (0) and a real one (1) at which the length of
            the critic's gradient should be 1, [M, n, 1].
        penalty: Weight of the gradient penalty (Gulrajani et al. 2017, equation 3).
        width: Columns of a record that are no conditions.
    """
    real, fakes = rows.chunk(2, dim=1)
    points = fakes.lerp(real, between)
    lengths = steepness(lambda at: critics(at)[..., 0], points, width, least=width * _SMALL)
    misses = (lengths - 1.0).square()
    return (critics(rows)[..., :1] * slopes).sum() + penalty * misses.sum() / points.shape[1]


def _label_noise(settings: PublishedSettings) -> tuple[Mechanism, float]:
    """The distribution of the noise on labels, and its standard deviation or scale."""
    if Switch.NOISE_GAUSSIAN_ON_LABELS in settings.switches:
        return Mechanism.GAUSSIAN, settings.deviation
    inverted = Switch.NOISE_SCALE_INVERTED in settings.switches
    return Mechanism.LAPLACE, settings.epsilon if inverted else 1.0 / settings.epsilon


def _networks(
    trainees: Sequence[PublishedTrainee], form: Form, recipe: Recipe
) -> tuple[Networks, PublishedRecordSource]:
    """The critic and the generator of each model before training."""
    seeds = [trainee.seed for trainee in trainees]
    # Both of these published PATE-GANs use plain Adam; a recipe may be that of another.
    descent = Descent(recipe.rate, recipe.betas)
    critics, generators = (
        Networks.drawn(seeds, purpose, architecture, layer, descent, start=recipe.start)
        for purpose, architecture, layer in (
            ("critic weights", recipe.student, Layer(form.width, 1)),
            (
                "generator weights",
                recipe.generator,
                Layer(recipe.noise_width + form.given, form.made),
            ),
        )
    )
    return critics, PublishedRecordSource(generators, form._replace(groups=()), recipe)


def _stacked(trainees: Sequence[PublishedTrainee]) -> tuple[Tensor, IndexArray]:
    """Records of all models, each model's after a record of zeros, and where they start."""
    padding = ((1, 0), (0, 0))
    tables = [with_ones(torch.from_numpy(np.pad(own.records, padding))) for own in trainees]
    starts = np.cumsum([1] + [len(own.records) + 1 for own in trainees[:-1]])
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


class Uniforms(NamedTuple):
    """Uniform numbers in [0, 1) of an iteration, float32.

    Attributes:
        noise: For the inputs of the generator, [M, (k + 1) * batch, noise_width].
        between: Points between generated and real records, [M, k, batch, 1].
        labels: For the noise on labels, [M, k, 2 * batch, 1].
    """

    noise: Tensor
    between: Tensor
    labels: Tensor

    def repeated(self, copies: int) -> Uniforms:
        """The same numbers for minibatches that hold each record this many times."""
        return Uniforms(
            self.noise.repeat_interleave(copies, 1),
            self.between.repeat_interleave(copies, 2),
            self.labels.repeat_interleave(copies, 2),
        )


class UniformSource:
    """Draws uniform numbers for M models.

    Args:
        seeds: One for each; None means the system's entropy.
        steps: Critic steps of an iteration, k.
        batch: Records of a minibatch.
        noise_width: Dimension of the generator's noise.
    """

    def __init__(
        self, seeds: Sequence[int | None], *, steps: int, batch: int, noise_width: int
    ) -> None:
        self._rngs = [rng_of(seed, "critic") for seed in seeds]
        self._shapes = (
            ((steps + 1) * batch, noise_width),
            (steps, batch, 1),
            (steps, 2 * batch, 1),
        )

    def draw(self) -> Uniforms:
        """Draws the numbers of the next iteration."""
        drawn = [
            [rng.random(shape, dtype=np.float32) for shape in self._shapes] for rng in self._rngs
        ]
        return Uniforms(*(torch.from_numpy(np.stack(part)) for part in zip(*drawn, strict=True)))


def flipped(law: Mechanism, scale: float) -> float:
    """Probability that a label of 0 or 1 is flipped by noise and a threshold at 1/2."""
    if scale == 0.0:
        return 0.0
    return float(ndtr(-0.5 / scale) if law is Mechanism.GAUSSIAN else np.exp(-0.5 / scale) / 2)


def noise_of(uniforms: npt.NDArray[np.float32], law: Mechanism, scale: float) -> FloatArray:
    """Turns uniform numbers in [0, 1) into noise (inverse transform).

    Args:
        uniforms: The numbers, multiples of 2**-24.
        law: Normal or Laplace.
        scale: Standard deviation of normal noise, scale of Laplace noise.
    """
    middles = uniforms.astype(np.float64) + 2.0**-25
    if law is Mechanism.GAUSSIAN:
        return np.asarray(scale * ndtri(middles))
    centred = middles - 0.5
    return np.asarray(-scale * np.sign(centred) * np.log1p(-2.0 * np.abs(centred)))


class Minibatches:
    """Random subsets of parts of each model's rows.

    Args:
        seeds: One for each; None means the system's entropy.
        parts: Row numbers of each part, of each model.
        batch: Records of a minibatch.
    """

    def __init__(
        self, seeds: Sequence[int | None], parts: Sequence[Sequence[IndexArray]], *, batch: int
    ) -> None:
        self._sources = [rng_of(seed, "minibatches").bit_generator for seed in seeds]
        self._parts = [[part if len(part) else np.array([-1]) for part in own] for own in parts]
        self._batch = batch

    def draw(self) -> npt.NDArray[np.int64]:
        """Draws each minibatch without replacement.

        Returns:
            Row numbers [M, parts, batch]. A part with fewer rows than a minibatch is taken whole,
            repeatedly in the same random order; an empty one gives -1.
        """
        return np.stack([self._drawn(*own) for own in zip(self._parts, self._sources, strict=True)])

    def _drawn(
        self, parts: Sequence[IndexArray], source: np.random.BitGenerator
    ) -> npt.NDArray[np.int64]:
        """Minibatches of one model [parts, batch]: sorting random words shuffles the rows."""
        longest = max(map(len, parts))
        words = source.random_raw(len(parts) * longest).reshape(len(parts), longest)
        words >>= np.uint64(longest.bit_length())
        orders = [
            own[: len(part)].argsort(kind="stable") for part, own in zip(parts, words, strict=True)
        ]
        return np.stack(
            [part[np.resize(order, self._batch)] for part, order in zip(parts, orders, strict=True)]
        )
