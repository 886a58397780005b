"""Real records without repeats: what a perfect generator would return."""

from __future__ import annotations

import numpy as np
import pandas as pd


class Permuted:
    """Returns the records of its table in random order, each at most once; keeps no promise."""

    claim = None

    def fit(self, data: pd.DataFrame, *, seed: int) -> Permuted:
        """Keeps the table."""
        del seed
        self._data = data
        return self

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Draws `n` of its records.

        Raises:
            ValueError: If it has fewer.
        """
        chosen = np.random.default_rng(seed).permutation(len(self._data))[:n]
        if n > len(chosen):
            raise ValueError(f"{len(chosen)} records, {n} are asked for")
        return self._data.iloc[chosen].reset_index(drop=True)
