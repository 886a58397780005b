"""Whether anything can still come of an audit, after trials of it failed.

Stopping here proves nothing and accuses nobody, so no bound has to pay for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dpaudit.auditing.attacking.endings import ending
from dpaudit.auditing.plan import highest_provable
from dpaudit.auditing.settings import AuditSettings
from dpaudit.game.trial import Outcome, Trial, TrialStatus
from dpaudit.model.claim import PrivacyClaim
from dpaudit.plugins.protocols import World


def all_failed_alike(outcomes: Sequence[Outcome]) -> bool:
    """Whether every trial failed, and how they failed says nothing about their world.

    Args:
        outcomes: The first trials, at least one of each world.

    Returns:
        False also where both worlds failed, each in ways of its own, or with numbers of rows that
        vary: an attack may learn from that.
    """
    if any(outcome.status is TrialStatus.FINISHED for outcome in outcomes):
        return False
    ways = {
        world: {ending(outcome) for outcome in outcomes if outcome.trial.world is world}
        for world in World
    }
    rows = {outcome.rows for outcome in outcomes}
    return not ways[World.IN].isdisjoint(ways[World.OUT]) and len(rows) == 1


def cannot_prove(
    outcomes: Sequence[Outcome],
    settings: AuditSettings,
    claim: PrivacyClaim,
    *,
    scored: set[Trial],
) -> bool:
    """Whether so many trials failed that no attack can prove more than the claim any more.

    A failed trial is an error of an attack on tables. An attack on how trials end guesses one world
    for each way of failing, and errs on those of the other. If the best either could still reach,
    all other trials guessed right, is within the claim, the rest need not run.

    Args:
        outcomes: The first trials.
        settings: Those of the audit.
        claim: The claim under audit.
        scored: The trials that will be scored; only these cost power.

    Returns:
        False also where the audit was too small before any trial failed.
    """
    lost: Counter[World] = Counter()
    ways: dict[object, Counter[World]] = {}
    for outcome in outcomes:
        if outcome.status is not TrialStatus.FINISHED and outcome.trial in scored:
            world = outcome.trial.world
            lost[world] += 1
            ways.setdefault(ending(outcome), Counter())[world] += 1
    if not lost or highest_provable(settings, claim) <= claim.epsilon:
        return False
    wrong = Counter[World]()
    for way in ways.values():
        guessed = World.IN if way[World.IN] >= way[World.OUT] else World.OUT
        other = World.OUT if guessed is World.IN else World.IN
        wrong[other] += way[other]
    return all(
        highest_provable(
            settings, claim, false_negatives=errors[World.IN], false_positives=errors[World.OUT]
        )
        <= claim.epsilon
        for errors in (lost, wrong)
    )
