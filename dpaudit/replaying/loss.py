"""The privacy loss of a transcript: log P(answers | world in) - log P(answers | world out).

An answer used as a number counts by its density. Answers that are only compared, maximised or
sorted count by the probability of the outcome, an integral in one variable; answers that are only
divided by one another, by the density of their direction. Answers derived from others replace them.
Any other answer counts as if it had been released and is marked as an assumption: no violation
rests on it. Steps that depend on one of the target's own coins count together, as the mixture over
that coin (`mixtures.py`).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from enum import StrEnum
from itertools import chain, pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpaudit.replaying.laws import FloatArray, Gumbel, IntArray, NoiseLaw
from dpaudit.replaying.mixtures import log_mixed
from dpaudit.replaying.ratios import RatioGroup, determined, directions, limits, log_direction
from dpaudit.replaying.sums import components, settled, shown
from dpaudit.replaying.transcript import (
    AnswerSelection,
    ChoiceStep,
    ComparedSide,
    NoisyStep,
    Pair,
    Question,
    Site,
    Toss,
    Transcript,
    flat,
    joined,
)

_NODES: Final = 2001
"""Points of an integral over noise."""
_MOST_LISTED: Final = 64
"""Up to this many scores the loss of every outcome is computed."""
_WIDE: Final = 40.0
"""An integral reaches this many scales around the values."""


class How(StrEnum):
    """How answers count."""

    RELEASED = "released"
    SELECTED = "selected"
    ASSUMED = "taken as released"


class StepLoss(NamedTuple):
    """The privacy loss of one step.

    Attributes:
        site: Where its noise is drawn, or its choice made.
        how: How it counts.
        value: log P(in) - log P(out).
        largest: For a selection, the largest absolute loss over all outcomes, if known; if it
            depends on one of the target's own coins, with the target in the sub-sample.
        toss: Number of the target's coin that it depends on; its loss is then the increase over the
            earlier steps that depend on the same coin.
        keys: The questions that its answers answer.
        is_value: Whether a selection releases the number that it selects: the largest of some.
        tables: The probabilities of all outcomes in each world, for each of the independent draws
            of a selection; empty if they are not known.
    """

    site: Site
    how: How
    value: float
    largest: float | None = None
    toss: int | None = None
    keys: frozenset[Question] = frozenset()
    is_value: bool = False
    tables: tuple[Pair, ...] = ()


class ShownAnswers(NamedTuple):
    """Answers that are shown to influence what is released.

    Attributes:
        keys: Their questions.
        places: The only numbers that count, of answers of which others fail, by question.
    """

    keys: frozenset[Question]
    places: Mapping[Question, frozenset[int]] = {}


NOTHING_SHOWN: Final = ShownAnswers(frozenset())


class Influence(NamedTuple):
    """Answers that are known to influence what is released.

    Attributes:
        shown: Which; None for all answers whose use was observed.
        sign: 1 for a lower limit of the loss, -1 for an upper one.
    """

    shown: ShownAnswers | None
    sign: int

    def limited(self, loss: StepLoss) -> StepLoss:
        """The loss; 0 if its answers may have no influence and it does not offset other losses."""
        is_known = loss.how is not How.ASSUMED
        is_known = is_known and (self.shown is None or loss.keys <= self.shown.keys)
        if is_known or self.sign * loss.value <= 0:
            return loss
        return loss._replace(value=0.0)


class _Element(NamedTuple):
    """One answer: its value before noise in each world, its noise, and itself."""

    before: tuple[float, float]
    laws: tuple[NoiseLaw, NoiseLaw]
    value: float
    site: Site
    toss: int | None
    keys: frozenset[Question]


def losses(
    transcript: Transcript, *, used: Set[Site] = frozenset(), influence: Influence | None = None
) -> list[StepLoss]:
    """The loss of every step of a transcript.

    Args:
        transcript: One replay.
        used: Lines of noise whose answers are known to be used as numbers, whether or not the use
            was observed; of answers that are summed, divided by others or reduced, or of which the
            largest is released, perhaps only the result is used.
        influence: The answers that have an influence; the loss is then the limit that holds
            whichever of the others have one.

    Returns:
        One entry for each step that counts, and for each group of answers that are selected from.
    """
    transcript, ratios = _with_releases(transcript, used)
    found = list(_of_choices(transcript.choices))
    elements = _Elements(transcript)
    reduced = set(joined(transcript.reduced).tolist())
    counted: dict[int, How] = {}
    for direction in ratios:
        if elements.released(np.asarray(direction.numbers)).all():
            continue
        loss = _of_direction(direction, elements)
        counted |= dict.fromkeys(direction.numbers, How.ASSUMED if loss is None else How.SELECTED)
        if loss is not None:
            counted |= dict.fromkeys(direction.made, How.SELECTED)
            found.append(loss)
    for group in elements.groups():
        if any(number in counted for number in group.numbers):
            continue
        for number in group.numbers:
            counted[number] = How.SELECTED
        members = elements.known(group.numbers)
        tosses = {one.toss for one in members}
        open_use = bool(reduced.intersection(group.numbers))
        loss = _selected(group, elements) if len(tosses) == 1 and not open_use else None
        if loss is None:
            for number in group.numbers:
                counted[number] = How.ASSUMED
        else:
            keys = frozenset(key for one in members for key in one.keys)
            found.append(loss._replace(toss=tosses.pop(), keys=keys))
    places = influence.shown.places if influence is not None and influence.shown else {}
    for step in transcript.noisy:
        found += _of_step(step, elements, counted, places)
    if influence is not None:
        found = [influence.limited(one) for one in found]
    return _mixed(found, transcript.tosses)


def _of_choices(choices: Sequence[ChoiceStep]) -> Iterator[StepLoss]:
    """The losses of choices; all comparisons of one coin are one choice."""
    each: dict[object, list[ChoiceStep]] = defaultdict(list)
    for at, one in enumerate(choices):
        each[("alone", at) if one.coin is None else one.coin].append(one)
    for steps in each.values():
        loss = sum(float(np.sum(one.log_probability.shift)) for one in steps)
        keys = frozenset(key for one in steps for key in one.keys)
        first, largest, tables = steps[0], steps[0].largest, steps[0].tables
        if len(steps) > 1:
            tables = (_of_coin(steps),)
            largest = largest_ratio(tables[0])
        yield StepLoss(first.site, How.SELECTED, loss, largest, first.toss, keys, tables=tables)


def _of_coin(steps: Sequence[ChoiceStep]) -> Pair:
    """The probabilities of where a coin lies that is compared several times.

    It leaves the intervals that it was found not to lie in, and lies in the last one.
    """
    sides: list[FloatArray] = []
    for world in (0, 1):
        left, chances = 1.0, []
        for one in steps:
            assert one.under is not None
            below = float(one.table[world][0])
            taken = below if one.under[0] else 1.0 - below
            chances.append(left * (1.0 - taken))
            left *= taken
        sides.append(np.array([*chances, left]))
    return Pair(*sides)


def largest_ratio(table: Pair) -> float:
    """The logarithm of the largest ratio of the probabilities of an outcome."""
    inside, outside = (one[(table.inside > 0) | (table.outside > 0)] for one in table)
    with np.errstate(divide="ignore"):
        return float(np.max(np.abs(np.log(inside) - np.log(outside)), initial=0.0))


def _with_releases(
    transcript: Transcript, used: Set[Site]
) -> tuple[Transcript, Sequence[RatioGroup]]:
    """A transcript with sums in place of their parts, and all answers that count as released.

    On these lines all count. Also its groups of answers that are divided by one another.
    """
    transcript = settled(transcript)
    ratios = list(directions(transcript))
    others = [*transcript.summed, *transcript.divided, *transcript.reduced]
    others += [one.ids.astype(int) for one in transcript.selections if one.how == "value"]
    of_lines = [step.numbers for step in transcript.noisy if step.site in used]
    known: list[IntArray] = [np.setdiff1d(one, joined(others)) for one in of_lines]
    known += [shown(transcript), determined(ratios)]
    return replace(transcript, released=[*transcript.released, *known]), ratios


def shifts_across(
    transcript: Transcript, *, used: Set[Site] = frozenset()
) -> dict[int, FloatArray]:
    """How far answers that are released only as ratios move, as far as ratios show it.

    Near the answers, ratios show the part of the move that is orthogonal to them, in units of the
    noise.

    Args:
        transcript: One replay.
        used: As in `losses`.

    Returns:
        The move from world "out" to world "in", by the first answer number of each step.
    """
    transcript, ratios = _with_releases(transcript, used)
    elements = _Elements(transcript)
    shifts = {step.first: step.before.shift for step in transcript.noisy}
    found: dict[int, FloatArray] = {}
    for direction in ratios:
        if direction.shift is None or _of_direction(direction, elements) is None:
            continue
        own = elements.known(direction.numbers)
        scale = np.asarray([float(one.laws[0].scale) for one in own])
        apart = np.asarray([one.before[0] - one.before[1] for one in own]) / scale
        along = (np.asarray([one.before[1] for one in own]) + direction.shift) / scale
        apart -= along * (apart @ along) / (along @ along)
        for number, shift in zip(direction.numbers, apart * scale, strict=True):
            first = elements.first_of(number)
            found.setdefault(first, shifts[first])[number - first] = shift
    return found


def _mixed(found: Sequence[StepLoss], tosses: Sequence[Toss]) -> list[StepLoss]:
    """Turns losses with the target in the sub-sample into losses of the mixture over its coins."""
    ratios: dict[int, float] = defaultdict(float)
    mixed = []
    for one in found:
        if one.toss is None or not tosses[one.toss].inside:
            mixed.append(one)
            continue
        chance, before = tosses[one.toss].chance, ratios[one.toss]
        after = ratios[one.toss] = before + one.value
        first, second = (float(log_mixed(chance, ratio)) for ratio in (before, after))
        value = second - first if math.isfinite(first) else 0.0
        mixed.append(one._replace(value=value))
    return mixed


def _of_step(
    step: NoisyStep,
    elements: _Elements,
    counted: dict[int, How],
    places: Mapping[Question, frozenset[int]],
) -> Iterator[StepLoss]:
    """The loss of a step's answers that are used as numbers, or without an observed use."""
    numbers = step.numbers
    released = elements.released(numbers)
    selected = np.zeros_like(released)
    for place in np.flatnonzero(np.isin(numbers, elements.special)):
        counts_as = counted.get(int(numbers[place]))
        selected[place] = counts_as is How.SELECTED
        released[place] &= counts_as is not How.ASSUMED
    for key in step.keys & places.keys():
        released &= np.isin(np.arange(len(numbers)), list(places[key]))
    each = loss_of(step)
    for how, own in ((How.RELEASED, released & ~selected), (How.ASSUMED, ~released & ~selected)):
        if own.any():
            loss = float(np.sum(each[own]))
            yield StepLoss(step.site, how, loss, toss=step.toss, keys=step.keys)


