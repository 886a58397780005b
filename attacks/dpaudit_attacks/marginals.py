"""An attack on generators that are known to measure certain marginals.

The attack MAMA-MIA of Golob et al. 2024 compares the target's density in the synthetic table and in
a reference table, on the marginals that a generator is known to measure. Here the attacker knows
the table without the target, which is the best possible reference.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dpaudit.errors import SettingsError
from dpaudit.formatting import did_you_mean
from dpaudit.model.setting import AT_LEAST_1, check_number
from dpaudit.plugins.protocols import BoolArray, FeatureName, FloatArray, GameView
from dpaudit_attacks.classifiers import CHOSEN, ClassifierAttack
from dpaudit_attacks.columns import WORD, in_blocks, round_sums
from dpaudit_attacks.queries import count_matches, matchers_of

ALL = "all marginals"
MOST = 65_536
"""Largest number of marginals counted."""


@dataclass(frozen=True, kw_only=True)
class MarginalQueries(ClassifierAttack):
    """For each marginal that the generator measures, the number of rows in the target's cell.

    The first feature is the mean, over marginals, of the cell's density in the synthetic table
    divided by its density in the table without the target.

    Attributes:
        marginals: The marginals, with columns joined by "+" and marginals by "/"
            ("age+job/income"); if empty, all marginals of `order` columns.
        order: Number of columns of each marginal, if none are named.
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
        check_number("order", self.order, AT_LEAST_1, whole=True)
        check_number("bins", self.bins, AT_LEAST_1, whole=True)

    def check(self, game: GameView) -> None:
        """Checks that the marginals' columns exist, and that there are not too many marginals.

        Raises:
            SettingsError: If a column is unknown, or there are too many marginals.
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
        known_table = game.other_values[None]
        targets = matchers_of(game, self.bins)
        n_rows, columns = values.shape[1:]

        def matches(block: FloatArray) -> FloatArray:
            """Counts [M, q], over all rows of a unit."""
            counts = [count_matches(match(block), subsets) for match in targets]
            return np.asarray(sum(counts), dtype=np.float64)

        # One is added to every count, so that no density is 0.
        expected = (matches(known_table) + 1) * n_rows / max(1, known_table.shape[1])

        def features(block: FloatArray) -> FloatArray:
            counts = matches(block)
            return np.column_stack([round_sums(((counts + 1) / expected).mean(axis=1)), counts])

        words = len(subsets) * -(-n_rows // WORD)
        return in_blocks(features, values, cells=n_rows * columns + words)

    def _subsets(self, game: GameView) -> BoolArray:
        """The marginals as column subsets [q, d]."""
        names = game.schema.names
        if self.marginals:
            requested = [part.split("+") for part in self.marginals.split("/")]
            unknown = [name for part in requested for name in part if name not in names]
            if unknown:
                hint = did_you_mean(unknown[0], names)
                raise SettingsError(f"marginals: there is no column {unknown[0]!r}{hint}")
            chosen = [tuple(names.index(name) for name in part) for part in requested]
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
