"""The result document: everything a report, a person or a program may ask of an audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from dpaudit.auditing.attacking import Attacked
from dpaudit.auditing.checks import FailureReason
from dpaudit.auditing.controls import ControlResult
from dpaudit.auditing.membership import Evaluation, Leak
from dpaudit.auditing.plan import Pace, Power
from dpaudit.auditing.result import SCHEMA_VERSION
from dpaudit.auditing.spec import Audit, Prepared
from dpaudit.auditing.verdict import Check, Decision, Verdict, decide
from dpaudit.game.target import VULNERABLE
from dpaudit.game.trial import Role
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.tables import data_digest
from dpaudit.plugins.protocols import World
from dpaudit.report.words import feature_in_words
from dpaudit.versions import versions

INFERRED = (
    "bounds and categories were inferred from the table handed in: what the generator reveals "
    "through them is outside this audit; give a public schema with --schema"
)

LEAKS_NAMED = 3


class Findings(NamedTuple):
    """What the audit's own trials showed.

    Attributes:
        attacked: Every attack; empty if too few trials finished.
        best: The attack with the largest bound.
        pairs: Trials of each world that were played.
        power: What this audit could prove, failures counted.
        leaks: Features that carry the best attack.
        checks: Checks of the run.
        failed: Failed trials of each world.
        failure_reasons: Why they failed.
        claimed_epsilon: The largest epsilon that a fitted model claimed; 0 if none did.
    """

    attacked: Sequence[Attacked]
    best: Attacked | None
    pairs: int
    power: Power
    leaks: Sequence[Leak]
    checks: Sequence[Check]
    failed: Mapping[World, int]
    failure_reasons: Sequence[FailureReason]
    claimed_epsilon: float


def build_document(
    audit: Audit,
    controls: Mapping[Role, ControlResult],
    findings: Findings | None,
    *,
    seconds: float,
) -> dict[str, Any]:
    """Builds the result document.

    Args:
        audit: The audit.
        controls: The results of its controls.
        findings: What its trials showed; None if a control failed, so that none was played.
        seconds: Seconds spent in trials, over all workers.

    Returns:
        The document, JSON throughout; `result.schema.json` describes every key.
    """
    claim = effective_claim(
        audit,
        findings.claimed_epsilon if findings else 0.0,
        source="largest that a fitted model claimed in either world",
    )
    deciding = findings.best if findings else None
    best = deciding.evaluation if deciding else None
    power = findings.power if findings else None
    checks = [result.check for result in controls.values()]
    checks += findings.checks if findings else []
    decision = decide(
        best.proved if best else 0.0,
        claim,
        power or Power(0.0, None),
        checks,
        confidence=audit.size.confidence,
    )
    leaks = [
        {"column": name.column, "feature": name.feature, "importance": importance}
        for name, importance, _ in (findings.leaks if findings else ())
    ]
    reasons = list(decision.reasons)
    if decision.verdict is Verdict.VIOLATION and leaks:
        named = "; ".join(feature_in_words(leak) for leak in leaks[:LEAKS_NAMED])
        reasons.insert(1, f"the leak is in {named}")
    played = findings.pairs if findings else 0
    return {
        **opening(audit, claim, decision._replace(reasons=reasons)),
        "proved": best.proved if best else None,
        "bounds": _bounds(best) if best else None,
        "multiplicity": {
            "rule": audit.size.multiplicity.value,
            "hypotheses": audit.size.hypotheses.count,
        },
        "threshold_rule": audit.size.threshold_rule.value,
        "sequential": _sequential(audit, played) if findings else None,
        "one_run": None,
        "max_provable_epsilon": power.max_provable_epsilon if power else None,
        "detectable_epsilon": power.detectable_epsilon if power else None,
        "auc": best.auc if best else None,
        "counts": _counts(best) if best else None,
        "shadow_models": {"in": played, "out": played},
        "failures": {w.value: findings.failed[w] if findings else 0 for w in World},
        "failure_reasons": [
            {"world": world.value, "count": count, "error": error}
            for world, count, error in (findings.failure_reasons if findings else ())
        ],
        "leaks": leaks,
        "attack": deciding.attack.name if deciding else None,
        "attacks": [_attack(one) for one in (findings.attacked if findings else ())],
        "threshold": _threshold(best) if best else None,
        "scores": {
            "in": _scores(deciding, member=True),
            "out": _scores(deciding, member=False),
        },
        "target": _target(audit),
        **closing(audit, controls, findings.checks if findings else (), seconds=seconds),
    }


def effective_claim(audit: Prepared, claimed_epsilon: float, *, source: str) -> PrivacyClaim:
    """The claim that the verdict is about.

    A data-dependent accountant states epsilon as a function of the table: then it is the largest
    that a fitted model claimed, unless the caller stated another.

    Args:
        audit: The audit.
        claimed_epsilon: The largest epsilon that a fitted model claimed; 0 if none did.
        source: Where that one comes from, in words.

    Returns:
        The claim.
    """
    claim = audit.claim
    if audit.claim_is_given or claimed_epsilon <= claim.epsilon:
        return claim
    return replace(claim, epsilon=claimed_epsilon, source=f"{claim.source}; {source}")


def opening(audit: Prepared, claim: PrivacyClaim, decision: Decision) -> dict[str, Any]:
    """The keys that begin every document: the verdict and what it is about."""
    reasons = decision.reasons
    return {
        "schema_version": SCHEMA_VERSION,
        "verdict": decision.verdict.value,
        "reasons": [*reasons, INFERRED] if audit.table.schema.inferred else reasons,
        "claim": {
            "epsilon": claim.epsilon,
            "delta": claim.delta,
            "neighbours": claim.neighbours.value,
            "source": claim.source,
        },
        "confidence": audit.confidence,
    }


def closing(
    audit: Prepared,
    controls: Mapping[Role, ControlResult],
    checks: Sequence[Check],
    *,
    seconds: float,
) -> dict[str, Any]:
    """The keys that end every document: what lets a reader trust and repeat it."""
    return {
        "controls": {
            "null": _control(controls[Role.NULL_CONTROL]),
            "positive": _control(controls[Role.POSITIVE_CONTROL]),
        },
        "checks": [
            {
                "name": check.name,
                "passed": check.passed,
                "detail": check.detail,
                "consequence": check.consequence.value,
            }
            for check in checks
        ],
        "generator": {
            "name": audit.generator.name,
            "parameters": audit.generator.parameters,
            "seedable": bool(getattr(audit.generator.generator, "seedable", True)),
        },
        "data": {
            "source": audit.table.source,
            "rows": len(audit.table.data),
            "columns": len(audit.table.schema.columns),
            "sha256": data_digest(audit.table.data),
        },
        "schema": {"inferred": audit.table.schema.inferred},
        "rows": audit.rows,
        "seed": audit.seed,
        "versions": versions(),
        "seconds": round(seconds, 3),
        "reproduce": audit.reproduce,
    }


def _target(audit: Audit) -> dict[str, Any]:
    if audit.selection is None:
        return {"choice": audit.target.choice, "row": audit.target.row}
    return {
        "choice": VULNERABLE,
        "row": audit.target.row,
        "selection": audit.selection._asdict(),
    }


def _sequential(audit: Audit, pairs: int) -> dict[str, Any] | None:
    if audit.size.pace is Pace.FIXED:
        return None
    cap = audit.size.per_world
    return {"pairs": pairs, "cap": cap, "stopped_early": pairs < cap}


def _scores(deciding: Attacked | None, *, member: bool) -> list[float]:
    if deciding is None:
        return []
    scores: list[float] = deciding.evaluation.scores[deciding.scored.member == member].tolist()
    return scores


def _bounds(evaluation: Evaluation) -> dict[str, float | None]:
    return {
        "exact": evaluation.exact,
        "clopper_pearson": evaluation.clopper_pearson,
        "sequential": evaluation.sequential,
        "one_run": None,
    }


def _counts(evaluation: Evaluation) -> dict[str, int]:
    counts = evaluation.counts
    return {
        "false_negatives": counts.false_negatives,
        "false_positives": counts.false_positives,
        "n_in": counts.n_in,
        "n_out": counts.n_out,
    }


def _threshold(evaluation: Evaluation) -> dict[str, Any]:
    value, direction = evaluation.threshold
    return {"value": value, "direction": direction.value}


def _attack(one: Attacked) -> dict[str, Any]:
    return {
        "name": one.attack.name,
        "auc": one.evaluation.auc,
        "bounds": _bounds(one.evaluation),
        "counts": _counts(one.evaluation),
        "threshold": _threshold(one.evaluation),
    }


def _control(result: ControlResult) -> dict[str, Any]:
    return {
        "passed": result.check.passed,
        "bound": result.bound,
        "auc": result.auc,
        "max_provable_epsilon": result.max_provable_epsilon,
        "detail": result.check.detail,
    }
