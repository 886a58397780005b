"""Changes of noisy numbers that show which of them count by themselves.

The loss of some numbers of an answer is the sum of their own losses, because each has noise of its
own. It bounds the loss of all that is released if what is released determines these numbers, and
which numbers these are does not depend on the answers (post-processing). Neither holds

- of a number that is released because it is the largest, nor of a gap between two: their laws
  are those of order statistics, not of one number's noise;
- of numbers that are released only in a sum, whose noise is that of all of them, or only as
  differences, to which a change of all of them alike adds nothing.

So a number counts only if a change of it alone shows above all other numbers that its line drew,
below them, and amid them: no selection by order reads one number in all three places. Several count
together only if changes that add up to zero show, as they do not in a sum or a mean, and equal
changes do, as they do not in differences or a softmax. The costliest must also show if another
number changes by as much the other way: it may be one of several shares of noise.

If some numbers of a line fail, those that do not may count without them. Then nothing must change
with the failing ones, however far they are moved: what is released is a function of the others
alone, and the failing ones drop out of its law. And in another replay the same numbers must show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from dpaudit.replaying.laws import FloatArray
from dpaudit.replaying.loss import loss_of
from dpaudit.replaying.sums import is_used, settled
from dpaudit.replaying.transcript import NoisyStep, Question, Site, Transcript, flat

Places = Mapping[Question, frozenset[int]]
"""Places of numbers in answers, by question."""

_SHARE: Final = 0.05
"""A number with a smaller share of its line's loss is not checked by itself."""
_NEAR: Final = 3
"""Redraws of a number near its value before noise, where a limit may not hide a change."""
_PARTNERS: Final = 12
"""Numbers of other answers that one number is paired with."""
_BEYOND: Final = 100.0
"""How far a number is moved beyond all others, in scales of the noise."""


