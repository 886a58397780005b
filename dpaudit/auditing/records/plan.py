"""What an audit of many records per shadow model can prove."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpaudit.auditing.plan import MOST_PLANNED, fewest
from dpaudit.auditing.settings import FEWEST_WITH_RECORDS, AuditSettings
from dpaudit.bounds import coin_detectable, coin_detectable_gaussian, coin_provable
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.currencies import Claim, require_epsilon
from dpaudit.results.verdict import POWER, Power

_LEARNT_FROM = 40
"""Coins of the fitting part at which an audit misses twice as many leaks as with a known rule.

Measured by simulating fitting and calibration; `tests/auditing/test_stated_power.py` repeats it.
"""


def power(settings: AuditSettings, claim: Claim, *, failed: int = 0) -> Power:
    """What an audit of this size can prove against a claim.

    It is that of as many coins as records and scored models have together, as if records did not
    disturb one another (`interference` says what it costs where they do), less what it costs that
    the rule has to be learnt from the fitting part.

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
    size = size_of(settings, claim, records=settings.records, failed=failed)
    highest = coin_provable(**size)
    if highest <= claim.epsilon:
        return Power(highest, None)
    size["claim_epsilon"] = claim.epsilon
    return Power(
        highest,
        coin_detectable(power=_of_known_rule(settings), **size),
        coin_detectable_gaussian(power=POWER, **size),
    )


def needed_shadow_models(claim: Claim, epsilon: float, settings: AuditSettings) -> int | None:
    """How many shadow models prove that every record leaks more than the claim, with 80 % power.

    Args:
        claim: The claim under audit.
        epsilon: The true epsilon of every record, which shows as in randomised response, and is
            not disturbed by the other records.
        settings: Confidence, attacks and records; its number of shadow models does not matter.

    Returns:
        The number, to within 4; None if more than 200,000 are needed.

    Raises:
        ClaimError: If the claim is not one of epsilon.
    """
    asked = require_epsilon(claim, method="`records`")

    def enough(shadow_models: int) -> bool:
        sized = replace(settings, shadow_models=shadow_models)
        size = size_of(sized, asked, records=settings.records)
        caught = coin_detectable(claim_epsilon=asked.epsilon, power=_of_known_rule(sized), **size)
        return caught is not None and caught <= epsilon

    return fewest(enough, least=FEWEST_WITH_RECORDS, most=MOST_PLANNED)


def _of_known_rule(settings: AuditSettings) -> float:
    """The power of guessing every answer of randomised response where learning to gives `POWER`.

    From few coins of the fitting part answers may get unequal weights, or none. Of a Gaussian leak
    that costs little: unequal weights win there what the margin loses.
    """
    coins = 2 * settings.fitted * settings.records
    return 1.0 - (1.0 - POWER) * coins**2 / (coins**2 + _LEARNT_FROM**2)


def size_of(
    settings: AuditSettings, claim: PrivacyClaim, *, records: int, failed: int = 0
) -> dict[str, Any]:
    """The size of an audit as the fair-coin bound sees it.

    Args:
        settings: Those of the audit; its own number of records does not matter.
        claim: The claim under audit.
        records: Records that each model serves.
        failed: Scored models that failed, and have no guesses.

    Returns:
        Arguments of the functions of `bounds` that plan for fair coins.
    """
    return {
        "trials": settings.scored * records,
        "shared": records,
        "failed": failed * records,
        "delta": claim.delta,
        "confidence": settings.attack_confidence,
    }
