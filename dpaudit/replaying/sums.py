"""Answers that are summed before release: noise in shares, and noise added to noise.

Where answers are used only in a sum, the sum is the answer: one step, with the law of all its
noise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Set
from dataclasses import replace
from typing import Final

import numpy as np

from dpaudit.replaying.laws import (
    GammaDifference,
    Gaussian,
    IntArray,
    LaplaceSum,
    NoiseLaw,
    Share,
    law_of,
)
from dpaudit.replaying.transcript import (
    Derived,
    NoisyStep,
    Pair,
    Question,
    Transcript,
    flat,
    numbers_of,
)

_ROWS_EACH: Final = 10
"""Rows needed for each answer that rows share, before it counts as released."""


def settled(transcript: Transcript) -> Transcript:
    """The transcript with sums in place of their parts.

    Args:
        transcript: One replay.

    Returns:
        The transcript unchanged if nothing is summed, if parts of a sum are also used elsewhere
        (then the parts count, and determine the sum), or if the law of a sum's noise is unknown.
    """
    if not transcript.summed:
        return transcript
    summed = np.concatenate(transcript.summed)
    selected = [numbers_of(one.ids) for one in transcript.selections]
    others = [
        numbers_of(one.other.ids)
        for one in transcript.selections
        if one.other is not None and one.other.ids is not None
    ]
    used = np.concatenate(
        [np.zeros(0, dtype=int), *selected, *others, *transcript.divided, *transcript.reduced]
    )
    alone = len(np.unique(summed)) == len(summed) and not np.isin(summed, used).any()
    if not alone or transcript.are_released(summed).any():
        return transcript
    steps: dict[int, NoisyStep] = {step.first: step for step in transcript.noisy}
    weighed: set[int] = set()
    for derived in transcript.derived:
        made = _sum_of(derived, list(steps.values()), weighed)
        if made is None:
            return transcript
        steps[made.first] = made
    left = []
    for step in steps.values():
        gone = np.isin(np.arange(step.first, step.first + step.answer.size), summed)
        if gone.any() and not gone.all():
            return transcript
        if not gone.any():
            left.append(step)
    if any(step.toss is not None for step in left):  # drawn as mixtures: not as sums of shifts
        return replace(transcript, noisy=left, derived=[])
    change = sum(step.log_weight for step in left) - sum(
        step.log_weight for step in transcript.noisy
    )
    return replace(transcript, noisy=left, derived=[], log_weight=transcript.log_weight + change)


def shown(transcript: Transcript) -> IntArray:
    """Numbers of answers that released ones determine: a sum's last part, or what rows share."""
    before = set(np.concatenate([np.zeros(0, dtype=int), *transcript.released]).tolist())
    known = _with_rests(transcript, before)
    shared = _shared_by_rows(transcript, known)
    if shared:
        known = _with_rests(transcript, known | shared)
    return np.asarray(sorted(known - before), dtype=np.int64)


def _with_rests(transcript: Transcript, released: Set[int]) -> set[int]:
    """The known answers, and those that they determine through ratios and sums without noise."""
    known, count = set(released), -1
    while count != len(known):
        count = len(known)
        for one in transcript.quotients:
            for pair in zip(*(numbers_of(side.ids).tolist() for side in one), strict=True):
                if not known.isdisjoint(pair):
                    known.update(pair)
        for derived in transcript.derived:
            if derived.noise:
                continue
            parts = [numbers_of(ids) for ids, _ in derived.parents]
            for numbers in zip(numbers_of(derived.ids), *parts, strict=True):
                left = [int(one) for one in numbers if int(one) not in known]
                if len(left) == 1:
                    known.add(left[0])
    return known


def _shared_by_rows(transcript: Transcript, known: Set[int]) -> set[int]:
    """Answers that count as released because many rows contain them, each with noise of its own.

    Enough rows determine them, as enough samples determine the parameters of a sampler. They are
    the answers of which the released sums are linear functions of full rank.
    """
    if not any(one.noise for one in transcript.derived):
        return set()
    noisy = parts_of(one for one in transcript.derived if one.noise)
    plain = parts_of(one for one in transcript.derived if not one.noise)

    def unknown(parts: Iterable[tuple[int, float]]) -> dict[int, float]:
        """The unknown answers in a sum and their factors; sums without noise are expanded."""
        found: dict[int, float] = defaultdict(float)
        for number, factor in parts:
            if number in plain and number not in known:
                for one, own in unknown(plain[number]).items():
                    found[one] += factor * own
            elif number >= 0 and number not in known:
                found[number] += factor
        return found

    rows = [unknown(noisy[number]) for number in known & noisy.keys()]
    columns = {one: at for at, one in enumerate(sorted({one for row in rows for one in row}))}
    if not columns or len(rows) < _ROWS_EACH * len(columns):
        return set()
    matrix = np.zeros((len(rows), len(columns)))
    for place, row in enumerate(rows):
        for one, factor in row.items():
            matrix[place, columns[one]] = factor
    if np.linalg.matrix_rank(matrix) < len(columns):
        return set()
    return set(columns)


