"""Perceptrons of one shape trained side by side by Adam, with gradients by hand.

Networks of a stack share no arithmetic: each is bit-identical to training alone, whatever else is
in the stack. A hidden layer passes its column of ones on by a weight that is 1 and stays 1.

This needs care (measured on torch 2.13): each slice starts at a multiple of 64 bytes, because
kernels treat their first and last elements separately; no product has a single column, because a
stack of one would then take another routine; no product has the stack as its rows.

So widths are padded to multiples of 16 floats. After the last input of a layer comes a column of
ones, whose weights are the biases; the columns after that are zero and stay zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import torch
from torch import Tensor

from dpaudit_generators.networks.model import SLOPE, Float32Array, Weights

_CPU: Final = torch.device("cpu")


def initial(
    k: int, widths: Sequence[int], rng: np.random.Generator, *, gain: float = 1.0
) -> Weights:
    """Draws k networks: Glorot-uniform weights, biases 0.

    Args:
        k: How many.
        widths: Widths of the layers, inputs first.
        rng: Draws the weights.
        gain: Factor on the weights of the last layer.

    Returns:
        Their weights, without padding.
    """
    weights: list[Float32Array] = []
    for inputs, outputs in pairwise(widths):
        limit = (6.0 / (inputs + outputs)) ** 0.5
        uniform = rng.random((k, inputs, outputs), dtype=np.float32)
        weights += [np.float32(limit) * (2 * uniform - 1), np.zeros((k, 1, outputs), np.float32)]
    weights[-2] *= np.float32(gain)
    return tuple(weights)


class NetworkStack:
    """Networks of one shape: hidden layers with leaky rectifiers and a linear last layer.

    Args:
        networks: The networks, k of each of M models; all of one shape.
        rate: Learning rate of Adam.
        betas: Its decay rates.
        room: Number of columns reserved for the outputs, if larger than their width.
        device: Where the networks are placed.
    """

    def __init__(
        self,
        networks: Sequence[Weights],
        *,
        rate: float,
        betas: Sequence[float],
        room: int = 0,
        device: torch.device = _CPU,
    ) -> None:
        first = networks[0]
        self._widths = [first[0].shape[1], *(bias.shape[2] for bias in first[1::2])]
        self._weights = []
        for layer, (inputs, outputs) in enumerate(pairwise(self._widths)):
            last = layer == len(self._widths) - 2
            columns = padded(max(outputs, room if last else 0))
            if last and outputs == 1:  # a critic's
                columns = 1
            weight = np.zeros(
                (len(networks), len(first[0]), columns, padded(inputs)), dtype=np.float32
            )
            for mine, plain in zip(weight[:, :, :outputs], networks, strict=True):
                mine[..., :inputs] = plain[2 * layer].swapaxes(1, 2)
                mine[..., inputs] = plain[2 * layer + 1][:, 0]
            if layer < len(self._widths) - 2:
                weight[:, :, outputs, inputs] = 1.0  # the ones of the next layer
            self._weights.append(torch.from_numpy(weight).flatten(0, 1).to(device))
        # Padding of what enters a layer is left out of the products that go up.
        self._upward = [
            weight[..., : inputs + 1].transpose(1, 2)
            for weight, inputs in zip(self._weights, self._widths, strict=False)
        ]
        self._kept: dict[tuple[int, int], Tensor] = {}
        self._adam = Adam(self._weights, rate=rate, betas=betas)

    def weights(self, models: Sequence[int] | None = None) -> list[Weights]:
        """The weights of each network without padding, if k = 1.

        Args:
            models: Which models; None means all.
        """
        packed = [weight.cpu().numpy() for weight in self._weights]
        chosen = range(len(packed[0])) if models is None else models
        return [
            tuple(
                part.T[None].copy()
                for weight, (inputs, outputs) in zip(packed, pairwise(self._widths), strict=True)
                for part in (
                    weight[model, :outputs, :inputs],
                    weight[model, :outputs, inputs : inputs + 1],
                )
            )
            for model in chosen
        ]

    def _memory(self, layer: int, n: int) -> Tensor:
        """Kept memory for what leaves a layer: fresh pages would cost as much as the product."""
        if (layer, n) not in self._kept:
            networks, outputs, _ = self._weights[layer].shape
            self._kept[layer, n] = self._weights[layer].new_empty(networks, n, outputs)
        return self._kept[layer, n]

    def _up(self, rows: Tensor) -> list[Tensor]:
        """What enters each layer, rows with their ones first.

        Args:
            rows: [groups, n, padded(inputs)]; the successive networks of a group see the same rows.
        """
        values = [rows]
        n = rows.shape[1]
        for layer, weight in enumerate(self._weights[:-1]):
            networks, width, inputs = weight.shape
            if values[-1].shape[0] == networks:
                entering = values[-1][..., : self._widths[layer] + 1]
                hidden = torch.bmm(entering, self._upward[layer], out=self._memory(layer, n))
            else:  # one product for all networks of a group, which share its rows without a copy
                groups = weight.view(rows.shape[0], -1, inputs)
                hidden = torch.bmm(groups, rows.transpose(1, 2)).view(-1, width, n).transpose(1, 2)
            values.append(torch.nn.functional.leaky_relu_(hidden, SLOPE))
        return values

    def _slopes(self, values: Sequence[Tensor], slope: Tensor) -> list[Tensor]:
        """Gradients with respect to what leaves each hidden layer, before its rectifiers.

        Args:
            values: What entered each layer.
            slope: The gradient with respect to what entered the last; is overwritten.
        """
        slopes: list[Tensor] = []
        for layer in reversed(range(1, len(values))):
            torch.ops.aten.leaky_relu_backward.grad_input(
                slope, values[layer], SLOPE, True, grad_input=slope
            )
            slopes.insert(0, slope)
            if layer > 1:
                slope = torch.bmm(slope, self._weights[layer - 1])
        return slopes

    def _by_hidden_weights(self, values: Sequence[Tensor], slope: Tensor) -> list[Tensor]:
        """Gradients with respect to the weights of the hidden layers; arguments as `_slopes`."""
        gradients = [
            _gradient(mine, entering).view(weight.shape)
            for mine, entering, weight in zip(
                self._slopes(values, slope), values, self._weights, strict=False
            )
        ]
        for gradient, width in zip(gradients, self._widths[1:], strict=False):
            gradient.select(1, width).zero_()  # ones stay ones
        return gradients


class Generators(NetworkStack):
    """Networks with many outputs."""

    def forward(self, rows: Tensor) -> tuple[list[Tensor], Tensor]:
        """What enters each layer, and the raw outputs.

        Args:
            rows: Inputs with their ones, [networks, n, padded(inputs)].

        Returns:
            Tensors [networks, n, padded(width)]; the outputs have no ones. The next call with as
            many rows overwrites them.
        """
        values, last = self._up(rows), len(self._weights) - 1
        entering = values[-1][..., : self._widths[last] + 1]
        raw = torch.bmm(entering, self._upward[-1], out=self._memory(last, rows.shape[1]))
        return values, raw

    def descend(self, values: Sequence[Tensor], slope: Tensor) -> None:
        """Takes one step of Adam.

        Args:
            values: What entered each layer, for the rows that count.
            slope: The loss's gradient with respect to their raw outputs, 0 in padding columns.
        """
        last = _gradient(slope, values[-1])
        entering = torch.bmm(slope, self._weights[-1])
        self._adam.step([*self._by_hidden_weights(values, entering), last])


class Critics(NetworkStack):
    """Networks with one output, a logit.

    The last layer is one row of weights, because as a matrix it would be mostly padding. Critics
    without hidden layers that see the same rows take them in one product.
    """

    def forward(self, rows: Tensor) -> tuple[list[Tensor], Tensor]:
        """What enters each layer, and the logits.

        Args:
            rows: Inputs with their ones, [groups, n, padded(inputs)]; the successive networks of a
                group see the same rows.

        Returns:
            Tensors of all networks, or of all groups if there is no hidden layer, which the next
            call with as many rows may overwrite; logits [networks, n].
        """
        values, last = self._up(rows), self._weights[-1]
        shared = last.view(values[-1].shape[0], -1, last.shape[2])
        return values, torch.bmm(shared, values[-1].transpose(1, 2)).flatten(0, 1)

    def gradients(self, values: Sequence[Tensor], slope: Tensor) -> list[Tensor]:
        """Gradients of a loss with respect to the weights.

        Args:
            values: What entered each layer.
            slope: The gradient with respect to the logits [networks, n].
        """
        last = self._weights[-1]
        shared = slope.view(values[-1].shape[0], -1, slope.shape[1])
        own = torch.bmm(shared, values[-1]).view(last.shape)
        if len(values) == 1:
            return [own]
        return [*self._by_hidden_weights(values, self._entering(values, slope)), own]

    def _entering(self, values: Sequence[Tensor], slope: Tensor) -> Tensor:
        """The gradient with respect to what entered the last layer."""
        # Memory in the order of the values, because the next step reads both.
        entering = torch.empty_like(values[-1])
        return torch.mul(slope[:, :, None], self._weights[-1], out=entering)

    def back(self, values: Sequence[Tensor], slope: Tensor) -> Tensor:
        """The gradient with respect to the rows, each of which one network sees."""
        entering = self._entering(values, slope)
        slopes = self._slopes(values, entering)
        return torch.bmm(slopes[0], self._weights[0]) if slopes else entering

    def step(self, gradients: Sequence[Tensor]) -> None:
        """Takes one step of Adam."""
        self._adam.step(gradients)


def _gradient(slope: Tensor, entering: Tensor) -> Tensor:
    """The gradient with respect to a layer's weights.

    Args:
        slope: The gradient with respect to what leaves the layer, [networks, n, outputs].
        entering: What entered it, [groups, n, inputs].

    Returns:
        The gradient [groups, networks of a group * outputs, inputs].
    """
    groups = slope.transpose(1, 2)
    if groups.shape[0] != entering.shape[0]:
        groups = groups.reshape(entering.shape[0], -1, slope.shape[1])
    return torch.bmm(groups, entering)


_SMALL: Final = 1e-8


class Adam:
    """Adam (Kingma and Ba 2015, Algorithm 1) on stacked buffers, elementwise.

    Padding has no gradient and stays 0.

    Args:
        weights: Tensors to train, in place.
        rate: Learning rate.
        betas: Decay rates of the two moments.
    """

    def __init__(self, weights: Sequence[Tensor], *, rate: float, betas: Sequence[float]) -> None:
        self._weights = list(weights)
        self._means = [torch.zeros_like(weight) for weight in weights]
        self._squares = [torch.zeros_like(weight) for weight in weights]
        self._steps = [torch.tensor(0.0, device=self._weights[0].device)] * len(self._weights)
        self._rate, self._betas = rate, betas

    def step(self, gradients: Sequence[Tensor]) -> None:
        """Takes one step down the gradients."""
        self._steps[0].add_(1.0)
        # What `torch.optim.Adam(fused=True)` runs, in one pass over the memory. The class itself
        # would import torch's compiler, which takes longer than many trainings.
        torch._fused_adam_(
            *(self._weights, list(gradients), self._means, self._squares, [], self._steps),
            lr=self._rate,
            beta1=self._betas[0],
            beta2=self._betas[1],
            weight_decay=0.0,
            eps=_SMALL,
            amsgrad=False,
            maximize=False,
        )


LANES: Final = 16
PAIR: Final = 2 * LANES
"""Floats in two vectors: an elementwise kernel has nothing left over from a multiple of these."""


def padded(width: int) -> int:
    """Width of a matrix of this many columns, a column of ones, and padding."""
    return -(-(width + 1) // LANES) * LANES


def in_whole_vectors(function: Callable[[Tensor], Tensor], values: Tensor) -> Tensor:
    """An elementwise function of values [M, ...], bit-identical to computing each of M alone.

    Torch takes two vectors at a time and the rest by another routine, which may differ in the last
    bit. So values are padded until there is no rest.

    Args:
        function: The function; it may work in place.
        values: Its arguments.
    """
    size = values.numel() // values.shape[0]
    if size % PAIR == 0:
        return function(values)
    flat = torch.nn.functional.pad(values.reshape(len(values), size), (0, -size % PAIR))
    return function(flat)[:, :size].reshape(values.shape)


def logistic(values: Tensor) -> Tensor:
    """The logistic function of values [M, ...], in place where nothing needs padding.

    Each of M is bit-identical to computing it alone.
    """
    return in_whole_vectors(torch.sigmoid_, values)


def with_ones(*parts: Tensor) -> Tensor:
    """Columns [..., width] side by side, then ones and padding: [..., padded(width)]."""
    width = sum(part.shape[-1] for part in parts)
    rows = parts[0].new_zeros(*parts[0].shape[:-1], padded(width))
    start = 0
    for part in parts:
        rows[..., start : start + part.shape[-1]] = part
        start += part.shape[-1]
    rows[..., width] = 1.0
    return rows
