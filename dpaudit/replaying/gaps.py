"""Uniform draws from one of several ranges: quantiles by the exponential mechanism over gaps.

Such code picks a gap between sorted values of the table, and draws a number from it. Gaps have
other ends in the other world, and may be more or fewer, so that the number of the gap cannot be the
answer: it is the number drawn, whose density in each world is known once the ends of all gaps are.
They are found by fits of each world alone, one for each gap (Smith 2011).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpaudit.plugins.protocols import World
from dpaudit.replaying.laws import FloatArray
from dpaudit.replaying.messages import are_same
from dpaudit.replaying.selections import Scores, is_integrable, log_largest
from dpaudit.replaying.transcript import Pair, Question, SelectionKind, Transcript

FitAlone = Callable[[World, Mapping[Question, tuple[int, ...]]], Transcript]
"""A fit of one world whose choices are these, and all else as drawn, in every fit alike."""


@dataclass(frozen=True, kw_only=True)
class Gaps:
    """The ranges of a uniform draw in one world.

    Attributes:
        given: What their probabilities follow from: these, or the scores before noise.
        chances: The probability of each.
        lows: Their lower ends; NaN for one that is never picked.
        highs: Their upper ends.
    """

    given: FloatArray
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
        """The range from which a value was drawn most likely; the likeliest if it lies in none."""
        inside = self.density * ((self.lows <= value) & (value <= self.highs))  # it may be rounded
        return int(np.argmax(inside if inside.any() else self.chances))

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


class _Picks(NamedTuple):
    """How a range is picked: what its probabilities follow from, and these."""

    given: FloatArray
    chances: FloatArray


def find_gap_draws(fit: FitAlone, *, most: int) -> dict[Question, GapDraw]:
    """The draws from ranges that depend on data, by the question that picks the range.

    Args:
        fit: Makes a fit.
        most: Fits that may be made.
    """
    first = {world: fit(world, {}) for world in World}
    if not all(transcript.ranges for transcript in first.values()):
        return {}
    inside, outside = (_find_picks(first[world]) for world in World)
    draws = {}
    for question in [question for question in inside if question in outside]:
        picks = {World.IN: inside[question], World.OUT: outside[question]}
        needed = sum(int(np.count_nonzero(own.chances)) for own in picks.values())
        if needed > most or are_same(inside[question].given, outside[question].given):
            continue
        swept = _sweep(fit, World.IN, question, picks[World.IN])
        most -= needed if swept else 2
        other = _sweep(fit, World.OUT, question, picks[World.OUT]) if swept else None
        if swept and other and swept[0] == other[0]:
            draws[question] = GapDraw(swept[0], (swept[1], other[1]))
    return draws


def _find_picks(transcript: Transcript) -> dict[Question, _Picks]:
    """The choices of a fit alone, and the largest scores that are used for nothing else."""
    picks = {question: _Picks(own, own) for question, own in transcript.picked.items()}
    for selection in transcript.selections:
        numbers = selection.numbers
        is_plain = np.all(selection.factor == 1) and not np.any(selection.offset)
        if selection.kind is not SelectionKind.LARGEST or not is_plain:
            continue
        for step in transcript.noisy:
            is_alone = np.array_equal(step.numbers, numbers) and not step.draws and not step.is_lost
            if not is_alone or step.laws is None or not is_integrable(step.laws[0]):
                continue
            logs = log_largest(Scores(step.before.inside, step.laws[0]))
            if logs is not None and transcript.released.isdisjoint(numbers.tolist()):
                picks[step.key] = _Picks(step.before.inside, np.exp(logs))
    return picks


def _sweep(
    fit: FitAlone, world: World, question: Question, picks: _Picks
) -> tuple[Question, Gaps] | None:
    """The draw whose range follows a choice, and its ranges; None if there is not just one."""
    chances = picks.chances
    places, ranges = np.flatnonzero(chances), list[Mapping[Question, tuple[float, float]]]()
    for place in places.tolist():
        transcript = fit(world, {question: (place,)})
        ranges.append(transcript.ranges)
        if transcript.failures != (None, None) or ranges[-1].keys() != ranges[0].keys():
            return None
        if len(ranges) == 2 and ranges[0] == ranges[1]:
            return None  # no range follows this choice
    moved = [
        draw for draw in ranges[0] if len({own[draw] for own in ranges}) > 1 or places.size == 1
    ]
    if len(moved) != 1:
        return None
    ends = np.full((2, chances.size), np.nan)
    ends[:, places] = np.transpose([own[moved[0]] for own in ranges])
    if not np.all(ends[0, places] < ends[1, places]):
        return None
    return moved[0], Gaps(given=picks.given, chances=chances, lows=ends[0], highs=ends[1])
