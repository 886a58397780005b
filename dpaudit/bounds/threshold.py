"""From attack scores to guesses: threshold, errors and the receiver operating characteristic.

A threshold must be chosen on scores that are not scored later: the fitting part of the trials.
Choosing the best threshold on the trials that the bound is then computed from is a hidden
multiple test, and the bound fails more often than its confidence admits.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from dpaudit.bounds._checks import (
    BoolArray,
    FloatArray,
    IntArray,
    check_confidence,
    check_delta,
)
from dpaudit.bounds.clopper_pearson import statistic, upper_limits
from dpaudit.bounds.counts import Counts
from dpaudit.errors import SettingsError

# Statistics that agree to this many digits are tied: the choice must not hang on rounding.
_DIGITS = 12


class Direction(StrEnum):
    """The side of the threshold on which the attack guesses "in"."""

    HIGHER = "higher"
    LOWER = "lower"


class Threshold(NamedTuple):
    """A rule that turns scores into guesses.

    Attributes:
        value: The cut.
        direction: HIGHER guesses "in" where score ≥ value, LOWER where score < value.
    """

    value: float
    direction: Direction

    def guesses_in(self, scores: FloatArray) -> BoolArray:
        """Guess each trial's world: True for "in"; same shape as the scores."""
        higher: BoolArray = np.asarray(scores) >= self.value
        return higher if self.direction is Direction.HIGHER else ~higher


class RocCurve(NamedTuple):
    """Corners of the receiver operating characteristic, from (0, 0) to (1, 1).

    Attributes:
        fpr: False-positive rates, not decreasing.
        tpr: True-positive rates, not decreasing; same shape.
    """

    fpr: FloatArray
    tpr: FloatArray


class _Cuts(NamedTuple):
    """Every way to cut the scores in two, from the lowest cut to the highest.

    Attributes:
        values: The cuts: below all scores, between adjacent distinct ones, above all.
        members: Members whose score lies below each cut.
        others: Non-members whose score lies below each cut.
    """

    values: FloatArray
    members: IntArray
    others: IntArray


def choose_threshold(
    scores: FloatArray, member: BoolArray, *, delta: float, confidence: float
) -> Threshold:
    """Choose the threshold and direction that promise the largest bound on epsilon.

    The scores must be ones that are not scored later (the fitting part of the trials, for
    example cross-validated scores of the attack's own training trials). Candidates are the cuts
    between adjacent distinct scores and beyond either end, in both directions. The largest
    Clopper-Pearson bound wins; among equals, and where no cut has a positive bound, the largest
    Youden index (TPR − FPR); then the cut closest to the median score; then HIGHER; then the
    lower cut.

    Args:
        scores: Attack scores; shape (n,), finite.
        member: Whether the trial is of the "in" world; shape (n,), both worlds present.
        delta: δ of the claim, in [0, 1).
        confidence: One-sided confidence of the bound to come, in (0, 1).

    Returns:
        The threshold.

    Raises:
        SettingsError: Scores and membership do not fit, or a setting is out of range.
    """
    check_delta(delta)
    check_confidence(confidence)
    scores, member = _checked(scores, member)
    cuts = _cuts(scores, member)
    n_in, n_out = int(cuts.members[-1]), int(cuts.others[-1])
    tail = (1.0 - confidence) / 2.0
    # One row for HIGHER, one for LOWER.
    false_negatives = np.stack([cuts.members, n_in - cuts.members])
    false_positives = np.stack([n_out - cuts.others, cuts.others])
    evidence = statistic(
        upper_limits(n_in, tail)[false_negatives], upper_limits(n_out, tail)[false_positives], delta
    )
    # Clipped on purpose: below 0 the statistic favours cuts that put nearly all trials on one
    # side, which prove nothing however many trials are scored.
    bound = np.round(np.maximum(evidence, 0.0), _DIGITS)
    # The Youden index times n_in * n_out, in whole numbers, so that ties are ties.
    youden = (n_in - false_negatives) * n_out - false_positives * n_in
    distance = np.broadcast_to(np.abs(cuts.values - np.median(scores)), bound.shape)
    best = int(np.lexsort((distance.ravel(), -youden.ravel(), -bound.ravel()))[0])
    row, column = divmod(best, cuts.values.size)
    return Threshold(float(cuts.values[column]), (Direction.HIGHER, Direction.LOWER)[row])


