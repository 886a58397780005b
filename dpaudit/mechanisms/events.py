"""Learns the event of a mechanism's outputs that one input makes likelier than the other.

Outputs of both inputs are split: one part fits a tree and a logistic regression, the other chooses
among leaves and thresholds. These outputs are not counted again, so any choice is valid.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from dpaudit.bounds.clopper_pearson import upper_limit
from dpaudit.mechanisms.features import Features

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
_FAR: Final = 1e30


@dataclass(frozen=True)
class Event:
    """A set of outputs that one input makes likelier.

    Attributes:
        words: What is true of them, for a sentence.
        features: What of an output is looked at.
        model: A tree, or a regression.
        leaves: The leaves of the tree whose outputs are in the event; empty for a regression.
        threshold: The score beyond which outputs are in the event.
        is_first: Whether it is the first input that makes the event likelier.
    """

    words: str
    features: Features
    model: Any
    leaves: frozenset[int]
    threshold: float
    is_first: bool

    def holds(self, outputs: pd.DataFrame) -> BoolArray:
        """Which outputs are in the event."""
        values = matrix_of(self.features, outputs)
        if self.leaves:
            return np.isin(self.model.apply(values), list(self.leaves))
        scores = self.model.decision_function(values)
        return np.asarray(scores > self.threshold if self.is_first else scores < self.threshold)


def matrix_of(features: Features, outputs: pd.DataFrame) -> FloatArray:
    """The features of outputs, a column for each; what is missing is 0, as other columns tell."""
    values = np.stack(list(features.named(outputs).values()), axis=1)
    return np.nan_to_num(values, nan=0.0, posinf=_FAR, neginf=-_FAR)


def event_bound(
    likely: int, rare: int, draws: int, *, delta: float, confidence: float
) -> tuple[float, float]:
    """An interval for the epsilon of an event: log((P(event) - delta) / Q(event)).

    Exact limits on both probabilities (Clopper and Pearson 1934), each with half of the error
    probability. The lower end bounds the mechanism's epsilon from below (Dwork and Roth 2014,
    Definition 2.4).

    Args:
        likely: Outputs in the event, of the input that makes it likelier.
        rare: Outputs in it, of the other input.
        draws: Outputs of each input.
        delta: Delta of the claim.
        confidence: Confidence of each end.
    """
    tail = (1.0 - confidence) / 2.0
    least = 1.0 - upper_limit(draws - likely, draws, tail)
    most = upper_limit(likely, draws, tail)
    other = 1.0 - upper_limit(draws - rare, draws, tail), upper_limit(rare, draws, tail)
    low = math.log((least - delta) / other[1]) if least > delta else 0.0
    high = math.log((most - delta) / other[0]) if most > delta and other[0] > 0 else math.inf
    return max(0.0, low), high if most > delta else 0.0


def learn_event(
    first: pd.DataFrame, second: pd.DataFrame, *, delta: float, with_bits: bool
) -> tuple[Event, float]:
    """The event that is to prove most.

    Args:
        first: Outputs of the first input.
        second: As many of the second one.
        delta: Delta of the claim.
        with_bits: Whether the lowest bits of numbers are looked at.

    Returns:
        The event, and a cautious bound on epsilon from the outputs that chose it.
    """
    features = Features.of(pd.concat([first, second], ignore_index=True), with_bits=with_bits)
    names = tuple(features.named(first.head(1)))
    values = [matrix_of(features, one) for one in (first, second)]
    cut = int(_FITTED * len(first))
    fitted, labels = np.concatenate([one[:cut] for one in values]), np.repeat([1, 0], cut)
    chosen = [one[cut:] for one in values]
    least = max(_LEAST, cut // 5000)
    tree = DecisionTreeClassifier(max_leaf_nodes=40, min_samples_leaf=least, random_state=0)
    tree.fit(fitted, labels)
    line = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # any weights make a valid event
        line.fit(fitted, labels)
    found: list[tuple[float, Event]] = []
    for words, model, leaves, threshold, is_first, counts in (
        *_leaf_events(tree, names, chosen),
        *_line_events(line, chosen),
    ):
        likely, rare = counts if is_first else counts[::-1]
        bound, _ = event_bound(likely, rare, len(chosen[0]), delta=delta, confidence=1.0 - _CAUTION)
        found.append((bound, Event(words, features, model, leaves, threshold, is_first)))
    bound, event = max(found, key=lambda one: one[0])
    return event, bound


_Candidate = tuple[str, Any, frozenset[int], float, bool, tuple[int, int]]
"""Words, model, leaves, threshold and direction of an event, and its counts."""


def _line_events(line: Any, chosen: list[FloatArray]) -> Iterator[_Candidate]:
    """Scores of a regression beyond thresholds."""
    scores = [line.decision_function(one) for one in chosen]
    cuts = np.unique(np.quantile(np.concatenate(scores), np.linspace(0.0, 1.0, _CUTS)))
    for cut in cuts:
        above = tuple(int((one > cut).sum()) for one in scores)
        below = tuple(int((one < cut).sum()) for one in scores)
        nothing: frozenset[int] = frozenset()
        words = "a weighted sum of the outputs is {} " + f"{cut:.3g}"
        yield words.format("above"), line, nothing, float(cut), True, (above[0], above[1])
        yield words.format("below"), line, nothing, float(cut), False, (below[0], below[1])


def _leaf_events(
    tree: Any, names: tuple[str, ...], chosen: list[FloatArray]
) -> Iterator[_Candidate]:
    """Single leaves, and the leaves together that one input makes likelier, most telling first."""
    paths = dict(_paths(tree.tree_, names))
    shares = [np.bincount(tree.apply(one), minlength=tree.tree_.node_count) for one in chosen]
    for is_first in (True, False):
        own, other = shares if is_first else shares[::-1]
        ranked = sorted(paths, key=lambda leaf: -(own[leaf] + 0.5) / (other[leaf] + 0.5))
        for count in range(1, len(ranked)):
            for leaves in {frozenset(ranked[:count]), frozenset(ranked[count - 1 : count])}:
                largest = max(leaves, key=lambda leaf: own[leaf])
                more = f", or {len(leaves) - 1} sets more" if len(leaves) > 1 else ""
                counts = tuple(int(share[list(leaves)].sum()) for share in shares)
                yield paths[largest] + more, tree, leaves, 0.0, is_first, (counts[0], counts[1])


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
