"""From attack scores to guesses: threshold, errors and the receiver operating characteristic.

A threshold must be chosen on scores that are not scored later: the fitting part of the trials.
Choosing the best threshold on the trials that the bound is then computed from is a hidden multiple
test: the bound would fail more often than its confidence allows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import partial
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dpaudit.bounds.clopper_pearson import statistic, upper_limits
from dpaudit.bounds.inputs import (
    BoolArray,
    Counts,
    FloatArray,
    IntArray,
    check_confidence,
    check_delta,
)
from dpaudit.errors import SettingsError

# Statistics that agree to this many digits are tied: rounding must not decide the choice.
_DIGITS = 12

Statistic: TypeAlias = Callable[[FloatArray, FloatArray], npt.ArrayLike]
"""The bound from upper limits on both error rates, false negatives first; not clipped."""


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
        """Guesses each trial's world: True for "in"; same shape as the scores."""
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


class CutErrors(NamedTuple):
    """Errors of every cut: a row per direction, a column per cut.

    Attributes:
        false_negatives: Members that the cut places "out".
        false_positives: Non-members that the cut places "in"; same shape.
    """

    false_negatives: IntArray
    false_positives: IntArray


def choose_threshold(
    scores: FloatArray, member: BoolArray, *, delta: float, confidence: float
) -> Threshold:
    """Chooses the threshold and direction with the largest forecast of the bound on epsilon.

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
        SettingsError: If scores and membership do not fit, or a setting is out of range.
    """
    check_delta(delta)
    return choose_threshold_by(
        scores, member, partial(statistic, delta=delta), confidence=confidence
    )


def choose_threshold_by(
    scores: FloatArray, member: BoolArray, proves: Statistic, *, confidence: float
) -> Threshold:
    """Chooses as `choose_threshold` does, by the bound from upper limits on the error rates.

    Args:
        scores: Attack scores; shape (n,), finite.
        member: Whether the trial is of the "in" world; shape (n,), both worlds present.
        proves: The bound that upper limits on the false-negative and false-positive rate prove.
        confidence: One-sided confidence of the bound to come, in (0, 1).

    Returns:
        The threshold.

    Raises:
        SettingsError: If scores and membership do not fit, or `confidence` is out of range.
    """
    check_confidence(confidence)
    scores, member = checked(scores, member)
    cuts = cuts_of(scores, member)
    directions = tuple(Direction)
    errors = errors_at(cuts, directions)
    tail = (1.0 - confidence) / 2.0
    evidence = proves(
        upper_limits(cuts.n_in, tail)[errors.false_negatives],
        upper_limits(cuts.n_out, tail)[errors.false_positives],
    )
    return best_cut(cuts, directions, evidence, centre=float(np.median(scores)))


def errors_at(cuts: Cuts, directions: Sequence[Direction]) -> CutErrors:
    """Counts the errors of every cut in each of the directions."""
    false_negatives = {Direction.HIGHER: cuts.members, Direction.LOWER: cuts.n_in - cuts.members}
    false_positives = {Direction.HIGHER: cuts.n_out - cuts.others, Direction.LOWER: cuts.others}
    return CutErrors(
        np.stack([false_negatives[direction] for direction in directions]),
        np.stack([false_positives[direction] for direction in directions]),
    )


def best_cut(
    cuts: Cuts, directions: Sequence[Direction], evidence: npt.ArrayLike, *, centre: float
) -> Threshold:
    """Picks the cut with the most evidence; breaks ties as `choose_threshold` says.

    Args:
        cuts: The candidates; m of them.
        directions: Directions to cut in; d of them.
        evidence: Forecast of the bound on epsilon of each cut, not clipped; shape (d, m).
        centre: The cut closest to this wins ties.

    Returns:
        The best cut.
    """
    # Clipped on purpose: below 0 the statistic favours cuts with nearly all trials on one side,
    # which prove nothing, however many trials are scored.
    bound = np.round(np.maximum(evidence, 0.0), _DIGITS)
    errors = errors_at(cuts, directions)
    # The Youden index times n_in * n_out, in whole numbers, so that ties are ties.
    youden = (cuts.n_in - errors.false_negatives) * cuts.n_out - errors.false_positives * cuts.n_in
    distance = np.broadcast_to(np.abs(cuts.values - centre), bound.shape)
    best = int(np.lexsort((distance.ravel(), -youden.ravel(), -bound.ravel()))[0])
    direction, cut = divmod(best, cuts.values.size)
    return Threshold(float(cuts.values[cut]), directions[direction])


