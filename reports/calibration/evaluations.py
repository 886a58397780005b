"""Whole evaluations and sequential audits, as they decide verdicts: false-violation rates."""

from __future__ import annotations

from collections.abc import Iterator

from dpaudit.auditing.settings import AuditSettings
from dpaudit.model.choices import Multiplicity, ThresholdRule
from reports.calibration.boundary import boundary
from reports.calibration.budget import Budget
from reports.calibration.cells import NOMINALS, Cell, simulated, stream
from reports.calibration.mechanisms import Kind, Mechanism, mechanisms
from reports.calibration.pipeline import FirstFeature, scored_attacks, sequential_audit_flags
from reports.calibration.sections import BOUNDS

DECIDING = "the deciding bound"
"""The one of `exact` and `fair_coin` that the fitting part chooses."""
NEAR = (Kind.RANDOMISED_RESPONSE, Kind.NULL)
"""Mechanisms on which it comes near its level; on the others it stays far below."""


def cross_validated(budget: Budget) -> Iterator[Cell]:
    """The bound that an audit decides by, on every mechanism."""
    for n in budget.evaluations:
        for nominal in NOMINALS[: 2 if n == 100 else 1]:
            settings = _settings(n, nominal)
            for mechanism in mechanisms(budget.simulated):
                if n <= 400 or mechanism.kind in NEAR:
                    label = "cross-validated threshold"
                    yield _decided(label, mechanism, settings, budget)


def several_attacks(budget: Budget) -> Iterator[Cell]:
    """Two attacks on the same outputs: every one paid for, or one selected."""
    n = 100 if 100 in budget.evaluations else min(budget.evaluations)
    for multiplicity in Multiplicity:
        for nominal in NOMINALS:
            settings = _settings(n, nominal, attacks=2, multiplicity=multiplicity)
            for mechanism in few() if nominal == NOMINALS[0] else few()[:1]:
                yield _decided(f"two attacks, {multiplicity}", mechanism, settings, budget)


def _decided(label: str, mechanism: Mechanism, settings: AuditSettings, budget: Budget) -> Cell:
    """Simulated evaluations of whichever bound was chosen; some are put through `evaluate`."""
    nominal, draws = _nominal(settings), _draws(mechanism, budget)
    rng = stream(DECIDING, label, mechanism, settings.per_world, nominal)
    asked = {"delta": mechanism.delta, "confidence": settings.attack_confidence}
    violations = 0
    for draw in range(draws):
        scored = scored_attacks(mechanism, settings=settings, rng=rng)
        flagged = any(one.refutes(epsilon=mechanism.epsilon, **asked) for one in scored)
        violations += flagged
        if draw < budget.checked:
            bound = max(one.bound(**asked) for one in scored)
            if (bound > mechanism.epsilon) != flagged:
                raise AssertionError(f"{label}, {mechanism}: evaluate says {bound}")
    return simulated(
        f"{DECIDING}, {label}", ours=True, where=str(mechanism), n=settings.per_world,
        nominal=nominal, violations=violations, draws=draws,
    )  # fmt: skip


def hold_out(budget: Budget) -> Iterator[Cell]:
    """As many scored trials of each world, as in published audits: both bounds on the errors."""
    for n in [size for size in budget.evaluations if size <= 400]:
        for nominal in NOMINALS[: 2 if n == 100 else 1]:
            settings = _settings(n, nominal, threshold=ThresholdRule.HOLD_OUT)
            for mechanism in few():
                yield from _held_out(mechanism, settings, budget)


def _held_out(mechanism: Mechanism, settings: AuditSettings, budget: Budget) -> Iterator[Cell]:
    nominal, draws = _nominal(settings), _draws(mechanism, budget)
    rng = stream("hold-out", mechanism, settings.per_world, nominal)
    asked = {"delta": mechanism.delta, "confidence": settings.attack_confidence}
    decide = {
        name: boundary(rule, settings.scored // 2, mechanism.epsilon, *asked.values())
        for name, rule in BOUNDS.items()
    }
    violations = dict.fromkeys(BOUNDS, 0)
    for draw in range(draws):
        [one] = scored_attacks(mechanism, settings=settings, rng=rng)
        errors = one.counts.false_negatives, one.counts.false_positives
        flagged = {name: own.proves(*errors) for name, own in decide.items()}
        for name, is_flagged in flagged.items():
            violations[name] += is_flagged
        if draw < budget.checked:
            bound = one.bound(**asked)
            if (bound > mechanism.epsilon) != flagged["exact"]:
                raise AssertionError(f"hold-out, {mechanism}: evaluate says {bound} at {errors}")
    for name, found in violations.items():
        yield simulated(
            f"{name}, hold-out threshold", ours=True, where=str(mechanism), n=settings.per_world,
            nominal=nominal, violations=found, draws=draws,
        )  # fmt: skip


def sequential_audits(budget: Budget) -> Iterator[Cell]:
    """Whole sequential audits: bets, refits, and the chosen fixed bound at the cap."""
    smallest = min(budget.sequential_caps)
    for cap in budget.sequential_caps:
        for nominal in NOMINALS[: 2 if cap == smallest else 1]:
            settings = _settings(cap // 2, nominal, sequential=True)
            everywhere = cap == smallest and nominal == NOMINALS[0]
            for mechanism in few() if everywhere else few()[:1]:
                draws = _draws(mechanism, budget)
                rng = stream("bets and cap", mechanism, cap, nominal)
                count = sum(
                    sequential_audit_flags(mechanism, settings=settings, rng=rng)
                    for _ in range(draws)
                )
                yield simulated(
                    "sequential audit: bets, refits and the deciding bound at the cap", ours=True,
                    where=str(mechanism), n=cap // 2, nominal=nominal, violations=count,
                    draws=draws,
                )  # fmt: skip


def few() -> list[Mechanism]:
    """One mechanism of each kind, and a large epsilon."""
    kinds = (Kind.RANDOMISED_RESPONSE, Kind.LAPLACE, Kind.GAUSSIAN)
    ones = [Mechanism(kind, 1.0) for kind in kinds]
    return [*ones, Mechanism(Kind.RANDOMISED_RESPONSE, 4.0), Mechanism(Kind.NULL, 0.0)]


def _settings(
    per_world: int,
    nominal: float,
    *,
    attacks: int = 1,
    threshold: ThresholdRule = ThresholdRule.CROSS_VALIDATED,
    multiplicity: Multiplicity = Multiplicity.BONFERRONI,
    sequential: bool = False,
) -> AuditSettings:
    return AuditSettings(
        shadow_models=2 * per_world,
        attacks=(FirstFeature(),) * attacks,
        confidence=1.0 - nominal,
        threshold=threshold,
        multiplicity=multiplicity,
        sequential=sequential,
    )


def _nominal(settings: AuditSettings) -> float:
    return round(1.0 - settings.confidence, 6)


def _draws(mechanism: Mechanism, budget: Budget) -> int:
    return budget.near if mechanism.kind in NEAR else budget.far
