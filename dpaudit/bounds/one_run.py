"""Lower bounds on epsilon from one training with many canaries.

Each of m canaries is included by an independent fair coin; the attack sees the output and
guesses the coins of as many canaries as it likes. How many it guesses must not depend on which
guesses are right: a number tuned on the result needs a correction.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainc, expit, ndtr, ndtri

from dpaudit.bounds._checks import (
    check_confidence,
    check_delta,
    check_epsilon,
    check_positive_delta,
    whole_number,
)
from dpaudit.errors import SettingsError
from dpaudit.model.gaussian import gaussian_epsilon

_TOLERANCE = 1e-10


class _Guesses(NamedTuple):
    """Outcome of a one-run audit: right guesses, all guesses, canaries."""

    correct: int
    guesses: int
    canaries: int


def one_run(correct: int, guesses: int, canaries: int, *, delta: float, confidence: float) -> float:
    """A lower bound on epsilon from the number of right guesses in one run.

    Under pure ε-DP the right guesses are dominated by Bin(guesses, e^ε/(1 + e^ε)); δ adds at
    most 2 m δ max_i P[correct − i ≤ Bin < correct]/i (Steinke, Nasr and Jagielski 2023,
    Theorem 5.2 and its appendix D). The bound is the ε at which this p-value reaches
    1 − confidence.

    Args:
        correct: Canaries whose coin was guessed right.
        guesses: Canaries for which a guess was made, at least 1.
        canaries: Canaries, m, of which each is included by its own fair coin.
        delta: δ of the claim, in [0, 1).
        confidence: One-sided confidence, in (0, 1).

    Returns:
        The bound, at least 0; 0 for an attack no better than chance.

    Raises:
        SettingsError: If an argument is out of range.
    """
    outcome = _checked(correct, guesses, canaries)
    check_delta(delta)
    check_confidence(confidence)
    alpha = 1.0 - confidence

    def excess(epsilon: float) -> float:
        return _p_value(outcome, epsilon, delta) - alpha

    # Even all guesses right have probability expit(epsilon)^guesses under pure DP.
    log_most = math.log(alpha) / outcome.guesses
    high = log_most - math.log(-math.expm1(log_most))
    if high <= 0.0 or excess(0.0) >= 0.0:
        return 0.0
    return _below_root(excess, high)


def one_run_p_value(
    correct: int, guesses: int, canaries: int, *, epsilon: float, delta: float
) -> float:
    """Largest probability of this many right guesses in one run of an (ε, δ)-DP mechanism.

    What `one_run` inverts. Several runs are one in this sense, with all their canaries: their
    outputs together are (ε, δ)-DP in each canary, which takes part in one of them.

    Args:
        correct: Canaries whose coin was guessed right.
        guesses: Canaries for which a guess was made, at least 1.
        canaries: Canaries, of which each is included by its own fair coin.
        epsilon: ε of the claim, finite and not negative.
        delta: δ of the claim, in [0, 1).

    Returns:
        The p-value, at most 1.

    Raises:
        SettingsError: If an argument is out of range.
    """
    outcome = _checked(correct, guesses, canaries)
    check_epsilon(epsilon)
    check_delta(delta)
    return min(1.0, _p_value(outcome, epsilon, delta))


def one_run_gaussian(
    correct: int, guesses: int, canaries: int, *, delta: float, confidence: float
) -> float:
    """Estimate, not a proof: as `one_run`, but assumes the Gaussian trade-off curve.

    If the mechanism is μ-GDP, a recursion limits how probable this many right guesses are; the
    largest μ that it falsifies is turned into ε at δ (Mahloujifar, Melis and Chaudhuri 2024,
    Algorithm 3 with abstentions). For Gaussian noise it is much tighter than `one_run`; for
    other mechanisms it proves nothing.

    Args:
        correct: Canaries whose coin was guessed right.
        guesses: Canaries for which a guess was made, at least 1.
        canaries: Canaries, of which each is included by its own fair coin.
        delta: δ at which ε is reported, in (0, 1).
        confidence: One-sided confidence if the assumption holds, in (0, 1).

    Returns:
        The estimate, at least 0.

    Raises:
        SettingsError: If an argument is out of range.
    """
    outcome = _checked(correct, guesses, canaries)
    check_positive_delta(delta)
    check_confidence(confidence)

    def slack(mu: float) -> float:
        return -_gaussian_excess(outcome, mu, 1.0 - confidence)

    if slack(0.0) >= 0.0:
        return 0.0
    high = 1.0
    while slack(high) < 0.0:
        high *= 2.0
    return gaussian_epsilon(_below_root(slack, high), delta)


def _p_value(outcome: _Guesses, epsilon: float, delta: float) -> float:
    """Largest probability of this many right guesses under (ε, δ)-DP, not clipped at 1."""
    correct, guesses, canaries = outcome
    if correct == 0:
        return 1.0
    success = float(expit(epsilon))
    # betainc is the probability of `correct` or more successes.
    at_least = float(betainc(correct, guesses - correct + 1, success))
    if delta == 0.0:
        return at_least
    from scipy.stats import binom

    fewer = np.cumsum(binom.pmf(np.arange(correct - 1, -1, -1), guesses, success))
    return at_least + 2.0 * canaries * delta * float(np.max(fewer / np.arange(1, correct + 1)))


def _gaussian_excess(outcome: _Guesses, mu: float, alpha: float) -> float:
    """How far the recursion's masses exceed what μ-GDP allows; positive falsifies μ."""
    correct, guesses, canaries = outcome
    right = alpha * correct / canaries
    wrong = alpha * (guesses - correct) / canaries
    for i in range(correct - 1, -1, -1):
        larger = max(wrong, float(ndtr(ndtri(right) - mu)))
        right += i / (guesses - i) * (larger - wrong)
        # Both are masses; past 1 they have outgrown every allowance.
        if right >= 1.0:
            return 1.0
        wrong = larger
    return right + wrong - guesses / canaries


def _below_root(excess: Callable[[float], float], high: float) -> float:
    """A number in [0, high] just below the root of a function that is negative at 0."""
    if excess(high) <= 0.0:
        return high
    return max(0.0, float(brentq(excess, 0.0, high, xtol=_TOLERANCE)) - 2.0 * _TOLERANCE)


def _checked(correct: int, guesses: int, canaries: int) -> _Guesses:
    """Returns the counts as ints, or names the one that is impossible."""
    outcome = _Guesses(
        whole_number("correct", correct),
        whole_number("guesses", guesses),
        whole_number("canaries", canaries),
    )
    if outcome.canaries < 1:
        raise SettingsError(f"`canaries` is {outcome.canaries}; give at least 1")
    if not 1 <= outcome.guesses <= outcome.canaries:
        raise SettingsError(
            f"`guesses` is {outcome.guesses}; give a count from 1 to {outcome.canaries}, the "
            "canaries"
        )
    if not 0 <= outcome.correct <= outcome.guesses:
        raise SettingsError(
            f"`correct` is {outcome.correct}; give a count from 0 to {outcome.guesses}, the guesses"
        )
    return outcome
