"""Generators of single tables as one of several, for controls: keys connect rows at random."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpaudit.model.linked_tables import LinkedTables
from dpaudit.plugins.adapt import train
from dpaudit.plugins.protocols import Generator, Model
from dpaudit.seeds import rng_of


@dataclass(frozen=True)
class EachTable:
    """A generator for each table, which sees that table alone and without keys.

    Attributes:
        schema: The public schema.
        generators: The generators by table.
        sizes: Rows of each table, the same in both worlds; children keep their number a parent.
    """

    schema: LinkedTables
    generators: Mapping[str, Generator]
    sizes: Mapping[str, int]

    def fit(self, data: dict[str, pd.DataFrame], *, seed: int | None) -> EachTableModel:
        """Trains each generator on its table."""
        models = {
            name: train(one, data[name][self.schema.tables[name].names], seed=seed)
            for name, one in self.generators.items()
        }
        return EachTableModel(self, models)


@dataclass(frozen=True)
class EachTableModel:
    """A model of each table."""

    generator: EachTable
    models: Mapping[str, Model]

    def sample(self, n: int, *, seed: int | None) -> dict[str, pd.DataFrame]:
        """Draws `n` rows of the root and rows of the other tables that refer to random ones."""
        schema, sizes = self.generator.schema, self.generator.sizes
        rows = {name: -(-size * n // sizes[schema.root]) for name, size in sizes.items()}
        found = {}
        for name in schema.order:
            rng = rng_of(seed, f"links of {name}")
            link, own = schema.link_of(name), schema.key_of(name)
            keys = {} if own is None else {own: np.arange(rows[name])}
            if link is not None:
                keys[link.column] = rng.integers(rows[link.parent], size=rows[name])
            found[name] = self.models[name].sample(rows[name], seed=seed).assign(**keys)
        return found
