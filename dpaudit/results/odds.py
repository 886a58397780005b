"""A violation as a change in odds, for readers who do not work with epsilon."""

from __future__ import annotations

import math

from dpaudit.formatting import rounded, rounded_down, rounded_up
from dpaudit.model.claim import Claim, PrivacyClaim
from dpaudit.results.record import AuditBrief, AuditRecord
from dpaudit.results.verdict import Verdict, exceeds_claim

_LARGEST = 1e6
"""Above this, only the order of magnitude of a factor is shown."""


def in_odds(result: AuditRecord | AuditBrief) -> str:
    """How far a bound that proves a violation changes odds, as the end of a sentence; or empty."""
    violated = result.verdict is Verdict.VIOLATION and exceeds_claim(result)
    return changed_odds(result.claim, result.proved) if violated else ""


def changed_odds(claim: Claim, proved: float | None) -> str:
    """How far a bound beyond a claim changes odds, as the end of a sentence.

    A lower bound e means that some set of outputs is more than exp(e) times as probable in one
    world as in the other, and by more than delta (by definition). An attacker who sees such an
    output multiplies prior odds by more than exp(e) (Bayes' theorem).

    Args:
        claim: The claim.
        proved: A lower bound on what it limits; None if there is none.

    Returns:
        The words; empty without a bound, or if the claim has no meaning in odds.
    """
    if proved is None or not isinstance(claim, PrivacyClaim) or claim.epsilon > math.log(_LARGEST):
        return ""
    return (
        "; some outputs change the odds that a record was in the table by a factor of at least "
        f"{odds(proved, up=False)}, where the claim allows {odds(claim.epsilon, up=True)}"
        f"{but_for(claim)}"
    )


def odds(epsilon: float, *, up: bool) -> str:
    """exp(epsilon), rounded so that it never says more than holds."""
    if epsilon > math.log(_LARGEST):
        return "any factor" if up else "a million"
    factor = math.exp(epsilon)
    return rounded_up(factor) if up else rounded_down(factor)


def but_for(claim: PrivacyClaim) -> str:
    """The outputs that delta exempts, as the end of a sentence; empty if delta is 0."""
    if not claim.delta:
        return ""
    return f", apart from outputs of total probability {rounded(claim.delta)}"
