"""Training without PATE: one critic reads real records, its labels flipped at random.

Two of the published PATE-GANs ("original" and "turing" in Ganev, Annamalai and De Cristofaro 2025)
have no teachers' votes, no student and no accountant. In each iteration a Wasserstein critic with
gradient penalty (Gulrajani et al. 2017) takes k steps on real and generated records; noise is added
to their labels, 1 and 0, and thresholded at 1/2. Then the generator takes one.

Both are stacked, their gradients by hand. The critic is D(x) = w . relu(W2 relu(W1 x)). With masks
m1, m2 of what passes the rectifiers, its gradient with respect to x is g = W1' s1, where
s1 = m1 * (W2' (m2 * w)). It is linear in the weights as long as no mask changes, so a penalty P(g)
has the gradients s1 v' by W1, (m2 * w) t1' by W2 and m2 * (W2 t1) by w, where v = dP/dg and
t1 = m1 * (W1 v). Those of D itself have the same form, with x and the inputs of the second layer in
place of v and t1, so one product serves both.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
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
from dpaudit_generators.networks.model import Weights
from dpaudit_generators.networks.stack import NetworkStack, logistic, padded, with_ones
from dpaudit_generators.pate import IndexArray
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


_SATURATED: Final = 200.0
"""Its tanh and logistic function are 1 in float32, those of its negative -1 and 0."""
_SMALL: Final = 1e-8
"""Added to the square of each entry of a gradient before its length is taken."""


def tanh(values: Tensor) -> Tensor:
    """The hyperbolic tangent of values [M, ...], in place where nothing needs padding.

    Each of M is bit-identical to computing it alone. Torch's own takes seven times as long.
    """
    return logistic(values.mul_(2.0)).mul_(2.0).sub_(1.0)


class TanhGenerators(NetworkStack):
    """Generators with tanh in the hidden layers and logistic outputs.

    Constants in the last layer make the column of ones and the padding of the outputs, so that a
    critic can read them as they are.
    """

    def __init__(
        self, networks: Sequence[Weights], *, rate: float, betas: Sequence[float], ones: int
    ) -> None:
        """Packs the networks.

        Args:
            networks: One of each of M models.
            rate: Learning rate of Adam.
            betas: Its decay rates.
            ones: Column of ones among the outputs.
        """
        super().__init__(networks, rate=rate, betas=betas, room=ones)
        for weight, (inputs, outputs) in zip(self._weights, pairwise(self._widths), strict=True):
            weight[:, outputs, inputs] = _SATURATED
        inputs, outputs = self._widths[-2:]
        self._weights[-1][:, outputs:, inputs] = -_SATURATED
        self._weights[-1][:, ones, inputs] = _SATURATED

    def forward(self, rows: Tensor) -> tuple[list[Tensor], Tensor]:
        """What enters each layer, and the raw outputs.

        Args:
            rows: Inputs with their ones, [M, n, padded(inputs)].

        Returns:
            Tensors [M, n, padded(width)]; the next call with as many rows overwrites them.
        """
        values = [rows]
        for layer, weights in enumerate(self._upward):
            entering = values[-1][..., : self._widths[layer] + 1]
            values.append(torch.bmm(entering, weights, out=self._memory(layer, rows.shape[1])))
            if layer < len(self._upward) - 1:
                values[-1] = tanh(values[-1])
        return values[:-1], values[-1]

    def descend(self, values: Sequence[Tensor], outputs: Tensor, slope: Tensor) -> None:
        """Takes one step of Adam.

        Args:
            values: What entered each layer, for the rows that count.
            outputs: The outputs, after the logistic function.
            slope: The loss's gradient with respect to the outputs, [M, n, padded(width)]; is
                overwritten.
        """
        gradients: list[Tensor] = []
        torch.ops.aten.sigmoid_backward.grad_input(slope, outputs, grad_input=slope)
        for layer in reversed(range(len(self._weights))):
            gradients.insert(0, torch.bmm(slope.transpose(1, 2), values[layer]))
            if layer > 0:
                slope = torch.bmm(slope, self._weights[layer])
                torch.ops.aten.tanh_backward.grad_input(slope, values[layer], grad_input=slope)
        self._adam.step(gradients)


class WassersteinCritics(NetworkStack):
    """Critics with two hidden layers of rectifiers and one linear output.

    Args:
        networks: One of each of M models.
        rate: Learning rate of Adam.
        betas: Its decay rates.
        width: Columns of records; conditions follow them.
        penalty: Weight of the gradient penalty (Gulrajani et al. 2017, equation 3).
    """

    def __init__(
        self,
        networks: Sequence[Weights],
        *,
        rate: float,
        betas: Sequence[float],
        width: int,
        penalty: float,
    ) -> None:
        super().__init__(networks, rate=rate, betas=betas)
        self._records = torch.zeros(self._weights[0].shape[2])
        self._records[:width] = 1.0
        self._width, self._penalty = width, penalty
        self._passes: dict[int, tuple[Tensor, Tensor, Tensor]] = {}

    def train(self, rows: Tensor, slopes: Tensor, between: Tensor) -> None:
        """Takes one step of Adam, for a loss that is linear in the outputs and the penalty.

        Args:
            rows: Real and generated records, conditions and ones, [M, 2n, padded(inputs)].
            slopes: The loss's gradient with respect to the outputs, [M, 2n, 1].
            between: The points between a generated record (0) and a real one (1) at which the
                length of the critic's gradient should be 1, [M, n, 1].
        """
        both = rows.shape[1]
        n = both // 2
        first, second, back = self._memories(both + n)
        weight1, weight2, last = self._weights
        up1, up2, _ = self._upward

        torch.bmm(rows[..., : up1.shape[1]], up1, out=first[:, :both])
        torch.lerp(first[:, n:both], first[:, :n], between, out=first[:, both:])
        first.relu_()
        torch.bmm(first[..., : up2.shape[1]], up2, out=second).gt_(0.0)
        second[:, :both].mul_(slopes)
        self._down(first, second, back)

        by_records = weight1 * self._records
        inner = torch.bmm(by_records, by_records.transpose(1, 2))
        penalised = back[:, both:]
        product = torch.bmm(penalised, inner)
        length = (product * penalised).sum(dim=2, keepdim=True).add_(self._width * _SMALL).sqrt_()
        pull = length.reciprocal_().neg_().add_(1.0).mul_(2.0 * self._penalty / n)
        entered = first[:, both:]
        torch.ops.aten.threshold_backward.grad_input(
            product.mul_(pull), entered, 0.0, grad_input=entered
        )

        common = torch.bmm(second.transpose(1, 2), first)
        gradient1 = torch.bmm(back[:, :both].transpose(1, 2), rows)
        torch.mul(penalised, pull, out=product)
        gradient1.baddbmm_(torch.bmm(penalised.transpose(1, 2), product), by_records)
        gradient3 = (weight2 * common).sum(dim=2)[:, None]
        gradient2 = common.mul_(last.transpose(1, 2))
        for gradient, width in zip((gradient1, gradient2), self._widths[1:], strict=False):
            gradient.select(1, width).zero_()  # ones stay ones
        self._adam.step([gradient1, gradient2, gradient3])

    def slope(self, rows: Tensor) -> Tensor:
        """Gradient of the outputs' sum with respect to records, 0 in other columns.

        Args:
            rows: As `train` takes them, [M, n, padded(inputs)].
        """
        first, second, back = self._memories(rows.shape[1])
        up1, up2, _ = self._upward
        torch.bmm(rows[..., : up1.shape[1]], up1, out=first).relu_()
        torch.bmm(first[..., : up2.shape[1]], up2, out=second).gt_(0.0)
        self._down(first, second, back)
        return torch.bmm(back, self._weights[0] * self._records)

    def _down(self, first: Tensor, second: Tensor, back: Tensor) -> None:
        """Gradients with respect to what leaves the first layer, before its rectifiers.

        Args:
            first: What left it.
            second: What passes the rectifiers of the second layer, each row times its slope.
            back: Takes the gradients.
        """
        down = self._weights[1] * self._weights[2].transpose(1, 2)
        torch.bmm(second, down, out=back)
        torch.ops.aten.threshold_backward.grad_input(back, first, 0.0, grad_input=back)

    def _memories(self, n: int) -> tuple[Tensor, Tensor, Tensor]:
        """Memory for n rows: what leaves the first and the second layer, and the first's gradients.

        All are [M, n, padded(width)].
        """
        if n not in self._passes:
            first, second = self._memory(0, n), self._memory(1, n)
            self._passes[n] = first, second, torch.empty_like(first)
        return self._passes[n]


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
        shapes = (
            ((steps + 1) * batch, noise_width),
            (steps, batch, 1),
            (steps, 2 * batch, 1),
        )
        sizes = [int(np.prod(shape)) for shape in shapes]
        self._numbers = np.empty((len(seeds), sum(sizes)), dtype=np.float32)
        parts = torch.split(torch.from_numpy(self._numbers), sizes, dim=1)
        self._uniforms = Uniforms(
            *(part.view(len(seeds), *shape) for part, shape in zip(parts, shapes, strict=True))
        )

    def draw(self) -> Uniforms:
        """Draws the numbers of the next iteration, which overwrite the last ones."""
        for rng, numbers in zip(self._rngs, self._numbers, strict=True):
            rng.random(out=numbers, dtype=np.float32)
        return self._uniforms


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
        filled = [[part if len(part) else np.array([-1]) for part in mine] for mine in parts]
        sizes = np.array([[len(part) for part in mine] for mine in filled])
        self._longest = sizes.max(axis=1)
        self._words = np.zeros((*sizes.shape, sizes.max()), dtype=np.uint64)
        self._rows = np.zeros(self._words.shape, dtype=np.int64)
        for model, own in enumerate(filled):
            for place, part in enumerate(own):
                self._rows[model, place, : len(part)] = part
        # Random words with the places of rows in their lowest bits: sorting them shuffles the rows.
        lowest = [(1 << int(longest).bit_length()) - 1 for longest in self._longest]
        self._lowest = np.array(lowest, dtype=np.uint64)[:, None, None]
        places = np.arange(sizes.max(), dtype=np.uint64)
        self._ending = np.where(places < sizes[..., None], places, np.uint64(2**64 - 1))
        self._first = np.arange(sizes.size).reshape(*sizes.shape, 1) * sizes.max()
        self._batch = batch
        self._repeated = None if batch <= sizes.min() else np.arange(batch) % sizes[..., None]

    def draw(self) -> npt.NDArray[np.int64]:
        """Draws each minibatch without replacement.

        Returns:
            Row numbers [M, parts, batch]. A part with fewer rows than a minibatch is taken whole,
            repeatedly in the same random order; an empty one gives -1.
        """
        for words, source, longest in zip(self._words, self._sources, self._longest, strict=True):
            own = words[:, :longest]
            own[:] = source.random_raw(own.size).reshape(own.shape)
        self._words &= ~self._lowest
        self._words |= self._ending
        self._words.sort(axis=2)
        if self._repeated is None:
            drawn = self._words[..., : self._batch]
        else:
            drawn = np.take_along_axis(self._words, self._repeated, axis=2)
        return np.asarray(self._rows.take((drawn & self._lowest).view(np.int64) + self._first))
