"""The points of the figures, computed from a result."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from dpaudit.bounds import Direction, RocCurve, guarantee_of, roc, upper_limits
from dpaudit.bounds.table import BOUNDS, BoundEntry, ValidBound
from dpaudit.formatting import percent, rounded, rounded_down, rounded_up
from dpaudit.model.claim import Claim, NoClaim, PrivacyClaim
from dpaudit.plugins.protocols import World
from dpaudit.results.record import AuditRecord

_BINS = 20
_CURVE_POINTS = 61
_FARTHEST_SCORE = 4.0
# A claim this many times larger than the other values is not drawn: it would squeeze them.
FAR = 3.0
# e^700 is near the largest float; a claim beyond it permits everything.
_LARGEST_EXPONENT = 700.0


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


def shown_bounds(result: AuditRecord) -> list[tuple[BoundEntry, float]]:
    """The bounds that a result has and their values, in the table's order."""
    values = result.bounds or {}
    return [
        (entry, value)
        for entry in BOUNDS
        if isinstance(entry.key, ValidBound) and (value := values.get(entry.key)) is not None
    ]


def attack_bounds(result: AuditRecord) -> dict[ValidBound, str]:
    """Labels of the bounds that any of the attacks has, in the table's order."""
    return {
        entry.key: entry.label
        for entry in BOUNDS
        if isinstance(entry.key, ValidBound)
        and any(attack.bounds.get(entry.key) is not None for attack in result.attacks)
    }


class Mark(NamedTuple):
    """A value on an axis, and its label in the legend."""

    value: float
    words: str


class ClaimAxis(NamedTuple):
    """What the figure of a claim shows on its one axis, which begins at 0.

    Attributes:
        claim: The claim; None without one.
        proved: The lower bound that decides.
        compared: The Clopper-Pearson bound, if there is one.
        detectable: The minimum detectable value, if there is one.
        limit: The upper limit for an audit of this size; None if nothing was scored.
        end: The end of the axis.
    """

    claim: Mark | None
    proved: Mark
    compared: Mark | None
    detectable: Mark | None
    limit: Mark | None
    end: float

    @property
    def claim_is_off(self) -> bool:
        """Whether the claim is too far away to be on the axis."""
        return self.claim is not None and self.claim.value > self.end


def sized_by(result: AuditRecord) -> str:
    """The unit whose number sets the limit: models, or canaries of one training."""
    return "models" if result.game.has_threshold else result.game.words.units


def claim_axis(result: AuditRecord) -> ClaimAxis:
    """Arranges claim, bounds and power on one axis, for every picture of them."""
    noun, claim = result.claim.quantity.noun, result.claim.value
    entry, compared = result.decided_by, result.clopper_pearson
    has_claim = not isinstance(result.claim, NoClaim)
    most, least, _ = result.power or (None, None, None)
    least = least if has_claim else None
    proved = result.proved or 0.0
    reach = max(value for value in (proved, compared, least, most, 0.1) if value is not None)
    off = has_claim and claim > FAR * reach
    rule = "" if entry is None else f", {entry.label}"
    confidence = percent(result.confidence)

    def mark(value: float | None, words: str) -> Mark | None:
        return None if value is None else Mark(value, words)

    return ClaimAxis(
        claim=mark(
            claim if has_claim else None,
            f"claim: {rounded(claim)}{' (off the axis)' if off else ''}",
        ),
        proved=Mark(proved, f"empirical {noun} ≥ {rounded_down(proved)} ({confidence}{rule})"),
        compared=mark(compared, f"Clopper-Pearson {noun} ≥ {rounded_down(compared)}"),
        detectable=mark(least, f"detectable {noun} (80 % power): {rounded_up(least)}"),
        limit=mark(most, f"limit for this many {sized_by(result)}: {rounded_down(most)}"),
        end=1.06 * (reach if off or not has_claim else max(reach, claim)),
    )


def has_scores(result: AuditRecord) -> bool:
    """Whether there are scores of both worlds to draw, and a threshold if the game has one."""
    scores = result.scores
    fixed = not result.game.has_threshold or (result.threshold and result.counts)
    return bool(scores[World.IN] and scores[World.OUT] and fixed)


