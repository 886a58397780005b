"""Perceptrons with SELU (Klambauer et al. 2017), trained side by side by automatic gradients.

Networks of a stack share no arithmetic: each is bit-identical to training alone. For this every
layer is padded to whole vectors (`dpaudit_generators.networks.slices` explains why); padding has no
weights, so it is 0 after a layer and gets no gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from dpaudit_generators.networks.adam import Adam
from dpaudit_generators.networks.perceptron import Weights
from dpaudit_generators.networks.slices import PAIR, padded


class SeluStack:
    """Networks of one shape: hidden layers with SELU and a linear last layer.

    Args:
        networks: One network of each of M models, as `networks.stack.initial` draws them.
        rate: Learning rate of Adam.
        betas: Its decay rates.
    """

    def __init__(self, networks: Sequence[Weights], *, rate: float, betas: Sequence[float]) -> None:
        first = networks[0]
        self._widths = [first[0].shape[1], *(bias.shape[2] for bias in first[1::2])]
        # Records bring a column of ones, whose weights are the first layer's biases.
        entering = padded(self._widths[0])
        self._parts: list[Tensor] = []
        for layer, (inputs, outputs) in enumerate(pairwise(self._widths)):
            leaving = -(-outputs // PAIR) * PAIR
            weight = np.zeros((len(networks), entering, leaving), dtype=np.float32)
            bias = np.zeros((len(networks), 1, leaving), dtype=np.float32)
            for own, shift, network in zip(weight, bias, networks, strict=True):
                own[:inputs, :outputs] = network[2 * layer][0]
                shift[:, :outputs] = network[2 * layer + 1][0]
            if layer == 0:
                weight[:, inputs] = bias[:, 0]
                self._parts.append(torch.from_numpy(weight))
            else:
                self._parts += [torch.from_numpy(weight), torch.from_numpy(bias)]
            entering = leaving
        for part in self._parts:
            part.requires_grad_()
        self._adam = Adam(self._parts, rate=rate, betas=betas)

    @property
    def outputs(self) -> int:
        """Width of the last layer."""
        return int(self._widths[-1])

    def hidden(self, rows: Tensor) -> Tensor:
        """The last hidden layer, with padding.

        Args:
            rows: Inputs with their ones [M, n, padded(inputs)].
        """
        values = torch.nn.functional.selu(torch.bmm(rows, self._parts[0]))
        for weight, bias in zip(self._parts[1:-2:2], self._parts[2:-2:2], strict=True):
            values = torch.nn.functional.selu(torch.bmm(values, weight) + bias)
        return values

    def last(self, values: Tensor) -> Tensor:
        """The outputs [M, n, outputs], of what leaves the last hidden layer."""
        return (torch.bmm(values, self._parts[-2]) + self._parts[-1])[..., : self.outputs]

    def step(self, loss: Tensor) -> None:
        """Takes one step of each model down a sum of their losses."""
        self._descend(torch.autograd.grad(loss, self._parts))

    def _descend(self, gradients: Sequence[Tensor]) -> None:
        with torch.no_grad():
            self._adam.step([one.contiguous() for one in gradients])

    def weights(self) -> list[Weights]:
        """The weights of each network without padding."""
        packed = [part.detach().numpy() for part in self._parts]
        inputs, outputs = self._widths[:2]
        first = (packed[0][:, :inputs, :outputs], packed[0][:, inputs : inputs + 1, :outputs])
        layers = [first] + [
            (weight[:, :before, :after], bias[:, :, :after])
            for weight, bias, (before, after) in zip(
                packed[1::2], packed[2::2], pairwise(self._widths[1:]), strict=True
            )
        ]
        return [
            tuple(part[model : model + 1].copy() for layer in layers for part in layer)
            for model in range(len(packed[0]))
        ]


class SeluGenerators(SeluStack):
    """Networks that make records, as `networks.source.RecordSource` uses them."""

    def forward(self, rows: Tensor) -> tuple[list[Tensor], Tensor]:
        """The raw outputs: once for `descend`, and once as numbers with padding.

        Args:
            rows: Inputs with their ones [M, n, padded(inputs)].
        """
        raw = self.last(self.hidden(rows))
        missing = padded(self.outputs) - self.outputs
        return [raw], torch.nn.functional.pad(raw.detach(), (0, missing))

    def descend(self, values: Sequence[Tensor], slope: Tensor) -> None:
        """Takes one step, down the gradient with respect to the raw outputs and their padding."""
        own = slope[..., : self.outputs].contiguous()
        self._descend(torch.autograd.grad(values[0], self._parts, grad_outputs=own))
