"""Trains a classifier on one set of examples and scores it on others; never without a score."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from dpaudit.plugins.protocols import BoolArray, FloatArray
from dpaudit.usefulness.classifiers import make

GUESSING = 0.5
"""AUROC of a classifier that knows nothing."""


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
