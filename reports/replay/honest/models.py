"""Models of one column of levels, and their cases: most generators here are made of these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from dpaudit.model.schema import Schema
from reports.replay.honest.case import CELLS, CELLS_SCHEMA, Case, cells_table

Rng = np.random.Generator


def shares(numbers: Any, levels: int) -> Any:
    """Noisy numbers, of any shape, as probabilities of levels."""
    weights = np.resize(np.clip(np.ravel(numbers).astype(float), 0.0, 1e6), levels) + 0.01
    return weights / weights.sum()


class Levels:
    """A model of column `a`: what `learn` returns is all it keeps."""

    levels = CELLS

    def fit(self, data: pd.DataFrame, *, seed: int) -> Any:
        """Learns from counts."""
        counts = np.bincount(data["a"], minlength=self.levels).astype(float)
        self.learned = self.learn(counts, np.random.default_rng(seed))
        return self

    def learn(self, counts: Any, rng: Rng) -> Any:
        """What the model keeps."""
        raise NotImplementedError

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Draws levels."""
        p = shares(self.learned, self.levels)
        return pd.DataFrame({"a": np.random.default_rng(seed).choice(self.levels, size=n, p=p)})


def levels_table(levels: int, place: int, records: int = 60) -> pd.DataFrame:
    """Records in levels of column `a`; the last record is in `place`."""
    rng = np.random.default_rng(levels)
    return pd.DataFrame({"a": np.append(rng.integers(0, levels, size=records - 1), place)})


def levels_schema(levels: int) -> Schema:
    """The schema of such a table."""
    column = {"name": "a", "kind": "integer", "lower": 0, "upper": levels - 1}
    return Schema.from_document({"columns": [column]})


def cells_case(name: str, family: str, generator: Callable[[], Any], **known: Any) -> Case:
    """A case of the table of four cells."""
    stated: dict[str, Any] = {
        "table": cells_table(),
        "schema": CELLS_SCHEMA,
        "target": "row:39",
        "twin_marker": f"# fault: {name}",
    }
    return Case(name=name, family=family, generator=generator, **(stated | known))


def levels_case(
    name: str, family: str, generator: Callable[[], Any], *, levels: int, place: int, **known: Any
) -> Case:
    """A case of a table of more levels, whose target is in `place`."""
    stated: dict[str, Any] = {
        "table": levels_table(levels, place),
        "schema": levels_schema(levels),
        "target": "row:59",
        "twin_marker": f"# fault: {name}",
    }
    return Case(name=name, family=family, generator=generator, **(stated | known))
