"""How much is proved: tightness of the bounds, and pairs until a violation is proved."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from dpaudit.auditing.attacking.evaluation import evaluate
from dpaudit.auditing.attacking.fitting import fit_attack
from dpaudit.auditing.attacking.parts import Part, SplitTrials
from dpaudit.bounds import (
    EpsilonGuarantee,
    ThresholdRule,
    clopper_pearson,
    e_process,
    exact,
)
from reports.calibration.boundary import Rule
from reports.calibration.budget import Budget
from reports.calibration.cells import NOMINALS, stream
from reports.calibration.mechanisms import Kind, Mechanism
from reports.calibration.pipeline import FirstFeature

CLAIM, DELTA = 1.0, 1e-5


def tightness(budget: Budget) -> list[dict[str, Any]]:
    """Median bound over true epsilon: preset threshold, and thresholds of the fitting part."""
    full = len(budget.epsilons) > 1
    found = []
    for n in (100, 400) if full else (25,):
        for epsilon in [e for e in budget.epsilons if e >= 0.5]:
            mechanism = Mechanism(Kind.RANDOMISED_RESPONSE, epsilon)
            rates = mechanism.preset()["the bit"]
            for name, rule in (("exact", exact), ("clopper_pearson", clopper_pearson)):
                draws = 1000 if full else 50
                rng = stream("tightness", mechanism, n)
                counts = rng.binomial(n, [rates.fnr, rates.fpr], size=(draws, 2))
                bound = _remembered(rule, n)
                bounds = [bound(*sorted(map(int, pair))) for pair in counts]
                found.append(_median(f"{name}, preset threshold", mechanism, 0, n, bounds))
    laplace = Mechanism(Kind.LAPLACE, 1.0)
    splits = [(160, 239), (266, 399), (399, 399)] if full else [(20, 30)]
    for fitted, scored in splits:
        for rule_of in (ThresholdRule.CROSS_VALIDATED, ThresholdRule.HOLD_OUT):
            rng = stream("tightness", laplace, fitted, scored, rule_of)
            bounds = [
                _evaluated(laplace, fitted, scored, rule_of, rng)
                for _ in range(1000 if full else 10)
            ]
            name = f"exact, {rule_of} threshold"
            found.append(_median(name, laplace, fitted, scored, bounds))
    return found


def _remembered(rule: Rule, n: int) -> Callable[[int, int], float]:
    @cache
    def bound(fewer: int, more: int) -> float:  # the worlds may be swapped
        return rule(fewer, more, n, n, delta=0.0, confidence=0.95)

    return bound


def _median(
    rule: str, mechanism: Mechanism, fitted: int, scored: int, bounds: list[float]
) -> dict[str, Any]:
    return {
        "rule": rule,
        "where": str(mechanism),
        "fitted": fitted,
        "scored": scored,
        "epsilon": mechanism.epsilon,
        "median_bound": round(float(np.median(bounds)), 4),
        "tightness": round(float(np.median(bounds)) / mechanism.epsilon, 4),
        "draws": len(bounds),
    }


def _evaluated(
    mechanism: Mechanism, fitted: int, scored: int, rule: ThresholdRule, rng: np.random.Generator
) -> float:
    """The bound of one evaluation with parts of these sizes per world."""
    fitting, counted = (
        Part(mechanism.scores(n, rng).reshape(-1, 1), np.arange(2 * n) < n)
        for n in (fitted, scored)
    )
    attack = fit_attack(
        FirstFeature(),
        fitting,
        rule=rule,
        guarantee=EpsilonGuarantee(mechanism.delta),
        confidence=0.95,
        rng=rng,
    )
    trials = SplitTrials(fitting, counted, failed_in=0, failed_out=0)
    return evaluate(
        attack, trials, guarantee=EpsilonGuarantee(mechanism.delta), confidence=0.95
    ).proved


def speed(budget: Budget) -> list[dict[str, Any]]:
    """Pairs until the e-process proves that randomised response breaks a claim of epsilon 1."""
    found = []
    for epsilon in (10.0, 5.0, 3.0, 2.0, 1.5):
        mechanism = Mechanism(Kind.RANDOMISED_RESPONSE, epsilon)
        rates = mechanism.preset()["the bit"]
        rng = stream("speed", mechanism)
        draws = budget.long_draws
        pairs = budget.pairs if epsilon < 2.0 else min(budget.pairs, 600)
        needed: dict[float, list[int]] = {nominal: [] for nominal in NOMINALS}
        for _ in range(draws):
            wrong_out, wrong_in = rng.random((2, pairs)) < [[rates.fpr], [rates.fnr]]
            log_e = e_process(~wrong_in, wrong_out, epsilon=CLAIM, delta=DELTA)
            for nominal, own in needed.items():
                proved = log_e >= -np.log(nominal)
                own.append(int(proved.argmax()) + 1 if proved.any() else pairs + 1)
        for nominal, own in needed.items():
            found.append(
                {
                    "epsilon": epsilon,
                    "nominal": nominal,
                    "mean": round(float(np.mean(own)), 2),
                    "p90": int(np.quantile(own, 0.9, method="inverted_cdf")),
                    "unproved": sum(one > pairs for one in own),
                    "cap": pairs,
                    "draws": draws,
                }
            )
    return found
