"""What an audit of many records per shadow model can prove."""

from __future__ import annotations

from typing import Any

from dpaudit.auditing.settings import AuditSettings
from dpaudit.bounds import coin_detectable, coin_detectable_gaussian, coin_provable
from dpaudit.model.currencies import Claim, require_epsilon
from dpaudit.results.verdict import POWER, Power


def power(settings: AuditSettings, claim: Claim, *, failed: int = 0) -> Power:
    """What an audit of this size can prove against a claim.

    It is that of as many coins as records and scored models have together. Records that are trained
    together disturb one another, so that each shows less than it would alone: that costs power,
    and no plan knows how much.

    Args:
        settings: Those of the audit.
        claim: The claim under audit.
        failed: Scored models that failed.

    Returns:
        The largest provable epsilon, and the smallest detectable ones.

    Raises:
        ClaimError: If the claim is not one of epsilon.
    """
    claim = require_epsilon(claim, method="`records`")
    size: dict[str, Any] = {
        "trials": settings.scored * settings.records,
        "shared": settings.records,
        "failed": failed * settings.records,
        "delta": claim.delta,
        "confidence": settings.attack_confidence,
    }
    highest = coin_provable(**size)
    if highest <= claim.epsilon:
        return Power(highest, None)
    leak: dict[str, Any] = {"claim_epsilon": claim.epsilon, "power": POWER}
    return Power(highest, coin_detectable(**leak, **size), coin_detectable_gaussian(**leak, **size))
