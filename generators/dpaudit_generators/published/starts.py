"""The weights that published PATE-GANs begin with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from dpaudit_generators.networks.perceptron import Float32Array, Weights
from dpaudit_generators.published.recipes import Layer, Start

_BIAS: Final = np.float32(0.01)


def drawn(
    start: Start, layers: Sequence[Layer], rng: np.random.Generator, *, k: int = 1
) -> Weights:
    """Draws k networks.

    Args:
        start: The distribution of their weights.
        layers: Their layers.
        rng: Draws the weights.
        k: How many.

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
