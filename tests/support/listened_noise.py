"""A sampler of a library's own, which no hook knows."""

from __future__ import annotations

from typing import Any

import numpy as np


def sample_laplace(seed: int, width: float, size: int) -> Any:
    """Laplace noise by inverting its distribution function."""
    words = np.random.PCG64(seed).random_raw(size)
    u = (np.asarray(words, dtype=float) / 2.0**64) - 0.5
    return -width * np.sign(u) * np.log(1.0 - 2.0 * np.abs(u))
