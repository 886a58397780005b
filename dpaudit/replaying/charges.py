"""What each step of a transcript is charged: every answer in full, or as what is selected from it.

A proof by composition charges every answer. Answers that are only selected from may be charged the
probabilities of what was selected. Answers that share draws are charged together.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.replaying.costs import (
    RARE,
    GaussianCost,
    NoiseCost,
    OpenCost,
    PureCost,
    StepCost,
    TableCost,
    shorten,
)
from dpaudit.replaying.laws import (
    DiscreteGaussian,
    FloatArray,
    Gaussian,
    IntArray,
    NoiseLaw,
    kind_of,
)
from dpaudit.replaying.selections import (
    Comparisons,
    Scores,
    is_integrable,
    log_bits,
    log_cells,
    log_largest,
    log_rounds,
    scale_law,
)
from dpaudit.replaying.transcript import (
    AnswerSelection,
    NoisyStep,
    Pair,
    SelectionKind,
    Site,
    Transcript,
)

RELEASED: Final = "released"
SELECTED: Final = "selected"
IF_RELEASED: Final = "if all scores were released"

_NOTHING: Final = 1e-12
"""Smaller losses are rounding errors."""
_EQUAL: Final = 1e-9
"""Relative error up to which shifts of answers with common draws agree."""
_DEPENDENT: Final = 1e-10
"""Smaller singular values, relative to the largest, are 0."""
_MOST_SHARED: Final = 2000
"""With more answers that share draws, their cost is not computed."""


class StepCharge(NamedTuple):
    """A cost, and where it arises.

    Attributes:
        site: Where the noise is drawn, or the choice made.
        cost: The cost.
        toss: Number of the coin of the record's own that the step depends on, if any.
        counts_as: "released" or "selected".
        times: How often it counts.
        answers: Of the largest of some answers, their numbers, in the order of its table.
    """

    site: Site
    cost: StepCost
    toss: int | None
    counts_as: str
    times: int = 1
    answers: tuple[int, ...] = ()


class Charges(NamedTuple):
    """All charges of a transcript.

    Attributes:
        charges: The charges.
        selected: Numbers of the answers that are charged as they are selected from.
        limits: In what way they are upper limits, and of which lines.
    """

    charges: tuple[StepCharge, ...]
    selected: frozenset[int]
    limits: Mapping[str, Set[Site]]


def charges_of(transcript: Transcript, *, is_internal: Callable[[Site], bool]) -> Charges:
    """The charges of a transcript.

    Args:
        transcript: One replay.
        is_internal: Whether the answers of a line are declared not to be released. They are
            charged alone and in full, for the ledger; others do not count with them.
    """
    answers = _Answers(transcript, is_internal)
    charges = [*_charge_shared(answers), *_charge_selected(answers)]
    for step, left, moves in zip(answers.steps, answers.left, answers.moves, strict=True):
        charges += _charge_in_full(step, left & moves)
    for choice in transcript.choices:
        for pair in choice.tables:
            cost = TableCost.of(pair.inside, pair.outside)
            charges.append(StepCharge(choice.site, cost, choice.toss, SELECTED))
    moved = (charge for charge in charges if not charge.cost.epsilon <= _NOTHING)
    return Charges(tuple(moved), frozenset(answers.selected), answers.limits)


class _Answers:
    """The answers of a transcript by their numbers.

    Attributes:
        steps: Their steps, by their first answers.
        left: Of each step, which answers are still to be charged in full.
        moves: Of each step, which answers differ before noise, or in their noise.
        selected: The answers that are charged as they are selected from.
        limits: In what way charges are upper limits, and of which lines.
    """

    def __init__(self, transcript: Transcript, is_internal: Callable[[Site], bool]) -> None:
        self.transcript = transcript
        self.steps = sorted(transcript.noisy, key=lambda step: step.first)
        self.left = [np.ones(step.answer.size, dtype=bool) for step in self.steps]
        self.moves = [step.moved for step in self.steps]
        self.selected: set[int] = set()
        self.limits: defaultdict[str, set[Site]] = defaultdict(set)
        self._starts = [step.first for step in self.steps]
        self._internal = [is_internal(step.site) for step in self.steps]

    def public_steps(self) -> Iterator[NoisyStep]:
        """The steps that are not internal."""
        return (step for step, hidden in zip(self.steps, self._internal, strict=True) if not hidden)

    def place(self, number: int) -> tuple[int, int]:
        """The step of an answer, and its place there; -1 twice for one without noise."""
        at = bisect_right(self._starts, number) - 1
        place = number - self._starts[at] if at >= 0 else 0
        return (at, place) if at >= 0 and place < self.left[at].size else (-1, -1)

    def step(self, number: int) -> NoisyStep:
        """The step of an answer."""
        return self.steps[self.place(number)[0]]

    def take(self, numbers: Sequence[int], *, selected: bool) -> None:
        """Charges these answers otherwise than in full."""
        self.selected.update(numbers if selected else ())
        for number in numbers:
            at, place = self.place(number)
            self.left[at][place] = False

    def limit(self, why: str, numbers: Sequence[int]) -> None:
        """Says that what is charged for these answers is an upper limit."""
        self.limits[why].update(self.step(number).site for number in numbers)

    def is_free(self, number: int) -> bool:
        """Whether an answer is used in selections alone, and may be charged as they are."""
        at, place = self.place(number)
        if at < 0 or self._internal[at] or number in self.transcript.released:
            return False
        return bool(self.left[at][place])

    def value(self, number: int) -> float:
        """An answer; NaN for one without noise."""
        at, place = self.place(number)
        return float(self.steps[at].answer[place]) if at >= 0 else np.nan

    def moved(self, number: int) -> bool:
        """Whether an answer differs before noise, or in its noise."""
        at, place = self.place(number)
        return at >= 0 and bool(self.moves[at][place])

    def kinds(self, numbers: Sequence[int]) -> Iterator[list[int]]:
        """Answers of known laws, by the classes of these laws and what is no array in them."""
        by_kind: dict[object, list[int]] = defaultdict(list)
        for number in numbers:
            step = self.step(number)
            if step.laws is not None and not step.is_lost:
                by_kind[(*map(kind_of, step.laws), step.toss)].append(number)
        yield from by_kind.values()

    def scores(self, numbers: Sequence[int], world: int) -> Scores:
        """Answers of one kind in one world: their values before noise, and their noise."""
        before, laws = [], []
        for at, own in groupby(map(self.place, numbers), key=itemgetter(0)):
            places, step = np.asarray([place for _, place in own]), self.steps[at]
            assert step.laws is not None
            before.append(step.before[world][places])
            laws.append(step.laws[world].element(places, step.answer.size))
        return Scores(np.concatenate(before), _join_laws(laws))

    def charge_alone(self, number: int) -> list[StepCharge]:
        """The charges of one answer in full."""
        at, place = self.place(number)
        only = np.arange(self.left[at].size) == place
        return _charge_in_full(self.steps[at], only & self.moves[at])


def _join_laws(laws: Sequence[NoiseLaw]) -> NoiseLaw:
    """The law of the elements of several laws of one kind."""
    fields = {
        name: np.concatenate([getattr(law, name) for law in laws])
        if isinstance(first, np.ndarray)
        else first
        for name, first in vars(laws[0]).items()
    }
    return type(laws[0])(**fields)


# -- answers in full ------------------------------------------------------------------------------


def _charge_in_full(step: NoisyStep, left: NDArray[np.bool_]) -> list[StepCharge]:
    """The charges of those answers of a step, which move, in full."""
    if not left.any():
        return []
    costs: Counter[StepCost]
    if step.is_lost:
        why = f"the noise at {step.site} was used before it met the data: its law is not known"
        costs = Counter([OpenCost(why, np.nan, np.nan)])
    elif step.laws is None or type(step.laws[0]) is not type(step.laws[1]):
        why = f"the law of the noise at {step.site} is not known"
        costs = Counter([OpenCost(why, np.nan, np.nan)])
    else:
        laws = [law.element(np.flatnonzero(left), left.size) for law in step.laws]
        costs = Counter(_costs(step.site, laws[0], laws[1], step.before.shift[left]))
    return [StepCharge(step.site, cost, step.toss, RELEASED, n) for cost, n in costs.items()]


def _costs(site: Site, law: NoiseLaw, other: NoiseLaw, shift: FloatArray) -> Iterator[StepCost]:
    """The costs of answers that move, of one law."""
    same = law.equals(other)
    if not np.all(np.isfinite(shift)):
        why = f"a value at {site} is missing or infinite in one world"
        yield OpenCost(why, np.inf, np.inf)
        return
    if not np.all(same) and isinstance(law, Gaussian | DiscreteGaussian):
        yield OpenCost(f"the scale of the noise at {site} depends on the data", np.inf, np.nan)
        return
    if isinstance(law, Gaussian):
        yield GaussianCost(float(np.linalg.norm(shift / law.scale)))
        return
    if law.whole and np.any(np.abs(shift - np.rint(shift)) > _EQUAL):
        why = f"fractions are added to {law.name} noise at {site}"
        yield OpenCost(why, np.inf, np.inf)
        return
    scales = np.broadcast_to(law.scale, shift.shape)
    if isinstance(law, DiscreteGaussian):
        for scale, far in zip(scales.tolist(), np.abs(np.rint(shift)).tolist(), strict=True):
            if far > 0:
                yield NoiseCost(law.name, scale, far)
        return
    for loss, scale in zip(law.largest_loss(other, shift).tolist(), scales.tolist(), strict=True):
        if loss <= _NOTHING:
            continue
        if loss == np.inf:
            why = f"{law.name} noise at {site}"
            if not np.all(same):
                why = f"the scale of the noise at {site} depends on the data"
            yield OpenCost(why, np.inf, np.nan)
            return
        loss = shorten(loss)
        if law.name == "laplace":
            yield NoiseCost(law.name, 1.0, loss)
        elif law.name == "discrete laplace":
            yield NoiseCost(law.name, scale, float(np.rint(loss * scale)))
        else:
            yield PureCost(loss)


# -- answers with common draws --------------------------------------------------------------------


class _Use(NamedTuple):
    """A draw of noise in an answer.

    Attributes:
        number: Number of the answer.
        draw: The draw.
        factor: What it is multiplied by, times its scale.
    """

    number: int
    draw: int
    factor: float


def _charge_shared(answers: _Answers) -> Iterator[StepCharge]:
    """The charges of answers that share draws of noise."""
    uses = [
        _Use(number, draw, factor)
        for step in answers.public_steps()
        if step.draws
        for number, draws in zip(step.numbers.tolist(), step.draws, strict=True)
        for draw, factor in draws
        if factor != 0
    ]
    if len({use.draw for use in uses}) == len(uses):
        return
    for part in _components([(use.number, ~use.draw) for use in uses]):
        own = [uses[at] for at in part.tolist()]
        if len({use.draw for use in own}) == len(own):
            continue
        numbers = list(dict.fromkeys(use.number for use in own))
        answers.take(numbers, selected=False)
        if any(map(answers.moved, numbers)):
            yield from _charge_together(numbers, own, answers)


def _charge_together(
    numbers: list[int], uses: Sequence[_Use], answers: _Answers
) -> Iterator[StepCharge]:
    """The charges of answers that share draws, some of which move."""
    places = [answers.place(number) for number in numbers]
    steps = [answers.steps[at] for at, _ in places]
    site, tosses = steps[0].site, {step.toss for step in steps}
    toss = tosses.pop() if len(tosses) == 1 else None

    def not_known(why: str, at_zero: float = np.nan, at_delta: float = np.nan) -> StepCharge:
        return StepCharge(site, OpenCost(f"{why} at {site}", at_zero, at_delta), toss, RELEASED)

    if any(step.laws is None or step.is_lost for step in steps):
        yield not_known("the law of shared noise is not known")
        return
    draws = {draw: at for at, draw in enumerate(dict.fromkeys(use.draw for use in uses))}
    if len(numbers) > _MOST_SHARED or len(draws) > 2 * _MOST_SHARED:
        yield not_known("too many answers share noise")
        return
    own = [(step, place) for step, (_, place) in zip(steps, places, strict=True)]
    inside, outside, scale, other_scale = np.asarray(
        [[values[place] for values in (*step.before, *step.scales)] for step, place in own]
    ).T
    shift = Pair(inside, outside).shift
    if not np.all(np.isfinite(shift)):
        yield not_known("a value is missing or infinite in one world", np.inf, np.inf)
        return
    if not np.allclose(scale, other_scale, rtol=_NOTHING, atol=0.0):
        yield not_known("the scale of shared noise depends on the data", np.inf)
        return
    rows = {number: at for at, number in enumerate(numbers)}
    factors = np.zeros((len(numbers), len(draws)))
    for use in uses:
        factors[rows[use.number], draws[use.draw]] += use.factor
    # answers = factors @ draws: moves of the draws that explain the shift cost what the answers do,
    # or more (post-processing); a shift outside the range of the factors has no limit
    error = _EQUAL * float(np.max(np.abs(shift))) + _NOTHING * float(np.nanmax(np.abs(inside)))
    left, sizes, right = np.linalg.svd(factors, full_matrices=False)
    known = sizes > _DEPENDENT * max(sizes[0], 1e-300)
    along = left[:, known].T @ shift
    if np.max(np.abs(shift - left[:, known] @ along)) > error:
        yield not_known("answers that share noise move apart", np.inf, np.inf)
        return
    moves: FloatArray | None = right[known].T @ (along / sizes[known])  # the least in L2
    names = frozenset().union(*(step.law_names for step in steps))
    if names == {"laplace"} and known.sum() < factors.shape[1]:
        moves = _least_moves(factors, shift)
    if names == {"gaussian"} and moves is not None:
        yield StepCharge(site, GaussianCost(float(np.linalg.norm(moves))), toss, RELEASED)
    elif names == {"laplace"} and moves is not None:
        for loss in map(shorten, np.abs(moves).tolist()):
            if loss > _NOTHING:
                yield StepCharge(site, NoiseCost("laplace", 1.0, loss), toss, RELEASED)
    elif known.sum() == 1 and len({use[:2] for use in uses}) == len(uses):
        yield from answers.charge_alone(numbers[0])
    else:
        yield not_known("the cost of shared noise is not known")


def _least_moves(factors: FloatArray, shift: FloatArray) -> FloatArray | None:
    """The moves of Laplace draws, least in L1, that move their combinations by this shift.

    The combinations follow from the moved draws, so by post-processing they lose no more. None if
    none is found.
    """
    size = float(np.max(np.abs(shift)))
    both = np.hstack([factors, -factors])
    solution = scipy.optimize.linprog(
        np.ones(both.shape[1]), A_eq=both, b_eq=shift / size, method="highs"
    )
    if solution.x is None:
        return None
    first, second = np.split(solution.x * size, 2)
    return np.asarray(first - second)


def _components(pairs: Sequence[tuple[int, int]]) -> list[IntArray]:
    """The places of pairs of numbers, by the parts that they are connected in."""
    every, back = np.unique(np.asarray(pairs, dtype=np.int64), return_inverse=True)
    first, second = back.reshape(-1, 2).T
    graph = scipy.sparse.coo_array((np.ones(len(first)), (first, second)), shape=(len(every),) * 2)
    labels = scipy.sparse.csgraph.connected_components(graph, directed=False)[1][first]
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)


# -- answers that are selected from ---------------------------------------------------------------


class _Bound(NamedTuple):
    """An answer compared with a constant or with another answer: above `slope * other + offset`.

    Attributes:
        number: The answer.
        other: The other answer; None for a constant.
        slope: What that is multiplied by.
        offset: The constant.
        is_above: The outcome.
    """

    number: int
    other: int | None
    slope: float
    offset: float
    is_above: bool

    @property
    def mirrored(self) -> _Bound:
        """The same comparison, seen from the other answer."""
        assert self.other is not None
        # x > a y + b is y < (x - b) / a for a > 0, and y > (x - b) / a for a < 0
        is_above = self.is_above == (self.slope < 0)
        slope, offset = 1.0 / self.slope, -self.offset / self.slope
        return _Bound(self.other, self.number, slope, offset, is_above)


Use = AnswerSelection | _Bound
"""A largest, an order, or one comparison."""


def _charge_selected(answers: _Answers) -> Iterator[StepCharge]:
    """The charges of answers that are only selected from, where their probability is known."""
    uses: list[tuple[Use, list[int]]] = []
    voided: set[int] = set()
    for selection in answers.transcript.selections:
        if not selection.is_equal:
            why = f"noise meets values that differ between the worlds at {selection.site}"
            yield StepCharge(selection.site, OpenCost(why, np.nan, np.nan), None, SELECTED)
            voided.update(selection.answers)
        elif selection.kind is SelectionKind.COMPARED:
            for bound in _bounds(selection, answers):
                uses.append(
                    (bound, [bound.number, bound.number if bound.other is None else bound.other])
                )
        elif numbers := selection.answers:
            uses.append((selection, numbers))
    pairs = [(own[0], number) for _, own in uses for number in own]
    owner = [at for at, (_, own) in enumerate(uses) for _ in own]
    constant: dict[int, list[float]] = {}
    for part in _components(pairs) if pairs else []:
        group = [uses[at][0] for at in dict.fromkeys(owner[place] for place in part.tolist())]
        numbers = list(dict.fromkeys(pairs[place][1] for place in part.tolist()))
        if not any(answers.moved(number) for number in numbers):
            continue
        free = all(answers.is_free(number) and number not in voided for number in numbers)
        bounds = [use for use in group if isinstance(use, _Bound)]
        selections = [use for use in group if isinstance(use, AnswerSelection)]
        if free and len(numbers) == 1 and not selections:
            constant[numbers[0]] = [bound.offset for bound in bounds]
            continue
        charges = None
        if free and not bounds:
            charges = _charge_rounds(selections, numbers, answers)
        elif free and not selections:
            charges = _charge_star(bounds, numbers, answers)
        yield from _take_charges(charges, numbers, answers)
    yield from _charge_constants(constant, answers)


def _take_charges(
    charges: list[StepCharge] | None, numbers: Sequence[int], answers: _Answers
) -> Iterator[StepCharge]:
    """The charges of a group of answers; if there are none, they are left to be charged in full."""
    if charges is not None:
        answers.take(numbers, selected=True)
        yield from charges
    elif any(answers.is_free(number) and answers.moved(number) for number in numbers):
        answers.limit(IF_RELEASED, numbers)


def _bounds(selection: AnswerSelection, answers: _Answers) -> Iterator[_Bound]:
    """Comparisons of answers that are free, one by one; other answers are constants."""
    size = len(selection.numbers)
    none, zeros = np.full(size, -1), np.zeros(size)
    limit_numbers = none if selection.limit_numbers is None else selection.limit_numbers
    limit_factor = zeros if selection.limit_factor is None else selection.limit_factor
    columns = (
        selection.numbers,
        selection.factor,
        selection.offset,
        limit_numbers,
        limit_factor,
        zeros if selection.limits is None else selection.limits,
        selection.outcome,
    )
    for number, factor, offset, other, by, limit, outcome in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        free = [
            answer if multiple != 0 and answers.is_free(answer) else None
            for answer, multiple in ((number, factor), (other, by))
        ]
        if free[0] is None and number >= 0:
            offset += factor * answers.value(number)
        if free[1] is None and other >= 0:
            limit += by * answers.value(other)
        if free[0] is not None:
            is_above = bool(outcome) == (factor > 0)
            slope = by / factor if free[1] is not None else 0.0
            yield _Bound(free[0], free[1], slope, (limit - offset) / factor, is_above)
        elif free[1] is not None:
            yield _Bound(free[1], None, 0.0, (offset - limit) / by, bool(outcome) == (by < 0))


def _charge_constants(constant: dict[int, list[float]], answers: _Answers) -> Iterator[StepCharge]:
    """The charges of answers that are compared with constants: of the cells between these."""
    batches: dict[tuple[int, int], list[int]] = defaultdict(list)
    for at, kind in enumerate(
        answers.kinds([number for number in constant if answers.moved(number)])
    ):
        for number in kind:
            batches[at, len(set(constant[number]))].append(number)
    for numbers in batches.values():
        worlds = [answers.scores(numbers, world) for world in (0, 1)]
        if not all(scores.law.has_cdf for scores in worlds):
            yield from _take_charges(None, numbers, answers)
            continue
        bounds = np.asarray([sorted(set(constant[number])) for number in numbers])
        tables = [np.exp(log_cells(scores, _cuts(bounds, scores))) for scores in worlds]
        answers.take(numbers, selected=True)
        for number, inside, outside in zip(numbers, *tables, strict=True):
            step = answers.step(number)
            yield StepCharge(step.site, TableCost.of(inside, outside), step.toss, SELECTED)


def _cuts(bounds: FloatArray, scores: Scores) -> FloatArray:
    """The bounds; of whole numbers, equality is a cell of its own, in whichever cell it counts."""
    if not scores.law.whole:
        return bounds
    before = scores.before[:, None]
    both = (before + np.floor(bounds - before + far) + 0.5 for far in (-_EQUAL, _EQUAL))
    return np.sort(np.hstack(list(both)), axis=1)


def _charge_rounds(
    selections: Sequence[AnswerSelection], numbers: Sequence[int], answers: _Answers
) -> list[StepCharge] | None:
    """The charges of a largest score, of the largest ones in turn, or of an order."""
    first = selections[0]
    kept = _are_answers(first)
    if kept is None or set(first.numbers[kept].tolist()) != set(numbers):
        return None
    kinds = list(answers.kinds(numbers))
    if len(kinds) != 1 or len(kinds[0]) < len(numbers):
        return None
    own = first.numbers[kept].tolist()
    turn = 1.0
    if first.kind is SelectionKind.ORDERED:
        if len(selections) > 1 or len(own) < len(first.numbers):
            return None
        is_turned = bool(np.all(first.factor < 0))  # as by `argsort(-scores)`
        turn = -1.0 if is_turned else 1.0
        places = first.outcome[:-1].tolist() if is_turned else first.outcome[:0:-1].tolist()
    else:
        winners = _winners(selections)
        if winners is None:
            return None
        places = [own.index(winner) for winner in winners]
    factor, offset = turn * first.factor[kept], turn * first.offset[kept]
    worlds = []
    for world in (0, 1):
        scores = answers.scores(own, world)
        law = scale_law(scores.law, factor)
        if law is None:
            return None
        worlds.append(Scores(scores.before * factor + offset, law))
    if len(places) == 1:
        logs = [
            [largest] if (largest := log_largest(scores)) is not None else None for scores in worlds
        ]
    else:
        logs = [log_rounds(scores, places) for scores in worlds]
    inside, outside = logs
    if inside is None or outside is None:
        return None
    if len(places) > 1:
        answers.limit(f"the order seen at {first.site} counts", numbers)
    step, numbered = answers.step(own[0]), tuple(own) if len(places) == 1 else ()
    return [
        StepCharge(
            step.site,
            TableCost.of(*map(_normalise, pair)),
            step.toss,
            SELECTED,
            answers=numbered,
        )
        for pair in zip(inside, outside, strict=True)
    ]


def _normalise(logs: FloatArray) -> FloatArray:
    chances = np.exp(logs)
    return np.asarray(chances / chances.sum())


def _are_answers(selection: AnswerSelection) -> NDArray[np.bool_] | None:
    """Which scores are answers; None if others can be the largest, or an answer occurs twice."""
    kept = (selection.numbers >= 0) & (selection.factor != 0) & np.isfinite(selection.offset)
    twice = len(np.unique(selection.numbers[kept])) < kept.sum()
    return None if twice or np.any(selection.offset[~kept] != -np.inf) else kept


def _winners(selections: Sequence[AnswerSelection]) -> list[int] | None:
    """The largest, the largest of the rest, and so on; None if these are other selections."""
    winners: list[int] = []
    before: dict[int, tuple[float, float]] = {}
    for selection in selections:
        kept = _are_answers(selection)
        if kept is None or selection.kind is not SelectionKind.LARGEST:
            return None
        numbers = selection.numbers[kept].tolist()
        each = zip(selection.factor[kept].tolist(), selection.offset[kept].tolist(), strict=True)
        own = dict(zip(numbers, each, strict=True))
        winner = int(selection.numbers[int(selection.outcome[0])])
        if winners and own == before and winner == winners[-1]:
            continue  # the same once more
        if winners and own != {
            number: row for number, row in before.items() if number != winners[-1]
        }:
            return None
        before = own
        winners.append(winner)
    return winners


def _charge_star(
    bounds: Sequence[_Bound], numbers: Sequence[int], answers: _Answers
) -> list[StepCharge] | None:
    """The charge of answers that are compared with one noisy limit (the sparse vector technique).

    It is the loss of all outcomes together, or of those with one outcome reversed, if that is
    larger; and no larger than that of all answers in full.
    """
    degree = Counter(number for bound in bounds for number in (bound.number, bound.other))
    centre = max((bounds[0].other, bounds[0].number), key=lambda number: degree[number])
    if centre is None or any(bound.other is None or bound.slope == 0 for bound in bounds):
        return None
    leaves = [bound if bound.other == centre else bound.mirrored for bound in bounds]
    own = [leaf.number for leaf in leaves]
    if any(leaf.other != centre for leaf in leaves) or len(set(own)) < len(own):
        return None
    kinds = [*answers.kinds(own), *answers.kinds([centre])]
    steps = [answers.step(number) for number in (centre, own[0])]
    if len(kinds) != 2 or len(kinds[0]) < len(own) or steps[0].toss != steps[1].toss:
        return None
    is_above = np.asarray([leaf.is_above for leaf in leaves])
    slope, offset = (
        np.asarray([getattr(leaf, name) for leaf in leaves]) for name in ("slope", "offset")
    )
    logs = []
    for world in (0, 1):
        scores, limit = answers.scores(own, world), answers.scores([centre], world)
        if not (is_integrable(scores.law) and is_integrable(limit.law)):
            return None
        log_chances = log_bits(Comparisons(scores, slope, offset, limit), is_above)
        if log_chances is None:
            return None
        logs.append(np.append(log_chances[0], log_chances[1]))
    possible = np.maximum(*logs) > np.log(RARE)
    possible[0] = True
    in_full = sum(
        charge.cost.epsilon for number in numbers for charge in answers.charge_alone(number)
    )
    loss = min(float(np.max(np.abs(logs[0] - logs[1])[possible])), in_full)
    if loss <= _EQUAL:
        return []
    answers.limit(f"the outcomes seen at {steps[1].site} count", numbers)
    return [StepCharge(steps[1].site, PureCost(shorten(loss)), steps[1].toss, SELECTED)]
