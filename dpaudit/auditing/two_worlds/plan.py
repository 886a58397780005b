"""What an audit in two worlds of a given size can prove, before anything is trained."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from dpaudit.auditing.plan import MOST_PLANNED, fewest
from dpaudit.auditing.settings import MIN_SHADOW_MODELS, AuditSettings
from dpaudit.bounds import (
    Counts,
    Detectable,
    Guarantee,
    coin_detectable,
    coin_detectable_gaussian,
    coin_provable,
    guarantee_of,
)
from dpaudit.model.currencies import Claim
from dpaudit.results.verdict import POWER, Power

_KNOWN_RULE = 0.88
"""Power of the better rule, if it and its cut were known, at which one that is chosen on the
fitting part has `POWER`.

The most that audits of 60 to 400 models need, measured by simulating fitting and choice
(`tests/auditing/test_stated_power.py`, `reports/calibration`).
"""


def power(
    settings: AuditSettings,
    claim: Claim,
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
        The largest provable number of the claim's quantity, and the smallest detectable ones.
    """
    highest = highest_provable(
        settings, claim, false_negatives=false_negatives, false_positives=false_positives
    )
    if highest <= claim.value:
        return Power(highest, None)
    guarantee, confidence = guarantee_of(claim), settings.attack_confidence
    failed = _failed(settings, false_negatives, false_positives)
    leaks = [
        guarantee.detectable(
            claim.value, failed, confidence=confidence, power=_of_known_rule(settings)
        )
    ]
    coins = _coins(settings, guarantee, false_negatives + false_positives)
    if coins is not None:
        leak: dict[str, Any] = {
            "claim_epsilon": claim.value,
            "power": _of_known_rule(settings),
            **coins,
        }
        leaks.append(Detectable(coin_detectable(**leak), coin_detectable_gaussian(**leak)))
    return Power(highest, *(_least(found) for found in zip(*leaks, strict=True)))


def highest_provable(
    settings: AuditSettings,
    claim: Claim,
    *,
    false_negatives: int = 0,
    false_positives: int = 0,
) -> float:
    """The first number of `power` alone, which takes far less time."""
    guarantee, confidence = guarantee_of(claim), settings.attack_confidence
    failed = _failed(settings, false_negatives, false_positives)
    by_cut = guarantee.exact(failed, confidence=confidence)
    coins = _coins(settings, guarantee, false_negatives + false_positives)
    return by_cut if coins is None else max(by_cut, coin_provable(**coins))


def _of_known_rule(settings: AuditSettings) -> float:
    """The power that a known rule needs; bets on the way make up for what choosing one costs."""
    return POWER if settings.sequential else _KNOWN_RULE


def _failed(settings: AuditSettings, false_negatives: int, false_positives: int) -> Counts:
    """Errors of a perfect attack on as many scored trials of one world as of the other."""
    n_out = settings.scored // 2
    n_in = settings.scored - n_out
    return Counts(min(n_in, false_negatives), min(n_out, false_positives), n_in, n_out)


def _coins(settings: AuditSettings, guarantee: Guarantee, failed: int) -> dict[str, Any] | None:
    """The size of the audit as the fair-coin bound sees it; None where it does not apply."""
    if guarantee.delta is None or not settings.fair_coins:
        return None
    return {
        "trials": settings.scored,
        "delta": guarantee.delta,
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
    def of_leak(cls, level: float, claim: Claim) -> AssumedAttack:
        """The balanced attack on the worst mechanism of that level, in the claim's quantity.

        Of epsilon that is randomised response.
        """
        error = guarantee_of(claim).balanced_error(level)
        return cls(fpr=error, tpr=1 - error)


def needed_shadow_models(
    claim: Claim, attack: AssumedAttack, settings: AuditSettings
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
        reached = guarantee_of(claim).detection_power(
            claim.value,
            n_in=sized.scored - sized.scored // 2,
            n_out=sized.scored // 2,
            confidence=sized.attack_confidence,
            fpr=attack.fpr,
            tpr=attack.tpr,
        )
        return reached >= _of_known_rule(settings)

    return fewest(enough, least=MIN_SHADOW_MODELS, most=MOST_PLANNED)
