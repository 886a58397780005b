"""Whether an audit can still prove anything after some of its trials failed.

Stopping here never leads to a violation, so it needs no correction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.two_worlds.attacking.endings import Ending, ending
from dpaudit.auditing.two_worlds.plan import highest_provable
from dpaudit.auditing.two_worlds.settings import TwoWorlds
from dpaudit.game.trial import Trial, TrialEnd, TrialStatus
from dpaudit.model.currencies import Claim
from dpaudit.plugins.protocols import World

SIGN = 0.05
"""Significance level for a dependence of how trials end on the world."""


def all_failed_alike(ends: Sequence[TrialEnd]) -> bool:
    """Whether every trial failed, in ways that do not depend on the world.

    Args:
        ends: The first trials, at least one of each world.

    Returns:
        False also if the two worlds have no way of failing in common, or if trials gave different
        numbers of rows: an attack may learn from that.
    """
    if any(end.status is TrialStatus.FINISHED for end in ends):
        return False
    ways = {world: {ending(end) for end in ends if end.trial.world is world} for world in World}
    return not ways[World.IN].isdisjoint(ways[World.OUT]) and not _rows_vary(ends)


def cannot_prove(
    ends: Sequence[TrialEnd],
    settings: AuditSettings[TwoWorlds],
    claim: Claim,
    *,
    scored: set[Trial],
) -> bool:
    """Whether so many trials failed that no attack can exceed the claim any more.

    A failed trial is an error of an attack on tables. If even an attack with no other error stays
    within the claim, only how trials end could prove anything, and there must be a sign of that by
    now.

    Args:
        ends: The first trials.
        settings: Settings of the audit.
        claim: The claim under audit.
        scored: The trials that will be scored; only these cost power.

    Returns:
        False also if the audit was too small before any trial failed.
    """
    lost = Counter(
        end.trial.world
        for end in ends
        if end.status is not TrialStatus.FINISHED and end.trial in scored
    )
    if not lost or highest_provable(settings, claim) <= claim.value:
        return False
    left = highest_provable(
        settings, claim, false_negatives=lost[World.IN], false_positives=lost[World.OUT]
    )
    return left <= claim.value and not _rows_vary(ends) and not _depends_on_world(ends)


def _rows_vary(ends: Sequence[TrialEnd]) -> bool:
    """Whether trials that gave a wrong number of rows gave different ones."""
    return len({end.rows for end in ends} - {None}) > 1


def _depends_on_world(ends: Sequence[TrialEnd]) -> bool:
    """Whether any way of ending is more frequent in one world (Fisher's exact test, Bonferroni)."""
    from scipy.stats import fisher_exact

    run = Counter(end.trial.world for end in ends)
    ways: dict[Ending, Counter[World]] = {}
    for end in ends:
        ways.setdefault(ending(end), Counter())[end.trial.world] += 1
    for seen in ways.values():
        table = np.array([[seen[world], run[world] - seen[world]] for world in World])
        if float(fisher_exact(table)[1]) * len(ways) < SIGN:
            return True
    return False
