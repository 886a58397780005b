"""A violation as a change in odds, for readers who do not think in epsilon."""

from __future__ import annotations

import math

from dpaudit.formatting import rounded, rounded_down, rounded_up
from dpaudit.model.claim import PrivacyClaim
from dpaudit.results.record import AuditRecord
from dpaudit.results.verdict import Verdict

_LARGEST = 1e6
"""Beyond this a factor of odds says no more than its order."""


def in_odds(result: AuditRecord) -> str:
    """How far a violation changes odds, as the end of a sentence; empty of any other claim.

    A lower bound e means that some set of outputs is more than exp(e) times as probable in one
    world as in the other, and by more than delta (by definition). An attacker who sees such an
    output multiplies prior odds by more than exp(e) (Bayes' theorem).
    """
    claim, proved = result.claim, result.proved
    if result.verdict is not Verdict.VIOLATION or proved is None:
        return ""
    if not isinstance(claim, PrivacyClaim) or claim.epsilon > math.log(_LARGEST):
        return ""
    allowed = rounded_up(math.exp(claim.epsilon))
    if claim.delta:
        allowed += f" (apart from outcomes of total probability {rounded(claim.delta)})"
    measured = "a million" if proved > math.log(_LARGEST) else rounded_down(math.exp(proved))
    return (
        f"; the claim caps the change in odds at a factor of {allowed}, and we measured at least "
        f"{measured}"
    )
