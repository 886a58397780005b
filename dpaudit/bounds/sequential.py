"""Sequential proof that a claim is violated: an e-process on fair coins.

The world of every trial is a fair coin. An attack that was fixed before bets on the coin, with odds
computed from the trial's output. The e-process of a claim is a wealth that starts at 1 and, if the
claim is true, never grows in expectation, given the past. By Ville's inequality (1939) the
probability that it ever reaches 1/α is then at most α: the audit may check after every trial, stop
at any time for any reason, and go on after a check.

The bet. Under pure ε-DP a coin is guessed right, given the output and all that went before, with
probability at most p = e^ε/(1 + e^ε). A stake with the odds q > p multiplies the wealth by q/p if
the guess is right and by (1 - q)/(1 - p) if not, which is expected to be at most 1; it grows
fastest where q is the true probability (Kelly 1956). An attack may abstain on a trial. Under (ε,
δ)-DP the trial reveals its coin with probability δ (Kairouz, Oh and Viswanath 2015, Theorem 2.5),
which multiplies the wealth by 1/p at most. So the wealth is divided by 1 + δ(1/p - 1) on every
trial, even if the attack abstains: abstention depends on the output, and otherwise an attack that
bets only on revealed coins would gain.

The scale of the odds may be wrong, especially after few trials. Three gamblers share the first
wealth and multiply the log odds by a half, one and three. `refit_schedule` says when the attack may
change. Never use a fixed-n bound such as `exact` here: recomputed at every check, it fails more
often than its confidence allows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import log_expit

from dpaudit.bounds.inputs import (
    BoolArray,
    FloatArray,
    check_confidence,
    check_delta,
    check_epsilon,
)
from dpaudit.errors import SettingsError

GAMBLERS = {0.5: 0.2, 1.0: 0.5, 3.0: 0.3}
"""Each gambler's factor of the log odds, and its share of the first wealth.

