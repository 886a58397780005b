"""From the one training to the record of a one-run audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpaudit.auditing.conclusion import conclude, recorded_bounds
from dpaudit.auditing.one_run.attack import Guessed
from dpaudit.auditing.one_run.marginals import interference
from dpaudit.auditing.one_run.spec import OneRunSpec
from dpaudit.bounds import Prefix, guarantee_of, one_run_gaussian
from dpaudit.bounds.table import ValidBound
from dpaudit.game.trial import Outcome, Role
from dpaudit.model.currencies import Claim
from dpaudit.plugins.protocols import World
from dpaudit.results.one_run import CanaryOutcome, OneRunOutcome
from dpaudit.results.record import (
    AuditRecord,
    ControlOutcome,
    FailureReason,
    TargetOfAudit,
)
from dpaudit.results.verdict import Check, Power, SampleUnit


def conclude_one_run(
    audit: OneRunSpec,
    controls: Mapping[Role, ControlOutcome],
    outcome: Outcome | None,
    *,
    claim: Claim,
    guessed: Sequence[Guessed],
    power: Power,
    reuse: Check,
    seconds: float,
) -> AuditRecord:
    """Decides the verdict and records it; fields that one training does not have are None or empty.

    Args:
        audit: The audit.
        controls: How its controls ended.
        outcome: The training; None if a control failed, so that it was not run.
        claim: The claim that the verdict is about.
        guessed: The guesses of each attack; none unless the training finished.
        power: What this audit could prove.
        reuse: Whether the training was judged before.
        seconds: Seconds spent in trainings.

    Returns:
        The record.
    """
    guarantee, each = guarantee_of(claim), audit.settings.attack_confidence
    bounds = [of.bound(guarantee, confidence=each) for of in guessed]
    # The first of equals: without any evidence, the first attack.
    deciding = max(range(len(bounds)), key=bounds.__getitem__, default=None)
    best = None if deciding is None else guessed[deciding]
    proved = None if deciding is None else bounds[deciding]
    checks = (_training_check(outcome, guessed), reuse) if outcome else ()
    failed = outcome is not None and best is None
    prefix = best and guarantee.strongest(best.right, max(bounds), confidence=each)
    return conclude(
        audit,
        controls,
        claim=claim,
        proved=proved,
        power=power,
        reached=best is not None,
        checks=checks,
        seconds=seconds,
        unit=SampleUnit.CANARIES,
        bounds=None if proved is None else recorded_bounds({ValidBound.ONE_RUN_IN_TURN: proved}),
        threshold_rule=None,
        game=OneRunOutcome(
            canaries=audit.canaries,
            included=int(audit.coins.sum()),
            guesses=prefix.guesses if prefix else audit.canaries,
            correct=prefix.correct if prefix else None,
            gaussian_estimate=_gaussian(prefix, audit, guarantee.delta),
            interference=interference(audit.game.view),
            attacks=tuple(
                CanaryOutcome(
                    name=of.attack, auc=of.auc, bound=bound, right=tuple(of.right.tolist())
                )
                for of, bound in zip(guessed, bounds, strict=True)
            ),
            unit=audit.unit,
        ),
        auc=best.auc if best else None,
        counts=None,
        shadow_models={World.IN: int(outcome is not None), World.OUT: 0},
        failures={World.IN: int(failed), World.OUT: 0},
        failure_reasons=(FailureReason(world=World.IN, count=1, error=outcome.error),)
        if outcome and failed
        else (),
        leaks=(),
        attack=best.attack if best else None,
        attacks=(),
        threshold=None,
        scores={
            World.IN: tuple(best.scores[best.coins].tolist()) if best else (),
            World.OUT: tuple(best.scores[~best.coins].tolist()) if best else (),
        },
        target=TargetOfAudit(choice="canaries", row=None),
    )


def _training_check(outcome: Outcome, guessed: Sequence[Guessed]) -> Check:
    name = "the one training"
    if not guessed:
        return Check(name, False, f"the one training failed: {outcome.error}")
    return Check(name, True, "it finished")


def _gaussian(prefix: Prefix | None, audit: OneRunSpec, delta: float | None) -> float | None:
    """An estimate of epsilon next to its bound; None without guesses or a positive delta."""
    if prefix is None or not delta:
        return None
    return one_run_gaussian(
        *(prefix.correct, prefix.guesses, audit.canaries),
        delta=delta,
        confidence=audit.settings.confidence,
    )
