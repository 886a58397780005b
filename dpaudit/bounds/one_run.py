"""Lower bounds on epsilon, mu, rho or the factor of a curve from one training with many canaries.

Each of m canaries is included by an independent fair coin; the attack sees the output and guesses
the coins of as many canaries as it likes.

A fixed number of guesses. The number given to `one_run` must not depend on which guesses are right:
a number tuned on the result needs a correction.

Guesses in turn. `one_run_in_turn` takes the canaries one by one, the most confident guess first,
and uses the evidence after any number of them. The next canary and its guess may depend on
the output and on the coins seen so far.

Theorem. Let m coins be fair and independent, and M be (ε, δ)-DP in each coin. Then N of the turns
are revealed, with E[N] ≤ m δ, and the guess of a turn that is not revealed is right with
probability at most p = e^ε/(1 + e^ε), whatever happened before it.

Proof. Let coin i be the k-th, and s the coins seen before it. Write a(y) and b(y) for the densities
of the output given s and a right or a wrong guess of coin i, averaged over the coins not yet seen.
Reveal the turn with probability (a - e^ε b)⁺/a if the guess is right, never if not. Given y, s,
which turns before were revealed, and that this one is not, the odds of the guess are min(a, e^ε b)
: b, at most e^ε : 1. At δ = 0 nothing is revealed. Else the probability that coin i has turn k and
is revealed is half of the integral of (a - e^ε b)⁺, averaged over s, over the outputs that bring
coin i to that turn. (·)⁺ is convex, so it grows if all other coins are conditioned on instead of s.
Given these, every output brings coin i to one turn: the turns' integrals add up to at most one over
the outputs on which "in" is guessed of it and one over those with "out". By (ε, δ)-DP each is at
most δ, so that coin i adds at most δ/2 + δ/2 to E[N].  ∎

Steinke, Nasr and Jagielski 2023, Theorem 5.2, covers the case where order and guesses depend on the
output alone and the number of guesses is fixed beforehand.

The bound. Of the first k guesses at most N + S(k - N) are right, where S is a walk of independent
Bernoulli(p) steps. With r fixed beforehand, N > r has probability at most m δ/(r + 1) (Markov),
which is subtracted from the error probability; else the right guesses are at most r + S(k - r), and
any statistic increasing in them is dominated by that of the walk. The statistic is the smallest
binomial tail probability over all numbers of guesses. Its p-value, the probability that the walk
ever comes as high, is computed exactly, step by step; a union bound over the numbers, or Ville's
inequality for an e-process, would only limit it.

Claims in μ, ρ or by a curve. The attack guesses the coins of n canaries. n is fixed beforehand;
which n, and each guess, depend on the output alone, not on coins seen.

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
an upper limit. Claims of ε take guesses in turn, which proves more of them.

Two numbers of guesses are tried, each with half of the error probability: half of the canaries, and
an eighth, for leaks that only few canaries show.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from dpaudit.bounds.fair_coin import SetAside, cheapest_allowance
from dpaudit.bounds.inputs import (
    BoolArray,
    FloatArray,
    IntArray,
    check_confidence,
    check_delta,
    check_epsilon,
    check_positive_delta,
    check_power,
    whole_number,
)
from dpaudit.bounds.trade_off import GaussianTradeOff, TradeOff, smallest
from dpaudit.errors import SettingsError
from dpaudit.model.gaussian import gaussian_epsilon
from dpaudit.model.setting import AT_LEAST_1, NumberRange, check_number

_TOLERANCE = 1e-10
# The claims that the bound tries, a block at a time.
_STEP = 0.01
_BLOCK = 64
# Rounding error of a binomial tail: a tail this close to the observed one counts as equal to it.
_TIE = 1.0 + 1e-9
_CERTAIN_LEAK = 60.0


class Guesses(NamedTuple):
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
    outcome = checked_counts(correct, guesses, canaries)
    check_delta(delta)
    check_confidence(confidence)
    alpha = 1.0 - confidence

    def excess(epsilon: float) -> float:
        return _count_p_value(outcome, epsilon, delta) - alpha

    # Under pure DP all guesses are right with probability expit(epsilon)^guesses, so no bound is
    # above the ε where that is alpha.
    log_most = math.log(alpha) / outcome.guesses
    high = log_most - math.log(-math.expm1(log_most))
    if high <= 0.0 or excess(0.0) >= 0.0:
        return 0.0
    return below_root(excess, high)


def one_run_p_value(
    correct: int, guesses: int, canaries: int, *, epsilon: float, delta: float
) -> float:
    """Largest probability of this many right guesses in one run of an (ε, δ)-DP mechanism.

    `one_run` inverts this. Several runs count as one, with all their canaries: their outputs
    together are (ε, δ)-DP in each canary, which takes part in only one of them.

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
    outcome = checked_counts(correct, guesses, canaries)
    check_epsilon(epsilon)
    check_delta(delta)
    return min(1.0, _count_p_value(outcome, epsilon, delta))


