"""The points that the pictures draw, from the numbers of a result document."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpaudit.bounds import RocCurve, roc

_BINS = 20
# e^700 is near the largest float; a claim beyond it permits everything.
_LARGEST_EXPONENT = 700.0


class Histogram(NamedTuple):
    """Scored trials of both worlds by score.

    Attributes:
        edges: Edges of the bins, from 0 to 1; shape (bins + 1,).
        inside: Trials of world in per bin; shape (bins,).
        outside: Trials of world out per bin; shape (bins,).
    """

    edges: npt.NDArray[np.float64]
    inside: npt.NDArray[np.int64]
    outside: npt.NDArray[np.int64]


class Point(NamedTuple):
    """A pair of rates: false positives and true positives."""

    fpr: float
    tpr: float


def has_scores(document: Mapping[str, Any]) -> bool:
    """Tell whether there are scores of both worlds to draw, with a threshold if there must be."""
    scores = document["scores"]
    fixed = document["one_run"] is not None or (document["threshold"] and document["counts"])
    return bool(scores["in"] and scores["out"] and fixed)


def histogram(scores: Mapping[str, list[float]]) -> Histogram:
    """Count the scores of each world in bins of equal width.

    They span 0 to 1 where all scores are such, as of a classifier's probabilities; else the scores.
    """
    every = [*scores["in"], *scores["out"]]
    low, high = min(every), max(every)
    if low >= 0.0 and high <= 1.0:
        low, high = 0.0, 1.0
    edges = np.linspace(low, high, _BINS + 1)
    return Histogram(
        edges, np.histogram(scores["in"], edges)[0], np.histogram(scores["out"], edges)[0]
    )


def roc_of(document: Mapping[str, Any]) -> RocCurve:
    """Trace the ROC curve of the scores, turned so that the attack's direction is up."""
    scores = document["scores"]
    values = np.array([*scores["in"], *scores["out"]], dtype=np.float64)
    if document["threshold"]["direction"] == "lower":
        values = -values
    member = np.repeat([True, False], [len(scores["in"]), len(scores["out"])])
    return roc(values, member)


def operating_point(counts: Mapping[str, int]) -> Point:
    """Rates at the chosen threshold."""
    return Point(
        fpr=counts["false_positives"] / counts["n_out"],
        tpr=1.0 - counts["false_negatives"] / counts["n_in"],
    )


def claim_region(epsilon: float, delta: float) -> tuple[Point, ...]:
    """Corners of the rates that (ε, δ)-DP permits, clockwise from (0, 0).

    They satisfy TPR ≤ e^ε FPR + δ and 1 − FPR ≤ e^ε (1 − TPR) + δ, and the same with the
    guesses swapped (Kairouz, Oh and Viswanath 2015, Theorem 2.1).
    """
    corner = (1.0 - delta) / (1.0 + math.exp(min(epsilon, _LARGEST_EXPONENT)))
    return (
        Point(0.0, 0.0),
        Point(0.0, delta),
        Point(corner, 1.0 - corner),
        Point(1.0 - delta, 1.0),
        Point(1.0, 1.0),
        Point(1.0, 1.0 - delta),
        Point(1.0 - corner, corner),
        Point(delta, 0.0),
    )


def largest_tpr(epsilon: float, delta: float, fpr: float) -> float:
    """Largest true-positive rate that (ε, δ)-DP permits at a false-positive rate."""
    factor = math.exp(min(epsilon, _LARGEST_EXPONENT))
    return min(1.0, factor * fpr + delta, 1.0 - max(0.0, 1.0 - fpr - delta) / factor)
