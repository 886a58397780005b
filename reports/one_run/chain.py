"""A generator that keeps marginals: the counts of neighbouring columns, with Laplace noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema

COLUMNS, VALUES = 6, 12
CHAIN_SCHEMA = Schema(
    columns=tuple(
        Column(name=f"c{place}", kind=Kind.CATEGORICAL, categories=tuple(range(VALUES)))
        for place in range(COLUMNS)
    )
)


def chain_table(rows: int) -> pd.DataFrame:
    """Independent columns whose k-th value has a frequency proportional to 1 / k^1.3."""
    weights = np.arange(1, VALUES + 1) ** -1.3
    rng = np.random.default_rng(0)
    drawn = rng.choice(VALUES, (rows, COLUMNS), p=weights / weights.sum())
    return pd.DataFrame({name: drawn[:, i] for i, name in enumerate(CHAIN_SCHEMA.names)})


@dataclass(frozen=True)
class NoisyChain:
    """Samples a Markov chain over the columns from noisy counts of neighbouring columns.

    A record is in one cell of each of the 5 tables of counts, an L1 sensitivity of 5: Laplace noise
    of scale 5 / epsilon is epsilon-DP, whatever number of records there is.

    Attributes:
        scale: Scale of the noise of each count.
    """

    scale: float

    def __call__(self, data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
        """Counts, adds noise and draws."""
        rng = np.random.default_rng(seed)
        values = data.to_numpy(dtype=np.int64)
        drawn = np.empty((n_rows, COLUMNS), dtype=np.int64)
        for place in range(1, COLUMNS):
            counts = np.zeros((VALUES, VALUES))
            np.add.at(counts, (values[:, place - 1], values[:, place]), 1.0)
            noisy = np.maximum(counts + rng.laplace(0.0, self.scale, counts.shape), 0.0) + 1e-12
            if place == 1:
                drawn[:, 0] = rng.choice(VALUES, n_rows, p=noisy.sum(axis=1) / noisy.sum())
            steps = (noisy / noisy.sum(axis=1, keepdims=True)).cumsum(axis=1)
            beyond = rng.random(n_rows)[:, None] > steps[drawn[:, place - 1]]
            drawn[:, place] = np.minimum(beyond.sum(axis=1), VALUES - 1)
        return pd.DataFrame(drawn, columns=list(CHAIN_SCHEMA.names))
