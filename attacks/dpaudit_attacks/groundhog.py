"""The GroundHog attacks: features of the whole synthetic table, whatever the target is.

Stadler, Oprisanu, Troncoso: "Synthetic Data - Anonymisation Groundhog Day", USENIX Security 2022.
The features do not depend on the target; the classifier learns how its presence changes them.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from dpaudit.errors import SettingsError
from dpaudit.model.encoding import width
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, FloatArray, GameView
from dpaudit_attacks import correlation, histogram, naive
from dpaudit_attacks.base import ClassifierAttack, require_positive
from dpaudit_attacks.classifiers import CHOSEN
from dpaudit_attacks.columns import ColumnStack, in_blocks


class _GroundHog(ClassifierAttack):
    """What the attacks of the paper share: they process a few tables at a time."""

    def features_many(self, values: FloatArray, game: GameView) -> FloatArray:
        """Features [M, f] of the values [M, n, d] of many synthetic tables."""
        n_rows, encoded = values.shape[1], width(game.schema)
        return in_blocks(
            lambda block: self._features(block, game.schema),
            values,
            cells=encoded * max(n_rows, encoded),
        )

    @abstractmethod
    def _features(self, values: FloatArray, schema: Schema) -> FloatArray:
        """Features [m, f] of the values [m, n, d] of a few tables."""


@dataclass(frozen=True, kw_only=True)
class Naive(_GroundHog):
    """Summary statistics of each column.

    Attributes:
        spread: "std" (standard deviation, the paper's text) or "variance" (its published code).

    Raises:
        SettingsError: If an option is outside its range.
    """

    spread: str = "std"

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_spread(self.spread)

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        """Names of the features, in the order of `features`."""
        return naive.names(game.schema, spread=self.spread)

    def _features(self, values: FloatArray, schema: Schema) -> FloatArray:
        return naive.values(ColumnStack.of(values, schema), schema, spread=self.spread)


@dataclass(frozen=True, kw_only=True)
class Histogram(_GroundHog):
    """Proportions of each column's values in public bins and categories.

    Attributes:
        bins: Equal bins over a numeric column's bounds.

    Raises:
        SettingsError: If an option is outside its range.
    """

    bins: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("bins", self.bins)

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        """Names of the features, in the order of `features`."""
        return histogram.names(game.schema, bins=self.bins)

    def _features(self, values: FloatArray, schema: Schema) -> FloatArray:
        return histogram.values(ColumnStack.of(values, schema), schema, bins=self.bins)


@dataclass(frozen=True, kw_only=True)
class Correlation(_GroundHog):
    """Correlations of every two numeric columns and one-hot categories."""

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        """Names of the features, in the order of `features`."""
        return correlation.names(game.schema)

    def _features(self, values: FloatArray, schema: Schema) -> FloatArray:
        return correlation.values(values, schema)


@dataclass(frozen=True, kw_only=True)
class Ensemble(_GroundHog):
    """The three feature sets together: naive, histogram, correlation.

    Attributes:
        bins: As for `Histogram`.
        spread: As for `Naive`.

    Raises:
        SettingsError: If an option is outside its range.
    """

    bins: int = 10
    spread: str = "std"
    classifier: str = CHOSEN

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("bins", self.bins)
        _require_spread(self.spread)

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        """Names of the features, in the order of `features`."""
        return (
            *naive.names(game.schema, spread=self.spread),
            *histogram.names(game.schema, bins=self.bins),
            *correlation.names(game.schema),
        )

    def _features(self, values: FloatArray, schema: Schema) -> FloatArray:
        stack = ColumnStack.of(values, schema)
        parts = [
            naive.values(stack, schema, spread=self.spread),
            histogram.values(stack, schema, bins=self.bins),
            correlation.values(values, schema),
        ]
        return np.concatenate(parts, axis=1)


def _require_spread(spread: str) -> None:
    if spread not in naive.SPREADS:
        known = " or ".join(repr(name) for name in naive.SPREADS)
        raise SettingsError(f"spread must be {known}, got {spread!r}")
