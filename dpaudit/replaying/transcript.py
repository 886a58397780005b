"""The transcript of one replay: every step protected by noise or a choice, in both worlds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpaudit.replaying.laws import FloatArray, Gaussian, IntArray, NoiseLaw


class Site(NamedTuple):
    """A line of code.

    Attributes:
        file: Its file.
        line: Its number.
        function: The function that contains it.
    """

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        """The line as it is shown: the file's own name and its number."""
        return f"{self.file.replace(chr(92), '/').rpartition('/')[2]}:{self.line}"


class Pair(NamedTuple):
    """A value in each world."""

    inside: FloatArray
    outside: FloatArray

    @property
    def shift(self) -> FloatArray:
        """How far it moves from world "out" to world "in"."""
        return self.inside - self.outside


Question = tuple[str, Site, int]
"""A question to the coordinator: its kind, its line, and the line's earlier questions."""


class Toss(NamedTuple):
    """One of the target's own coins; it decides membership in a sub-sample.

    Attributes:
        site: Where the coin is compared.
        chance: Probability that the target is in.
        inside: Whether the coin was made to fall "in".
    """

    site: Site
    chance: float
    inside: bool


@dataclass(frozen=True, kw_only=True)
class NoisyStep:
    """Noise added to a value.

    Attributes:
        site: Where the noise is drawn.
        first: Number of its first answer; the others follow.
        before: The value before noise in each world; flat.
        laws: The noise in each world.
        answer: The answer, the same in both worlds; flat.
        seed: What seeded the generator of the noise, if known.
        drawn: Numbers of the draws of noise in world "in"; each is used once.
        moved: How far the tilt moved each answer.
        log_weight: log P(answer) - log Q(answer).
        base: The world whose law it was drawn from: 0 is "in".
        toss: Number of the target's latest coin before it, if there is one.
        chance: Probability that this coin is "in", given the earlier answers.
        rescaled: Where the answers were multiplied by a value that depends on the data.
        keys: The questions that its answers answer; several for a sum.
    """

    site: Site
    first: int
    before: Pair
    laws: tuple[NoiseLaw, NoiseLaw]
    answer: FloatArray
    moved: FloatArray
    log_weight: float
    base: int
    seed: str | None = None
    drawn: tuple[int, ...] = ()
    toss: int | None = None
    chance: float = 1.0
    rescaled: Site | None = None
    keys: frozenset[Question] = frozenset()

    @property
    def differs(self) -> NDArray[np.bool_]:
        """Whether each value before noise, or its noise, differs between the worlds."""
        inside, outside = self.scales
        return np.asarray((self.before.shift != 0) | (inside != outside))

    @property
    def scales(self) -> Pair:
        """The scale of each answer's noise in each world."""
        return Pair(*(np.broadcast_to(law.scale, self.answer.shape) for law in self.laws))

    @property
    def is_gaussian(self) -> bool:
        """Whether its noise is Gaussian, with the same scales in both worlds."""
        are_gaussian = all(isinstance(law, Gaussian) for law in self.laws)
        return are_gaussian and np.array_equal(*self.scales)

    def element(self, place: int) -> tuple[tuple[NoiseLaw, NoiseLaw], tuple[float, float]]:
        """The noise of one answer, and the value before it, in each world."""
        inside, outside = (law.element(place, self.answer.size) for law in self.laws)
        before = (float(self.before.inside[place]), float(self.before.outside[place]))
        return (inside, outside), before

    @property
    def numbers(self) -> IntArray:
        """Numbers of its answers."""
        return np.arange(self.first, self.first + self.answer.size)


@dataclass(frozen=True, kw_only=True)
class ChoiceStep:
    """A place drawn with known probabilities.

    Attributes:
        site: Where it is drawn.
        log_probability: Log probability of each place that was drawn, in each world.
        largest: Logarithm of the largest ratio of probabilities over all outcomes.
        table: Probabilities of all places in each world; for coins, of each being below its limit.
        toss: As in `NoisyStep`.
        keys: As in `NoisyStep`.
        coin: The number of a single coin, which may be compared again.
        under: Which coins fell below their limits; None for places.
    """

    site: Site
    log_probability: Pair
    largest: float
    table: Pair
    toss: int | None = None
    keys: frozenset[Question] = frozenset()
    coin: int | None = None
    under: NDArray[np.bool_] | None = None

    @property
    def tables(self) -> tuple[Pair, ...]:
        """The probabilities of all outcomes of each draw: of two for a coin."""
        if self.under is None:
            return (self.table,) * len(self.log_probability.inside)
        both = zip(self.table.inside, self.table.outside, strict=True)
        each = [[np.array([one, 1.0 - one]) for one in pair] for pair in both if pair[0] != pair[1]]
        return tuple(Pair(*pair) for pair in each)


class ComparedSide(NamedTuple):
    """One side of a comparison of answers: `factor * answer + offset`.

    Attributes:
        ids: Numbers of the answers; None where the side is a value alone.
        factor: What they are multiplied by.
        offset: What is added.
    """

    ids: FloatArray | None
    factor: FloatArray | None
    offset: FloatArray


@dataclass(frozen=True, kw_only=True)
class AnswerSelection:
    """A use of answers that reveals less than their values.

    Attributes:
        site: Where it is made.
        how: "largest", "value" (the largest itself is released), "ordered" or "compare".
        ids: The answers.
        factor: What each is multiplied by.
        offset: What is added to each.
        outcome: The place of the largest, the order, or the bits.
        other: For a comparison, the side on the right; the left one is the answers.
        sign: For a comparison, "<" or ">".
    """

    site: Site
    how: str
    ids: FloatArray
    factor: FloatArray
    offset: FloatArray
    outcome: FloatArray
    other: ComparedSide | None = None
    sign: str = ""


