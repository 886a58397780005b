"""An audit in brief, for what is about several."""

from __future__ import annotations

from dataclasses import dataclass

from dpaudit.model.currencies import Claim
from dpaudit.results.fields import NonNegative, Probability, Whole
from dpaudit.results.record import AuditRecord
from dpaudit.results.verdict import Verdict


@dataclass(frozen=True, kw_only=True)
class AuditBrief:
    """What one of several audits found; its own result has the rest.

    Attributes:
        verdict: As in its own result.
        reasons: Why this verdict, the most important first.
        claim: The promise under audit.
        proved: The lower bound on what the claim limits; null if no trial was scored.
        confidence: One-sided confidence of the bound.
        max_provable: The bound that a perfect attack would reach; null as above.
        detectable: The smallest true epsilon, or other quantity of the claim, caught with 80 %
            power; null if there is none.
        auc: Of the deciding attack; 0.5 is chance. Null if no trial was scored.
        shadow_models: Trials run, of both worlds together.
        seconds: Time spent in trials over all workers, in seconds.
    """

    verdict: Verdict
    reasons: tuple[str, ...]
    claim: Claim
    proved: NonNegative | None
    confidence: Probability
    max_provable: NonNegative | None
    detectable: NonNegative | None
    auc: Probability | None
    shadow_models: Whole
    seconds: NonNegative

    @classmethod
    def of(cls, record: AuditRecord) -> AuditBrief:
        """What a record says."""
        power = record.power
        return cls(
            verdict=record.verdict,
            reasons=record.reasons,
            claim=record.claim,
            proved=record.proved,
            confidence=record.confidence,
            max_provable=power and power.max_provable,
            detectable=power and power.detectable,
            auc=record.auc,
            shadow_models=sum(record.shadow_models.values()),
            seconds=record.seconds,
        )
