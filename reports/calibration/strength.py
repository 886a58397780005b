"""How much is proved: medians, shares of proofs, and trials until a violation is proved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

from dpaudit.auditing.games import audit_settings
from dpaudit.auditing.settings import AuditSettings
from dpaudit.bounds import EpsilonGuarantee, clopper_pearson, e_process, exact
from reports.calibration import peers
from reports.calibration.boundary import Rule
from reports.calibration.budget import Budget
from reports.calibration.cells import NOMINALS, stream
from reports.calibration.mechanisms import Kind, Mechanism, gaussian_epsilon
from reports.calibration.pipeline import FirstFeature, scored_attacks
from reports.calibration.sections import BOUNDS

DECIDING = "the deciding bound"
"""The one of `exact` and `fair_coin` that the fitting part chooses."""
CLAIM, DELTA, CONFIDENCE = 1.0, 1e-5, 0.95
SHIFTS = (0.5, 1.0, 2.0, 4.0)
"""Of Gaussian mechanisms, in standard deviations."""
ON_TEST_DATA = {
    "best threshold on the test data (Clopper-Pearson)": (peers.clopper_pearson_limits, True),
    "DKW band with Delta-Siege's constant": (peers.delta_siege_limits, False),
}
"""Rules of other tools, which exceed their level; whether they guess in both directions."""


def tightness(budget: Budget) -> list[dict[str, Any]]:
    """Median bound over true epsilon: a preset threshold, and whole evaluations."""
    return [*_preset(budget), *_decided(budget)]


def _preset(budget: Budget) -> Iterator[dict[str, Any]]:
    full = len(budget.epsilons) > 1
    for n in (100, 400) if full else (25,):
        for epsilon in [e for e in budget.epsilons if e >= 0.5]:
            mechanism = Mechanism(Kind.RANDOMISED_RESPONSE, epsilon)
            rates = mechanism.preset()["the bit"]
            for name, rule in BOUNDS.items():
                draws = 1000 if full else 50
                rng = stream("tightness", mechanism, n)
                counts = rng.binomial(n, [rates.fnr, rates.fpr], size=(draws, 2))
                bound = _remembered(rule, n)
                bounds = [bound(*sorted(map(int, pair))) for pair in counts]
                yield _median(f"{name}, preset threshold", mechanism, 0, 2 * n, bounds)


def _remembered(rule: Rule, n: int) -> Callable[[int, int], float]:
    @cache
    def bound(fewer: int, more: int) -> float:  # the worlds may be swapped
        return rule(fewer, more, n, n, delta=0.0, confidence=CONFIDENCE)

    return bound


def _decided(budget: Budget) -> Iterator[dict[str, Any]]:
    sizes = (100, 400, 665) if len(budget.epsilons) > 1 else (25,)
    for per_world in sizes:
        settings = _settings(per_world)
        for kind in (Kind.RANDOMISED_RESPONSE, Kind.LAPLACE):
            mechanism = Mechanism(kind, 1.0)
            rng = stream("tightness", DECIDING, mechanism, per_world)
            bounds = []
            for _ in range(budget.tightness):
                [one] = scored_attacks(mechanism, settings=settings, rng=rng)
                bounds.append(one.bound(EpsilonGuarantee(mechanism.delta), confidence=CONFIDENCE))
            yield _median(
                DECIDING, mechanism, 2 * settings.game.fitted, settings.game.scored, bounds
            )


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


def violations(budget: Budget) -> list[dict[str, Any]]:
    """What each rule proves of mechanisms that break a claim of epsilon 1 at their own delta.

    The first three rules see the same trials. Those of other tools fit nothing: they take the best
    threshold on all trials, half of them of each world, where scores have no ties.
    """
    found = []
    leaks = [
        (f"Gaussian shift {shift:g}", Mechanism(Kind.GAUSSIAN, gaussian_epsilon(shift)))
        for shift in SHIFTS
    ]
    leaks += [(str(one), one) for one in (Mechanism(Kind.LAPLACE, e) for e in (2.0, 4.0))]
    leaks += [(str(one), one) for one in (Mechanism(Kind.RANDOMISED_RESPONSE, 2.0),)]
    for per_world, draws in budget.strength.items():
        for where, mechanism in leaks:
            rng = stream("violations", where, per_world)
            bounds: dict[str, list[float]] = {}
            for _ in range(draws):
                for rule, bound in _bounds(mechanism, per_world, rng):
                    bounds.setdefault(rule, []).append(bound)
            for rule, own in bounds.items():
                found.append(
                    {
                        "rule": rule,
                        "holds": rule not in ON_TEST_DATA,
                        "where": where,
                        "epsilon": round(mechanism.epsilon, 4),
                        "delta": mechanism.delta,
                        "per_world": per_world,
                        "median_bound": round(float(np.median(own)), 4),
                        "proved": round(float(np.mean(np.array(own) > CLAIM)), 4),
                        "draws": draws,
                    }
                )
    return found


def _bounds(
    mechanism: Mechanism, per_world: int, rng: np.random.Generator
) -> Iterator[tuple[str, float]]:
    """The bound of every rule in one audit."""
    asked: dict[str, Any] = {"delta": mechanism.delta, "confidence": CONFIDENCE}
    [one] = scored_attacks(mechanism, settings=_settings(per_world), rng=rng)
    yield DECIDING, one.bound(EpsilonGuarantee(mechanism.delta), confidence=CONFIDENCE)
    yield "exact, one threshold", exact(*one.counts, **asked)
    yield "clopper_pearson, one threshold", clopper_pearson(*one.counts, **asked)
    if mechanism.kind is not Kind.RANDOMISED_RESPONSE:
        scores = mechanism.scores(per_world, rng)
        for rule, (limits, both) in ON_TEST_DATA.items():
            own = limits(per_world, 1.0 - CONFIDENCE)
            yield (
                rule,
                peers.best_on_test(scores, own, delta=mechanism.delta, both_directions=both),
            )


def _settings(per_world: int) -> AuditSettings:
    return audit_settings(
        shadow_models=2 * per_world, attacks=(FirstFeature(),), confidence=CONFIDENCE
    )


def speed(budget: Budget) -> list[dict[str, Any]]:
    """Trials until bets at known odds prove that randomised response breaks a claim of 1."""
    found = []
    for epsilon in (10.0, 5.0, 3.0, 2.0, 1.5):
        mechanism = Mechanism(Kind.RANDOMISED_RESPONSE, epsilon)
        rng = stream("speed", mechanism)
        draws, cap = budget.long_draws, budget.length
        needed: dict[float, list[int]] = {nominal: [] for nominal in NOMINALS}
        for _ in range(draws):
            member = rng.random(cap) < 0.5
            odds = mechanism.log_odds(mechanism.seen(member, rng))
            log_e = e_process(odds, member, epsilon=CLAIM, delta=DELTA)
            for nominal, own in needed.items():
                proved = log_e >= -np.log(nominal)
                own.append(int(proved.argmax()) + 1 if proved.any() else cap + 1)
        for nominal, own in needed.items():
            found.append(
                {
                    "epsilon": epsilon,
                    "nominal": nominal,
                    "mean": round(float(np.mean(own)), 2),
                    "p90": int(np.quantile(own, 0.9, method="inverted_cdf")),
                    "unproved": sum(one > cap for one in own),
                    "cap": cap,
                    "draws": draws,
                }
            )
    return found
