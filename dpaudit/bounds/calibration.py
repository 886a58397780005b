"""Calibration of scores: the log odds of a coin, and the weighted guesses made from them.

A calibration is fixed on trials that are never scored. It turns a score into the log odds that the
trial's world was "in", by logistic regression on winsorised scores. It turns the log odds into a
guess for `fair_coin`: "in", "out" or abstention. The further the odds exceed a margin, the larger
the weight of the guess. A guess whose log odds are no larger than ε is evidence for (ε, δ)-DP, not
against it: abstaining costs nothing there.

Many records that share their trainings are calibrated together. Either all records share one line
of log odds, which pools the evidence of records with similar leaks; or each record has its own
line, shrunk towards abstention unless it separates its trainings better than chance, which serves a
record that leaks alone. Two choices are made by cross-validation on trainings that are never
scored: which of the two predicts coins better, and whether the rule abstains below some margin of
log odds. The best margin always has a larger forecast than no margin, by chance alone. So there is
a margin only if guesses at larger odds are right more often; they are not if all outputs show the
leak equally, as those of randomised response do.

The rule that scores an attack is chosen by its forecast on the fitting part alone: the exact bound
at one threshold, or the fair-coin bound on weighted guesses. The first is better for large δ and
for leaks that show equally in all trials, the second for leaks that show more clearly in some
trials than in others. Only the chosen rule is computed on the scored trials.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from enum import Enum, auto
from typing import Any, NamedTuple

import numpy as np
import scipy

from dpaudit.bounds.exact import exact
from dpaudit.bounds.fair_coin import CoinGuesses, any_revealed, fair_coin, set_aside, weight_bound
from dpaudit.bounds.inputs import BoolArray, Counts, FloatArray, IntArray
from dpaudit.bounds.threshold import checked, choose_threshold, count_errors
from dpaudit.errors import SettingsError

WEIGHTS = 8
"""Number of weights that a guess can have."""
_WINSOR = (
    *((share, share) for share in (0.01, 0.1, 0.2, 0.3, 0.4)),
    *(pair for share in (0.5, 0.7, 0.8, 0.9) for pair in ((share, 0.01), (0.01, share))),
)
"""Pairs of shares that may be winsorised: of the lowest scores and of the highest."""
_SHARE_PENALTY = 2.0
"""Log likelihood by which another share must beat the smaller ones: chance seldom does."""
_RIDGE = 0.005
"""Ridge penalty of a slope, in trials of unit variance: perfect separation stays finite."""
_STEPS, _LONGEST_STEP, _CONVERGED = 50, 4.0, 1e-8
"""Newton steps at most, the longest step of a coefficient, and the step that ends the search."""
_CAUTION = 0.84
"""Forecasts lie this many standard deviations below the mean: 80 % of outcomes exceed them."""
_ABSTENTIONS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Shares of the trials on which a rule may abstain, in addition to none."""
_RECORD_WINSOR = 0.001
"""Share of all scores that is winsorised on either side."""
_SHRINKAGE = 4.0
"""A record's own line is shrunk in units of this likelihood ratio statistic."""
_LARGER_ODDS_BETTER = 1.5
"""A rule abstains only if correctness correlates with the odds by this many standard errors."""
_FOLDS = 5
"""Folds of the trainings, each guessed by lines fitted on the others."""
_RECORD_ABSTENTIONS = (0.2, 0.4, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99, 0.995)
"""Shares of all guesses on which a rule for records may abstain, in addition to none."""


class GuessCalibration(NamedTuple):
    """A rule that turns scores into weighted guesses.

    For many records that share their trainings, the first four attributes have one entry per
    record; shape (k,).

    Attributes:
        low: Lower scores count as this one.
        high: Higher scores count as this one.
        intercept: Log odds of world "in" at a score of 0.
        slope: Change of the log odds of world "in" per unit of the score.
        margin: Log odds up to which the rule abstains.
        top: Log odds at which a guess reaches the largest weight; above the margin.
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
        margin: Log odds up to which the rule abstains.
        top: Log odds at which a guess reaches the largest weight; above the margin.
    """
    beyond = np.abs(odds) - margin
    steps = np.ceil(WEIGHTS * beyond / (top - margin))
    weights: IntArray = np.where(beyond > 0, np.clip(steps, 1, WEIGHTS), 0).astype(int)
    return np.where(odds > 0, weights, -weights)