def parts_of(derived: Iterable[Derived]) -> dict[int, list[tuple[int, float]]]:
    """The parts of each sum with their factors, by the number of the sum.

    Args:
        derived: The sums.
    """
    found: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for one in derived:
        numbers = numbers_of(one.ids)
        for ids, factor in one.parents:
            by = np.broadcast_to(flat(factor), numbers.shape)
            for number, part, own in zip(numbers, numbers_of(ids), by, strict=True):
                found[int(number)].append((int(part), float(own)))
    return found


def _sum_of(derived: Derived, steps: list[NoisyStep], weighed: set[int]) -> NoisyStep | None:
    """A sum as one step; None if its law is unknown.

    Several rows of one step may be summed: `weighed` holds the steps whose weight is already in a
    sum.
    """
    numbers = numbers_of(derived.ids)
    if numbers.size == 0 or not np.array_equal(numbers, numbers[0] + np.arange(numbers.size)):
        return None
    offset = np.broadcast_to(flat(derived.offset), numbers.shape)
    before, moved = [offset, offset], np.zeros(numbers.shape)
    shares: list[list[Share]] = [[], []]
    drawn: tuple[int, ...] = ()
    log_weight, site, seed = 0.0, None, None
    tosses: set[int | None] = set()
    keys: frozenset[Question] = frozenset()
    for ids, factor in derived.parents:
        found = _taken(numbers_of(ids), steps)
        if found is None:
            return None
        step, places = found
        by = np.broadcast_to(flat(factor), numbers.shape)
        for world in (0, 1):
            own = shares_of(step.laws[world], places, step.answer.size)
            if own is None:
                return None
            shares[world] += [one._replace(factor=one.factor * by) for one in own]
            before[world] = before[world] + by * step.before[world][places]
        moved = moved + by * step.moved[places]
        tosses.add(step.toss)
        keys |= step.keys
        log_weight += 0.0 if step.first in weighed else step.log_weight
        weighed.add(step.first)
        drawn += step.drawn
        site, seed = site or step.site, seed or step.seed
    for message in derived.noise:
        fields = [np.broadcast_to(flat(message[name]), numbers.shape) for name in Share._fields[1:]]
        for world in (0, 1):
            shares[world].append(Share(str(message["law"]), *fields))
    laws = [law_of(one) for one in shares]
    if laws[0] is None or laws[1] is None or site is None or len(tosses) > 1:
        return None
    toss = tosses.pop()
    answer = flat(derived.value)
    if isinstance(laws[0], Gaussian):  # each draw is moved by a shift, and so is their sum
        world = next((at for at in (0, 1) if np.allclose(moved, 0.0) or steps[0].base == at), 0)
        noise = answer - before[world]
        law = laws[world]
        assert law is not None
        log_weight = float(np.sum(law.log_density(noise) - law.log_density(noise - moved)))
    return NoisyStep(
        site=site,
        first=int(numbers[0]),
        before=Pair(before[0], before[1]),
        laws=(laws[0], laws[1]),
        answer=answer,
        seed=seed,
        drawn=drawn,
        moved=moved,
        log_weight=log_weight,
        base=steps[0].base,
        toss=toss,
        keys=keys,
    )


def _taken(numbers: IntArray, steps: list[NoisyStep]) -> tuple[NoisyStep, IntArray] | None:
    """The step that all these answers belong to, and their places in it; None if there is none."""
    for step in steps:
        places = numbers - step.first
        if np.all((places >= 0) & (places < step.answer.size)):
            return step, places
    return None


def shares_of(law: NoiseLaw, places: IntArray, size: int) -> list[Share] | None:
    """The law of some elements of a step, as a sum of draws.

    Args:
        law: The law of all elements of the step.
        places: Places of the elements that are asked for.
        size: Number of elements of the step.

    Returns:
        The draws; None if the law cannot be summed.
    """
    scale = np.broadcast_to(law.scale, (size,))[places]
    one = np.ones(len(places))
    if isinstance(law, Gaussian):
        return [Share("gaussian", one, scale, one)]
    if law.name in ("laplace", "gamma", "geometric"):
        shape = np.broadcast_to(getattr(law, "shape", 1.0), (size,))[places]
        return [Share(law.name, one * getattr(law, "sign", 1.0), scale, shape)]
    if isinstance(law, GammaDifference):
        shape = np.broadcast_to(law.shape, (size,))[places]
        return [Share("gamma", sign * one, scale, shape) for sign in (1.0, -1.0)]
    if isinstance(law, LaplaceSum):
        scales = [np.broadcast_to(own, (size,))[places] for own in (law.scale, *law.others)]
        return [Share("laplace", one, own, one) for own in scales]
    if law.name in ("discrete laplace", "discrete gaussian"):
        return [Share(law.name.replace(" ", "_"), one, scale, one)]
    return None
