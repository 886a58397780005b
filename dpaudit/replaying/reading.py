"""Reads noisy answers off the release: a bound on the claim that is sound for any code.

Some released number R is a monotone function of one noisy answer y and of nothing else. Then
{R >= t} is {y >= t'}, and the chances of that in both worlds are tails of a known law.
`find_readings` looks for such numbers in fits in which answers lie at given places and all else
changes. What is rare could still have escaped it, so `prove` fixes one event, {R >= t} with lo <=
t' <= hi, and runs N natural fits in each world: if the event contradicted the answers with
probability above tau = 1 - (alpha / 2)^(1 / N) in a world, all N fits would pass with probability
at most (1 - tau)^N = alpha / 2 there. So with confidence 1 - alpha

    P(R >= t | in) >= P(y >= hi | in) - tau,    P(R >= t | out) <= P(y >= lo | out) + tau,

or the mirror image, and two error rates bound any claim. Several answers, each with a number and
draws of its own, make one event: all hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from dpaudit.bounds.guarantee import guarantee_of
from dpaudit.model.claim import Claim
from dpaudit.plugins.protocols import World
from dpaudit.replaying.fits import Fits
from dpaudit.replaying.laws import FloatArray, NoiseLaw
from dpaudit.replaying.messages import are_same
from dpaudit.replaying.orders import PLACES, WIDE, find_change
from dpaudit.replaying.processes import WORLDS
from dpaudit.replaying.release import Number, ReleasedNumbers
from dpaudit.replaying.transcript import FitRelease, NoisyStep, Question, Site, Transcript

_TOLERANCE: Final = 1e-9
"""Curves coincide up to this share of their own movement."""
_MOST_ANSWERS: Final = 500
_MOST_JOINED: Final = 6
"""Largest number of answers that make one event."""
_SIZES: Final = (39, 60, 100, 150, 300, 600)
"""Natural fits of each world."""
_WIDEST: Final = 8.0
"""Scales within which a coarse number must jump."""
_NARROW: Final = 0.01
"""Width of the interval for the threshold, in scales."""
_FIRST: Final = 20_000
"""Fits of the search have numbers from here on."""


class Answer(NamedTuple):
    """One noisy answer that moves.

    Attributes:
        key: Its question.
        element: Its place in the answer to that question.
        size: How many elements that has.
        site: Where its noise is drawn.
        before: The value before noise in each world.
        laws: The noise in each world.
    """

    key: Question
    element: int
    size: int
    site: Site
    before: tuple[float, float]
    laws: tuple[NoiseLaw, NoiseLaw]

    @property
    def scale(self) -> float:
        """The scale of its noise in world "in"."""
        return float(self.laws[0].scale)

    def tails(self, threshold: float, *, above: bool) -> tuple[float, float]:
        """The chances in both worlds that the answer is at or beyond a threshold."""
        inside, outside = (
            float(np.exp(law.log_tail(np.asarray(threshold - before), above=above)))
            for law, before in zip(self.laws, self.before, strict=True)
        )
        return inside, outside


class AnswerReading(NamedTuple):
    """An answer that a released number shows.

    Attributes:
        answer: The answer.
        number: The number.
        rises: Whether the number grows with the answer.
    """

    answer: Answer
    number: Number
    rises: bool


class ReadThreshold(NamedTuple):
    """One part of an event: the released number is at or above a value, or below it.

    Attributes:
        reading: What is read.
        low: Answers at or below this give numbers on one side.
        high: Answers at or above this give numbers on the other side.
        value: The value of the number that separates both sides.
        is_above: Whether the event is that the answer is above.
    """

    reading: AnswerReading
    low: float
    high: float
    value: float
    is_above: bool

    def is_seen(self, number: float) -> bool:
        """Whether a released number says that the event holds."""
        return (number >= self.value) == (self.is_above == self.reading.rises)

    def contradicts(self, answer: float, held: bool) -> bool:
        """Whether an answer outside the interval has a number on the wrong side."""
        if self.low < answer < self.high:
            return False
        return held != ((answer >= self.high) == self.is_above)

    @property
    def chances(self) -> tuple[float, float]:
        """A lower limit on the chance in world "in", an upper one in world "out"."""
        sides = (self.high, self.low) if self.is_above else (self.low, self.high)
        inside, _ = self.reading.answer.tails(sides[0], above=self.is_above)
        _, outside = self.reading.answer.tails(sides[1], above=self.is_above)
        return inside, outside


@dataclass(frozen=True)
class Proof:
    """A bound from the release.

    Attributes:
        parts: The event: all of these hold.
        fits: Natural fits, in both worlds together.
        bound: The lower bound in the quantity of the claim.
    """

    parts: tuple[ReadThreshold, ...]
    fits: int
    bound: float


def bound_of(parts: Sequence[ReadThreshold], claim: Claim, *, fits: int, alpha: float) -> float:
    """The bound that N fits of each world prove, if none contradicts.

    Args:
        parts: The event.
        claim: The claim, whose delta or curve the bound respects.
        fits: N.
        alpha: Error probability.
    """
    tau = -math.expm1(math.log(alpha / 2.0) / fits)
    inside, outside = (
        math.prod(chances) for chances in zip(*(part.chances for part in parts), strict=True)
    )
    hit, false = max(inside - tau, 0.0), min(outside + tau, 1.0)
    if hit <= false:
        return 0.0
    statistic = guarantee_of(claim).statistic(np.array([1.0 - hit]), np.array([false]))
    return max(0.0, float(np.ravel(statistic)[0]))


def find_readings(
    fits: Fits, pilots: Sequence[Transcript], without: frozenset[str]
) -> list[AnswerReading]:
    """Searches released numbers that show one moved answer each, and nothing else.

    Args:
        fits: The replay's fits; 39 are made.
        pilots: Replays in lock-step, whose answers say what moves; the last one has as many draws
            as every other fit.
        without: Places of the release that differ between fits of the same table.

    Returns:
        The readings, the best answer first; none if a fit fails, or ends in other answers.
    """
    answers = _moved_answers(pilots)
    if not answers:
        return []
    rng = fits.rng("places", 0)
    placed = np.stack(
        [np.stack([rng.permutation(len(PLACES)) for _ in answers]) for _ in WIDE]
    )  # [variants, answers, fits] -> place
    releases: list[list[FitRelease]] = []
    for variant, wide in enumerate(WIDE):
        own = []
        for at in range(len(PLACES)):
            fits.say(f"search for released answers: {variant * len(PLACES) + at + 1} of 39")
            orders = _orders(answers, np.asarray(PLACES)[placed[variant, :, at]])
            number = _FIRST + variant * len(PLACES) + at
            fit = fits.alone(
                World.IN, number, placed=orders, wide=wide, most_draws=_draw_limit(pilots)
            )
            release = fits.release_of(fit, World.IN)
            if release is None or fit.draws != pilots[-1].draws:
                return []
            if not all(_is_known(answer, fit, World.IN) for answer in answers):
                return []
            own.append(release)
        releases.append(own)
    return _find_coinciding(answers, placed, releases, without)


def _draw_limit(pilots: Sequence[Transcript]) -> int:
    """Draws after which a fit is given up."""
    return 1000 + 20 * max(sum(pilot.draws.values()) for pilot in pilots)


def _moved_answers(pilots: Sequence[Transcript]) -> list[Answer]:
    """The answers that move by the same shift under the same law in all replays, best first."""
    ranked: list[tuple[float, Answer]] = []
    others = [{step.key: step for step in pilot.noisy} for pilot in pilots[1:]]
    for step in pilots[0].noisy:
        if step.laws is None or step.is_lost or step.draws or not np.any(step.moved):
            continue
        if not all(law.has_cdf for law in step.laws) or step.toss is not None:
            continue
        if any(not _same_step(step, steps.get(step.key)) for steps in others):
            continue
        for element in np.flatnonzero(step.moved).tolist():
            inside, outside = (law.element(element, step.answer.size) for law in step.laws)
            before = (float(step.before.inside[element]), float(step.before.outside[element]))
            answer = Answer(
                step.key, element, step.answer.size, step.site, before, (inside, outside)
            )
            ranked.append((abs(before[0] - before[1]) / max(answer.scale, 1e-300), answer))
    ranked.sort(key=lambda entry: -entry[0])
    return [answer for _, answer in ranked[:_MOST_ANSWERS]]


def _same_step(first: NoisyStep, second: NoisyStep | None) -> bool:
    """Whether two steps have the same values before noise and the same noise."""
    if second is None or second.laws is None or second.is_lost:
        return False
    return (
        all(
            are_same(value, other) for value, other in zip(first.before, second.before, strict=True)
        )
        and all(
            are_same(scale, other) for scale, other in zip(first.scales, second.scales, strict=True)
        )
        and first.law_names == second.law_names
    )


def _orders(answers: Sequence[Answer], places: FloatArray) -> dict[Question, FloatArray]:
    """Where each answer lies, in scales, by question."""
    orders: dict[Question, FloatArray] = {}
    for answer, place in zip(answers, places, strict=True):
        own = orders.setdefault(answer.key, np.full(answer.size, np.nan))
        own[answer.element] = place
    return orders


def _is_known(answer: Answer, transcript: Transcript, world: World) -> bool:
    """Whether a fit made an answer of the same law around the same value."""
    step = next((step for step in transcript.noisy if step.key == answer.key), None)
    if step is None or step.laws is None or step.is_lost or step.draws:
        return False
    if step.answer.size != answer.size:
        return False
    side = WORLDS.index(world)
    law, known = step.laws[0].element(answer.element, answer.size), answer.laws[side]
    own = float(step.before.inside[answer.element])
    return (
        type(law) is type(known) and _same_fields(law, known) and are_same(own, answer.before[side])
    )


def _same_fields(first: NoiseLaw, second: NoiseLaw) -> bool:
    pairs = zip(vars(first).values(), vars(second).values(), strict=True)
    return all(are_same(np.asarray(value), np.asarray(other)) for value, other in pairs)


def _find_coinciding(
    answers: Sequence[Answer],
    placed: np.ndarray,
    releases: Sequence[Sequence[FitRelease]],
    without: frozenset[str],
) -> list[AnswerReading]:
    """Numbers whose curves over the places of an answer coincide, move, and never turn."""
    shared = ReleasedNumbers.shared_by(
        [release for own in releases for release in own], without=without
    )
    names = shared.names
    values = np.array([[shared.of(release) for release in own] for own in releases], dtype=float)
    varies = np.isfinite(values).all(axis=(0, 1)) & (np.ptp(values, axis=(0, 1)) > 0)
    places = np.flatnonzero(varies)
    readings: list[AnswerReading] = []
    for index, answer in enumerate(answers):
        # the curve of every number over the places of this answer, once for each variant
        order = np.argsort(placed[:, index, :], axis=1)
        curves = np.take_along_axis(values[:, :, places], order[:, :, None], axis=1)
        movement = np.ptp(curves[0], axis=0)
        apart = np.abs(curves - curves[:1]).max(axis=(0, 1))
        steps = np.diff(curves[0], axis=0)
        rises, falls = (steps >= 0).all(axis=0), (steps <= 0).all(axis=0)
        good = (movement > 0) & (apart <= _TOLERANCE * movement) & (rises ^ falls)
        if good.any():
            best = int(np.flatnonzero(good)[0])
            readings.append(AnswerReading(answer, names[int(places[best])], bool(rises[best])))
    return readings


def prove(
    fits: Fits,
    readings: Sequence[AnswerReading],
    draws: Mapping[Site, int],
    *,
    alpha: float,
    budget: int,
) -> Proof | None:
    """Proves a bound above the claim from natural fits.

    Args:
        fits: The replay's fits.
        readings: What can be read.
        draws: How many draws each line makes in every fit.
        alpha: Error probability.
        budget: Fits that may be made.

    Returns:
        The proof; None if the answers move too little for this many fits, or the numbers are too
        coarse, or do not follow their answers.
    """
    claim = fits.spec.claim
    planned = _plan(readings, claim, alpha=alpha, budget=budget) or []
    narrowed = [_narrow(fits, part, _FIRST + 1000 * (at + 1)) for at, part in enumerate(planned)]
    parts = [part for part in narrowed if part is not None]
    if not parts or len(parts) < len(planned):
        return None
    bounds = (
        (size, bound_of(parts, claim, fits=size, alpha=alpha))
        for size in _SIZES
        if 2 * size <= budget
    )
    size, bound = next((pair for pair in bounds if pair[1] > claim.value), (0, 0.0))
    wanted = [(world, 2 * at + place) for at in range(size) for place, world in enumerate(WORLDS)]
    for done, group in enumerate(_groups(wanted)):
        fits.say(f"natural fits: {min(len(wanted), (done + 1) * len(group))} of {len(wanted)}")
        for (world, _), fit in zip(group, fits.natural(group), strict=True):
            follows = _agrees(parts, fits.release_of(fit, world), fit, world)
            if fit.draws != draws or not follows:
                return None
    return Proof(tuple(parts), len(wanted), bound) if size else None


def _groups(wanted: Sequence[tuple[World, int]]) -> Iterator[Sequence[tuple[World, int]]]:
    for start in range(0, len(wanted), 20):
        yield wanted[start : start + 20]


def _plan(
    readings: Sequence[AnswerReading], claim: Claim, *, alpha: float, budget: int
) -> list[ReadThreshold] | None:
    """The event that is expected to prove more than the claim in the fewest fits."""
    distinct: dict[object, AnswerReading] = {}
    for reading in readings:
        distinct.setdefault((reading.answer.key, reading.answer.element), reading)
    numbers: dict[Number, AnswerReading] = {}
    for reading in distinct.values():
        numbers.setdefault(reading.number, reading)
    best = list(numbers.values())[:_MOST_JOINED]
    for size in _SIZES:
        if 2 * size > budget:
            return None
        plan = max(
            (
                (bound_of(parts, claim, fits=size, alpha=alpha), count, reach)
                for count in range(1, len(best) + 1)
                for reach in np.arange(-1.0, 6.0, 0.1)
                if (parts := _event(best[:count], float(reach)))
            ),
            default=(0.0, 0, 0.0),
        )
        if plan[0] > 1.02 * claim.value:
            return _event(best[: plan[1]], plan[2])
    return None


def _event(readings: Sequence[AnswerReading], reach: float) -> list[ReadThreshold]:
    """Thresholds this many scales from the value in world "in", towards world "out"."""
    parts = []
    for reading in readings:
        inside, outside = reading.answer.before
        is_above = inside >= outside
        side = -1.0 if is_above else 1.0
        middle = inside + side * reach * reading.answer.scale
        half = 0.5 * _NARROW * reading.answer.scale
        low, high = middle - half, middle + half
        if reading.answer.laws[0].whole:
            # the noise is whole: the threshold lies between two possible answers
            low = inside + math.floor(middle - inside)
            high = low + 1.0
        parts.append(ReadThreshold(reading, low, high, math.nan, is_above))
    return parts


def _narrow(fits: Fits, part: ReadThreshold, first_fit: int) -> ReadThreshold | None:
    """Finds the value of the released number at a threshold; None if it does not change there.

    Where the number is coarse the interval is where it jumps next.
    """
    answer = part.reading.answer
    counter = iter(range(first_fit, first_fit + 1000))

    def number_at(noise: float) -> float | None:
        order = _orders([answer], np.array([noise / answer.scale]))
        transcript = fits.alone(World.IN, next(counter), placed=order)
        release = fits.release_of(transcript, World.IN)
        return None if release is None else _value_in(release, part.reading.number)

    def changes(noise: float) -> bool | None:
        number = number_at(noise)
        return None if number is None else number != first

    law, center = answer.laws[0], answer.before[0]
    low, high, width = part.low - center, part.high - center, answer.scale
    first, last = number_at(low), number_at(high)
    while first == last and width < _WIDEST * answer.scale:
        wider = math.ceil(width) if law.whole else width
        low, high, width = low - wider, high + wider, 2 * width
        first, last = number_at(low), number_at(high)
    if first is None or last is None or first == last:
        return None
    interval = find_change(changes, low, high, law, width=_NARROW)
    last = None if interval is None else number_at(interval[1])
    if interval is None or last is None:
        return None
    low, high = (center + noise for noise in interval)
    value = 0.5 * (first + last)
    if value in (first, last):  # neighbouring floats
        value = last if part.reading.rises else first
    return part._replace(low=low, high=high, value=value)


def _value_in(release: FitRelease, number: Number) -> float | None:
    values = release.numbers.get(number.place)
    at = 0 if number.at is None else number.at
    return None if values is None or at >= values.size else float(values[at])


def _agrees(
    parts: Sequence[ReadThreshold], release: FitRelease | None, transcript: Transcript, world: World
) -> bool:
    """Whether a natural fit has the known laws, and its released numbers follow its answers."""
    if release is None:
        return False
    for part in parts:
        answer = part.reading.answer
        value = _value_in(release, part.reading.number)
        if value is None or math.isnan(value) or not _is_known(answer, transcript, world):
            return False
        step = next(step for step in transcript.noisy if step.key == answer.key)
        if part.contradicts(float(step.answer[answer.element]), part.is_seen(value)):
            return False
    return True
