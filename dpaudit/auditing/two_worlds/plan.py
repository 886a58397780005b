"""The power of an audit in two worlds by size, before anything is trained."""

from __future__ import annotations

from collections.abc import Iterable

from dpaudit.auditing.plan import MOST_PLANNED, Needed, PlanSubject, Sizing, fewest, rows_by_models
from dpaudit.auditing.settings import MIN_SHADOW_MODELS, AuditSettings, TwoWorlds
from dpaudit.bounds import CoinPlan, Counts, Detectable, Guarantee, guarantee_of
from dpaudit.errors import SettingsError
from dpaudit.formatting import counted, percent
from dpaudit.model.claim import Claim
from dpaudit.results.verdict import POWER, Power

_KNOWN_RULE = 0.88
"""The power of a known rule at which a rule chosen on the fitting part has `POWER`.

This is the most that audits of 60 to 400 models need, measured by simulating fitting and choice
(`tests/auditing/test_stated_power.py`, `reports/calibration`).
"""


def power(
    settings: AuditSettings[TwoWorlds],
    claim: Claim,
    *,
    false_negatives: int = 0,
    false_positives: int = 0,
) -> Power:
    """The power of an audit of this size against a claim, by the better rule for each leak.

    Args:
        settings: The audit's settings: its number of trials, confidence and rules.
        claim: The claim under audit.
        false_negatives: Scored trials of world "in" that failed; they count as errors.
        false_positives: The same for world "out".

    Returns:
        The upper limit of the bound in the claim's quantity, and the minimum detectable values.
    """
    highest = highest_provable(
        settings, claim, false_negatives=false_negatives, false_positives=false_positives
    )
    if highest <= claim.value:
        return Power(highest, None)
    guarantee, confidence = guarantee_of(claim), settings.attack_confidence
    failed = _errors_of_perfect(settings, false_negatives, false_positives)
    leaks = []
    if not settings.game.is_timed:
        known = _of_known_rule(settings)
        leaks.append(guarantee.detectable(claim.value, failed, confidence=confidence, power=known))
    coins = _coins(settings, guarantee, false_negatives + false_positives)
    if coins is not None:
        known = _of_known_rule(settings)
        best = coins.detectable(claim.value, power=known)
        gaussian = coins.detectable_gaussian(claim.value, power=known)
        leaks.append(Detectable(best, gaussian))
    return Power(highest, *(_least(values) for values in zip(*leaks, strict=True)))


def highest_provable(
    settings: AuditSettings[TwoWorlds],
    claim: Claim,
    *,
    false_negatives: int = 0,
    false_positives: int = 0,
) -> float:
    """The upper limit of `power` alone, which takes far less time."""
    guarantee, confidence = guarantee_of(claim), settings.attack_confidence
    failed = _errors_of_perfect(settings, false_negatives, false_positives)
    coins = _coins(settings, guarantee, false_negatives + false_positives)
    by_coins = 0.0 if coins is None else coins.provable()
    if settings.game.is_timed:
        return by_coins
    return max(guarantee.exact(failed, confidence=confidence), by_coins)


def require_coins(settings: AuditSettings[TwoWorlds], claim: Claim) -> None:
    """Refuses a claim of which fair coins prove nothing where trainings are timed.

    Raises:
        SettingsError: If it is such a claim.
    """
    if settings.game.is_timed and guarantee_of(claim).delta is None:
        raise SettingsError(
            f'`access="{settings.game.access}"` needs a claim in epsilon, or none: the bounds of '
            "other claims assume trials that are alike, and those of a busy machine are not"
        )


def _of_known_rule(settings: AuditSettings[TwoWorlds]) -> float:
    """The power that a known rule needs; interim bets make up for the cost of choosing it."""
    return POWER if settings.game.sequential else _KNOWN_RULE


def _errors_of_perfect(
    settings: AuditSettings[TwoWorlds], false_negatives: int, false_positives: int
) -> Counts:
    """Errors of a perfect attack on equally many scored trials of each world."""
    n_out = settings.game.scored // 2
    n_in = settings.game.scored - n_out
    return Counts(min(n_in, false_negatives), min(n_out, false_positives), n_in, n_out)


def _coins(
    settings: AuditSettings[TwoWorlds], guarantee: Guarantee, failed: int
) -> CoinPlan | None:
    """The audit as the fair-coin bound sees it; None where it does not apply."""
    if guarantee.delta is None or not settings.game.fair_coins:
        return None
    return CoinPlan(
        trials=settings.game.scored,
        delta=guarantee.delta,
        confidence=settings.attack_confidence,
        failed=failed,
    )


def _least(values: Iterable[float | None]) -> float | None:
    """The smallest of some numbers; None if there is none."""
    return min((value for value in values if value is not None), default=None)


def needed_shadow_models(
    claim: Claim, leak: float, settings: AuditSettings[TwoWorlds]
) -> int | None:
    """How many shadow models prove a violation with 80 % power.

    Args:
        claim: The claim under audit.
        leak: The true value, above the claim, which shows as clearly as in the worst mechanism of
            that level; for epsilon that is randomised response.
        settings: Confidence and rules; its number of shadow models does not matter.

    Returns:
        The number, of both worlds together, to within 4; None if more than 100,000 are needed.
        Power is not quite monotone in the number, because counts are whole: with a few more or
        fewer models it may be slightly off 80 %.
    """
    error = guarantee_of(claim).balanced_error(leak)

    def enough(shadow_models: int) -> bool:
        sized = settings.with_game(shadow_models=shadow_models)
        coins = _coins(sized, guarantee_of(claim), 0)
        if sized.game.is_timed and coins is not None:
            return coins.power(claim.value, right=1.0 - error) >= _of_known_rule(settings)
        reached = guarantee_of(claim).detection_power(
            claim.value,
            n_in=sized.game.scored - sized.game.scored // 2,
            n_out=sized.game.scored // 2,
            confidence=sized.attack_confidence,
            fpr=error,
            tpr=1.0 - error,
        )
        return reached >= _of_known_rule(settings)

    return fewest(enough, least=MIN_SHADOW_MODELS, most=MOST_PLANNED)


def sizing(
    subject: PlanSubject, settings: AuditSettings[TwoWorlds], detect: float | None
) -> Sizing:
    """The power of audits by number of shadow models.

    Args:
        subject: What will be audited.
        settings: The settings of the audit.
        detect: True value of the claim's quantity that the audit must be large enough to detect;
            None if none was asked for.

    Raises:
        SettingsError: If trainings are timed and the claim is not in epsilon.
    """
    claim, game = subject.claim, settings.game
    attacks = len(game.attacks) + (game.secret is not None)
    require_coins(settings, claim)
    needed = None
    if detect is not None:
        size = needed_shadow_models(claim, detect, settings)
        needed = Needed(size, f"a true {claim.quantity.noun} of {detect:g}")
    error = percent(round(1.0 - settings.confidence, 12))
    return Sizing(
        unit="shadow_models",
        scored="scored",
        asked=game.shadow_models,
        rows=rows_by_models(settings, claim, power),
        needed=needed,
        of=counted(attacks, "attack"),
        attacks=attacks,
        advice=f"to add models later, audit with `sequential` from the start: {error} error in all",
    )
