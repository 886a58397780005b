"""When a sequential audit refits its attack."""

from __future__ import annotations

from typing import NamedTuple

from dpaudit.errors import SettingsError


class ScoredBlock(NamedTuple):
    """Trials that one frozen attack bets on; trials are numbered from 0.

    Attributes:
        start: The attack is fitted on the trials before this one, and bets from it on.
        stop: The first trial that it does not bet on.
    """

    start: int
    stop: int


def refit_schedule(cap: int, *, first: int) -> tuple[ScoredBlock, ...]:
    """Blocks of trials between refits of the attack, each about half of the trials before it.

    The first `first` trials are fitted on and never bet on. Every later trial is bet on once, by
    the attack fitted on the trials before its block, and is fitted on from the next block on.

    Why the e-process stays valid while the attack changes: a bet must be *predictable*. Given all
    trials before the block, the attack is a fixed function of the output of a trial yet to come,
    which is independent of it; the coin of that trial is guessed right, given its output, with no
    larger probability than the claim allows, whatever function it is. All of classifier, features
    and odds must hence come from trials before `start`, and bets once made are never revised.
    Blocks are multiples of `first` that grow by half: from the third one on the attack is fitted on
    two thirds of the trials at hand at any time, and few fits are enough.

    Args:
        cap: Trials at most, those that the first attack is fitted on included.
        first: Trials that the first attack is fitted on, at least 1.

    Returns:
        Adjacent blocks from `first` to `cap`.

    Raises:
        SettingsError: If first is below 1, or the cap leaves no trial to bet on.
    """
    if first < 1:
        raise SettingsError(f"`first` is {first}; fit the first attack on at least 1 trial")
    if cap <= first:
        raise SettingsError(
            f"`cap` is {cap}; give more than the {first} trials that the first attack is fitted on"
        )
    blocks = []
    start = first
    while start < cap:
        stop = min(start + first * max(1, start // (2 * first)), cap)
        blocks.append(ScoredBlock(start, stop))
        start = stop
    return tuple(blocks)
