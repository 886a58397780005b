"""The points that the pictures draw, from the numbers of a result."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from dpaudit.bounds import Direction, RocCurve, guarantee_of, roc
from dpaudit.bounds.table import BOUNDS, BoundEntry, ValidBound
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.currencies import Claim
from dpaudit.plugins.protocols import World
from dpaudit.results.record import AuditRecord

_BINS = 20
_CURVE_POINTS = 61
_FARTHEST_SCORE = 4.0
# e^700 is near the largest float; a claim beyond it permits everything.
_LARGEST_EXPONENT = 700.0


class ShownBound(NamedTuple):
    """A bound of a result: its key, what it is, and its value."""

    key: ValidBound
    entry: BoundEntry
    value: float


class ScoreHistogram(NamedTuple):
    """Scored trials of both worlds by score.

    Attributes:
        edges: Edges of the bins; shape (bins + 1,).
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


def shown_bounds(result: AuditRecord) -> list[ShownBound]:
    """The bounds that a result has, in the table's order."""
    values = result.bounds or {}
    return [
        ShownBound(entry.key, entry, value)
        for entry in BOUNDS
        if isinstance(entry.key, ValidBound) and (value := values.get(entry.key)) is not None
    ]


def attack_bounds(result: AuditRecord) -> dict[ValidBound, str]:
    """Labels of the bounds that any of the attacks has, in the table's order."""
    return {
        entry.key: entry.label
        for entry in BOUNDS
        if isinstance(entry.key, ValidBound)
        and any(one.bounds.get(entry.key) is not None for one in result.attacks)
    }


def has_scores(result: AuditRecord) -> bool:
    """Whether there are scores of both worlds to draw, with a threshold if there must be."""
    scores = result.scores
    fixed = result.one_run is not None or (result.threshold and result.counts)
    return bool(scores[World.IN] and scores[World.OUT] and fixed)


def histogram(scores: Mapping[World, Sequence[float]]) -> ScoreHistogram:
    """Counts the scores of each world in bins of equal width.

    They span 0 to 1 where all scores are such, as of a classifier's probabilities; else the scores,
    with half a unit on either side if all are equal.
    """
    every = [*scores[World.IN], *scores[World.OUT]]
    low, high = min(every), max(every)
    if low >= 0.0 and high <= 1.0:
        low, high = 0.0, 1.0
    elif low == high:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, _BINS + 1)
    return ScoreHistogram(
        edges, np.histogram(scores[World.IN], edges)[0], np.histogram(scores[World.OUT], edges)[0]
    )


def roc_of(result: AuditRecord) -> RocCurve:
    """Traces the ROC curve of the scores, turned so that the attack's direction is up."""
    scores = result.scores
    values = np.array([*scores[World.IN], *scores[World.OUT]], dtype=np.float64)
    if result.threshold is not None and result.threshold.direction is Direction.LOWER:
        values = -values
    member = np.repeat([True, False], [len(scores[World.IN]), len(scores[World.OUT])])
    return roc(values, member)


def operating_point(result: AuditRecord) -> Point:
    """Rates at the chosen threshold.

    Raises:
        ValueError: If no attack was scored.
    """
    counts = result.counts
    if counts is None:
        raise ValueError("no attack was scored, so there are no rates")
    return Point(
        fpr=counts.false_positives / counts.n_out,
        tpr=1.0 - counts.false_negatives / counts.n_in,
    )


def claim_region(claim: Claim) -> tuple[Point, ...]:
    """Corners of the rates that a claim permits, clockwise from (0, 0).

    Of (ε, δ)-DP they satisfy TPR ≤ e^ε FPR + δ and 1 − FPR ≤ e^ε (1 − TPR) + δ, and the same with
    the guesses swapped (Kairouz, Oh and Viswanath 2015, Theorem 2.1); of another claim they are
    points along its curve.
    """
    if not isinstance(claim, PrivacyClaim):
        rates = ndtr(np.linspace(-_FARTHEST_SCORE, _FARTHEST_SCORE, _CURVE_POINTS))
        fpr = np.concatenate([[0.0], rates, [1.0]])
        upper = [Point(float(x), largest_tpr(claim, float(x))) for x in fpr]
        return (*upper, *(Point(1.0 - x, 1.0 - y) for x, y in upper))
    delta = claim.delta
    corner = (1.0 - delta) / (1.0 + math.exp(min(claim.epsilon, _LARGEST_EXPONENT)))
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


def largest_tpr(claim: Claim, fpr: float) -> float:
    """Largest true-positive rate that a claim permits at a false-positive rate."""
    return float(guarantee_of(claim).most_tpr(np.array([fpr]), claim.value)[0])
