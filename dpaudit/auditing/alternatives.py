"""What can decide a claim that an audit is too small for, in the order of cost."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from dpaudit.auditing.one_run.plan import MOST_PLANNED
from dpaudit.auditing.records.plan import power
from dpaudit.auditing.settings import (
    LARGEST_SHARE,
    MIN_CANARIES,
    MOST_CANARIES,
    AuditSettings,
    GameSettings,
    ManyRecords,
    OneRun,
    ShadowModelSettings,
    TwoWorlds,
)
from dpaudit.bounds import one_run
from dpaudit.formatting import rounded_down, rounded_up
from dpaudit.model.choices import Access, Effort
from dpaudit.model.claim import Neighbours, PrivacyClaim

if TYPE_CHECKING:
    from dpaudit.model.tables import Population  # loads pandas

_RECORDS_TRIED: Final = (4, 16, 64, 256, 1024)
"""Records per model among which an audit that can decide is looked for."""
_MARGIN: Final = 1.1
"""Canaries proposed for each that a perfect attack would need."""


def what_decides(
    claim: PrivacyClaim,
    settings: AuditSettings,
    population: Population | None,
    *,
    target: float | None = None,
) -> Iterator[str]:
    """What can decide the claim: probes, a replay, more records per model, one run.

    With k records per model the limit is that of k times as many coins; a stronger attacker raises
    no limit.

    Args:
        claim: The claim under audit.
        settings: The settings of the audit that cannot decide it.
        population: Rows or units of the table; None if none was handed in.
        target: The epsilon to detect; None for the largest with which finding nothing counts.

    Yields:
        Facts that name settings in backquotes, the cheapest first.
    """
    game = settings.game
    probes = "`dpaudit probe`" if game.not_probed else "the probes before the audit"
    yield f"{probes}: whether synthetic rows follow the table even at an epsilon near 0"
    yield "`dpaudit replay` says what each line of Python code spends"
    if claim.neighbours is not Neighbours.ADD_REMOVE or not is_of_one_table(game):
        return
    number = None if population is None else population.number
    if (records := _more_records(claim, settings, number, target)) is not None:
        yield records
    most = MOST_PLANNED if number is None else min(MOST_CANARIES, number // 2)
    canaries = _canaries(claim, settings, most)
    if canaries is not None and not isinstance(game, OneRun):
        yield f"one training with `one_run=True` and `canaries={canaries}` can prove more"


def is_of_one_table(game: GameSettings) -> bool:
    """Whether the other games can have the table and the attacker of this one."""
    special = isinstance(game, TwoWorlds) and (game.worst_case or game.access is not Access.OUTPUT)
    return not special


def too_small(
    claim: PrivacyClaim, settings: AuditSettings, population: Population, *, limit: float
) -> str | None:
    """Says that an audit cannot decide its claim, and what can; None if it can.

    Args:
        claim: The claim under audit.
        settings: The settings of the audit.
        population: Rows or units of the table.
        limit: The largest epsilon that the audit can prove.
    """
    if limit > claim.epsilon:
        return None
    [size] = settings.game.SIZES[Effort.QUICK]
    asked = f"{getattr(settings.game, size)} {size.replace('_', ' ')}"
    instead = "; ".join(what_decides(claim, settings, population))
    return (
        f"{asked} prove at most {rounded_down(limit)} of epsilon {claim.epsilon:g}, which decides "
        f"nothing; what can, the cheapest first: {instead}"
    )


def _more_records(
    claim: PrivacyClaim, settings: AuditSettings, number: int | None, target: float | None
) -> str | None:
    """The smallest number of records per model with which as many models decide; None if none."""
    from dpaudit.results.decide import largest_detectable  # loads pandas

    target = largest_detectable(claim) if target is None else target
    game = settings.game if isinstance(settings.game, ShadowModelSettings) else TwoWorlds()
    for records in _RECORDS_TRIED:
        if number is not None and records > LARGEST_SHARE * number:
            return None
        sized = ManyRecords(attacks=game.attacks, shadow_models=game.shadow_models, records=records)
        reached = power(AuditSettings(game=sized, confidence=settings.confidence), claim)
        if reached.detectable is not None and reached.detectable <= target:
            return (
                f"{game.shadow_models} models with `records={records}` detect epsilon "
                f"{rounded_up(reached.detectable)} with 80 % power and prove at most "
                f"{rounded_down(reached.max_provable)}; less if these records hide one another"
            )
    return None


def _canaries(claim: PrivacyClaim, settings: AuditSettings, most: int) -> int | None:
    """Canaries with which a perfect attack proves more than the claim; None if too many."""
    sized = AuditSettings(game=OneRun(), confidence=settings.confidence)
    confidence = sized.attack_confidence
    # All guesses are right with probability (1 + exp(-epsilon))^-n under a pure claim.
    log_wrong = math.log1p(math.exp(-min(claim.epsilon, 700.0)))
    needed = _MARGIN * -math.log(1.0 - confidence) / log_wrong
    if needed > most:
        return None
    unit = 10 ** max(0, math.floor(math.log10(needed)) - 1)  # two digits are enough
    canaries = max(MIN_CANARIES, unit * math.ceil(needed / unit))
    highest = one_run(canaries, canaries, canaries, delta=claim.delta, confidence=confidence)
    return canaries if canaries <= most and highest > claim.epsilon else None