class NoisyNumbers:
    """Noisy numbers of a replay that may be selected from, or summed, together.

    Attributes:
        keys: The questions of their answers; of sums of several answers the question of one, which
            moves the sum.
        are_plain: Whether none counts by a sum, a ratio or a selection that replay follows.
        are_sums: Whether some are sums of answers, or of one and more noise.
    """

    def __init__(
        self, transcript: Transcript, with_levers: Sequence[tuple[Question, NoisyStep]]
    ) -> None:
        self.keys = [key for key, _ in with_levers]
        self._steps = steps = [step for _, step in with_levers]
        self._given = transcript.given
        self._ends = np.cumsum([step.answer.size for step in steps])
        self._moved = self._joined([flat(transcript.given[key]) for key in self.keys])
        asked = {id(step) for step in transcript.noisy}
        made = [id(step) not in asked for step in steps]
        self._values = self._joined(
            [
                flat(step.answer if is_sum else transcript.given[key])
                for key, step, is_sum in zip(self.keys, steps, made, strict=True)
            ]
        )
        self.are_sums = any(made)
        self._width = max((step.laws[0].width for step in steps), default=0.0)
        self._each = np.abs(np.nan_to_num(self._joined([loss_of(one) for one in steps])))
        numbers = self._joined([step.numbers for step in steps]).astype(int)
        summed = np.concatenate([np.zeros(0, dtype=int), *transcript.summed])
        # of numbers that are compared, or sorted, one alone may be released; a largest has its law
        values = [one for one in transcript.selections if one.how == "value"]
        followed = is_used(numbers, replace(transcript, selections=values))
        alone = self._joined([np.full(one.answer.size, len(one.keys) == 1) for one in steps])
        followed |= np.isin(numbers, summed) & (alone > 0)
        self._followed = followed & ~transcript.are_released(numbers)
        self.are_plain = not self._followed.any()

    @classmethod
    def together_with(cls, transcript: Transcript, key: Question, site: Site) -> NoisyNumbers:
        """The numbers of an answer; if it is one number, those of all such answers of its line."""
        every = _with_levers(settled(transcript), site)
        own = [one for one in every if key in one[1].keys]
        if own and own[0][1].answer.size == 1:
            own = [one for one in every if one[1].answer.size == 1]
        return cls(transcript, own)

    @classmethod
    def of_line(cls, transcript: Transcript, site: Site) -> NoisyNumbers:
        """The numbers of all answers of a line."""
        return cls(transcript, _with_levers(settled(transcript), site))

    @staticmethod
    def _joined(arrays: list[Any]) -> FloatArray:
        return np.concatenate([np.zeros(0), *(np.atleast_1d(one) for one in arrays)])

    def __len__(self) -> int:
        return len(self._values)

    def place_of(self, number: int) -> tuple[Question, int]:
        """The question of a number and its place in the answer."""
        at = int(np.searchsorted(self._ends, number, side="right"))
        return self.keys[at], number - int(self._ends[at]) + self._steps[at].answer.size

    def places_of(self, numbers: list[int]) -> Places:
        """These numbers, by question."""
        found: dict[Question, frozenset[int]] = {}
        for key, place in map(self.place_of, numbers):
            found[key] = found.get(key, frozenset()) | {place}
        return found

    def is_among(self, number: int, places: Places) -> bool:
        """Whether a number is one of these."""
        key, place = self.place_of(number)
        return place in places.get(key, ())

    def costly(self) -> list[int]:
        """The numbers on which the loss rests, costliest first.

        None if it rests on one that is a whole answer: that a change of it shows is known.
        """
        ranked = np.argsort(-self._each, kind="stable")
        total = float(np.sum(self._each))
        found = [
            int(one)
            for one in ranked
            if self._each[one] > _SHARE * total and not self._followed[one]
        ]
        is_whole = len(found) == 1 and self._step_of(found[0]).answer.size == 1
        return [] if is_whole else found

    def ranked(self) -> list[int]:
        """All numbers that have a loss, costliest first."""
        return [int(one) for one in np.argsort(-self._each, kind="stable") if self._each[one]]

    def alone(self, number: int, size: float) -> Mapping[Question, FloatArray]:
        """A change of one number, by so many scales."""
        return self._split(np.where(np.arange(len(self)) == number, size * self._width, 0.0))

    def balanced(
        self, numbers: list[int], size: float, rng: np.random.Generator
    ) -> Mapping[Question, FloatArray]:
        """Changes of several numbers that add up to 0."""
        changes = np.resize([1.0, -1.0], len(numbers)) * rng.uniform(0.5, 1.0, len(numbers))
        moved = np.zeros(len(self))
        moved[numbers] = size * self._width * (changes - changes.mean())
        return self._split(moved)

    def partners(self, key: Question) -> list[list[int]]:
        """Pairs of the costliest number of an answer and others that it may be summed with.

        Shares of noise may be drawn one after another, or as arrays with one number for each sum.
        """
        at = self.keys.index(key)
        sizes = [step.answer.size for step in self._steps]
        starts = self._ends - sizes
        place = int(np.argmax(self._each[starts[at] : self._ends[at]]))
        own = int(starts[at]) + place
        others = [
            int(start) + place
            for start, size in zip(starts, sizes, strict=True)
            if size == sizes[at] and start != starts[at]
        ]
        others.sort(key=lambda other: abs(other - own))
        near = [other for other in (own - 1, own + 1) if starts[at] <= other < self._ends[at]]
        return [[own, other] for other in [*near, *others[:_PARTNERS]]]

    def equal(self, size: float) -> Mapping[Question, FloatArray]:
        """The same change of all numbers."""
        return self._split(np.full(len(self), size * self._width))

    def positions(
        self, number: int, rng: np.random.Generator
    ) -> Iterator[list[Mapping[Question, Any]]]:
        """Answers with a number above all others, below them and amid them.

        Either it is moved, or the others are: a limit on numbers may hide its change in one of
        these. Near its value before noise it is redrawn for the same reason, on either side.
        """
        own = self._step_of(number)
        place = self.place_of(number)[1]
        scales = np.resize([1.0, -1.0], _NEAR) * rng.uniform(0.0, 1.0, _NEAR)
        near = own.before.inside[place] + own.laws[0].width * scales
        near = np.append(self._values[number], np.rint(near) if own.laws[0].whole else near)
        far = np.rint(_BEYOND * self._width + 2.0 * np.ptp(self._values)) + 1.0
        others = np.delete(np.arange(len(self)), number)

        def answers(value: float, signs: Any) -> Mapping[Question, Any]:
            moved = self._values.copy()
            moved[others] += far * signs
            moved[number] = value
            return {**self._given, **self._by(moved)}

        top, bottom = float(self._values.max()) + far, float(self._values.min()) - far
        yield [answers(top, 0.0), *(answers(one, -1.0) for one in near)]
        yield [*(answers(one, 1.0) for one in near), answers(bottom, 0.0)]
        if len(others) > 1:
            yield [answers(one, np.resize([1.0, -1.0], len(others))) for one in near]

    def exchanged(self) -> Mapping[Question, Any]:
        """The answers with each number in the place of the next one."""
        return {**self._given, **self._by(np.roll(self._values, 1))}

    def moved_far(self, numbers: list[int], rng: np.random.Generator) -> Iterator[Any]:
        """The answers with some numbers moved far, up and down."""
        far = np.rint(_BEYOND * self._width + 2.0 * np.ptp(self._values)) + 1.0
        signs = rng.permutation(np.resize([1.0, -1.0], len(numbers)))
        for by in (far, -far, far * signs, -far * signs):
            moved = self._values.copy()
            moved[numbers] += by
            yield {**self._given, **self._by(moved)}

    def _step_of(self, number: int) -> NoisyStep:
        return self._steps[int(np.searchsorted(self._ends, number, side="right"))]

    def _by(self, values: FloatArray) -> dict[Question, FloatArray]:
        """The answers that give all numbers these values, by question."""
        return self._split(self._moved + (values - self._values))

    def _split(self, each: FloatArray) -> dict[Question, FloatArray]:
        return dict(zip(self.keys, np.split(each, self._ends[:-1]), strict=True))


def _with_levers(transcript: Transcript, site: Site) -> list[tuple[Question, NoisyStep]]:
    """The steps of a line of which each number can be moved, by its answer to the first question.

    That is a question of the step with an answer for each of its numbers.
    """
    found = []
    for step in transcript.noisy:
        given = {key: np.size(transcript.given.get(key, ())) for key in sorted(step.keys)}
        lever = next((key for key, size in given.items() if size == step.answer.size), None)
        if step.site == site and lever is not None:
            found.append((lever, step))
    return found
