"""Generators whose synthetic rows are harmless and whose models may give the target away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit import PrivacyClaim, Schema
from dpaudit.plugins.protocols import Job
from dpaudit.seeds import rng_of

FAR = 8.0


@dataclass(frozen=True)
class HiddenModel:
    """Rows of one value; the number of records shows elsewhere."""

    columns: Sequence[str]
    count: float

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        values = rng_of(seed, "rows").integers(0, 2, (n, len(self.columns)))
        return pd.DataFrame(values, columns=list(self.columns))

    def discriminate(self, rows: pd.DataFrame) -> npt.NDArray[np.float64]:
        return np.full(len(rows), self.count)

    def parameters(self) -> npt.NDArray[np.float64]:
        return np.array([0.0, self.count])

    def released(self) -> npt.NDArray[np.float64]:
        return np.array([self.count])


@dataclass(frozen=True, kw_only=True)
class Hidden:
    """Adds noise of scale 1 / strength to the number of records and never samples from it."""

    columns: tuple[str, ...] = ("a", "b")
    strength: float = FAR
    claim: PrivacyClaim = field(default_factory=lambda: PrivacyClaim(epsilon=1.0))
    discloses: tuple[str, ...] = ("parameters",)
    released_facts: tuple[str, ...] = ("records",)

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> HiddenModel:
        noise = rng_of(seed, "noise").laplace(0.0, 1.0 / self.strength)
        return HiddenModel(self.columns, len(data) + noise)


class HiddenTogether(Hidden):
    """The same, trained many at once."""

    models_at_once = 7

    def batch_key(self, job: Job) -> int:
        return len(job.dropped_rows)

    def fit_many(self, data: pd.DataFrame, jobs: Sequence[Job]) -> Any:
        return _Batch([self.fit(data.drop(index=list(j.dropped_rows)), seed=j.seed) for j in jobs])


class _Batch(list[HiddenModel]):
    def sample_many(self, n: int, seeds: Sequence[int | None]) -> npt.NDArray[np.float64]:
        tables = [model.sample(n, seed=seed) for model, seed in zip(self, seeds, strict=True)]
        return np.stack([table.to_numpy(dtype=np.float64) for table in tables])


def table_of_bits() -> pd.DataFrame:
    """A table [12] in which one record stands alone."""
    return pd.DataFrame({"a": [0] * 11 + [1], "b": [0, 0, 1] * 3 + [0, 0, 1]})


def schema_of_bits() -> Schema:
    """Its schema: two integers."""
    return Schema.infer(table_of_bits())
