"""From the one training to the record of a one-run audit."""

from __future__ import annotations

from collections.abc import Mapping

from dpaudit.auditing.conclusion import closing, opening, recorded_bounds
from dpaudit.auditing.controls import control_check
from dpaudit.auditing.one_run.attack import NAME, Guessed
from dpaudit.auditing.one_run.spec import OneRunSpec
from dpaudit.bounds import one_run_gaussian
from dpaudit.bounds.table import Observed, proved, valid_bounds
from dpaudit.game.trial import Outcome, Role
from dpaudit.model.claim import PrivacyClaim
from dpaudit.plugins.protocols import World
from dpaudit.results.decide import decide
from dpaudit.results.record import (
    AuditRecord,
    ControlOutcome,
    FailureReason,
    OneRunOutcome,
)
from dpaudit.results.target import TargetOfAudit
from dpaudit.results.verdict import Check, Power, SampleUnit


def conclude_one_run(
    audit: OneRunSpec,
    controls: Mapping[Role, ControlOutcome],
    outcome: Outcome | None,
    *,
    claim: PrivacyClaim,
    guessed: Guessed | None,
    power: Power,
    reuse: Check,
    seconds: float,
) -> AuditRecord:
    """Decides the verdict and records it; what one training does not have is None or empty.

    Args:
        audit: The audit.
        controls: How its controls ended.
        outcome: The training; None if a control failed, so that it was not run.
        claim: The claim that the verdict is about.
        guessed: The guesses; None unless the training finished.
        power: What this audit could prove.
        reuse: Whether the training was judged before.
        seconds: Seconds spent in trainings.

    Returns:
        The record.
    """
    delta, confidence = claim.delta, audit.settings.confidence
    bounds = None
    if guessed is not None:
        observed = (guessed.correct, guessed.guesses, len(guessed.coins))
        bounds = valid_bounds(Observed.CANARIES, *observed, delta=delta, confidence=confidence)
    checks = (_training_check(outcome, guessed), reuse) if outcome else ()
    decision = decide(
        proved(bounds) if bounds else 0.0,
        claim,
        power,
        [*(control_check(role, of) for role, of in controls.items()), *checks],
        confidence=confidence,
        unit=SampleUnit.CANARIES,
    )
    failed = outcome is not None and guessed is None
    return AuditRecord(
        **opening(audit, claim, decision),
        proved=proved(bounds) if bounds else None,
        bounds=recorded_bounds(bounds) if bounds else None,
        threshold_rule=None,
        sequential=None,
        one_run=OneRunOutcome(
            canaries=audit.canaries,
            included=int(audit.coins.sum()),
            guesses=audit.guesses,
            correct=guessed.correct if guessed else None,
            gaussian_estimate=_gaussian(guessed, delta, confidence),
        ),
        max_provable_epsilon=power.max_provable if guessed else None,
        detectable_epsilon=power.detectable if guessed else None,
        auc=guessed.auc if guessed else None,
        counts=None,
        shadow_models={World.IN: int(outcome is not None), World.OUT: 0},
        failures={World.IN: int(failed), World.OUT: 0},
        failure_reasons=(FailureReason(world=World.IN, count=1, error=outcome.error),)
        if outcome and failed
        else (),
        leaks=(),
        attack=NAME if guessed else None,
        attacks=(),
        threshold=None,
        scores={
            World.IN: tuple(guessed.scores[guessed.coins].tolist()) if guessed else (),
            World.OUT: tuple(guessed.scores[~guessed.coins].tolist()) if guessed else (),
        },
        target=TargetOfAudit(choice="canaries", row=None),
        **closing(audit, controls, checks, seconds=seconds),
    )


def _training_check(outcome: Outcome, guessed: Guessed | None) -> Check:
    name = "the one training"
    if guessed is None:
        return Check(name, False, f"the one training failed: {outcome.error}")
    return Check(name, True, "it finished")


def _gaussian(guessed: Guessed | None, delta: float, confidence: float) -> float | None:
    """An estimate beside the bound; there is none without guesses or at delta 0."""
    if guessed is None or delta == 0:
        return None
    return one_run_gaussian(
        guessed.correct, guessed.guesses, len(guessed.coins), delta=delta, confidence=confidence
    )
