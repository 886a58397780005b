"""Lower limits on mu, rho or the factor of a curve from one training with many canaries.

Each of m canaries is included by an independent fair coin; the attack guesses the coins of n of
them. n is fixed beforehand. Which n, and each guess, depend on the output alone, not on coins seen.

Theorem (Mahloujifar, Melis and Chaudhuri 2024, for n guesses of m coins). Let M be f-DP in each
coin, f a symmetric trade-off function, and K the number of right guesses. For i from 0 to n let r_i
= E[K; K >= i]/m and h_i = E[n - K; K >= i]/m. Then h_i >= f(1 - r_{i+1}).

Proof. Let K' be the number of right guesses of coins other than j, and A the event that coin j is
guessed and K' >= i: given the other coins, an event of the output. The guess of j is right there,
so that K >= i + 1, or wrong, so that K = K' >= i. By f-DP, averaged over the other coins and over
both guesses (1 - f is concave), P[right, K >= i + 1] <= 1 - f(P[wrong, K >= i]). The mean over all
j is r_{i+1} <= 1 - f(h_i), again by concavity, and f is its own inverse.  ∎

The test. Let t_i = P[K >= i] and T_i = t_{i+1} + ... + t_n. Then m r_{i+1} = i t_{i+1} + T_i and m
h_i = (n - i) t_i - T_i, so that t_i is at least t_{i+1} and [T_i + m f(1 - r_{i+1})]/(n - i), both
of which grow with t_{i+1} and T_i. So from t_c >= α the least possible t_i follow downwards,
starting with t_c = α and nothing above c. If that makes t_0 exceed 1, then P[K >= c] < α under the
claim: c right guesses refute it. In r and h, t_0 is (r_0 + h_0) m/n.

The attack may also make fewer guesses than n: at most n - K of them are wrong, and h_i is then only
an upper limit. Claims of ε take guesses in turn (`dpaudit.bounds.one_run`), which proves more of
them.

Two numbers of guesses are tried, each with half of the error probability: half of the canaries, and
an eighth, for leaks that only few canaries show.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from dpaudit.bounds.inputs import check_confidence, check_positive_delta
from dpaudit.bounds.one_run import (
    Guesses,
    Prefix,
    below_root,
    checked_counts,
    checked_guesses,
)
from dpaudit.bounds.trade_off import GaussianTradeOff, TradeOff, smallest
from dpaudit.model.gaussian import gaussian_epsilon

_SHARES: Final = (2, 8)
"""Canaries per guess, for each number of guesses that is tried."""
# For the power: quantiles of a score, cuts that are tried, and the farthest beyond the mean.
_QUANTILES, _CUTS, _FARTHEST = 25, 1001, 8.0


def one_run_level(
    correct: int, guesses: int, canaries: int, trade_off: TradeOff, *, confidence: float
) -> float:
    """A lower limit on the level from the number of right guesses in one run.

    Args:
        correct: Canaries whose coin was guessed right.
        guesses: Canaries for which a guess was made, a number fixed beforehand, at least 1.
        canaries: Canaries, of which each is included by its own fair coin.
        trade_off: The family.
        confidence: One-sided confidence, in (0, 1).

    Returns:
        The largest level that is refuted, or 0.

    Raises:
        SettingsError: If an argument is out of range.
    """
    outcome = checked_counts(correct, guesses, canaries)
    check_confidence(confidence)

    def slack(level: float) -> float:
        return -_excess(outcome, trade_off, level, 1.0 - confidence)

    if slack(0.0) >= 0.0:
        return 0.0
    high = 1.0
    while slack(high) < 0.0:
        high *= 2.0
    return below_root(slack, high)


def one_run_gaussian(
    correct: int, guesses: int, canaries: int, *, delta: float, confidence: float
) -> float:
    """Estimate, not a proof: the ε at δ of the largest μ that is refuted.

    For Gaussian noise it is much tighter than `one_run`; for other mechanisms it proves nothing
    about ε, only that they are not μ-GDP.

    Args:
        correct: Canaries whose coin was guessed right.
        guesses: Canaries for which a guess was made, at least 1.
        canaries: Canaries, of which each is included by its own fair coin.
        delta: δ at which ε is reported, in (0, 1).
        confidence: One-sided confidence if the mechanism is Gaussian, in (0, 1).

    Returns:
        The estimate, at least 0.

    Raises:
        SettingsError: If an argument is out of range.
    """
    checked_counts(correct, guesses, canaries)
    check_positive_delta(delta)
    mu = one_run_level(correct, guesses, canaries, GaussianTradeOff(), confidence=confidence)
    return gaussian_epsilon(mu, delta)


class PrefixLevel(NamedTuple):
    """The first guesses of a run, and the limit that they give.

    Attributes:
        level: The limit.
        prefix: How many guesses, and how many of them are right.
    """

    level: float
    prefix: Prefix


def strongest_level(right: npt.ArrayLike, trade_off: TradeOff, *, confidence: float) -> PrefixLevel:
    """The larger of the limits by the two numbers of guesses; on a tie, the one by more guesses.

    Args:
        right: Whether the guess of each canary's coin is right, the most confident guess first;
            shape (m,), at least 1. Their order must not depend on the coins.
        trade_off: The family.
        confidence: One-sided confidence of the larger limit, in (0, 1).

    Returns:
        The limit and its guesses.

    Raises:
        SettingsError: If an argument is out of range.
    """
    guessed = checked_guesses(right)
    confidence_each = 1.0 - (1.0 - confidence) / len(_SHARES)
    levels = []
    for guesses in numbers_of_guesses(len(guessed)):
        prefix = Prefix(guesses, int(guessed[:guesses].sum()))
        level = one_run_level(
            prefix.correct, guesses, len(guessed), trade_off, confidence=confidence_each
        )
        levels.append(PrefixLevel(level, prefix))
    return max(levels, key=lambda limit: limit.level)


def one_run_in_turn_level(right: npt.ArrayLike, trade_off: TradeOff, *, confidence: float) -> float:
    """The limit of `strongest_level`, without its guesses."""
    return strongest_level(right, trade_off, confidence=confidence).level


class Refuting(NamedTuple):
    """The number of right guesses that refutes a claim.

    Attributes:
        guesses: Guesses made.
        needed: The fewest right guesses that refute it, at most all.
    """

    guesses: int
    needed: int


def refuting(
    claimed: float, canaries: int, trade_off: TradeOff, *, confidence: float
) -> tuple[Refuting, ...]:
    """The right guesses needed to refute a claim, for each number of guesses that can do so.

    Args:
        claimed: Claimed level.
        canaries: Canaries, at least 1.
        trade_off: The family.
        confidence: One-sided confidence of the limit, in (0, 1).

    Returns:
        Empty if no leak, however large, refutes the claim.

    Raises:
        SettingsError: If `confidence` is out of range.
    """
    check_confidence(confidence)
    alpha = (1.0 - confidence) / len(_SHARES)
    tests = []
    for guesses in numbers_of_guesses(canaries):
        low, high = 0, guesses + 1
        while high - low > 1:
            middle = (low + high) // 2
            refuted = _excess(Guesses(middle, guesses, canaries), trade_off, claimed, alpha) > 0.0
            low, high = (low, middle) if refuted else (middle, high)
        if high <= guesses:
            tests.append(Refuting(guesses, high))
    return tuple(tests)


def detectable_error(tests: Sequence[Refuting], power: float) -> float:
    """The error rate of randomised response on every coin that is detected with this power.

    Args:
        tests: What refutes the claim; at least one.
        power: The probability, in (0, 1).

    Returns:
        The largest such rate, by the better number of guesses.
    """

    def largest(test: Refuting) -> float:
        def excess(error: float) -> float:
            return float(scipy.special.bdtrc(test.needed - 1, test.guesses, 1.0 - error)) - power

        return float(scipy.optimize.brentq(excess, 0.0, 1.0))

    return max(map(largest, tests))


def detectable_shift(tests: Sequence[Refuting], canaries: int, power: float) -> float:
    """The smallest shift of a normal score of every canary that is detected with this power.

    Given the (n + 1)-th largest |score|, the n guesses with larger ones are independent and right
    with the same probability.

    Args:
        tests: What refutes the claim; at least one.
        canaries: Canaries.
        power: The probability, in (0, 1).

    Returns:
        The shift, by the better number of guesses.
    """
    places = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    shares = [
        scipy.special.betaincinv(test.guesses, canaries - test.guesses + 1.0, places)
        for test in tests
    ]

    def is_detected(shift: float) -> bool:
        cuts = np.linspace(_FARTHEST + shift / 2.0, 0.0, _CUTS)
        right, wrong = scipy.special.ndtr((shift / 2.0 - cuts, -shift / 2.0 - cuts))
        return any(
            scipy.special.bdtrc(
                test.needed - 1,
                test.guesses,
                np.interp(share, right + wrong, right / (right + wrong)),
            ).mean()
            >= power
            for test, share in zip(tests, shares, strict=True)
        )

    return smallest(is_detected, low=0.0, start=1.0)


def numbers_of_guesses(canaries: int) -> list[int]:
    """The numbers of guesses that are tried, the larger first."""
    return [max(1, canaries // share) for share in _SHARES]


def _excess(outcome: Guesses, trade_off: TradeOff, level: float, alpha: float) -> float:
    """(t_0 − 1) n/m, with t_0 of the module's text; a positive value refutes the level."""
    correct, guesses, canaries = outcome
    least_fpr = trade_off.least_fpr(level)
    right = alpha * correct / canaries
    wrong = alpha * (guesses - correct) / canaries
    for i in range(correct - 1, -1, -1):
        least_wrong = least_fpr(right)
        if least_wrong <= wrong:  # nothing grows any more
            break
        right += i / (guesses - i) * (least_wrong - wrong)
        if right >= 1.0:  # masses past 1 have outgrown every allowance
            return 1.0
        wrong = least_wrong
    return right + wrong - guesses / canaries
