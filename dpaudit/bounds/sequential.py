"""Sequential proof that a claim is violated: an e-process on fair coins.

The world of every trial is a fair coin. An attack that was fixed before bets on the coin, with odds
computed from the trial's output. The e-process of a claim is a wealth that starts at 1 and, if the
claim is true, never grows in expectation given the past. By Ville's inequality (1939) the
probability that it ever reaches 1/α is then at most α: the audit may check after every trial, stop
at any time for any reason, and go on after a check.

The bet. Under pure ε-DP a coin is guessed right with probability at most p = e^ε/(1 + e^ε), given
the output and all that went before. A stake with the odds q > p multiplies the wealth by q/p if the
guess is right and by (1 - q)/(1 - p) if not, which is expected to be at most 1; it grows fastest
where q is the true probability (Kelly 1956). An attack may abstain on a trial. Under (ε, δ)-DP the
trial reveals its coin with probability δ (Kairouz, Oh and Viswanath 2015, Theorem 2.5), which
multiplies the wealth by 1/p at most. So the wealth is divided by 1 + δ(1/p - 1) on every trial,
even if the attack abstains: abstention depends on the output, and otherwise an attack that bets
only on revealed coins would gain.

The scale of the odds may be wrong, especially after few trials. Three gamblers share the initial
wealth and multiply the log odds by a half, one and three. `refit_schedule` says when the attack may
change.

Never use a fixed-n bound such as `exact` here: recomputed at every check, it fails more often than
its confidence allows.

Other claims. A claim in μ, in ρ or by a curve implies (ε, δ)-DP at many points. Each point has its
own e-process, and their mean is one too. Most of these δ are large, and so is their price; but a
gambler who gains at most c on every trial need pay only c δ. Proof: let 1 + Λ be the factor if the
guess is right and 1 - Λ e^ε if it is wrong, 0 <= Λ <= c. Λ is a mixture of bets of c on sets of
outputs. On each set P[right] <= e^ε P[wrong] + δ, so that the factor is expected to be at most 1 +
c δ. Above, Λ = q/p - 1 and c = 1/p - 1 = e^-ε. Against these claims each gambler is joined by a
cautious one, who gains at most a fifth of e^-ε.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from dpaudit.bounds.inputs import (
    BoolArray,
    FloatArray,
    check_confidence,
    check_delta,
    check_epsilon,
)
from dpaudit.bounds.trade_off import TradeOff
from dpaudit.errors import SettingsError
from dpaudit.model.setting import AT_LEAST_1, NumberRange, check_number


class Gambler(NamedTuple):
    """A strategy of betting.

    Attributes:
        factor: Factor by which it multiplies the log odds.
        share: Share of the initial wealth.
        most: Largest gain on a trial, as a share of e^-ε, the gain of a bet at certainty.
    """

    factor: float
    share: float
    most: float = 1.0


GAMBLERS = (Gambler(0.5, 0.2), Gambler(1.0, 0.5), Gambler(3.0, 0.3))
"""With these a perfect attack on three hypotheses refutes ε = 1 at 95 % after 16 bets."""
_CAUTION = 0.2
LEVEL_GAMBLERS = tuple(
    Gambler(gambler.factor, gambler.share / 2.0, most)
    for gambler in GAMBLERS
    for most in (1.0, _CAUTION)
)
"""Gamblers against claims in other quantities than ε: half of each wealth bets cautiously."""
# The claims that `coin_bound` and `coin_level` try, a block at a time.
_STEP = 0.01
_BLOCK = 32
_LEVEL_BLOCK = 8


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
    odds, worlds = _check_bets(log_odds, member)
    check_epsilon(epsilon)
    check_delta(delta)
    claim = np.array([[epsilon]])
    log_e_values: FloatArray = _log_e_values(odds, worlds, claim, np.full_like(claim, delta))[0]
    return log_e_values


def level_e_process(
    log_odds: npt.ArrayLike, member: npt.ArrayLike, trade_off: TradeOff, *, level: float
) -> FloatArray:
    """The evidence against a claim in μ, in ρ or by a curve after every trial.

    Args:
        log_odds: As for `e_process`.
        member: As for `e_process`.
        trade_off: The family of the claim.
        level: The claimed level, positive.

    Returns:
        Log e-value after each trial; shape (trials,).

    Raises:
        SettingsError: If odds and worlds do not fit.
    """
    odds, worlds = _check_bets(log_odds, member)
    log_e_values: FloatArray = _level_e_values(odds, worlds, trade_off, [level])[0]
    return log_e_values


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
    odds, worlds = _check_bets(log_odds, member)
    check_delta(delta)
    check_confidence(confidence)

    def log_e_values(places: range) -> FloatArray:
        claims = _STEP * np.array(places, dtype=np.float64)[:, None]
        return _log_e_values(odds, worlds, claims, np.full_like(claims, delta))

    return round(
        _count_refuted(log_e_values, len(odds), block=_BLOCK, confidence=confidence) * _STEP, 2
    )


def coin_level(
    log_odds: npt.ArrayLike, member: npt.ArrayLike, trade_off: TradeOff, *, confidence: float
) -> float:
    """A lower bound on μ, on ρ or on the factor of a curve at any time, as `coin_bound`.

    Args:
        log_odds: As for `e_process`.
        member: As for `e_process`.
        trade_off: The family, whose levels are tried in its order.
        confidence: Probability that the bound never exceeds the true level, in (0, 1).

    Returns:
        The largest level that is refuted, at least 0.

    Raises:
        SettingsError: As for `e_process`.
    """
    odds, worlds = _check_bets(log_odds, member)
    check_confidence(confidence)

    def log_e_values(places: range) -> FloatArray:
        levels = [trade_off.step(place) for place in places]
        return _level_e_values(odds, worlds, trade_off, levels)

    refuted = _count_refuted(log_e_values, len(odds), block=_LEVEL_BLOCK, confidence=confidence)
    return trade_off.step(refuted) if refuted else 0.0


def _count_refuted(
    log_e_values: Callable[[range], FloatArray], trials: int, *, block: int, confidence: float
) -> int:
    """Number of claims refuted in turn, from the first; log e-values are (claims, trials)."""
    needed, refuted = -math.log1p(-confidence), 0
    while trials:
        survives = log_e_values(range(refuted + 1, refuted + 1 + block)).max(axis=1) < needed
        if survives.any():
            return refuted + int(survives.argmax())
        refuted += block
    return 0


def _level_e_values(
    odds: FloatArray, worlds: BoolArray, trade_off: TradeOff, levels: Sequence[float]
) -> FloatArray:
    """Log e-values after each trial against each level; shape (levels, trials)."""
    points = np.array([trade_off.bet_against(level) for level in levels], dtype=np.float64)
    return _log_e_values(odds, worlds, points[..., 0], points[..., 1], LEVEL_GAMBLERS)


def _log_e_values(
    odds: FloatArray,
    worlds: BoolArray,
    epsilons: FloatArray,
    deltas: FloatArray,
    gamblers: Sequence[Gambler] = GAMBLERS,
) -> FloatArray:
    """Log e-values after each trial against claims that each imply several points.

    Args:
        odds: Log odds of world "in"; shape (trials,).
        worlds: Whether it is "in"; shape (trials,).
        epsilons: ε of every point; shape (claims, points).
        deltas: Its δ, of the same shape.
        gamblers: Those who bet against each point.

    Returns:
        Mean over the points, of shape (claims, trials).
    """
    epsilon, delta = epsilons[:, :, None, None], deltas[:, :, None, None]
    factor, share, most = np.array(gamblers).T[:, None, None, :, None]
    stake = factor * np.abs(odds)
    right = (odds > 0) == worlds
    certain = np.exp(-epsilon)
    with np.errstate(divide="ignore"):
        loss = np.log1p(-most)
    # Given the guess: q/p and (1 - q)/(1 - p).
    gain = np.where(
        right,
        np.minimum(
            scipy.special.log_expit(stake) - scipy.special.log_expit(epsilon),
            np.log1p(most * certain),
        ),
        np.maximum(scipy.special.log_expit(-stake) - scipy.special.log_expit(-epsilon), loss),
    )
    # Paid on every trial: which trials are bet on may depend on the revealed coins.
    price = np.log1p(delta * most * certain)
    gain = np.where(stake > epsilon, gain, 0.0) - price
    wealth: FloatArray = np.logaddexp.reduce(gain.cumsum(axis=3) + np.log(share), axis=(1, 2))
    return wealth - math.log(epsilons.shape[1])


def _check_bets(log_odds: npt.ArrayLike, member: npt.ArrayLike) -> tuple[FloatArray, BoolArray]:
    """Returns log odds and worlds as arrays, after checking that they fit together."""
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
        start: First trial of the block; the attack is fitted on those before it.
        stop: First trial after the block.
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
    check_number("first", first, AT_LEAST_1)
    check_number("cap", cap, NumberRange(above=first, why="the first attack is fitted on these"))
    blocks = []
    start = first
    while start < cap:
        stop = min(start + first * max(1, start // (2 * first)), cap)
        blocks.append(ScoredBlock(start, stop))
        start = stop
    return tuple(blocks)
