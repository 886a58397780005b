"""A fitted tree of noisy tables: it samples, and says what it released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpaudit.model.currencies import Claim
from dpaudit.model.encoding import table_of
from dpaudit.plugins.protocols import FloatArray
from dpaudit.seeds import rng_of
from dpaudit_generators.batches import TrainedTogether
from dpaudit_generators.marginals.tables import TreeTables


@dataclass(frozen=True, kw_only=True, eq=False)
class TreeModel:
    """Draws records along a tree of columns from noisy counts.

    Attributes:
        tables: Which counts, by public cells.
        shares: Shares of the cells in each row of each table, from noisy counts, flat.
        numbers: What `Marginals.released_facts` names.
        claim: The generator's promise, and where the noise came from.
    """

    tables: TreeTables
    shares: FloatArray
    numbers: FloatArray
    claim: Claim

    @property
    def tree(self) -> dict[str, str | None]:
        """The parent of each column by name; None for a column that has none."""
        names = self.tables.domain.schema.names
        above = [*names, None]  # `ROOT` counts from the end
        return {
            name: above[parent] for name, parent in zip(names, self.tables.parents, strict=True)
        }

    def released(self) -> FloatArray:
        """What `Marginals.released_facts` names."""
        return self.numbers.copy()

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Draws `n` records; within a bin all values are equally likely."""
        return table_of(self.values(n, seed=seed), self.tables.domain.schema)

    def values(self, n: int, *, seed: int | None) -> FloatArray:
        """The values [n, d] of `sample`, as `dpaudit.model.encoding.values_of` gives them."""
        rng, domain = rng_of(seed, "sample"), self.tables.domain
        shape = (n, len(domain.sizes))
        cells = self.tables.draw(self.shares, rng.random(shape))
        return domain.values(cells, rng.random(shape))


@dataclass(frozen=True, eq=False)
class TreeBatch(TrainedTogether[TreeModel]):
    """Models that were fitted together.

    Attributes:
        models: The models, in the order of their jobs.
    """

    def sample_many(self, n: int, seeds: Sequence[int | None]) -> FloatArray:
        """Values [M, n, d] of `n` records of each model, with a seed each."""
        pairs = zip(self.models, seeds, strict=True)
        return np.stack([model.values(n, seed=seed) for model, seed in pairs])
