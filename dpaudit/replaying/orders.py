"""How a fit in both worlds, or in one, is made, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from dpaudit.plugins.protocols import World
from dpaudit.replaying.charges import charges_of
from dpaudit.replaying.costs import RARE, TableCost
from dpaudit.replaying.gaps import GapDraw
from dpaudit.replaying.laws import FloatArray, NoiseLaw
from dpaudit.replaying.transcript import (
    ChoiceStep,
    Parting,
    Question,
    Site,
    Transcript,
)

MOST_ALIGNED: Final = 50
"""The places tried of a draw that only one world makes, among those of equal values."""
HIDDEN: Final = -311.0
"""Where a draw lies that only one world makes, in scales: below any threshold."""
_PASSED_ON: Final = (
    *("own_coins", "edge", "most_draws", "wide", "samples", "redraws", "notes_ranges"),
)
"""Fields of an order that the worlds know by the same names."""
PLACES: Final = (HIDDEN, -97.0, -31.0, -7.3, -2.1, -0.6, 0.0, 0.5, 1.7, 5.9, 23.0, 88.0, 293.0)
"""Where an answer is put to see what follows it, in scales of its noise, at irregular distances."""
WIDE: Final = (1.0, 1.0, 30.0)
"""What other noise is multiplied by, in each of the fits with an answer at the same place."""
_MOST_OUTCOMES: Final = 24
"""Outcomes that are tried."""
_FAR: Final = 1e6
"""A score is made the largest by this many scales of its noise."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """How a fit in each world, or in one, is made.

    Attributes:
        number: Names its streams: seeds, coins and answers.
        tables: What each world trains on; one world alone if there is one table.
        rows: Synthetic rows.
        is_natural: Whether the code draws by itself, and nothing is asked.
        is_heard: Whether the draws of such a fit are heard.
        base: The world whose law answers are drawn from.
        apart: Every answer that moves lies this many scales from its value before noise; None for
            noise as drawn.
        placed: The same for single answers, by question; NaN for noise as drawn.
        values: The values of single answers, by question; NaN for noise as drawn.
        chosen: The outcomes of choices, by question: the place, or for a uniform draw whether it is
            below each of its first limits.
        notes_ranges: Whether the ranges of single uniform draws are noted.
        nudged: Questions whose answers are changed by a little, in both worlds alike.
        edge: The value of every uniform draw; None for draws.
        wide: What all noise is multiplied by.
        own_coins: How the record's own coins fall: all "in", all "out", or in turn: "even" begins
            with one that is in, "odd" with one that is out.
        keeps: Whether a comparison that holds puts a record into a sub-sample, or one that fails.
        most_draws: A fit with more draws is ended.
        samples: Rows and seed of further samples.
        watches_state: Whether the state of the fitted model is compared.
        keeps_tables: Whether the synthetic tables are wanted.
        redraws: How often a natural fit draws again from each sampler of a library.
    """

    number: int
    tables: Mapping[World, pd.DataFrame]
    rows: int
    is_natural: bool = False
    is_heard: bool = True
    base: World = World.IN
    apart: float | None = None
    placed: Mapping[Question, FloatArray] = field(default_factory=dict)
    values: Mapping[Question, FloatArray] = field(default_factory=dict)
    chosen: Mapping[Question, tuple[int, ...]] = field(default_factory=dict)
    notes_ranges: bool = False
    nudged: Collection[Question] = ()
    edge: float | None = None
    wide: float = 1.0
    own_coins: str = "in"
    keeps: bool = True
    most_draws: int | None = None
    samples: tuple[tuple[int, int], ...] = ()
    watches_state: bool = True
    keeps_tables: bool = False
    redraws: int = 0

    def message(self, seed: int) -> dict[str, Any]:
        """What a world needs to know of it, and the root of the streams of both worlds."""
        natural = "natural" if self.is_heard else "unheard"
        return {
            "kind": "begin",
            "mode": natural if self.is_natural else "lockstep",
            "seed": seed,
            "kept": self.keeps,
            "watch_state": self.watches_state,
            **{name: getattr(self, name) for name in _PASSED_ON},
        }

    @property
    def worlds(self) -> tuple[World, ...]:
        """The worlds that fit."""
        return tuple(self.tables)


@dataclass
class Alignment:
    """Where world "in" makes draws that world "out" lacks.

    Among equal values each may be the one that only world "in" has: they are tried in turn.

    Attributes:
        turns: Lines in a loop that world "in" passes once more: the possible turns, and how that
            showed.
        tried: How many places were tried before.
        most: The largest number of possible places.
    """

    turns: dict[Site, tuple[range, Parting]] = field(default_factory=dict)
    tried: int = 0
    most: int = 1

    def choose(self, places: range) -> int:
        """The place to try, the last one first."""
        self.most = max(self.most, min(len(places), MOST_ALIGNED))
        return places[-1 - min(self.tried, len(places) - 1)]

    def advance(self) -> bool:
        """Turns to the next place; returns whether there is another one."""
        self.tried += 1
        return self.tried < self.most


class AskedLines(NamedTuple):
    """Lines that need more than notes, found by earlier attempts.

    Attributes:
        asked: Their values differ between the worlds: their notes have become questions.
        located: Their samplers add noise to data, which may be 0.
        loops: They draw one coin per record.
        bent: They make noise of uniform draws by a formula.
        ranged: They draw from ranges whose ends depend on the data.
    """

    asked: set[tuple[str, int]]
    located: set[tuple[str, int]]
    loops: set[tuple[str, int]]
    bent: set[tuple[str, int]]
    ranged: set[tuple[str, int]]


@dataclass
class Learned:
    """What earlier fits have taught about the code.

    Attributes:
        lines: Its lines that need more than notes.
        alignment: Where world "in" makes draws that world "out" lacks.
        gap_draws: Uniform draws that get one value for both worlds, by the choices before them.
        free_seeds: Lines that take seeds from the system's entropy, or from the time.
    """

    lines: AskedLines = field(
        default_factory=lambda: AskedLines(*(set() for _ in AskedLines._fields))
    )
    alignment: Alignment = field(default_factory=Alignment)
    gap_draws: dict[Question, GapDraw] = field(default_factory=dict)
    free_seeds: set[Site] = field(default_factory=set)

    def follow(self, gap_draws: Mapping[Question, GapDraw]) -> None:
        """Gives both worlds equal values of these draws from now on."""
        self.gap_draws.update(gap_draws)
        self.lines.ranged.update(draw.question[1][:2] for draw in gap_draws.values())


def find_change(
    changes: Callable[[float], bool | None],
    low: float,
    high: float,
    law: NoiseLaw,
    *,
    width: float,
) -> tuple[float, float] | None:
    """Narrows the interval of noise in which something changes; None if that is not known.

    Args:
        changes: Whether it has changed if the noise of an answer is this; None if not known.
        low: Noise at which it has not.
        high: Noise at which it has.
        law: The law of the noise.
        width: Where to stop, in scales; noise of whole numbers is narrowed to a step.
    """
    while high - low > (1.0 if law.whole else width * float(law.scale)) * 1.001:
        middle = 0.5 * (low + high)
        middle = float(np.floor(middle)) if law.whole else middle
        has_changed = changes(middle)
        if has_changed is None:
            return None
        low, high = (low, middle) if has_changed else (middle, high)
    return low, high


def costliest_outcomes(transcript: Transcript) -> list[dict[str, Any]]:
    """Orders of replays in which choices have each outcome in turn, the costliest first.

    Args:
        transcript: A replay.

    Returns:
        Fields of `Order`.
    """
    orders: list[tuple[int, float, dict[str, Any]]] = []
    for choice in transcript.choices:
        if not choice.is_late:
            cost = TableCost.of(*choice.tables[0])
            orders += [
                (rank, -cost.epsilon, {"chosen": {choice.key: _outcome(choice, place)}})
                for rank, place in enumerate(_rank_places(cost))
            ]
    for charge in charges_of(transcript, is_internal=lambda site: False).charges:
        if charge.answers and isinstance(charge.cost, TableCost):
            orders += [
                (
                    rank,
                    -charge.cost.epsilon,
                    {"placed": _raise_answer(transcript, charge.answers[place])},
                )
                for rank, place in enumerate(_rank_places(charge.cost))
            ]
    orders.sort(key=lambda order: order[:2])
    return [order for *_, order in orders[:_MOST_OUTCOMES]]


def _rank_places(cost: TableCost) -> list[int]:
    """The places of a table: those that cost most either way, the rarest, and the others."""
    inside, outside = cost.tables
    likely = np.maximum(inside, outside)
    possible = np.flatnonzero(likely >= RARE)
    with np.errstate(divide="ignore"):
        losses = np.log(inside[possible]) - np.log(outside[possible])
    first = np.argmax(losses), np.argmin(losses), np.argmin(likely[possible])
    ranked = [*first, *np.argsort(-np.abs(losses), kind="stable")]
    return list(dict.fromkeys(possible[ranked].tolist()))


def _outcome(choice: ChoiceStep, place: int) -> tuple[int, ...]:
    """A place as `Order` has it."""
    if not choice.sides:
        return (place,)
    # each comparison of a uniform draw but the last leaves one outcome: that it went otherwise
    last = () if place == len(choice.sides) else (not choice.sides[place],)
    return (*choice.sides[:place], *last)


def _raise_answer(transcript: Transcript, number: int) -> dict[Any, Any]:
    """An answer as the largest of the scores that are made of it and others."""
    [step] = [step for step in transcript.noisy if 0 <= number - step.first < step.answer.size]
    factors = [
        factor
        for selection in transcript.selections
        for own, factor in zip(selection.numbers.tolist(), selection.factor.tolist(), strict=True)
        if own == number
    ]
    scales = np.full(step.answer.size, np.nan)
    scales[number - step.first] = np.sign(factors[0]) * _FAR
    return {step.key: scales}