def count_guesses(
    scores: FloatArray, member: BoolArray, calibration: GuessCalibration, *, failed: int = 0
) -> CoinGuesses:
    """Counts the guesses of a calibration that was chosen on other scores.

    Args:
        scores: Attack scores of the scored trials; shape (n,).
        member: Whether the trial's world is "in"; shape (n,).
        calibration: The rule, fixed beforehand.
        failed: Trials without a score, on which nothing is guessed.

    Returns:
        The guesses, by weight.
    """
    right, made = _by_weight(calibration.guesses(scores), member)
    return CoinGuesses(right, made, len(scores) + failed)


def _by_weight(guessed: IntArray, coins: BoolArray) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """How many guesses of each weight are right, and how many are made."""
    weights = np.abs(guessed)
    right, made = (
        np.bincount(of.ravel(), minlength=WEIGHTS + 1)[1:]
        for of in (weights[(guessed > 0) == coins], weights)
    )
    return tuple(right.tolist()), tuple(made.tolist())


def choose_calibration(
    scores: FloatArray, member: BoolArray, *, trials: int, delta: float, confidence: float
) -> GuessCalibration:
    """Chooses the calibration with the largest forecast of the bound.

    Candidates differ in the share of trials on which they abstain. The forecast of a candidate is a
    bound that it reaches with probability 80 % if guesses are correct as often as their log odds
    say: the regression is steadier than the few trials it was fitted on. Of equal forecasts, the
    candidate with more guesses wins.

    Args:
        scores: Attack scores that are not scored later; shape (n,), finite.
        member: Whether the trial's world is "in"; shape (n,), both worlds present.
        trials: Trials that will be scored.
        delta: δ of the claim, in [0, 1).
        confidence: One-sided confidence of the bound to come, in (0, 1).

    Returns:
        The calibration.

    Raises:
        SettingsError: If scores and membership do not fit, or a setting is out of range.
    """
    scores, member = checked(scores, member)
    line = log_odds_line(scores, member)
    size = np.abs(line.log_odds(scores))
    success = scipy.special.expit(size)
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


def log_odds_line(scores: FloatArray, member: BoolArray) -> GuessCalibration:
    """The regression alone: it never abstains, and its weights hardly differ.

    For some mechanisms, such as Laplace noise, the log odds stop growing beyond some score. More
    winsorising follows them; a line that kept growing would overweight the tails.

    Args:
        scores: Attack scores that are not scored later; shape (n,), finite.
        member: Whether the trial's world is "in"; shape (n,), both worlds present.

    Returns:
        The line, which is all that bets need.
    """
    below, above = np.transpose(_WINSOR)
    low, high = np.quantile(scores, below), np.quantile(scores, 1.0 - above)
    clipped = np.clip(scores, low[:, None], high[:, None])
    centre, spread = clipped.mean(axis=1), clipped.std(axis=1)
    varies = spread > 1e-12 * np.maximum(1.0, np.abs(centre))
    spread = np.where(varies, spread, 1.0)
    intercept, slope, loss = _fit_regressions((clipped - centre[:, None]) / spread[:, None], member)
    loss = np.where(varies, loss, math.inf)
    slope = np.where(varies, slope / spread, 0.0)
    intercept = np.where(varies, intercept - slope * centre, 0.0)
    best = 0  # the mildest winsorising, unless another fits clearly better
    for candidate in range(1, len(_WINSOR)):
        if loss[candidate] < loss[best] - _SHARE_PENALTY:
            best = candidate
    return GuessCalibration(
        low=float(low[best]),
        high=float(high[best]),
        intercept=float(intercept[best]),
        slope=float(slope[best]),
        margin=0.0,
        top=1.0,
    )


