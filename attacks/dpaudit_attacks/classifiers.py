"""Classifiers that distinguish the two worlds, and the base class of attacks that use them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.errors import SettingsError
from dpaudit.formatting import did_you_mean
from dpaudit.model.encoding import values_of_table
from dpaudit.plugins.protocols import BoolArray, FloatArray, GameView, Scorer
from dpaudit_attacks.chosen import train_chosen

# scikit-learn and `scipy.stats` take a second to import, so they are imported where they are used:
# workers, which only compute features, load neither.

TREES = 100
SCREENED = 64
"""Number of features for the forest.

Membership shows in a few of many features, and a forest that tries the square root of thousands at
each split hardly ever selects them. Measured with 160 models of 4096 normal features, 240 scored,
10 repetitions. AUC of scikit-learn's default forest, of one that tries a third of all features (16
times the time), and of this one: one feature shifted by 2.3 standard deviations .66, .92, .92; five
by .8 .56, .76, .78; a hundred by .25 .54, .57, .60; none .48, .50, .50 (standard error .012).
"""
TRIED = 1 / 3
"""Share of these features that the forest tries at each split."""


def separation(features: FloatArray, member: npt.ArrayLike) -> FloatArray:
    """How well each feature alone distinguishes the worlds: |AUC - 1/2|.

    The AUC is the Mann-Whitney statistic of mid-ranks, so ties count one half.

    Args:
        features: Feature vectors [n, f].
        member: Memberships [n], of both worlds.

    Returns:
        Separations [f] in [0, 1/2].
    """
    from scipy.stats import rankdata

    inside = np.asarray(member, dtype=bool)
    n_in, n_out = int(inside.sum()), int((~inside).sum())
    rank_sum = rankdata(features, axis=0)[inside].sum(axis=0)
    auc = (rank_sum - n_in * (n_in + 1) / 2) / (n_in * n_out)
    return np.asarray(np.abs(auc - 0.5), dtype=np.float64)


def _random_forest(seed: int, n_features: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.feature_selection import SelectKBest
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(
        SelectKBest(separation, k=min(SCREENED, n_features)),
        StandardScaler(),  # trees read float32, in which 1e9 and 1e9 + 1 are the same number
        RandomForestClassifier(n_estimators=TREES, max_features=TRIED, random_state=seed, n_jobs=1),
    )


def _logistic_regression(seed: int, n_features: int) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000, random_state=seed))


def _gradient_boosting(seed: int, n_features: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=seed)


CHOSEN = "chosen"
"""Chooses a rule, a line or a forest by cross-validation."""
_BUILDERS: dict[str, Callable[[int, int], Any]] = {
    "random-forest": _random_forest,
    "logistic-regression": _logistic_regression,
    "gradient-boosting": _gradient_boosting,
}


def require_known(name: str) -> None:
    """Checks the name of a classifier.

    Raises:
        SettingsError: If no classifier has this name; the message suggests the closest one.
    """
    classifiers = [CHOSEN, *_BUILDERS]
    if name not in classifiers:
        hint = did_you_mean(str(name), classifiers)
        raise SettingsError(
            f"unknown classifier {name!r}{hint}; there are: {', '.join(classifiers)}"
        )


@dataclass(frozen=True)
class Probability:
    """Scores feature vectors by a fitted classifier's probability of membership.

    Attributes:
        model: A fitted scikit-learn classifier of {False, True}.
    """

    model: Any

    def __call__(self, features: FloatArray) -> FloatArray:
        """P(in) [n] of feature vectors [n, f]."""
        return np.asarray(self.model.predict_proba(features)[:, 1], dtype=np.float64)


@dataclass(frozen=True)
class Undecided:
    """Gives all vectors the same score, because no feature varied in training.

    Attributes:
        score: The probability 1/2, or log-odds of 0.
    """

    score: float

    def __call__(self, features: FloatArray) -> FloatArray:
        """The constant [n]."""
        return np.full(len(features), self.score)


def train(name: str, features: FloatArray, member: BoolArray, *, seed: int) -> Scorer:
    """Trains a membership classifier.

    Feature selection and scaling are fitted here, on these models only, so cross-validation around
    this call is valid.

    Args:
        name: "random-forest", "logistic-regression", "gradient-boosting" or "chosen".
        features: Feature vectors [n, f], finite.
        member: Memberships [n].
        seed: Seed in [0, 2**32).

    Returns:
        The fitted scorer: P(in), or log-odds for "chosen".

    Raises:
        SettingsError: If the name is unknown, or one world has no model to learn from.
    """
    require_known(name)
    if member.all() or not member.any():
        raise SettingsError(
            f"the attack has models of one world only ({len(member)}) to learn from: "
            "fit it on models of both worlds"
        )
    if (features == features[0]).all():
        return Undecided(0.0 if name == CHOSEN else 0.5)
    if name == CHOSEN:
        return train_chosen(features, member, seed=seed)
    model = _BUILDERS[name](seed, features.shape[1])
    return Probability(model.fit(features, member))


@dataclass(frozen=True, kw_only=True)
class LearningAttack(ABC):
    """An attack whose classifier learns from features of any kind.

    Attributes:
        classifier: Name of the classifier.

    Raises:
        SettingsError: If the classifier is unknown.
    """

    classifier: str

    def __post_init__(self) -> None:
        require_known(self.classifier)

    def check(self, game: GameView) -> None:  # noqa: B027 - a default, to be overridden or not
        """Accepts any game."""

    def fit(self, features: FloatArray, member: BoolArray, *, seed: int) -> Scorer:
        """Trains the classifier on features [n, f] and memberships [n]."""
        return train(self.classifier, features, member, seed=seed)


@dataclass(frozen=True, kw_only=True)
class ClassifierAttack(LearningAttack):
    """An attack that computes features for a classifier.

    Attributes:
        classifier: "random-forest", "logistic-regression", "gradient-boosting" or "chosen" (a rule,
            a line or a forest, whichever predicts best on the fitting trials).

    Raises:
        SettingsError: If the classifier is unknown.
    """

    classifier: str = "random-forest"

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