@dataclass(frozen=True, kw_only=True)
class Derived:
    """Answers that are sums of other answers, perhaps with more noise.

    Attributes:
        ids: Their numbers.
        parents: Numbers and factors of what is summed.
        offset: What is added.
        noise: The noise that is added, as messages describe it.
        value: The sums.
    """

    ids: FloatArray
    parents: tuple[tuple[FloatArray, FloatArray], ...]
    offset: FloatArray
    noise: tuple[Mapping[str, object], ...]
    value: FloatArray

    @property
    def numbers(self) -> IntArray:
        """Numbers of the sums, flat."""
        return numbers_of(self.ids)


class Quotient(NamedTuple):
    """Answers divided by others, element by element.

    Attributes:
        top: What is divided.
        bottom: What it is divided by.
    """

    top: ComparedSide
    bottom: ComparedSide


class PartKind(StrEnum):
    """How the worlds diverge although all answers and coins are equal."""

    ROWS = "rows"
    STEPS = "steps"
    SHAPES = "shapes"
    OPERANDS = "operands"
    DRAWS = "draws"
    REUSED = "noise reused"
    FAILURE = "failure"
    UNFOLLOWED = "not followed"
    """No difference: the next step cannot be followed in either world."""


@dataclass(frozen=True, kw_only=True)
class Parting:
    """The first place where the worlds diverge.

    Attributes:
        kind: How.
        sites: The line in each world; None where a world has ended.
        values: What differs, in each world, as text.
    """

    kind: PartKind
    sites: tuple[Site | None, Site | None]
    values: tuple[str, str]

    @property
    def is_difference(self) -> bool:
        """Whether the worlds differ there; otherwise only the replay ends."""
        return self.kind is not PartKind.UNFOLLOWED

    @property
    def is_release(self) -> bool:
        """Whether they differ in what they release, and one of them has not merely failed."""
        return self.is_difference and self.kind is not PartKind.FAILURE


class Unfollowed(NamedTuple):
    """A draw whose use could not be followed.

    Attributes:
        site: Where it is drawn, or used.
        why: Why not.
        unseen: Whether no use was observed at all: it adds to no observed answer, so it can excuse
            a divergence, but not a loss.
        public_coins: Whether the only open question is that coins are assumed public.
        mixed: Whether each noisy answer is combined with many values of the data here, which its
            noise cannot protect: it can excuse a divergence, but not a loss.
    """

    site: Site
    why: str
    unseen: bool = False
    public_coins: bool = False
    mixed: bool = False


@dataclass(kw_only=True)
class Transcript:
    """One replay.

    Attributes:
        noisy: Noise that was added, in order.
        choices: Choices whose probabilities differ.
        alone: Lines whose noise was used as a number before anything was added to it.
        selections: Uses of answers that reveal less than their values.
        derived: Answers made from others.
        quotients: Answers divided by others.
        released: Numbers of answers that were used as numbers.
        reduced: Numbers of answers of which a function that is not followed made fewer numbers.
        parting: Where the worlds diverge, if they do.
        unfollowed: Draws that could not be followed.
        log_weight: log P(answers) - log Q(answers), where Q is the law they were drawn from.
        first_coin: The first line that drew a coin shared by both worlds.
        coin_before: The same, if a later step depends on the record.
        draw_before: The same of other draws without data, such as whole numbers.
        follows_coins: Whether the use of a coin was seen: a comparison. Rows are chosen with
            probabilities by every generator, private or not.
        tosses: Coins that decide whether the target is in a sub-sample, in order.
        chance: Probability that the last of them is "in", given all answers; 1 if there is none.
        given: The answer to each question, by kind, line and count.
        uncoupled: The first line at which the number of coins depends on the record.
        seconds: How long it took.
    """

    noisy: list[NoisyStep] = field(default_factory=list)
    choices: list[ChoiceStep] = field(default_factory=list)
    alone: set[Site] = field(default_factory=set)
    selections: list[AnswerSelection] = field(default_factory=list)
    derived: list[Derived] = field(default_factory=list)
    quotients: list[Quotient] = field(default_factory=list)
    released: list[IntArray] = field(default_factory=list)
    reduced: list[IntArray] = field(default_factory=list)
    parting: Parting | None = None
    unfollowed: list[Unfollowed] = field(default_factory=list)
    log_weight: float = 0.0
    first_coin: Site | None = None
    coin_before: Site | None = None
    draw_before: Site | None = None
    follows_coins: bool = False
    tosses: list[Toss] = field(default_factory=list)
    chance: float = 1.0
    given: dict[Question, Any] = field(default_factory=dict)
    uncoupled: Site | None = None
    seconds: float = 0.0

    @property
    def summed(self) -> list[IntArray]:
        """Numbers of the answers that are parts of sums."""
        return [numbers_of(ids) for one in self.derived for ids, _ in one.parents]

    @property
    def divided(self) -> list[IntArray]:
        """Numbers of the answers on either side of a ratio."""
        return [numbers_of(side.ids) for one in self.quotients for side in one]

    def are_released(self, numbers: IntArray) -> NDArray[np.bool_]:
        """Whether each of these answers was used as a number."""
        return np.isin(numbers, joined(self.released))


def flat(value: object) -> FloatArray:
    """A value as a flat array of floats."""
    return np.asarray(value, dtype=float).ravel()


def joined(numbers: Iterable[IntArray]) -> IntArray:
    """All of these numbers in one array, which may be empty."""
    return np.concatenate([np.zeros(0, dtype=np.int64), *numbers])


def numbers_of(ids: object) -> IntArray:
    """Numbers of answers as a flat array."""
    return np.asarray(ids, dtype=np.int64).ravel()
