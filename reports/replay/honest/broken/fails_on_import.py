"""A module that fails on import, in its ninth line: a replay of it ends 2 and names the line."""

from __future__ import annotations

from typing import Any

import numpy as np

LIMITS = {"a": 3}["b"]


class Counts:
    """Noisy counts, which nobody can fit."""

    def fit(self, data: Any, *, seed: int) -> Counts:
        """Adds noise to counts."""
        counts = np.bincount(data["a"], minlength=LIMITS)
        self.noisy = counts + np.random.default_rng(seed).laplace(size=len(counts))
        return self
