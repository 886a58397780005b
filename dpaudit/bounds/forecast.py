"""Chooses which of two rules scores an attack, and forecasts its bound.

Both use the fitting part only. The rules are the exact bound at one threshold and the fair-coin
bound on weighted guesses. The first is better for large δ and for leaks that show equally in all
trials, the second for leaks that show more clearly in some trials than in others. Only the chosen
rule is computed on the scored trials.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dpaudit.bounds.calibration import WEIGHTS, choose_calibration, count_guesses
from dpaudit.bounds.exact import exact
from dpaudit.bounds.fair_coin import CoinGuesses, fair_coin
from dpaudit.bounds.inputs import BoolArray, Counts, FloatArray
from dpaudit.bounds.threshold import choose_threshold, count_errors

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
