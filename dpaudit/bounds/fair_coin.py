"""A lower bound on epsilon from guesses of fair coins: the world of each trial, or of each canary.

Every trial's world is an independent fair coin. Given all outputs, the attack guesses "in" or "out"
or abstains, and gives each guess a weight: the larger, the more certain it is. Guesses and weights
may depend on the coins only through the outputs.

Under pure ε-DP, given the outputs, each coin is guessed right with probability at most
p = e^ε/(1 + e^ε), independently: the posterior odds of a fair coin are the likelihood ratio of the
two worlds. The weight of right guesses is then dominated by a weighted sum of independent
Bernoulli(p) (the argument of Steinke, Nasr and Jagielski 2023, Theorem 5.2, where every coin has
its own training, so nothing is lost to interference).

Under (ε, δ)-DP a trial's pair of output distributions is a post-processing of randomised response
that, with probability δ, reveals the coin (Kairouz, Oh and Viswanath 2015, Theorem 2.5). More than
r of m trials are revealed with probability P[Bin(m, δ) > r], which is subtracted from the error
probability; otherwise the r heaviest guesses count as correct. r depends on m, δ and the confidence
only.

Coins may share trainings: a model trained with an independent fair coin for each of k records
yields k guesses. Trainings that are independent given their coins are together one (ε, δ)-DP
mechanism in every coin, and given the outputs and the coins before it each coin is still guessed
right with probability at most p, so under pure ε-DP nothing changes. Under (ε, δ)-DP each coin is
revealed with probability δ given those before it: a training reveals any of its k coins with
probability at most kδ, however they depend on each other. Trainings are independent, so more than r
of n reveal a coin with probability at most P[Bin(n, kδ) > r]. Otherwise at most r trainings reveal
coins; the r trainings with the most guesses limit how many guesses that affects, and as many of the
heaviest guesses count as correct.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from dpaudit.bounds import binomial
from dpaudit.bounds.inputs import (
    FloatArray,
    IntArray,
    check_confidence,
    check_delta,
    check_epsilon,
    check_power,
    whole_number,
)
from dpaudit.errors import SettingsError
from dpaudit.model.gaussian import gaussian_epsilon
from dpaudit.model.setting import AT_LEAST_1, NumberRange, check_number

_TOLERANCE = 1e-9
# The absolute error of probabilities by Fourier transform is far below this.
_ROUNDING = 1e-12
# Beyond it 1 + e^-ε rounds to 1.
_LARGEST_EPSILON = 36.0
# Randomised response with this much more epsilon than the claim errs with probability < 1e-26.
_CERTAIN_LEAK = 60.0
# Two normal scores this many standard deviations apart are confused with probability < 1e-80.
_CERTAIN_SHIFT = 40.0
# Margins of abstention tried for a Gaussian leak, in standard deviations of the score.
_MARGINS = np.linspace(0.0, 4.0, 81)
# Parts of the distribution of the number of guesses; each is represented by its middle.
_PARTS = 41


@dataclass(frozen=True)
class CoinGuesses:
    """Guesses of fair coins by weight: entry w - 1 of `right` and `made` counts those of weight w.

    It unpacks in this order, so that `fair_coin(*guesses, delta=..., confidence=...)` bounds ε.

    Attributes:
        right: Right guesses of each weight.
        made: Guesses of each weight.
        trials: Coins, including those without a guess; at least 1.
        by_training: Guesses of each training, if every training serves several coins (the same
            number each); absent if every coin has its own training.

    Raises:
        SettingsError: If a count is not whole, right guesses outnumber guesses, guesses outnumber
            trials, or the counts per training do not add up to the coins and the guesses.
    """

    right: tuple[int, ...]
    made: tuple[int, ...]
    trials: int
    by_training: tuple[int, ...] | None = field(default=None, metadata={"optional": True})

    def __post_init__(self) -> None:
        object.__setattr__(self, "trials", whole_number("trials", self.trials))
        object.__setattr__(self, "by_training", self.by_training or None)
        for name in ("right", "made", "by_training")[: 3 if self.by_training else 2]:
            counts = tuple(whole_number(name, count) for count in getattr(self, name))
            object.__setattr__(self, name, counts)
        check_number("trials", self.trials, AT_LEAST_1)
        if len(self.right) != len(self.made):
            raise SettingsError(
                f"`right` has {len(self.right)} weights and `made` {len(self.made)}: give both "
                "the same number"
            )
        if any(not 0 <= right <= made for right, made in zip(self.right, self.made, strict=True)):
            raise SettingsError(
                f"`right` is {self.right} of {self.made} guesses made; give counts from 0 to those"
            )
        if sum(self.made) > self.trials:
            raise SettingsError(
                f"`made` is {sum(self.made)} guesses of {self.trials} trials; give one each at most"
            )
        if self.by_training:
            self._check_trainings(self.by_training)

    def _check_trainings(self, by_training: tuple[int, ...]) -> None:
        """Refuses counts per training that do not add up."""
        if self.trials % len(by_training):
            raise SettingsError(
                f"`by_training` has {len(by_training)} trainings, which cannot serve equally "
                f"many of {self.trials} trials: give the guesses of every training"
            )
        fits = all(0 <= count <= self.shared for count in by_training)
        if not fits or sum(by_training) != sum(self.made):
            raise SettingsError(
                f"`by_training` has {sum(by_training)} guesses, and `made` {sum(self.made)}, "
                f"of trainings with {self.shared} coins: give all guesses of every training"
            )

    def __iter__(self) -> Iterator[Any]:
        yield from (self.right, self.made, self.trials, self.by_training)

    @property
    def trainings(self) -> int:
        """Trainings, independent given their coins."""
        return len(self.by_training) if self.by_training else self.trials

    @property
    def shared(self) -> int:
        """Coins that each training serves."""
        return self.trials // self.trainings

    @property
    def weight_of_right(self) -> int:
        """Sum of the weights of the right guesses."""
        return sum(weight * count for weight, count in enumerate(self.right, start=1))


class SetAside(NamedTuple):
    """The allowance for delta, fixed before any outcome is seen.

    Attributes:
        revealed: Trainings that may reveal a coin: all their guesses count as correct.
        probability: Probability that more trainings reveal one, subtracted from the error
            probability.
    """

    revealed: int
    probability: float


def fair_coin(
    right: Sequence[int],
    made: Sequence[int],
    trials: int,
    by_training: Sequence[int] | None = None,
    *,
    delta: float,
    confidence: float,
) -> float:
    """A lower bound on epsilon from weighted guesses of fair coins.

    The bound is the ε at which the p-value reaches 1 - confidence. The rule for the weights must
    have been fixed before the trials were scored.

    Args:
        right: Right guesses of each weight, from 1 on.
        made: Guesses of each weight; shape as `right`.
        trials: Coins, including those without a guess, at least 1.
        by_training: As in `CoinGuesses`, if trainings serve several coins each.
        delta: δ of the claim, in [0, 1).
        confidence: One-sided confidence, in (0, 1).

    Returns:
        The bound, at least 0; 0 for an attack no better than chance, or one that abstains.

    Raises:
        SettingsError: If an argument is out of range.
    """
    guesses = CoinGuesses(tuple(right), tuple(made), trials, tuple(by_training or ()))
    aside = _set_aside_for(guesses, delta=delta, confidence=confidence)
    return _bound(guesses.made, guesses.weight_of_right, aside, 1.0 - confidence, 0.0)


def weight_bound(
    made: Sequence[int],
    weight: int,
    trials: int,
    *,
    delta: float,
    confidence: float,
    at_least: float = 0.0,
) -> float:
    """`fair_coin` for correct guesses of this total weight.

    Args:
        made: Guesses of each weight, from 1 on.
        weight: Sum of the weights of the right ones.
        trials: Coins, including those without a guess.
        delta: δ of the claim, in [0, 1).
        confidence: One-sided confidence, in (0, 1).
        at_least: Where the search for the bound starts.

    Returns:
        The bound, or `at_least` where that is larger.
    """
    aside = set_aside(trials, delta=delta, confidence=confidence)
    return _bound(made, weight, aside, 1.0 - confidence, at_least)


def _bound(
    made: Sequence[int], weight: int, aside: SetAside | None, alpha: float, at_least: float
) -> float:
    """The ε at which the p-value is alpha, or `at_least` if that is larger."""
    if aside is None:
        return at_least

    def excess(epsilon: float) -> float:
        return _p_value(made, weight, epsilon, aside) - alpha

    if excess(at_least) >= 0.0:
        return at_least
    high = at_least + 1.0
    while excess(high) < 0.0:
        high *= 2.0
        if high > _LARGEST_EPSILON:  # only a number of right guesses near e^36 gets here
            return _LARGEST_EPSILON
    root = float(scipy.optimize.brentq(excess, at_least, high, xtol=_TOLERANCE))
    return max(at_least, root - 2.0 * _TOLERANCE)


def fair_coin_p_value(
    right: Sequence[int],
    made: Sequence[int],
    trials: int,
    by_training: Sequence[int] | None = None,
    *,
    epsilon: float,
    delta: float,
    confidence: float,
) -> float:
    """Largest probability, under an (ε, δ)-DP claim, of correct guesses of at least this weight.

    Args:
        right: Right guesses of each weight, from 1 on.
        made: Guesses of each weight; shape as `right`.
        trials: Coins, including those without a guess, at least 1.
        by_training: As in `CoinGuesses`, if trainings serve several coins each.
        epsilon: ε of the claim, finite and not negative.
        delta: δ of the claim, in [0, 1).
        confidence: Confidence of the test, which fixes the allowance for δ, in (0, 1).

    Returns:
        The p-value, at most 1. Values below 1e-12 are not resolved.

    Raises:
        SettingsError: If an argument is out of range.
    """
    guesses = CoinGuesses(tuple(right), tuple(made), trials, tuple(by_training or ()))
    check_epsilon(epsilon)
    aside = _set_aside_for(guesses, delta=delta, confidence=confidence)
    if aside is None:
        return 1.0
    return _p_value(guesses.made, guesses.weight_of_right, epsilon, aside)


def any_revealed(shared: int, delta: float) -> float:
    """Upper limit on the probability that a training reveals one of its coins (union bound)."""
    return min(1.0, shared * delta)


@lru_cache(maxsize=256)
def set_aside(trials: int, *, delta: float, confidence: float) -> SetAside | None:
    """The allowance for δ that lowers the bound of a perfect attack on all trials least.

    Args:
        trials: Trainings; as many as coins, unless coins share trainings.
        delta: Probability that a training reveals a coin, in [0, 1]: δ of the claim, or
            `any_revealed` of it.
        confidence: One-sided confidence, in (0, 1).

    Returns:
        The allowance, or None if it leaves no error probability to prove anything with.
    """
    if delta == 0.0:
        return SetAside(0, 0.0)

    def beyond(revealed: int) -> float:
        # Trainings are independent, and each reveals a coin with probability at most delta.
        return float(binomial.sf(revealed, trials, delta))

    return cheapest_allowance(trials, beyond, alpha=1.0 - confidence)


def cheapest_allowance(
    guesses: int, beyond: Callable[[int], float], *, alpha: float
) -> SetAside | None:
    """The allowance that lowers the bound of right guesses alone least.

    Args:
        guesses: How many guesses there are, all right.
        beyond: Upper limit on the probability that more than so many are revealed.
        alpha: Error probability.

    Returns:
        The allowance, or None if it leaves no error probability to prove anything with.
    """
    best, least = None, math.inf
    for revealed in range(guesses):
        probability = beyond(revealed)
        if probability >= alpha:
            continue
        # If all n guesses are right, p^n is within what is left: the smaller -log p, the larger ε.
        cost = -math.log(alpha - probability) / (guesses - revealed)
        if cost >= least:
            break
        best, least = SetAside(revealed, probability), cost
    return best


def _set_aside_for(guesses: CoinGuesses, *, delta: float, confidence: float) -> SetAside | None:
    """The allowance counted in guesses: all those of the trainings with the most guesses."""
    check_delta(delta)
    check_confidence(confidence)
    revealed = any_revealed(guesses.shared, delta)
    aside = set_aside(guesses.trainings, delta=revealed, confidence=confidence)
    if aside is None or not guesses.by_training:
        return aside
    most = sorted(guesses.by_training, reverse=True)[: aside.revealed]
    return aside._replace(revealed=sum(most))


def _p_value(made: Sequence[int], weight: int, epsilon: float, aside: SetAside) -> float:
    """Largest probability of right guesses of at least this weight, given the allowance for δ."""
    # Kairouz, Oh and Viswanath 2015, Theorem 2.5: δ reveals coins. At worst these are the coins of
    # the heaviest guesses, which count as right.
    unrevealed, needed, revealed = list(made), weight, aside.revealed
    for place in reversed(range(len(unrevealed))):
        counted_right = min(revealed, unrevealed[place])
        unrevealed[place] -= counted_right
        needed -= counted_right * (place + 1)
        revealed -= counted_right
    # Steinke, Nasr and Jagielski 2023, Theorem 5.2: the weight of the remaining right guesses is
    # dominated by that of independent guesses, each right with probability e^ε/(1 + e^ε).
    reached = weight_reached(unrevealed, needed, success=float(scipy.special.expit(epsilon)))
    return min(1.0, reached + aside.probability)


def weight_reached(made: Sequence[int], needed: int, *, success: float) -> float:
    """Probability that the right ones among independent guesses have at least this weight.

    Args:
        made: Guesses of each weight, from 1 on.
        needed: The weight.
        success: Probability that a guess is right, in (0, 1).

    Returns:
        The probability, by the binomial distribution if all weights are equal, else by the
        characteristic function of the sum, rounded up by 1e-12.
    """
    if needed <= 0:
        return 1.0
    used = [(weight, count) for weight, count in enumerate(made, start=1) if count]
    most = sum(weight * count for weight, count in used)
    if needed > most:
        return 0.0
    if len(used) == 1:
        [(weight, count)] = used
        return float(binomial.sf(-(-needed // weight) - 1, count, success))
    size = scipy.fft.next_fast_len(most + 1, real=True)
    log_characteristic = sum(
        count * np.log1p(success * _turns(weight, size)) for weight, count in used
    )
    mass = np.fft.irfft(np.exp(log_characteristic), size)
    return float(np.clip(mass[needed : most + 1].sum() + _ROUNDING, 0.0, 1.0))


@lru_cache(maxsize=16)  # the same for every epsilon that a search for the bound tries
def _turns(weight: int, size: int) -> npt.NDArray[np.complex128]:
    """exp(-iwt) - 1 at the frequencies t of a transform of this size; read-only."""
    angle = 2.0j * np.pi * np.arange(size // 2 + 1) / size
    turns: npt.NDArray[np.complex128] = np.expm1(-weight * angle)
    turns.flags.writeable = False
    return turns


@dataclass(frozen=True, kw_only=True)
class CoinPlan:
    """The size of an audit by the fair-coin bound, and what it can prove and detect.

    The attack guesses every coin except those of failed trials, all with the same weight.

    Attributes:
        trials: Coins of both worlds together, at least 1; as many as scored trials, unless coins
            share trials.
        delta: δ of the claim, in [0, 1).
        confidence: One-sided confidence of the bound, in (0, 1).
        failed: Coins of trials that failed, on which nothing is guessed.
        shared: Coins that each training serves.

    Raises:
        SettingsError: If `delta` or `confidence` is out of range, or more trials failed than there
            are.
    """

    trials: int
    delta: float
    confidence: float
    failed: int = 0
    shared: int = 1

    def __post_init__(self) -> None:
        check_number("failed", self.failed, NumberRange(0, self.trials))
        check_delta(self.delta)
        check_confidence(self.confidence)

    def provable(self) -> float:
        """Upper limit of the `fair_coin` bound, reached when all guesses are right.

        Raises:
            SettingsError: If there is no trial.
        """
        made = (self.trials - self.failed,)
        by_training: tuple[int, ...] = ()
        if self.shared > 1:
            finished = made[0] // self.shared
            failed = self.trials // self.shared - finished
            by_training = (self.shared,) * finished + (0,) * failed
        level = {"delta": self.delta, "confidence": self.confidence}
        return fair_coin(made, made, self.trials, by_training, **level)

    def power(self, claimed: float, *, right: float) -> float:
        """Probability that the bound exceeds the claim.

        Args:
            claimed: Claimed ε, finite and not negative.
            right: Probability that a guess is right, in [0, 1].

        Raises:
            SettingsError: If `claimed` is out of range.
        """
        return self._power_by_success(claimed)(right)

    def detectable(self, claimed: float, *, power: float = 0.8) -> float | None:
        """Minimum detectable epsilon.

        The leak is randomised response, which shows equally in all trials: a guess is right with
        probability e^ε/(1 + e^ε).

        Args:
            claimed: Claimed ε, finite and not negative.
            power: Probability that the bound exceeds the claim, in (1 − confidence, 1).

        Returns:
            The smallest such ε, or None if no leak, however large, is detected.

        Raises:
            SettingsError: If an argument is out of range.
        """
        power_by_success = self._power_by_success(claimed)
        check_power(power, confidence=self.confidence)
        if power_by_success(1.0) == 0.0:
            return None

        def excess(epsilon: float) -> float:
            return power_by_success(float(scipy.special.expit(epsilon))) - power

        return float(scipy.optimize.brentq(excess, claimed, claimed + _CERTAIN_LEAK, xtol=1e-9))

    def detectable_shift(self, claimed: float, *, power: float = 0.8) -> float | None:
        """Smallest detectable shift mu of a normal score (mu-GDP: Dong, Roth and Su 2022).

        The attack abstains where the score is within a margin of the middle; the margin is the best
        one for the audit. Weights that grow with the odds do slightly better.

        Args:
            claimed: Claimed ε, finite and not negative.
            power: Probability that the bound exceeds the claim, in (1 − confidence, 1).

        Returns:
            mu, in standard deviations of the score; None if no shift is detected.

        Raises:
            SettingsError: If an argument is out of range.
        """
        usable = self.trials - self.failed
        fewest = self._fewest_right(claimed, np.arange(usable + 1))
        check_power(power, confidence=self.confidence)
        if fewest[usable] > usable:
            return None
        middles = (np.arange(_PARTS) + 0.5) / _PARTS

        def excess(mu: float) -> float:
            # beyond the margin, on the side of the trial's world
            right = scipy.special.ndtr(mu / 2.0 - _MARGINS)
            guessed = right + scipy.special.ndtr(-mu / 2.0 - _MARGINS)
            start, mass = binomial.mass(usable, guessed)
            ranks = [np.searchsorted(below, middles) for below in np.cumsum(mass, axis=1)]
            made = start[:, None] + np.stack(ranks)
            reached = binomial.sf(fewest[made] - 1, made, (right / guessed)[:, None])
            return float(reached.mean(axis=1).max()) - power

        return float(scipy.optimize.brentq(excess, 0.0, _CERTAIN_SHIFT, xtol=1e-6))

    def detectable_gaussian(self, claimed: float, *, power: float = 0.8) -> float | None:
        """ε at δ of `detectable_shift`; arguments as there.

        Returns:
            ε; None if no shift is detected, and at δ = 0, where every shift has infinite ε.
        """
        if self.delta == 0.0:
            check_epsilon(claimed)
            check_power(power, confidence=self.confidence)
            return None
        shift = self.detectable_shift(claimed, power=power)
        return None if shift is None else gaussian_epsilon(shift, self.delta)

    def _power_by_success(self, claimed: float) -> Callable[[float], float]:
        """The power as a function of the probability that a guess is right."""
        made = self.trials - self.failed
        [fewest] = self._fewest_right(claimed, np.array([made]))
        return lambda right: float(binomial.sf(fewest - 1, made, right))

    def _fewest_right(self, claimed: float, made: IntArray) -> FloatArray:
        """The fewest right of each number of guesses that refute the claim; infinite if none do."""
        check_epsilon(claimed)
        revealed = any_revealed(self.shared, self.delta)
        aside = set_aside(self.trials // self.shared, delta=revealed, confidence=self.confidence)
        if aside is None:
            return np.full(made.shape, math.inf)
        set_aside_guesses = aside.revealed * self.shared
        counted = np.maximum(made - set_aside_guesses, 0)
        # P[Bin >= k] must be below the remaining error probability; isf returns k - 1.
        remaining = 1.0 - self.confidence - aside.probability
        enough = binomial.isf(remaining, counted, scipy.special.expit(claimed)) + 1.0
        fewest: FloatArray = np.where(counted > 0, enough + set_aside_guesses, math.inf)
        return fewest
