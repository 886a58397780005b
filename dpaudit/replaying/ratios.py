"""Noisy answers released only as ratios: a noisy sum over a noisy count, a normalised histogram.

Ratios determine the answers up to one common factor and no further. So the loss is that of the
answers' direction: their joint density at s times the answers, integrated over s. If numbers are
added before the division (`count / (total + 1)`), enough ratios determine the answers themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from dpaudit.replaying.laws import FloatArray, Gaussian, IntArray, Laplace, Logistic, NoiseLaw
from dpaudit.replaying.sums import Expansion, LinearForm, components
from dpaudit.replaying.transcript import AnswerSelection, ComparedSide, Transcript, flat, numbers_of

_LOG_CONCAVE: Final = (Gaussian, Laplace, Logistic)
"""Laws for which the integrand has one maximum for positive s, and one for negative s."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_PIECES: Final = 64
_FALL: Final = 45.0
"""The integral ends where the logarithm of the integrand has fallen by this much."""
_ROUNDS: Final = 12
_BISECTIONS: Final = 30
_NEAR: Final = 1e-9
_FAR: Final = 1e-3
"""What is added counts as the shift of the answers if it is near one, and as none if it is far."""
_MOST_ANSWERS: Final = 200
_MOST_DIVIDED: Final = 2000
"""With more answers in a group, or more ratios in all, the loss is not computed."""


class RatioGroup(NamedTuple):
    """Answers that are known up to a common factor.

    Attributes:
        numbers: Numbers of the answers that noise was added to.
        made: Numbers of the sums that contain any of them.
        shift: What is added to each answer before it is divided; None if the ratios determine less
            or more than the direction, so that the loss is unknown.
        are_known: Whether the ratios determine the answers themselves.
    """

    numbers: tuple[int, ...]
    made: frozenset[int]
    shift: FloatArray | None
    are_known: bool = False


def directions(transcript: Transcript) -> Iterator[RatioGroup]:
    """Groups of answers that are divided by one another.

    Args:
        transcript: One replay.

    Yields:
        Each group, even if its answers are released in other ways as well.
    """
    if not transcript.quotients:
        return
    size = sum(flat(one.top.ids).size for one in transcript.quotients)
    if size > _MOST_DIVIDED:
        numbers = np.unique(np.concatenate(transcript.divided)).tolist()
        yield RatioGroup(tuple(numbers), frozenset(), None)
        return
    forms = _Forms(transcript)
    pairs = [
        (forms.place(top), forms.place(bottom))
        for one in transcript.quotients
        for top, bottom in zip(_elements(one.top), _elements(one.bottom), strict=True)
    ]
    every = list(forms.places)
    groups = components(pairs, len(every))
    of_group = [[every[at] for at in np.flatnonzero(groups == one)] for one in np.unique(groups)]
    seen: dict[int, int] = defaultdict(int)
    for group in of_group:
        for number in _numbers(group):
            seen[number] += 1
    for group in of_group:
        numbers = _numbers(group)
        alone = all(seen[number] == 1 for number in numbers)
        shift, misfit = _shift(group, numbers)
        yield RatioGroup(
            numbers,
            frozenset(forms.made_of(numbers)),
            shift if alone and misfit <= _NEAR else None,
            are_known=shift is not None and misfit > _FAR,
        )


def determined(groups: Iterable[RatioGroup]) -> IntArray:
    """Numbers of the answers that their ratios determine.

    The functions of n answers are M v + o, known up to a common factor s. If M has rank n, another
    solution moves v by a multiple of the solution of M x = o, so there is none if x does not exist.

    Args:
        groups: Groups of answers that are divided by one another.
    """
    known = [number for one in groups if one.are_known for number in one.numbers]
    return np.asarray(known, dtype=np.int64)


def _elements(side: ComparedSide) -> Iterator[tuple[int, float, float]]:
    assert side.ids is not None
    assert side.factor is not None
    numbers, factors, offsets = numbers_of(side.ids), flat(side.factor), flat(side.offset)
    yield from zip(numbers.tolist(), factors.tolist(), offsets.tolist(), strict=True)


