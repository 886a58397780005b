"""What an audit of a given size can prove, before anything is trained."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from dpaudit.bounds import (
    Hypotheses,
    ThresholdRule,
    detectable_epsilon,
    detection_power,
    max_provable,
)
from dpaudit.errors import SettingsError
from dpaudit.model.claim import PrivacyClaim

FIT_SHARE = {ThresholdRule.CROSS_VALIDATED: 0.4, ThresholdRule.HOLD_OUT: 0.6}
"""Share of the trials that train the classifier and choose the threshold; the rest is scored.

The hold-out is the split of published audits: 40 % to train, 20 % for the threshold, 40 % to score.
"""
POWER = 0.8
"""Probability of proving a violation that defines the smallest detectable epsilon."""
DEFAULT_SHADOW_MODELS = 400
MIN_SHADOW_MODELS = 20
MOST_PLANNED = 200_000


class Multiplicity(StrEnum):
    """How the hypotheses on the scored trials are kept from adding up their errors."""

    BONFERRONI = "bonferroni"
    """Every attack is scored, each with its share of the error probability."""
    SELECT = "select"
    """The attack that promises most on the fitting part is the only one that is scored."""


class Pace(StrEnum):
    """When an audit looks at what it has proved."""

    FIXED = "fixed"
    """Once, after the last trial."""
    SEQUENTIAL = "sequential"
    """After every batch; half of the error probability pays for looking."""


@dataclass(frozen=True, kw_only=True)
class Size:
    """How many trials an audit plays, how sure it must be, and how it spends its errors.

    Attributes:
        shadow_models: Trials of both worlds together; even.
        attacks: Number of attacks, each a hypothesis of its own on the scored trials.
        confidence: Confidence of the bound that is reported, one-sided.
        threshold_rule: Where thresholds are chosen.
        multiplicity: How several attacks are counted.
        pace: Whether the audit may stop before its last trial, which is then a cap.

    Raises:
        SettingsError: If there are too few shadow models or an odd number, no attack, or the
            confidence is not in (0.5, 1).
    """

    shadow_models: int = DEFAULT_SHADOW_MODELS
    attacks: int = 2
    confidence: float = 0.95
    threshold_rule: ThresholdRule = ThresholdRule.CROSS_VALIDATED
    multiplicity: Multiplicity = Multiplicity.BONFERRONI
    pace: Pace = Pace.FIXED

    def __post_init__(self) -> None:
        if self.shadow_models < MIN_SHADOW_MODELS or self.shadow_models % 2:
            raise SettingsError(
                f"--shadow-models must be an even number of at least {MIN_SHADOW_MODELS} "
                f"(half for each world), got {self.shadow_models}"
            )
        if self.attacks < 1:
            raise SettingsError("an audit needs at least one attack")
        if not 0.5 < self.confidence < 1:
            raise SettingsError(f"--confidence must be in (0.5, 1), got {self.confidence:g}")

    @property
    def per_world(self) -> int:
        """Trials of each world."""
        return self.shadow_models // 2

    @property
    def fitted(self) -> int:
        """Trials of each world that train the attack and choose its threshold."""
        return round(FIT_SHARE[self.threshold_rule] * self.per_world)

    @property
    def scored(self) -> int:
        """Trials of each world that are scored once."""
        return self.per_world - self.fitted

    @property
    def hypotheses(self) -> Hypotheses:
        """What is tested on the scored trials: the only place that counts it.

        Thresholds, directions and the target are fixed before.
        """
        return Hypotheses(attacks=1 if self.multiplicity is Multiplicity.SELECT else self.attacks)

    @property
    def attack_confidence(self) -> float:
        """Confidence of each attack's bound: of the fixed one, and of the sequential one.

        A sequential audit has both, each with half of the error probability.
        """
        shares = 2 if self.pace is Pace.SEQUENTIAL else 1
        return self.hypotheses.confidence(1 - (1 - self.confidence) / shares)


class Power(NamedTuple):
    """What an audit can prove.

    Attributes:
        max_provable_epsilon: The bound of a perfect attack.
        detectable_epsilon: The smallest true epsilon proved to exceed the claim with probability
            0.8, attacked by randomised response; None if none is.
    """

    max_provable_epsilon: float
    detectable_epsilon: float | None


def power(
    size: Size, claim: PrivacyClaim, *, false_negatives: int = 0, false_positives: int = 0
) -> Power:
    """What an audit of this size can prove against a claim.

    Args:
        size: The audit's size.
        claim: The claim under audit.
        false_negatives: Scored trials of world "in" that failed; they count as errors.
        false_positives: The same for world "out".

    Returns:
        The largest provable and the smallest detectable epsilon.
    """
    highest = max_provable(
        size.scored,
        size.scored,
        delta=claim.delta,
        confidence=size.attack_confidence,
        false_negatives=false_negatives,
        false_positives=false_positives,
    )
    smallest = None
    if highest > claim.epsilon:
        smallest = detectable_epsilon(
            claim_epsilon=claim.epsilon,
            n_in=size.scored,
            n_out=size.scored,
            delta=claim.delta,
            confidence=size.attack_confidence,
            power=POWER,
            false_negatives=false_negatives,
            false_positives=false_positives,
        )
    return Power(highest, smallest)


class AssumedAttack(NamedTuple):
    """The attack that a plan counts on: its rates on the scored trials."""

    fpr: float
    tpr: float

    @classmethod
    def of_leak(cls, epsilon: float, delta: float) -> AssumedAttack:
        """The best attack on the worst mechanism of that epsilon: randomised response."""
        error = (1 - delta) / (1 + math.exp(epsilon))
        return cls(fpr=error, tpr=1 - error)


def needed_shadow_models(claim: PrivacyClaim, attack: AssumedAttack, size: Size) -> int | None:
    """How many shadow models prove a violation with 80 % power.

    Args:
        claim: The claim under audit.
        attack: What the attack is assumed to reach.
        size: Confidence and rules; its number of shadow models does not matter.

    Returns:
        The number, of both worlds together, to within 4; None if more than 200,000 are needed.
        Power is not quite monotone in the number, because counts are whole: with a few more or
        fewer models it may be a little off 80 %.
    """

    def enough(shadow_models: int) -> bool:
        sized = replace(size, shadow_models=shadow_models)
        reached = detection_power(
            claim_epsilon=claim.epsilon,
            n_in=sized.scored,
            n_out=sized.scored,
            delta=claim.delta,
            confidence=sized.attack_confidence,
            fpr=attack.fpr,
            tpr=attack.tpr,
        )
        return reached >= POWER

    high = MIN_SHADOW_MODELS
    while not enough(high):
        high *= 2
        if high > MOST_PLANNED:
            return None
    low = high // 2 if high > MIN_SHADOW_MODELS else high
    while high - low > 4:
        middle = (low + high) // 4 * 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
