"""The one claim that thresholds, bets, bounds, power and verdict of an audit are about."""

from __future__ import annotations

from collections.abc import Iterable

from dpaudit.auditing.spec import AuditSpec
from dpaudit.game.trial import TrialEnd
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.currencies import Claim, EpsilonClaim


def effective_claim(audit: AuditSpec, outcomes: Iterable[TrialEnd]) -> Claim:
    """The claim under audit, as the models that were trained state it.

    What the caller stated stands. Else a data-dependent accountant may have reported more than the
    generator did before training, or models may claim what their generator does not: then epsilon
    and delta are each the largest that the generator or one of its models claimed, in either world.
    That pair follows from every single claim, so a generator that keeps them all keeps it too, and
    no honest one is flagged more often for it. A claim in another quantity than epsilon stands as
    the generator states it.

    Args:
        audit: The audit.
        outcomes: The trials so far; a sequential audit asks again after each batch.

    Returns:
        The claim.
    """
    claim = audit.claim
    if audit.settings.claim.is_stated or not isinstance(claim, EpsilonClaim):
        return claim
    made = {one.claimed for one in outcomes if one.claimed is not None}
    if not made:
        return claim
    epsilon = max(claim.epsilon, *(one.epsilon for one in made))
    delta = max(claim.delta, *(one.delta for one in made))
    if (epsilon, delta) == (claim.epsilon, claim.delta):
        return claim
    source = f"{claim.source}; largest that a fitted model claimed in either world"
    return PrivacyClaim(epsilon=epsilon, delta=delta, neighbours=claim.neighbours, source=source)
