"""Perceptrons of one shape, trained side by side, with every kind of layer of published PATE-GANs.

Each network of a stack is bit-identical to training alone: widths are padded, ones stand behind the
last input of a layer (`networks.stack` says why), and a mask restores the ones and zeros of a
layer's padding. Only losses are summed over a stack: each network's gradient is that of its own.

Their first weights, and the records that generator networks make, are here too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dpaudit.seeds import rng_of
from dpaudit_generators.networks.model import SLOPE, Float32Array, Weights
from dpaudit_generators.networks.source import Streams
from dpaudit_generators.networks.stack import Adam, in_whole_vectors, padded, with_ones
from dpaudit_generators.published.recipes import (
    Activation,
    Architecture,
    Inputs,
    Layer,
    Optimiser,
    Recipe,
    Shortcut,
    Span,
    Start,
)
from dpaudit_generators.published.trainee import Form

_LEAST: Final = 1e-5  # added to the variance of a layer
_SMALL: Final = 1e-10  # added to the mean square of RMSprop, as in TensorFlow
_SLIGHT: Final = 0.01  # slope of the other leaky rectifier below 0
_SLACK: Final = 1e-6  # added to the norm of a gradient before it is divided by, as in PyTorch
_TINY: Final = 1e-12  # added to the square of a length, whose root has no slope at 0

Dropout: TypeAlias = Callable[[int, int], Tensor]
"""Factors of the inputs of a layer, with their ones, for a number of rows and of columns."""


class Networks:
    """Perceptrons of one shape.

    Args:
        weights: The networks of M models, k of each.
        architecture: Their layers; the widths follow from the weights.
        recipe: How they are trained; None if they are not.
        clip: Largest weight after a step; 0 for no limit.
        norm: Largest norm of a step's gradient; larger ones are shrunk to it. 0 for no limit.
    """

    def __init__(
        self,
        weights: Sequence[Weights],
        architecture: Architecture,
        recipe: Recipe | None = None,
        *,
        clip: float = 0.0,
        norm: float = 0.0,
    ) -> None:
        first = weights[0]
        self._shape = architecture
        self._layers = [Layer(weight.shape[1], weight.shape[2]) for weight in first[::2]]
        self.parameters = [
            _packed([one[2 * layer : 2 * layer + 2] for one in weights])
            for layer in range(len(first) // 2)
        ]
        self._inputs = _mask(self._layers[0].inputs)
        self._masks = [_mask(layer.outputs) for layer in self._layers]
        self._ones = [_ones(layer.outputs) for layer in self._layers]
        self._clip, self._norm = clip, norm
        if recipe is not None:
            for parameter in self.parameters:
                parameter.requires_grad_()
            self._step = _stepper(self.parameters, recipe)

    def __call__(self, rows: Tensor, *, dropout: Dropout | None = None) -> Tensor:
        """Outputs of each network before its last activation, followed by zeros.

        Args:
            rows: Inputs with their ones [networks, n, padded(inputs)].
            dropout: Draws the factors of dropout, if the architecture has any.

        Returns:
            [networks, n, padded(outputs)].
        """
        values, sums, last = rows, rows, len(self.parameters) - 1
        for layer, parameter in enumerate(self.parameters):
            if layer:
                values = self._left(layer - 1, sums, values)
            if dropout is not None and self._shape.dropout and 0 < layer < last:
                values = values * dropout(values.shape[1], self._layers[layer].inputs)
            sums = torch.bmm(values, parameter)
            if self._shape.normalised:
                sums = _normalised(sums, self._masks[layer], self._layers[layer].outputs)
        return sums

    def _left(self, layer: int, sums: Tensor, entered: Tensor) -> Tensor:
        """What leaves a hidden layer, with its ones."""
        inputs, outputs = self._layers[layer]
        out = activated(sums, self._shape.activation)
        match self._shape.shortcut:
            case Shortcut.APPENDED:
                both = torch.cat([out[..., :outputs], entered[..., : inputs + 1]], dim=-1)
                return torch.nn.functional.pad(both, (0, padded(inputs + outputs) - both.shape[-1]))
            case Shortcut.ADDED if inputs == outputs:
                out = out + entered
        return torch.addcmul(self._ones[layer], out, self._masks[layer])

    def steepness(self, rows: Tensor, *, dropout: Dropout | None = None) -> Tensor:
        """Length of the gradient of each row's first output with respect to its inputs.

        Args:
            rows: Inputs with their ones [networks, n, padded(inputs)].
            dropout: As in a call.

        Returns:
            [networks, n, 1], from which a step may descend.
        """
        slopes = self.slopes(rows, dropout=dropout) * self._inputs
        return ((slopes * slopes).sum(dim=-1, keepdim=True) + _TINY).sqrt()

    def slopes(self, rows: Tensor, *, dropout: Dropout | None = None) -> Tensor:
        """Gradient of each row's first output with respect to its inputs and their ones.

        The arguments are those of `steepness`, as is what a step may do with the result.
        """
        rows = rows.detach().requires_grad_()
        (slopes,) = torch.autograd.grad(
            self(rows, dropout=dropout)[..., 0].sum(), rows, create_graph=True
        )
        return slopes

    def descend(self, ends: Sequence[Tensor], slopes: Sequence[Tensor] | None = None) -> None:
        """Takes one step of the optimiser.

        Args:
            ends: Outputs of a call, or tensors computed from them.
            slopes: The loss's gradient with respect to each of these; None if they are losses.
        """
        gradients = torch.autograd.grad(ends, self.parameters, slopes)
        with torch.no_grad():
            if self._norm:
                gradients = _shrunk(gradients, self._norm)
            self._step(gradients)
            if self._clip:
                for parameter in self.parameters:
                    parameter.clamp_(-self._clip, self._clip)

    def weights(self, models: Sequence[int]) -> list[Weights]:
        """The weights of some networks without padding, each alone."""
        packed = [parameter.detach().numpy() for parameter in self.parameters]
        return [
            tuple(
                part[None].copy()
                for weight, (inputs, outputs) in zip(packed, self._layers, strict=True)
                for part in (
                    weight[model, :inputs, :outputs],
                    weight[model, inputs : inputs + 1, :outputs],
                )
            )
            for model in models
        ]


def activated(sums: Tensor, activation: Activation) -> Tensor:
    """Applies an activation to sums [networks, ...], bit-identically to each network alone."""
    match activation:
        case Activation.LINEAR:
            return sums
        case Activation.RELU:
            return torch.relu(sums)
        case Activation.LEAKY:
            return torch.nn.functional.leaky_relu(sums, SLOPE)
        case Activation.HARDLY_LEAKY:
            return torch.nn.functional.leaky_relu(sums, _SLIGHT)
        case Activation.TANH:
            return in_whole_vectors(torch.tanh, sums.contiguous())
        case Activation.SIGMOID:
            return in_whole_vectors(torch.sigmoid, sums.contiguous())


def _normalised(sums: Tensor, mask: Tensor, width: int) -> Tensor:
    """Scales sums to mean 0 and variance 1 over the layer of each record; padding is 0."""
    centred = (sums - sums.sum(dim=-1, keepdim=True) / width) * mask
    variance = (centred * centred).sum(dim=-1, keepdim=True) / width
    return centred / (variance + _LEAST).sqrt()


def _shrunk(gradients: Sequence[Tensor], norm: float) -> tuple[Tensor, ...]:
    """Gradients of each network [networks, ...], shrunk to a norm if larger."""
    # One sum per network, because torch might split the sum over a stack of one differently.
    squares = [[np.square(mine).sum() for mine in part.numpy()] for part in gradients]
    lengths = np.sqrt(np.sum(squares, axis=0))
    factors = torch.from_numpy(np.minimum(1.0, norm / (lengths + _SLACK)).astype(np.float32))
    return tuple(part * factors[:, None, None] for part in gradients)


def _packed(layers: Sequence[Sequence[Float32Array]]) -> Tensor:
    """One layer of all networks, biases behind the weights: [networks, padded, padded]."""
    (k, inputs, outputs) = layers[0][0].shape
    packed = np.zeros((len(layers), k, padded(inputs), padded(outputs)), dtype=np.float32)
    for mine, (weight, bias) in zip(packed, layers, strict=True):
        mine[:, :inputs, :outputs] = weight
        mine[:, inputs, :outputs] = bias[:, 0]
    return torch.from_numpy(packed).flatten(0, 1)


def _mask(width: int) -> Tensor:
    mask = torch.zeros(padded(width))
    mask[:width] = 1.0
    return mask


def _ones(width: int) -> Tensor:
    ones = torch.zeros(padded(width))
    ones[width] = 1.0
    return ones


def _stepper(parameters: Sequence[Tensor], recipe: Recipe) -> Callable[[Sequence[Tensor]], None]:
    """The optimiser that moves parameters down their gradients, elementwise."""
    if recipe.optimiser is Optimiser.RMSPROP:
        return _RmsProp(parameters, rate=recipe.rate, decay=recipe.betas[1])
    adam = Adam(parameters, rate=recipe.rate, betas=recipe.betas)
    if not recipe.decay:
        return adam.step
    return lambda gradients: adam.step(
        [
            gradient.add(parameter, alpha=recipe.decay)
            for gradient, parameter in zip(gradients, parameters, strict=True)
        ]
    )


class _RmsProp:
    """RMSprop (Tieleman and Hinton 2012): gradients divided by a running root mean square."""

    def __init__(self, parameters: Sequence[Tensor], *, rate: float, decay: float) -> None:
        self._parameters = parameters
        self._squares = [torch.ones_like(parameter) for parameter in parameters]
        self._rate, self._decay = rate, decay

    def __call__(self, gradients: Sequence[Tensor]) -> None:
        for parameter, square, gradient in zip(
            self._parameters, self._squares, gradients, strict=True
        ):
            square.mul_(self._decay).addcmul_(gradient, gradient, value=1.0 - self._decay)
            parameter.addcdiv_(gradient, (square + _SMALL).sqrt(), value=-self._rate)


_BIAS: Final = np.float32(0.01)


def drawn(
    start: Start, layers: Sequence[Layer], rng: np.random.Generator, *, k: int = 1
) -> Weights:
    """Draws k networks.

    Args:
        start: The distribution of their weights.
        layers: Their layers.
        rng: Draws the weights.
        k: Number of networks.

    Returns:
        Their weights, without padding.
    """
    weights: list[Float32Array] = []
    for inputs, outputs in layers:
        shape = (k, inputs, outputs)
        bias = np.zeros((k, 1, outputs), np.float32)
        if start is Start.HE:
            normal = rng.standard_normal(shape, dtype=np.float32)
            weight = normal * np.float32((2.0 / inputs) ** 0.5)
        elif start is Start.BY_INPUTS:
            weight = _uniform(shape, rng, limit=inputs**-0.5)
            bias = _uniform(bias.shape, rng, limit=inputs**-0.5)
        else:
            weight = _uniform(shape, rng, limit=(6.0 / (inputs + outputs)) ** 0.5)
            if start is Start.GLOROT_BIASED:
                bias += _BIAS
        weights += [weight, bias]
    return tuple(weights)


def _uniform(
    shape: tuple[int, int, int], rng: np.random.Generator, *, limit: float
) -> Float32Array:
    uniform: Float32Array = rng.random(shape, dtype=np.float32)
    return np.float32(limit) * (2 * uniform - 1)


_CPU: Final = torch.device("cpu")
_LARGEST: Final = 30.0  # logit of a category; beyond it, no other category is ever drawn
_LARGEST_NOISY: Final = 80.0  # logit with Gumbel noise, over the temperature: floats end at 88


class Feed:
    """Draws the inputs of the generators of M models, from one stream each.

    Args:
        seeds: One for each model; None means the system's entropy.
        purpose: The purpose of the draws.
        form: The form of the records.
        recipe: Fixes the generator's number of inputs, and the span of labels.
        inputs: The distribution of these numbers.
    """

    def __init__(
        self,
        seeds: Sequence[int | None],
        purpose: str,
        *,
        form: Form,
        recipe: Recipe,
        inputs: Inputs,
    ) -> None:
        self._streams = Streams(seeds, purpose, device=_CPU)
        self._choices = [rng_of(seed, f"{purpose}: conditions") for seed in seeds]
        self._form, self._width, self._inputs = form, recipe.noise_width, inputs
        self._temperature = recipe.temperature
        self._lowest = -1.0 if recipe.span is Span.SYMMETRIC else 0.0

    def noise(self, n: int) -> Tensor:
        """Draws random numbers for n records of each model, float32 [M, n, noise width]."""
        if self._inputs is Inputs.NORMAL:
            return self._streams.normal(n, self._width).clone()
        noise = self._streams.uniform(n, self._width).float()
        return noise if self._inputs is Inputs.UNIT else 2.0 * noise - 1.0

    def gumbel(self, n: int) -> Tensor | None:
        """Draws Gumbel noise [M, n, padded(made)]; None if no categories are drawn."""
        if not self._temperature or not self._form.groups:
            return None
        return self._streams.gumbel(n, padded(self._form.made))

    def labels(self, n: int) -> Tensor:
        """Draws labels [M, n, given], independent of data: one-hot, or the ends of the span."""
        drawn = self._streams.uniform(n, 1)
        if self._form.given > 1:
            places = (drawn * self._form.given).long()
            return (places == torch.arange(self._form.given)).float()
        return torch.where(drawn < 0.5, self._lowest, 1.0).float()[..., : self._form.given]

    def conditions(
        self, rows: Sequence[npt.NDArray[np.float32]], n: int
    ) -> tuple[Tensor, list[npt.NDArray[np.int64]]]:
        """Draws conditions from records of each model.

        Args:
            rows: For each model, the rows that they are taken from [n, hints].
            n: Number of conditions.

        Returns:
            The conditions [M, n, hints], and for each model the numbers of their rows [n].
        """
        kinds = self._form.conditions
        start = np.cumsum([0, *(kind.stop - kind.start for kind in kinds)])
        owner = np.repeat(np.arange(len(kinds)), np.diff(start))
        hints = np.zeros((len(rows), n, self._form.hints), dtype=np.float32)
        chosen = []
        for mine, found, rng in zip(hints, rows, self._choices, strict=True):
            chosen.append(rng.integers(len(found), size=n))
            about = rng.integers(len(kinds), size=n)
            mine[:] = np.where(owner == about[:, None], found[chosen[-1]], 0.0)
        return torch.from_numpy(hints), chosen


class PublishedRecordSource:
    """The generator networks of M models, and the functions that turn their outputs into records.

    Args:
        networks: One network per model.
        form: The form of the records.
        recipe: How the generator networks make records.
    """

    def __init__(self, networks: Networks, form: Form, recipe: Recipe) -> None:
        self.networks, self._form = networks, form
        self._output, self._temperature = recipe.generator.output, recipe.temperature
        size = padded(form.made)
        self._numeric = torch.zeros(size)
        self._numeric[: form.made] = 1.0
        self._same_group = torch.zeros(size, size)
        for group in form.groups:
            self._numeric[group] = 0.0
            self._same_group[group, group] = 1.0
        self._grouped = self._same_group.diagonal().clone()
        self._tail = with_ones(torch.zeros(form.width))[form.width :]

    def __call__(
        self, noise: Tensor, given: Tensor, hints: Tensor, gumbel: Tensor | None = None
    ) -> Tensor:
        """Makes records.

        Args:
            noise: Random numbers [M, n, noise width].
            given: Labels that the records must have, [M, n, given].
            hints: Conditions [M, n, hints].
            gumbel: Gumbel noise that draws categories; None for no noise.

        Returns:
            Records with their ones, [M, n, padded(width)].
        """
        sums = self.networks(with_ones(noise, given, hints))
        columns = activated(sums, self._output) * self._numeric
        if self._form.groups:
            columns = columns + self._shares(sums, gumbel)
        tail = self._tail.expand(*columns.shape[:-1], -1)
        return torch.cat([columns[..., : self._form.made], given, tail], dim=-1)

    def _shares(self, sums: Tensor, gumbel: Tensor | None) -> Tensor:
        """The softmax of each group, 0 elsewhere, with one product for all sums over groups."""
        largest = _LARGEST
        if gumbel is not None:
            sums, largest = (sums + gumbel) / self._temperature, _LARGEST_NOISY
        weights = in_whole_vectors(torch.exp, sums.clamp(-largest, largest)) * self._grouped
        totals = torch.bmm(weights, self._same_group.expand(len(sums), -1, -1))
        return weights / (totals + (1.0 - self._grouped))
