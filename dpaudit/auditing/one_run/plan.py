"""What a one-run audit with so many canaries can prove, before anything is trained."""

from __future__ import annotations

from typing import Final

import numpy as np

from dpaudit.auditing.plan import fewest
from dpaudit.auditing.settings import MIN_CANARIES
from dpaudit.bounds import one_run_in_turn, one_run_in_turn_detectable
from dpaudit.model.claim import PrivacyClaim
from dpaudit.results.verdict import POWER, Power

MOST_PLANNED: Final = 5_000
"""Most canaries that a plan looks for."""


def power(canaries: int, claim: PrivacyClaim, confidence: float) -> Power:
    """What a one-run audit can prove against a claim.

    Args:
        canaries: Records that are each included by a fair coin.
        claim: The claim under audit.
        confidence: One-sided confidence of the bound of each attack.

    Returns:
        The largest provable epsilon, and the smallest detectable one.
    """
    asked = {"delta": claim.delta, "confidence": confidence}
    return Power(
        max_provable=one_run_in_turn(np.ones(canaries), **asked),
        detectable=one_run_in_turn_detectable(
            claim_epsilon=claim.epsilon, canaries=canaries, power=POWER, **asked
        ),
    )


def needed_canaries(claim: PrivacyClaim, epsilon: float, confidence: float) -> int | None:
    """How many canaries prove a violation with 80 % power.

    Args:
        claim: The claim under audit.
        epsilon: The true epsilon, above the claim, of randomised response on every coin.
        confidence: One-sided confidence of the bound of each attack.

    Returns:
        The number to within 4; None if none of up to 5,000 is enough. At a positive delta more
        canaries are not always better, because the bound pays delta for each.
    """

    def enough(canaries: int) -> bool:
        least = power(canaries, claim, confidence).detectable
        return least is not None and least <= epsilon

    return fewest(enough, least=MIN_CANARIES, most=MOST_PLANNED)
