"""Fair coins guessed by attacks that are known in full: false-violation rates.

Weights are preset and odds are known, or wrong by a known factor: nothing is fitted.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit
from scipy.stats import binom

from dpaudit.bounds import GuessCalibration, count_guesses, e_process, fair_coin_p_value
from dpaudit.bounds.calibration import WEIGHTS
from reports.calibration.budget import Budget
from reports.calibration.cells import NOMINALS, Cell, enumerated, simulated, stream
from reports.calibration.mechanisms import BoolArray, FloatArray, Kind, Mechanism, few, mechanisms
from reports.methods.universal import universal_inference

PRESET = "fair coins, preset weights"
LOOKS = "e-process, a look after every trial"
DELTAS = (1e-5, 0.001, 0.01, 0.1)
CERTAIN = 40.0
"""Log odds of a revealed coin."""
MISJUDGED = {"odds known": 1.0, "odds cubed": 3.0, "root of the odds": 0.5}
"""What an attack takes for its log odds, as a multiple of the true ones."""
# Numbers of revealed coins less probable than this are not enumerated; their mass is added.
_NEGLIGIBLE = 1e-11


@dataclass(frozen=True)
class Revealing:
    """Reveals a coin with probability delta, else answers by randomised response of epsilon.

    No (ε, δ)-DP mechanism shows more (Kairouz, Oh and Viswanath 2015, Theorem 2.5).
    """

    epsilon: float
    delta: float

    def __str__(self) -> str:
        return f"coins revealed with probability {self.delta:g}, ε {self.epsilon:g}"

    def log_odds(self, member: BoolArray, rng: np.random.Generator) -> FloatArray:
        """Log odds that the world of each trial is "in", given what it shows; shape (n,)."""
        size = len(member)
        revealed = rng.random(size) < self.delta
        truthful = revealed | (rng.random(size) < expit(self.epsilon))
        odds: FloatArray = np.where(revealed, CERTAIN, self.epsilon)
        return np.where(truthful == member, odds, -odds)


class Weights(NamedTuple):
    """What the guess of a revealed coin weighs, and that of another one; 0 for silence."""

    revealed: int
    other: int


WEIGHINGS = {
    "all alike": Weights(1, 1),
    f"the revealed weigh {WEIGHTS}": Weights(WEIGHTS, 1),
    "the revealed alone": Weights(WEIGHTS, 0),
}


def preset_weights(budget: Budget) -> Iterator[Cell]:
    """Weights fixed in advance: enumerated where one number of right guesses says it all."""
    for trials in [2 * size for size in budget.sizes]:
        worst = [Revealing(e, delta) for e in budget.simulated for delta in DELTAS]
        cases = [(Revealing(e, 0.0), "all alike") for e in (0.0, *budget.epsilons)]
        cases += [(one, weighing) for one in worst for weighing in WEIGHINGS]
        for case, weighing in cases:
            where = str(case) if case.delta else _plain(case.epsilon)
            for nominal in NOMINALS:
                yield enumerated(
                    PRESET, ours=True, where=f"{where}, {weighing}", n=trials, nominal=nominal,
                    rate=_rate(case, WEIGHINGS[weighing], trials, nominal),
                )  # fmt: skip
        for mechanism in mechanisms(budget.simulated):
            if mechanism.kind is not Kind.RANDOMISED_RESPONSE:
                near = mechanism.kind is Kind.NULL  # the others stay far below their level
                draws = budget.near if near else budget.draws // 2
                yield from _graded(mechanism, trials, draws)


def _plain(epsilon: float) -> str:
    return str(Mechanism(Kind.RANDOMISED_RESPONSE, epsilon)) if epsilon else str(Kind.NULL)


def _rate(mechanism: Revealing, weights: Weights, trials: int, nominal: float) -> float:
    """Probability that the bound exceeds epsilon, summed over all outcomes."""
    counts = np.arange(trials + 1)
    mass = binom.pmf(counts, trials, mechanism.delta)
    plausible = np.flatnonzero(mass > _NEGLIGIBLE)
    flagged = sum(
        float(mass[revealed]) * _flagged_beside(int(revealed), mechanism, weights, trials, nominal)
        for revealed in plausible
    )
    return min(1.0, flagged + float(mass[mass <= _NEGLIGIBLE].sum()))


def _flagged_beside(
    revealed: int, mechanism: Revealing, weights: Weights, trials: int, nominal: float
) -> float:
    """Probability of a bound above epsilon, given how many coins are revealed."""
    others = trials - revealed if weights.other else 0
    settings = {"delta": mechanism.delta, "confidence": 1.0 - nominal}

    def exceeds(right: int) -> bool:
        hits, made = [0] * WEIGHTS, [0] * WEIGHTS
        for weight, guessed, correct in (
            (weights.revealed, revealed, revealed),
            (weights.other, others, right),
        ):
            if weight:
                made[weight - 1] += guessed
                hits[weight - 1] += correct
        p_value = fair_coin_p_value(hits, made, trials, epsilon=mechanism.epsilon, **settings)
        return p_value < nominal

    # More right guesses never prove less.
    least = bisect_left(range(others + 1), True, key=exceeds)
    return float(binom.sf(least - 1, others, expit(mechanism.epsilon)))


def _graded(mechanism: Mechanism, trials: int, draws: int) -> Iterator[Cell]:
    """Guesses weighed by the true odds, with silence below half of the surest ones."""
    rng = stream(PRESET, mechanism, trials)
    top = max(mechanism.epsilon, 0.5)
    calibration = GuessCalibration(-math.inf, math.inf, 0.0, 1.0, margin=top / 2.0, top=top)
    violations = dict.fromkeys(NOMINALS, 0)
    for _ in range(draws):
        member = rng.random(trials) < 0.5
        odds = mechanism.log_odds(mechanism.seen(member, rng))
        guesses = count_guesses(odds, member, calibration)
        for nominal in NOMINALS:
            p_value = fair_coin_p_value(
                *guesses,
                epsilon=mechanism.epsilon,
                delta=mechanism.delta,
                confidence=1.0 - nominal,
            )
            violations[nominal] += p_value < nominal
    for nominal, count in violations.items():
        yield simulated(
            PRESET, ours=True, where=f"{mechanism}, by the odds", n=trials,
            nominal=nominal, violations=count, draws=draws,
        )  # fmt: skip


def betting(budget: Budget) -> Iterator[Cell]:
    """Looks after every trial, by attacks that know their odds and by others."""
    draws = budget.near
    worst = [Revealing(e, delta) for e in budget.simulated for delta in (0.01, 0.1)]
    every: list[Mechanism | Revealing] = [*mechanisms(budget.epsilons), *worst]
    for mechanism in every:
        rng = stream(LOOKS, mechanism)
        largest = {factor: np.empty(draws) for factor in MISJUDGED.values()}
        for draw in range(draws):
            member = rng.random(budget.length) < 0.5
            odds = (
                mechanism.log_odds(member, rng)
                if isinstance(mechanism, Revealing)
                else mechanism.log_odds(mechanism.seen(member, rng))
            )
            for factor, own in largest.items():
                own[draw] = e_process(
                    factor * odds, member, epsilon=mechanism.epsilon, delta=mechanism.delta
                ).max()
        for name, factor in MISJUDGED.items():
            yield from _exceeding(LOOKS, f"{mechanism}, {name}", largest[factor], budget)


def universal(budget: Budget) -> Iterator[Cell]:
    """Universal inference with a look after every trial, of alternating worlds."""
    draws, pairs = budget.long_draws, budget.length // 2
    for mechanism in few():
        for threshold, rates in mechanism.preset().items():
            where = f"{mechanism}, {threshold}"
            rng = stream("universal inference", where)
            worlds = np.tile([True, False], pairs)
            largest = np.empty(draws)
            for draw in range(draws):
                wrong_out, wrong_in = rng.random((2, pairs)) < [[rates.fpr], [rates.fnr]]
                guesses = np.stack([~wrong_in, wrong_out], axis=1).ravel()
                largest[draw] = universal_inference(
                    guesses, worlds, epsilon=mechanism.epsilon, delta=mechanism.delta
                ).max()
            name = "universal inference, a look after every trial"
            yield from _exceeding(name, where, largest, budget)


def _exceeding(rule: str, where: str, largest: FloatArray, budget: Budget) -> Iterator[Cell]:
    for nominal in NOMINALS:
        yield simulated(
            rule, ours=True, where=where, n=budget.length, nominal=nominal,
            violations=int((largest >= -np.log(nominal)).sum()), draws=len(largest),
        )  # fmt: skip
