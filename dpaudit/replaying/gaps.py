"""Uniform draws from one of several ranges: quantiles by the exponential mechanism over gaps.

Such code picks a gap between sorted values of the table, and draws a number from it. Gaps have
other ends in the other world, and may be more or fewer, so that the number of the gap cannot be the
answer: it is the number drawn, whose density in each world is known once the ends of all gaps are.
They are found by fits of each world alone, one for each gap (Smith 2011, Algorithm 2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpaudit.plugins.protocols import World
from dpaudit.replaying.laws import FloatArray
from dpaudit.replaying.messages import are_same
from dpaudit.replaying.transcript import Pair, Question, Transcript

FitAlone = Callable[[World, Mapping[Question, tuple[int, ...]]], Transcript]
"""A fit of one world whose choices are these, and all else as drawn, in every fit alike."""


@dataclass(frozen=True, kw_only=True)
class Gaps:
    """The ranges of a uniform draw in one world.

    Attributes:
        chances: The probability of each.
        lows: Their lower ends; NaN for one that is never picked.
        highs: Their upper ends.
    """

    chances: FloatArray
    lows: FloatArray
    highs: FloatArray

    @property
    def density(self) -> FloatArray:
        """The density of the draw within each range."""
        return np.divide(
            self.chances,
            self.highs - self.lows,
            out=np.zeros_like(self.chances),
            where=self.chances > 0,
        )

    def chances_of(self, edges: FloatArray) -> FloatArray:
        """The probability of the draw to lie between each edge and the next."""
        some = self.chances > 0
        lows, highs = self.lows[some, None], self.highs[some, None]
        shares = np.minimum(highs, edges[1:]) - np.maximum(lows, edges[:-1])
        return np.asarray(self.density[some] @ np.maximum(shares, 0.0))

    def draw(self, rng: np.random.Generator, share: float) -> float:
        """A value at this share of the way through a range that is drawn."""
        place = int(rng.choice(self.chances.size, p=self.chances))
        return float(self.lows[place] + share * (self.highs[place] - self.lows[place]))

    def place_of(self, value: float) -> int:
        """The range from which a value was drawn most likely; any if it lies in none."""
        return int(np.argmax(self.density * ((self.lows <= value) & (value < self.highs))))

    def ends_of(self, value: float) -> FloatArray:
        """The ends of that range."""
        place = self.place_of(value)
        return np.array([self.lows[place], self.highs[place]])


@dataclass(frozen=True)
class GapDraw:
    """A uniform draw from a range that is picked before.

    Attributes:
        question: The question for its value.
        gaps: Its ranges in world "in" and in world "out".
    """

    question: Question
    gaps: tuple[Gaps, Gaps]

    @cached_property
    def edges(self) -> FloatArray:
        """The ends of all ranges, between which both densities are constant."""
        ends = np.concatenate([[*gaps.lows, *gaps.highs] for gaps in self.gaps])
        return np.unique(ends[~np.isnan(ends)])

    @cached_property
    def table(self) -> Pair:
        """The probability of the draw to lie between each edge and the next, in each world."""
        return Pair(*(gaps.chances_of(self.edges) for gaps in self.gaps))


def find_gap_draws(fit: FitAlone, *, most: int) -> dict[Question, GapDraw]:
    """The draws from ranges that depend on data, by the question that picks the range.

    Args:
        fit: Makes a fit.
        most: Fits that may be made.
    """
    first = {world: fit(world, {}) for world in World}
    if not all(transcript.ranges for transcript in first.values()):
        return {}
    draws = {}
    for question in first[World.IN].picked:
        tables = {world: own.picked.get(question, np.zeros(0)) for world, own in first.items()}
        needed = sum(map(np.count_nonzero, tables.values()))
        if needed > most or are_same(tables[World.IN], tables[World.OUT]):
            continue
        inside = _sweep(fit, World.IN, question, tables[World.IN])
        most -= needed if inside else 2
        outside = _sweep(fit, World.OUT, question, tables[World.OUT]) if inside else None
        if inside and outside and inside[0] == outside[0]:
            draws[question] = GapDraw(inside[0], (inside[1], outside[1]))
    return draws


def _sweep(
    fit: FitAlone, world: World, question: Question, chances: FloatArray
) -> tuple[Question, Gaps] | None:
    """The draw whose range follows a choice, and its ranges; None if there is not just one."""
    places, ranges = np.flatnonzero(chances), list[Mapping[Question, tuple[float, float]]]()
    for place in places.tolist():
        transcript = fit(world, {question: (place,)})
        ranges.append(transcript.ranges)
        if transcript.failures != (None, None) or ranges[-1].keys() != ranges[0].keys():
            return None
        if len(ranges) == 2 and ranges[0] == ranges[1]:
            return None  # no range follows this choice
    moved = [draw for draw in ranges[0] if len({own[draw] for own in ranges}) > 1]
    if len(moved) != 1:
        return None
    ends = np.full((2, chances.size), np.nan)
    ends[:, places] = np.transpose([own[moved[0]] for own in ranges])
    if not np.all(ends[0, places] < ends[1, places]):
        return None
    return moved[0], Gaps(chances=chances, lows=ends[0], highs=ends[1])
