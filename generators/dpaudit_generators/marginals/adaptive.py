"""Deviations over few or many bins, as many as noisy counts of the classes say records are for."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dpaudit.plugins.protocols import FloatArray
from dpaudit.seeds import rng_of
from dpaudit_generators.marginals.deviations import DeviationTree
from dpaudit_generators.marginals.domain import Domain
from dpaudit_generators.marginals.release import RecordCounts, TreeRelease

FEW: Final = 4
"""Bins of a numeric column where records are few."""
MANY: Final = 16
"""Bins where records are many."""


@dataclass(frozen=True)
class AdaptiveDeviations:
    """`DeviationTree` over few bins, or over many where that pays.

    The classes of the label are counted first, with noise. Many bins are used if the records
    outside the largest class would put at least sqrt(c) / mu of them into an average cell, for c
    other columns and the mu of the deviations: two to three times the noise on the number of
    records of a class in a cell. All else is as in `DeviationTree`.

    Proof: which of the two goes on follows from what the first of three steps released. Each costs
    the same mu, and its proof holds whatever came before.

    Attributes:
        few: The tree over few bins.
        many: The same over many, with the same budget.
    """

    few: DeviationTree
    many: DeviationTree

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the numbers that are released; those of the bins that are not used are 0."""
        classes = self.few.domain.names[self.few.root]
        of_each = [
            [f"{name}, in {tree.domain.bins} bins" for name in tree.names[len(classes) :]]
            for tree in (self.few, self.many)
        ]
        return (*classes, *of_each[0], *of_each[1])

    def effect(self, record: RecordCounts) -> FloatArray:
        """By how much one record raises each number that is released, if it is not 0."""
        classes = self.few.domain.sizes[self.few.root]
        return np.append(self.few.effect(record), self.many.effect(record)[classes:])

    def of(self, records: RecordCounts, *, seed: int | None) -> TreeRelease:
        """Counts with noise, then deviations with noise, over as many bins as pay."""
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
        """The tree that some noisy counts of the label's classes [L] call for."""
        outside = classes.sum() - classes.max()
        noise = math.sqrt(len(self.many.others)) / self.many.deviations_mu
        return self.many if outside >= self.many.domain.bins * noise else self.few


def with_more_bins(few: DeviationTree) -> DeviationTree | AdaptiveDeviations:
    """A tree that may use many bins; the given one where they change its classes, or nothing.

    Args:
        few: A tree over few bins. If its label is numeric, its classes are bins, too, and those of
            more bins are other classes.
    """
    many = Domain(few.domain.schema, MANY)
    grows = many.sizes > few.domain.sizes
    adapts = grows.any() and not grows[few.root]
    return AdaptiveDeviations(few, replace(few, domain=many)) if adapts else few
