"""How much a score says about a coin: the grading by which `fair_coin` weighs guesses.

A grading is fixed on trials that are never scored. It turns a score into the log odds that the
trial's world was "in", by logistic regression on winsorised scores, and those into a guess: "in",
"out" or silence, of a weight that grows with how far the odds exceed a margin. A guess whose log
odds are no larger than ε speaks for (ε, δ)-DP, not against it: silence loses nothing there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from dpaudit.bounds._checks import BoolArray, FloatArray, IntArray
from dpaudit.bounds._cuts import checked
from dpaudit.bounds.fair_coin import CoinGuesses, weight_bound

WEIGHTS = 8
"""Weights that a guess can have."""
_WINSOR = (0.01, 0.1, 0.2, 0.3, 0.4)
"""Shares of the scores on either side that may count as no more extreme than the others."""
_BY_CHANCE = 2.0
"""By which the log likelihood of a larger share must be better, so that chance seldom takes it."""
_RIDGE = 0.005
"""Penalty of the regression, in trials of unit variance: keeps a perfect separation finite."""
_STEPS, _LONGEST, _CLOSE = 50, 4.0, 1e-8
"""Steps of the regression at most, the longest of one coefficient, and the last one."""
_CAUTION = 0.84
"""Standard deviations below the mean of what is counted on: four times in five there is more."""
_SILENT = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Shares of the trials that may be met with silence, of which one, or none, is chosen."""


class Grading(NamedTuple):
    """A rule that turns scores into weighted guesses.

    Of many records that share their trainings, the first four have one entry for each; shape (k,).

    Attributes:
        low: Scores below it count as this.
        high: Scores above it count as this.
        intercept: Log odds of world "in" at score 0.
        slope: Log odds of world "in" for a unit of the score.
        margin: Log odds up to which nothing is guessed.
        top: Log odds from which on a guess has the largest weight; above the margin.
    """

    low: float | FloatArray
    high: float | FloatArray
    intercept: float | FloatArray
    slope: float | FloatArray
    margin: float
    top: float

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """Log odds that each coin fell on "in"; same shape as the scores, (n,) or (n, k)."""
        odds: FloatArray = self.intercept + self.slope * np.clip(scores, self.low, self.high)
        return odds

    def guesses(self, scores: FloatArray) -> IntArray:
        """The guess on each trial, by its weight: positive for "in", negative for "out", or 0."""
        return weighed(self.log_odds(scores), margin=self.margin, top=self.top)


def weighed(odds: FloatArray, *, margin: float, top: float) -> IntArray:
    """Guesses of coins by their weight: positive for "in", negative for "out", or 0.

    Args:
        odds: Log odds that each coin fell on "in"; any shape.
        margin: Log odds up to which nothing is guessed.
        top: Log odds from which on a guess has the largest weight; above the margin.
    """
    beyond = np.abs(odds) - margin
    steps = np.ceil(WEIGHTS * beyond / (top - margin))
    weights: IntArray = np.where(beyond > 0, np.clip(steps, 1, WEIGHTS), 0).astype(int)
    return np.where(odds > 0, weights, -weights)


def count_guesses(
    scores: FloatArray, member: BoolArray, grading: Grading, *, failed: int = 0
) -> CoinGuesses:
    """Counts the guesses of a grading that was chosen on other scores.

    Args:
        scores: Attack scores of the scored trials; shape (n,).
        member: Whether the trial's world is "in"; shape (n,).
        grading: The rule, fixed beforehand.
        failed: Trials without a score, on which nothing is guessed.

    Returns:
        The guesses, by weight.
    """
    guessed = grading.guesses(scores)
    weights = np.abs(guessed)
    size = WEIGHTS + 1
    made = np.bincount(weights, minlength=size)[1:]
    right = np.bincount(weights[(guessed > 0) == member], minlength=size)[1:]
    return CoinGuesses(tuple(right.tolist()), tuple(made.tolist()), len(scores) + failed)


