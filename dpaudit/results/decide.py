"""From bounds and checks to one of four verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from dpaudit.model.claim import PrivacyClaim
from dpaudit.results import sentences
from dpaudit.results.verdict import Check, Consequence, Decision, Power, SampleUnit, Verdict

LARGEST_RATIO = 3.0
LARGEST_EXCESS = 1.0
"""A detectable epsilon beyond three times the claim and beyond the claim plus 1 is poor power.

Then "nothing found" means too little to be called consistent.
"""


def decide(
    bound: float,
    claim: PrivacyClaim,
    power: Power,
    checks: Sequence[Check],
    *,
    confidence: float,
    unit: SampleUnit = SampleUnit.TRIALS,
) -> Decision:
    """The verdict on a claim.

    Args:
        bound: Proved lower bound on epsilon, at `confidence` over all attacks together.
        claim: The claim under audit, for the neighbours of the game.
        power: What this audit could prove.
        checks: Checks of the run itself.
        confidence: One-sided confidence of the bound.
        unit: What there would have to be more of.

    Returns:
        The verdict and its reasons.
    """
    breaking, weakening, noted = (
        [one.detail for one in checks if not one.passed and one.consequence is consequence]
        for consequence in (Consequence.INVALIDATES, Consequence.WEAKENS, Consequence.NOTED)
    )
    if breaking:
        return Decision(Verdict.INVALID, (*breaking, *weakening, *noted))
    if bound > claim.epsilon:
        proof = sentences.violation_reason(claim, bound, confidence=confidence)
        return Decision(Verdict.VIOLATION, (proof, *weakening, *noted))
    if power.max_provable_epsilon <= claim.epsilon:
        weak = sentences.too_small_reason(power.max_provable_epsilon, unit)
        return Decision(Verdict.INCONCLUSIVE, (weak, *weakening, *noted))
    detectable = power.detectable_epsilon
    largest = max(LARGEST_RATIO * claim.epsilon, claim.epsilon + LARGEST_EXCESS)
    if detectable is None or detectable > largest:
        weak = sentences.poor_power_reason(detectable, unit)
        return Decision(Verdict.INCONCLUSIVE, (weak, *weakening, *noted))
    if weakening:
        return Decision(Verdict.INCONCLUSIVE, (*weakening, *noted))
    return Decision(
        Verdict.CONSISTENT,
        (sentences.consistent_reason(detectable, power.detectable_gaussian), *noted),
    )