def loss_of(step: NoisyStep) -> FloatArray:
    """The loss of each answer of a step as a number."""
    inside, outside = (
        law.log_density(step.answer - before)
        for law, before in zip(step.laws, step.before, strict=True)
    )
    with np.errstate(invalid="ignore"):
        return np.asarray(np.broadcast_to(inside - outside, step.answer.shape))


class AnswerGroup(NamedTuple):
    """Answers connected by selections.

    Attributes:
        numbers: Numbers of the answers.
        selections: What was selected.
    """

    numbers: tuple[int, ...]
    selections: tuple[AnswerSelection, ...]


class _Elements:
    """The answers of a transcript: their steps and their uses."""

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self._steps = sorted(transcript.noisy, key=lambda step: step.first)
        self._starts = [step.first for step in self._steps]
        selected = [np.asarray(_numbers(one), dtype=int) for one in transcript.selections]
        divided = [*transcript.divided, *transcript.summed] if transcript.quotients else []
        self.special = np.unique(joined([*selected, *divided]))

    def released(self, numbers: IntArray) -> NDArray[np.bool_]:
        """Whether each of these answers is used as a number."""
        return self.transcript.are_released(numbers)

    def is_released(self, number: int) -> bool:
        """Whether an answer is used as a number."""
        return bool(self.released(np.asarray([number]))[0])

    def first_of(self, number: int) -> int:
        """The first number of the step of an answer."""
        return self._starts[bisect_right(self._starts, number) - 1]

    def known(self, numbers: Sequence[int]) -> list[_Element]:
        """Those of these answers that noise was added to."""
        return [one for one in map(self._element, numbers) if one is not None]

    def __getitem__(self, number: int) -> _Element:
        """An answer that noise was added to."""
        found = self._element(number)
        assert found is not None
        return found

    def _element(self, number: int) -> _Element | None:
        at = bisect_right(self._starts, number) - 1
        if at < 0:
            return None
        step = self._steps[at]
        place = number - step.first
        if place >= step.answer.size:
            return None
        laws, before = step.element(place)
        value = float(step.answer[place])
        return _Element(before, laws, value, step.site, step.toss, step.keys)

    def groups(self) -> Iterator[AnswerGroup]:
        """Answers with a selection in common, including answers that are also released."""
        pieces = [piece for one in self.transcript.selections for piece in _pieces(one)]
        each = [_numbers(piece) for piece in pieces]
        at = {number: at for at, number in enumerate(dict.fromkeys(chain.from_iterable(each)))}
        pairs = [(at[numbers[0]], at[other]) for numbers in each for other in numbers]
        part = components(pairs, len(at)).tolist()
        members: dict[int, list[int]] = defaultdict(list)
        for number, place in at.items():
            members[part[place]].append(number)
        of: dict[int, list[AnswerSelection]] = defaultdict(list)
        for piece, numbers in zip(pieces, each, strict=True):
            of[part[at[numbers[0]]]].append(piece)
        for key, numbers in members.items():
            if self.released(np.asarray(numbers)).all():
                continue  # a released answer determines every selection from it
            yield AnswerGroup(tuple(numbers), tuple(of[key]))