With these a perfect attack on three hypotheses refutes ε = 1 at 95 % after 16 bets.
"""
# The claims that `coin_bound` tries, a block at a time.
_STEP = 0.01
_BLOCK = 32


def e_process(
    log_odds: npt.ArrayLike, member: npt.ArrayLike, *, epsilon: float, delta: float
) -> FloatArray:
    """The evidence against a claim after every trial.

    Args:
        log_odds: Log odds that the world of each trial is "in", from an attack that was fixed
            before the trial was run; 0 where it abstains; shape (trials,), finite.
        member: Whether the world is "in"; shape (trials,).
        epsilon: Claimed ε, finite and not negative.
        delta: Claimed δ, in [0, 1).

    Returns:
        Log e-value after each trial; shape (trials,). The claim is refuted at level α, once and
        for all, where it first reaches log(1/α).

    Raises:
        SettingsError: If odds and worlds do not fit, or a setting is out of range.
    """
    odds, worlds = _bets(log_odds, member)
    check_epsilon(epsilon)
    check_delta(delta)
    against: FloatArray = _log_e_values(odds, worlds, np.array([epsilon]), delta)[0]
    return against


def coin_bound(
    log_odds: npt.ArrayLike, member: npt.ArrayLike, *, delta: float, confidence: float
) -> float:
    """A lower bound on epsilon at any time: the largest claim that the trials so far refute.

    The claims ε = 0.01, 0.02, … are tried in order, each by the largest e-value of its own
    process so far, until one survives; the bound is the last one refuted. This needs no correction
    for the many claims and no monotonicity in ε: the bound exceeds the true ε only where the
    first claim of the list at or above the true ε, a true claim, was refuted (fixed-sequence
    testing). So it holds at all times at once, and it never decreases as trials arrive.

    Args:
        log_odds: As for `e_process`.
        member: As for `e_process`.
        delta: δ of the claim, in [0, 1).
        confidence: Probability that the bound never exceeds the true ε, in (0, 1).

    Returns:
        The bound, a multiple of 0.01, at least 0.

    Raises:
        SettingsError: As for `e_process`.
    """
    odds, worlds = _bets(log_odds, member)
    check_delta(delta)
    check_confidence(confidence)
    needed = -math.log1p(-confidence)
    if odds.size == 0:
        return 0.0
    refuted = 0
    while True:
        claims = _STEP * np.arange(refuted + 1.0, refuted + 1.0 + _BLOCK)
        survives = (
            _log_e_values(odds, worlds, np.asarray(claims, dtype=np.float64), delta).max(axis=1)
            < needed
        )
        if survives.any():
            return round((refuted + int(survives.argmax())) * _STEP, 2)
        refuted += _BLOCK


def _log_e_values(
    odds: FloatArray, worlds: BoolArray, claims: FloatArray, delta: float
) -> FloatArray:
    """Log e-values after each trial against each claim; shape (claims, trials)."""
    epsilon = claims[:, None, None]
    stake = np.array([*GAMBLERS])[None, :, None] * np.abs(odds)
    right = (odds > 0) == worlds
    # Given the guess: q/p and (1 - q)/(1 - p).
    gain = np.where(
        right,
        log_expit(stake) - log_expit(epsilon),
        log_expit(-stake) - log_expit(-epsilon),
    )
    # Paid on every trial: which trials are bet on may depend on the revealed coins.
    price = np.log1p(delta * np.expm1(-log_expit(epsilon)))
    gain = np.where(stake > epsilon, gain, 0.0) - price
    shares = np.log([*GAMBLERS.values()])[None, :, None]
    wealth: FloatArray = np.logaddexp.reduce(gain.cumsum(axis=2) + shares, axis=1)
    return wealth


def _bets(log_odds: npt.ArrayLike, member: npt.ArrayLike) -> tuple[FloatArray, BoolArray]:
    odds, worlds = np.asarray(log_odds, dtype=np.float64), np.asarray(member)
    if odds.ndim != 1 or odds.shape != worlds.shape:
        raise SettingsError(
            f"`log_odds` has shape {odds.shape} and `member` {worlds.shape}: give one each "
            "per trial"
        )
    if not np.isfinite(odds).all():
        raise SettingsError("`log_odds` must be finite")
    if worlds.dtype != np.bool_:
        if not np.isin(worlds, (0, 1)).all():
            raise SettingsError("`member` must be true or false")
        worlds = worlds.astype(np.bool_)
    return odds, worlds


class ScoredBlock(NamedTuple):
    """Trials on which one frozen attack bets; trials are numbered from 0.

    Attributes:
        start: The attack is fitted on the trials before this one, and bets from it on.
        stop: The first trial after its block.
    """

    start: int
    stop: int


def refit_schedule(cap: int, *, first: int) -> tuple[ScoredBlock, ...]:
    """Blocks of trials between refits of the attack, each about half of the trials before it.

    The first `first` trials are fitted on and never bet on. Every later trial is bet on once, by
    the attack fitted on the trials before its block, and is fitted on from the next block on.

    Why the e-process stays valid while the attack changes: a bet must be *predictable*. Given all
    trials before the block, the attack is a fixed function of the output of a future trial, which
    is independent of them. Whatever the function, it guesses that trial's coin right, given the
    output, with no larger probability than the claim allows. So classifier, features and odds must
    all come from trials before `start`, and bets are never revised. Blocks are multiples of `first`
    that grow by half: from the third one on, the attack is always fitted on two thirds of the
    trials at hand, and few fits are enough.

    Args:
        cap: Largest number of trials, including those that the first attack is fitted on.
        first: Trials that the first attack is fitted on, at least 1.

    Returns:
        Adjacent blocks from `first` to `cap`.

    Raises:
        SettingsError: If first is below 1, or the cap leaves no trial to bet on.
    """
    if first < 1:
        raise SettingsError(f"`first` is {first}; fit the first attack on at least 1 trial")
    if cap <= first:
        raise SettingsError(
            f"`cap` is {cap}; give more than the {first} trials that the first attack is fitted on"
        )
    blocks = []
    start = first
    while start < cap:
        stop = min(start + first * max(1, start // (2 * first)), cap)
        blocks.append(ScoredBlock(start, stop))
        start = stop
    return tuple(blocks)
