"""What fixing one suspect did to a leak."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from scipy.special import expit
from statsmodels.stats.proportion import proportion_confint

from dpaudit.model.claim import PrivacyClaim
from dpaudit.results.brief import AuditBrief
from dpaudit.results.record import AuditRecord
from dpaudit.results.verdict import Verdict


class Effect(StrEnum):
    """What became of the leak."""

    REMOVES = "removes"
    """No violation is proved, and it is shown that no attack of the audit separates the worlds more
    than the claim allows."""
    UNPROVED = "unproved"
    """No violation is proved, but it cannot be said that none is left."""
    REMAINS = "remains"
    """A violation is still proved."""
    INVALID = "invalid"
    """The fixed generator's audit is not valid."""


class Interval(NamedTuple):
    """Two-sided confidence limits."""

    low: float
    high: float


class FixedAudit(NamedTuple):
    """How the audit of a fixed generator ended.

    Attributes:
        suspect: What was fixed.
        effect: What that did.
        audit: What the fixed generator's audit found.
        auc: Of the attack that separates the worlds most; None if none was scored.
        limits: Confidence limits of it.
        folder: Where that audit ran, under the run's folder.
    """

    suspect: str
    effect: Effect
    audit: AuditBrief
    auc: float | None
    limits: Interval | None
    folder: str


def judge_fix(suspect: str, result: AuditRecord, claim: PrivacyClaim, *, folder: str) -> FixedAudit:
    """What a fixed generator's audit says of the leak.

    Args:
        suspect: What was fixed.
        result: The result of its audit.
        claim: The claim under audit.
        folder: Where it ran.

    Returns:
        The audit with its effect on the leak.
    """
    attacks, brief = result.attacks, AuditBrief.of(result)
    if not attacks:
        return FixedAudit(suspect, Effect.INVALID, brief, None, None, folder)
    most = max(attacks, key=lambda attack: abs(attack.auc - 0.5))
    # Of several attacks the one that separates most counts: each gets a share of the error.
    confidence = 1.0 - (1.0 - result.confidence) / len(attacks)
    # A trial that failed has no score, and says nothing of how far the others lie apart.
    scored = min(len(scores) for scores in result.scores.values())
    limits = auc_limits(most.auc, scored, confidence=confidence)
    verdict = result.verdict
    if verdict is Verdict.VIOLATION:
        effect = Effect.REMAINS
    elif verdict is Verdict.INVALID:
        effect = Effect.INVALID
    elif verdict is Verdict.CONSISTENT and _within_claim(limits, claim):
        effect = Effect.REMOVES
    else:
        effect = Effect.UNPROVED
    return FixedAudit(suspect, effect, brief, most.auc, limits, folder)


def auc_limits(auc: float, scored: int, *, confidence: float) -> Interval:
    """Confidence limits of an area under the ROC curve, whatever the scores' distributions.

    Its variance is at most A (1 - A) / min(m, n) (van Dantzig 1951; Birnbaum and Klose 1957), that
    of a proportion: Wilson's limits for one.

    Args:
        auc: The area observed.
        scored: Trials scored in the world that has fewer.
        confidence: Two-sided.

    Returns:
        The limits.
    """
    low, high = proportion_confint(auc * scored, scored, alpha=1.0 - confidence, method="wilson")
    return Interval(float(low), float(high))


def allowed_auc(claim: PrivacyClaim) -> float:
    """The largest area under the ROC curve that any attack can have against a kept claim.

    The area of the region of error rates that (epsilon, delta)-DP allows (Kairouz, Oh and
    Viswanath 2015): the curve from (0, delta) by (f, 1 - f) to (1 - delta, 1).
    """
    corner = (1.0 - claim.delta) * float(expit(-claim.epsilon))  # FPR and FNR
    left = corner * (claim.delta + 1.0 - corner) / 2.0
    right = (1.0 - claim.delta - corner) * (2.0 - corner) / 2.0
    return left + right + claim.delta


def _within_claim(limits: Interval, claim: PrivacyClaim) -> bool:
    """Whether it is shown that an attack separates the worlds no more than the claim allows.

    An area that merely may be that of chance shows nothing: with few trials most areas may.
    """
    return max(limits.high, 1.0 - limits.low) <= allowed_auc(claim)
