"""The one claim that thresholds, bets, bounds, power and verdict of an audit refer to."""

from __future__ import annotations

from collections.abc import Iterable

from dpaudit.auditing.spec import AuditSpec
from dpaudit.game.trial import TrialEnd
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.currencies import Claim, EpsilonClaim


def effective_claim(audit: AuditSpec, outcomes: Iterable[TrialEnd]) -> Claim:
    """The claim under audit, as the models that were trained state it.

    A claim stated by the caller is used as it is. Otherwise a data-dependent accountant may have
    reported more than the generator did before training, or models may claim something that their
    generator does not. Then epsilon and delta are each the largest claimed by the generator or any
    of its models, in either world. Every single claim implies this pair, so a generator that
    satisfies all its claims satisfies the pair, and honest generators are not flagged more often. A
    claim in a quantity other than epsilon is used as the generator states it.

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
    return PrivacyClaim(
        epsilon=epsilon,
        delta=delta,
        neighbours=claim.neighbours,
        source=source,
        unit=claim.unit,
    )
