"""What happened in one fit of each world under equal noisy answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpaudit.replaying.laws import FloatArray, IntArray, NoiseLaw


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
        """How far it moves from world "out" to "in"; 0 where missing or infinite in both alike."""
        same = (self.inside == self.outside) | (np.isnan(self.inside) & np.isnan(self.outside))
        with np.errstate(invalid="ignore"):
            return np.where(same, 0.0, self.inside - self.outside)


Question = tuple[str, Site, int]
"""A question to the coordinator: its kind, its line, and how often that line asked before."""


class Toss(NamedTuple):
    """A coin of the record's own that decides whether it is in a sub-sample.

    Attributes:
        site: Where the coin is compared.
        chance: Probability that the record is in.
        is_in: Whether it is, in this fit.
    """

    site: Site
    chance: float
    is_in: bool = True


@dataclass(frozen=True, kw_only=True)
class NoisyStep:
    """Noise added to values; the results are answers, equal in both worlds.

    Attributes:
        site: Where the noise is drawn.
        first: Number of its first answer; the others follow.
        before: The value before noise in each world; flat.
        laws: The noise in each world; None where the law is not known.
        differs: Whether the parameters of each answer's noise differ between the worlds, its law
            known or not.
        answer: The answers; flat.
        draws: For each answer, its draws of noise and their factors (times their scales in world
            "in"): answers that share draws are charged together.
        law_names: The laws of the draws of each answer, as `listening` names them.
        seed: The seed of the generator of the noise, if it was set in this fit.
        toss: Number of the record's latest coin before it; None if there is none.
        is_lost: Whether a draw was compared, indexed, converted or reduced before it met the data,
            so that acceptance may have changed its law.
        key: The question that it answers.
    """

    site: Site
    first: int
    before: Pair
    laws: tuple[NoiseLaw, NoiseLaw] | None
    differs: NDArray[np.bool_]
    answer: FloatArray
    draws: tuple[tuple[tuple[int, float], ...], ...]
    law_names: frozenset[str]
    seed: str | None
    toss: int | None
    is_lost: bool
    key: Question

    @property
    def numbers(self) -> IntArray:
        """Numbers of its answers."""
        return np.arange(self.first, self.first + self.answer.size)

    @property
    def scales(self) -> Pair:
        """The scale of each answer's noise in each world; NaN where the law is not known."""
        if self.laws is None:
            nothing = np.full(self.answer.shape, np.nan)
            return Pair(nothing, nothing)
        return Pair(*(np.broadcast_to(law.scale, self.answer.shape) for law in self.laws))

    @property
    def moved(self) -> NDArray[np.bool_]:
        """Whether each value before noise, or its noise, differs between the worlds."""
        return np.asarray((self.before.shift != 0) | self.differs)


