"""What is spent on keys that only one world has: the chance that the release shows them.

Code that adds noise to the counts of the keys that occur, and leaves out what is below a threshold,
draws once more in the world with a key of its own. All other answers are equal, so the releases
differ only where that draw shows the key. The chance of that is a delta, spent at any epsilon. It
is exact: the draw is moved over places, bisection finds where the release changes, and the tail of
the noise beyond is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from dpaudit.plugins.protocols import World
from dpaudit.replaying.fits import Fits
from dpaudit.replaying.laws import FloatArray, NoiseLaw
from dpaudit.replaying.messages import are_same
from dpaudit.replaying.orders import HIDDEN, PLACES, WIDE, find_change
from dpaudit.replaying.processes import WORLDS
from dpaudit.replaying.release import are_rows, differing_places
from dpaudit.replaying.transcript import FitRelease, Question, Site, Transcript

_NARROW: Final = 1e-10
"""Width of the interval in which the release changes, in scales."""
_FIRST: Final = 500
"""Fits with moved draws have numbers from here on."""
_MOST: Final = 8
"""With more draws of one world alone, their chances are not computed."""
Shows = Callable[[float], bool | None]
"""Whether the release changes if the noise of a draw is this; None if that is not known."""


class _LoneNoise(NamedTuple):
    """Noise that only world "in" draws.

    Attributes:
        key: The question that it is part of.
        element: Its place in the answer.
        size: Values of that answer.
        site: Where it is drawn.
        before: The value before noise.
        law: The law of the noise.
    """

    key: Question
    element: int
    size: int
    site: Site
    before: float
    law: NoiseLaw


def find_deltas(
    fits: Fits, pilots: Sequence[Transcript], *, is_hidden: bool, without: frozenset[str]
) -> dict[Site, float] | None:
    """The delta that each line spends on keys of world "in" alone.

    Args:
        fits: The replay's fits.
        pilots: Replays in lock-step, in which lone draws lie far below their values.
        is_hidden: Whether both worlds went on alike and released the same in these.
        without: Places of the release that differ between fits of the same table.

    Returns:
        The deltas by the line of the noise; None if they are not known.
    """
    each = [_noises_of(pilot) for pilot in pilots]
    noises = each[0]
    if noises is None or len(noises) > _MOST or any(not _agree(noises, own) for own in each[1:]):
        return None
    if not is_hidden:
        is_always_shown = len(noises) == 1 and _is_always_shown(fits, noises[0], without)
        return {noises[0].site: 1.0} if is_always_shown else None
    hides: dict[Site, float] = {}
    for place in range(len(noises)):
        chance = _chance_shown(fits, noises, place, without)
        if chance is None:
            return None
        site = noises[place].site
        with np.errstate(divide="ignore"):  # a threshold that hides nothing
            hides[site] = hides.get(site, 0.0) + float(np.log1p(-chance))
    return {site: float(-np.expm1(log_hidden)) for site, log_hidden in hides.items()}


def _noises_of(pilot: Transcript) -> list[_LoneNoise] | None:
    """The noise of the lone draws of a replay; None if a law is not known."""
    steps = {step.key: step for step in pilot.noisy}
    noises = []
    for draw in pilot.lone:
        step = steps[draw.key]
        if step.laws is None or step.is_lost or step.draws or pilot.charged_alone:
            return None
        size, before = step.answer.size, float(step.before.inside[draw.element])
        law = step.laws[0].element(draw.element, size)
        if not law.has_cdf:
            return None
        noises.append(_LoneNoise(draw.key, draw.element, size, step.site, before, law))
    return noises


def _agree(noises: Sequence[_LoneNoise], others: Sequence[_LoneNoise] | None) -> bool:
    """Whether two replays have the same lone draws."""
    return (
        others is not None
        and [noise[:4] for noise in noises] == [noise[:4] for noise in others]
        and all(
            type(noise.law) is type(other.law)
            and are_same(noise.before, other.before)
            and bool(np.all(noise.law.equals(other.law)))
            for noise, other in zip(noises, others, strict=True)
        )
    )


def _chance_shown(
    fits: Fits, noises: Sequence[_LoneNoise], at: int, without: frozenset[str]
) -> float | None:
    """The chance that one of some lone draws changes the release.

    None unless the release changes once, and at the same place in all fits.
    """
    law = noises[at].law
    shows, *others = (
        _shows(fits, noises, at, number, without) for number in range(_FIRST, _FIRST + len(WIDE))
    )
    places = np.unique(law.place(np.array(PLACES))).tolist()
    shown = [shows(noise) for noise in places]
    if None in shown or shown != sorted(map(bool, shown)) or any(shown[:2]):
        return None
    if not shown[-1]:
        return 0.0
    first = shown.index(True)
    interval = find_change(shows, places[first - 1], places[first], law, width=_NARROW)
    if interval is None:
        return None
    low, high = interval
    if any(other(low) is not False or other(high) is not True for other in others):
        return None
    return float(np.exp(law.log_tail(np.asarray(high), above=True)))


def _shows(
    fits: Fits, noises: Sequence[_LoneNoise], at: int, number: int, without: frozenset[str]
) -> Shows:
    """Whether a draw changes the release of a fit, compared with that of a hidden draw."""
    low = [_hidden(noise) for noise in noises]
    hidden = _fit(fits, noises, low, number)

    def shows(moved: float) -> bool | None:
        shown = _fit(fits, noises, [*low[:at], moved, *low[at + 1 :]], number)
        first, second = (fits.release_of(fit, World.IN) for fit in (hidden, shown))
        # a key that changes what gets noise later may be hidden by that noise
        if first is None or second is None or not _draw_alike(hidden, shown):
            return None
        return bool(set(differing_places(first, second)) - without)

    return shows


def _draw_alike(first: Transcript, second: Transcript) -> bool:
    """Whether two fits add noise to the same values."""
    return [step.key for step in first.noisy] == [step.key for step in second.noisy] and all(
        are_same(step.before.inside, other.before.inside)
        for step, other in zip(first.noisy, second.noisy, strict=True)
    )


def _hidden(noise: _LoneNoise) -> float:
    """Noise below any threshold."""
    return float(noise.law.place(np.asarray(HIDDEN)))


def _fit(
    fits: Fits, noises: Sequence[_LoneNoise], moved: Sequence[float], number: int
) -> Transcript:
    """A fit of world "in" with this noise in its lone draws, and all else as drawn."""
    values: dict[Question, FloatArray] = {}
    for noise, own in zip(noises, moved, strict=True):
        answer = values.setdefault(noise.key, np.full(noise.size, np.nan))
        answer[noise.element] = noise.before + own
    wide = WIDE[(number - _FIRST) % len(WIDE)]
    return fits.alone(World.IN, number, values=values, wide=wide)


def _is_always_shown(fits: Fits, noise: _LoneNoise, without: frozenset[str]) -> bool:
    """Whether places and sizes of what is released differ between the worlds wherever it lies.

    Values do not count: the noise of other answers may protect them.
    """
    outlines: tuple[set[object], set[object]] = set(), set()
    for at, scales in enumerate(PLACES):
        number = _FIRST + len(WIDE) * (1 + at)
        moved = [float(noise.law.place(np.asarray(scales)))]
        alone = _fit(fits, [noise], moved, number), fits.alone(World.OUT, number)
        for world, fit, outline in zip(WORLDS, alone, outlines, strict=True):
            release = fits.release_of(fit, world)
            outline.add(None if release is None else _outline(release, without))
    is_known = all(len(outline) == 1 and None not in outline for outline in outlines)
    return is_known and outlines[0] != outlines[1]


def _outline(release: FitRelease, without: frozenset[str]) -> frozenset[tuple[str, int]]:
    """The places of a fitted model, and how many numbers each has."""
    return frozenset(
        (place, release.numbers[place].size if place in release.numbers else 0)
        for place in release.digests
        if place not in without and not are_rows(place)
    )