def count_errors(scores: FloatArray, member: BoolArray, threshold: Threshold) -> Counts:
    """Counts the errors of a threshold that was chosen on other scores.

    Args:
        scores: Attack scores of the scored trials; shape (n,), finite.
        member: Whether the trial is of the "in" world; shape (n,), both worlds present.
        threshold: The rule, fixed beforehand.

    Returns:
        The error counts.

    Raises:
        SettingsError: If scores and membership do not fit.
    """
    scores, member = checked(scores, member)
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
        SettingsError: If scores and membership do not fit.
    """
    scores, member = checked(scores, member)
    return _area(scores[member], scores[~member])


_AT_ONCE: Final = 2**16
"""Scores ranked in one step: as many as fit in the cache of a core."""


def aucs(scores: FloatArray, member: BoolArray) -> FloatArray:
    """`auc` of many attacks on the same trials.

    Args:
        scores: Finite scores of each trial by each attack; shape (n, k).
        member: Whether the trial is of the "in" world; shape (n,), both worlds present.

    Returns:
        Areas, shape (k,).
    """
    areas = np.full(scores.shape[1], 0.5)
    varied = np.flatnonzero((scores != scores[0]).any(axis=0))
    n_in, n_out = np.count_nonzero(member), np.count_nonzero(~member)
    step = max(1, _AT_ONCE // len(member))
    for columns in np.split(varied, range(step, len(varied), step)):
        rows = np.ascontiguousarray(scores[:, columns].T)
        order = rows.argsort(axis=1)
        ordered = np.take_along_axis(rows, order, axis=1)
        # Ranks from 0; tied scores share their mean rank (half of first + last).
        rank = np.arange(len(member))
        starts_tie = np.ones(rows.shape, dtype=np.bool_)
        np.not_equal(ordered[:, 1:], ordered[:, :-1], out=starts_tie[:, 1:])
        first_rank = np.maximum.accumulate(np.where(starts_tie, rank, 0), axis=1)
        last_rank = np.where(np.roll(starts_tie, -1, axis=1), rank, rank[-1])
        last_rank = np.minimum.accumulate(last_rank[:, ::-1], axis=1)[:, ::-1]
        twice_wins = ((first_rank + last_rank) * member[order]).sum(axis=1) - n_in * (n_in - 1)
        areas[columns] = twice_wins / (2 * n_in * n_out)
    return areas


def _area(inside: FloatArray, outside: FloatArray) -> float:
    """Share of pairs in which the member's score is larger, ties counting half."""
    ordered = np.sort(outside)
    smaller = np.searchsorted(ordered, inside, "left").sum()
    not_larger = np.searchsorted(ordered, inside, "right").sum()
    return float(smaller + not_larger) / (2 * inside.size * outside.size)


def roc(scores: FloatArray, member: BoolArray) -> RocCurve:
    """Traces the ROC curve of guessing "in" for high scores.

    Args:
        scores: Attack scores; shape (n,), finite.
        member: Whether the trial is of the "in" world; shape (n,), both worlds present.

    Returns:
        The curve, its points on straight stretches left out.

    Raises:
        SettingsError: If scores and membership do not fit.
    """
    scores, member = checked(scores, member)
    cuts = cuts_of(scores, member)
    true_positives = (cuts.members[-1] - cuts.members)[::-1]
    false_positives = (cuts.others[-1] - cuts.others)[::-1]
    rise, run = np.diff(true_positives), np.diff(false_positives)
    turns = rise[1:] * run[:-1] != rise[:-1] * run[1:]
    corner = np.concatenate([[True], turns, [True]])
    return RocCurve(
        fpr=false_positives[corner] / cuts.others[-1], tpr=true_positives[corner] / cuts.members[-1]
    )


class Cuts(NamedTuple):
    """Every way to cut the scores in two, from the lowest cut to the highest.

    Attributes:
        values: The cuts: below all scores, between adjacent distinct ones, above all; shape (m,).
        members: Members whose score lies below each cut; shape (m,), the last one all of them.
        others: Non-members whose score lies below each cut; shape (m,), the last one all of them.
    """

    values: FloatArray
    members: IntArray
    others: IntArray

    @property
    def n_in(self) -> int:
        """Trials of the "in" world."""
        return int(self.members[-1])

    @property
    def n_out(self) -> int:
        """Trials of the "out" world."""
        return int(self.others[-1])


def cuts_of(scores: FloatArray, member: BoolArray) -> Cuts:
    """Lists the cuts of scores that `checked` has passed."""
    distinct, position = np.unique(scores, return_inverse=True)
    below, above = distinct[:-1], distinct[1:]
    middle = (below + above) / 2.0
    # Between neighbouring floats the midpoint rounds to either; the upper one separates them.
    middle = np.where((below < middle) & (middle <= above), middle, above)
    values = np.concatenate([distinct[:1], middle, np.nextafter(distinct[-1:], np.inf)])

    def cumulative(chosen: BoolArray) -> IntArray:
        counts = np.bincount(position[chosen], minlength=distinct.size)
        return np.concatenate([[0], np.cumsum(counts)])

    return Cuts(values=values, members=cumulative(member), others=cumulative(~member))


def checked(scores: FloatArray, member: BoolArray) -> tuple[FloatArray, BoolArray]:
    """Returns scores and membership as arrays, after checking that they fit together.

    Raises:
        SettingsError: If their shapes differ, the membership is not boolean or all of one world, or
            a score is not finite.
    """
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
