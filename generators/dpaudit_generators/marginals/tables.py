"""Contingency tables along a tree of columns, and the fitted tree.

A fitted tree samples and says what it released.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pandas as pd

from dpaudit.model.currencies import Claim
from dpaudit.model.encoding import table_of
from dpaudit.plugins.protocols import FloatArray, IntArray
from dpaudit.seeds import rng_of
from dpaudit_generators.batches import Domain, TrainedTogether

ROOT: Final = -1
"""Parent of a column that has none."""


@dataclass(frozen=True)
class TreeTables:
    """One table of counts for each column: by its own cell and that of its parent.

    Each table has a row for each cell of the parent (one row if there is none) and a column for
    each cell of its own. All cells are kept in one flat array, table by table, row by row. A record
    is in one cell of each table, or in none if its value is not in the schema.

    Attributes:
        domain: The public cells of the columns.
        parents: Parent of each column [d], or `ROOT`; a forest.
    """

    domain: Domain
    parents: tuple[int, ...]

    @cached_property
    def rows(self) -> IntArray:
        """Rows of each table [d]."""
        above = np.array(self.parents)
        return np.where(above == ROOT, 1, self.domain.sizes[above])

    @cached_property
    def starts(self) -> IntArray:
        """First cell of each table, and the number of all cells, [d + 1]."""
        return np.append(0, np.cumsum(self.rows * self.domain.sizes))

    @cached_property
    def first_rows(self) -> IntArray:
        """The first row of each table [d], among the rows of all tables."""
        return np.cumsum(self.rows) - self.rows

    @cached_property
    def row_widths(self) -> IntArray:
        """Cells of each row of all tables."""
        return np.repeat(self.domain.sizes, self.rows)

    @cached_property
    def row_starts(self) -> IntArray:
        """First cell of each row of all tables."""
        return np.cumsum(self.row_widths) - self.row_widths

    @cached_property
    def levels(self) -> tuple[IntArray, ...]:
        """The columns without a parent, then those whose parents are in the level before."""
        above = np.array(self.parents)
        found = [np.flatnonzero(above == ROOT)]
        while len(found[-1]):
            found.append(np.flatnonzero(np.isin(above, found[-1])))
        return tuple(found[:-1])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all cells."""
        found: list[str] = []
        for own, parent in zip(self.domain.names, self.parents, strict=True):
            above = [""] if parent == ROOT else [f"{name} & " for name in self.domain.names[parent]]
            found += [row + cell for row in above for cell in own]
        return tuple(found)

    def table(self, flat: FloatArray, column: int) -> FloatArray:
        """The table of one column, [rows, cells], of a flat array."""
        own = flat[self.starts[column] : self.starts[column + 1]]
        return own.reshape(self.rows[column], -1)

    def places(self, cells: IntArray) -> IntArray:
        """The cell of each record in each table [n, d], flat; below 0 for none.

        Args:
            cells: Its cell in each column [n, d].
        """
        above = np.where(np.array(self.parents) == ROOT, 0, cells[:, self.parents])
        places = self.starts[:-1] + above * self.domain.sizes + cells
        return np.where((cells < 0) | (above < 0), -1, places)

    def counts(self, cells: IntArray) -> IntArray:
        """Counts of all cells, flat.

        Args:
            cells: The cell of each record in each column [n, d].
        """
        places = self.places(cells)
        return np.bincount(places[places >= 0], minlength=self.starts[-1])

    def draw(self, shares: FloatArray, uniforms: FloatArray) -> IntArray:
        """Draws records, each column given its parent.

        Args:
            shares: Shares of all cells, flat; each row of each table adds up to 1.
            uniforms: A number in [0, 1) for each record and column [n, d].

        Returns:
            Cells [n, d].
        """
        # Row r of all rows fills [r, r + 1] of one increasing function, which is inverted at once.
        number = np.arange(len(self.row_widths))
        before = np.append(0.0, np.cumsum(shares))
        within = before[1:] - np.repeat(before[self.row_starts], self.row_widths)
        reached = np.minimum(within, 1.0) + np.repeat(number, self.row_widths)
        reached[self.row_starts + self.row_widths - 1] = number + 1

        cells = np.empty(uniforms.shape, dtype=np.int64)
        for level in self.levels:
            above = [self.parents[column] for column in level]
            rows = self.first_rows[level] + (0 if ROOT in above else cells[:, above])
            found = reached.searchsorted(rows + uniforms[:, level], side="right")
            cells[:, level] = np.clip(
                found - self.row_starts[rows], 0, self.domain.sizes[level] - 1
            )
        return cells


@dataclass(frozen=True, kw_only=True, eq=False)
class TreeModel:
    """Draws records along a tree of columns from noisy counts.

    Attributes:
        tables: The tables that were counted, by public cells.
        shares: Shares of the cells in each row of each table, from noisy counts, flat.
        numbers: The numbers that `Marginals.released_facts` names.
        claim: The generator's claim, and the source of the noise.
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
        """The numbers that `Marginals.released_facts` names."""
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
