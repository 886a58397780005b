"""The rules that may enter a verdict of dpaudit: false-violation rates, cell by cell."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from functools import partial
from typing import Protocol

import numpy as np

from dpaudit.auditing.settings import AuditSettings, Multiplicity
from dpaudit.bounds import Hypotheses, ThresholdRule, clopper_pearson, e_process, exact, one_run
from dpaudit.research.bands import BandBound, dkw, equal_local_level, preset_quantiles
from dpaudit.research.universal import universal_inference
from reports.calibration.boundary import Rule, boundary
from reports.calibration.budget import Budget
from reports.calibration.cells import NOMINALS, Cell, enumerated, simulated, stream
from reports.calibration.mechanisms import FloatArray, Kind, Mechanism, mechanisms
from reports.calibration.pipeline import (
    FirstFeature,
    features_of,
    largest_bound,
    scored_attacks,
    sequential_audit_flags,
)

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
                        family = Hypotheses(attacks=1, targets=TARGETS)
                        each = at(family.confidence(1.0 - nominal)).rate(*rates)
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


def thresholds(budget: Budget) -> Iterator[Cell]:
    """Thresholds chosen on the fitting part, through the whole evaluation."""
    for n, draws in budget.draws.items():
        rules = [ThresholdRule.CROSS_VALIDATED, ThresholdRule.HOLD_OUT]
        for rule in rules[: 1 if n > 400 else 2]:
            for nominal in NOMINALS[: 2 if n == 100 else 1]:
                settings = AuditSettings(
                    shadow_models=2 * n,
                    attacks=(FirstFeature(),),
                    confidence=1.0 - nominal,
                    threshold=rule,
                )
                for mechanism in mechanisms(budget.simulated):
                    yield from _audits(f"{rule} threshold", mechanism, settings, draws, budget)


def several_attacks(budget: Budget) -> Iterator[Cell]:
    """Two attacks on the same outputs: every one paid for, or one selected."""
    n = 100 if 100 in budget.draws else min(budget.draws)
    for multiplicity in Multiplicity:
        for nominal in NOMINALS:
            settings = AuditSettings(
                shadow_models=2 * n,
                attacks=(FirstFeature(), FirstFeature()),
                confidence=1.0 - nominal,
                multiplicity=multiplicity,
            )
            label, draws = f"two attacks, {multiplicity}", budget.draws[n] // 2
            for mechanism in _few():
                yield from _audits(label, mechanism, settings, draws, budget)


def _audits(
    label: str, mechanism: Mechanism, settings: AuditSettings, draws: int, budget: Budget
) -> Iterator[Cell]:
    """Simulated evaluations, every one decided by both fixed bounds."""
    nominal = round(1.0 - settings.confidence, 6)
    rng = stream(label, mechanism, settings.per_world, nominal)
    decide = {
        name: boundary(
            rule, settings.scored, mechanism.epsilon, mechanism.delta, settings.attack_confidence
        )
        for name, rule in BOUNDS.items()
    }
    violations = dict.fromkeys(BOUNDS, 0)
    for draw in range(draws):
        features = features_of(mechanism, settings.per_world, len(settings.attacks), rng)
        scored = scored_attacks(features, settings=settings, delta=mechanism.delta, rng=rng)
        errors = [(one.counts.false_negatives, one.counts.false_positives) for one in scored]
        flagged = {name: any(own.proves(*e) for e in errors) for name, own in decide.items()}
        for name, is_flagged in flagged.items():
            violations[name] += is_flagged
        if draw < budget.checked:
            bound = largest_bound(scored, settings=settings, delta=mechanism.delta)
            if (bound > mechanism.epsilon) != flagged["exact"]:
                raise AssertionError(f"{label}: evaluate says {bound} at {errors}")
    for name, found in violations.items():
        yield simulated(
            f"{name}, {label}", ours=True, where=str(mechanism), n=settings.per_world,
            nominal=nominal, violations=found, draws=draws,
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
    for n, draws in budget.draws.items():
        if n > 400:
            continue
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


def sequential(budget: Budget) -> Iterator[Cell]:
    """Looks after every pair; and whole sequential audits with the exact bound at the cap."""
    draws, pairs = budget.long_draws, budget.pairs
    for mechanism in mechanisms(budget.epsilons):
        for threshold, rates in mechanism.preset().items():
            where = f"{mechanism}, {threshold}"
            rng = stream("e-process", where)
            largest = np.empty((2, draws))
            claim = {"epsilon": mechanism.epsilon, "delta": mechanism.delta}
            for draw in range(draws):
                wrong_out, wrong_in = rng.random((2, pairs)) < [[rates.fpr], [rates.fnr]]
                largest[0, draw] = e_process(~wrong_in, wrong_out, **claim).max()
                if mechanism in _few():
                    guesses = np.stack([~wrong_in, wrong_out], axis=1).ravel()
                    worlds = np.tile([True, False], pairs)
                    largest[1, draw] = universal_inference(guesses, worlds, **claim).max()
            names = ["e-process, a look after every pair"]
            names += ["universal inference, a look after every trial"] * (mechanism in _few())
            for name, e_values in zip(names, largest, strict=False):
                for nominal in NOMINALS:
                    count = int((e_values >= -np.log(nominal)).sum())
                    yield simulated(
                        name, ours=True, where=where, n=pairs,
                        nominal=nominal, violations=count, draws=draws,
                    )  # fmt: skip
    for cap, audits in budget.sequential_caps.items():
        for mechanism in _few():
            for nominal in NOMINALS[: 1 if cap > 100 else 2]:
                settings = AuditSettings(
                    shadow_models=2 * cap,
                    attacks=(FirstFeature(),),
                    confidence=1.0 - nominal,
                    sequential=True,
                )
                rng = stream("looks and cap", mechanism, cap, nominal)
                count = sum(
                    sequential_audit_flags(mechanism, settings=settings, rng=rng)
                    for _ in range(audits)
                )
                yield simulated(
                    "sequential audit: looks, refits and exact at the cap", ours=True,
                    where=str(mechanism), n=cap, nominal=nominal, violations=count, draws=audits,
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
        "one_run", ours=True, where=f"{mechanism}, {guesses} guesses", n=canaries,
        nominal=nominal, violations=violations, draws=draws,
    )  # fmt: skip


def _few() -> list[Mechanism]:
    """One mechanism of each kind, and a large epsilon."""
    kinds = (Kind.RANDOMISED_RESPONSE, Kind.LAPLACE, Kind.GAUSSIAN)
    ones = [Mechanism(kind, 1.0) for kind in kinds]
    return [*ones, Mechanism(Kind.RANDOMISED_RESPONSE, 4.0), Mechanism(Kind.NULL, 0.0)]
