"""The power of an audit of many records per shadow model, and how many records to choose.

Records in the same training mask one another. A record shifts the attack's statistic by mu standard
deviations of the mechanism's noise. If k records all shift the same statistic, the coins of the k -
1 others, of variance mu²/4 each, are noise to an attack on one of them: it sees a shift of mu /
sqrt(1 + (k - 1) mu²/4). Records that shift separate statistics do not interfere. A real generator
is somewhere in between.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from dpaudit.auditing.plan import (
    MOST_PLANNED,
    Caught,
    Needed,
    PlanSubject,
    Sizing,
    fewest,
    rows_by_models,
)
from dpaudit.auditing.settings import FEWEST_MODELS, LARGEST_SHARE, AuditSettings, ManyRecords
from dpaudit.bounds import CoinPlan
from dpaudit.formatting import Row, aligned, counted, rounded_up, row_lines
from dpaudit.model.claim import Claim, EpsilonClaim, require_add_remove, require_on_epsilon
from dpaudit.results.verdict import POWER, Power

ALTERNATIVE_RECORDS: Final = (1, 4, 16, 64)
_LEARNT_FROM = 40
"""With this many coins in the fitting part, an audit misses twice as many leaks as a known rule.

Measured by simulating fitting and calibration; `tests/auditing/test_stated_power.py` repeats it.
"""


def power(settings: AuditSettings[ManyRecords], claim: Claim, *, failed: int = 0) -> Power:
    """The power of an audit of this size against a claim.

    This is the power for as many coins as records times scored models, as if records did not
    interfere (`caught_with` computes the cost if they do), reduced because the rule has to be
    learnt from the fitting part.

    Args:
        settings: Settings of the audit.
        claim: The claim under audit.
        failed: Scored models that failed.

    Returns:
        The upper limit of the bound, and the minimum detectable epsilons.

    Raises:
        ClaimError: If the claim is not one of epsilon.
    """
    claim = require_on_epsilon(claim, method="`records`")
    coins = coin_plan(settings, claim, records=settings.game.records, failed=failed)
    highest = coins.provable()
    if highest <= claim.epsilon:
        return Power(highest, None)
    return Power(
        highest,
        coins.detectable(claim.epsilon, power=_of_known_rule(settings)),
        coins.detectable_gaussian(claim.epsilon, power=POWER),
    )


def needed_shadow_models(
    claim: Claim, epsilon: float, settings: AuditSettings[ManyRecords]
) -> int | None:
    """How many shadow models prove that every record leaks more than the claim, with 80 % power.

    Args:
        claim: The claim under audit.
        epsilon: The true epsilon of every record, shown as in randomised response, without
            interference from other records.
        settings: Confidence, attacks and records; its number of shadow models does not matter.

    Returns:
        The number, to within 4; None if more than 100,000 are needed.

    Raises:
        ClaimError: If the claim is not one of epsilon.
    """
    asked = require_on_epsilon(claim, method="`records`")

    def enough(shadow_models: int) -> bool:
        sized = settings.with_game(shadow_models=shadow_models)
        coins = coin_plan(sized, asked, records=settings.game.records)
        caught = coins.detectable(asked.epsilon, power=_of_known_rule(sized))
        return caught is not None and caught <= epsilon

    return fewest(enough, least=FEWEST_MODELS, most=MOST_PLANNED)


def _of_known_rule(settings: AuditSettings[ManyRecords]) -> float:
    """The power of a known rule on randomised response at which a learnt rule has `POWER`.

    With few coins in the fitting part, guesses may get unequal weights, or none. For a Gaussian
    leak that costs little: unequal weights gain there what the margin loses.
    """
    coins = 2 * settings.game.fitted * settings.game.records
    return 1.0 - (1.0 - POWER) * coins**2 / (coins**2 + _LEARNT_FROM**2)


def coin_plan(
    settings: AuditSettings[ManyRecords], claim: EpsilonClaim, *, records: int, failed: int = 0
) -> CoinPlan:
    """An audit as the fair-coin bound sees it.

    Args:
        settings: Settings of the audit; its own number of records does not matter.
        claim: The claim under audit.
        records: Records that each model serves.
        failed: Scored models that failed, without guesses.
    """
    return CoinPlan(
        trials=settings.game.scored * records,
        shared=records,
        failed=failed * records,
        delta=claim.delta,
        confidence=settings.attack_confidence,
    )


def shift_needed(seen: float, records: int) -> float | None:
    """The shift a record needs to be seen with this shift among k that shift the same statistic.

    Args:
        seen: The shift as seen by the attack, at least 0.
        records: Records, k.

    Returns:
        The shift; None if no shift is large enough.
    """
    left = 1.0 - (records - 1) * seen * seen / 4.0
    return seen / math.sqrt(left) if left > 0.0 else None


def caught_with(
    records: Iterable[int], settings: AuditSettings[ManyRecords], claim: EpsilonClaim
) -> list[Caught]:
    """The leak that these models detect with 80 % power, for each number of records.

    Args:
        records: Numbers of records.
        settings: Settings of the audit; its own number of records does not matter.
        claim: The claim under audit.

    Returns:
        One for each number, in order.
    """
    leaks = []
    for k in records:
        coins = coin_plan(settings, claim, records=k)
        seen = coins.detectable_shift(claim.epsilon, power=POWER)
        together = None if seen is None else shift_needed(seen, k)
        leaks.append(Caught(k, coins.trials, seen, together))
    return leaks


def most_sensitive(leaks: Mapping[int, float | None]) -> int | None:
    """The number of records that detects the smallest leak; None if no number detects any."""
    return min(
        (records for records, leak in leaks.items() if leak is not None),
        key=lambda records: (leaks[records], records),
        default=None,
    )


def sizing(
    subject: PlanSubject, settings: AuditSettings[ManyRecords], detect: float | None
) -> Sizing:
    """The power of audits by number of shadow models and by number of records.

    Args:
        subject: What will be audited.
        settings: The settings of the audit.
        detect: True value of the claim's quantity that the audit must be large enough to detect;
            None if none was asked for.

    Raises:
        ClaimError: If the claim is not one of epsilon and add-remove neighbours.
        SettingsError: If the table is too small for the records.
    """
    game = settings.game
    claim = require_on_epsilon(subject.claim, method="`records`")
    require_add_remove(claim.neighbours, method="`records`")
    most = max(ALTERNATIVE_RECORDS)
    if subject.population is not None:
        game.check_population(subject.population)
        most = int(LARGEST_SHARE * subject.population.number)
    numbers = {game.records, *(k for k in ALTERNATIVE_RECORDS if k <= most)}
    choices = caught_with(sorted(numbers), settings, claim)

    needed = None
    if detect is not None:
        size = needed_shadow_models(claim, detect, settings)
        needed = Needed(size, f"a true epsilon of {detect:g} on every record")
    return Sizing(
        unit="shadow_models",
        scored="scored",
        asked=game.shadow_models,
        rows=rows_by_models(settings, claim, power),
        needed=needed,
        of=f"{counted(len(game.attacks), 'attack')} on {counted(game.records, 'record')} per model",
        attacks=len(game.attacks),
        table=tuple(_lines(choices, game)),
        records=tuple(choices),
    )


def _lines(leaks: Sequence[Caught], game: ManyRecords) -> Iterator[str]:
    """A table of the leak that each number of records detects, with the best number."""
    models = game.shadow_models
    yield f"Gaussian leak of every record, in mu, that {models} models detect with 80 % power:"
    table = [("records", "guesses", "each in its own statistic", "all in one", "")]
    for leak in leaks:
        mark = "this audit" if leak.records == game.records else ""
        sizes = str(leak.records), str(leak.guesses)
        table.append((*sizes, _shown(leak.apart), _shown(leak.together), mark))
    yield from aligned(table, numeric={0, 1, 2, 3})
    apart = most_sensitive({leak.records: leak.apart for leak in leaks})
    together = most_sensitive({leak.records: leak.together for leak in leaks})
    if apart is not None:
        best = f"{counted(apart, 'record')} if each leaks in its own statistic"
        if together is not None:
            best += f", {counted(together, 'record')} if all leak in one"
        yield from row_lines([Row("best", best)])


def _shown(mu: float | None) -> str:
    return "none" if mu is None else rounded_up(mu)
