"""The twelve classifiers of the papers, with the defaults of their libraries.

Jordon, Yoon and van der Schaar 2019 name them; as in their evaluation nothing is tuned, so that a
score says something about the data and not about the search for settings.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from dpaudit.errors import MissingExtraError, SettingsError
from dpaudit.formatting import did_you_mean


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

_PACKAGE, _EXTRA = "xgboost", "utility"


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
