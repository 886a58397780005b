"""Whether the target's own coins decide that it is in a sub-sample, and nothing else.

The loss of a mixture rests on this: with its coin "out" the target leaves no trace, so that world
"in" does what world "out" does, and a step depends on the coin that fell last before it alone.
Both are seen by giving a replay's answers again while the coins fall otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from dpaudit.replaying.lockstep import Order, same
from dpaudit.replaying.transcript import NoisyStep, Transcript

_LONG: Final = 61
"""Coins of a random pattern, after which it begins again."""


def other_falls(tosses: int, rng: np.random.Generator) -> Iterator[tuple[bool, ...]]:
    """Ways in which coins fall otherwise than all "in": each after each other way, and by chance.

    Args:
        tosses: How many coins there are.
        rng: Draws.
    """
    yield (False,)
    if tosses > 1:
        yield True, False
        yield False, True
    if tosses > 2:
        yield tuple(map(bool, rng.integers(0, 2, size=_LONG)))


def is_subsample(
    transcript: Transcript,
    order: Order,
    play: Callable[[Order], Transcript],
    rng: np.random.Generator,
) -> bool:
    """Whether all steps of a replay are as they must be, however the target's coins fall.

    Args:
        transcript: The replay; the target's coins are all "in".
        order: How it was drawn.
        play: Plays in both worlds.
        rng: Draws patterns of coins.
    """
    for falls in other_falls(len(transcript.tosses), rng):
        again = play(order._replace(falls=falls, given=transcript.given))
        if transcript.parting is not None and any(falls):
            continue
        if not follows_coins(transcript, again):
            return False
    return True


def follows_coins(first: Transcript, second: Transcript) -> bool:
    """Whether steps move where the target's coin is "in", as they did, and nowhere else.

    Args:
        first: A replay with all of the target's coins "in".
        second: The same answers, and coins that fall otherwise.
    """
    shared = len(first.noisy)
    if second.parting is not None or len(second.noisy) < shared:
        return False
    if first.parting is None and not _alike_in_use(first, second):
        return False
    for one, two in zip(first.noisy, second.noisy[:shared], strict=True):
        inside = 0 if two.toss is None or second.tosses[two.toss].inside else 1
        if one.site != two.site or one.toss != two.toss:
            return False
        for world, place in ((0, inside), (1, 1)):
            if not same(one.before[place], two.before[world]) or not _same_law(
                one, place, two, world
            ):
                return False
    if any(not same(*step.before) and step.toss is not None for step in second.noisy[shared:]):
        return False
    expected = [one for one in first.choices if one.toss is None or second.tosses[one.toss].inside]
    return len(expected) == len(second.choices) and all(
        one.site == two.site
        and same(one.table.inside, two.table.inside)
        and same(one.table.outside, two.table.outside)
        for one, two in zip(expected, second.choices, strict=True)
    )


def leaves_no_trace(transcript: Transcript) -> bool:
    """Whether both worlds did the same, with a record's coins all "out"."""
    return (
        bool(transcript.tosses)
        and transcript.parting is None
        and not transcript.choices
        and all(same(*step.before) and _same_law(step, 0, step, 1) for step in transcript.noisy)
    )


def _alike_in_use(first: Transcript, second: Transcript) -> bool:
    """Whether as many answers were given, and used alike."""
    released = [
        np.sort(np.concatenate([np.zeros(0, dtype=int), *one.released])) for one in (first, second)
    ]
    return (
        len(first.noisy) == len(second.noisy)
        and len(first.tosses) == len(second.tosses)
        and np.array_equal(released[0], released[1])
        and len(first.selections) == len(second.selections)
        and all(
            one.site == two.site and np.array_equal(one.outcome, two.outcome)
            for one, two in zip(first.selections, second.selections, strict=True)
        )
    )


def _same_law(first: NoisyStep, place: int, second: NoisyStep, world: int) -> bool:
    laws = first.laws[place], second.laws[world]
    return type(laws[0]) is type(laws[1]) and all(
        same(value, vars(laws[1])[name]) for name, value in vars(laws[0]).items()
    )