def choose_grading(
    scores: FloatArray, member: BoolArray, *, trials: int, delta: float, confidence: float
) -> Grading:
    """Chooses the grading that promises the largest bound.

    Candidates differ in how many of the trials are met with silence. What each promises is a bound
    that it reaches four times in five if guesses are right as often as their log odds say: the
    regression is steadier than the few trials that it was fitted on. Among equals the one that
    guesses more wins.

    Args:
        scores: Attack scores that are not scored later; shape (n,), finite.
        member: Whether the trial's world is "in"; shape (n,), both worlds present.
        trials: Trials that will be scored.
        delta: δ of the claim, in [0, 1).
        confidence: One-sided confidence of the bound to come, in (0, 1).

    Returns:
        The grading.

    Raises:
        SettingsError: If scores and membership do not fit, or a setting is out of range.
    """
    scores, member = checked(scores, member)
    line = _log_odds_line(scores, member)
    size = np.abs(line.log_odds(scores))
    success = expit(size)
    best, most = line, 0.0
    for candidate in _candidates(line, size):
        weights = np.abs(candidate.guesses(scores))
        made = np.bincount(weights, minlength=WEIGHTS + 1)[1:]
        scored = [int(trials * count / len(scores)) for count in made.tolist()]
        share = float(np.arange(1, WEIGHTS + 1) @ scored) / max(1.0, float(weights.sum()))
        mean = share * float(weights @ success)
        variance = share * float(weights**2 @ (success * (1.0 - success)))
        expected = round(mean - _CAUTION * math.sqrt(variance))
        bound = weight_bound(
            scored, expected, trials, delta=delta, confidence=confidence, at_least=most
        )
        if bound > most:
            best, most = candidate, bound
    return best


class _Line(NamedTuple):
    """A regression line and its penalised loss, in nats."""

    grading: Grading
    loss: float


def _log_odds_line(scores: FloatArray, member: BoolArray) -> Grading:
    """The regression alone: no silence, and hardly any difference in weight.

    Odds that grow no further from some score on, as those of Laplace noise, are met by winsorising
    more of the scores: a line that went on growing would give the tails a weight that they do not
    deserve.
    """
    best, *others = (_fitted_line(scores, member, share) for share in _WINSOR)
    for line in others:
        if line.loss < best.loss - _BY_CHANCE:
            best = line
    return best.grading


def _fitted_line(scores: FloatArray, member: BoolArray, share: float) -> _Line:
    low, high = (float(edge) for edge in np.quantile(scores, [share, 1.0 - share]))
    clipped = np.clip(scores, low, high)
    centre, spread = float(clipped.mean()), float(clipped.std())
    if spread <= 1e-12 * max(1.0, abs(centre)):
        return _Line(Grading(low, high, 0.0, 0.0, 0.0, 1.0), math.inf)
    unit = (clipped - centre) / spread
    design = np.stack([np.ones_like(unit), unit])
    ridge = np.array([0.0, 2.0 * _RIDGE])
    line = np.zeros(2)
    for _ in range(_STEPS):  # Newton's method
        success = expit(line @ design)
        down = design @ (success - member) + ridge * line
        curve = (design * (success * (1.0 - success))) @ design.T + np.diag(ridge)
        step = np.linalg.solve(curve, down)
        line -= np.clip(step, -_LONGEST, _LONGEST)
        if np.abs(step).max() < _CLOSE:
            break
    odds = line @ design
    loss = np.logaddexp(0.0, np.where(member, -odds, odds)).sum() + _RIDGE * line[1] ** 2
    intercept, slope = line[0], line[1] / spread
    grading = Grading(low, high, float(intercept - slope * centre), float(slope), 0.0, 1.0)
    return _Line(grading, float(loss))


def _candidates(line: Grading, size: FloatArray) -> Iterator[Grading]:
    """The line with every margin: those that leave a share of the trials in silence."""
    ordered = np.sort(size)
    top = float(ordered[-1])
    margins = [0.0, *(float(ordered[int(share * len(ordered))]) for share in _SILENT)]
    for margin in sorted(set(margins)):
        if margin < top:
            yield line._replace(margin=margin, top=top)
