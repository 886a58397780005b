"""Generators that know nothing: what any other has to beat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpaudit.model.column import MISSING, Kind
from dpaudit.model.encoding import table_of
from dpaudit.model.schema import Schema
from dpaudit.seeds import rng_of


@dataclass(frozen=True)
class UniformRows:
    """Every value uniform over what the schema allows, independently; learns nothing.

    A category that may be missing is one more category; a number that may be is missing by a fair
    coin.
    """

    schema: Schema

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> UniformRows:
        """Ignores the table."""
        del data, seed
        return self

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Draws `n` rows."""
        rng = rng_of(seed, "uniform-rows")
        values = np.empty((n, len(self.schema.columns)))
        for numbers, column in zip(values.T, self.schema.columns, strict=True):
            if not column.kind.numeric:
                lowest = MISSING if column.missing else 0
                numbers[:] = rng.integers(lowest, len(column.categories), n)
                continue
            lower, upper = column.bounds
            if column.kind is Kind.INTEGER:
                numbers[:] = rng.integers(int(lower), int(upper), n, endpoint=True)
            else:
                numbers[:] = np.clip(lower + (upper - lower) * rng.random(n), lower, upper)
            if column.missing:
                numbers[rng.random(n) < 0.5] = np.nan
        return table_of(values, self.schema)


@dataclass(frozen=True)
class EqualRows:
    """The same row again and again: middles of bounds, first categories; learns nothing.

    Classifiers trained on it score every record alike, as a majority vote does.
    """

    schema: Schema

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> EqualRows:
        """Ignores the table."""
        del data, seed
        return self

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Repeats the row `n` times."""
        del seed
        row = [
            float(np.rint(middle)) if column.kind is Kind.INTEGER else middle
            for column in self.schema.columns
            for middle in [sum(column.bounds) / 2 if column.kind.numeric else 0.0]
        ]
        return table_of(np.tile(row, (n, 1)), self.schema)