def count_errors(scores: FloatArray, member: BoolArray, threshold: Threshold) -> Counts:
    """Count the errors of a threshold that was chosen on other scores.

    Args:
        scores: Attack scores of the scored trials; shape (n,), finite.
        member: Whether the trial is of the "in" world; shape (n,), both worlds present.
        threshold: The rule, fixed beforehand.

    Returns:
        The error counts.

    Raises:
        SettingsError: Scores and membership do not fit.
    """
    scores, member = _checked(scores, member)
    guesses = threshold.guesses_in(scores)
    return Counts(
        false_negatives=int(np.count_nonzero(member & ~guesses)),
        false_positives=int(np.count_nonzero(~member & guesses)),
        n_in=int(np.count_nonzero(member)),
        n_out=int(np.count_nonzero(~member)),
    )


def auc(scores: FloatArray, member: BoolArray) -> float:
    """Probability that a member outscores a non-member, ties counting half (Mann-Whitney).

    Args:
        scores: Attack scores; shape (n,), finite.
        member: Whether the trial is of the "in" world; shape (n,), both worlds present.

    Returns:
        The area under the ROC curve, in [0, 1]; 0.5 for constant scores.

    Raises:
        SettingsError: Scores and membership do not fit.
    """
    scores, member = _checked(scores, member)
    n_in = int(np.count_nonzero(member))
    n_out = member.size - n_in
    rank_sum = float(rankdata(scores)[member].sum())
    return (rank_sum - n_in * (n_in + 1) / 2.0) / (n_in * n_out)


def roc(scores: FloatArray, member: BoolArray) -> RocCurve:
    """Trace the ROC curve of guessing "in" for high scores.

    Args:
        scores: Attack scores; shape (n,), finite.
        member: Whether the trial is of the "in" world; shape (n,), both worlds present.

    Returns:
        The curve, its points on straight stretches left out.

    Raises:
        SettingsError: Scores and membership do not fit.
    """
    scores, member = _checked(scores, member)
    cuts = _cuts(scores, member)
    true_positives = (cuts.members[-1] - cuts.members)[::-1]
    false_positives = (cuts.others[-1] - cuts.others)[::-1]
    rise, run = np.diff(true_positives), np.diff(false_positives)
    turns = rise[1:] * run[:-1] != rise[:-1] * run[1:]
    corner = np.concatenate([[True], turns, [True]])
    return RocCurve(
        fpr=false_positives[corner] / cuts.others[-1],
        tpr=true_positives[corner] / cuts.members[-1],
    )


def _cuts(scores: FloatArray, member: BoolArray) -> _Cuts:
    """List the cuts of the scores with the trials of either world below them."""
    distinct, position = np.unique(scores, return_inverse=True)
    below, above = distinct[:-1], distinct[1:]
    middle = (below + above) / 2.0
    # Between neighbouring floats the midpoint rounds to either; the upper one separates them.
    middle = np.where((below < middle) & (middle <= above), middle, above)
    values = np.concatenate([distinct[:1], middle, np.nextafter(distinct[-1:], np.inf)])

    def cumulative(of: BoolArray) -> IntArray:
        counts = np.bincount(position[of], minlength=distinct.size)
        return np.concatenate([[0], np.cumsum(counts)])

    return _Cuts(values=values, members=cumulative(member), others=cumulative(~member))


def _checked(scores: FloatArray, member: BoolArray) -> tuple[FloatArray, BoolArray]:
    """Return both as arrays, or say why they do not fit together."""
    scores = np.asarray(scores, dtype=np.float64)
    member = np.asarray(member)
    if scores.ndim != 1 or scores.shape != member.shape:
        raise SettingsError(
            f"scores of shape {scores.shape} with membership of shape {member.shape}; "
            "give one score and one membership bit per trial"
        )
    if member.dtype != np.bool_:
        raise SettingsError(f"membership is of type {member.dtype}; give booleans")
    if not np.all(np.isfinite(scores)):
        broken = int(np.count_nonzero(~np.isfinite(scores)))
        raise SettingsError(f"{broken} scores are not finite; the attack must return real numbers")
    if member.all() or not member.any():
        raise SettingsError("all trials are of one world; a threshold needs trials of both")
    return scores, member
