"""The prediction task for a table, and the classifiers for it.

The classifiers are the twelve of Jordon, Yoon and van der Schaar 2019 with the defaults of their
libraries. As in their evaluation nothing is tuned, so a score reflects the data and not a search
for settings.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from dpaudit.errors import DataError, MissingExtraError, SettingsError
from dpaudit.formatting import did_you_mean
from dpaudit.model.column import Category, Column, Kind
from dpaudit.model.encoding import encode
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import BoolArray, FloatArray
from dpaudit.seeds import Stream

_PACKAGE, _EXTRA = "xgboost", "utility"
GUESSING = 0.5
"""AUROC of an uninformed classifier."""


@dataclass(frozen=True, kw_only=True)
class PredictionTask:
    """Predict whether the label has one value, from all other columns.

    Attributes:
        schema: The public schema.
        label: Name of the label column.
        positive: The value to predict; every other value is negative.
    """

    schema: Schema
    label: str
    positive: Category

    @cached_property
    def feature_schema(self) -> Schema:
        """The schema without the label."""
        columns = tuple(column for column in self.schema.columns if column.name != self.label)
        return replace(self.schema, columns=columns, label=None)

    def examples(self, table: pd.DataFrame) -> Examples:
        """A canonical table as features and labels.

        Features are scaled by the schema's bounds and cut off there, categories are one-hot, and
        missing values are features of their own, so no step depends on other records.
        """
        features: FloatArray = np.clip(encode(table, self.feature_schema), 0.0, 1.0)
        return Examples(features, (table[self.label] == self.positive).to_numpy(dtype=bool))


def task_of(schema: Schema, *, label: str | None, positive: str | None) -> PredictionTask:
    """The task for a schema and a caller's choices.

    Args:
        schema: The public schema.
        label: Name of the label column; None for the schema's own.
        positive: The value to predict, as text; None for the second of two.

    Returns:
        The task.

    Raises:
        SettingsError: If there is no such column or value, or no other column to predict it from.
    """
    name = schema.label if label is None else label
    if name is None:
        raise SettingsError("the schema names no label column: give `label`, the column to predict")
    columns = {column.name: column for column in schema.columns}
    if name not in columns:
        hint = did_you_mean(name, list(columns))
        raise SettingsError(f"label {name!r} is not a column{hint}: give another `label`")
    if len(columns) < 2:
        raise SettingsError(f"there is no column but the label {name!r} to predict it from")
    column = columns[name]
    if column.missing:
        raise SettingsError(
            f"label {name!r} may be missing: drop the rows without a label and say in the schema "
            "that none is missing"
        )
    if column.kind is Kind.CONTINUOUS:
        raise SettingsError(
            f"label {name!r} is continuous: `label` must name a column of classes; give another"
        )
    return PredictionTask(schema=schema, label=name, positive=_positive(column, positive))


class HeldOut(NamedTuple):
    """A table in two parts.

    Attributes:
        train: The part that generators and classifiers learn from.
        test: The part that they never see.
    """

    train: pd.DataFrame
    test: pd.DataFrame


def split(table: pd.DataFrame, task: PredictionTask, *, share: float, seed: int) -> HeldOut:
    """Splits a table at random, positive and negative records apart.

    Args:
        table: The canonical table.
        task: What is predicted.
        share: Share of the test part, in (0, 1).
        seed: Root of the random streams.

    Returns:
        Both parts, each with at least one record of either class; rows are numbered from 0.

    Raises:
        DataError: If one class has fewer than two records.
    """
    positive = task.examples(table).positive
    check_classes(positive.sum(), len(positive), task, what="the table", least=2)
    rng = Stream(seed, "utility", "split").rng()
    chosen = np.zeros(len(table), dtype=bool)
    for members in (np.flatnonzero(positive), np.flatnonzero(~positive)):
        count = min(max(round(share * len(members)), 1), len(members) - 1)
        chosen[rng.permutation(members)[:count]] = True
    return HeldOut(table[~chosen].reset_index(drop=True), table[chosen].reset_index(drop=True))


def check_classes(
    positive: int, rows: int, task: PredictionTask, *, what: str, least: int = 1
) -> None:
    """Refuses records with too few of one class.

    Args:
        positive: Number of positive records.
        rows: Number of records.
        task: What is predicted.
        what: Which records, for the message.
        least: Fewest records of either class.

    Raises:
        DataError: If there are fewer.
    """
    for count, relation in ((positive, "is"), (rows - positive, "is not")):
        if count < least:
            raise DataError(
                f"{what} has {count} rows in which {task.label!r} {relation} {task.positive!r}, "
                f"{least} are needed: give more rows, or another `label` or `positive`"
            )


def _positive(column: Column, positive: str | None) -> Category:
    if column.kind is Kind.INTEGER:
        lower, upper = map(int, column.bounds)
        if positive is None and upper - lower == 1:
            return upper
        if positive is not None:
            with suppress(ValueError):
                if lower <= int(positive) <= upper:
                    return int(positive)
        shown = f"a whole number in [{lower}, {upper}]"
    else:
        values = column.categories
        if positive is None and len(values) == 2:
            return values[1]
        for value in values:
            if positive is not None and str(value) == str(positive):
                return value
        shown = f"one of {', '.join(map(repr, values[:10]))}{', …' if len(values) > 10 else ''}"
    if positive is None:
        raise SettingsError(
            f"label {column.name!r} has more than two values: say which is the `positive` one, "
            f"{shown}"
        )
    raise SettingsError(f"`positive` is {positive!r}; label {column.name!r} takes {shown}")


CLASSIFIERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "logistic-regression": "sklearn.linear_model:LogisticRegression",
        "random-forest": "sklearn.ensemble:RandomForestClassifier",
        "gaussian-naive-bayes": "sklearn.naive_bayes:GaussianNB",
        "bernoulli-naive-bayes": "sklearn.naive_bayes:BernoulliNB",
        "linear-svm": "sklearn.svm:LinearSVC",
        "decision-tree": "sklearn.tree:DecisionTreeClassifier",
        "lda": "sklearn.discriminant_analysis:LinearDiscriminantAnalysis",
        "adaboost": "sklearn.ensemble:AdaBoostClassifier",
        "bagging": "sklearn.ensemble:BaggingClassifier",
        "gbm": "sklearn.ensemble:GradientBoostingClassifier",
        "mlp": "sklearn.neural_network:MLPClassifier",
        "xgboost": "xgboost:XGBRegressor",  # of 0 and 1, as in the papers
    }
)
"""Module and class of each classifier, by name, in the order of the papers' tables."""


