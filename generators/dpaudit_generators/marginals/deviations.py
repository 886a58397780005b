"""Counts of single columns, then the deviations of each class from them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from dpaudit.plugins.protocols import FloatArray, IntArray
from dpaudit.seeds import rng_of
from dpaudit_generators.batches import Domain
from dpaudit_generators.marginals.release import (
    ROOT,
    RecordCounts,
    TreeRelease,
    TreeTables,
    add_noise,
    label_star,
    onto_simplex,
    total_of,
)

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