@dataclass(frozen=True, kw_only=True)
class ChoiceStep:
    """Places drawn with probabilities that differ between the worlds.

    Attributes:
        site: Where they are drawn.
        tables: The probabilities of all outcomes, once for each draw; two outcomes for a uniform
            draw that is compared with a limit.
        places: The outcome of each draw.
        toss: As in `NoisyStep`.
        key: The question that it answers.
        is_late: Whether they are drawn after the fit, as rows are from a model.
        sides: Of a uniform draw that is compared several times, whether it was below each limit.
    """

    site: Site
    tables: tuple[Pair, ...]
    places: IntArray
    toss: int | None
    key: Question
    is_late: bool = False
    sides: tuple[bool, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RedrawnNoise:
    """Many draws of one noise by a sampler of a library or of the user.

    Attributes:
        site: The line that draws.
        law: The law that replay charges; None if it is not known.
        drawn: The noise; shape (draws, elements).
    """

    site: Site
    law: NoiseLaw | None
    drawn: FloatArray


class SelectionKind(StrEnum):
    """What is revealed of answers that are only selected from."""

    LARGEST = "largest"
    ORDERED = "ordered"
    COMPARED = "compared"


@dataclass(frozen=True, kw_only=True)
class AnswerSelection:
    """A use of answers that reveals less than their values.

    A score is `factor * answer + offset`. All arrays are flat and of one length.

    Attributes:
        site: Where it is made.
        kind: The largest score, the whole order, or comparisons of each score with a limit.
        numbers: The answers; -1 for a score that is a plain number (factor 0).
        factor: What each answer is multiplied by.
        offset: What is added to each.
        outcome: The place of the largest; the places from the smallest score to the largest; or
            whether each score is above its limit.
        limits: Of comparisons: the limit of each score, or what is added to the noisy limit.
        limit_numbers: Of comparisons with other answers: their numbers, else None.
        limit_factor: Of comparisons with other answers: what these are multiplied by, else None.
        is_equal: Whether factor, offset and limits are equal in both worlds: otherwise data meets
            the answers again here.
    """

    site: Site
    kind: SelectionKind
    numbers: IntArray
    factor: FloatArray
    offset: FloatArray
    outcome: IntArray
    limits: FloatArray | None = None
    limit_numbers: IntArray | None = None
    limit_factor: FloatArray | None = None
    is_equal: bool = True

    @property
    def answers(self) -> list[int]:
        """Numbers of all its answers."""
        limits = [] if self.limit_numbers is None else self.limit_numbers.tolist()
        return [number for number in (*self.numbers.tolist(), *limits) if number >= 0]


class PartKind(StrEnum):
    """How the worlds part although all answers and coins are equal."""

    STEPS = "steps"
    SHAPES = "shapes"
    OPERANDS = "operands"
    DRAWS = "draws"
    SEEDS = "seeds"
    ROWS = "rows"
    FAILURE = "failure"


@dataclass(frozen=True, kw_only=True)
class Parting:
    """The first place where the worlds part.

    Attributes:
        kind: How.
        sites: The line in each world; None where a world has ended.
        values: What differs, in each world, as text.
    """

    kind: PartKind
    sites: tuple[Site | None, Site | None]
    values: tuple[str, str]


class LoneDraw(NamedTuple):
    """Noise for a value that only world "in" has, such as the count of a key.

    In both worlds its step has all values, so that this one does not count as moved.

    Attributes:
        key: The question that it is part of.
        element: Its place in the answer to that question.
        parting: How the worlds part here if this draw cannot be explained.
    """

    key: Question
    element: int
    parting: Parting


class Unfollowed(NamedTuple):
    """A draw or an answer that could not be followed.

    Attributes:
        site: Where it is drawn, or used.
        why: Why not.
        if_secret: Whether it is followed where coins are public.
    """

    site: Site
    why: str
    if_secret: bool = False


@dataclass(frozen=True, kw_only=True)
class FitRelease:
    """What one fit releases.

    Attributes:
        numbers: Every released number, by place: "rows" (a flat array of the cells) and places in
            the fitted model, such as "model.tables['age']"; flat arrays.
        digests: A digest of the bytes of each place, numbers or not.
        left_out: Places that could not be compared.
        generators: Places of generators of random numbers, of their states, of seeds of noise.
    """

    numbers: Mapping[str, FloatArray]
    digests: Mapping[str, str]
    left_out: tuple[str, ...] = ()
    generators: tuple[str, ...] = ()


@dataclass(kw_only=True)
class Transcript:
    """One fit of each world under equal answers, or one fit alone.

    Attributes:
        noisy: Noise that was added, in order.
        redrawn: Noise that was drawn many times, to test its law.
        has_samplers: Whether there is a sampler that can be drawn from so.
        lone: Draws that only world "in" makes; the others were aligned.
        choices: Choices whose probabilities differ.
        picked: Of a fit alone, the probabilities of each choice of one place, by its question.
        ranges: Of a fit alone, the ends of each single uniform draw, by its question.
        selections: Uses of answers that reveal less than their values.
        released: Numbers of answers that were used in any other way.
        parting: Where the worlds part, if they do.
        unfollowed: What could not be followed.
        charged_alone: Answers that get more noise: their costs together are less than their sum.
        bare: Noise of the fit that became a plain number before it met data: it may protect what
            differs between the worlds.
        sampled_from: Number of the first answer that was made after the fit.
        tosses: Coins of the record's own, in order.
        seeds: The seed of every generator that drew noise, by the line of the draw, if known.
        draws: How many draws each line made, noise and coins, in world "in".
        releases: What each world released; None where a fit failed or was ended.
        failures: Why a world's fit failed by itself, else None.
        is_coin_edge: Whether all uniform draws had one value, the smallest or the largest.
        tables: The synthetic table of each world, if it was wanted.
        seconds: How long it took.
    """

    noisy: list[NoisyStep] = field(default_factory=list)
    redrawn: list[RedrawnNoise] = field(default_factory=list)
    has_samplers: bool = False
    lone: list[LoneDraw] = field(default_factory=list)
    choices: list[ChoiceStep] = field(default_factory=list)
    picked: dict[Question, FloatArray] = field(default_factory=dict)
    ranges: dict[Question, tuple[float, float]] = field(default_factory=dict)
    selections: list[AnswerSelection] = field(default_factory=list)
    released: set[int] = field(default_factory=set)
    parting: Parting | None = None
    unfollowed: list[Unfollowed] = field(default_factory=list)
    charged_alone: list[Unfollowed] = field(default_factory=list)
    bare: list[Unfollowed] = field(default_factory=list)
    sampled_from: int = 0
    tosses: list[Toss] = field(default_factory=list)
    seeds: dict[Site, set[str]] = field(default_factory=dict)
    draws: dict[Site, int] = field(default_factory=dict)
    releases: tuple[FitRelease | None, FitRelease | None] = (None, None)
    failures: tuple[str | None, str | None] = (None, None)
    is_coin_edge: bool = False
    tables: tuple[pd.DataFrame | None, pd.DataFrame | None] = (None, None)
    seconds: float = 0.0

    @property
    def moving(self) -> list[NoisyStep]:
        """The steps in which the record moves an answer."""
        return [step for step in self.noisy if step.moved.any()]


def flat(value: Any) -> FloatArray:
    """A value as a flat array of floats."""
    return np.asarray(value, dtype=float).ravel()


def numbers_of(ids: Any) -> IntArray:
    """Numbers of answers as a flat array."""
    return np.asarray(ids, dtype=np.int64).ravel()