def _count_p_value(outcome: Guesses, epsilon: float, delta: float) -> float:
    """Largest probability of this many right guesses under (ε, δ)-DP, not clipped at 1."""
    correct, guesses, canaries = outcome
    if correct == 0:
        return 1.0
    success = float(scipy.special.expit(epsilon))
    # betainc is the probability of `correct` or more successes.
    at_least = float(scipy.special.betainc(correct, guesses - correct + 1, success))
    if delta == 0.0:
        return at_least
    from scipy.stats import binom

    fewer = np.cumsum(binom.pmf(np.arange(correct - 1, -1, -1), guesses, success))
    return at_least + 2.0 * canaries * delta * float(np.max(fewer / np.arange(1, correct + 1)))


def below_root(excess: Callable[[float], float], high: float) -> float:
    """A number in [0, high] just below the root of a function that is negative at 0."""
    if excess(high) <= 0.0:
        return high
    return max(
        0.0, float(scipy.optimize.brentq(excess, 0.0, high, xtol=_TOLERANCE)) - 2.0 * _TOLERANCE
    )


def checked_counts(correct: int, guesses: int, canaries: int) -> Guesses:
    """Returns the counts as ints.

    Raises:
        SettingsError: If a count is impossible.
    """
    outcome = Guesses(
        whole_number("correct", correct),
        whole_number("guesses", guesses),
        whole_number("canaries", canaries),
    )
    check_number("canaries", outcome.canaries, AT_LEAST_1)
    check_number("guesses", outcome.guesses, NumberRange(1, outcome.canaries))
    check_number("correct", outcome.correct, NumberRange(0, outcome.guesses))
    return outcome


class Prefix(NamedTuple):
    """The number of guesses, most confident first, that is the strongest evidence against a claim.

    Attributes:
        guesses: How many.
        correct: How many of them are right.
    """

    guesses: int
    correct: int


class GuessesInTurn(NamedTuple):
    """Guesses of all coins, in the order in which they are evaluated.

    Attributes:
        order: Positions of the coins, the most confident guess first; shape (m,).
        inside: Whether each is guessed in, in this order; shape (m,).
    """

    order: IntArray
    inside: BoolArray


def one_run_in_turn(right: npt.ArrayLike, *, delta: float, confidence: float) -> float:
    """A lower bound on epsilon from guesses in one run, over all numbers of guesses at once.

    The claims ε = 0.01, 0.02, … are tried in order until one survives; the bound is the last one
    refuted. This needs no correction for the many claims and no monotonicity of the p-value in ε:
    the bound exceeds the true ε only where the first claim of the list at or above it, a true
    claim, was refuted (fixed-sequence testing).

    Args:
        right: Whether the guess of each canary's coin is right, in the order of evaluation; shape
            (m,), at least 1.
        delta: δ of the claim, in [0, 1).
        confidence: One-sided confidence, in (0, 1).

    Returns:
        The bound, a multiple of 0.01, at least 0.

    Raises:
        SettingsError: If an argument is out of range.
    """
    guessed = checked_guesses(right)
    check_delta(delta)
    check_confidence(confidence)
    aside = set_aside_in_turn(len(guessed), delta=delta, confidence=confidence)
    if aside is None:
        return 0.0
    alpha = 1.0 - confidence - aside.probability
    counts = _without_revealed(guessed, aside)
    refuted = 0
    while True:
        claims = _STEP * np.arange(refuted + 1.0, refuted + 1.0 + _BLOCK)
        for claim, least in zip(claims, _least_tails(counts, claims), strict=True):
            if not _is_refuted(len(counts), float(least), float(claim), alpha):
                return round(refuted * _STEP, 2)
            refuted += 1


