"""The GroundHog attacks: features of the whole synthetic table, whoever the target is.

Stadler, Oprisanu, Troncoso: "Synthetic Data - Anonymisation Groundhog Day", USENIX Security 2022.
The features know nothing of the target; the classifier learns what its presence does to them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpaudit.errors import SettingsError
from dpaudit.protocols import FeatureName, FloatArray, GameView
from dpaudit_attacks import correlation, histogram, naive
from dpaudit_attacks.base import ClassifierAttack, require_positive


@dataclass(frozen=True, kw_only=True)
class Naive(ClassifierAttack):
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

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        """Features [f] of one synthetic table in canonical form."""
        return naive.values(table, game.schema, spread=self.spread)


@dataclass(frozen=True, kw_only=True)
class Histogram(ClassifierAttack):
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

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        """Features [f] of one synthetic table in canonical form."""
        return histogram.values(table, game.schema, bins=self.bins)


@dataclass(frozen=True, kw_only=True)
class Correlation(ClassifierAttack):
    """Correlations of every two numeric columns and one-hot categories."""

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        """Names of the features, in the order of `features`."""
        return correlation.names(game.schema)

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        """Features [f] of one synthetic table in canonical form."""
        return correlation.values(table, game.schema)


@dataclass(frozen=True, kw_only=True)
class Ensemble(ClassifierAttack):
    """The three feature sets together: naive, histogram, correlation.

    Attributes:
        bins: As for `Histogram`.
        spread: As for `Naive`.

    Raises:
        SettingsError: If an option is outside its range.
    """

    bins: int = 10
    spread: str = "std"

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

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        """Features [f] of one synthetic table in canonical form."""
        return np.concatenate(
            [
                naive.values(table, game.schema, spread=self.spread),
                histogram.values(table, game.schema, bins=self.bins),
                correlation.values(table, game.schema),
            ]
        )


def _require_spread(spread: str) -> None:
    if spread not in naive.SPREADS:
        known = " or ".join(repr(name) for name in naive.SPREADS)
        raise SettingsError(f"spread must be {known}, got {spread!r}")
