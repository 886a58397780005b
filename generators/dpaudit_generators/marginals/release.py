"""Contingency tables along a tree of columns, and what one training releases: what is proved.

The measured pairs of columns follow from the schema alone, or are chosen from the data with noise.
Computing the shares for drawing records from noisy counts is post-processing, and so is drawing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import combinations
from typing import Final, NamedTuple, Protocol

import numpy as np
import pandas as pd
import scipy

from dpaudit.model.claim import Claim
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
        """The columns by depth: those without a parent first, then their children, and so on."""
        above = np.array(self.parents)
        depths = [np.flatnonzero(above == ROOT)]
        while len(depths[-1]):
            depths.append(np.flatnonzero(np.isin(above, depths[-1])))
        return tuple(depths[:-1])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all cells."""
        cells: list[str] = []
        for own, parent in zip(self.domain.names, self.parents, strict=True):
            above = [""] if parent == ROOT else [f"{name} & " for name in self.domain.names[parent]]
            cells += [row + cell for row in above for cell in own]
        return tuple(cells)

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
            places = reached.searchsorted(rows + uniforms[:, level], side="right")
            cells[:, level] = np.clip(
                places - self.row_starts[rows], 0, self.domain.sizes[level] - 1
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


class RecordCounts(Protocol):
    """The records of one training, by the cells of a domain."""

    def cells(self, domain: Domain) -> IntArray:
        """The cell of each record in each column [n, d]."""
        ...

    def counts(self, tables: TreeTables) -> IntArray:
        """Counts of all cells of some tables, flat."""
        ...

    def joint(self, domain: Domain) -> FloatArray:
        """Counts of each two cells of all columns [s, s]."""
        ...


class TreeRelease(NamedTuple):
    """The releases of one training.

    Attributes:
        tables: The tables that were counted.
        shares: Shares of their cells, from the noisy counts.
        numbers: The noisy counts, and the tree if it was chosen.
    """

    tables: TreeTables
    shares: FloatArray
    numbers: FloatArray


@dataclass(frozen=True)
class PublicTree:
    """Tables that the schema alone names, with Gaussian noise on every cell.

    A record is in one cell of each of d tables, so adding or removing it changes the counts by
    sqrt(d) in L2 norm, and noise of standard deviation sqrt(d) / mu is mu-Gaussian DP (Dong, Roth
    and Su 2022, Theorem 2.7). No smaller mu is true: the sum of the record's d cells is normal with
    standard deviation d / mu, and the record shifts it by d.

    Attributes:
        tables: The tables.
        mu: Their cost.
    """

    tables: TreeTables
    mu: float

    @property
    def scale(self) -> float:
        """Standard deviation of the noise of each count."""
        return math.sqrt(len(self.tables.parents)) / self.mu

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the numbers that are released."""
        return self.tables.names

    def effect(self, record: RecordCounts) -> FloatArray:
        """How much one record raises each number that is released."""
        return record.counts(self.tables).astype(np.float64)

    def of(self, records: RecordCounts, *, seed: int | None) -> TreeRelease:
        """Counts with noise."""
        noisy = add_noise(records.counts(self.tables), self.scale, rng_of(seed, "noise"))
        scales = np.full(len(self.tables.parents), self.scale)
        return TreeRelease(self.tables, shares_along(self.tables, noisy, scales), noisy)


@dataclass(frozen=True)
class ChosenTree:
    """Tables of a tree that is chosen from the data, as in MST.

    McKenna, Miklau and Sheldon 2021, "Winning the NIST Contest", without its graphical model. Three
    steps of rho / 3 each: every column alone is counted with Gaussian noise; d - 1 pairs of a tree
    are chosen by the exponential mechanism; those are counted with Gaussian noise. Gaussian noise
    of standard deviation s on counts that change by c in L2 norm is c^2 / (2 s^2)-zCDP, and rho
    adds up (Bun and Steinke 2016, Proposition 1.6 and Lemma 2.3).

    Attributes:
        domain: The public cells of the columns.
        rho: The joint cost of all steps.
        root: The column that has no parent.
    """

    domain: Domain
    rho: float
    root: int

    @property
    def alone(self) -> TreeTables:
        """The tables of every column alone."""
        return TreeTables(self.domain, (ROOT,) * len(self.domain.sizes))

    @property
    def edge_epsilon(self) -> float:
        """Epsilon of each choice of a pair."""
        return math.sqrt(8.0 * self._step / max(1, self._pairs))

    @property
    def scales(self) -> FloatArray:
        """Standard deviations of the noise on single columns and on pairs."""
        tables = np.array([len(self.domain.sizes), max(1, self._pairs)])
        scales: FloatArray = np.sqrt(tables / (2.0 * self._step))
        return scales

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the released numbers; those of a pair outside the tree are 0."""
        pairs = combinations(self.domain.names, 2)
        joint = [f"{a} & {b}" for row, column in pairs for a in row for b in column]
        return (*self.alone.names, *joint)

    def effect(self, record: RecordCounts) -> FloatArray:
        """The same for single columns; 0 for pairs, because it is not known which are counted."""
        alone = record.counts(self.alone).astype(np.float64)
        return np.append(alone, np.zeros(len(self.names) - len(alone)))

    def of(self, records: RecordCounts, *, seed: int | None) -> TreeRelease:
        """Counts, choices and counts again, each with noise."""
        domain, alone = self.domain, self.alone
        scale, pair_scale = self.scales
        single = add_noise(records.counts(alone), scale, rng_of(seed, "columns"))
        shares = shares_along(alone, single, np.full(len(domain.sizes), scale))
        scores = distances(domain, records.joint(domain), shares, total_of(single, domain.sizes))
        rng = rng_of(seed, "choice")
        tree = choose_tree(scores, epsilon=self.edge_epsilon, root=self.root, rng=rng)
        tables = TreeTables(domain, tree)
        noisy = add_noise(records.counts(tables), pair_scale, rng_of(seed, "pairs"))
        own = slice(tables.starts[self.root], tables.starts[self.root + 1])
        noisy[own] = alone.table(single, self.root)[0]  # a root has a table of its own
        scales = np.where(np.array(tree) == ROOT, scale, pair_scale)
        return TreeRelease(
            tables,
            shares_along(tables, noisy, scales),
            np.concatenate([single, *self._joint(tables, noisy)]),
        )

    @property
    def _pairs(self) -> int:
        return len(self.domain.sizes) - 1

    @property
    def _step(self) -> float:
        return self.rho / 3.0

    def _joint(self, tables: TreeTables, noisy: FloatArray) -> list[FloatArray]:
        """The noisy counts of each pair of columns, flat; zeros for a pair outside the tree."""
        joint = []
        for first, second in combinations(range(len(self.domain.sizes)), 2):
            if tables.parents[second] == first:
                joint.append(tables.table(noisy, second).ravel())
            elif tables.parents[first] == second:
                joint.append(tables.table(noisy, first).T.ravel())
            else:
                joint.append(np.zeros(self.domain.sizes[first] * self.domain.sizes[second]))
        return joint


def add_noise(
    numbers: IntArray | FloatArray, scale: float | FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Adds Gaussian noise to numbers.

    Args:
        numbers: Numbers of any shape.
        scale: Standard deviation of the noise, for all numbers or for each.
        rng: Draws the noise.
    """
    noisy: FloatArray = numbers + scale * rng.standard_normal(numbers.shape)
    return noisy


_BLOCK: Final = 4096
"""Records that are counted at a time."""


class Structure(StrEnum):
    """Which pairs of columns are measured."""

    AUTO = "auto"
    """Pairs with the label if the schema names one, else chosen pairs."""
    LABEL = "label"
    """Every column with the label; public."""
    DEVIATIONS = "deviations"
    """The same, as deviations of each class from the columns alone, with less noise; public."""
    CHOSEN = "chosen"
    """A tree of the pairs that are farthest from independent; the choice is paid for."""
    INDEPENDENT = "independent"
    """No pairs; public."""


def joint_counts(domain: Domain, cells: IntArray) -> FloatArray:
    """Number of records in each pair of cells of all columns, [s, s].

    Args:
        domain: The public cells of the columns.
        cells: The cell of each record in each column [n, d].
    """
    starts = np.cumsum(domain.sizes) - domain.sizes
    counts = np.zeros((int(domain.sizes.sum()),) * 2)
    for first in range(0, len(cells), _BLOCK):
        block = cells[first : first + _BLOCK]
        marks = np.zeros((len(block), len(counts)), dtype=np.float32)  # exact below 2**24
        record, column = np.nonzero(block >= 0)
        marks[record, (block + starts)[record, column]] = 1.0
        counts += marks.T @ marks
    return counts


def distances(domain: Domain, joint: FloatArray, alone: FloatArray, total: float) -> FloatArray:
    """The L1 distance of each pair of columns from independence, [d, d].

    The sum of absolute differences between the counts of a pair and the counts that independent
    columns would have. Adding or removing a record changes one count by one, so a distance changes
    by at most one.

    Args:
        domain: The public cells of the columns.
        joint: Counts of each pair of cells [s, s].
        alone: Released shares of the cells of each column [s].
        total: Released number of records.
    """
    starts = np.cumsum(domain.sizes) - domain.sizes
    off = np.abs(joint - total * np.outer(alone, alone))
    totals: FloatArray = np.add.reduceat(np.add.reduceat(off, starts, axis=0), starts, axis=1)
    return totals


def choose_tree(
    scores: FloatArray, *, epsilon: float, root: int, rng: np.random.Generator
) -> tuple[int, ...]:
    """Chooses the pairs of a tree, one after the other, by the exponential mechanism.

    Each of the d - 1 choices is among the pairs of columns that are not connected yet, as in
    Kruskal's algorithm; a pair's probability is proportional to exp(epsilon score / 2). If a record
    changes every score by at most one, a choice has a privacy loss of range epsilon, hence
    epsilon^2 / 8-zCDP (Cesar and Rogers 2021).

    Args:
        scores: Score of each pair of columns [d, d], symmetric.
        epsilon: Epsilon of each choice.
        root: The column that has no parent.
        rng: Draws the choices.

    Returns:
        The parent of each column.
    """
    first, second = np.triu_indices(len(scores), 1)
    weights = epsilon / 2.0 * scores[first, second]
    part = np.arange(len(scores))
    edges = []
    while len(first):
        best = int((weights + rng.gumbel(size=len(first))).argmax())
        edges.append((int(first[best]), int(second[best])))
        part[part == part[second[best]]] = part[first[best]]
        apart = part[first] != part[second]
        first, second, weights = first[apart], second[apart], weights[apart]
    return _root_tree(edges, len(scores), root)


def label_star(columns: int, label: int) -> tuple[int, ...]:
    """The tree in which the label is the parent of every other column."""
    return tuple(ROOT if column == label else label for column in range(columns))


def _root_tree(edges: Sequence[tuple[int, int]], columns: int, root: int) -> tuple[int, ...]:
    if not edges:
        return (ROOT,) * columns
    first, second = np.array(edges).T
    graph = scipy.sparse.coo_array((np.ones(len(edges)), (first, second)), shape=(columns, columns))
    _, above = scipy.sparse.csgraph.breadth_first_order(graph.tocsr(), root, directed=False)
    return tuple(ROOT if column == root else int(above[column]) for column in range(columns))


def shares_along(tables: TreeTables, noisy: FloatArray, scales: FloatArray) -> FloatArray:
    """Shares of the cells in each row of each table.

    Counts below 0 become 0. A column without a parent is counted in its own table and in those of
    all its children, and gets the mean with the smallest variance. A row whose counts are all 0
    gets the shares of its column, and equal shares if those are all 0 as well.

    Args:
        tables: The tables.
        noisy: Noisy counts of all cells, flat.
        scales: Standard deviation of the noise on the cells of each table [d].

    Returns:
        Shares of all cells, flat; each row adds up to 1.
    """
    kept = np.maximum(_roots_averaged(tables, noisy, scales), 0.0)
    first, widths = tables.row_starts, tables.row_widths
    sums = np.add.reduceat(kept, first)
    for row in np.flatnonzero(sums == 0.0):
        column = int(np.searchsorted(tables.starts, first[row], side="right")) - 1
        own = tables.table(kept, column).sum(axis=0)
        own = own if own.any() else np.ones(len(own))
        kept[first[row] : first[row] + widths[row]] = own
        sums[row] = own.sum()
    shares: FloatArray = kept / np.repeat(sums, widths)
    return shares


def _roots_averaged(tables: TreeTables, noisy: FloatArray, scales: FloatArray) -> FloatArray:
    parents = np.array(tables.parents)
    averaged = noisy.copy()
    row_sums = np.add.reduceat(noisy, tables.row_starts)
    for root in tables.levels[0].tolist():
        children = np.flatnonzero(parents == root)
        if len(children) == 0:
            continue
        own = slice(tables.starts[root], tables.starts[root + 1])
        rows = tables.first_rows[children][:, None] + np.arange(tables.domain.sizes[root])
        counts = np.vstack([noisy[own], row_sums[rows]])
        sizes = np.append(1, tables.domain.sizes[children])
        precision = 1.0 / (sizes * scales[np.append(root, children)] ** 2)
        averaged[own] = precision @ counts / precision.sum()
    return averaged


def total_of(noisy: FloatArray, widths: IntArray, scales: FloatArray | float = 1.0) -> float:
    """An estimate of the number of records: the tables' sums, weighted by their precision.

    Args:
        noisy: Noisy counts of all tables, flat.
        widths: Number of cells of each table.
        scales: Standard deviation of the noise on the cells of each table, or proportional to it;
            one number if it is the same for all.
    """
    sums = np.add.reduceat(noisy, np.cumsum(widths) - widths)
    precision = 1.0 / (widths * scales**2)
    return float(precision @ sums / precision.sum())


def onto_simplex(values: FloatArray, widths: IntArray) -> FloatArray:
    """The nearest shares: numbers of at least 0 that add up to 1 (Duchi et al. 2008, figure 1).

    Args:
        values: Rows of numbers one after the other, flat.
        widths: How many numbers each row has, at least one.

    Returns:
        Shares in the same places; each row adds up to 1.
    """
    place = np.arange(widths.max())
    rows = np.full((len(widths), len(place)), -np.inf)
    rows[place < widths[:, None]] = values
    ordered = -np.sort(-rows, axis=1)
    beyond = np.cumsum(np.where(np.isfinite(ordered), ordered, 0.0), axis=1) - 1.0
    kept = (ordered * (place + 1) > beyond).sum(axis=1)
    shifts = beyond[np.arange(len(rows)), kept - 1] / kept
    shares: FloatArray = np.maximum(values - np.repeat(shifts, widths), 0.0)
    return shares
