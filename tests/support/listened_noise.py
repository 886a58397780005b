"""A sampler of a library's own, which no hook knows."""

from __future__ import annotations

from typing import Any

import numpy as np


def sample_laplace(seed: int, width: float, size: int) -> Any:
    """Laplace noise by inverting its distribution function."""
    words = np.random.PCG64(seed).random_raw(size)
    u = (np.asarray(words, dtype=float) / 2.0**64) - 0.5
    return -width * np.sign(u) * np.log(1.0 - 2.0 * np.abs(u))


def draw_laplace(rng: Any, width: float, size: int) -> Any:
    """Laplace noise from a generator, as a difference of logarithms."""
    return width * (np.log(_uniform(rng, size)) - np.log(_uniform(rng, size)))


def draw_narrow(rng: Any, width: float, size: int) -> Any:
    """Noise that should be Laplace noise: it accepts every proposal, from -3 to 3 widths."""
    return width * (6.0 * _uniform(rng, size) - 3.0)


def draw_whole(rng: Any, width: float) -> int:
    """Discrete Laplace noise, a difference of two geometric draws."""
    first, second = (int(np.log(_uniform(rng, 1)[0]) * -width) for _ in range(2))
    return first - second


def draw_whole_without_zero(rng: Any, width: float) -> int:
    """The same by sign and size: 0 has twice the probability that it should have."""
    size = int(np.log(_uniform(rng, 1)[0]) * -width)
    return size if _uniform(rng, 1)[0] < 0.5 else -size


def _uniform(rng: Any, size: int) -> Any:
    """Uniform draws of a library's own."""
    return (rng.bit_generator.random_raw(size).astype(float) + 0.5) / 2.0**64
