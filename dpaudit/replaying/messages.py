"""What messages of the worlds mean: laws, shared draws, selections, releases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpaudit.replaying.laws import FloatArray, IntArray, NoiseLaw, Share, law_of
from dpaudit.replaying.transcript import (
    AnswerSelection,
    FitRelease,
    Pair,
    SelectionKind,
    Site,
    flat,
    numbers_of,
)

ROUNDING: Final = 1e-9
"""Relative difference up to which values of both worlds count as equal."""
Comparison = tuple[float, float, bool]
"""The chances in both worlds that a uniform draw lies below its limit, and whether it does."""


class Draw(NamedTuple):
    """One draw of noise for each answer of a step, as a world reports it.

    Attributes:
        share: Its law and its numbers; flat.
        ids: The numbers of the draws.
        seed: What seeded the generator, if known.
        site: The line that draws.
        is_lost: As in `NoisyStep`.
    """

    share: Share
    ids: IntArray
    seed: str | None
    site: Site
    is_lost: bool

    @classmethod
    def of(cls, part: Mapping[str, Any]) -> Draw:
        """A draw of a message."""
        share = Share(part["law"], *(flat(part[name]) for name in Share._fields[1:]))
        ids, site = numbers_of(part["ids"]), Site(*part["site"])
        return cls(share, ids, part["seed"], site, part["lost"])

    def take(self, order: IntArray, factor: FloatArray) -> Draw:
        """The draws at some places, multiplied."""
        numbers = [np.broadcast_to(values, order.size)[order] for values in self.share[1:]]
        share = Share(self.share.law, numbers[0] * factor, *numbers[1:])
        return self._replace(share=share, ids=np.broadcast_to(self.ids, order.size)[order])


class Note(NamedTuple):
    """What a world notes: it is compared with what the other one notes.

    Attributes:
        kind: What it is of.
        site: Its line.
        digest: What is equal as long as the worlds are.
        more: What is passed on unchanged.
    """

    kind: str
    site: Site
    digest: str
    more: Mapping[str, Any]

    @classmethod
    def of(cls, kind: str, where: Sequence[Any], digest: str, more: Mapping[str, Any]) -> Note:
        """A note of a message."""
        return cls(kind, Site(*where), digest, more)


def table_of(comparisons: Sequence[Comparison]) -> Pair:
    """The probabilities of where a uniform draw lies if it is compared several times.

    Each comparison but the last rules an interval out; the draw lies in what the last one leaves.
    """
    sides: list[FloatArray] = []
    for world in (0, 1):
        left, chances = 1.0, []
        for comparison in comparisons:
            taken = comparison[world] if comparison[2] else 1.0 - comparison[world]
            chances.append(left * (1.0 - taken))
            left *= taken
        sides.append(np.array([*chances, left]))
    return Pair(*sides)


def release_of(message: Mapping[str, Any]) -> FitRelease:
    """What a fit released."""
    listed = {name: tuple(message[name]) for name in ("left_out", "generators")}
    return FitRelease(numbers=message["numbers"], digests=message["digests"], **listed)


def draws_of(draws: Sequence[Draw], size: int) -> tuple[tuple[tuple[int, float], ...], ...]:
    """The draws of each answer and their factors, times their scales."""
    ids = [np.broadcast_to(draw.ids, size) for draw in draws]
    loads = [np.broadcast_to(draw.share.factor * draw.share.scale, size) for draw in draws]
    return tuple(
        tuple((int(numbers[at]), float(load[at])) for numbers, load in zip(ids, loads, strict=True))
        for at in range(size)
    )


def selection_of(site: Site, more: Mapping[str, Any], *, is_equal: bool) -> AnswerSelection:
    """A selection, from its note."""
    other = more.get("limit_ids")
    return AnswerSelection(
        site=site,
        kind=SelectionKind(more["how"]),
        numbers=numbers_of(more["ids"]),
        factor=flat(more["factor"]),
        offset=flat(more["offset"]),
        outcome=numbers_of(more["outcome"]),
        limits=None if more.get("limits") is None else flat(more["limits"]),
        limit_numbers=None if other is None else numbers_of(other),
        limit_factor=None if other is None else flat(more["limit_factor"]),
        is_equal=is_equal,
    )


def law_of_draws(draws: Sequence[Draw]) -> NoiseLaw | None:
    """The noise law of one world's step."""
    return law_of([draw.share for draw in draws])


def differ_in_noise(draws: Sequence[Draw], others: Sequence[Draw], size: int) -> NDArray[np.bool_]:
    """Whether the noise of each answer of a step has other parameters in the other world."""
    laws = [[draw.share.law for draw in own] for own in (draws, others)]
    differs = np.full(size, laws[0] != laws[1])
    for pair in zip(draws, others, strict=False):
        own, its = ((share.factor * share.scale, *share[3:]) for share, *_ in pair)
        for first, second in zip(own, its, strict=True):
            differs |= ~np.isclose(first, second, rtol=ROUNDING, atol=0.0, equal_nan=True)
    return differs


def are_same(first: Any, second: Any) -> bool:
    """Whether two values are equal up to rounding."""
    if np.shape(first) != np.shape(second):
        return False
    if np.asarray(first).dtype == np.uint8:
        return bool(np.array_equal(first, second))
    return bool(np.allclose(first, second, rtol=ROUNDING, atol=0.0, equal_nan=True))


def lone_places(longer: FloatArray, shorter: FloatArray) -> range:
    """The possible places of the value that only the longer sequence has; none if more differs.

    These are several where its neighbours are equal to it.
    """
    if longer.ndim != 1 or shorter.ndim != 1 or longer.size != shorter.size + 1:
        return range(0)
    last = int(np.argmax(np.append(longer[:-1] != shorter, True)))
    if not np.array_equal(np.delete(longer, last), shorter):
        return range(0)
    others = np.flatnonzero(longer[: last + 1] != longer[last])
    return range(int(others[-1]) + 1 if others.size else 0, last + 1)


def lone_elements(longer: Mapping[str, Any], shorter: Mapping[str, Any]) -> range:
    """The possible places of the value that only the longer of two steps has.

    None if another value or noise parameter differs, or a law is not known.
    """
    places = lone_places(np.asarray(longer["before"]), np.asarray(shorter["before"]))
    draws = longer["parts"], shorter["parts"]
    if not places or law_of_draws(draws[0]) is None or len(draws[0]) != len(draws[1]):
        return range(0)
    for draw, other in zip(*draws, strict=True):
        same = (
            np.array_equal(np.delete(values, places[-1]), its)
            for values, its in zip(draw.share[1:], other.share[1:], strict=True)
        )
        if draw.share.law != other.share.law or draw.is_lost or not all(same):
            return range(0)
    return places


def as_text(value: Any) -> str:
    """A value in a few characters."""
    values = np.asarray(value)
    if values.dtype == np.uint8:
        return "another value"
    if values.size == 1:
        return f"{float(values.ravel()[0]):.6g}"
    some = ", ".join(f"{float(number):.4g}" for number in values.ravel()[:3])
    return f"[{some}{', ...' if values.size > 3 else ''}] ({values.size} numbers)"
