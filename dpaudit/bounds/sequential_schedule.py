"""When a sequential audit refits its attack."""

from __future__ import annotations

from typing import NamedTuple

from dpaudit.errors import SettingsError


class ScoredBlock(NamedTuple):
    """Pairs that one frozen attack scores; pairs are numbered from 0.

    Attributes:
        start: The attack is fitted on the pairs before this one, and scores from it on.
        stop: The first pair that it does not score.
    """

    start: int
    stop: int


def refit_schedule(cap: int, *, first: int = 8) -> tuple[ScoredBlock, ...]:
    """Blocks of pairs between refits of the attack, each about half of the pairs before it.

    The first `first` pairs are fitted on and never scored. Every later pair is scored once, by
    the attack fitted on the pairs before its block, and is fitted on from the next block on.

    Why the e-process stays valid while the attack changes: a bet must be *predictable*. Given all
    trials before the block, the attack is a fixed function, and the trials of a pair yet to come
    are independent of it. By post-processing its error rates on that pair obey the claim,
    whatever function it is, so that the factor by which the wealth grows is expected to be at
    most 1 given the past; the product of such factors is an e-process. All of classifier,
    features, threshold and direction must hence come from pairs before `start`, and guesses once
    made are never revised. Blocks are multiples of `first` that grow by half: from the third one on
    the attack is fitted on two thirds of the pairs at hand at any time, and few fits are enough.

    Args:
        cap: Pairs at most, fitting pairs included.
        first: Pairs that the first attack is fitted on, at least 1.

    Returns:
        Adjacent blocks from `first` to `cap`.

    Raises:
        SettingsError: If first is below 1, or the cap leaves no pair to score.
    """
    if first < 1:
        raise SettingsError(f"`first` is {first}; fit the first attack on at least 1 pair")
    if cap <= first:
        raise SettingsError(
            f"`cap` is {cap}; give more than the {first} pairs that the first attack is fitted on"
        )
    blocks = []
    start = first
    while start < cap:
        stop = min(start + first * max(1, start // (2 * first)), cap)
        blocks.append(ScoredBlock(start, stop))
        start = stop
    return tuple(blocks)