def _numbers(selection: AnswerSelection) -> list[int]:
    numbers = [int(one) for one in selection.ids]
    if selection.other is not None and selection.other.ids is not None:
        numbers += [int(one) for one in flat(selection.other.ids)]
    return list(dict.fromkeys(numbers))


def _pieces(selection: AnswerSelection) -> list[AnswerSelection]:
    """A comparison of arrays as comparisons of pairs of elements."""
    if selection.how != "compare" or selection.ids.size <= 1:
        return [selection]
    assert selection.other is not None
    ids, factor, offset = selection.other
    pieces = []
    for place in range(selection.ids.size):
        own = slice(place, place + 1)
        other = ComparedSide(
            None if ids is None else flat(ids)[own],
            None if factor is None else flat(factor)[own],
            flat(offset)[own],
        )
        pieces.append(
            replace(
                selection,
                ids=selection.ids[own],
                factor=selection.factor[own],
                offset=selection.offset[own],
                outcome=selection.outcome[own],
                other=other,
            )
        )
    return pieces


def _of_direction(direction: RatioGroup, elements: _Elements) -> StepLoss | None:
    """The loss of answers that are released only as ratios; None if it is not known."""
    numbers = direction.numbers
    found = elements.known(numbers)
    if (
        direction.shift is None
        or len(found) < len(numbers)
        or elements.released(np.asarray(numbers)).any()
        or any(one.toss is not None for one in found)
    ):
        return None
    own = {*numbers, *direction.made}
    selections = [
        piece
        for selection in elements.transcript.selections
        for piece in _pieces(selection)
        if own & set(_numbers(piece))
    ]
    values = {number: one.value for number, one in zip(numbers, found, strict=True)}
    between = limits(direction, values, selections, elements.transcript)
    if between is None:
        return None
    inside, outside = (
        log_direction(
            np.asarray([one.value for one in found]) + direction.shift,
            np.asarray([one.before[world] for one in found]) + direction.shift,
            [one.laws[world] for one in found],
            between=between,
        )
        for world in (0, 1)
    )
    if inside is None or outside is None:
        return None
    keys = frozenset(key for one in found for key in one.keys)
    return StepLoss(found[0].site, How.RELEASED, inside - outside, keys=keys)


