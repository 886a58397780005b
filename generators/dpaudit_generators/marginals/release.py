"""Contingency tables along a tree of columns, and what one training releases: what is proved.

The measured pairs of columns follow from the schema alone, or are chosen from the data with noise.
Computing the shares for drawing records from noisy counts is post-processing, and so is drawing.

With a label, single columns are counted first, then the deviations of each class from them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
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


LABEL_SHARE: Final = 0.1
"""Share of the budget, in squares of mu, for the counts of the label's classes."""
COLUMNS_SHARE: Final = 0.1
"""Share for the counts of all other columns; the deviations get the rest."""


class Centre(NamedTuple):
    """What deviations are measured from: post-processing of noisy counts.

    Attributes:
        classes: Shares of the label's classes [L].
        cells: Shares of the cells of each other column, flat [s].
        total: An estimate of the number of records.
    """

    classes: FloatArray
    cells: FloatArray
    total: float


class Deviations(NamedTuple):
    """Sums of the records' deviations.

    Attributes:
        sums: By class and cell [L, s].
        radius: The most that a record adds to them, in L2 norm.
    """

    sums: FloatArray
    radius: float


@dataclass(frozen=True)
class DeviationTree:
    """Every column with the label, in two steps with less noise than counts of all pairs.

    First the classes of the label and every other column are counted alone, with Gaussian noise.
    Let q and p be the shares that follow. Then a record of class y with cells x adds
    (e(y) - q) (e(x) - p)^T to a sum over records, e being indicators, scaled down to a norm of at
    most the radius; Gaussian noise is added to the sum. The rows of the tables are p plus the mean
    deviation of each class.

    A record that agrees with most others on most columns deviates by little. So the radius, the
    root mean square of the norm under p, but at least that of one column, is below the sqrt(d) by
    which a record changes d tables of counts, and so is the noise. Where mu is above 1 and noise is
    small, a larger radius scales fewer records down.

    Proof: of the first step, adding or removing a record changes one count of the classes and one
    of each of c other columns, so with noise of standard deviations s and t it is mu-Gaussian DP
    with mu^2 = 1 / s^2 + c / t^2. For any outcome of it, the record changes the sum by at most the
    radius, so noise of radius / mu is mu-Gaussian DP (Dong, Roth and Su 2022, Theorem 2.7). Squares
    of mu add up (Corollary 3.3 there); all else is post-processing.

    Attributes:
        domain: The public cells of the columns.
        mu: The joint cost of both steps.
        root: The label.
    """

    domain: Domain
    mu: float
    root: int

    @cached_property
    def tables(self) -> TreeTables:
        """The tables that records are drawn along: every column by its class."""
        return TreeTables(self.domain, label_star(len(self.domain.sizes), self.root))

    @cached_property
    def others(self) -> IntArray:
        """The columns other than the label."""
        return np.delete(np.arange(len(self.domain.sizes)), self.root)

    @cached_property
    def starts(self) -> IntArray:
        """First cell of each other column, and the number of all their cells."""
        return np.append(0, np.cumsum(self.domain.sizes[self.others]))

    @property
    def label_scale(self) -> float:
        """Standard deviation of the noise on the counts of the label's classes."""
        return 1.0 / (math.sqrt(LABEL_SHARE) * self.mu)

    @property
    def columns_scale(self) -> float:
        """Standard deviation of the noise on the counts of other columns."""
        return math.sqrt(len(self.others)) / (math.sqrt(COLUMNS_SHARE) * self.mu)

    @property
    def deviations_mu(self) -> float:
        """The cost of the second step."""
        return math.sqrt(1.0 - LABEL_SHARE - COLUMNS_SHARE) * self.mu

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the numbers that are released: counts alone, then deviations by class."""
        own = self.domain.names
        cells = [name for column in self.others for name in own[column]]
        return (*own[self.root], *cells, *(f"{a} & {b}" for a in own[self.root] for b in cells))

    def effect(self, record: RecordCounts) -> FloatArray:
        """How much one record raises each number that is released.

        For deviations, which depend on the earlier counts, this assumes equally frequent cells.
        """
        sizes = self.domain.sizes
        cells = record.cells(self.domain)
        equal = Centre(
            np.full(sizes[self.root], 1.0 / sizes[self.root]),
            np.repeat(1.0 / sizes[self.others], sizes[self.others]),
            1.0,
        )
        sums, radius = self.deviations(cells, equal)
        return self.in_units(self.alone(cells).astype(np.float64), sums, radius)

    def of(self, records: RecordCounts, *, seed: int | None) -> TreeRelease:
        """Counts with noise, then deviations with noise.

        Numbers that are released are in units of the standard deviation of their noise.
        """
        rng = rng_of(seed, "columns")
        return self.after(self.classes(records, rng), records, rng=rng, seed=seed)

    def classes(self, records: RecordCounts, rng: np.random.Generator) -> FloatArray:
        """Noisy counts of the label's classes [L], which come before all else."""
        counts = records.counts(self._columns)[self._own]
        return add_noise(counts, self.label_scale, rng)

    def after(
        self,
        classes: FloatArray,
        records: RecordCounts,
        *,
        rng: np.random.Generator,
        seed: int | None,
    ) -> TreeRelease:
        """Everything released after the counts of the classes.

        Args:
            classes: The noisy counts of the classes [L].
            records: The records.
            rng: Draws the noise on counts; it drew that of the classes, too.
            seed: Seed of the noise on deviations.
        """
        counts = np.delete(records.counts(self._columns), self._own)
        alone = np.append(classes, add_noise(counts, self.columns_scale, rng))
        centre = self.centre(alone)
        sums, radius = self.deviations(records.cells(self.domain), centre)
        noisy = add_noise(sums, radius / self.deviations_mu, rng_of(seed, "deviations"))
        return TreeRelease(
            self.tables, self._shares(centre, noisy), self.in_units(alone, noisy, radius)
        )

    def centre(self, alone: FloatArray) -> Centre:
        """The centre that follows from the noisy counts of classes and of other columns.

        Args:
            alone: These counts, in this order, flat.
        """
        classes = self.domain.sizes[self.root]
        widths = np.append(classes, np.diff(self.starts))
        scales = np.append(self.label_scale, np.full(len(self.others), self.columns_scale))
        total = max(1.0, total_of(alone, widths, scales))
        shares = onto_simplex(alone / total, widths)
        return Centre(shares[:classes], shares[classes:], total)

    def deviations(self, cells: IntArray, centre: Centre) -> Deviations:
        """The sums of the records' deviations, before noise.

        Args:
            cells: The cell of each record in each column [n, d]; a value that is not in the schema
                does not deviate.
            centre: What records deviate from.
        """
        classes = len(centre.classes)
        label, slots = cells[:, self.root], cells[:, self.others] + self.starts[:-1]
        known = (cells[:, self.others] >= 0) & (label >= 0)[:, None]
        squares = np.add.reduceat(centre.cells**2, self.starts[:-1])
        by_class = np.sqrt(_squared_norms(centre.classes, (centre.classes**2).sum()))
        mean = float(by_class.max() * math.sqrt(max(1.0, (1.0 - squares).sum())))
        radius = mean * max(1.0, math.sqrt(self.deviations_mu))

        by_cell = _squared_norms(centre.cells, np.repeat(squares, np.diff(self.starts)))
        norms = np.sqrt(np.where(known, by_cell[np.where(known, slots, 0)], 0.0).sum(axis=1))
        norms *= by_class[np.where(label >= 0, label, 0)]
        weights = _clip_factors(norms, radius)

        places = (label[:, None] * self.starts[-1] + slots)[known]
        given = np.broadcast_to(weights[:, None], known.shape)[known]
        weighed = np.bincount(places, given, minlength=classes * self.starts[-1])
        by_row = weighed.reshape(classes, -1)
        there = np.add.reduceat(by_row, self.starts[:-1], axis=1)
        sums = by_row - np.repeat(there, np.diff(self.starts), axis=1) * centre.cells
        return Deviations(sums - np.outer(centre.classes, sums.sum(axis=0)), radius)

    @cached_property
    def _columns(self) -> TreeTables:
        """The tables of every column alone, in the order of the schema."""
        return TreeTables(self.domain, (ROOT,) * len(self.domain.sizes))

    @property
    def _own(self) -> slice:
        """The places of the label's classes among the cells of single columns."""
        return slice(*self._columns.starts[self.root : self.root + 2])

    def _shares(self, centre: Centre, noisy: FloatArray) -> FloatArray:
        """Shares of the cells in each row of each table: the centre plus mean deviations."""
        widths = np.diff(self.starts)
        deviations = noisy - noisy.mean(axis=0)  # without noise both sums are 0
        means = np.add.reduceat(deviations, self.starts[:-1], axis=1) / widths
        deviations -= np.repeat(means, widths, axis=1)
        records = np.maximum(centre.classes * centre.total, self.label_scale)
        rows = centre.cells + deviations / records[:, None]
        rows = onto_simplex(rows.ravel(), np.tile(widths, len(rows))).reshape(rows.shape)
        shares = np.empty(self.tables.starts[-1])
        for column, part in enumerate(np.split(rows, self.starts[1:-1], axis=1)):
            place = self.others[column]
            shares[self.tables.starts[place] : self.tables.starts[place + 1]] = part.ravel()
        own = self.tables.starts[self.root]
        shares[own : own + len(centre.classes)] = centre.classes
        return shares

    def alone(self, cells: IntArray) -> IntArray:
        """Counts of classes, then of the cells of other columns, flat.

        Args:
            cells: The cell of each record in each column [n, d].
        """
        counts = self._columns.counts(cells)
        return np.append(counts[self._own], np.delete(counts, self._own))

    @property
    def alone_scales(self) -> FloatArray:
        """Standard deviations of the noise on them."""
        classes, cells = self.domain.sizes[self.root], self.starts[-1]
        return np.repeat([self.label_scale, self.columns_scale], [classes, cells])

    def in_units(self, alone: FloatArray, sums: FloatArray, radius: float) -> FloatArray:
        """All released numbers, in units of the standard deviation of their noise.

        Args:
            alone: Counts alone, flat.
            sums: Deviations by class and cell [L, s].
            radius: Radius of the deviations, to which their noise is proportional; if it is 0, the
                deviations and their release are 0 as well.
        """
        scaled = sums.ravel() * (self.deviations_mu / radius if radius > 0.0 else 0.0)
        return np.concatenate([alone / self.alone_scales, scaled])


