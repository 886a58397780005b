"""What an audit of a given size can prove, before anything is trained."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from dpaudit.auditing.settings import MIN_SHADOW_MODELS, AuditSettings
from dpaudit.bounds import (
    coin_detectable,
    coin_detectable_gaussian,
    coin_provable,
    detectable_epsilon,
    detectable_gaussian,
    detection_power,
    max_provable,
)
from dpaudit.model.claim import PrivacyClaim
from dpaudit.results.verdict import POWER, Power

MOST_PLANNED = 200_000


def power(
    settings: AuditSettings,
    claim: PrivacyClaim,
    *,
    false_negatives: int = 0,
    false_positives: int = 0,
) -> Power:
    """What an audit of this size can prove against a claim, by the better rule for each leak.

    Args:
        settings: Those of the audit: its number of trials, confidence and rules.
        claim: The claim under audit.
        false_negatives: Scored trials of world "in" that failed; they count as errors.
        false_positives: The same for world "out".

    Returns:
        The largest provable epsilon, and the smallest detectable ones.
    """
    highest = highest_provable(
        settings, claim, false_negatives=false_negatives, false_positives=false_positives
    )
    if highest <= claim.epsilon:
        return Power(highest, None)
    size = _size(settings, claim, false_negatives, false_positives)
    leak: dict[str, Any] = {"claim_epsilon": claim.epsilon, "power": POWER}
    leaks = [(detectable_epsilon(**leak, **size), detectable_gaussian(**leak, **size))]
    if settings.fair_coins:
        coins = _coins(settings, claim, false_negatives + false_positives)
        leaks.append((coin_detectable(**leak, **coins), coin_detectable_gaussian(**leak, **coins)))
    return Power(highest, *(_least(found) for found in zip(*leaks, strict=True)))


def highest_provable(
    settings: AuditSettings,
    claim: PrivacyClaim,
    *,
    false_negatives: int = 0,
    false_positives: int = 0,
) -> float:
    """The first number of `power` alone, which takes far less time."""
    by_cut = max_provable(**_size(settings, claim, false_negatives, false_positives))
    if not settings.fair_coins:
        return by_cut
    return max(by_cut, coin_provable(**_coins(settings, claim, false_negatives + false_positives)))


def _size(
    settings: AuditSettings, claim: PrivacyClaim, false_negatives: int, false_positives: int
) -> dict[str, Any]:
    """Of the exact bound, with as many scored trials of one world as of the other."""
    n_out = settings.scored // 2
    n_in = settings.scored - n_out
    return {
        "n_in": n_in,
        "n_out": n_out,
        "delta": claim.delta,
        "confidence": settings.attack_confidence,
        "false_negatives": min(n_in, false_negatives),
        "false_positives": min(n_out, false_positives),
    }


def _coins(settings: AuditSettings, claim: PrivacyClaim, failed: int) -> dict[str, Any]:
    """Of the fair-coin bound."""
    return {
        "trials": settings.scored,
        "delta": claim.delta,
        "confidence": settings.attack_confidence,
        "failed": failed,
    }


def _least(found: Iterable[float | None]) -> float | None:
    """The smallest of some numbers; None if there is none."""
    return min((one for one in found if one is not None), default=None)


class AssumedAttack(NamedTuple):
    """The attack that a plan counts on: its rates on the scored trials."""

    fpr: float
    tpr: float

    @classmethod
    def of_leak(cls, epsilon: float, delta: float) -> AssumedAttack:
        """The best attack on the worst mechanism of that epsilon: randomised response."""
        error = (1 - delta) / (1 + math.exp(epsilon))
        return cls(fpr=error, tpr=1 - error)


def needed_shadow_models(
    claim: PrivacyClaim, attack: AssumedAttack, settings: AuditSettings
) -> int | None:
    """How many shadow models prove a violation with 80 % power.

    Args:
        claim: The claim under audit.
        attack: What the attack is assumed to reach.
        settings: Confidence and rules; its number of shadow models does not matter.

    Returns:
        The number, of both worlds together, to within 4; None if more than 200,000 are needed.
        Power is not quite monotone in the number, because counts are whole: with a few more or
        fewer models it may be a little off 80 %.
    """

    def enough(shadow_models: int) -> bool:
        sized = replace(settings, shadow_models=shadow_models)
        reached = detection_power(
            claim_epsilon=claim.epsilon,
            n_in=sized.scored - sized.scored // 2,
            n_out=sized.scored // 2,
            delta=claim.delta,
            confidence=sized.attack_confidence,
            fpr=attack.fpr,
            tpr=attack.tpr,
        )
        return reached >= POWER

    return fewest(enough, least=MIN_SHADOW_MODELS, most=MOST_PLANNED)


def fewest(enough: Callable[[int], bool], *, least: int, most: int) -> int | None:
    """The smallest even size of an audit that is enough, to within 4; None if none is.

    Args:
        enough: Whether a size is enough.
        least: The smallest size, even.
        most: The largest.
    """
    high = least
    while not enough(high):
        high *= 2
        if high > most:
            return None
    low = high // 2 if high > least else high
    while high - low > 4:
        middle = (low + high) // 4 * 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
