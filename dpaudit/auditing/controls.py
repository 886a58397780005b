"""Controls: two generators with known answers, run through the same game as the audit.

A harness that finds a leak in a generator that ignores its data is broken. If an attack misses the
record in a generator that copies it, finding nothing elsewhere means nothing.
"""

from __future__ import annotations

import math

from dpaudit.formatting import rounded_down
from dpaudit.game.trial import Role
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.currencies import Claim
from dpaudit.results.record import ControlOutcome
from dpaudit.results.verdict import Check, Consequence

CONTROLS = (Role.NULL_CONTROL, Role.POSITIVE_CONTROL)
CONFIDENCE = 0.999
"""Strict, because a sound audit fails its null control with probability 1 - CONFIDENCE."""
BEYOND_CHANCE = 1.5
"""Error probability of a small control, as a multiple of that of a perfect chance separation."""
CAUGHT = 0.5
"""Share of its upper limit that the attack on a leaking generator must reach."""


def control_claim(claim: Claim) -> PrivacyClaim:
    """The claim used to judge controls: the audit's, or pure DP if that is not in epsilon.

    A control asks whether anything is proved, and which share of the upper limit; epsilon can
    express that whatever the quantity of the audit's claim.
    """
    if isinstance(claim, PrivacyClaim):
        return claim
    return PrivacyClaim(epsilon=1.0, neighbours=claim.neighbours)


def judge(
    role: Role,
    bound: float,
    *,
    auc: float,
    highest: float,
    hidden: str,
    found: str,
    caught: str,
    missed: str,
) -> ControlOutcome:
    """Whether a control ended as it must.

    Args:
        role: Which control.
        bound: The largest bound of any attack on it.
        auc: AUC of that attack.
        highest: The largest epsilon that it could prove.
        hidden: The game's sentence about a null control in which nothing was found, in which
            "{bound}" is replaced by the bound and its upper limit, as in the others.
        found: The same, if something was.
        caught: The same about a positive control whose leak was found.
        missed: The same, if it was not.

    Returns:
        The result.
    """
    if role is Role.NULL_CONTROL:
        passed = bound == 0
        detail, shown = (hidden if passed else found), rounded_down(bound)
    else:
        passed = bound >= CAUGHT * highest
        detail = caught if passed else missed
        shown = f"{rounded_down(bound)} of {rounded_down(highest)}"
    return ControlOutcome(
        passed=passed,
        bound=bound,
        auc=auc,
        max_provable_epsilon=highest,
        detail=detail.replace("{bound}", f"bound {shown}"),
    )


def auc_by_chance(n_in: int, n_out: int) -> tuple[float, float]:
    """Between which limits an AUC lies in 95 % of cases if the scores say nothing.

    By the normal approximation of the rank-sum statistic without ties (Mann and Whitney 1947).

    Args:
        n_in: Scored trials of world in, at least 1.
        n_out: Scored trials of world out, at least 1.
    """
    half = 1.96 * math.sqrt((n_in + n_out + 1) / (12 * n_in * n_out))
    return max(0.0, 0.5 - half), min(1.0, 0.5 + half)


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


def control_check(role: Role, outcome: ControlOutcome, *, ran: bool) -> Check:
    """A control as a check: if it fails, the run is invalid, unless it was run nevertheless.

    A leak that attacks missed in the positive control does not invalidate what they prove; finding
    nothing says less.

    Args:
        role: Which control.
        outcome: How it ended.
        ran: Whether the audit's own trials were run after it.
    """
    consequence = Consequence.WEAKENS if ran else Consequence.INVALIDATES
    return Check(role.in_words, outcome.passed, outcome.detail, consequence)