# -- probabilities of what is selected -----------------------------------------------------------


def _selected(group: AnswerGroup, elements: _Elements) -> StepLoss | None:
    """The loss of a group; None if its probability is not known."""
    found = elements.known(group.numbers)
    if len(found) < len(group.numbers):
        return None
    if not all(law.has_cdf for one in found for law in one.laws):
        return None
    kinds = {one.how for one in group.selections}
    if kinds == {"compare"}:
        return _thresholds(group, elements)
    if kinds == {"largest"}:
        return _largest(group, elements)
    if "value" in kinds and kinds <= {"value", "largest"}:
        return _largest_value(group, elements)
    if kinds == {"ordered"} and len(group.selections) == 1:
        return _ordered(group.selections[0], elements)
    return None


def _scores(
    selection: AnswerSelection, elements: _Elements, world: int
) -> tuple[FloatArray, NoiseLaw] | None:
    """Scores before noise and their noise, for a maximum."""
    factor = selection.factor
    if not np.all(factor == factor[0]) or factor[0] == 0:
        return None  # a constant among the scores has no noise
    found = [elements[int(one)] for one in selection.ids]
    laws = [one.laws[world] for one in found]
    kind = type(laws[0])
    if any(type(law) is not kind or law.whole for law in laws):
        return None
    if not set(vars(laws[0])) <= {"scale", "shape", "sign"}:
        return None
    size = abs(float(factor[0]))
    sign = 1.0 if factor[0] > 0 else -1.0
    scales = np.asarray([float(law.scale) * size for law in laws])
    fields: dict[str, object] = {"scale": scales}
    if hasattr(laws[0], "shape"):
        fields["shape"] = np.asarray([float(getattr(law, "shape")) for law in laws])  # noqa: B009
    if hasattr(laws[0], "sign"):
        fields["sign"] = getattr(laws[0], "sign") * sign  # noqa: B009
    elif sign < 0 and not kind.symmetric:
        return None
    before = np.asarray([one.before[world] for one in found])
    return before * factor + selection.offset, kind(**fields)  # type: ignore[arg-type]


