"""Small mechanisms for replays: a test writes the few lines that draw noise."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpaudit
from dpaudit.replaying.record import ReplayRecord

CELLS = 4
TABLE = pd.DataFrame({"a": np.repeat(np.arange(CELLS), [20, 12, 7, 1])})
"""Its last record is alone in the last cell: with it the last count is 1, without it 0."""
SCHEMA = dpaudit.Schema.from_document(
    {"columns": [{"name": "a", "kind": "integer", "lower": 0, "upper": CELLS - 1}]}
)
Train = Callable[[Any, np.random.Generator], Any]
"""What is released, from the counts of the cells and a generator seeded by the fit."""
Rows = Callable[[Any, int, int], Any]
"""Rows of what was released, as cells, from their number and a seed."""


def rows_of_shares(released: Any, n: int, seed: int) -> Any:
    """Cells drawn by noisy counts."""
    kept = np.maximum(released, 0.0) + 1e-9
    return np.random.default_rng(seed).choice(CELLS, n, p=kept / kept.sum())


def same_rows(released: Any, n: int, seed: int) -> Any:
    """Rows that say nothing."""
    del released, seed
    return np.zeros(n, dtype=int)


class Released:
    """A fitted model that holds what was released, and nothing else."""

    def __init__(self, m: Any, rows: Rows) -> None:
        self.m, self.rows = m, rows

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        return pd.DataFrame({"a": self.rows(self.m, n, seed)})


class Mechanism:
    """A generator of a mechanism on counts."""

    def __init__(self, train: Train, rows: Rows = same_rows) -> None:
        self.train, self.rows = train, rows

    def fit(self, data: pd.DataFrame, *, seed: int) -> Released:
        counts = np.bincount(data["a"], minlength=CELLS)
        return Released(self.train(counts, np.random.default_rng(seed)), self.rows)


def replayed(train: Any, rows: Rows = same_rows, **settings: Any) -> ReplayRecord:
    """A replay of a mechanism, or of a generator; without a proof from the release by default."""
    generator = Mechanism(train, rows) if inspect.isfunction(train) else train
    given: dict[str, Any] = {"epsilon": 1.0, "target": "row:39", "fits": 1, **settings}
    return dpaudit.replay(generator, TABLE, schema=SCHEMA, **given)


def line_of(code: Any, text: str) -> str:
    """File and line of some text of a function or a class."""
    lines, first = inspect.getsourcelines(code)
    [place] = [at for at, line in enumerate(lines) if text in line]
    return f"{Path(inspect.getfile(code)).name}:{first + place}"
