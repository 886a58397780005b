"""The power and upper limit of a one-run audit by number of canaries, before any training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from dpaudit.auditing.plan import Needed, PlannedSize, PlanSubject, Sizing, fewest
from dpaudit.auditing.settings import MIN_CANARIES, AuditSettings, OneRun
from dpaudit.bounds import guarantee_of
from dpaudit.bounds.one_run import numbers_of_guesses
from dpaudit.bounds.table import Observed, proved
from dpaudit.formatting import Row, counted
from dpaudit.model.claim import Claim, EpsilonClaim, require_add_remove
from dpaudit.results.verdict import POWER, Power

if TYPE_CHECKING:
    from dpaudit.model.tables import Table

ALTERNATIVES: Final = (50, 100, 200, 500, 1000, 2000)
"""Numbers of canaries that every plan shows."""
MOST_PLANNED: Final = 5_000
"""Largest number of canaries that a plan considers."""


def power(canaries: int, claim: Claim, confidence: float) -> Power:
    """The power of a one-run audit against a claim.

    Args:
        canaries: Records that are each included by a fair coin.
        claim: The claim under audit.
        confidence: One-sided confidence of the bound of each attack.

    Returns:
        The upper limit of the bound and the minimum detectable value, in the claim's quantity.
    """
    guarantee, perfect = guarantee_of(claim), np.ones(canaries)
    highest = proved(guarantee.bounds(Observed.IN_TURN, perfect, confidence=confidence))
    if highest <= claim.value:
        return Power(highest, None)
    return Power(
        highest,
        *guarantee.one_run_detectable(claim.value, canaries, confidence=confidence, power=POWER),
    )


def needed_canaries(claim: Claim, leak: float, confidence: float) -> int | None:
    """How many canaries prove a violation with 80 % power.

    Args:
        claim: The claim under audit.
        leak: The true value, above the claim, of randomised response on every coin.
        confidence: One-sided confidence of the bound of each attack.

    Returns:
        The number to within 4; None if 5,000 are not enough. At a positive delta more canaries are
        not always better, because each one costs the bound delta.
    """

    def enough(canaries: int) -> bool:
        least = power(canaries, claim, confidence).detectable
        return least is not None and least <= leak

    return fewest(enough, least=MIN_CANARIES, most=MOST_PLANNED)


def sizing(subject: PlanSubject, settings: AuditSettings[OneRun], detect: float | None) -> Sizing:
    """The power of one training with this many canaries.

    Args:
        subject: What will be audited.
        settings: The settings of the audit.
        detect: True value of the claim's quantity that the audit must be large enough to detect;
            None if none was asked for.

    Raises:
        SettingsError: If there can be no such audit.
        ClaimError: If a one-run audit cannot test the claim.
    """
    claim = subject.claim
    require_add_remove(claim.neighbours, method="`one_run`")
    asked, confidence = settings.game.canaries, settings.attack_confidence
    most = MOST_PLANNED
    if subject.population is not None:
        settings.game.check_population(subject.population)
        most = subject.population.number // 2

    def row(canaries: int) -> PlannedSize:
        all_guessed = isinstance(claim, EpsilonClaim)
        guesses = canaries if all_guessed else numbers_of_guesses(canaries)[0]
        return PlannedSize(canaries, None, guesses, *power(canaries, claim, confidence))

    needed = None
    if detect is not None:
        size = needed_canaries(claim, detect, confidence)
        needed = Needed(size, f"a true {claim.quantity.noun} of {detect:g}")
    lost = None if subject.table is None else _interference(subject.table, settings, claim)
    attacks = settings.game.hypotheses
    return Sizing(
        unit="canaries",
        scored="guesses",
        asked=asked,
        rows=tuple(map(row, sorted({asked, *(n for n in ALTERNATIVES if n <= most)}))),
        needed=needed,
        of=f"{counted(attacks, 'attack')} on one training",
        attacks=attacks,
        most=MOST_PLANNED,
        cost="one training; its controls train nothing",
        details=(_interference_row(lost),),
        interference=lost,
    )


def _interference(table: Table, settings: AuditSettings[OneRun], claim: Claim) -> float:
    """How much the canaries of a table interfere with one another, before anything is trained."""
    from dpaudit.auditing.one_run.attack import interference
    from dpaudit.auditing.spec import view_of
    from dpaudit.game.worlds import choose_canaries

    chosen = choose_canaries(table.data, table.schema, settings.game.canaries)
    rows = len(table.data) if settings.rows is None else settings.rows
    return interference(view_of(table, chosen, rows=rows, neighbours=claim.neighbours))


def _interference_row(lost: float | None) -> Row:
    if lost is None:
        return Row("canaries", "taken not to disturb one another; GENERATOR and `data` say more")
    share = f"{100.0 * lost:.0f} %"
    return Row("canaries", f"others hide {share} of what marginals reveal about a canary's coin")
