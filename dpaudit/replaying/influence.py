"""Checks whether answers influence what is released: the same replay with other answers.

A coin whose outcome is never used, or a branch whose two sides do the same, reveals nothing, so its
loss must not count. The answers that a violation rests on are therefore changed, one question at a
time, equally in both worlds. If no later step and no row changes, nothing shows that they are
released. The same holds of draws that are rejected and made again: without one of them, all else
stays the same.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from dpaudit.replaying.laws import Bounded, FloatArray, NoiseLaw
from dpaudit.replaying.lockstep import Played, same
from dpaudit.replaying.loss import How, StepLoss
from dpaudit.replaying.transcript import (
    ChoiceStep,
    NoisyStep,
    PartKind,
    Question,
    Site,
    Transcript,
    flat,
    joined,
)

_FAR: Final = (10.0, 100.0)
"""Noise of another answer, in scales: first a likely one, then one that shows even in few rows.

The second is too rare to count where a claim has a delta: code may never show such a number.
"""

_NEAR: Final = 4
"""Redraws of answers, within a scale of the noise, at which a slight change is tried."""


_RUNGS: Final = 6
"""Equal steps of which each must show: code that only compares a number has fewer limits."""
_SPANS: Final = (1.0, 4.0, 16.0, 64.0)
"""Sizes of such steps, in units of the noise or of how far the value moves, the smaller one."""
_AWAY: Final = 100.0
"""How far all other noisy numbers are moved meanwhile, in scales of their noise."""


class Suspect(NamedTuple):
    """Answers that raise the loss of a replay.

    Attributes:
        keys: The questions that they answer.
        site: Where their noise is drawn, or the choice made.
        loss: How far they raise it.
        as_numbers: Whether they count by their density, as numbers.
    """

    keys: frozenset[Question]
    site: Site
    loss: float
    as_numbers: bool


def suspects(found: Sequence[StepLoss]) -> list[Suspect]:
    """The answers that raise the loss of a replay, largest first.

    Args:
        found: The losses of its steps.
    """
    sign = 1.0 if sum(one.value for one in found) > 0 else -1.0
    sums: dict[tuple[frozenset[Question], Site], float] = defaultdict(float)
    for one in found:
        sums[one.keys, one.site] += sign * one.value
    numbers = {(one.keys, one.site) for one in found if one.how is How.RELEASED or one.is_value}
    raising = [Suspect(*place, loss, place in numbers) for place, loss in sums.items() if loss > 0]
    return sorted(raising, key=lambda one: -one.loss)


def other_answers(
    transcript: Transcript, keys: Set[Question], rng: np.random.Generator, *, pure: bool
) -> Iterator[Mapping[Question, Any]]:
    """The answers of a replay with some of them changed.

    Numbers get other noise: it moves some elements up and the others down, then the other way
    round, then both farther away. A coin falls on its other side. Another place is chosen, a likely
    or an unlikely one.

    Args:
        transcript: The replay.
        keys: The questions whose answers change.
        rng: Draws the noise.
        pure: Whether the rarest numbers count, because the claim has no delta.

    Yields:
        Answers by question.
    """
    steps = [(key, step) for step in transcript.noisy for key in step.keys & keys]
    choices = [(key, one) for one in transcript.choices for key in one.keys & keys]
    signs = {key: rng.permutation(np.resize([1.0, -1.0], step.answer.size)) for key, step in steps}
    for far, sign in itertools.product(_FAR if pure else _FAR[:1], (1.0, -1.0)):
        numbers = {
            key: _moved(step, sign * signs[key] * far * rng.uniform(0.5, 1.0))
            for key, step in steps
        }
        places = {key: _another(one, key, transcript.given[key], sign) for key, one in choices}
        yield {**transcript.given, **numbers, **places}


def near_answers(
    transcript: Transcript, keys: Set[Question], rng: np.random.Generator
) -> Iterator[Mapping[Question, Any]]:
    """The answers of a replay, then with some numbers redrawn near the values before noise.

    A slight change of an answer that is clipped shows nothing; near another answer it may. If an
    answer beyond a limit shows less than one within, only its mirror image is tried: there the loss
    is as large, with the other sign.

    Args:
        transcript: The replay.
        keys: The questions whose answers change.
        rng: Draws the noise.

    Yields:
        Answers by question.
    """
    yield transcript.given
    steps = [(key, step) for step in transcript.noisy for key in step.keys & keys]
    if not all(step.laws[0].even_tails for _, step in steps):
        numbers = {
            key: step.before.inside + step.before.outside - step.answer for key, step in steps
        }
        yield {**transcript.given, **numbers}
        return
    for _ in range(_NEAR):
        numbers = {
            key: _moved(step, rng.uniform(-1.0, 1.0, step.answer.size)) for key, step in steps
        }
        yield {**transcript.given, **numbers}


def size_of_steps(
    transcript: Transcript,
    keys: Set[Question],
    shows: Callable[[Mapping[Question, Any], Mapping[Question, FloatArray]], bool],
) -> float | None:
    """The size of the shortest equal steps of which each shows.

    They show numbers which are both rounded and limited. A slight change of such a number is
    rounded away, and one that is moved far up is at its limit.
    All numbers move equally from their values before noise, and all others are far above them, then
    far below, so that no maximum, order or comparison between noisy numbers changes. One with a
    fixed limit changes in one step.

    Args:
        transcript: The replay.
        keys: The questions whose answers move.
        shows: Whether a step shows, given the answers, and how far some are changed in world "out".

    Returns:
        The size in the largest scale of their noise, with its sign; None if there is none.
    """
    steps = {key: step for step in transcript.noisy for key in step.keys}
    steps = {
        key: one for key, one in steps.items() if np.size(transcript.given[key]) == one.answer.size
    }
    own = [steps[key] for key in keys & steps.keys()]
    if len(own) < len(keys):
        return None
    width = max(one.laws[0].width for one in own)
    moved = max(float(np.abs(one.before.shift).max(initial=0.0)) for one in own)
    others = {key: one for key, one in steps.items() if key not in keys}
    values = np.concatenate([flat(transcript.given[key]) for key in steps])
    away = {
        key: np.rint(_AWAY * max(width, one.laws[0].width) + 2.0 * np.ptp(values)) + 1.0
        for key, one in others.items()
    }
    sides = (1.0, -1.0) if others else (0.0,)
    lengths = [span * (min(width, moved) or width) for span in _SPANS]
    if any(one.laws[0].whole for one in own):
        lengths = sorted({float(np.ceil(one)) for one in lengths})

    def rung_shows(side: float, start: float, length: float) -> bool:
        far = {key: transcript.given[key] + side * by for key, by in away.items()}
        here = {key: steps[key].before.inside + start for key in keys}
        moves = {key: np.full(np.shape(transcript.given[key]), length) for key in keys}
        return shows({**transcript.given, **far, **here}, moves)

    for length, sign in itertools.product(lengths, (1.0, -1.0)):
        step = sign * length
        if all(rung_shows(side, at * step, step) for at in range(_RUNGS) for side in sides):
            return step / width
    return None


def _moved(step: NoisyStep, scales: FloatArray) -> FloatArray:
    """An answer of a step with noise of so many scales."""
    law = step.laws[0]
    noise = (law.width + np.abs(step.before.shift)) * scales
    if isinstance(law, Bounded):
        noise = np.clip(noise, *law.ends)
    noise = np.where(np.isfinite(law.log_density(noise)), noise, -noise)  # one-sided noise
    return step.before.inside + (np.rint(noise) if law.whole else noise)


def _another(choice: ChoiceStep, key: Question, drawn: Any, sign: float) -> Any:
    """Another outcome of a choice."""
    if key[0] == "coin":
        moved = flat(choice.table.inside) != flat(choice.table.outside)
        return np.where(moved, ~drawn, drawn)
    ranked = np.argsort(-sign * (choice.table.inside + choice.table.outside), kind="stable")
    return np.where(drawn == ranked[0], ranked[1 % len(ranked)], ranked[0])


def other_bits(
    transcript: Transcript, keys: Set[Question], rng: np.random.Generator, *, fewest: float
) -> Mapping[Question, Any] | None:
    """The answers of a replay with several of its bits the other way round.

    A bit is the outcome of a comparison of a noisy number with a limit. As many bits become true as
    false, if there are both: released bits show that, but no majority or count of them does.

    Args:
        transcript: The replay.
        keys: The questions whose answers raise the loss by what they are compared with.
        rng: Draws which bits.
        fewest: Fewer bits are not changed.

    Returns:
        Answers by question; None if there are fewer than two bits, or than that.
    """
    below, above = _bits(transcript, keys)
    if len(below) + len(above) < max(2, fewest):
        return None
    given, many = dict(transcript.given), min(len(below), len(above)) or 2
    for own in (below, above):
        for key, place, value in (own[at] for at in rng.permutation(len(own))[:many]):
            given[key] = np.array(given[key])
            given[key].flat[place] = value
    return given


_Bits = list[tuple[Question, int, float]]
"""Noisy numbers that are compared with limits: question, place, a value beyond the limit."""


def _bits(transcript: Transcript, keys: Set[Question]) -> tuple[_Bits, _Bits]:
    """Noisy numbers that differ between the worlds, below the limit and above it."""
    limits: dict[int, float] = {}
    for one in transcript.selections:
        if one.how == "compare" and one.other is not None and one.other.ids is None:
            with np.errstate(divide="ignore", invalid="ignore"):
                bounds = (flat(one.other.offset) - flat(one.offset)) / flat(one.factor)
            limits |= dict(zip(one.ids.astype(int).tolist(), bounds.tolist(), strict=True))
    below: _Bits = []
    above: _Bits = []
    for step in transcript.noisy:
        for key in step.keys & keys:
            own = flat(transcript.given[key])
            if own.size != step.answer.size:
                continue
            for place in np.flatnonzero(step.before.shift).tolist():
                limit = limits.get(int(step.numbers[place]), math.nan)
                if math.isfinite(limit):
                    is_below = bool(own[place] < limit)
                    value = limit + (1.0 if is_below else -1.0) * step.laws[0].width
                    value = float(np.rint(value)) if step.laws[0].whole else value
                    (below if is_below else above).append((key, place, value))
    return below, above


class AskedAgain(NamedTuple):
    """A question that its line asks again, with the same values before noise or probabilities.

    Attributes:
        key: The question.
        again: The later one.
        loss: How far the answer raises or lowers the loss.
    """

    key: Question
    again: Question
    loss: float


def repeats(
    transcript: Transcript, found: Sequence[StepLoss], lines: Set[tuple[str, Site]]
) -> list[AskedAgain]:
    """Questions that may be asked again because their answers were rejected.

    Args:
        transcript: The replay.
        found: Its losses.
        lines: Kinds of questions and lines that may reject answers.
    """
    loss: dict[Question, float] = defaultdict(float)
    for one in found:
        for key in one.keys:
            loss[key] += abs(one.value)
    used = set(joined(transcript.released).tolist())
    asked = [(choice.keys, choice.table) for choice in transcript.choices]
    asked += [
        (step.keys, step.before)
        for step in transcript.noisy
        if not used.issuperset(step.numbers.tolist())  # a number that is used is not rejected
    ]
    last: dict[object, Question] = {}
    made = []
    for keys, values in asked:
        for key in (one for one in keys if one[:2] in lines):
            alike = key[:2], *(flat(one).tobytes() for one in values)
            before = last.get(alike)
            if before is not None and loss[before]:
                made.append(AskedAgain(before, key, loss[before]))
            last[alike] = key
    return made


def answers_without(transcript: Transcript, repeat: AskedAgain) -> Mapping[Question, Any]:
    """The answers of a replay as if a repeated question had been asked once less.

    Args:
        transcript: The replay.
        repeat: The question.
    """
    counts: dict[tuple[str, Site], int] = defaultdict(int)
    left: dict[Question, Any] = {}
    skipped = _skipped(transcript, repeat)
    for key, value in transcript.given.items():
        if key not in skipped:
            counts[key[:2]] += 1
            left[*key[:2], counts[key[:2]]] = value
    return left


def _skipped(transcript: Transcript, repeat: AskedAgain) -> frozenset[Question]:
    """All questions from one up to when it is asked again."""
    every = list(transcript.given)
    return frozenset(every[every.index(repeat.key) : every.index(repeat.again)])


def was_rejected(first: Played, second: Played, repeat: AskedAgain) -> bool:
    """Whether all else is the same in a replay in which a question is asked once less.

    Its answer was then rejected, as one is drawn again until it is in range or new: how often that
    happened is not released.

    Args:
        first: The replay.
        second: The same with `answers_without` the repeat.
        repeat: The question.
    """
    skipped = _skipped(first.transcript, repeat)
    rest = replace(
        first.transcript,
        noisy=[one for one in first.transcript.noisy if not one.keys & skipped],
        choices=[one for one in first.transcript.choices if not one.keys & skipped],
    )
    return not has_influence(first._replace(transcript=rest), second)


def has_influence(first: Played, second: Played) -> bool:
    """Whether a replay with other answers differs in what follows them.

    Args:
        first: The replay.
        second: The same with some answers changed.
    """
    tables = zip(first.tables, second.tables, strict=True)
    return not same_steps(first.transcript, second.transcript) or not all(
        one is two or _are_close(one, two) for one, two in tables
    )


def differs(played: Played) -> bool:
    """Whether the worlds of a replay of one table differ, apart from a failure in one of them.

    Rows differ by more than rounding: sums of other numbers are equal up to the last bits.

    Args:
        played: The replay; some of its answers differ between the worlds.
    """
    transcript = played.transcript
    moved = any(not same(*step.before) for step in transcript.noisy)
    parting = transcript.parting
    parted = parting is not None and parting.is_release
    if parting is not None and parting.kind is PartKind.ROWS:
        parted = not _are_close(*played.tables)
    return parted or bool(transcript.choices) or moved


def _are_close(first: pd.DataFrame | None, second: pd.DataFrame | None) -> bool:
    """Whether two tables are equal up to rounding."""
    if first is None or second is None or first.shape != second.shape:
        return False
    if not (first.columns.equals(second.columns) and first.index.equals(second.index)):
        return False
    pairs = ((first.iloc[:, at], second.iloc[:, at]) for at in range(first.shape[1]))
    return all(
        one.equals(two)
        or (one.dtype.kind == two.dtype.kind == "f" and same(one.to_numpy(), two.to_numpy()))
        for one, two in pairs
    )


def same_steps(first: Transcript, second: Transcript) -> bool:
    """Whether two replays have the same values before noise, probabilities and divergence.

    Noise has the same law as well: its scale, or on which side of 0 it lies, may follow a coin, and
    its law is then a mixture.
    """
    if len(first.noisy) != len(second.noisy):
        return False
    noisy = all(
        one.site == two.site
        and all(map(same, one.before, two.before))
        and all(map(are_alike, one.laws, two.laws))
        for one, two in zip(first.noisy, second.noisy, strict=True)
    )
    choices = same_choices(first.choices, second.choices)
    return noisy and choices and first.parting == second.parting


def same_choices(first: Sequence[ChoiceStep], second: Sequence[ChoiceStep]) -> bool:
    """Whether places or coins are drawn in the same lines, with the same probabilities."""
    return len(first) == len(second) and all(
        one.site == two.site and all(map(same, one.table, two.table))
        for one, two in zip(first, second, strict=True)
    )


def are_alike(first: NoiseLaw, second: NoiseLaw) -> bool:
    """Whether two laws are the same, with the same parameters."""
    fields = (vars(first).values(), vars(second).values())
    return type(first) is type(second) and all(map(same, *fields))
