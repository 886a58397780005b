"""Tables of the selection families, and how their models draw rows from what was released."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd

from dpaudit.model.schema import Schema
from reports.replay.honest.case import CELLS

FLAGS: Final = 20
BITS: Final = 4
Rng = np.random.Generator


def binary_schema(names: list[str]) -> Schema:
    """The schema of a table of bits."""
    columns = [{"name": name, "kind": "binary", "categories": [0, 1]} for name in names]
    return Schema.from_document({"columns": columns})


def even_table() -> pd.DataFrame:
    """Three records in each of four cells, and the target, the last, which is in cell 3."""
    return pd.DataFrame({"a": np.append(np.repeat(np.arange(CELLS), 3), CELLS - 1)})


def votes_table() -> pd.DataFrame:
    """Twelve records with six ones in each of four columns; the target, the last, has three."""
    others = [[(record + place) % 2 for place in range(BITS)] for record in range(12)]
    return pd.DataFrame([*others, [1, 1, 1, 0]], columns=[f"b{place}" for place in range(BITS)])


VOTES_SCHEMA: Final = binary_schema([f"b{place}" for place in range(BITS)])


def flags_table() -> pd.DataFrame:
    """Ten records of twenty random bits; the target, the last, has every other of them."""
    others = np.random.default_rng(1).integers(0, 2, size=(10, FLAGS))
    return pd.DataFrame(
        np.vstack([others, np.arange(FLAGS) % 2]), columns=[f"b{place}" for place in range(FLAGS)]
    )


FLAGS_SCHEMA: Final = binary_schema([f"b{place}" for place in range(FLAGS)])


def bits_table(columns: int = 3, records: int = 13) -> pd.DataFrame:
    """Records of zeros; the target, the last, has ones only, so every replacement differs."""
    bits = np.zeros((records, columns), int)
    bits[-1] = 1
    return pd.DataFrame(bits, columns=[f"b{place}" for place in range(columns)])


def shares(counts: Any) -> Any:
    """Noisy counts as probabilities."""
    kept = np.maximum(counts, 0.0) + 1e-9
    return kept / kept.sum()


class PlaceModel:
    """A model that has released one of a few cells."""

    place: int

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Draws rows most of which are in that cell."""
        p = np.full(CELLS, 0.1)
        p[self.place] = 1.0 - 0.1 * (CELLS - 1)
        return pd.DataFrame({"a": np.random.default_rng(seed).choice(CELLS, size=n, p=p)})


class CountsModel:
    """A model that has released noisy counts of the cells."""

    noisy: Any

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Draws rows in proportion to them."""
        rng = np.random.default_rng(seed)
        return pd.DataFrame({"a": rng.choice(CELLS, size=n, p=shares(self.noisy))})


class BitsModel:
    """A model that has released one bit for each of several columns."""

    told: Any
    columns: tuple[str, ...]

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Draws bits that agree with the released ones in nine of ten rows."""
        told = np.asarray(self.told, int)
        turned = np.random.default_rng(seed).random((n, len(told))) < 0.1
        return pd.DataFrame(told ^ turned, columns=list(self.columns))


class NumberModel:
    """A model that has released a number in [0, 1]."""

    value: float

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Draws numbers around it."""
        around = np.random.default_rng(seed).normal(self.value, 0.1, size=n)
        return pd.DataFrame({"x": np.clip(around, 0.0, 1.0)})
