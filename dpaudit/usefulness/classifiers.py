"""The twelve classifiers of the papers, with the defaults of their libraries.

Jordon, Yoon and van der Schaar 2019 name them; as in their evaluation nothing is tuned, so that a
score says something about the data and not about the search for settings.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from dpaudit.errors import MissingExtraError, SettingsError
from dpaudit.formatting import did_you_mean
from dpaudit.plugins.protocols import BoolArray, FloatArray

_PACKAGE, _EXTRA = "xgboost", "utility"
GUESSING = 0.5
"""AUROC of a classifier that knows nothing."""


class _Home(NamedTuple):
    """Where a classifier is found."""

    module: str
    attribute: str


CLASSIFIERS: Final[Mapping[str, _Home]] = MappingProxyType(
    {
        "logistic-regression": _Home("sklearn.linear_model", "LogisticRegression"),
        "random-forest": _Home("sklearn.ensemble", "RandomForestClassifier"),
        "gaussian-naive-bayes": _Home("sklearn.naive_bayes", "GaussianNB"),
        "bernoulli-naive-bayes": _Home("sklearn.naive_bayes", "BernoulliNB"),
        "linear-svm": _Home("sklearn.svm", "LinearSVC"),
        "decision-tree": _Home("sklearn.tree", "DecisionTreeClassifier"),
        "lda": _Home("sklearn.discriminant_analysis", "LinearDiscriminantAnalysis"),
        "adaboost": _Home("sklearn.ensemble", "AdaBoostClassifier"),
        "bagging": _Home("sklearn.ensemble", "BaggingClassifier"),
        "gbm": _Home("sklearn.ensemble", "GradientBoostingClassifier"),
        "mlp": _Home("sklearn.neural_network", "MLPClassifier"),
        "xgboost": _Home("xgboost", "XGBRegressor"),  # of 0 and 1, as in the papers
    }
)
"""Every classifier by name, in the order of the papers' tables."""


def chosen(names: Sequence[str] | None) -> tuple[str, ...]:
    """The classifiers to train.

    Args:
        names: Those asked for; None for all that are installed.

    Returns:
        Their names, in the order of the papers' tables.

    Raises:
        SettingsError: If one is unknown, or none is named.
        MissingExtraError: If one is named whose library is not installed.
    """
    if names is None:
        return tuple(name for name in CLASSIFIERS if _installed(name))
    for name in names:
        if name not in CLASSIFIERS:
            hint = did_you_mean(name, list(CLASSIFIERS))
            raise SettingsError(f"no classifier {name!r}{hint}; there is {', '.join(CLASSIFIERS)}")
        if not _installed(name):
            raise MissingExtraError(f"the classifier {name}", _PACKAGE, _EXTRA)
    if not names:
        raise SettingsError("`classifiers` names none; leave it out for all of them")
    return tuple(name for name in CLASSIFIERS if name in names)


def left_out(names: Sequence[str]) -> tuple[str, ...]:
    """Classifiers that are not among the names because their library is not installed."""
    return tuple(name for name in CLASSIFIERS if name not in names and not _installed(name))


def make(name: str, *, seed: int) -> Any:
    """A classifier before training.

    Args:
        name: Its name.
        seed: Seed of whatever is random in it, in [0, 2**32).

    Returns:
        An estimator with the defaults of its library.
    """
    home = CLASSIFIERS[name]
    estimator = getattr(import_module(home.module), home.attribute)()
    known = estimator.get_params()
    if "random_state" in known:
        estimator.set_params(random_state=seed)
    if name == _PACKAGE:
        estimator.set_params(n_jobs=1)
    return estimator


def _installed(name: str) -> bool:
    home = CLASSIFIERS[name]
    return home.module != _PACKAGE or importlib.util.find_spec(_PACKAGE) is not None


class Examples(NamedTuple):
    """Encoded records with their labels.

    Attributes:
        features: Features [n, w] in [0, 1].
        positive: Whether the label is the positive one [n].
    """

    features: FloatArray
    positive: BoolArray

    @property
    def has_both_classes(self) -> bool:
        """Whether there is anything to tell apart."""
        return bool(self.positive.any() and not self.positive.all())


class Areas(NamedTuple):
    """How well scores separate positive from negative records.

    Attributes:
        auroc: Area under the ROC curve.
        auprc: Area under the precision-recall curve (average precision).
    """

    auroc: float
    auprc: float


class Prediction(NamedTuple):
    """What a trained classifier says of the records of several tables.

    Attributes:
        scores: One array [n] for each table; larger means positive.
        learned: False if there was nothing to learn, so that all scores are equal.
    """

    scores: tuple[FloatArray, ...]
    learned: bool


def predict(
    name: str, examples: Examples, tables: Sequence[FloatArray], *, seed: int
) -> Prediction:
    """Trains a classifier and scores records with it.

    Examples of one class teach nothing: then all scores are equal, whose areas are those of a
    guess. The same holds where the classifier cannot be fitted (such as a discriminant analysis of
    columns that are all constant) or gives scores that are no finite numbers.

    Args:
        name: The classifier.
        examples: What it is trained on.
        tables: Features [n, w] of the records to score.
        seed: Seed of whatever is random in it.

    Returns:
        The scores.
    """
    if not examples.has_both_classes:
        return _guess(tables)
    estimator = make(name, seed=seed)
    with warnings.catch_warnings(), threadpool_limits(1), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # not converged, collinear: their scores count as they are
        try:
            estimator.fit(examples.features, examples.positive.astype(np.int64))
            scores = tuple(_scores(estimator, features) for features in tables)
        except (ValueError, ArithmeticError, IndexError):  # LinAlgError is a ValueError
            return _guess(tables)
    if not all(np.isfinite(one).all() for one in scores):
        return _guess(tables)
    return Prediction(scores, True)


def areas(positive: BoolArray, scores: FloatArray) -> Areas:
    """Areas under both curves; of a single class those of a guess.

    Args:
        positive: Which records are positive [n].
        scores: Their scores [n].

    Returns:
        AUROC and AUPRC.
    """
    from sklearn.metrics import average_precision_score, roc_auc_score

    if positive.all() or not positive.any():
        return Areas(GUESSING, float(positive.mean()))
    auroc = float(roc_auc_score(positive, scores))
    return Areas(auroc, float(average_precision_score(positive, scores)))


def _guess(tables: Sequence[FloatArray]) -> Prediction:
    return Prediction(tuple(np.zeros(len(features)) for features in tables), False)


def _scores(estimator: Any, features: FloatArray) -> FloatArray:
    if hasattr(estimator, "predict_proba"):
        found = estimator.predict_proba(features)[:, 1]
    elif hasattr(estimator, "decision_function"):
        found = estimator.decision_function(features)
    else:  # a regression
        found = estimator.predict(features)
    return np.asarray(found, dtype=np.float64)