def _largest(group: AnswerGroup, elements: _Elements) -> StepLoss | None:
    """Report noisy max, once, or repeated among the rest (the first places of an order)."""
    first = group.selections[0]
    places = [int(first.outcome[0])]
    gone: set[int] = set()
    for earlier, selection in pairwise(group.selections):
        gone.add(int(earlier.ids[int(earlier.outcome[0])]))
        left = {
            int(one)
            for one, factor in zip(selection.ids, selection.factor, strict=True)
            if factor != 0
        }
        if left != {int(one) for one in first.ids} - gone:
            return None
        place = list(map(int, first.ids)).index(int(selection.ids[int(selection.outcome[0])]))
        places.append(place)
    released = {one for one in group.numbers if elements.is_released(one)}
    winners = {int(first.ids[place]) for place in places}
    if released - winners or (released and len(places) > 1):
        return None
    logs: list[float] = []
    every: list[list[float]] = []
    few = len(places) == 1 and not released and len(first.ids) <= _MOST_LISTED
    for world in (0, 1):
        scores = _scores(first, elements, world)
        if scores is None:
            return None
        before, law = scores
        if released:
            logs.append(_log_winner(first, places[0], before, law, elements))
        else:
            logs.append(log_first_places(places, before, law))
        if few:
            every.append([log_first_places([one], before, law) for one in range(len(before))])
    with np.errstate(invalid="ignore"):  # winners whose probability underflows in both worlds
        most = float(np.nanmax(np.abs(np.subtract(every[0], every[1])))) if few else None
    site = elements[int(first.ids[0])].site
    tables = (Pair(*(np.exp(np.asarray(one)) for one in every)),) if few else ()
    return StepLoss(site, How.SELECTED, logs[0] - logs[1], most, tables=tables)