class _Forms(Expansion):
    """Numbers the functions of answers that are divided."""

    def __init__(self, transcript: Transcript) -> None:
        super().__init__(transcript.derived)
        self.places: dict[LinearForm, int] = {}
        self._known: dict[tuple[int, float, float], int] = {}

    def place(self, element: tuple[int, float, float]) -> int:
        """The number of a function; all its multiples share it."""
        if element in self._known:
            return self._known[element]
        form = self.of(*element)
        size = next((by for _, by in form.factors if by), 1.0)
        unit = LinearForm(
            tuple((one, round(by / size, 12)) for one, by in form.factors),
            round(form.offset / size, 12),
        )
        self._known[element] = self.places.setdefault(unit, len(self.places))
        return self._known[element]

    def made_of(self, numbers: Sequence[int]) -> Iterator[int]:
        """Numbers of the sums without noise that contain any of these answers."""
        for one in self.parts:
            if {number for number, _ in self.of(one).factors} & set(numbers):
                yield one


def _numbers(group: Sequence[LinearForm]) -> tuple[int, ...]:
    return tuple(sorted({number for form in group for number, _ in form.factors}))


def _shift(group: Sequence[LinearForm], numbers: Sequence[int]) -> tuple[FloatArray | None, float]:
    """The shift of the answers that accounts best for what the functions add, and what is left.

    None if there are too many answers or too few functions of them.
    """
    if len(numbers) > _MOST_ANSWERS:
        return None, np.inf
    lone = {form.factors[0][0]: form.offset / form.factors[0][1] for form in group if form.is_lone}
    offsets = np.asarray([form.offset for form in group])
    if len(lone) == len(numbers):
        shift = np.asarray([lone[number] for number in numbers])
        reached = [sum(by * lone[number] for number, by in form.factors) for form in group]
    else:
        matrix = np.zeros((len(group), len(numbers)))
        for row, form in enumerate(group):
            for number, by in form.factors:
                matrix[row, numbers.index(number)] = by
        if np.linalg.matrix_rank(matrix) < len(numbers):
            return None, np.inf
        shift = np.linalg.lstsq(matrix, offsets, rcond=None)[0]
        reached = matrix @ shift
    size = 1.0 + float(np.max(np.abs(offsets)))
    return shift, float(np.max(np.abs(reached - offsets))) / size


def limits(
    direction: RatioGroup,
    values: Mapping[int, float],
    selections: Sequence[AnswerSelection],
    transcript: Transcript,
) -> tuple[float, float] | None:
    """The range of factors s for which comparisons of these answers keep their outcome.

    Args:
        direction: The answers.
        values: The value of each answer, by its number.
        selections: Selections from them, one element each.
        transcript: One replay.

    Returns:
        Both ends of the range; None if a selection is no comparison with a plain number.
    """
    assert direction.shift is not None
    forms = _Forms(transcript)
    shifts = dict(zip(direction.numbers, direction.shift.tolist(), strict=True))
    low, high = -np.inf, np.inf
    for one in selections:
        if one.how != "compare" or one.other is None or one.other.ids is not None:
            return None
        form = forms.of(int(one.ids[0]), float(one.factor[0]), float(one.offset[0]))
        # the form at s is s * slope + rest
        slope = sum(by * (values[number] + shifts[number]) for number, by in form.factors)
        rest = form.offset - sum(by * shifts[number] for number, by in form.factors)
        bound = (float(flat(one.other.offset)[0]) - rest) / slope if slope else np.nan
        if not np.isfinite(bound):
            return None
        below = (bool(one.outcome[0]) == (one.sign == "<")) == (slope > 0)
        low, high = (low, min(high, bound)) if below else (max(low, bound), high)
    return low, high