def choose(names: Sequence[str] | None) -> tuple[str, ...]:
    """The classifiers to train.

    Args:
        names: Those asked for; None for all that are installed.

    Returns:
        Their names, in the order of the papers' tables.

    Raises:
        SettingsError: If a name is unknown, or `names` is empty.
        MissingExtraError: If the library of a named classifier is not installed.
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


def make_classifier(name: str, *, seed: int) -> Any:
    """A classifier before training.

    Args:
        name: Its name.
        seed: Seed of the classifier's random draws, in [0, 2**32).

    Returns:
        An estimator with the defaults of its library.
    """
    estimator = resolve_name(CLASSIFIERS[name])()
    known = estimator.get_params()
    if "random_state" in known:
        estimator.set_params(random_state=seed)
    if name == _PACKAGE:
        estimator.set_params(n_jobs=1)
    return estimator


def _installed(name: str) -> bool:
    return name != _PACKAGE or importlib.util.find_spec(_PACKAGE) is not None


class Examples(NamedTuple):
    """Encoded records with their labels.

    Attributes:
        features: Features [n, w] in [0, 1].
        positive: Whether the label is the positive one [n].
    """

    features: FloatArray
    positive: BoolArray


class Areas(NamedTuple):
    """How well scores separate positive from negative records.

    Attributes:
        auroc: Area under the ROC curve.
        auprc: Area under the precision-recall curve (average precision).
    """

    auroc: float
    auprc: float


class Prediction(NamedTuple):
    """The scores of a trained classifier for the records of several tables.

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

    All scores are equal, as for a guess, if the examples have one class only, if the classifier
    cannot be fitted (such as a discriminant analysis of constant columns), or if its scores are not
    finite.

    Args:
        name: The classifier.
        examples: What it is trained on.
        tables: Features [n, w] of the records to score.
        seed: Seed of the classifier's random draws.

    Returns:
        The scores.
    """
    if examples.positive.all() or not examples.positive.any():
        return _guess(tables)
    estimator = make_classifier(name, seed=seed)
    with warnings.catch_warnings(), threadpool_limits(1), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # not converged, collinear: their scores count as they are
        try:
            estimator.fit(examples.features, examples.positive.astype(np.int64))
            scores = tuple(_scores(estimator, features) for features in tables)
        except (ValueError, ArithmeticError, IndexError):  # LinAlgError is a ValueError
            return _guess(tables)
    if not all(np.isfinite(column).all() for column in scores):
        return _guess(tables)
    return Prediction(scores, True)


def curve_areas(positive: BoolArray, scores: FloatArray) -> Areas:
    """Areas under both curves; those of a guess if there is one class only.

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
        scores = estimator.predict_proba(features)[:, 1]
    elif hasattr(estimator, "decision_function"):
        scores = estimator.decision_function(features)
    else:  # a regression
        scores = estimator.predict(features)
    return np.asarray(scores, dtype=np.float64)
