"""How much scores say about the coins of many records that share their trainings.

As `bounds.grading`, for many records at once. Either one line of log odds serves all records, so
that records that leak alike lend one another strength; or each has its own, drawn to abstention
unless it separates its trainings by more than chance, so that a record that leaks alone is guessed
where the others are not. The trainings that are never scored decide which of the two predicts coins
better, and whether there is a margin of log odds below which the rule abstains. Of the margins the
one that promises most always promises more than none, by chance alone: so there is none unless
surer guesses are right more often, which they are not if a leak shows equally in all outputs, as
that of randomised response does. Both are decided by cross-validation.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit, ndtri

from dpaudit.bounds._checks import BoolArray, FloatArray, IntArray
from dpaudit.bounds.fair_coin import CoinGuesses, any_revealed, fair_coin, set_aside
from dpaudit.bounds.grading import WEIGHTS, Grading, weighed
from dpaudit.errors import SettingsError

_RIDGE = 0.005
"""Penalty of a slope, in guesses of unit variance: keeps a perfect separation finite."""
_WINSOR = 0.001
"""Share of all scores on either side that count as no more extreme than the others."""
_BY_CHANCE = 4.0
"""Likelihood ratio statistic that own lines are shrunk by: 1 on average without a leak."""
_SURER_BETTER = 1.5
"""Standard errors by which right guesses must correlate with larger odds for a rule to abstain."""
_FOLDS = 5
"""Parts of the trainings, each guessed by lines fitted on the others."""
_ABSTAINING = (0.2, 0.4, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99, 0.995)
"""Shares of all guesses that may be abstained from, of which one, or none, is chosen."""


class _Lines(Enum):
    """Whose line of log odds it is."""

    ALIKE = auto()
    """One for all records, whose scores have one middle and one spread."""
    COMMON = auto()
    """One for all records, each with its own middle and spread of scores."""
    OWN = auto()
    """One for each record."""


_COSTS = {_Lines.ALIKE: 0.0, _Lines.COMMON: 0.0, _Lines.OWN: 2.0}
"""By which lines must predict held-out coins better, in nats, so that chance seldom takes OWN."""


class RecordPromise(NamedTuple):
    """A grading and what it promises.

    Attributes:
        grading: The rule, fixed on all trainings handed in.
        bound: The bound on epsilon if the scored trainings are guessed as these were, each part of
            them by lines fitted on the others.
    """

    grading: Grading
    bound: float


def count_record_guesses(guessed: IntArray, included: BoolArray, *, failed: int = 0) -> CoinGuesses:
    """Counts guesses of coins that share trainings.

    Args:
        guessed: Guesses by weight, as `Grading.guesses` gives them; shape (n, k).
        included: Which records each training had; shape (n, k).
        failed: Trainings without scores, on whose k coins nothing is guessed.

    Returns:
        The guesses, by weight, and how many each training has.
    """
    weights = np.abs(guessed)
    made = np.bincount(weights.ravel(), minlength=WEIGHTS + 1)[1:]
    right = np.bincount(weights[(guessed > 0) == included], minlength=WEIGHTS + 1)[1:]
    by_training = [*np.count_nonzero(weights, axis=1).tolist(), *[0] * failed]
    trials = len(by_training) * guessed.shape[1]
    return CoinGuesses(tuple(right.tolist()), tuple(made.tolist()), trials, tuple(by_training))


def promise_of_records(
    scores: FloatArray,
    included: BoolArray,
    *,
    trainings: int,
    delta: float,
    confidence: float,
    rng: np.random.Generator,
) -> RecordPromise:
    """Chooses the lines, and whether the rule abstains, on trainings that are never scored.

    Args:
        scores: Scores of trainings that are not scored later; shape (n, k), finite.
        included: Which records each training had; shape (n, k).
        trainings: Trainings that will be scored.
        delta: δ of the claim, in [0, 1).
        confidence: One-sided confidence of the bound to come, in (0, 1).
        rng: Draws the parts of the cross-validation.

    Returns:
        The grading and its promise.

    Raises:
        SettingsError: If the shapes differ, there are fewer than two trainings, or a setting is out
            of range.
    """
    if scores.shape != included.shape or scores.ndim != 2 or len(scores) < 2:
        raise SettingsError(
            f"scores of shape {scores.shape} and coins of shape {included.shape}: give both for "
            "the same records of at least 2 trainings"
        )
    asked: dict[str, Any] = {"trainings": trainings, "delta": delta, "confidence": confidence}
    fold = rng.permutation(len(scores)) % min(_FOLDS, len(scores))
    tried = {
        lines: _held_out(scores, included, lines, fold)
        for lines in (_Lines if scores.shape[1] > 1 else (_Lines.COMMON,))
    }
    lines = min(tried, key=lambda one: _loss(tried[one], included) + _COSTS[one])
    odds = tried[lines]
    grading = _fitted(scores, included, lines)
    if _surer_are_right_more_often(odds, included):
        grading = _with_margin(grading, scores, **asked)
    guessed = weighed(odds, margin=grading.margin, top=grading.top)
    again = _spread_over(len(scores), trainings)
    counted = count_record_guesses(guessed[again], included[again])
    return RecordPromise(grading, fair_coin(*counted, delta=delta, confidence=confidence))


def _held_out(scores: FloatArray, included: BoolArray, lines: _Lines, fold: IntArray) -> FloatArray:
    """Log odds of the coins of each part of the trainings by lines fitted on the others."""
    odds = np.empty(scores.shape)
    for part in range(int(fold.max()) + 1):
        mine = fold == part
        odds[mine] = _fitted(scores[~mine], included[~mine], lines).log_odds(scores[mine])
    return odds


def _loss(odds: FloatArray, included: BoolArray) -> float:
    """Minus the log likelihood of coins at these log odds, in nats."""
    return float(np.logaddexp(0.0, np.where(included, -odds, odds)).sum())


def _surer_are_right_more_often(odds: FloatArray, included: BoolArray) -> bool:
    """Whether guesses at larger odds are right more often than others, by more than chance.

    The score test of a logistic regression of being right on the log odds: a correlation.
    """
    guessed = odds != 0.0
    size, right = np.abs(odds[guessed]), ((odds > 0.0) == included)[guessed]
    if right.all() or not right.any() or np.ptp(size) <= 1e-9:
        return False
    return bool(np.corrcoef(size, right)[0, 1] * np.sqrt(right.size) > _SURER_BETTER)


def _with_margin(
    lines: Grading, scores: FloatArray, *, trainings: int, delta: float, confidence: float
) -> Grading:
    """The lines with the margin that promises most if guesses are as often right as they say."""
    odds, top = lines.log_odds(scores), lines.top
    size = np.abs(odds)
    best, most = lines, 0.0
    revealed = any_revealed(scores.shape[1], delta)
    aside = set_aside(trainings, delta=revealed, confidence=confidence)
    if aside is None:
        return best
    again = _spread_over(len(scores), trainings)
    chances = expit(size)[again]
    z = float(ndtri(confidence + aside.probability))
    margins = {0.0, *np.quantile(size, _ABSTAINING).tolist()}
    for margin in sorted(one for one in margins if one < top):
        weights = np.abs(weighed(odds, margin=margin, top=top))[again]
        most_made = np.sort(np.count_nonzero(weights, axis=1))[::-1][: aside.revealed]
        sure = np.argsort(-weights, axis=None, kind="stable")[: most_made.sum()]
        uncertain = weights.ravel().copy()
        uncertain[sure] = 0
        right = float((weights * chances).sum()) - float(weights.ravel()[sure].sum())
        promised = _approximate(right, uncertain, z)
        if promised > most:
            best, most = lines._replace(margin=margin), promised
    return best


def _approximate(right: float, weights: IntArray, z: float) -> float:
    """The bound from this much weight of right guesses if their sum were normal (Wilson 1927)."""
    if right <= 0.0:
        return 0.0
    mean, variance = float(weights.sum()), z**2 * float((weights**2).sum())
    middle = 2.0 * right * mean + variance
    square = mean**2 + variance
    least = (middle - np.sqrt(max(0.0, middle**2 - 4.0 * square * right**2))) / (2.0 * square)
    return float(logit(least))


def _spread_over(known: int, wanted: int) -> IntArray:
    """Which of the known trainings stands for each of the wanted ones: each about as often."""
    stands: IntArray = np.arange(wanted) * known // wanted
    return stands


def _fitted(scores: FloatArray, included: BoolArray, lines: _Lines) -> Grading:
    """Logistic regression, of all records together or of each; without a margin yet.

    Unless records are alike, the middle and the spread of each record's scores are taken out first,
    so that the records' scales may differ; one whose scores never vary has odds of 1 : 1.
    """
    of = scores.reshape(-1, 1) if lines is _Lines.ALIKE else scores
    centre, spread = (
        np.broadcast_to(one, scores.shape[1:]) for one in (of.mean(axis=0), of.std(axis=0))
    )
    varies = spread > 1e-12 * np.maximum(1.0, np.abs(centre))
    scale = np.where(varies, spread, 1.0)
    unit = np.where(varies, (scores - centre) / scale, 0.0)
    low, high = np.quantile(unit[:, varies], [_WINSOR, 1.0 - _WINSOR]) if varies.any() else (0, 0)
    unit = np.clip(unit, low, high)
    sign = np.where(included, 1.0, -1.0)
    lot = scores.shape[1] if lines is _Lines.OWN else 1

    def losses(line: FloatArray) -> FloatArray:
        intercept, slope = line.reshape(2, lot)
        found: FloatArray = np.logaddexp(0.0, -sign * (intercept + slope * unit)).sum(axis=0)
        return found

    def loss(line: FloatArray) -> tuple[float, FloatArray]:
        intercept, slope = line.reshape(2, lot)
        miss = -sign * expit(-sign * (intercept + slope * unit))
        steps = np.array([miss.sum(axis=0), (miss * unit).sum(axis=0)])
        steps = steps if lot > 1 else steps.sum(axis=1, keepdims=True)
        steps[1] += 2.0 * _RIDGE * slope
        penalty = _RIDGE * float((slope**2).sum())
        return float(losses(line).sum()) + penalty, steps.ravel()

    start = np.zeros(2 * lot)
    line = minimize(loss, start, jac=True, method="L-BFGS-B").x
    intercept, slope = np.where(varies, line.reshape(2, lot), 0.0)
    if lines is _Lines.OWN:
        ratio = 2.0 * (losses(start) - losses(line))
        kept = np.clip(1.0 - _BY_CHANCE / np.maximum(ratio, _BY_CHANCE), 0.0, 1.0)
        intercept, slope = kept * intercept, kept * slope
    fitted = Grading(
        low=centre + low * scale,
        high=centre + high * scale,
        intercept=intercept - slope * centre / scale,
        slope=slope / scale,
        margin=0.0,
        top=1.0,
    )
    return fitted._replace(top=max(float(np.abs(fitted.log_odds(scores)).max()), 1e-9))
