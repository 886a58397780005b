"""A Wasserstein critic with gradient penalty and its generator, stacked, gradients by hand.

The critic is D(x) = w . relu(W2 relu(W1 x)). With masks m1, m2 of what passes the rectifiers, its
gradient with respect to x is g = W1' s1, where s1 = m1 * (W2' (m2 * w)). It is linear in the
weights as long as no mask changes, so a penalty P(g) has the gradients s1 v' by W1, (m2 * w) t1' by
W2 and m2 * (W2 t1) by w, where v = dP/dg and t1 = m1 * (W1 v). Those of D itself have the same
form, with x and the inputs of the second layer in place of v and t1, so one product serves both.

Each model has random streams of its own.
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
from dpaudit.plugins.protocols import FloatArray
from dpaudit.seeds import rng_of
from dpaudit_generators.networks.model import Weights
from dpaudit_generators.networks.stack import NetworkStack, logistic
from dpaudit_generators.pate import IndexArray

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


class Passes(NamedTuple):
    """Memory for a pass over n rows.

    Attributes:
        first: What leaves the first layer, [M, n, padded(width)].
        second: What leaves the second layer.
        slopes: Gradients with respect to what leaves the first layer.
    """

    first: Tensor
    second: Tensor
    slopes: Tensor


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
        self._passes: dict[int, Passes] = {}

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

    def _memories(self, n: int) -> Passes:
        if n not in self._passes:
            weight1, weight2, _ = self._weights
            shapes = [(len(weight1), n, len(weight[0])) for weight in (weight1, weight2, weight1)]
            self._passes[n] = Passes(*map(torch.empty, shapes))
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