def histogram(scores: Mapping[World, Sequence[float]]) -> ScoreHistogram:
    """Counts the scores of each world in bins of equal width.

    Bins span 0 to 1 if all scores lie there, as probabilities do; else the range of the scores,
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
    """The ROC curve of the scores, in the direction in which the attack guesses."""
    scores = result.scores
    values = np.array([*scores[World.IN], *scores[World.OUT]], dtype=np.float64)
    if result.threshold is not None and result.threshold.direction is Direction.LOWER:
        values = -values
    member = np.repeat([True, False], [len(scores[World.IN]), len(scores[World.OUT])])
    return roc(values, member)


class RocBand(NamedTuple):
    """Confidence limits of both rates at every threshold, as the corners of a band.

    Attributes:
        worse: Upper limits of the false-positive rates, lower limits of the true-positive rates.
        better: The other limits; same shape.
    """

    worse: RocCurve
    better: RocCurve


def roc_band(result: AuditRecord) -> RocBand | None:
    """Clopper-Pearson limits of the rates, each one-sided at the confidence of the audit.

    Each limit holds by itself, not for the curve as a whole.

    Returns:
        The band; None where the scored trials are dependent (many records per model), or their
        number depends on the results (a sequential audit).
    """
    if not result.game.has_fixed_independent_trials:
        return None
    n_in, n_out = (len(result.scores[world]) for world in (World.IN, World.OUT))
    fp, tp = _counts(roc_of(result), n_in=n_in, n_out=n_out)
    alpha = 1.0 - result.confidence
    of_in, of_out = upper_limits(n_in, alpha), upper_limits(n_out, alpha)
    return RocBand(
        worse=RocCurve(fpr=of_out[fp], tpr=1.0 - of_in[n_in - tp]),
        better=RocCurve(fpr=1.0 - of_out[n_out - fp], tpr=of_in[tp]),
    )


def _counts(curve: RocCurve, *, n_in: int, n_out: int) -> npt.NDArray[np.int64]:
    """False and true positives [2, points] at every threshold; tied scores count together."""
    corners = np.rint([curve.fpr * n_out, curve.tpr * n_in]).astype(np.int64).T
    stretches = [corners[:1]]
    for before, after in pairwise(corners):
        step = after - before
        along = int(step.max()) if step.min() == 0 else 1  # a slope is one step of tied scores
        stretches.append(before + np.outer(np.arange(1, along + 1), step // along))
    return np.concatenate(stretches).T


def on_logarithmic_axes(curve: RocCurve, *, low: float) -> RocCurve:
    """Adds points to a curve, because its straight segments are bent on logarithmic axes.

    Args:
        curve: The curve.
        low: Where both axes begin; smaller rates are drawn there.
    """
    between = np.geomspace(low, 1.0, _CURVE_POINTS)
    fpr = np.concatenate([curve.fpr, between])
    tpr = np.concatenate([curve.tpr, np.interp(between, curve.fpr, curve.tpr)])
    order = np.lexsort([tpr, fpr])
    return RocCurve(np.maximum(fpr[order], low), np.maximum(tpr[order], low))


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

    Under (ε, δ)-DP, TPR ≤ e^ε FPR + δ and 1 − FPR ≤ e^ε (1 − TPR) + δ, and the same with the
    guesses swapped (Kairouz, Oh and Viswanath 2015, Theorem 2.1). For other claims the corners are
    points along the trade-off curve.
    """
    if not isinstance(claim, PrivacyClaim):
        rates = scipy.special.ndtr(np.linspace(-_FARTHEST_SCORE, _FARTHEST_SCORE, _CURVE_POINTS))
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


def permitted_from(claim: Claim, *, low: float) -> tuple[Point, ...]:
    """The part of `claim_region` from a false-positive rate up, for logarithmic axes."""
    fpr = np.geomspace(low, 1.0, _CURVE_POINTS)
    most = guarantee_of(claim).most_tpr(fpr, claim.value)
    least = 1.0 - guarantee_of(claim).most_tpr(1.0 - fpr, claim.value)
    upper = [Point(float(x), float(y)) for x, y in zip(fpr, most, strict=True)]
    lower = [Point(float(x), float(y)) for x, y in zip(fpr, least, strict=True)]
    return (*upper, *reversed(lower))


def largest_tpr(claim: Claim, fpr: float) -> float:
    """Largest true-positive rate that a claim permits at a false-positive rate."""
    return float(guarantee_of(claim).most_tpr(np.array([fpr]), claim.value)[0])