def one_run_in_turn_p_value(
    right: npt.ArrayLike, *, epsilon: float, delta: float, confidence: float
) -> float:
    """Largest probability, under an (ε, δ)-DP claim, of evidence at least this strong against it.

    Args:
        right: As for `one_run_in_turn`.
        epsilon: ε of the claim, finite and not negative.
        delta: δ of the claim, in [0, 1).
        confidence: Confidence of the test, which fixes the allowance for δ, in (0, 1).

    Returns:
        The p-value, at most 1.

    Raises:
        SettingsError: If an argument is out of range.
    """
    guessed = checked_guesses(right)
    check_epsilon(epsilon)
    check_delta(delta)
    check_confidence(confidence)
    aside = set_aside_in_turn(len(guessed), delta=delta, confidence=confidence)
    if aside is None:
        return 1.0
    counts = _without_revealed(guessed, aside)
    [least] = _least_tails(counts, np.array([epsilon]))
    if least * _TIE >= 1.0:  # no guess was right
        return 1.0
    reached = _ever_reached(_heights(len(counts), float(least), epsilon), epsilon)
    return min(1.0, reached + aside.probability)


def strongest_prefix(right: npt.ArrayLike, *, epsilon: float) -> Prefix:
    """The number of guesses after which the evidence against a claim is strongest.

    Args:
        right: As for `one_run_in_turn`.
        epsilon: ε of the claim, finite and not negative.

    Returns:
        The number of guesses with the smallest binomial tail probability, and how many are right.
    """
    counts: IntArray = np.cumsum(checked_guesses(right))
    place = int(_tails(counts, np.array([epsilon]))[0].argmin())
    return Prefix(place + 1, int(counts[place]))


@lru_cache(maxsize=64)
def one_run_in_turn_detectable(
    *, claim_epsilon: float, canaries: int, delta: float, confidence: float, power: float = 0.8
) -> float | None:
    """Minimum detectable epsilon, with this power.

    The leak is randomised response on every canary's coin, the walk of right guesses that the
    theorem compares with: no attack on an ε-DP mechanism exceeds it.

    Args:
        claim_epsilon: Claimed ε, finite and not negative.
        canaries: Canaries, at least 1.
        delta: δ of the claim, in [0, 1).
        confidence: One-sided confidence, in (0, 1).
        power: Probability that the bound exceeds the claim, in (1 - confidence, 1).

    Returns:
        The smallest such ε, or None if no leak, however large, is detected.

    Raises:
        SettingsError: If a setting is out of range.
    """
    check_epsilon(claim_epsilon)
    check_delta(delta)
    check_confidence(confidence)
    check_power(power, confidence=confidence)
    aside = set_aside_in_turn(canaries, delta=delta, confidence=confidence)
    if aside is None:
        return None
    alpha = 1.0 - confidence - aside.probability
    # To exceed this claim, the bound must refute the next claim in its list.
    refuted = _STEP * (math.floor(claim_epsilon / _STEP + 1e-9) + 1)
    steps = canaries - aside.revealed
    # Bisects for the largest tail probability that the walk reaches with probability alpha.
    low, high = math.log(alpha / steps), math.log(alpha)
    while high - low > 1e-3:
        middle = (low + high) / 2.0
        within = _ever_reached(_heights(steps, math.exp(middle), refuted), refuted) <= alpha
        low, high = (middle, high) if within else (low, middle)
    heights = np.concatenate(
        [
            np.arange(aside.revealed) + 2,  # the first guesses prove nothing
            _heights(steps, math.exp(low), refuted) + aside.revealed,
        ]
    )

    def excess(epsilon: float) -> float:
        return _ever_reached(heights, epsilon) - power

    if excess(_CERTAIN_LEAK) < 0.0:
        return None
    return float(scipy.optimize.brentq(excess, 0.0, _CERTAIN_LEAK, xtol=1e-6))


