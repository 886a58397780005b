"""Learns the event of a mechanism's outputs that one input makes likelier than the other.

Outputs of both inputs are split: one part fits a tree and a logistic regression, the other chooses
among leaves and thresholds. These outputs are not counted again, so any choice is valid.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from dpaudit.bounds.clopper_pearson import event_bound

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

_CUTS: Final = 100
"""Thresholds of a score that are tried."""
_FITTED: Final = 0.6
"""Share of the outputs that fits; the rest chooses."""
_LEAST: Final = 20
"""Outputs in a leaf, at least."""
_CAUTION: Final = 0.001
"""Error probability of the bounds that choose an event: chance makes some of many look good."""
_TOLERANCE: Final = 1e-3
"""Gradient at which the regression ends: a smaller one takes several times as long for the same."""
_FAR: Final = 1e30


@dataclass(frozen=True)
class Event:
    """A set of outputs that one input makes likelier.

    Attributes:
        words: What is true of them, for a sentence.
        names: The features that are looked at.
        model: A tree, or a regression.
        leaves: The leaves of the tree whose outputs are in the event; empty for a regression.
        threshold: The score beyond which outputs are in the event.
        is_first: Whether it is the first input that makes the event likelier.
    """

    words: str
    names: tuple[str, ...]
    model: Any
    leaves: frozenset[int]
    threshold: float
    is_first: bool

    def holds(self, features: Mapping[str, FloatArray]) -> BoolArray:
        """Which outputs are in the event, by the values of their features."""
        values = _matrix(features, self.names)
        if self.leaves:
            return np.isin(self.model.apply(values), list(self.leaves))
        scores = self.model.decision_function(values)
        return np.asarray(scores > self.threshold if self.is_first else scores < self.threshold)


def _matrix(features: Mapping[str, FloatArray], names: tuple[str, ...]) -> FloatArray:
    """A column for each feature; what is missing is 0, as other columns tell."""
    values = np.stack([features[name] for name in names], axis=1)
    return np.nan_to_num(values, nan=0.0, posinf=_FAR, neginf=-_FAR)


def learn_event(
    first: Mapping[str, FloatArray],
    second: Mapping[str, FloatArray],
    *,
    names: tuple[str, ...],
    delta: float,
) -> tuple[Event, float]:
    """The event that is to prove most.

    Args:
        first: Features of outputs of the first input, by name.
        second: The same of as many outputs of the second one.
        names: The features that are looked at.
        delta: Delta of the claim.

    Returns:
        The event, and a cautious bound on epsilon from the outputs that chose it.
    """
    values = [_matrix(part, names) for part in (first, second)]
    cut = int(_FITTED * len(values[0]))
    fitted, labels = np.concatenate([part[:cut] for part in values]), np.repeat([1, 0], cut)
    chosen = [part[cut:] for part in values]
    least = max(_LEAST, cut // 5000)
    tree = DecisionTreeClassifier(max_leaf_nodes=40, min_samples_leaf=least, random_state=0)
    tree.fit(fitted, labels)
    line = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200, tol=_TOLERANCE))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # any weights make a valid event
        line.fit(fitted, labels)
    events = []
    for event, counts in (*_leaf_events(tree, names, chosen), *_line_events(line, names, chosen)):
        likely, rare = counts if event.is_first else counts[::-1]
        bound, _ = event_bound(likely, rare, len(chosen[0]), delta=delta, confidence=1.0 - _CAUTION)
        events.append((bound, event))
    bound, event = max(events, key=lambda bound_and_event: bound_and_event[0])
    return event, bound


def _line_events(
    line: Any, names: tuple[str, ...], chosen: list[FloatArray]
) -> Iterator[tuple[Event, tuple[int, ...]]]:
    """Scores of a regression beyond thresholds, and how many outputs have them."""
    scores = [line.decision_function(part) for part in chosen]
    for cut in np.unique(np.quantile(np.concatenate(scores), np.linspace(0.0, 1.0, _CUTS))):
        for is_first, word in ((True, "above"), (False, "below")):
            words = f"a weighted sum of the outputs is {word} {cut:.3g}"
            beyond = (part > cut if is_first else part < cut for part in scores)
            event = Event(words, names, line, frozenset(), float(cut), is_first)
            yield event, tuple(int(is_beyond.sum()) for is_beyond in beyond)


def _leaf_events(
    tree: Any, names: tuple[str, ...], chosen: list[FloatArray]
) -> Iterator[tuple[Event, tuple[int, ...]]]:
    """Single leaves, and the leaves together that one input makes likelier, most telling first."""
    paths = dict(_paths(tree.tree_, names))
    shares = [np.bincount(tree.apply(part), minlength=tree.tree_.node_count) for part in chosen]
    for is_first in (True, False):
        own, other = shares if is_first else shares[::-1]
        ranked = sorted(paths, key=lambda leaf: -(own[leaf] + 0.5) / (other[leaf] + 0.5))
        for count in range(1, len(ranked)):
            for leaves in {frozenset(ranked[:count]), frozenset(ranked[count - 1 : count])}:
                largest = max(leaves, key=lambda leaf: own[leaf])
                more = f", or {len(leaves) - 1} sets more" if len(leaves) > 1 else ""
                event = Event(paths[largest] + more, names, tree, leaves, 0.0, is_first)
                yield event, tuple(int(share[list(leaves)].sum()) for share in shares)


def _paths(tree: Any, names: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Each leaf of a tree, and what is true of the outputs in it."""

    def descend(node: int, limits: dict[int, tuple[float, float]]) -> Iterator[tuple[int, str]]:
        if tree.children_left[node] < 0:
            yield node, " and ".join(_words(names[at], *limits[at]) for at in limits)
            return
        at, cut = int(tree.feature[node]), float(tree.threshold[node])
        low, high = limits.get(at, (-np.inf, np.inf))
        yield from descend(tree.children_left[node], {**limits, at: (low, min(high, cut))})
        yield from descend(tree.children_right[node], {**limits, at: (max(low, cut), high)})

    yield from descend(0, {})


def _words(name: str, low: float, high: float) -> str:
    """That a feature lies between two numbers."""
    if " is " in name:
        return name if low >= 0 else name.replace(" is ", " is not ", 1)
    if np.isinf(low):
        return f"{name} is at most {high:.4g}"
    if np.isinf(high):
        return f"{name} is above {low:.4g}"
    return f"{name} is above {low:.4g} and at most {high:.4g}"
