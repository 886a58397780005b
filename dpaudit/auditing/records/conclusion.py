"""From the models of an audit of many records to its record: checks, verdict, numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dpaudit.auditing.checks import (
    ENOUGH_MODELS,
    EVERY_TRIAL_FINISHED,
    FAILED_MODELS,
    MODEL_ORDER,
    SIGNIFICANCE,
    Replay,
    check_repeats,
    check_replay,
    failure_reasons,
    order_detail,
)
from dpaudit.auditing.conclusion import conclude, recorded_bounds
from dpaudit.auditing.drift import drift_p_value
from dpaudit.auditing.records.attack import RecordsEvaluation
from dpaudit.auditing.records.plan import power
from dpaudit.auditing.records.spec import RecordsSpec
from dpaudit.bounds import Counts, Direction, Threshold
from dpaudit.game.outcomes import StoredOutcome
from dpaudit.game.trial import Role
from dpaudit.model.currencies import EpsilonClaim
from dpaudit.plugins.protocols import BoolArray, World, is_seedable, trains_many
from dpaudit.results.game import AttackOutcome
from dpaudit.results.record import (
    AuditRecord,
    ControlOutcome,
    TargetOfAudit,
)
from dpaudit.results.records import RecordOutcome, RecordsOutcome
from dpaudit.results.verdict import DIFFERENT_SEEDS, Check, Consequence

EVEN_ODDS = Threshold(0.0, Direction.HIGHER)
"""A model more probably had a record than not if its log odds are at least this."""


class RecordsFindings(NamedTuple):
    """The findings of the audit's own models.

    Attributes:
        claim: The claim that the verdict is about.
        outcomes: How every model that was run ended, by number.
        included: Which records each model had [n, k], those that were not run included.
        attacked: Every attack that was scored; empty if too few models finished.
        replays: A model and its second run.
    """

    claim: EpsilonClaim
    outcomes: Sequence[StoredOutcome]
    included: BoolArray
    attacked: Sequence[RecordsEvaluation]
    replays: Sequence[Replay]


def conclude_records(
    audit: RecordsSpec,
    controls: Mapping[Role, ControlOutcome],
    findings: RecordsFindings | None,
    *,
    reuse: Check,
    seconds: float,
) -> AuditRecord:
    """Decides the verdict and records it.

    Args:
        audit: The audit.
        controls: How its controls ended.
        findings: What its models showed; None if a control failed, so that none was trained.
        reuse: Whether its models were judged before.
        seconds: Seconds spent in trainings.

    Returns:
        The record; all models count as trials of world out, because each lacks records.
    """
    settings = audit.settings
    claim = findings.claim if findings else audit.claim
    outcomes = findings.outcomes if findings else ()
    fitted = 2 * settings.game.fitted
    lost = sum(not end.finished for end in outcomes if end.trial.number >= fitted)
    left = power(settings, claim, failed=lost)
    attacked = findings.attacked if findings else ()
    best = max(attacked, key=lambda one: (one.proved, one.auc), default=None)
    checks = (*_checks(audit, findings, best), reuse) if findings else ()
    failed = sum(not end.finished for end in outcomes)
    return conclude(
        audit,
        controls,
        claim=claim,
        proved=best.proved if best else None,
        power=left,
        reached=findings is not None,
        checks=checks,
        seconds=seconds,
        bounds=recorded_bounds(best.bounds) if best else None,
        threshold_rule=settings.game.rule,
        game=_records(audit, best),
        auc=best.auc if best else None,
        counts=_counts(best) if best else None,
        shadow_models={World.IN: 0, World.OUT: len(outcomes)},
        failures={World.IN: 0, World.OUT: failed},
        failure_reasons=failure_reasons(outcomes),
        leaks=(),
        attack=best.name if best else None,
        attacks=tuple(_attack(one) for one in attacked),
        threshold=EVEN_ODDS if best else None,
        scores={
            World.IN: tuple(best.odds[best.included].tolist()) if best else (),
            World.OUT: tuple(best.odds[~best.included].tolist()) if best else (),
        },
        target=TargetOfAudit(choice="records", row=None),
    )


def _records(audit: RecordsSpec, best: RecordsEvaluation | None) -> RecordsOutcome:
    nothing = np.zeros(len(audit.positions), dtype=int)
    made, right = (best.made, best.right) if best else (nothing, nothing)
    return RecordsOutcome(
        scored=len(best.odds) if best else 0,
        each=tuple(
            RecordOutcome(row=row, guesses=int(guesses), correct=int(correct))
            for row, guesses, correct in zip(audit.positions, made, right, strict=True)
        ),
        unit=audit.unit,
    )


def _counts(one: RecordsEvaluation) -> Counts:
    """Errors at odds of 1 : 1, over all records of the scored models that finished."""
    said = one.odds >= EVEN_ODDS.value
    return Counts(
        false_negatives=int((~said & one.included).sum()),
        false_positives=int((said & ~one.included).sum()),
        n_in=int(one.included.sum()),
        n_out=int((~one.included).sum()),
    )


def _attack(one: RecordsEvaluation) -> AttackOutcome:
    return AttackOutcome(
        name=one.name,
        auc=one.auc,
        bounds=recorded_bounds(one.bounds),
        counts=_counts(one),
        threshold=EVEN_ODDS,
        guesses=one.guesses,
    )


def _checks(
    audit: RecordsSpec, findings: RecordsFindings, best: RecordsEvaluation | None
) -> list[Check]:
    outcomes, generator = findings.outcomes, audit.generator.generator
    checks = []
    if best is None:
        detail = "too few models finished to fit and score an attack"
        checks.append(Check(ENOUGH_MODELS, False, detail))
    checks += [
        _failures(findings),
        _randomness(outcomes),
        check_repeats(outcomes, audit.stream("repeats").rng()),
        check_replay(
            findings.replays, seedable=is_seedable(generator), together=trains_many(generator)
        ),
    ]
    if best is not None:
        checks.append(_order(best))
    return checks


def _failures(findings: RecordsFindings) -> Check:
    """Whether failing depends on any record (Fisher's exact test for each, Bonferroni)."""
    from scipy.stats import fisher_exact

    name = FAILED_MODELS
    failed = np.array([not end.finished for end in findings.outcomes])
    if not failed.any():
        return Check(name, True, EVERY_TRIAL_FINISHED, Consequence.NOTED)
    detail = f"{int(failed.sum())} of {len(failed)} models failed; nothing is guessed on them"
    smallest = 1.0
    for had in findings.included[[end.trial.number for end in findings.outcomes]].T:
        sides = (had, ~had)
        table = np.array([[(failed & one).sum(), (~failed & one).sum()] for one in sides])
        smallest = min(smallest, float(fisher_exact(table)[1]))
    p_value = min(1.0, smallest * findings.included.shape[1])
    if p_value >= SIGNIFICANCE:
        return Check(name, False, detail, Consequence.NOTED)
    detail += f"; failing depends on a record (p = {p_value:.2g}), so failing itself may leak"
    return Check(name, False, detail, Consequence.WEAKENS)


def _randomness(outcomes: Sequence[StoredOutcome]) -> Check:
    """Whether different seeds give different tables: of the first two models, trained alike."""
    first, second = (
        next((end.table for end in outcomes if end.trial.number == number), None)
        for number in (0, 1)
    )
    if first is None or second is None:
        detail = "too few models finished to tell whether different seeds give different tables"
        return Check("seeds compared", False, detail, Consequence.NOTED)
    if first != second:
        detail = "two models of one table with different seeds differ: the output is not a constant"
        return Check(DIFFERENT_SEEDS, True, detail, Consequence.NOTED)
    detail = "two models of one table with different seeds gave the same synthetic table"
    return Check(DIFFERENT_SEEDS, False, detail, Consequence.NOTED)


def _order(best: RecordsEvaluation) -> Check:
    """Whether the mean odds of a model drift with the order of the models (Kendall's rank test)."""
    p_value = drift_p_value(best.odds.mean(axis=1))
    passed = p_value >= SIGNIFICANCE
    return Check(MODEL_ORDER, passed, order_detail(f"scores of {best.name}", passed, p_value))
