"""The result document of a one-run audit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpaudit.auditing.controls import ControlResult
from dpaudit.auditing.document import closing, effective_claim, opening
from dpaudit.auditing.one_run.attack import NAME, Guessed
from dpaudit.auditing.one_run.specification import OneRunAudit
from dpaudit.auditing.plan import Multiplicity, Power
from dpaudit.auditing.verdict import Check, Consequence, Played, decide
from dpaudit.bounds import one_run_gaussian
from dpaudit.game.trial import Outcome, Role


def build_one_run_document(
    audit: OneRunAudit,
    controls: Mapping[Role, ControlResult],
    outcome: Outcome | None,
    *,
    guessed: Guessed | None,
    power: Power,
    seconds: float,
) -> dict[str, Any]:
    """Builds the result document; what one training does not have is null or empty.

    Args:
        audit: The audit.
        controls: The results of its controls.
        outcome: The training; None if a control failed, so that it was not played.
        guessed: The guesses; None unless the training finished.
        power: What this audit could prove.
        seconds: Seconds spent in trainings.

    Returns:
        The document, JSON throughout; `result.schema.json` describes every key.
    """
    claim = effective_claim(
        audit,
        (outcome and outcome.claimed_epsilon) or 0.0,
        source="larger as the fitted model claimed",
    )
    delta, confidence = claim.delta, audit.confidence
    bound = guessed.bound(delta=delta, confidence=confidence) if guessed else None
    checks = [_training_check(outcome, guessed)] if outcome else []
    decision = decide(
        bound or 0.0,
        claim,
        power,
        [*(result.check for result in controls.values()), *checks],
        confidence=confidence,
        played=Played.CANARIES,
    )
    failed = int(outcome is not None and guessed is None)
    return {
        **opening(audit, claim, decision),
        "proved": bound,
        "bounds": None
        if bound is None
        else {"exact": None, "clopper_pearson": None, "sequential": None, "one_run": bound},
        "multiplicity": {"rule": Multiplicity.BONFERRONI.value, "hypotheses": 1},
        "threshold_rule": None,
        "sequential": None,
        "one_run": {
            "canaries": audit.canaries,
            "included": int(audit.coins.sum()),
            "guesses": audit.guesses,
            "correct": guessed.correct if guessed else None,
            "gaussian_estimate": _gaussian(guessed, delta, confidence),
        },
        "max_provable_epsilon": power.max_provable_epsilon if guessed else None,
        "detectable_epsilon": power.detectable_epsilon if guessed else None,
        "auc": guessed.auc if guessed else None,
        "counts": None,
        "shadow_models": {"in": int(outcome is not None), "out": 0},
        "failures": {"in": failed, "out": 0},
        "failure_reasons": [{"world": "in", "count": 1, "error": outcome.error}]
        if outcome and failed
        else [],
        "leaks": [],
        "attack": NAME if guessed else None,
        "attacks": [],
        "threshold": None,
        "scores": {
            "in": guessed.scores[guessed.coins].tolist() if guessed else [],
            "out": guessed.scores[~guessed.coins].tolist() if guessed else [],
        },
        "target": {"choice": "canaries", "row": None},
        **closing(audit, controls, checks, seconds=seconds),
    }


def _training_check(outcome: Outcome, guessed: Guessed | None) -> Check:
    name = "the one training"
    if guessed is None:
        return Check(name, False, f"the one training failed: {outcome.error}")
    return Check(name, True, "it finished", Consequence.INVALIDATES)


def _gaussian(guessed: Guessed | None, delta: float, confidence: float) -> float | None:
    """An estimate beside the bound; there is none without guesses or at delta 0."""
    if guessed is None or delta == 0:
        return None
    return one_run_gaussian(
        guessed.correct, guessed.guesses, len(guessed.coins), delta=delta, confidence=confidence
    )
