"""Controls: two generators with known answers, run through the very game of the audit.

A harness that finds a leak in a generator that ignores its data is broken; an attack that does not
find the record in a generator that copies it proves nothing by finding nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from dpaudit.formatting import rounded_down
from dpaudit.game.trial import Role
from dpaudit.results.record import ControlOutcome
from dpaudit.results.verdict import Check

CONTROLS = (Role.NULL_CONTROL, Role.POSITIVE_CONTROL)
CONFIDENCE = 0.999
"""Strict, because a sound audit fails its null control with probability 1 - CONFIDENCE."""
BEYOND_CHANCE = 1.5
"""Error probability of a control with few trials, in those of a perfect separation by chance."""
CAUGHT = 0.5
"""Share of its largest provable epsilon that the attack on a leaking generator must prove."""


class ControlWords(NamedTuple):
    """What a game says of a control, by how it ended.

    Attributes:
        hidden: The null control, if nothing was found.
        found: The null control, if something was.
        caught: The positive control, if its leak was found.
        missed: The positive control, if it was not.
    """

    hidden: str
    found: str
    caught: str
    missed: str


def judge(
    role: Role, bound: float, *, auc: float, highest: float, words: ControlWords
) -> ControlOutcome:
    """Whether a control ended as it must.

    Args:
        role: Which control.
        bound: The largest bound of any attack on it.
        auc: AUC of that attack.
        highest: The largest epsilon that it could prove.
        words: What to say; "{bound}" becomes the bound, and of how much.

    Returns:
        The result.
    """
    if role is Role.NULL_CONTROL:
        passed = bound == 0
        detail, shown = (words.hidden if passed else words.found), rounded_down(bound)
    else:
        passed = bound >= CAUGHT * highest
        detail = words.caught if passed else words.missed
        shown = f"{rounded_down(bound)} of {rounded_down(highest)}"
    return ControlOutcome(
        passed=passed,
        bound=bound,
        auc=auc,
        max_provable_epsilon=highest,
        detail=detail.replace("{bound}", f"bound {shown}"),
    )


def unfinished(role: Role, reason: str, *, highest: float) -> ControlOutcome:
    """A control that failed because too little of it finished to be attacked.

    Args:
        role: Which control.
        reason: What did not finish.
        highest: The largest epsilon that it could prove.
    """
    return ControlOutcome(
        passed=False,
        bound=None,
        auc=None,
        max_provable_epsilon=highest,
        detail=f"{role.in_words}: {reason}",
    )


def control_check(role: Role, outcome: ControlOutcome) -> Check:
    """A control as a check: if it fails, the run is invalid."""
    return Check(role.in_words, outcome.passed, outcome.detail)
