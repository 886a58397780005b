"""An attack on generators that model the data by a tree of two-way marginals, such as MST.

TAMIS (Andrey et al. 2025) recovers the tree from the synthetic table itself, as the generator would
without noise, and compares the target's density under the tree's marginals with its density in a
reference table. Here the attacker knows the table without the target, which is the best possible
reference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from dpaudit.model.setting import AT_LEAST_1, check_number
from dpaudit.plugins.protocols import FeatureName, FloatArray, GameView, IntArray
from dpaudit_attacks.classifiers import CHOSEN, ClassifierAttack
from dpaudit_attacks.columns import ColumnStack, limits, round_sums

_FARTHEST = 3.0
"""Above the largest distance of a marginal from independence, which is 2."""


class _Marginals(NamedTuple):
    """Counts of one table.

    Attributes:
        rows: Number of rows.
        pairs: Rows in each cell of each two-way marginal [s, s], by the slots of all columns; the
            diagonal has the one-way marginals.
    """

    rows: int
    pairs: FloatArray


@dataclass(frozen=True, kw_only=True)
class TreeDensity(ClassifierAttack):
    """The target's density by a tree of two-way marginals that is learnt from each synthetic table.

    The tree spans all columns and has the pairs whose joint frequencies are farthest (L1) from
    those of independent columns, as in MST without noise. The density of a record is the product of
    the frequencies of its cells over the tree's pairs, divided by the frequency of its cell in each
    column once for every pair of the column beyond the first. One row is added to every count, so
    no count is 0. The density of a unit is the product of the densities of its rows.

    Attributes:
        bins: Equal bins over a numeric column's bounds.

    Raises:
        SettingsError: If an option is outside its range.
    """

    bins: int = 10
    classifier: str = CHOSEN

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("bins", self.bins, AT_LEAST_1, whole=True)

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        """Names of the features, in the order of `features`."""
        del game
        whole = "tree of marginals"
        return (
            FeatureName(whole, "log density at the target over that of the known rows"),
            FeatureName(whole, "log density at the target"),
        )

    def features_many(self, values: FloatArray, game: GameView) -> FloatArray:
        """Features [M, f] of the values [M, n, d] of many synthetic tables."""
        targets = self._slots(game.target_values[None], game)[0]
        starts = self._starts(game)
        reference = self._marginals(game.other_values[None], game)
        features = []
        for table in values:
            marginals = self._marginals(table[None], game)
            tree = _tree(marginals, starts)
            density = sum(_log_density(marginals, tree, target) for target in targets)
            expected = sum(_log_density(reference, tree, target) for target in targets)
            features.append((density - expected, density))
        return round_sums(np.array(features, dtype=np.float64))

    def _starts(self, game: GameView) -> IntArray:
        """The first slot of each column [d]; numeric columns come first."""
        columns = game.schema.columns
        numeric = [self.bins + 3 for column in columns if column.kind.numeric]
        categorical = [len(column.categories) + 2 for column in columns if not column.kind.numeric]
        return np.cumsum([0, *numeric, *categorical])

    def _slots(self, values: FloatArray, game: GameView) -> IntArray:
        """The slot of each cell [M, n, d], numeric columns first; each column has its own."""
        stack = ColumnStack.of(values, game.schema)
        numeric = [column for column in game.schema.columns if column.kind.numeric]
        binned = np.empty(stack.numbers.shape, dtype=np.int64)
        for place, column in enumerate(numeric):
            numbers = stack.numbers[:, place]
            binned[:, place] = limits(column, self.bins).searchsorted(numbers, side="right")
            binned[:, place][np.isnan(numbers)] = self.bins + 2
        slots = np.concatenate([binned, stack.slots], axis=1)
        return (slots + self._starts(game)[:-1, None]).swapaxes(1, 2)

    def _marginals(self, values: FloatArray, game: GameView) -> _Marginals:
        """Counts all one- and two-way marginals of one table [1, n, d]."""
        (slots,) = self._slots(values, game)
        marks = np.zeros((len(slots), self._starts(game)[-1]), dtype=np.float32)
        np.put_along_axis(marks, slots, 1.0, axis=1)
        return _Marginals(len(slots), (marks.T @ marks).astype(np.float64))


def _tree(marginals: _Marginals, starts: IntArray) -> list[tuple[int, int]]:
    """The pairs of columns, by position, whose marginals are farthest from independence."""
    joint = marginals.pairs / max(1, marginals.rows)
    alone = joint.diagonal()
    difference = np.abs(joint - np.outer(alone, alone))
    distances = np.add.reduceat(
        np.add.reduceat(difference, starts[:-1], axis=0), starts[:-1], axis=1
    )
    # The maximum spanning tree of the distances.
    spanning = scipy.sparse.csgraph.minimum_spanning_tree(np.triu(_FARTHEST - distances, 1)).tocoo()
    return sorted(zip(spanning.row.tolist(), spanning.col.tolist(), strict=True))


def _log_density(marginals: _Marginals, tree: list[tuple[int, int]], target: IntArray) -> float:
    """The log density of the target's slots [d] by a tree."""
    cells = np.log((marginals.pairs[np.ix_(target, target)] + 1.0) / (marginals.rows + 1.0))
    degree = np.bincount(np.array(tree, dtype=np.int64).ravel(), minlength=len(target))
    pairs = sum(float(cells[pair]) for pair in tree)
    return pairs - float(((degree - 1) * cells.diagonal()).sum())
