"""Checks that the records' own coins decide membership in a sub-sample and nothing else.

The loss of a mixture rests on two conditions: with its coin "out" the target leaves no trace, so
world "in" behaves as world "out"; and a step depends only on the latest coin before it. Both are
checked by repeating a replay's answers with other coins. Also, the values of other records whose
coins are "out" must not matter: otherwise their coins might be noise, which protects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pandas as pd

from dpaudit.replaying.lockstep import Order, same
from dpaudit.replaying.transcript import NoisyStep, Transcript

_LONG: Final = 61
"""Length of a random pattern of coins, which then repeats."""


def other_orders(
    transcript: Transcript,
    order: Order,
    count: int,
    target: Sequence[int],
    rng: np.random.Generator,
) -> Iterator[Order]:
    """Replays that must not differ further if coins decide membership only.

    First the target's coins are all "out", then each outcome follows each other, then they are
    random. At last the coins of one half of the other records are "out", then those of the other.

    Args:
        transcript: A replay in which the target's coins are all "in".
        order: How it was drawn.
        count: Number of records.
        target: The places of the target.
        rng: Draws patterns and halves.
    """
    tosses = len(transcript.tosses)
    patterns: list[tuple[bool, ...]] = [(False,)]
    if tosses > 1:
        patterns += [(True, False), (False, True)]
    if tosses > 2:
        patterns.append(tuple(map(bool, rng.integers(0, 2, size=_LONG))))
    for falls in patterns:
        if transcript.parting is None or not any(falls):
            yield order._replace(falls=falls, given=transcript.given)
    others = rng.permutation(np.delete(np.arange(count), target)).tolist()
    for half in (others[::2], others[1::2]):
        if half:
            yield order._replace(falls=(False,), rows=tuple(sorted(half)))


def with_other_rows(
    table: pd.DataFrame, rows: Sequence[int], rng: np.random.Generator
) -> pd.DataFrame:
    """A table with some rows replaced by other rows of it.

    Args:
        table: The table.
        rows: Places of the rows that are replaced.
        rng: Picks the replacements.
    """
    places = np.arange(len(table))
    places[list(rows)] = rng.integers(0, len(table), size=len(rows))
    return table.iloc[places].set_axis(table.index)


def follows_coins(first: Transcript, second: Transcript) -> bool:
    """Whether the same steps move if the target's coin is "in", and none otherwise.

    Args:
        first: A replay with all of the target's coins "in".
        second: The same answers with other coins.
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
    """Whether both have equally many answers, with the same uses."""
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