def _squared_norms(shares: FloatArray, squares: FloatArray) -> FloatArray:
    """The squared norm of each indicator minus the shares; `squares`: that of the shares."""
    apart: FloatArray = np.maximum(1.0 - 2.0 * shares + squares, 0.0)
    return apart


def _clip_factors(norms: FloatArray, radius: float) -> FloatArray:
    """The factors that scale norms down to the radius; 1 for norms within it."""
    factors: FloatArray = radius / np.maximum(norms, max(radius, np.finfo(np.float64).tiny))
    return factors


FEW: Final = 4
"""Bins of a numeric column where records are few."""
MANY: Final = 16
"""Bins where records are many."""


@dataclass(frozen=True)
class AdaptiveDeviations:
    """`DeviationTree` over few bins, or over many where there are enough records.

    The classes of the label are counted first, with noise. Many bins are used if the records
    outside the largest class would put at least sqrt(c) / mu of them into an average cell, for c
    other columns and the mu of the deviations: two to three times the noise on the number of
    records of a class in a cell. All else is as in `DeviationTree`.

    Proof: the choice between the two follows from the release of the first of three steps. Each
    costs the same mu, and its proof holds for any earlier releases.

    Attributes:
        few: The tree over few bins.
        many: The same over many, with the same budget.
    """

    few: DeviationTree
    many: DeviationTree

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the released numbers; those of unused bins are 0."""
        classes = self.few.domain.names[self.few.root]
        of_each = [
            [f"{name}, in {tree.domain.bins} bins" for name in tree.names[len(classes) :]]
            for tree in (self.few, self.many)
        ]
        return (*classes, *of_each[0], *of_each[1])

    def effect(self, record: RecordCounts) -> FloatArray:
        """How much one record raises each released number that is not 0."""
        classes = self.few.domain.sizes[self.few.root]
        return np.append(self.few.effect(record), self.many.effect(record)[classes:])

    def of(self, records: RecordCounts, *, seed: int | None) -> TreeRelease:
        """Counts with noise, then deviations with noise, over few or many bins."""
        rng = rng_of(seed, "columns")
        classes = self.few.classes(records, rng)
        chosen = self.chosen(classes)
        release = chosen.after(classes, records, rng=rng, seed=seed)
        numbers, rest = np.split(release.numbers, [len(classes)])
        of_each = [
            rest if tree is chosen else np.zeros(len(tree.names) - len(classes))
            for tree in (self.few, self.many)
        ]
        return release._replace(numbers=np.concatenate([numbers, *of_each]))

    def chosen(self, classes: FloatArray) -> DeviationTree:
        """The tree to use for these noisy counts of the label's classes [L]."""
        outside = classes.sum() - classes.max()
        noise = math.sqrt(len(self.many.others)) / self.many.deviations_mu
        return self.many if outside >= self.many.domain.bins * noise else self.few


def with_more_bins(few: DeviationTree) -> DeviationTree | AdaptiveDeviations:
    """A tree that may use many bins; the given one if they change its classes or nothing at all.

    Args:
        few: A tree over few bins. If its label is numeric, its classes are bins as well, so more
            bins mean other classes.
    """
    many = Domain(few.domain.schema, MANY)
    grows = many.sizes > few.domain.sizes
    adapts = grows.any() and not grows[few.root]
    return AdaptiveDeviations(few, replace(few, domain=many)) if adapts else few
