"""What a one-run audit found: its guesses, by attack."""

from __future__ import annotations

from dataclasses import dataclass, field

from dpaudit.results.fields import OPTIONAL, NonNegative, Positive, Probability, Whole


@dataclass(frozen=True, kw_only=True)
class CanaryOutcome:
    """What one attack on the canaries of a one-run audit came to.

    Attributes:
        name: Its name.
        auc: Area under its ROC curve over all canaries; 0.5 is chance.
        bound: Its lower bound on epsilon, corrected for the number of attacks, in nats.
        right: Whether its guess of each canary's coin is right, the surest guess first.
    """

    name: str
    auc: Probability
    bound: NonNegative
    right: tuple[bool, ...]


@dataclass(frozen=True, kw_only=True)
class OneRunOutcome:
    """How a one-run audit ended.

    Attributes:
        canaries: Records that were each included by a fair coin.
        included: Canaries whose coin fell on in.
        guesses: Guesses of the deciding attack that carry its bound, the surest ones: the bound
            holds for any number of them. All canaries until there are guesses. In a result without
            `attacks`, canaries guessed in, a number fixed beforehand.
        correct: Right ones of these; null if the generator was not trained or its training failed.
        gaussian_estimate: Epsilon that assumes a Gaussian trade-off curve, in nats: an estimate,
            not a proof, and never decides. Null at delta 0, and as above.
        interference: Share of what one- and two-way marginals, kept without noise, would say of a
            canary that is lost because other coins are unknown; computed before the training.
            Absent from results of earlier versions.
        attacks: What each attack came to; empty without guesses. Absent from results of earlier
            versions, whose one attack guessed a fixed number of coins.
    """

    canaries: Positive
    included: Whole
    guesses: Positive
    correct: Whole | None
    gaussian_estimate: NonNegative | None
    interference: Probability | None = field(default=None, metadata=OPTIONAL)
    attacks: tuple[CanaryOutcome, ...] | None = field(default=None, metadata=OPTIONAL)
