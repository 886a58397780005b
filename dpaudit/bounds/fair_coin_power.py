"""What guesses of fair coins can prove, and which leaks they would catch."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, ndtr

from dpaudit.bounds import binomial
from dpaudit.bounds._checks import (
    FloatArray,
    IntArray,
    check_confidence,
    check_delta,
    check_epsilon,
    check_power,
)
from dpaudit.bounds.fair_coin import any_revealed, fair_coin, set_aside
from dpaudit.model.gaussian import gaussian_epsilon

# Randomised response with this much more epsilon than the claim errs with probability < 1e-26.
_CERTAIN_LEAK = 60.0
# Two normal scores this many standard deviations apart are confused with probability < 1e-80.
_CERTAIN_SHIFT = 40.0
# Margins of silence that are tried for a Gaussian leak, in standard deviations of the score.
_MARGINS = np.linspace(0.0, 4.0, 81)
# The number of guesses is taken at the middles of this many parts of its distribution.
_PARTS = 41


def coin_provable(
    trials: int, *, delta: float, confidence: float, failed: int = 0, shared: int = 1
) -> float:
    """Largest `fair_coin` bound that an audit of this size can reach: that of a perfect attack.

    Args:
        trials: Scored trials of both worlds together, at least 1.
        delta: δ of the claim, in [0, 1).
        confidence: One-sided confidence, in (0, 1).
        failed: Trials that failed, on which nothing is guessed.
        shared: Coins that each training serves; `trials` and `failed` count coins.

    Returns:
        The bound of an attack that guesses right on every trial that did not fail.

    Raises:
        SettingsError: If a setting is out of range.
    """
    made = (trials - failed,)
    by_training: tuple[int, ...] = ()
    if shared > 1:
        finished = made[0] // shared
        by_training = (shared,) * finished + (0,) * (trials // shared - finished)
    return fair_coin(made, made, trials, by_training, delta=delta, confidence=confidence)


def coin_detectable(
    *,
    claim_epsilon: float,
    trials: int,
    delta: float,
    confidence: float,
    power: float = 0.8,
    failed: int = 0,
    shared: int = 1,
) -> float | None:
    """Smallest true epsilon that `fair_coin` would expose with the given probability.

    The leak is that of randomised response, which shows equally in all trials: of n guesses
    Bin(n, e^ε/(1 + e^ε)) are right.

    Args:
        claim_epsilon: Claimed ε, finite and not negative.
        trials: Scored trials of both worlds together, at least 1.
        delta: δ of the claim, in [0, 1).
        confidence: One-sided confidence, in (0, 1).
        power: Probability that the bound exceeds the claim, in (1 − confidence, 1).
        failed: Trials that failed, on which nothing is guessed.
        shared: Coins that each training serves; `trials` and `failed` count coins.

    Returns:
        The smallest such ε, or None where no leak, however large, is exposed.

    Raises:
        SettingsError: If a setting is out of range.
    """
    made = np.array([trials - failed])
    fewest = _fewest_right(made, claim_epsilon, trials, delta, confidence, power, shared)
    if fewest is None or fewest[0] > made[0]:
        return None

    def shortfall(epsilon: float) -> float:
        return float(binomial.sf(fewest[0] - 1, made[0], expit(epsilon))) - power

    return float(brentq(shortfall, claim_epsilon, claim_epsilon + _CERTAIN_LEAK, xtol=1e-9))


def coin_detectable_gaussian(
    *,
    claim_epsilon: float,
    trials: int,
    delta: float,
    confidence: float,
    power: float = 0.8,
    failed: int = 0,
    shared: int = 1,
) -> float | None:
    """Smallest true epsilon of a Gaussian leak that `fair_coin` would expose with that probability.

    Args:
        claim_epsilon: As of `coin_detectable_shift`, and so are the others.
        trials: See there.
        delta: See there.
        confidence: See there.
        power: See there.
        failed: See there.
        shared: See there.

    Returns:
        ε at δ of the smallest such shift; None at δ = 0, where every Gaussian leak is infinite, and
        where no leak is exposed.

    Raises:
        SettingsError: If a setting is out of range.
    """
    if delta == 0.0:
        _check_leak(claim_epsilon, delta, confidence, power)
        return None
    shift = coin_detectable_shift(
        claim_epsilon=claim_epsilon,
        trials=trials,
        delta=delta,
        confidence=confidence,
        power=power,
        failed=failed,
        shared=shared,
    )
    return None if shift is None else gaussian_epsilon(shift, delta)


def coin_detectable_shift(
    *,
    claim_epsilon: float,
    trials: int,
    delta: float,
    confidence: float,
    power: float = 0.8,
    failed: int = 0,
    shared: int = 1,
) -> float | None:
    """Smallest Gaussian leak that `fair_coin` would expose with the given probability.

    The leak shifts a normal score by mu standard deviations (mu-GDP: Dong, Roth and Su 2022). The
    attack guesses where the score is further from the middle than a margin, the best one for the
    audit, and all guesses weigh the same: weights that grow with the odds do a little better.

    Args:
        claim_epsilon: Claimed ε, finite and not negative.
        trials: Scored trials of both worlds together, at least 1.
        delta: δ of the claim, in [0, 1).
        confidence: One-sided confidence, in (0, 1).
        power: Probability that the bound exceeds the claim, in (1 − confidence, 1).
        failed: Trials that failed, on which nothing is guessed.
        shared: Coins that each training serves; `trials` and `failed` count coins.

    Returns:
        mu of the smallest such shift; None where no leak is exposed.

    Raises:
        SettingsError: If a setting is out of range.
    """
    usable = trials - failed
    fewest = _fewest_right(
        np.arange(usable + 1), claim_epsilon, trials, delta, confidence, power, shared
    )
    if fewest is None or fewest[usable] > usable:
        return None
    middles = (np.arange(_PARTS) + 0.5) / _PARTS

    def shortfall(mu: float) -> float:
        right = ndtr(mu / 2.0 - _MARGINS)  # beyond the margin, on the side of the trial's world
        guessed = right + ndtr(-mu / 2.0 - _MARGINS)
        start, mass = binomial.mass(usable, guessed)
        ranks = [np.searchsorted(below, middles) for below in np.cumsum(mass, axis=1)]
        made = start[:, None] + np.stack(ranks)
        reached = binomial.sf(fewest[made] - 1, made, (right / guessed)[:, None])
        return float(reached.mean(axis=1).max()) - power

    return float(brentq(shortfall, 0.0, _CERTAIN_SHIFT, xtol=1e-6))


def _fewest_right(
    made: IntArray,
    claim_epsilon: float,
    trials: int,
    delta: float,
    confidence: float,
    power: float,
    shared: int,
) -> FloatArray | None:
    """The fewest right of so many guesses that refute the claim; None where no number does.

    Raises:
        SettingsError: If a setting is out of range.
    """
    _check_leak(claim_epsilon, delta, confidence, power)
    aside = set_aside(trials // shared, delta=any_revealed(shared, delta), confidence=confidence)
    if aside is None:
        return None
    taken = aside.revealed * shared
    left = np.maximum(made - taken, 0)
    # P[Bin >= k] must be below what is left of the error probability; isf gives k - 1.
    enough = binomial.isf(1.0 - confidence - aside.probability, left, expit(claim_epsilon)) + 1.0
    fewest: FloatArray = np.where(left > 0, enough + taken, math.inf)
    return fewest


def _check_leak(claim_epsilon: float, delta: float, confidence: float, power: float) -> None:
    check_epsilon(claim_epsilon)
    check_delta(delta)
    check_confidence(confidence)
    check_power(power, confidence=confidence)
