"""Rules of public auditors, written again in a few lines: to measure them, never to use them.

All take high scores for "in", as those auditors do, and scores with ties.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from dpaudit.bounds import one_run, statistic
from dpaudit.plugins.protocols import BoolArray, FloatArray
from reports.calibration.peers import clopper_pearson_limits, delta_siege_limits

IntArray = npt.NDArray[np.int64]
Limits = Callable[[int, float], FloatArray]
"""Upper limit [n + 1] on an error rate after each count of n errors, at an error probability."""


class ErrorCounts(NamedTuple):
    """Errors of each of m thresholds, from the lowest to the highest.

    Attributes:
        thresholds: Scores from which on "in" is guessed; shape (m,).
        false_negatives: Trials of world "in" below each; shape (m,).
        false_positives: Trials of world "out" from each on; shape (m,).
        n_in: Trials of world "in".
        n_out: Trials of world "out".
    """

    thresholds: FloatArray
    false_negatives: IntArray
    false_positives: IntArray
    n_in: int
    n_out: int


def errors_of(scores: FloatArray, member: BoolArray) -> ErrorCounts:
    """Errors at every distinct score, and above all of them.

    Args:
        scores: Scores of all trials; shape (n,).
        member: Whether the world of each is "in"; shape (n,), both present.
    """
    inside, outside = np.sort(scores[member]), np.sort(scores[~member])
    thresholds = np.append(np.unique(scores), np.inf)
    false_negatives = np.searchsorted(inside, thresholds)
    false_positives = len(outside) - np.searchsorted(outside, thresholds)
    return ErrorCounts(thresholds, false_negatives, false_positives, len(inside), len(outside))


def on_hull(errors: ErrorCounts) -> ErrorCounts:
    """The thresholds on the convex hull of the ROC curve."""
    kept = np.arange(len(errors.thresholds))
    while len(kept) > 2:
        run = np.diff(errors.false_negatives[kept])
        fall = np.diff(errors.false_positives[kept])
        below = fall[:-1] * run[1:] < fall[1:] * run[:-1]  # of the line between its neighbours
        if below.all():
            break
        kept = kept[np.concatenate([[True], below, [True]])]
    return errors._replace(
        thresholds=errors.thresholds[kept],
        false_negatives=errors.false_negatives[kept],
        false_positives=errors.false_positives[kept],
    )


def _bounds(errors: ErrorCounts, limits: Limits, alpha: float, delta: float) -> FloatArray:
    """What each threshold proves by upper limits on its two error rates, at least 0."""
    false_negatives = limits(errors.n_in, alpha)[errors.false_negatives]
    false_positives = limits(errors.n_out, alpha)[errors.false_positives]
    bounds: FloatArray = np.maximum(statistic(false_negatives, false_positives, delta), 0.0)
    return bounds


def best_on_test(
    scores: FloatArray, member: BoolArray, *, delta: float, confidence: float
) -> float:
    """Clopper-Pearson at the best threshold of the trials that are counted, in both directions.

    TensorFlow Privacy's and privacy-estimates' rule; no bound, as nothing pays for the choice.
    """
    alpha = 1.0 - confidence
    higher = errors_of(scores, member)
    lower = errors_of(-scores, member)
    return max(
        float(_bounds(one, clopper_pearson_limits, alpha, delta).max()) for one in (higher, lower)
    )


def delta_siege(scores: FloatArray, member: BoolArray, *, delta: float, confidence: float) -> float:
    """Delta-Siege's DKW band with the constant that its code has; no bound."""
    errors = errors_of(scores, member)
    return float(_bounds(errors, delta_siege_limits, 1.0 - confidence, delta).max())


def hull_bonferroni(
    scores: FloatArray, member: BoolArray, *, delta: float, confidence: float
) -> float:
    """Clopper-Pearson at each threshold of the ROC curve's hull, alpha divided by their number.

    The default of jax_privacy 2.0.0 (`epsilon_clopper_pearson`, here with both ratios). The divisor
    depends on the data, so that no theorem covers it.
    """
    errors = on_hull(errors_of(scores, member))
    alpha = (1.0 - confidence) / len(errors.thresholds)
    return float(_bounds(errors, clopper_pearson_limits, alpha, delta).max())


def split(
    scores: FloatArray,
    member: BoolArray,
    *,
    delta: float,
    confidence: float,
    rng: np.random.Generator,
) -> float:
    """Clopper-Pearson on one half, at the threshold that is best on the other.

    jax_privacy 2.0.0, `epsilon_clopper_pearson` with `Split()` and both ratios.
    """
    first = halved(member, rng)
    alpha = 1.0 - confidence
    chosen = on_hull(errors_of(scores[first], member[first]))
    best = int(_bounds(chosen, clopper_pearson_limits, alpha, delta).argmax())
    counted = at_threshold(scores[~first], member[~first], chosen.thresholds[best])
    return float(_bounds(counted, clopper_pearson_limits, alpha, delta).max())


def one_run_split(
    scores: FloatArray,
    member: BoolArray,
    *,
    delta: float,
    confidence: float,
    rng: np.random.Generator,
) -> float:
    """The one-run bound on one half, every training a canary, at the other half's best threshold.

    jax_privacy 2.0.0, `epsilon_one_run` with `Split()`: "in" is guessed above the threshold, and
    nothing below it (Steinke, Nasr and Jagielski 2023).
    """
    first = halved(member, rng)
    asked = {"delta": delta, "confidence": confidence}
    chosen = on_hull(errors_of(scores[first], member[first]))
    most, threshold = 0.0, float(chosen.thresholds[-1])
    for place in range(len(chosen.thresholds)):
        right, made = _guesses(chosen, place)
        if right > made * float(expit(most)):  # no bound exceeds the odds that were seen
            found = one_run(right, made, int(first.sum()), **asked)
            if found > most:
                most, threshold = found, float(chosen.thresholds[place])
    counted = at_threshold(scores[~first], member[~first], threshold)
    right, made = _guesses(counted, 0)
    return one_run(right, made, int((~first).sum()), **asked) if made else 0.0


def _guesses(errors: ErrorCounts, place: int) -> tuple[int, int]:
    """Right guesses of "in", and all of them."""
    right = errors.n_in - int(errors.false_negatives[place])
    return right, right + int(errors.false_positives[place])


def at_threshold(scores: FloatArray, member: BoolArray, threshold: float) -> ErrorCounts:
    """Errors at one threshold that was chosen on other trials."""
    guessed = scores >= threshold
    return ErrorCounts(
        np.array([threshold]),
        np.array([np.count_nonzero(member & ~guessed)]),
        np.array([np.count_nonzero(~member & guessed)]),
        int(member.sum()),
        int((~member).sum()),
    )


def halved(member: BoolArray, rng: np.random.Generator) -> BoolArray:
    """Half of the trials of each world, at random; shape (n,)."""
    chosen = np.zeros(len(member), dtype=np.bool_)
    for world in (True, False):
        own = rng.permutation(np.flatnonzero(member == world))
        chosen[own[: len(own) // 2]] = True
    return chosen
