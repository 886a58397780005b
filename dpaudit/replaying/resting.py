"""What a violation rests on: answers that influence what is released, changed one by one.

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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

import numpy as np

from dpaudit.plugins.protocols import World
from dpaudit.replaying.checks import APART, CHANGED, again
from dpaudit.replaying.guarantee import EXACT
from dpaudit.replaying.influence import (
    Suspect,
    differs,
    has_influence,
    near_answers,
    other_answers,
    other_bits,
    size_of_steps,
    suspects,
)
from dpaudit.replaying.judge import DrawPlan, ProvedByReplays, proved_by
from dpaudit.replaying.laws import FloatArray
from dpaudit.replaying.lockstep import NUDGE, Order, Played
from dpaudit.replaying.loss import NOTHING_SHOWN, ShownAnswers, loss_of, losses
from dpaudit.replaying.setting import ReplayFindings, ReplaySetting
from dpaudit.replaying.sums import is_used, settled
from dpaudit.replaying.transcript import NoisyStep, Question, Site, Transcript, flat, joined

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
_ELEMENTS: Final = 4
"""Numbers of one line that are checked one by one."""
_MOST_ELEMENTS: Final = 12
"""The same if some of them fail."""
_MANY_ROWS: Final = 50_000
"""Enough synthetic rows to show a small influence that a few rounded rows hide."""


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
        # of numbers that are compared, or sorted, one alone may be released; a largest has its law
        values = [one for one in transcript.selections if one.how == "value"]
        followed = is_used(numbers, replace(transcript, selections=values))
        alone = self._joined([np.full(one.answer.size, len(one.keys) == 1) for one in steps])
        followed |= np.isin(numbers, joined(transcript.summed)) & (alone > 0)
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


def resting(
    setting: ReplaySetting,
    found: ReplayFindings,
    plan: DrawPlan,
    counted: Sequence[tuple[Order, Played]],
    whole: ProvedByReplays,
) -> ProvedByReplays:
    """What is proved by the answers that influence what is released.

    Changes the answers that raise a loss, one question at a time, largest loss first; of replays
    that exceed the claim, those first whose noise was not widened, because more of their numbers
    show. Ends when the answers with an influence exceed the claim by themselves, or when `CHANGED`
    were changed; if all of these have an influence, the whole result stands.
    """
    shown, bits = NOTHING_SHOWN, dict[Suspect, int]()
    tried: set[frozenset[Question]] = set()
    idle: list[Site] = []
    coarse: list[Site] = []
    proved = proved_by(setting, found, plan, shown=shown)
    checks = _Checks(setting, found, counted)

    def with_(one: Suspect, places: Places) -> ShownAnswers:
        own = {key: places[key] for key in one.keys & places.keys()}
        return ShownAnswers(shown.keys | one.keys, {**shown.places, **own})

    sizes, claimed = np.abs(whole.replays.losses), setting.guarantee.claimed
    later = [order.widened != 1.0 for order, _ in counted] | (sizes <= claimed)
    for place in np.lexsort((-sizes, later)).tolist():
        raising = suspects(losses(found.counted[place], used=found.used))
        fresh = [one for one in raising if one.keys not in tried and not one.keys & found.retried]
        fresh = [] if proved.above else fresh[: CHANGED - len(tried)]
        tried |= {one.keys for one in fresh}
        left = list(fresh)
        for one in checks.influential(place, fresh):
            left.remove(one)

            def suffice(places: Places, one: Suspect = one) -> bool:
                now = with_(one, places)
                return proved_by(setting, found, plan, shown=now).above

            places = checks.counted_places(place, one, suffice) if one.as_numbers else {}
            if places is None:
                coarse.append(one.site)
                continue
            shown = with_(one, places)
            if not one.as_numbers:
                bits[one] = place
            if one.keys & places.keys():
                coarse.append(one.site)
            proved = proved_by(setting, found, plan, shown=shown)
            if proved.above:
                break
        idle += [one.site for one in left]
    if not checks.are_apart(bits):
        shown = shown._replace(keys=shown.keys.difference(*(one.keys for one in bits)))
        coarse += [one.site for one in bits]
        proved = proved_by(setting, found, plan, shown=shown)
    if not proved.above and not (idle or coarse):
        return whole
    found.shown = shown
    found.idle = () if proved.above else tuple(dict.fromkeys(idle))
    found.coarse = () if proved.above else tuple(dict.fromkeys(coarse))
    return proved


class _Checks:
    """Repeats counted replays with other answers, to see how these are used."""

    def __init__(
        self,
        setting: ReplaySetting,
        found: ReplayFindings,
        replays: Sequence[tuple[Order, Played]],
    ) -> None:
        self._setting, self._found, self._replays = setting, found, replays
        self._rng = setting.worlds.rng("other answers", 0)
        self._known: dict[Site, Places | None] = {}
        self._without_steps: set[Site] = set()

    def influential(self, place: int, every: Sequence[Suspect]) -> Iterator[Suspect]:
        """The answers of a replay with which anything changes, as soon as each one shows.

        All are changed in one way, then those left in the next. If the first one, whose loss is the
        largest, does not show, or none in one way, or each way was tried, many more rows are made.

        Args:
            place: The replay to repeat.
            every: The answers.
        """
        order, played = self._replays[place]
        same_answers, left = order._replace(given=played.transcript.given), list(every)
        few = self._setting.rows
        for rows in sorted({few, max(few, _MANY_ROWS)}):
            if left and rows > few:
                what = "again, with more rows"
                played = again(self._setting, self._found, same_answers, what, rows=rows)
            asked = tuple(left)
            pure, transcript = self._setting.guarantee.is_pure, played.transcript
            ways = (other_answers(transcript, one.keys, self._rng, pure=pure) for one in asked)
            for answers in zip(*ways, strict=True):
                before = len(left)
                for one, given in zip(asked, answers, strict=True):
                    if one not in left:
                        continue
                    what = f"again, with other answers at {one.site}"
                    changed = order._replace(given=given)
                    other = again(self._setting, self._found, changed, what, rows=rows)
                    if has_influence(played, other):
                        left.remove(one)
                        yield one
                    elif rows < _MANY_ROWS and len(left) == len(asked):
                        break
                if not left or (rows < _MANY_ROWS and len(left) == before):
                    break

    def are_apart(self, bits: Mapping[Suspect, int]) -> bool:
        """Whether bits that each have an influence show together: no majority or count of them.

        Args:
            bits: The answers that count by what they are compared with, and the replay of each.
        """
        if not bits:
            return True
        order, played = self._replays[min(bits.values())]
        keys = frozenset[Question]().union(*(one.keys for one in bits))
        # one bit of fewer ones exceeds the claim by itself
        claimed = self._setting.guarantee.claimed
        fewest = sum(one.loss for one in bits) / max(claimed, EXACT)
        given = other_bits(played.transcript, keys, self._rng, fewest=fewest)
        if given is None:
            return True
        what = "again, with several other outcomes"
        other = again(self._setting, self._found, order._replace(given=given), what)
        return has_influence(played, other)

    def counted_places(
        self, place: int, one: Suspect, suffice: Callable[[Places], bool]
    ) -> Places | None:
        """The numbers that count of answers that are used as numbers, rounded or not.

        Both worlds have the same table and, except for these answers, the same answers. A slight
        change shows that numbers are used. If it does not, they may be rounded, so all numbers of
        an answer are moved far up, farther in one world than in the other. No maximum, order or
        comparison with a limit changes with that. If this shows nothing either, a limit may hide
        it, and they are moved step by step.

        Args:
            place: The replay to repeat.
            one: The answers.
            suffice: Whether some numbers are enough to exceed the claim.

        Returns:
            The numbers that count of answers of which others do not, by question; None if the
            answers are not used as numbers, or none of these counts by itself.
        """
        transcript = self._replays[place][1].transcript
        size, nudged = NUDGE, {"nudged": one.keys}
        near = near_answers(transcript, one.keys, self._rng)
        if not any(self._moves(place, one.site, given=given, **nudged) for given in near):
            found = self._size_that_shows(place, one)
            if found is None or not self._shows_here(place, one, found):
                return None
            size = found
        numbers = NoisyNumbers.together_with(transcript, next(iter(one.keys)), one.site)
        key = next((lever for lever in numbers.keys if lever in one.keys), None)
        if key is None:
            return {}  # a sum over an answer: it counts as one number
        if numbers.are_sums and self._use(place, one.site, [numbers.exchanged()]):
            return {}  # sums of which each has its place, so that none is chosen by its size
        if not numbers.are_plain:
            alone = [numbers.alone(one, size) for one in numbers.costly()[:_ELEMENTS]]
            given = transcript.given
            shows = all(self._moves(place, one.site, given=given, nudges=each) for each in alone)
            return {} if shows else None
        if one.site not in self._known and self._is_share(place, one, key, size):
            return None
        if self._known.get(one.site) != {}:
            self._known[one.site] = self._apart(place, one.site, numbers, size, suffice)
        known = self._known[one.site]
        own = {key: known[key]} if known and key in known else None
        return own if known else known

    def _size_that_shows(self, place: int, one: Suspect) -> float | None:
        """How many scales rounded answers must move to show; None if they are not numbers."""
        transcript = self._replays[place][1].transcript
        if self._setting.guarantee.is_pure and all(
            self._moves(place, one.site, given=transcript.given, apart=apart, nudged=one.keys)
            for apart in pairwise(APART)
        ):
            return APART[0]
        if one.site in self._without_steps:
            return None

        def shows(given: Mapping[Question, Any], nudges: Mapping[Question, FloatArray]) -> bool:
            return self._moves(place, one.site, given=given, nudges=nudges)

        size = size_of_steps(transcript, one.keys, shows)
        if size is None:
            self._without_steps.add(one.site)
        return None if size is None else 2.0 * size

    def _shows_here(self, place: int, one: Suspect, size: float) -> bool:
        """Whether rounded answers show where they are, if one beyond a limit would show less."""
        transcript = self._replays[place][1].transcript
        steps = [(key, step) for step in transcript.noisy for key in step.keys & one.keys]
        if all(step.laws[0].even_tails for _, step in steps):
            return True
        moves = [
            {key: np.full(step.answer.shape, far * step.laws[0].width) for key, step in steps}
            for far in (size, -size)
        ]
        return any(
            self._moves(place, one.site, given=given, nudges=each)
            for given in near_answers(transcript, one.keys, self._rng)
            for each in moves
        )

    def _is_share(self, place: int, one: Suspect, key: Question, size: float) -> bool:
        """Whether another number makes up for a change of the costliest one of an answer."""
        transcript = self._replays[place][1].transcript
        line = NoisyNumbers.of_line(transcript, one.site)
        pairs = line.partners(key)
        if not pairs:
            return False
        alone = line.alone(pairs[0][0], size)
        for given in near_answers(transcript, one.keys, self._rng):
            if self._moves(place, one.site, given=given, nudges=alone):  # no limit hides it here
                changes = (line.balanced(pair, size, self._rng) for pair in pairs)
                return not all(
                    self._moves(place, one.site, given=given, nudges=each) for each in changes
                )
        return False

    def _apart(
        self,
        place: int,
        site: Site,
        numbers: NoisyNumbers,
        size: float,
        suffice: Callable[[Places], bool],
    ) -> Places | None:
        """As `counted_places`, for numbers that a line drew; see `as_numbers`."""
        costly, every = numbers.costly(), list(range(len(numbers)))
        changes = [
            numbers.balanced(some, size, self._rng)
            for some in ([every, costly] if 1 < len(costly) < len(every) else [every])
            if len(some) > 1
        ]
        changes += [numbers.equal(size)] if costly else []
        transcript = self._replays[place][1].transcript
        line = NoisyNumbers.of_line(transcript, site)
        if len(line) > len(numbers):
            changes.append(line.balanced(list(range(len(line))), size, self._rng))
        given = transcript.given
        if not all(self._moves(place, site, given=given, nudges=each) for each in changes):
            return None
        passed: list[int] = []
        failed: list[int] = []
        first = costly[:_ELEMENTS]
        for number in [*first, *(one for one in numbers.ranked() if one not in first)]:
            tried = len(passed) + len(failed)
            if tried >= len(first) and (not failed or tried >= _MOST_ELEMENTS):
                break
            if tried >= len(first) and passed and suffice(numbers.places_of(passed)):
                break
            counts = self._counts(place, site, numbers, number, size)
            (passed if counts else failed).append(number)
        if not failed:
            return {}
        alone = passed and not self._use(place, site, numbers.moved_far(failed, self._rng))
        if not alone or not self._recur(place, site, numbers.places_of(passed), size):
            return None
        return numbers.places_of(passed)

    def _counts(
        self, place: int, site: Site, numbers: NoisyNumbers, number: int, size: float
    ) -> bool:
        """Whether a change of a number shows above, below and amid the others."""
        alone = numbers.alone(number, size)
        return all(
            any(self._moves(place, site, given=given, nudges=alone) for given in every)
            for every in numbers.positions(number, self._rng)
        )

    def _use(self, place: int, site: Site, every: Iterable[Mapping[Question, Any]]) -> bool:
        """Whether anything changes with other answers."""
        order, played = self._replays[place]
        for given in every:
            what = f"again, with other answers at {site}"
            other = again(self._setting, self._found, order._replace(given=given), what)
            if has_influence(played, other):
                return True
        return False

    def _recur(self, place: int, site: Site, places: Places, size: float) -> bool:
        """Whether the same numbers show in another replay."""
        other = next((at for at in range(len(self._replays)) if at != place), None)
        if other is None:
            return False
        transcript = self._replays[other][1].transcript
        numbers = NoisyNumbers.together_with(transcript, next(iter(places)), site)
        own = [at for at in range(len(numbers)) if numbers.is_among(at, places)]
        return len(own) == sum(map(len, places.values())) and all(
            self._moves(other, site, given=transcript.given, nudges=numbers.alone(at, size))
            for at in own
        )

    def _moves(self, place: int, site: Site, **change: Any) -> bool:
        """Whether the worlds of a replay of one table differ if answers differ between them."""
        what = f"again: are the answers at {site} numbers"
        order = self._replays[place][0]._replace(**change)
        return differs(again(self._setting, self._found, order, what, alike=World.IN))
