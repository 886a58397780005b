"""Generators with a budget whose frontier is known."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpaudit import PrivacyClaim


class Rows:
    """Hands out its rows, whatever it claims: as useful as real data, and caught."""

    def __init__(self, epsilon: float) -> None:
        self.epsilon = epsilon

    @property
    def claim(self) -> PrivacyClaim:
        return PrivacyClaim(epsilon=self.epsilon, delta=0.0)

    def fit(self, data: pd.DataFrame, *, seed: int) -> Rows:
        del seed
        self._data = data
        return self

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        rows = np.random.default_rng(seed).permutation(n) % len(self._data)
        return self._data.iloc[rows].reset_index(drop=True)


class Noise(Rows):
    """Fair coins for labels, uniform numbers: worth nothing, and leaks nothing."""

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        return pd.DataFrame({"size": rng.random(n) * 4, "sick": rng.integers(0, 2, n)})


class Unclaimed(Noise):
    """The same without a claim of its own."""

    claim = None  # type: ignore[assignment]


class Poor(Rows):
    """Fails on a budget below 2, and else as `Rows`."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> Rows:
        if self.epsilon < 2:
            raise ValueError("too little budget")
        return super().fit(data, seed=seed)
