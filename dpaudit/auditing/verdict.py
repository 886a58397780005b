"""From bounds and checks to one of four verdicts, with reasons in words."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from dpaudit.auditing.plan import Power
from dpaudit.formatting import percent, rounded_down, rounded_up
from dpaudit.model.claim import PrivacyClaim

POOR_POWER = 10
"""A detectable epsilon beyond this many times the claim makes "nothing found" mean nothing."""


class Verdict(StrEnum):
    """What an audit concludes."""

    VIOLATION = "violation"
    CONSISTENT = "consistent"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"


class Consequence(StrEnum):
    """What a check that does not pass does to the verdict."""

    INVALIDATES = "invalidates"
    WEAKENS = "weakens"
    NOTED = "noted"


class Played(StrEnum):
    """What an audit counts, and so would need more of to prove more."""

    TRIALS = "trials"
    CANARIES = "canaries"
    RUNS = "simulated runs"

    @property
    def remedy(self) -> str:
        """What a larger audit has more of."""
        return "shadow models" if self is Played.TRIALS else self.value


class Check(NamedTuple):
    """A check of the run itself.

    Attributes:
        name: What was checked.
        passed: Whether it held.
        detail: What was seen, in words.
        consequence: What it means if it did not hold: the run is invalid; nothing can be
            concluded from finding no violation; or it is only reported.
    """

    name: str
    passed: bool
    detail: str
    consequence: Consequence = Consequence.INVALIDATES


class Decision(NamedTuple):
    """A verdict and its reasons, the main one first."""

    verdict: Verdict
    reasons: list[str]


def decide(
    bound: float,
    claim: PrivacyClaim,
    power: Power,
    checks: Sequence[Check],
    *,
    confidence: float,
    played: Played = Played.TRIALS,
) -> Decision:
    """The verdict on a claim.

    Args:
        bound: Proved lower bound on epsilon, at `confidence` over all attacks together.
        claim: The claim under audit, for the neighbours that were played.
        power: What this audit could prove.
        checks: Checks of the run itself.
        confidence: One-sided confidence of the bound.
        played: What there would have to be more of.

    Returns:
        The verdict and its reasons.
    """
    failed = [check for check in checks if not check.passed]
    breaking = [check.detail for check in failed if check.consequence is Consequence.INVALIDATES]
    weakening = [check.detail for check in failed if check.consequence is Consequence.WEAKENS]
    noted = [check.detail for check in failed if check.consequence is Consequence.NOTED]
    if breaking:
        return Decision(Verdict.INVALID, [*breaking, *weakening, *noted])
    if bound > claim.epsilon:
        proof = (
            f"violates ({claim.epsilon:g}, {claim.delta:g})-DP: at {percent(confidence)} "
            f"confidence the true epsilon is at least {rounded_down(bound)}"
        )
        return Decision(Verdict.VIOLATION, [proof, *weakening, *noted])
    if power.max_provable_epsilon <= claim.epsilon:
        weak = (
            f"cannot decide: even a perfect attack on this many {played} proves only epsilon "
            f"{rounded_down(power.max_provable_epsilon)}; play more {played.remedy}"
        )
        return Decision(Verdict.INCONCLUSIVE, [weak, *weakening, *noted])
    detectable = power.detectable_epsilon
    caught = None if detectable is None else f"leak of epsilon {rounded_up(detectable)}"
    if detectable is None or detectable > POOR_POWER * claim.epsilon:
        reached = f"only a {caught}" if caught else "no leak"
        weak = (
            f"cannot decide: {reached} would be caught with 80 % power; play more {played.remedy}"
        )
        return Decision(Verdict.INCONCLUSIVE, [weak, *weakening, *noted])
    if weakening:
        return Decision(Verdict.INCONCLUSIVE, [*weakening, *noted])
    found = (
        f"no violation found; this audit would have caught a {caught} with 80 % power; it is not "
        "evidence of privacy"
    )
    return Decision(Verdict.CONSISTENT, [found, *noted])
