"""The attack on the form of a table.

GroundHog uses each column's moments and bins, queries use the target's bins. Both miss the form of
a release (the order of rows, repeated rows, digits and bits, gaps between sorted values, values
missing together, how columns and index are written), narrow windows around the target, partial
copies of it and of known records, relations of columns, and dependence without correlation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, FloatArray, GameView
from dpaudit.plugins.release import release_names
from dpaudit_attacks.classifiers import CHOSEN, ClassifierAttack
from dpaudit_attacks.columns import ColumnStack, in_blocks, round_sums
from dpaudit_attacks.form.known import AGREEMENT, KNOWN, NEAR_KNOWN
from dpaudit_attacks.form.mixtures import MIXTURES
from dpaudit_attacks.form.nearness import NEARNESS, WITHIN
from dpaudit_attacks.form.numbers import BITS, DIGITS, MOMENTS, SPACING
from dpaudit_attacks.form.relations import BETWEEN, DEPENDENCE, RELATIONS, SUMS, TRIPLES
from dpaudit_attacks.form.rows import ABSENCE, CROWDS, ORDER, REPETITION
from dpaudit_attacks.form.view import FeatureGroup, TableView

FEATURE_GROUPS: Final = (
    ORDER,
    REPETITION,
    DIGITS,
    BITS,
    SPACING,
    NEARNESS,
    ABSENCE,
    DEPENDENCE,
    KNOWN,
    RELATIONS,
    MOMENTS,
    CROWDS,
    SUMS,
    BETWEEN,
    TRIPLES,
    NEAR_KNOWN,
    WITHIN,
    AGREEMENT,
    MIXTURES,
)


@lru_cache(maxsize=2)
def _known(game: GameView) -> ColumnStack:
    """The records that the attacker knows; cached, with what features derive from them."""
    return ColumnStack.of(game.other_values[None], game.schema)


@lru_cache(maxsize=2)
def _width(schema: Schema) -> int:
    """The number of features of a table's values."""
    return sum(len(group.names(schema)) for group in FEATURE_GROUPS)


def _of_rows(group: FeatureGroup, views: list[TableView]) -> FloatArray:
    """The features of a group; of a unit's rows, those that depend on them are averaged."""
    first, *others = views
    values = group.values(first)
    if not others or not group.of_target:
        return values
    return round_sums(np.mean([values, *(group.values(view) for view in others)], axis=0))


@dataclass(frozen=True, kw_only=True)
class TableForm(ClassifierAttack):
    """Features of how a table is written, and of values and rows near the target or known records.

    A numeric column has 69 features, 107 if it is continuous, any other column 6; every column two
    more for repeated and known rows, every two columns one of dependence (1,024 at most), every
    column one of dependence with each column of the next row (1,024 at most) and one with each of
    later rows (146 at most), every three two (128 at most), columns that may be missing 2 each, and
    1 for every two of them (256 at most). Every two numeric columns have 2 for their order (64
    pairs at most), every three one for their sums (32 at most), every two continuous ones 2 and
    every three one for whole sums (64 and 32 at most), and a numeric column 2 in each category of
    others (64 pairs at most). 24 features are of whole rows, 3 of groups that are equal in all
    categories and 3 without each such column, 5 of missing values in rows, and 2 for each number of
    columns on which rows equal the target. If there are numbers, 6 are of the distance to known
    records, and 1 for each number of numeric columns, and of all columns, on which rows agree with
    one of these; 2 are of rows halfway between two others if there are two numeric columns, and 2
    of rows in line with them if there are three. The last are facts of the release as it was
    written: 16 of the whole, 12 of each column. Features that depend on the target are means over a
    unit's rows.
    """

    classifier: str = CHOSEN

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        """Names of the features, in the order of `features`."""
        names = [name for group in FEATURE_GROUPS for name in group.names(game.schema)]
        return (*names, *release_names(game.schema))

    def features_many(self, values: FloatArray, game: GameView) -> FloatArray:
        """Features [M, f] of the values [M, n, d] of many synthetic tables."""
        plain = np.zeros((len(values), len(release_names(game.schema))))
        return self.release_features(values, plain, game)

    def release_features(
        self, values: FloatArray, written: FloatArray, game: GameView
    ) -> FloatArray:
        """Features [M, f] of values [M, n, d] and of the facts [M, r] of their releases."""
        schema = game.schema
        targets = [ColumnStack.of(row[None, None], schema) for row in game.target_values]
        known = _known(game)

        def features(block: FloatArray) -> FloatArray:
            stack = ColumnStack.of(block, schema)
            views = [TableView(schema, stack, target, known) for target in targets]
            return np.concatenate([_of_rows(group, views) for group in FEATURE_GROUPS], axis=1)

        # Twice the values: several arrays of their size have to fit into the cache.
        cells = max(2 * values.shape[1] * len(schema.columns), _width(schema))
        return np.concatenate([in_blocks(features, values, cells=cells), written], axis=1)
