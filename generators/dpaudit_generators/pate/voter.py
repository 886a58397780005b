"""A fitted classifier that always has an answer: every teacher is one, and every student."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from dpaudit.errors import SettingsError
from dpaudit.seeds import seeded_globals
from dpaudit_generators.pate.partition import IndexArray

Rows: TypeAlias = npt.NDArray[np.float64]


class Classifier(Protocol):
    """A scikit-learn classifier, or anything that behaves like one (`TorchClassifier`)."""

    def fit(self, rows: Any, labels: Any, /) -> Any:
        """Learns from rows [n, width] and class positions [n]."""
        ...

    def predict(self, rows: Any, /) -> Any:
        """Class positions [n]."""
        ...

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings, by name."""
        ...

    def set_params(self, **settings: Any) -> Any:
        """Changes settings."""
        ...


class Voter(NamedTuple):
    """A fitted classifier that always has an answer.

    Attributes:
        classifier: None if its records had fewer than two classes.
        constant: The answer in that case.
    """

    classifier: Classifier | None
    constant: int

    def predict(self, rows: Rows, *, classes: int) -> IndexArray:
        """Predicts class positions.

        Args:
            rows: Rows [n, width].
            classes: Number of classes.

        Returns:
            Positions [n], each in 0..classes - 1.

        Raises:
            SettingsError: If the classifier predicts anything else.
        """
        if self.classifier is None or len(rows) == 0:
            return np.full(len(rows), self.constant, dtype=np.int64)
        named = np.asarray(self.classifier.predict(rows))
        positions = named.astype(np.int64)
        # The proof counts one whole vote of each teacher.
        if named.shape != (len(rows),) or not np.isin(named, np.arange(classes)).all():
            raise SettingsError(
                f"{type(self.classifier).__name__} did not predict one class position for each "
                "row: pass a classifier, not a regressor or one with several outputs"
            )
        return positions


def fit_voter(template: Classifier, rows: Rows, positions: IndexArray, *, seed: int) -> Voter:
    """Fits a clone of a classifier, unless there are fewer than two classes.

    Without records the answer is the first class of the public list, whatever the size of the
    table. With a single class it is that class: a function of the cell like any other, and the
    answer of any classifier that accepts such a cell.

    Args:
        template: The classifier, which is not changed.
        rows: The cell, [n, width].
        positions: Class positions [n].
        seed: A seed in [0, 2**32) for every random setting of the clone, and for global state while
            it is fitted, so that no two classifiers share a random stream.
    """
    from sklearn.base import clone

    present = np.unique(positions)
    if len(present) < 2:
        return Voter(None, int(present[0]) if len(present) else 0)
    classifier = clone(template)
    states = [name for name in classifier.get_params() if name.endswith("random_state")]
    classifier.set_params(**dict.fromkeys(states, seed))
    with seeded_globals(seed):
        classifier.fit(rows, positions)
    return Voter(classifier, int(present[0]))


def require_classifier(classifier: object) -> None:
    """Checks that an object can be cloned, fitted and asked for classes.

    Raises:
        SettingsError: If it is a class, or lacks a method.
    """
    needed = ("fit", "predict", "get_params", "set_params")
    if isinstance(classifier, type) or not all(hasattr(classifier, name) for name in needed):
        raise SettingsError(
            f"{classifier!r} is not a scikit-learn classifier: pass an instance, or wrap a torch "
            "module in TorchClassifier"
        )
