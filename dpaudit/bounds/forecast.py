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
        bound: The bound on epsilon if the scored trials are guessed alike.
        by_coins: Whether that is the fair-coin bound.
    """

    bound: float
    by_coins: bool


class FailedTrials(NamedTuple):
    """Failed trials, which an attack cannot use, in world "in" and in world "out"."""

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
        failed: Trials of the same part without a score.
        scored: Trials that will be scored.
        delta: δ of the claim, in [0, 1).
        confidence: One-sided confidence of the bound to come, in (0, 1).
        rng: Draws the halves.
        coins_alone: Whether the fair-coin bound is taken anyway: the exact bound needs trials that
            err independently and equally often.

    Returns:
        The better rule.
    """
    if min(np.count_nonzero(member), np.count_nonzero(~member)) < 2:
        return Forecast(0.0, by_coins=True)  # too few to try anything on
    first = _half(member, rng)
    asked: dict[str, Any] = {"delta": delta, "confidence": confidence}
    failed_half = FailedTrials(*(-(-count // 2) for count in failed))
    by_cuts = []
    right, made = np.zeros((2, WEIGHTS), dtype=np.int64)
    for fixed in (first, ~first):
        own, others = (scores[fixed], member[fixed]), (scores[~fixed], member[~fixed])
        # Each threshold is judged alone: the summed errors of two thresholds belong to neither.
        errors = count_errors(*others, choose_threshold(*own, **asked))
        by_cuts.append(exact(*scaled_errors(errors, failed_half, scored=scored), **asked))
        calibration = choose_calibration(*own, trials=scored, **asked)
        guesses = count_guesses(*others, calibration)
        right += guesses.right
        made += guesses.made
    share = scored / (len(member) + sum(failed))
    coins = _scaled_guesses(right.tolist(), made.tolist(), share, trials=scored)
    by_coins = fair_coin(*coins, **asked)
    by_cut = float(np.mean(by_cuts))
    if by_cut > by_coins + _PREFERENCE and not coins_alone:
        return Forecast(by_cut, by_coins=False)
    return Forecast(by_coins, by_coins=True)


def scaled_errors(counts: Counts, failed: FailedTrials, *, scored: int) -> Counts:
    """The expected errors of the scored trials, half in each world, at the rates of other trials.

    Args:
        counts: Errors on all or some of the trials that the threshold was chosen on.
        failed: Failed trials in addition: errors in either world.
        scored: Trials that will be scored.

    Returns:
        The errors, rounded up.
    """
    size = max(1, scored // 2)
    wrong = (counts.false_negatives + failed.n_in, counts.false_positives + failed.n_out)
    of = (counts.n_in + failed.n_in, counts.n_out + failed.n_out)
    missed, mistaken = (
        min(size, -(-count * size // all_of)) for count, all_of in zip(wrong, of, strict=True)
    )
    return Counts(missed, mistaken, size, size)


def _scaled_guesses(
    right: Sequence[float], made: Sequence[int], share: float, *, trials: int
) -> CoinGuesses:
    """Guesses on this many trials, as frequent and as often correct as on other trials.

    Args:
        right: Right guesses of each weight, from 1 on.
        made: Guesses of each weight.
        share: Factor of each count; guesses are rounded down.
        trials: Trials of the result.

    Returns:
        The guesses.
    """
    most = tuple(int(share * count) for count in made)
    hits = tuple(min(round(share * count), top) for count, top in zip(right, most, strict=True))
    return CoinGuesses(hits, most, trials)


def _half(member: BoolArray, rng: np.random.Generator) -> BoolArray:
    """Half of the trials of each world, at random."""
    chosen = np.zeros(len(member), dtype=np.bool_)
    for world in (True, False):
        own = rng.permutation(np.flatnonzero(member == world))
        chosen[own[: (len(own) + 1) // 2]] = True
    return chosen
