"""From bounds and checks to one of four verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from dpaudit.model.claim import Claim, NoClaim, Quantity
from dpaudit.results import sentences
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
    if isinstance(claim, NoClaim) and power.max_provable > 0:
        measured = sentences.measured_reason(bound, power.max_provable, confidence=confidence)
        return Decision(Verdict.MEASURED, (measured, *weakening, *noted))
    if bound > claim.value:
        proof = sentences.violation_reason(claim, bound, confidence=confidence)
        return Decision(Verdict.VIOLATION, (proof, *weakening, *noted))
    quantity = claim.quantity
    if power.max_provable <= claim.value:
        weak = sentences.too_small_reason(power.max_provable, unit, quantity)
        return Decision(Verdict.INCONCLUSIVE, (weak, *weakening, *noted))
    detectable = power.detectable
    if detectable is None or detectable > largest_detectable(claim):
        weak = sentences.poor_power_reason(detectable, unit, quantity)
        return Decision(Verdict.INCONCLUSIVE, (weak, *weakening, *noted))
    if weakening:
        return Decision(Verdict.INCONCLUSIVE, (*weakening, *noted))
    return Decision(Verdict.CONSISTENT, (sentences.consistent_reason(power, claim), *noted))