@lru_cache(maxsize=256)
def set_aside_in_turn(canaries: int, *, delta: float, confidence: float) -> SetAside | None:
    """The allowance for δ that costs least if a fifth of the coins is guessed right.

    Args:
        canaries: Canaries, at least 1.
        delta: δ of the claim, in [0, 1).
        confidence: One-sided confidence, in (0, 1).

    Returns:
        The number of right guesses counted as revealed, and the probability that δ reveals more;
        None if this leaves no error probability to prove anything with.
    """
    if delta == 0.0:
        return SetAside(0, 0.0)
    return cheapest_allowance(
        max(1, round(0.2 * canaries)),
        lambda revealed: canaries * delta / (revealed + 1),  # Markov
        alpha=1.0 - confidence,
    )


def _without_revealed(guessed: BoolArray, aside: SetAside) -> IntArray:
    """Right guesses after each guess, the first ones counted as revealed; shape (m - r,)."""
    counts: IntArray = np.cumsum(guessed)[aside.revealed :] - aside.revealed
    return counts


@lru_cache(maxsize=1024)
def _is_refuted(canaries: int, least: float, epsilon: float, alpha: float) -> bool:
    """Whether a smallest tail probability refutes a claim; computes the walk only if in doubt."""
    if least > alpha:
        return False
    if canaries * least <= alpha:  # Boole's inequality
        return True
    return _ever_reached(_heights(canaries, least, epsilon), epsilon) <= alpha


def _tails(counts: IntArray, claims: FloatArray) -> FloatArray:
    """Probability of at least this many right guesses after each guess; shape (claims, m)."""
    guesses = np.arange(1, len(counts) + 1)
    positive = np.maximum(counts, 1)
    tails = scipy.special.betainc(
        positive, guesses - positive + 1.0, scipy.special.expit(claims)[:, None]
    )
    at_least: FloatArray = np.where(counts >= 1, tails, 1.0)
    return at_least


def _least_tails(counts: IntArray, claims: FloatArray) -> FloatArray:
    """The smallest of the tail probabilities for each claim; shape (claims,)."""
    least: FloatArray = _tails(counts, claims).min(axis=1)
    return least


def _heights(canaries: int, least: float, epsilon: float) -> IntArray:
    """The fewest right guesses after each guess with at most this tail probability; shape (m,).

    They never decrease, and grow by at most one per guess; m + 1 if no number is enough.
    """
    success, level, height = float(scipy.special.expit(epsilon)), least * _TIE, 1
    heights = np.empty(canaries, dtype=np.int64)
    for guesses in range(1, canaries + 1):
        if (
            height <= guesses
            and scipy.special.betainc(height, guesses - height + 1.0, success) > level
        ):
            height += 1
        heights[guesses - 1] = height
    return heights


def _ever_reached(heights: Sequence[int] | IntArray, epsilon: float) -> float:
    """Probability that a walk of independent right guesses ever reaches the heights."""
    success = float(scipy.special.expit(epsilon))
    failure = float(scipy.special.expit(-epsilon))
    mass = np.zeros(len(heights) + 2)
    mass[0], reached = 1.0, 0.0
    for guesses, height in enumerate(np.asarray(heights).tolist(), start=1):
        top = min(height, guesses)  # the walk is still below the height
        right = mass[:top] * success
        mass[:top] *= failure
        mass[1 : top + 1] += right
        if top == height:
            reached += float(mass[top])
            mass[top] = 0.0
    return min(1.0, reached)


def checked_guesses(right: npt.ArrayLike) -> BoolArray:
    """Returns right and wrong guesses as booleans.

    Raises:
        SettingsError: If `right` is not a list of at least one true or false value.
    """
    guessed = np.asarray(right)
    if guessed.ndim != 1 or not guessed.size or not np.isin(guessed, (0, 1)).all():
        raise SettingsError("`right` must say true or false of each guess, of at least 1")
    outcomes: BoolArray = guessed.astype(np.bool_)
    return outcomes


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
