"""What the attacks of this package share: a classifier by name, and checked options."""

from __future__ import annotations

from dataclasses import dataclass

from dpaudit.errors import SettingsError
from dpaudit.protocols import BoolArray, FloatArray, GameView, Scorer
from dpaudit_attacks.classifiers import require_known, train


@dataclass(frozen=True, kw_only=True)
class ClassifierAttack:
    """An attack that computes features and leaves the decision to a classifier.

    Attributes:
        classifier: "random-forest", "logistic-regression" or "gradient-boosting".

    Raises:
        SettingsError: If the classifier is unknown.
    """

    classifier: str = "random-forest"

    def __post_init__(self) -> None:
        require_known(self.classifier)

    def check(self, game: GameView) -> None:
        """Any game can be played."""

    def fit(self, features: FloatArray, member: BoolArray, *, seed: int) -> Scorer:
        """Trains the classifier on features [n, f] and memberships [n]."""
        return train(self.classifier, features, member, seed=seed)


def require_positive(option: str, value: int) -> None:
    """Checks an option that counts something.

    Raises:
        SettingsError: If it is not a whole number of at least 1.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SettingsError(f"{option} must be a whole number of at least 1, got {value!r}")
