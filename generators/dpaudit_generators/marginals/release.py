"""What one training releases of its table: all that the proof is about."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple, Protocol

import numpy as np

from dpaudit.plugins.protocols import FloatArray, IntArray
from dpaudit.seeds import rng_of
from dpaudit_generators.marginals.choice import choose_tree, distances
from dpaudit_generators.marginals.domain import Domain
from dpaudit_generators.marginals.shares import shares_along, total_of
from dpaudit_generators.marginals.tables import ROOT, TreeTables


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
    """What one training releases.

    Attributes:
        tables: Which tables were counted.
        shares: Shares of their cells, from the noisy counts.
        numbers: The noisy counts, and the tree if it was chosen.
    """

    tables: TreeTables
    shares: FloatArray
    numbers: FloatArray


@dataclass(frozen=True)
class PublicTree:
    """Tables that the schema alone names, with Gaussian noise on every cell.

    A record is in one cell of each of d tables, so to add or remove it changes the counts by
    sqrt(d) in L2 norm, and noise of standard deviation sqrt(d) / mu is mu-Gaussian DP (Dong, Roth
    and Su 2022, Theorem 2.7). No smaller mu is true: the sum of the record's d cells is normal with
    standard deviation d / mu, and the record shifts it by d.

    Attributes:
        tables: The tables.
        mu: What they cost.
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
        """By how much one record raises each number that is released."""
        return record.counts(self.tables).astype(np.float64)

    def of(self, records: RecordCounts, *, seed: int | None) -> TreeRelease:
        """Counts with noise."""
        noisy = noised(records.counts(self.tables), self.scale, rng_of(seed, "noise"))
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
        rho: What all steps cost together.
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
        """Epsilon of the choice of a pair."""
        return math.sqrt(8.0 * self._step / max(1, self._pairs))

    @property
    def scales(self) -> FloatArray:
        """Standard deviations of the noise on columns alone, and on pairs."""
        tables = np.array([len(self.domain.sizes), max(1, self._pairs)])
        found: FloatArray = np.sqrt(tables / (2.0 * self._step))
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the numbers that are released; a pair that is not in the tree has zeros."""
        pairs = combinations(self.domain.names, 2)
        joint = [f"{a} & {b}" for one, other in pairs for a in one for b in other]
        return (*self.alone.names, *joint)

    def effect(self, record: RecordCounts) -> FloatArray:
        """The same of columns alone; which pairs are counted is not known beforehand: zeros."""
        alone = record.counts(self.alone).astype(np.float64)
        return np.append(alone, np.zeros(len(self.names) - len(alone)))

    def of(self, records: RecordCounts, *, seed: int | None) -> TreeRelease:
        """Counts, choices and counts again, each with noise."""
        domain, alone = self.domain, self.alone
        scale, pair_scale = self.scales
        single = noised(records.counts(alone), scale, rng_of(seed, "columns"))
        shares = shares_along(alone, single, np.full(len(domain.sizes), scale))
        scores = distances(domain, records.joint(domain), shares, total_of(single, domain.sizes))
        rng = rng_of(seed, "choice")
        tree = choose_tree(scores, epsilon=self.edge_epsilon, root=self.root, rng=rng)
        tables = TreeTables(domain, tree)
        noisy = noised(records.counts(tables), pair_scale, rng_of(seed, "pairs"))
        own = slice(tables.starts[self.root], tables.starts[self.root + 1])
        noisy[own] = alone.table(single, self.root)[0]  # a root is a column alone
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
        """The noisy counts of each pair of columns in order, flat; zeros if it is not counted."""
        found = []
        for one, other in combinations(range(len(self.domain.sizes)), 2):
            if tables.parents[other] == one:
                found.append(tables.table(noisy, other).ravel())
            elif tables.parents[one] == other:
                found.append(tables.table(noisy, one).T.ravel())
            else:
                found.append(np.zeros(self.domain.sizes[one] * self.domain.sizes[other]))
        return found


def noised(
    numbers: IntArray | FloatArray, scale: float | FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Numbers with Gaussian noise.

    Args:
        numbers: Of any shape.
        scale: Standard deviation of the noise, or of the noise on each.
        rng: Of the noise.
    """
    found: FloatArray = numbers + scale * rng.standard_normal(numbers.shape)
    return found
