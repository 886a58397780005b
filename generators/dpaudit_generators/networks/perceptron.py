"""A critic that is no longer trained, and weights as one array; without torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Float32Array: TypeAlias = npt.NDArray[np.float32]

Weights: TypeAlias = tuple[Float32Array, ...]
"""k networks without padding, W1, b1, W2, b2, ...: W [k, inputs, outputs], b [k, 1, outputs]."""
SLOPE: Final = 0.2
"""Slope of the leaky rectifier of hidden layers below 0."""


def logits(weights: Weights, rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The output of a critic with leaky rectifiers for each row.

    Args:
        weights: W1, b1, W2, b2, ... with a leading axis of one; the last layer has one output.
        rows: Encoded records [n, width].

    Returns:
        Logits [n].
    """
    values, layers = rows, list(zip(weights[::2], weights[1::2], strict=True))
    for layer, (weight, bias) in enumerate(layers):
        values = values @ weight[0] + bias[0]
        if layer < len(layers) - 1:
            values = np.where(values < 0, SLOPE * values, values)
    return np.asarray(values[:, 0], dtype=np.float64)


def flat(weights: Sequence[Float32Array]) -> npt.NDArray[np.float64]:
    """All numbers of some weights, one after the other."""
    return np.concatenate([part.ravel() for part in weights]).astype(np.float64)
