"""Small stacked networks: k perceptrons of one shape, trained side by side.

A network is a list of tensors [W1, b1, W2, b2, ...] with W [k, inputs, outputs] and
b [k, 1, outputs]. Networks of a stack share no arithmetic: the result of one depends on its own
inputs and weights alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, TypeAlias

import torch
from torch import Tensor

from dpaudit.seeds import rng_of

Network: TypeAlias = list[Tensor]

_SLOPE: Final = 0.2
"""Slope of the leaky rectifier below 0."""


def torch_rng(seed: int | None, purpose: str) -> torch.Generator:
    """A torch generator for one purpose; `seed=None` means the system's entropy."""
    return torch.Generator().manual_seed(int(rng_of(seed, purpose).integers(2**63)))


def network(k: int, widths: Sequence[int], rng: torch.Generator, *, gain: float = 1.0) -> Network:
    """Draws k networks: Glorot-uniform weights, biases 0.

    Args:
        k: How many.
        widths: Of the layers, inputs first.
        rng: Draws the weights.
        gain: Factor on the weights of the last layer.

    Returns:
        Their weights, which require gradients.
    """
    weights: Network = []
    for inputs, outputs in pairwise(widths):
        limit = (6.0 / (inputs + outputs)) ** 0.5
        uniform = torch.rand(k, inputs, outputs, generator=rng)
        weights += [(2.0 * uniform - 1.0) * limit, torch.zeros(k, 1, outputs)]
    weights[-2] *= gain
    return [weight.requires_grad_() for weight in weights]


def forward(weights: Sequence[Tensor], rows: Tensor) -> Tensor:
    """Raw outputs [k, n, outputs] for rows [k, n, inputs]."""
    hidden = rows
    last = len(weights) - 2
    for layer in range(0, len(weights), 2):
        hidden = torch.baddbmm(weights[layer + 1], hidden, weights[layer])
        if layer < last:
            hidden = torch.nn.functional.leaky_relu(hidden, _SLOPE)
    return hidden


class Adam:
    """Adam (Kingma and Ba 2015, Algorithm 1) on a list of tensors.

    Elementwise, so stacked networks stay independent. `torch.optim` would import its compiler,
    which takes longer than a whole training here.

    Args:
        weights: Tensors to train, in place.
        rate: Learning rate.
    """

    _BETA1: Final = 0.5  # less momentum than usual: the opponent moves (Radford et al. 2016)
    _BETA2: Final = 0.999
    _SMALL: Final = 1e-8

    def __init__(self, weights: Network, *, rate: float) -> None:
        self._weights = weights
        self._rate = rate
        self._mean = [torch.zeros_like(weight) for weight in weights]
        self._square = [torch.zeros_like(weight) for weight in weights]
        self._steps = 0

    def step(self, loss: Tensor) -> None:
        """One step down the gradient of a scalar loss."""
        gradients = torch.autograd.grad(loss, self._weights)
        self._steps += 1
        rate = self._rate / (1.0 - self._BETA1**self._steps)
        unbias = (1.0 - self._BETA2**self._steps) ** -0.5
        with torch.no_grad():
            for weight, gradient, mean, square in zip(
                self._weights, gradients, self._mean, self._square, strict=True
            ):
                mean.lerp_(gradient, 1.0 - self._BETA1)
                square.mul_(self._BETA2).addcmul_(gradient, gradient, value=1.0 - self._BETA2)
                scale = square.sqrt().mul_(unbias).add_(self._SMALL)
                weight.addcdiv_(mean, scale, value=-rate)
