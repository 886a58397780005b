"""Synthetic tables from noisy histograms of their columns."""

from __future__ import annotations

import numpy as np
import pandas as pd


class NoisyHistograms:
    """Draws each column alone, from a histogram with Laplace noise: epsilon-DP for adding a record.

    Attributes:
        bounds: Public bounds of each column, by name.
        epsilon: The budget, spent in equal parts on the columns.
        bins: Bins of each column.
        proof: How the claim is proved: by composing the noise steps.
    """

    proof = "composition"

    def __init__(
        self, *, bounds: dict[str, tuple[float, float]], epsilon: float, bins: int = 20
    ) -> None:
        self.bounds, self.epsilon, self.bins = bounds, epsilon, bins

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> NoisyHistograms:
        """Counts the records of each bin; adding one changes one count of each column by 1."""
        rng = np.random.default_rng(seed)
        scale = len(self.bounds) / self.epsilon
        self.histograms = {}
        for name, (lower, upper) in self.bounds.items():
            values = data[name].clip(lower, upper)
            counts, edges = np.histogram(values, self.bins, range=(lower, upper))
            noisy = counts + rng.laplace(scale=scale, size=self.bins)
            self.histograms[name] = noisy.clip(min=1e-9), edges
        return self

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Draws records from the noisy histograms, which costs no privacy."""
        rng = np.random.default_rng(seed)
        table = {}
        for name, (counts, edges) in self.histograms.items():
            place = rng.choice(self.bins, size=n, p=counts / counts.sum())
            table[name] = rng.uniform(edges[place], edges[place + 1]).round()
        return pd.DataFrame(table)