def log_direction(
    point: FloatArray,
    centre: FloatArray,
    laws: Sequence[NoiseLaw],
    *,
    between: tuple[float, float] = (-np.inf, np.inf),
) -> float | None:
    """Log density of the direction of noisy answers, up to a term that is equal in both worlds.

    It is log int |s|^(k - 1) prod_i f_i(s y_i - m_i) ds: polar coordinates in k dimensions, for
    both signs of s, because ratios do not show the sign.

    Args:
        point: The answers y.
        centre: The values m before noise.
        laws: The noise of each.
        between: The range of possible factors s.

    Returns:
        The logarithm; None if a law is not log-concave and continuous.
    """
    if not all(isinstance(law, _LOG_CONCAVE) for law in laws) or not np.all(point):
        return None
    kinds = [
        (kind, np.asarray([place for place, law in enumerate(laws) if isinstance(law, kind)]))
        for kind in _LOG_CONCAVE
    ]
    scales = np.asarray([float(law.scale) for law in laws])[:, np.newaxis]

    def log_integrand(s: FloatArray) -> FloatArray:
        noise = np.multiply.outer(point, s) - centre[:, np.newaxis]
        every = [
            kind(scales[own]).log_density(noise[own]).sum(axis=0) for kind, own in kinds if own.size
        ]
        with np.errstate(divide="ignore"):
            return np.asarray((len(laws) - 1) * np.log(np.abs(s)) + np.sum(every, axis=0))

    low, high = between
    kinks = centre / point
    parts = [
        _log_integral(log_integrand, max(low, 0.0), high, kinks),
        _log_integral(lambda s: log_integrand(-s), max(-high, 0.0), -low, -kinks),
    ]
    return float(np.logaddexp.reduce(parts))


def _log_integral(
    log_integrand: Callable[[FloatArray], FloatArray], low: float, high: float, kinks: FloatArray
) -> float:
    """Log of the integral from low >= 0 to high of a log-concave function, smooth between kinks."""
    if low >= high:
        return -np.inf
    end = high
    if not np.isfinite(high):
        end = 2.0 * max(1.0, low, float(np.max(kinks)))
        while np.diff(log_integrand(np.asarray([0.5 * end, end])))[0] > 0:
            end *= 2.0
    left, right = low, end
    for _ in range(_ROUNDS):  # the maximum lies between the neighbours of the best point
        points = np.linspace(left, right, _PIECES + 1)
        best = int(np.argmax(log_integrand(points)))
        left, right = points[max(best - 1, 0)], points[min(best + 1, _PIECES)]
    mode = 0.5 * (left + right)
    most = float(np.max(log_integrand(np.asarray([left, mode, right]))))
    if not np.isfinite(most):
        return -np.inf
    far = mode
    while np.isinf(high) and log_integrand(np.asarray([2.0 * far]))[0] > most - _FALL:
        far *= 2.0
    left, right = (
        _fallen(log_integrand, mode, outer, most - _FALL)
        for outer in (low, 2.0 * far if np.isinf(high) else high)
    )
    inner = kinks[(kinks > left) & (kinks < right)]
    edges = np.unique(np.concatenate([np.linspace(left, right, _PIECES + 1), inner]))
    half = 0.5 * np.diff(edges)
    nodes = (edges[:-1] + half)[:, np.newaxis] + np.multiply.outer(half, _NODES)
    values = np.exp(log_integrand(nodes.ravel()).reshape(nodes.shape) - most)
    return most + float(np.log(np.sum(half * (values @ _WEIGHTS))))


def _fallen(
    log_integrand: Callable[[FloatArray], FloatArray], mode: float, outer: float, level: float
) -> float:
    """Where the function falls to a level between its maximum and an outer point."""
    if log_integrand(np.asarray([outer]))[0] >= level:
        return outer
    inner = mode
    for _ in range(_BISECTIONS):
        middle = 0.5 * (inner + outer)
        if log_integrand(np.asarray([middle]))[0] < level:
            outer = middle
        else:
            inner = middle
    return outer
