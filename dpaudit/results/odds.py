"""A violation as a change in odds, for readers who do not work with epsilon."""

from __future__ import annotations

import math

from dpaudit.formatting import rounded, rounded_down, rounded_up
from dpaudit.model.claim import PrivacyClaim
from dpaudit.results.record import AuditRecord
from dpaudit.results.verdict import Verdict

_LARGEST = 1e6
"""Above this, only the order of magnitude of a factor is shown."""


def in_odds(result: AuditRecord) -> str:
    """How far a violation changes odds, as the end of a sentence; empty of any other claim.

    A lower bound e means that some set of outputs is more than exp(e) times as probable in one
    world as in the other, and by more than delta (by definition). An attacker who sees such an
    output multiplies prior odds by more than exp(e) (Bayes' theorem).
    """
    claim, proved = result.claim, result.proved
    if result.verdict is not Verdict.VIOLATION or proved is None:
        return ""
    if not isinstance(claim, PrivacyClaim):
        return ""
    if claim.epsilon > math.log(_LARGEST):
        return ""
    return (
        f"; the claim caps the change in odds at a factor of {odds(claim.epsilon, up=True)}"
        f"{but_for(claim)}, and we measured at least {odds(proved, up=False)}"
    )


def odds(epsilon: float, *, up: bool) -> str:
    """exp(epsilon), rounded so that it never says more than holds."""
    if math.isinf(epsilon) or (up and epsilon > math.log(_LARGEST)):
        return "any factor"
    if epsilon > math.log(_LARGEST):
        return "a million"
    factor = math.exp(epsilon)
    return rounded_up(factor) if up else rounded_down(factor)


def but_for(claim: PrivacyClaim) -> str:
    """For which outputs delta makes an exception, as the end of a sentence; empty without one."""
    if not claim.delta:
        return ""
    return f", apart from outputs of total probability {rounded(claim.delta)}"
