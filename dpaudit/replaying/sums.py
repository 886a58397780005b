"""Answers that are summed before release: noise in shares, and noise added to noise.

Where answers are used only in a sum, the sum is the answer: one step, with the law of all its
noise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from dpaudit.replaying.laws import (
    FloatArray,
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
    joined,
    numbers_of,
)

_NOTHING: Final = 1e-9
"""The rest of a sum counts as 0 below this share of it."""
_ROWS_EACH: Final = 10
"""Rows needed for each answer that rows share, before it counts as released."""


def settled(transcript: Transcript) -> Transcript:
    """The transcript with sums in place of their parts.

    Sums that share parts, as in a symmetrised matrix, replace them if all noise is Gaussian.

    Args:
        transcript: One replay.

    Returns:
        The transcript unchanged if nothing is summed. Parts stay if they are also used elsewhere
        (then they count, and determine the sum), or if the law of a sum's noise is unknown.
    """
    if not transcript.summed:
        return transcript
    summed = np.concatenate(transcript.summed)
    left: list[NoisyStep] = []
    derived: list[Derived] = []
    known: list[IntArray] = []
    for steps, sums in _groups(transcript):
        made = _separate(steps, sums, transcript)
        if made is None and steps:  # none if no answer has noise
            made = _projected(steps, sums, transcript)
        if made is None:
            left += steps
            derived += sums
        else:
            left += made
            known += [step.numbers[np.isin(step.numbers, summed)] for step in made]
    if len(derived) == len(transcript.derived):
        return transcript
    left.sort(key=lambda step: step.first)
    # parts that are left are determined by released sums
    transcript = replace(transcript, released=[*transcript.released, *known])
    if any(step.toss is not None for step in left):  # drawn as mixtures: not as sums of shifts
        return replace(transcript, noisy=left, derived=derived)
    change = sum(step.log_weight for step in left) - sum(
        step.log_weight for step in transcript.noisy
    )
    return replace(
        transcript, noisy=left, derived=derived, log_weight=transcript.log_weight + change
    )


def _groups(transcript: Transcript) -> Iterator[tuple[list[NoisyStep], list[Derived]]]:
    """The groups of steps that sums connect, with these sums."""
    records: list[NoisyStep | Derived] = [*transcript.noisy, *transcript.derived]
    numbers = [record.numbers for record in records]
    owner = np.full(max(int(one.max(initial=-1)) for one in numbers) + 1, -1)
    for at, own in enumerate(numbers):
        owner[own] = at
    edges = [
        (at, other)
        for at, record in enumerate(records)
        if isinstance(record, Derived)
        for ids, _ in record.parents
        for other in np.unique(owner[numbers_of(ids)[numbers_of(ids) >= 0]])
        if other >= 0  # answers without noise, of a scale of 0, are no step's
    ]
    of = components(edges, len(records))
    found: dict[int, tuple[list[NoisyStep], list[Derived]]] = defaultdict(lambda: ([], []))
    for group, record in zip(of.tolist(), records, strict=True):
        if isinstance(record, NoisyStep):
            found[group][0].append(record)
        else:
            found[group][1].append(record)
    yield from found.values()


def components(pairs: Sequence[tuple[int, int]] | IntArray, size: int) -> IntArray:
    """The number of the part that each of so many things is in, if these pairs are connected."""
    links = np.asarray(pairs, dtype=int).reshape(-1, 2).T
    graph = coo_array((np.ones(links.shape[1]), links), shape=(size, size))
    _, parts = connected_components(graph, directed=False)
    return np.asarray(parts)


def _separate(
    group: Sequence[NoisyStep], sums: Sequence[Derived], transcript: Transcript
) -> list[NoisyStep] | None:
    """The steps with sums in place of their parts; None if parts are shared or a law is unknown."""
    if not sums:
        return list(group)
    summed = np.concatenate([numbers_of(ids) for one in sums for ids, _ in one.parents])
    alone = len(np.unique(summed)) == len(summed) and not is_used(summed, transcript).any()
    if not alone or transcript.are_released(summed).any():
        return None
    steps: dict[int, NoisyStep] = {step.first: step for step in group}
    weighed: set[int] = set()
    for derived in sums:
        made = _sum_of(derived, list(steps.values()), weighed)
        if made is None:
            return None
        steps[made.first] = made
    left = []
    for step in steps.values():
        gone = np.isin(step.numbers, summed)
        if gone.any() and not gone.all():
            return None
        if not gone.any():
            left.append(step)
    return left


class LinearForm(NamedTuple):
    """A linear function of answers.

    Attributes:
        factors: Numbers and factors of the answers that it is made of.
        offset: What is added.
    """

    factors: tuple[tuple[int, float], ...]
    offset: float

    @property
    def is_lone(self) -> bool:
        """Whether it is a multiple of one answer."""
        return len(self.factors) == 1 and self.factors[0][1] != 0


class Expansion:
    """Expands answers into linear functions of those that noise was added to.

    Attributes:
        parts: As of `parts_of`. Sums with noise of their own are no linear functions of answers,
            and are not expanded.
    """

    def __init__(self, derived: Sequence[Derived]) -> None:
        plain = [one for one in derived if not one.noise]
        self.parts = parts_of(plain)
        self._offsets = {
            number: offset
            for one in plain
            for number, offset in np.broadcast(one.numbers, flat(one.offset))
        }

    def of(self, number: int, factor: float = 1.0, offset: float = 0.0) -> LinearForm:
        """`factor * answer + offset` as a function of the answers that it is made of."""
        factors: dict[int, float] = defaultdict(float)
        left = [(number, factor)]
        while left:
            one, by = left.pop()
            offset += by * self._offsets.get(one, 0.0)
            if one in self.parts:
                left += [(part, by * own) for part, own in self.parts[one]]
            else:
                factors[one] += by
        return LinearForm(tuple(sorted(factors.items())), offset)


def _projected(
    group: Sequence[NoisyStep],
    sums: Sequence[Derived],
    transcript: Transcript,
) -> list[NoisyStep] | None:
    """The steps with sums in place of the Gaussian answers that they share; None if unknown.

    Sums of Gaussian answers show a projection of them. They count one after another, released ones
    first, each without what the earlier ones show: so they are orthogonal and independent. Answers
    that released sums determine count themselves.
    """
    if any(one.noise for one in sums):
        return None
    if not all(one.is_gaussian and one.toss is None for one in group):
        return None
    numbers = np.concatenate([step.numbers for step in group])
    expansion = Expansion(sums)
    summed = {part for parts in expansion.parts.values() for part, by in parts if by and part >= 0}
    if is_used(np.asarray(sorted(summed)), transcript).any():
        return None
    every = np.concatenate([numbers, *(one.numbers for one in sums)])
    released = set(every[transcript.are_released(every)].tolist())
    ends = [one for one in every.tolist() if one not in summed or one in released]
    ends.sort(key=lambda one: (one not in released, one))
    forms = [expansion.of(one) for one in ends]
    scales = np.concatenate([one.scales.inside for one in group])
    fields = [np.stack([*step.before, step.moved, step.answer]) for step in group]
    values = np.concatenate(fields, axis=1) / scales
    place = {one: at for at, one in enumerate(numbers.tolist())}
    entries = [
        (row, place[one], by)
        for row, form in enumerate(forms)
        for one, by in form.factors
        if one in place  # the others are plain numbers
    ]
    rows, columns, factors = (np.asarray(one) for one in zip(*entries, strict=True))
    found: dict[int, FloatArray] = {}
    for piece in _pieces(rows, columns):
        own, row = np.unique(rows[piece], return_inverse=True)
        of, column = np.unique(columns[piece], return_inverse=True)
        if len(own) > 1 and is_used(np.asarray([ends[one] for one in own]), transcript).any():
            return None
        block = np.zeros((len(own), len(of)))
        block[row, column] = factors[piece] * scales[columns[piece]]
        shown = block[[ends[one] in released for one in own]]
        if np.linalg.matrix_rank(shown) == len(of):
            for at in of:
                found[int(numbers[at])] = np.append(values[:, at] * scales[at], scales[at])
            continue
        for one, made in zip(own.tolist(), _orthogonal(block, values[:, of]), strict=True):
            made[[0, 1, 3]] += forms[one].offset
            found[ends[one]] = made
    records: tuple[NoisyStep | Derived, ...] = (*group, *sums)
    return [
        step
        for record in records
        for step in _steps_of(record, found, _behind(record, group, expansion))
    ]


def _behind(
    record: NoisyStep | Derived, group: Sequence[NoisyStep], expansion: Expansion
) -> list[NoisyStep]:
    """The steps whose answers a record is made of."""
    parts = {part for own in record.numbers.tolist() for part, _ in expansion.of(own).factors}
    return [step for step in group if not parts.isdisjoint(step.numbers.tolist())]


def _pieces(rows: IntArray, columns: IntArray) -> list[IntArray]:
    """Places of the entries of a sparse matrix, by connected part."""
    size = int(rows.max()) + 1
    of = components(np.stack([rows, size + columns], axis=1), size + int(columns.max()) + 1)
    order = np.argsort(of[rows], kind="stable")
    return np.split(order, np.flatnonzero(np.diff(of[rows][order])) + 1)


def _orthogonal(forms: FloatArray, values: FloatArray) -> FloatArray:
    """Linear functions of independent values, each without what the earlier ones show.

    Args:
        forms: Factors of the functions, one row each, in units of the noise.
        values: The independent values, one column each, in the same units; several rows.

    Returns:
        For each function its values, and last the scale of its noise. A function that the earlier
        ones determine is 0, so it shows nothing.
    """
    basis = np.zeros((0, forms.shape[1]))
    made = np.zeros((len(forms), len(values) + 1))
    for place, form in enumerate(forms):
        rest = form
        for _ in range(2):  # once more, because of rounding
            rest = rest - basis.T @ (basis @ rest)
        size, most = np.linalg.norm(rest), np.linalg.norm(form)
        if size > _NOTHING * most:
            basis = np.vstack([basis, rest / size])
            made[place] = [*(values @ rest), size]
        else:
            made[place, -1] = most or 1.0
    return made


def _steps_of(
    record: NoisyStep | Derived, found: Mapping[int, FloatArray], behind: Sequence[NoisyStep]
) -> Iterator[NoisyStep]:
    """The answers of a record that count, as steps; `behind` is what they are made of."""
    own = np.asarray([one for one in record.numbers.tolist() if one in found], dtype=int)
    keys = frozenset(key for step in behind for key in step.keys)
    for numbers in np.split(own, np.flatnonzero(np.diff(own) != 1) + 1):
        if not numbers.size:
            continue
        inside, outside, moved, answer, scale = np.stack([found[one] for one in numbers.tolist()]).T
        law = Gaussian(scale)
        noise = answer - (inside, outside)[behind[0].base]
        yield replace(
            behind[0],
            first=int(numbers[0]),
            before=Pair(inside, outside),
            laws=(law, law),
            answer=answer,
            drawn=(),
            moved=moved,
            log_weight=float(np.sum(law.log_density(noise) - law.log_density(noise - moved))),
            keys=keys,
        )


def is_used(numbers: IntArray, transcript: Transcript) -> NDArray[np.bool_]:
    """Whether each of these answers is selected from, divided, or used in a way not followed."""
    selected = [numbers_of(one.ids) for one in transcript.selections]
    others = [
        numbers_of(one.other.ids)
        for one in transcript.selections
        if one.other is not None and one.other.ids is not None
    ]
    used = joined([*selected, *others, *transcript.divided, *transcript.reduced])
    return np.isin(numbers, used)


def shown(transcript: Transcript) -> IntArray:
    """Numbers of answers that released ones determine: a sum's last part, or what rows share."""
    before = set(joined(transcript.released).tolist())
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