def _fit_regressions(
    scores: FloatArray, member: BoolArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Fits a logistic regression to each row of standardised scores (k, n) by Newton's method.

    Returns:
        Intercepts, slopes and penalised losses in nats; shape (k,) each.
    """
    a, b = np.zeros(len(scores)), np.zeros(len(scores))
    unfinished = np.ones(len(scores), dtype=bool)
    for _ in range(_STEPS):
        success = scipy.special.expit(a[:, None] + b[:, None] * scores)
        residual, weight = success - member, success * (1.0 - success)
        gradient_a, gradient_b = (
            residual.sum(axis=1),
            (residual * scores).sum(axis=1) + 2.0 * _RIDGE * b,
        )
        hessian_aa, hessian_ab = weight.sum(axis=1), (weight * scores).sum(axis=1)
        hessian_bb = (weight * scores**2).sum(axis=1) + 2.0 * _RIDGE
        # Solves each 2 x 2 Newton system by Cramer's rule, and clips long steps.
        determinant = hessian_aa * hessian_bb - hessian_ab**2
        steps = (
            np.stack(
                [
                    hessian_bb * gradient_a - hessian_ab * gradient_b,
                    hessian_aa * gradient_b - hessian_ab * gradient_a,
                ]
            )
            / determinant
        )
        a, b = (
            old - np.where(unfinished, np.clip(step, -_LONGEST_STEP, _LONGEST_STEP), 0.0)
            for old, step in zip((a, b), steps, strict=True)
        )
        unfinished &= np.abs(steps).max(axis=0) >= _CONVERGED
        if not unfinished.any():
            break
    odds = a[:, None] + b[:, None] * scores
    loss = np.logaddexp(0.0, np.where(member, -odds, odds)).sum(axis=1) + _RIDGE * b**2
    return a, b, loss


def _candidates(line: GuessCalibration, size: FloatArray) -> Iterator[GuessCalibration]:
    """The line with every margin to try; each margin abstains on another share of the trials."""
    ordered = np.sort(size)
    top = float(ordered[-1])
    margins = [0.0, *(float(ordered[int(share * len(ordered))]) for share in _ABSTENTIONS)]
    for margin in sorted(set(margins)):
        if margin < top:
            yield line._replace(margin=margin, top=top)


class _Lines(Enum):
    """Which records share a line of log odds."""

    ALIKE = auto()
    """One line for all records, whose scores share a mean and a spread."""
    COMMON = auto()
    """One line for all records, after standardising each record's scores by themselves."""
    OWN = auto()
    """A line for each record."""


_COSTS = {_Lines.ALIKE: 0.0, _Lines.COMMON: 0.0, _Lines.OWN: 2.0}
"""Nats by which OWN must predict held-out coins better: chance seldom does."""


class CalibratedRecords(NamedTuple):
    """A calibration and the bound that is forecast for it.

    Attributes:
        calibration: The rule, fixed on all trainings handed in.
        bound: The bound on epsilon if guesses on the scored trainings do as well as on these, where
            each fold was guessed by lines fitted on the others.
    """

    calibration: GuessCalibration
    bound: float


def count_record_guesses(guessed: IntArray, included: BoolArray, *, failed: int = 0) -> CoinGuesses:
    """Counts guesses of coins that share trainings.

    Args:
        guessed: Guesses by weight, from `GuessCalibration.guesses`; shape (n, k).
        included: Which records each training had; shape (n, k).
        failed: Trainings without scores, on whose k coins nothing is guessed.

    Returns:
        The guesses, by weight, and how many each training has.
    """
    by_training = [*np.count_nonzero(guessed, axis=1).tolist(), *[0] * failed]
    trials = len(by_training) * guessed.shape[1]
    return CoinGuesses(*_by_weight(guessed, included), trials, tuple(by_training))


def calibrate_records(
    scores: FloatArray,
    included: BoolArray,
    *,
    trainings: int,
    delta: float,
    confidence: float,
    rng: np.random.Generator,
) -> CalibratedRecords:
    """Chooses the lines, and whether the rule abstains, on trainings that are never scored.

    Args:
        scores: Scores of trainings that are not scored later; shape (n, k), finite.
        included: Which records each training had; shape (n, k).
        trainings: Trainings that will be scored.
        delta: δ of the claim, in [0, 1).
        confidence: One-sided confidence of the bound to come, in (0, 1).
        rng: Draws the folds of the cross-validation.

    Returns:
        The calibration and its forecast.

    Raises:
        SettingsError: If the shapes differ, there are fewer than two trainings, or a setting is out
            of range.
    """
    if scores.shape != included.shape or scores.ndim != 2 or len(scores) < 2:
        raise SettingsError(
            f"scores of shape {scores.shape} and coins of shape {included.shape}: give both for "
            "the same records of at least 2 trainings"
        )
    settings: dict[str, Any] = {"trainings": trainings, "delta": delta, "confidence": confidence}
    fold = rng.permutation(len(scores)) % min(_FOLDS, len(scores))
    odds_by_lines = {
        lines: _held_out_log_odds(scores, included, lines, fold)
        for lines in (_Lines if scores.shape[1] > 1 else (_Lines.COMMON,))
    }
    lines = min(odds_by_lines, key=lambda kind: _loss(odds_by_lines[kind], included) + _COSTS[kind])
    odds = odds_by_lines[lines]
    calibration = _fit_lines(scores, included, lines)
    if _larger_odds_are_right_more_often(odds, included):
        calibration = _choose_margin(calibration, scores, **settings)
    guessed = weighed(odds, margin=calibration.margin, top=calibration.top)
    stand_ins = _stand_ins(len(scores), trainings)
    guesses = count_record_guesses(guessed[stand_ins], included[stand_ins])
    return CalibratedRecords(calibration, fair_coin(*guesses, delta=delta, confidence=confidence))


def _held_out_log_odds(
    scores: FloatArray, included: BoolArray, lines: _Lines, fold: IntArray
) -> FloatArray:
    """Log odds of the coins of each fold of trainings, by lines fitted on the other folds."""
    odds = np.empty(scores.shape)
    for part in range(int(fold.max()) + 1):
        held_out = fold == part
        odds[held_out] = _fit_lines(scores[~held_out], included[~held_out], lines).log_odds(
            scores[held_out]
        )
    return odds


def _loss(odds: FloatArray, included: BoolArray) -> float:
    """Negative log likelihood of the coins at these log odds, in nats."""
    return float(np.logaddexp(0.0, np.where(included, -odds, odds)).sum())


def _larger_odds_are_right_more_often(odds: FloatArray, included: BoolArray) -> bool:
    """Whether guesses at larger odds are right significantly more often than others.

    The score test of a logistic regression of correctness on the log odds is a correlation.
    """
    guessed = odds != 0.0
    size, right = np.abs(odds[guessed]), ((odds > 0.0) == included)[guessed]
    if right.all() or not right.any() or np.ptp(size) <= 1e-9:
        return False
    return bool(np.corrcoef(size, right)[0, 1] * np.sqrt(right.size) > _LARGER_ODDS_BETTER)


def _choose_margin(
    lines: GuessCalibration, scores: FloatArray, *, trainings: int, delta: float, confidence: float
) -> GuessCalibration:
    """The lines with the margin that has the largest forecast, taking their log odds as true."""
    odds, top = lines.log_odds(scores), lines.top
    size = np.abs(odds)
    best, most = lines, 0.0
    revealed = any_revealed(scores.shape[1], delta)
    aside = set_aside(trainings, delta=revealed, confidence=confidence)
    if aside is None:
        return best
    stand_ins = _stand_ins(len(scores), trainings)
    chances = scipy.special.expit(size)[stand_ins]
    z = float(scipy.special.ndtri(confidence + aside.probability))
    margins = {0.0, *np.quantile(size, _RECORD_ABSTENTIONS).tolist()}
    for margin in sorted(margin for margin in margins if margin < top):
        weights = np.abs(weighed(odds, margin=margin, top=top))[stand_ins]
        # δ may reveal the trainings with the most guesses: they count as right, whatever the odds.
        most_made = np.sort(np.count_nonzero(weights, axis=1))[::-1][: aside.revealed]
        revealed_guesses = np.argsort(-weights, axis=None, kind="stable")[: most_made.sum()]
        unrevealed = weights.ravel().copy()
        unrevealed[revealed_guesses] = 0
        right = float((weights * chances).sum()) - float(weights.ravel()[revealed_guesses].sum())
        forecast = _approximate_bound(right, unrevealed, z)
        if forecast > most:
            best, most = lines._replace(margin=margin), forecast
    return best


def _approximate_bound(right: float, weights: IntArray, z: float) -> float:
    """The bound for right guesses of this total weight if their sum were normal (Wilson 1927)."""
    if right <= 0.0:
        return 0.0
    mean, variance = float(weights.sum()), z**2 * float((weights**2).sum())
    middle = 2.0 * right * mean + variance
    square = mean**2 + variance
    least = (middle - np.sqrt(max(0.0, middle**2 - 4.0 * square * right**2))) / (2.0 * square)
    return float(scipy.special.logit(least))


def _stand_ins(available: int, wanted: int) -> IntArray:
    """The training at hand that stands in for each one to come; all about equally often."""
    indices: IntArray = np.arange(wanted) * available // wanted
    return indices


def _fit_lines(scores: FloatArray, included: BoolArray, lines: _Lines) -> GuessCalibration:
    """Fits a logistic regression to all records together or to each; it has no margin yet.

    Unless records are alike, each record's scores are centred and scaled first, so scales may
    differ between records. A record whose scores never vary has odds of 1 : 1.
    """
    pooled = scores.reshape(-1, 1) if lines is _Lines.ALIKE else scores
    centre, spread = (
        np.broadcast_to(moment, scores.shape[1:])
        for moment in (pooled.mean(axis=0), pooled.std(axis=0))
    )
    varies = spread > 1e-12 * np.maximum(1.0, np.abs(centre))
    scale = np.where(varies, spread, 1.0)
    unit = np.where(varies, (scores - centre) / scale, 0.0)
    low, high = (
        np.quantile(unit[:, varies], [_RECORD_WINSOR, 1.0 - _RECORD_WINSOR])
        if varies.any()
        else (0, 0)
    )
    unit = np.clip(unit, low, high)
    sign = np.where(included, 1.0, -1.0)
    n_lines = scores.shape[1] if lines is _Lines.OWN else 1

    def losses(line: FloatArray) -> FloatArray:
        intercept, slope = line.reshape(2, n_lines)
        loss_by_record: FloatArray = np.logaddexp(0.0, -sign * (intercept + slope * unit)).sum(
            axis=0
        )
        return loss_by_record

    def loss(line: FloatArray) -> tuple[float, FloatArray]:
        intercept, slope = line.reshape(2, n_lines)
        miss = -sign * scipy.special.expit(-sign * (intercept + slope * unit))
        steps = np.array([miss.sum(axis=0), (miss * unit).sum(axis=0)])
        steps = steps if n_lines > 1 else steps.sum(axis=1, keepdims=True)
        steps[1] += 2.0 * _RIDGE * slope
        penalty = _RIDGE * float((slope**2).sum())
        return float(losses(line).sum()) + penalty, steps.ravel()

    start = np.zeros(2 * n_lines)
    line = scipy.optimize.minimize(loss, start, jac=True, method="L-BFGS-B").x
    intercept, slope = np.where(varies, line.reshape(2, n_lines), 0.0)
    if lines is _Lines.OWN:
        # Shrinks a record's line to odds of 1 : 1 unless it beats them in likelihood.
        ratio = 2.0 * (losses(start) - losses(line))
        kept = np.clip(1.0 - _SHRINKAGE / np.maximum(ratio, _SHRINKAGE), 0.0, 1.0)
        intercept, slope = kept * intercept, kept * slope
    fitted = GuessCalibration(
        low=centre + low * scale,
        high=centre + high * scale,
        intercept=intercept - slope * centre / scale,
        slope=slope / scale,
        margin=0.0,
        top=1.0,
    )
    return fitted._replace(top=max(float(np.abs(fitted.log_odds(scores)).max()), 1e-9))


_PREFERENCE = 0.2
"""The exact bound is chosen if its forecast is larger by at least this much.

Measured on Gaussian shifts, Laplace noise and randomised response with 200 trials of each world:
if the forecasts are this close, the fair-coin bound is at least as large on the scored trials.
"""


class Forecast(NamedTuple):
    """An attack's forecast from the trials that it was fitted on.

    Attributes:
        bound: The bound on epsilon if the scored trials are guessed equally well.
        by_coins: Whether this is the fair-coin bound.
    """

    bound: float
    by_coins: bool


class FailedTrials(NamedTuple):
    """Numbers of failed trials, which an attack cannot use, in worlds "in" and "out"."""

    n_in: int
    n_out: int


def choose_rule(
    scores: FloatArray,
    member: BoolArray,
    *,
    failed: FailedTrials,
    scored: int,
    delta: float,
    confidence: float,
    rng: np.random.Generator,
    coins_alone: bool = False,
) -> Forecast:
    """Compares both rules by cross-fitting: each is fixed on one half and tried on the other.

    Args:
        scores: Attack scores that are not scored later; shape (n,), finite.
        member: Whether the trial's world is "in"; shape (n,), both worlds present.
        failed: Trials of the fitting part without a score.
        scored: Trials that will be scored.
        delta: δ of the claim, in [0, 1).
        confidence: One-sided confidence of the bound to come, in (0, 1).
        rng: Draws the halves.
        coins_alone: Whether to choose the fair-coin bound regardless, because the exact bound needs
            trials whose errors are independent and equally likely.

    Returns:
        The better rule.
    """
    if min(np.count_nonzero(member), np.count_nonzero(~member)) < 2:
        return Forecast(0.0, by_coins=True)  # too few to try anything on
    half = _half(member, rng)
    settings: dict[str, Any] = {"delta": delta, "confidence": confidence}
    failed_half = FailedTrials(*(-(-count // 2) for count in failed))
    cut_bounds = []
    right, made = np.zeros((2, WEIGHTS), dtype=np.int64)
    for fitted in (half, ~half):
        fitting, held_out = (scores[fitted], member[fitted]), (scores[~fitted], member[~fitted])
        # Each threshold is judged alone: the summed errors of two thresholds belong to neither.
        errors = count_errors(*held_out, choose_threshold(*fitting, **settings))
        cut_bounds.append(exact(*scaled_errors(errors, failed_half, scored=scored), **settings))
        calibration = choose_calibration(*fitting, trials=scored, **settings)
        guesses = count_guesses(*held_out, calibration)
        right += guesses.right
        made += guesses.made
    share = scored / (len(member) + sum(failed))
    coins = _scaled_guesses(right.tolist(), made.tolist(), share, trials=scored)
    coin_bound = fair_coin(*coins, **settings)
    cut_bound = float(np.mean(cut_bounds))
    if cut_bound > coin_bound + _PREFERENCE and not coins_alone:
        return Forecast(cut_bound, by_coins=False)
    return Forecast(coin_bound, by_coins=True)


def scaled_errors(counts: Counts, failed: FailedTrials, *, scored: int) -> Counts:
    """The errors to expect on the scored trials, half of them in each world.

    Args:
        counts: Errors on all or some of the trials that the threshold was chosen on.
        failed: Failed trials in addition, which count as errors.
        scored: Trials that will be scored.

    Returns:
        The errors, rounded up.
    """
    size = max(1, scored // 2)
    errors = (counts.false_negatives + failed.n_in, counts.false_positives + failed.n_out)
    trials = (counts.n_in + failed.n_in, counts.n_out + failed.n_out)
    false_negatives, false_positives = (
        min(size, -(-count * size // n)) for count, n in zip(errors, trials, strict=True)
    )
    return Counts(false_negatives, false_positives, size, size)


def _scaled_guesses(
    right: Sequence[float], made: Sequence[int], share: float, *, trials: int
) -> CoinGuesses:
    """The guesses to expect on this many trials, at the rates seen on other trials.

    Args:
        right: Right guesses of each weight, from 1 on.
        made: Guesses of each weight.
        share: Factor by which to scale each count; guesses are rounded down.
        trials: Trials to scale to.

    Returns:
        The guesses.
    """
    guesses = tuple(int(share * count) for count in made)
    hits = tuple(
        min(round(share * count), most) for count, most in zip(right, guesses, strict=True)
    )
    return CoinGuesses(hits, guesses, trials)


def _half(member: BoolArray, rng: np.random.Generator) -> BoolArray:
    """Half of the trials of each world, at random."""
    chosen = np.zeros(len(member), dtype=np.bool_)
    for world in (True, False):
        shuffled = rng.permutation(np.flatnonzero(member == world))
        chosen[shuffled[: (len(shuffled) + 1) // 2]] = True
    return chosen
