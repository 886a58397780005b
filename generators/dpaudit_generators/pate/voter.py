"""A classifier that always has an answer: what teachers and students are made of."""

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
        """Settings by name."""
        ...

    def set_params(self, **settings: Any) -> Any:
        """Changes settings."""
        ...


class Voter(NamedTuple):
    """A fitted classifier that always has an answer.

    Attributes:
        classifier: None where there were not two classes to tell apart.
        constant: The answer then.
    """

    classifier: Classifier | None
    constant: int

    def predict(self, rows: Rows, *, classes: int) -> IndexArray:
        """Class positions [n], each in 0..classes - 1.

        Raises:
            SettingsError: If the classifier names something else.
        """
        if self.classifier is None or len(rows) == 0:
            return np.full(len(rows), self.constant, dtype=np.int64)
        named = np.asarray(self.classifier.predict(rows))
        positions = named.astype(np.int64)
        # One whole vote of each teacher is what the proof counts.
        if named.shape != (len(rows),) or not np.isin(named, np.arange(classes)).all():
            raise SettingsError(
                f"{type(self.classifier).__name__} did not predict one class position for each "
                "row: pass a classifier, not a regressor or one of several outputs."
            )
        return positions


def fit_voter(template: Classifier, rows: Rows, positions: IndexArray, *, seed: int) -> Voter:
    """Fits a clone of a classifier; one class or none needs no fitting.

    Without records the answer is the first class of the public list, whatever the size of the
    table. With one class only it is that class: a function of the cell like any other, and what a
    classifier that accepts such a cell would answer.

    Args:
        template: The classifier; stays as it is.
        rows: The cell, [n, width].
        positions: Class positions [n].
        seed: In [0, 2**32); every random setting of the clone, and global state while it is
            fitted, so that no classifier shares a random stream with another.
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
            f"{classifier!r} is no classifier of scikit-learn: pass an instance, and wrap a torch "
            "module in TorchClassifier."
        )
