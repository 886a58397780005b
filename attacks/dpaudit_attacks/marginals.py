"""An attack on generators that are known to measure certain marginals.

The attack MAMA-MIA of Golob et al. 2024 compares the target's density in the synthetic table with
that in a reference table, on the marginals that a generator is known to measure. Here the attacker
knows the table without the target, which is the best possible reference.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dpaudit.errors import SettingsError
from dpaudit.formatting import did_you_mean
from dpaudit.plugins.protocols import BoolArray, FeatureName, FloatArray, GameView
from dpaudit_attacks.classifiers import CHOSEN, ClassifierAttack, require_positive
from dpaudit_attacks.columns import WORD, in_blocks, settled
from dpaudit_attacks.queries import alike_in, count_matches

ALL = "all marginals"
MOST = 65_536
"""Largest number of marginals counted."""


@dataclass(frozen=True, kw_only=True)
class MarginalQueries(ClassifierAttack):
    """For each marginal that the generator measures, the number of rows in the target's cell.

    The first feature is the mean over marginals of the cell's density in the synthetic table over
    that in the table without the target.

    Attributes:
        marginals: The marginals, columns joined by "+" and marginals by "/" ("age+job/income"); all
            of `order` columns if empty.
        order: Columns of each marginal if none are named.
        bins: Equal bins over a numeric column's bounds.

    Raises:
        SettingsError: If an option is outside its range.
    """

    marginals: str = ""
    order: int = 2
    bins: int = 10
    classifier: str = CHOSEN

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("order", self.order)
        require_positive("bins", self.bins)

    def check(self, game: GameView) -> None:
        """Checks that the columns of the marginals exist, and that there are not too many.

        Raises:
            SettingsError: If they are not.
        """
        self._subsets(game)

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        """Names of the features, in the order of `features`."""
        columns = np.array(game.schema.names, dtype=object)
        names = [" & ".join(columns[mask]) for mask in self._subsets(game)]
        counts = [FeatureName(name, "rows in the target's cell") for name in names]
        return (FeatureName(ALL, "mean density ratio at the target"), *counts)

    def features_many(self, values: FloatArray, game: GameView) -> FloatArray:
        """Features [M, f] of the values [M, n, d] of many synthetic tables."""
        subsets = self._subsets(game)
        known = game.other_values[None]
        targets = alike_in(game, self.bins)
        n_rows, columns = values.shape[1:]

        def matches(block: FloatArray) -> FloatArray:
            """Counts [M, q], over all rows of a unit."""
            counts = [count_matches(alike(block), subsets) for alike in targets]
            return np.asarray(sum(counts), dtype=np.float64)

        expected = (matches(known) + 1) * n_rows / max(1, known.shape[1])

        def features(block: FloatArray) -> FloatArray:
            counts = matches(block)
            return np.column_stack([settled(((counts + 1) / expected).mean(axis=1)), counts])

        words = len(subsets) * -(-n_rows // WORD)
        return in_blocks(features, values, cells=n_rows * columns + words)

    def _subsets(self, game: GameView) -> BoolArray:
        names = game.schema.names
        if self.marginals:
            asked = [part.split("+") for part in self.marginals.split("/")]
            unknown = [name for part in asked for name in part if name not in names]
            if unknown:
                hint = did_you_mean(unknown[0], names)
                raise SettingsError(f"marginals: there is no column {unknown[0]!r}{hint}")
            chosen = [tuple(names.index(name) for name in part) for part in asked]
        elif self.order > len(names):
            raise SettingsError(
                f"order={self.order} is more than the {len(names)} columns: lower it"
            )
        else:
            chosen = list(combinations(range(len(names)), self.order))
        if len(chosen) > MOST:
            raise SettingsError(
                f"there are {len(chosen)} marginals of {self.order} columns, more than {MOST}: "
                "lower order, or name marginals"
            )
        masks = np.zeros((len(chosen), len(names)), dtype=np.bool_)
        for mask, places in zip(masks, chosen, strict=True):
            mask[list(places)] = True
        return masks
