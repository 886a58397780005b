"""From bounds and checks to one of four verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from dpaudit.formatting import percent, rounded_down, rounded_up
from dpaudit.model.claim import Claim, NoClaim, Quantity
from dpaudit.results.phrases import NOTHING_DETECTED, detects_from, per_unit
from dpaudit.results.sentences import NOT_EVIDENCE
from dpaudit.results.verdict import Check, Consequence, Decision, Power, SampleUnit, Verdict

LARGEST_RATIO = 3.0
LARGEST_EXCESS = {
    Quantity.EPSILON: 1.0,
    Quantity.MU: 1.0,
    Quantity.RHO: 0.5,
    Quantity.DELTA: 0.1,
    Quantity.FACTOR: 1.0,
}
"""Power is poor if the minimum detectable value exceeds both three times the claim and the claim
plus this; finding nothing is then inconclusive. Randomised response with epsilon 1 has about the
error rates of a Gaussian mechanism with mu 1.2; rho 0.5 corresponds to mu 1.
"""


def largest_detectable(claim: Claim) -> float:
    """The largest minimum detectable value with which finding nothing counts as consistent."""
    excess = LARGEST_EXCESS[claim.quantity]
    return max(LARGEST_RATIO * claim.value, claim.value + excess)


def decide(
    bound: float,
    claim: Claim,
    power: Power,
    checks: Sequence[Check],
    *,
    confidence: float,
    unit: SampleUnit = SampleUnit.TRIALS,
) -> Decision:
    """The verdict on a claim.

    Args:
        bound: Proved lower bound on what the claim limits, at `confidence` over all attacks.
        claim: The claim under audit, for the neighbours of the game.
        power: What the audit could prove and detect.
        checks: Checks of the run itself.
        confidence: One-sided confidence of the bound.
        unit: The unit of the audit's sample size.

    Returns:
        The verdict and its reasons.
    """
    breaking, weakening, withholding, noted = (
        [check.detail for check in checks if not check.passed and check.consequence is consequence]
        for consequence in Consequence
    )
    if breaking:
        return Decision(Verdict.INVALID, (*breaking, *weakening, *withholding, *noted))
    if bound > claim.value and withholding:
        return Decision(Verdict.INCONCLUSIVE, (*withholding, *weakening, *noted))
    noted = [*withholding, *noted]
    noun, true = claim.quantity.noun, f"at {percent(confidence)} confidence the true"
    most = rounded_down(power.max_provable)
    # The seed must be fresh: with the old one the same trials are judged again.
    more = f"audit with more {unit.remedy} and a fresh seed"
    if isinstance(claim, NoClaim) and power.max_provable > 0:
        measured = (
            f"no claim was given: {true} epsilon is at least {rounded_down(bound)}, where no audit "
            f"of this size proves more than {most}"
        )
        return Decision(Verdict.MEASURED, (measured, *weakening, *noted))
    if bound > claim.value:
        violated = f"violates {claim.in_words}{per_unit(claim)}"
        proof = f"{violated}: {true} {noun} is at least {rounded_down(bound)}"
        return Decision(Verdict.VIOLATION, (proof, *weakening, *noted))
    weak = ""
    if power.max_provable <= claim.value:
        weak = f"the upper limit for this many {unit.remedy} is {noun} {most}"
    elif power.detectable is None:
        weak = NOTHING_DETECTED
    elif power.detectable > largest_detectable(claim):
        weak = f"detects only {noun} {rounded_up(power.detectable)} with 80 % power"
    if weak:
        reason = f"cannot decide: {weak}; {more}"
        return Decision(Verdict.INCONCLUSIVE, (reason, *weakening, *noted))
    if weakening:
        return Decision(Verdict.INCONCLUSIVE, (*weakening, *noted))
    sound = f"no violation found; this audit {detects_from(power, claim)}; it is {NOT_EVIDENCE}"
    return Decision(Verdict.CONSISTENT, (sound, *noted))