def _largest_value(group: AnswerGroup, elements: _Elements) -> StepLoss | None:
    """The released largest of noisy scores, and perhaps its place.

    If the place is not released, the density is that of the maximum: the sum over all places of
    what it would be with that place.
    """
    first = group.selections[0]
    alike = all(
        np.array_equal(getattr(one, name), getattr(first, name))
        for one in group.selections
        for name in ("ids", "factor", "offset")
    )
    if not alike or elements.released(np.asarray(group.numbers)).any():
        return None
    has_place = any(one.how == "largest" for one in group.selections)
    winner = int(first.outcome[0])
    logs = []
    for world in (0, 1):
        scores = _scores(first, elements, world)
        if scores is None:
            return None
        places = [winner] if has_place else range(len(first.ids))
        every = [_log_winner(first, one, *scores, elements, at=winner) for one in places]
        logs.append(float(np.logaddexp.reduce(every)))
    site = elements[int(first.ids[winner])].site
    return StepLoss(site, How.SELECTED, logs[0] - logs[1], is_value=True)


def _log_winner(
    selection: AnswerSelection,
    place: int,
    before: FloatArray,
    law: NoiseLaw,
    elements: _Elements,
    *,
    at: int | None = None,
) -> float:
    """The density of one answer, and the probability that all others are below it.

    `at` is the place whose value it has: its own by default.
    """
    at = place if at is None else at
    winner = elements[int(selection.ids[at])].value
    value = winner * float(selection.factor[at]) + float(selection.offset[at])
    inside = _part(law, place).log_density(np.asarray(value - before[place]))
    with np.errstate(divide="ignore"):
        below = [
            np.log(_part(law, other).cdf(np.asarray(value - before[other])))
            for other in range(len(before))
            if other != place
        ]
    return float(inside + np.sum(below))


def log_first_places(places: Sequence[int], before: FloatArray, law: NoiseLaw) -> float:
    """Log probability that noisy scores have these places first, largest first.

    An integral from the last of these places to the first: the probability that it exceeds all
    others, that the place before exceeds it, and so on. Closed form for Gumbel noise of one scale
    (Plackett and Luce).

    Args:
        places: The first places.
        before: Scores before noise.
        law: Their noise.
    """
    if isinstance(law, Gumbel) and law.sign > 0 and np.ptp(law.scale) == 0:
        units, total, left = before / law.scale, 0.0, list(range(len(before)))
        for place in places:
            top = max(units[one] for one in left)
            total += units[place] - top - float(np.log(np.sum(np.exp(units[left] - top))))
            left.remove(place)
        return float(total)
    grid = _grid(before, law)
    others = [one for one in range(len(before)) if one not in places]
    inside = np.ones_like(grid)
    for one in others:
        inside = inside * _part(law, one).cdf(grid - before[one])
    # from the last place on: the density at z times the probability that everything behind it is
    # below z
    for place in reversed(places):
        density = np.exp(_part(law, place).log_density(grid - before[place])) * inside
        steps = 0.5 * (density[1:] + density[:-1]) * np.diff(grid)
        inside = np.concatenate([[0.0], np.cumsum(steps)])
    with np.errstate(divide="ignore"):
        return float(np.log(inside[-1]))


def _part(law: NoiseLaw, place: int) -> NoiseLaw:
    return law.element(place, int(np.size(law.scale)))


def _grid(before: FloatArray, law: NoiseLaw) -> FloatArray:
    """Points for an integral over noisy scores, dense around every score."""
    scales = np.broadcast_to(law.scale, before.shape)
    inner = np.sinh(np.linspace(-1.0, 1.0, 401) * np.arcsinh(_WIDE))
    points = [
        one + scale * inner
        for one, scale in set(zip(before.tolist(), scales.tolist(), strict=True))
    ]
    if len(points) > 40:
        low = float(np.min(before - _WIDE * scales))
        high = float(np.max(before + _WIDE * scales))
        points = [np.linspace(low, high, 20 * _NODES)]
    grid = np.unique(np.concatenate(points))
    fine = [grid, *((1 - w) * grid[:-1] + w * grid[1:] for w in (0.25, 0.5, 0.75))]
    return np.unique(np.concatenate([*fine, before]))


def _ordered(selection: AnswerSelection, elements: _Elements) -> StepLoss | None:
    """A whole order, smallest first."""
    logs = []
    for world in (0, 1):
        scores = _scores(selection, elements, world)
        if scores is None:
            return None
        logs.append(log_first_places([int(one) for one in selection.outcome[::-1]], *scores))
    site = elements[int(selection.ids[0])].site
    return StepLoss(site, How.ASSUMED, logs[0] - logs[1])


