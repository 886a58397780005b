"""Rules for what is fixed beforehand, bands and one training: false-violation rates, by cell."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from functools import partial
from typing import Protocol

import numpy as np
from scipy.special import expit
from scipy.stats import binom

from dpaudit.bounds import bonferroni, clopper_pearson, exact, one_run
from reports.calibration.boundary import Rule, boundary
from reports.calibration.budget import Budget
from reports.calibration.cells import NOMINALS, Cell, enumerated, simulated, stream
from reports.calibration.mechanisms import FloatArray, Kind, Mechanism, mechanisms
from reports.methods.bands import BandBound, dkw, equal_local_level, preset_quantiles

BOUNDS: dict[str, Rule] = {"exact": exact, "clopper_pearson": clopper_pearson}
QUANTILES = (0.5, 0.75, 0.95)
TARGETS = 10
ATTACKS = 41


def preset(budget: Budget) -> Iterator[Cell]:
    """A threshold fixed in advance: every outcome enumerated. And ten targets, one bound each."""
    grid = [(m, n) for n in budget.sizes for m in mechanisms(budget.epsilons)]
    grid += [(m, budget.largest) for m in mechanisms(budget.simulated)]
    for mechanism, n in grid:
        for threshold, rates in mechanism.preset().items():
            where = f"{mechanism}, {threshold}"
            for nominal in NOMINALS:
                for name, rule in BOUNDS.items():
                    at = partial(boundary, rule, n, mechanism.epsilon, mechanism.delta)
                    one = at(1.0 - nominal).rate(*rates)
                    cell = partial(enumerated, ours=True, where=where, n=n, nominal=nominal)
                    yield cell(f"{name}, preset threshold", rate=one)
                    if n == 100:
                        each = at(bonferroni(1.0 - nominal, TARGETS)).rate(*rates)
                        yield cell(
                            f"{name}, largest of ten targets, Bonferroni",
                            rate=1.0 - (1.0 - each) ** TARGETS,
                        )


def any_attack(budget: Budget) -> Iterator[Cell]:
    """Whatever (ε, 0)-DP permits: attacks all along the boundary of the error rates."""
    for n in [size for size in budget.sizes if size <= 100]:
        for epsilon in budget.epsilons:
            lie = 1.0 / (1.0 + math.exp(epsilon))
            for name, rule in BOUNDS.items():
                for nominal in NOMINALS:
                    at = boundary(rule, n, epsilon, 0.0, 1.0 - nominal)
                    yield enumerated(
                        f"{name}, preset threshold", ours=True,
                        where=f"any mechanism ε {epsilon:g}, worst of {ATTACKS} attacks", n=n,
                        nominal=nominal,
                        rate=max(
                            at.rate(share * lie, 1.0 - share * lie * math.exp(epsilon))
                            for share in np.linspace(0.0, 1.0, ATTACKS)
                        ),
                    )  # fmt: skip


class _Band(Protocol):
    def __call__(
        self, scores: FloatArray, member: np.ndarray, *, delta: float, confidence: float
    ) -> BandBound: ...


def bands(budget: Budget) -> Iterator[Cell]:
    """All thresholds at once on the scored trials, both directions."""
    rules: dict[str, _Band] = {
        "dkw": dkw,
        "equal_local_level": equal_local_level,
        "preset_quantiles": partial(preset_quantiles, quantiles=QUANTILES),
    }
    draws = budget.draws
    for n in budget.sizes:
        member = np.arange(2 * n) < n
        for mechanism in mechanisms(budget.simulated):
            rng = stream("bands", mechanism, n)
            violations = {(name, nominal): 0 for name in rules for nominal in NOMINALS}
            for _ in range(draws):
                scores = mechanism.scores(n, rng).ravel()
                for name, nominal in violations:
                    found = rules[name](
                        scores, member, delta=mechanism.delta, confidence=1.0 - nominal
                    )
                    violations[name, nominal] += found.epsilon > mechanism.epsilon
            for (name, nominal), count in violations.items():
                yield simulated(
                    name, ours=True, where=str(mechanism), n=n,
                    nominal=nominal, violations=count, draws=draws,
                )  # fmt: skip


def one_training(budget: Budget) -> Iterator[Cell]:
    """One training with many canaries: the surest tenth or all of them guessed."""
    for canaries in budget.one_run:
        for mechanism in mechanisms(budget.simulated):
            for guesses in sorted({canaries, max(10, canaries // 10)}):
                for nominal in NOMINALS:
                    yield _one_run(mechanism, canaries, guesses, nominal, 2000)


def _one_run(mechanism: Mechanism, canaries: int, guesses: int, nominal: float, draws: int) -> Cell:
    settings = {"delta": mechanism.delta, "confidence": 1.0 - nominal}
    least = bisect_left(  # more right guesses never prove less
        range(guesses + 1),
        True,
        key=lambda correct: one_run(correct, guesses, canaries, **settings) > mechanism.epsilon,
    )
    where = f"{mechanism}, {guesses} guesses"
    if mechanism.kind in (Kind.RANDOMISED_RESPONSE, Kind.NULL):  # whichever are guessed
        rate = float(binom.sf(least - 1, guesses, expit(mechanism.epsilon)))
        return enumerated("one_run", ours=True, where=where, n=canaries, nominal=nominal, rate=rate)
    rng = stream("one-run", mechanism, canaries, guesses, nominal)
    violations = 0
    for _ in range(draws):
        scores = mechanism.scores(canaries, rng)
        is_in = rng.random(canaries) < 0.5
        seen = np.where(is_in, scores[0], scores[1])
        # By how far a score is from the middle of the worlds; ties in random order.
        middle = mechanism.middle()
        order = np.lexsort((rng.random(canaries), -np.abs(seen - middle)))[:guesses]
        violations += int(((seen >= middle) == is_in)[order].sum()) >= least
    return simulated(
        "one_run", ours=True, where=where, n=canaries, nominal=nominal,
        violations=violations, draws=draws,
    )  # fmt: skip
