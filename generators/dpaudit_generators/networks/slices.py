"""Memory of stacked networks: every slice is bit-identical to computing it alone.

This needs care (measured on torch 2.13): each slice starts at a multiple of 64 bytes, because
kernels treat their first and last elements separately; no product has a single column, because a
stack of one would then take another routine; no product has the stack as its rows.

So widths are padded to multiples of 16 floats. After the last input of a layer comes a column of
ones, whose weights are the biases; the columns after that are zero and stay zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch
from torch import Tensor

LANES: Final = 16
PAIR: Final = 2 * LANES
"""Floats in two vectors: an elementwise kernel has nothing left over from a multiple of these."""


def padded(width: int) -> int:
    """Width of a matrix of so many columns, one of ones and padding."""
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
    """Columns [..., width] side by side, one of ones and zeros: [..., padded(width)]."""
    width = sum(part.shape[-1] for part in parts)
    rows = torch.zeros(*parts[0].shape[:-1], padded(width), device=parts[0].device)
    start = 0
    for part in parts:
        rows[..., start : start + part.shape[-1]] = part
        start += part.shape[-1]
    rows[..., width] = 1.0
    return rows