def _thresholds(group: AnswerGroup, elements: _Elements) -> StepLoss | None:
    """Answers compared with values and with one noisy threshold (the sparse vector technique)."""
    degree: dict[int, int] = defaultdict(int)
    for one in group.selections:
        if one.other is not None and one.other.ids is not None:
            for number in _numbers(one):
                degree[number] += 1
    centre = max(degree, key=lambda number: degree[number]) if degree else None
    if any(
        one.other is not None and one.other.ids is not None and centre not in _numbers(one)
        for one in group.selections
    ):
        return None
    inside, outside = (_log_thresholds(group, centre, elements, world) for world in (0, 1))
    if inside is None or outside is None:
        return None
    leaf = next((one for one in group.numbers if one != centre), group.numbers[0])
    loss = StepLoss(elements[leaf].site, How.SELECTED, inside - outside)
    if len(group.selections) > 1:
        return loss
    table = Pair(*(np.array([np.exp(one), -np.expm1(one)]) for one in (inside, outside)))
    return loss._replace(largest=largest_ratio(table), tables=(table,))


def _log_thresholds(
    group: AnswerGroup, centre: int | None, elements: _Elements, world: int
) -> float | None:
    """Log probability of the bits in one world."""
    if centre is None:
        grid, weight = np.zeros(1), np.zeros(1)
    else:
        law, before = elements[centre].laws[world], elements[centre].before[world]
        if law.whole:
            return None
        grid = _grid(np.asarray([before]), law)
        weight = law.log_density(grid - before)
    low: dict[int, FloatArray] = {}
    high: dict[int, FloatArray] = {}
    for selection in group.selections:
        assert selection.other is not None
        left = (int(selection.ids[0]), float(selection.factor[0]), float(selection.offset[0]))
        under = bool(selection.outcome[0]) == (selection.sign == "<")  # left < right
        if selection.other.ids is None:
            right = np.full_like(grid, float(flat(selection.other.offset)[0]))
            number, factor, offset = left
        else:
            assert selection.other.factor is not None
            other = (
                int(flat(selection.other.ids)[0]),
                float(flat(selection.other.factor)[0]),
                float(flat(selection.other.offset)[0]),
            )
            if left[0] == centre:
                left, other, under = other, left, not under
            number, factor, offset = left
            right = other[1] * grid + other[2]
        if factor == 0:
            return None
        bound = (right - offset) / factor
        if factor < 0:
            under = not under
        table, fold = (high, np.minimum) if under else (low, np.maximum)
        table[number] = fold(table[number], bound) if number in table else bound
    total = weight.astype(float)
    for number in group.numbers:
        element = elements[number]
        bottom, top = low.get(number), high.get(number)
        if number == centre:
            total = np.where(bottom is None or grid > bottom, total, -np.inf)
            total = np.where(top is None or grid < top, total, -np.inf)
            continue
        law, before = element.laws[world], element.before[world]
        if elements.is_released(number):  # a point: its density, if it satisfies the comparisons
            total = total + float(law.log_density(np.asarray(element.value - before)))
            total = np.where(bottom is None or element.value >= bottom, total, -np.inf)
            total = np.where(top is None or element.value <= top, total, -np.inf)
            continue
        if law.whole:
            return None  # "less" and "at most" differ, but are not distinguished
        above = law.cdf(top - before) if top is not None else np.ones_like(grid)
        beneath = law.cdf(bottom - before) if bottom is not None else np.zeros_like(grid)
        if top is None and bottom is not None and law.symmetric:
            chance = law.cdf(-(bottom - before))  # the upper tail, without cancellation
        else:
            chance = np.maximum(above - beneath, 0.0)
        with np.errstate(divide="ignore"):
            total = total + np.log(chance)
    if centre is None:
        return float(total[0])
    most = float(np.max(total))
    if not np.isfinite(most):
        return -np.inf
    return most + float(np.log(np.trapezoid(np.exp(total - most), grid)))


def total(found: Sequence[StepLoss]) -> float:
    """The loss of a transcript."""
    return float(sum(one.value for one in found))
