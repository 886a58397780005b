"""What the attacks of this package share: a classifier chosen by name, and checked options."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpaudit.errors import SettingsError
from dpaudit.model.encoding import values_of_table
from dpaudit.plugins.protocols import BoolArray, FloatArray, GameView, Scorer
from dpaudit_attacks.classifiers import require_known, train


@dataclass(frozen=True, kw_only=True)
class ClassifierAttack(ABC):
    """An attack that computes features and leaves the decision to a classifier.

    Attributes:
        classifier: "random-forest", "logistic-regression", "gradient-boosting" or "chosen" (the one
            of a rule, lines and a forest that predicts best on the fitting trials).

    Raises:
        SettingsError: If the classifier is unknown.
    """

    classifier: str = "random-forest"

    def __post_init__(self) -> None:
        require_known(self.classifier)

    def check(self, game: GameView) -> None:  # noqa: B027 - a default, not a duty
        """Accepts any game."""

    @abstractmethod
    def features_many(self, values: FloatArray, game: GameView) -> FloatArray:
        """Features [M, f] of the values [M, n, d] of many synthetic tables.

        Args:
            values: Values, as `dpaudit.model.encoding.values_of` gives them.
            game: What the attacker knows.
        """

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        """Features [f] of one synthetic table in canonical form."""
        (features,) = self.features_many(values_of_table(table, game.schema)[None], game)
        return np.asarray(features, dtype=np.float64)

    def fit(self, features: FloatArray, member: BoolArray, *, seed: int) -> Scorer:
        """Trains the classifier on features [n, f] and memberships [n]."""
        return train(self.classifier, features, member, seed=seed)


def require_positive(option: str, value: int) -> None:
    """Checks an option that counts something.

    Args:
        option: Its name.
        value: Its value.

    Raises:
        SettingsError: If it is not a whole number of at least 1.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SettingsError(f"{option} must be a whole number of at least 1, got {value!r}")
