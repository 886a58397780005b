"""Uniform draws, until they are compared, and noise that is made of them by a formula.

A `CoinArray` holds uniform draws, perhaps scaled. Comparing one with a limit is a choice between
two outcomes. A `CurveArray` is another function of them; where data is added to it, it becomes
noise if it has a known law. In natural fits, only draws of lines that make noise are marked.
"""

from __future__ import annotations

from functools import cached_property, partialmethod
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from . import choices, curves, marks
from . import noise as noises
from .channel import Site, site
from .choices import CoinState
from .marks import Marked, MarkedCall, MarkedFloat, MarkedNumber, is_marked, plain_array

_MOST_VALUES = 2**1000
"""Integers with more values than this stay unmarked: floats cannot hold their limits."""
_MOST_CURVED = 20_000
"""Largest number of elements of a function of uniform draws."""
_METHODS = {
    "__lt__": "less",
    "__le__": "less_equal",
    "__gt__": "greater",
    "__ge__": "greater_equal",
}


class DrawNumber(MarkedFloat):
    """A function of uniform draws that is one float."""


class CoinNumber(DrawNumber):
    """A uniform draw that is one float, perhaps scaled and shifted."""


class CurveNumber(DrawNumber):
    """Another function of uniform draws that is one float."""


class DrawArray(Marked):
    """Uniform draws, or a function of them."""


class CoinArray(DrawArray):
    """Uniform draws, perhaps scaled and shifted: `factor * u + offset`."""

    rank = 3
    number = CoinNumber
    state: Optional[CoinState] = None
    factor: Any = None
    offset: Any = None

    @property
    def has_mark(self) -> bool:  # type: ignore[override]
        return self.state is not None

    @classmethod
    def join_arrays(cls, items: List[Any], join: Callable[[List[Any]], Any]) -> Any:
        if not all(is_marked(array, CoinArray) for array in items):
            return None
        fields = [join([array.state[at] for array in items]) for at in range(5)]
        state = CoinState(*fields, where=items[0].state.where)
        content, factor, offset = (
            join([get(array) for array in items])
            for get in (plain_array, lambda array: array.factor, lambda array: array.offset)
        )
        return _coin(content, state, factor, offset)

    def map_fields(self, change: Callable[[Any], Any]) -> Any:
        content = np.asarray(change(self.view(np.ndarray)))
        if self.state is None:
            return content
        return _coin(
            content, self.state.map_fields(change), change(self.factor), change(self.offset)
        )

    def end(self, why: str) -> None:
        del why
        if self.state is None:
            return
        self.state.read()
        if marks.world.order.kept is not None and np.any(self.state.record):
            marks.world.tell("unfollowed", site(), "coins of the records are used as numbers")

    def forget(self) -> None:
        self.state = None

    def with_content(self, content: Any) -> Any:
        return _coin(content, self.state, self.factor, self.offset)


class CurveSource(NamedTuple):
    """Uniform draws of which something is a function.

    Attributes:
        name: Where they lie in memory: the same draws have the same name.
        state: What is known of them.
        places: Which of them each element is a function of.
        drawn: Their values where the function is known.
    """

    name: Any
    state: CoinState
    places: Any
    drawn: Any


class CurveArray(DrawArray):
    """A function of uniform draws, element by element, and its values at `curves.POINTS` draws."""

    rank = 4
    number = CurveNumber
    sources: Tuple[CurveSource, ...] = ()
    grid: Any = None

    @property
    def has_mark(self) -> bool:  # type: ignore[override]
        return bool(self.sources)

    @classmethod
    def join_arrays(cls, items: List[Any], join: Callable[[List[Any]], Any]) -> Any:
        return None  # it becomes noise, or plain, before

    def map_fields(self, change: Callable[[Any], Any]) -> Any:
        content = np.asarray(change(self.view(np.ndarray)))
        grid = [np.asarray(change(self.grid[..., at])) for at in range(curves.POINTS)]
        sources = [
            source._replace(places=np.asarray(change(source.places))) for source in self.sources
        ]
        return _curve(content, np.stack(grid, axis=-1), tuple(sources))

    def end(self, why: str) -> None:
        del why
        for source in self.sources:
            source.state.read()

    def forget(self) -> None:
        self.sources = ()

    @cached_property
    def curve_law(self) -> Optional[curves.Known]:
        """The law that its values are quantiles of, if draws may still be any; None if of none."""
        return curves.law_of(self.grid, tuple(source.drawn for source in self.sources))

    @property
    def law(self) -> Optional[curves.Known]:
        """The law of its values, if each draw occurs once; None if they have no known law."""
        places = self.sources[0].places
        for source in self.sources:
            if not _are_whole(source.state) or not np.array_equal(source.places, places):
                return None
        return None if len(np.unique(places)) < places.size else self.curve_law

    def as_noise(self) -> Any:
        """The noise that it is; the plain numbers if it has no known law.

        The same function of the same draws is the same noise. Another one of them is not followed.
        """
        if not self.is_marked or not marks.world.hears:
            return self
        world, known, content = marks.world, self.law, self.view(np.ndarray)
        form = (
            tuple(source.name for source in self.sources),
            None if known is None else known.form,
        )
        uses = [
            world.curved.setdefault(source.name, (form, source.state)) for source in self.sources
        ]
        if known is None or any(use[0] != form for use in uses):
            self.end("a sum")
            return content
        state, places = self.sources[0].state, self.sources[0].places
        world.bent.update(source.state.where[:2] for source in self.sources)
        ids = world.curve_ids.setdefault((form, known.turn), np.full(state.value.size, -1))
        new = places[ids[places] < 0]
        ids[new] = world.noise_ids(new.shape, state.where)
        ones = np.ones(content.shape)
        sign, scale = np.sign(known.factor) * ones, np.abs(known.factor) * ones
        part = noises.NoisePart(known.law, ids[places], sign, scale, ones, ones, None, state.where)
        wide = 1.0 if world.natural else world.order.wide
        return noises.combination(content * wide, (part,))


_full, _zeros = np.full, np.zeros
"""As numpy has them: they are replaced later, and loops make a coin in each turn."""


def coin(values: Any, where: Site, *, record: Any = 0, low: float = 0.0, high: float = 1.0) -> Any:
    """Marks uniform draws from [0, 1) as new coins and stretches them to [low, high).

    Args:
        values: What was drawn from [0, 1), a number or an array.
        where: The line that draws.
        record: Whose coin each one is, broadcast to the values: 2 for the target, 1 for another
            record, 0 for none.
        low: The lower end.
        high: The upper end.
    """
    world, content = marks.world, np.asarray(values, dtype=float)
    is_plain = type(record) is int and not record  # the usual case: single draws in loops
    if is_plain:
        record = _zeros(content.shape, dtype=np.int8)
    else:
        record = np.array(np.broadcast_to(record, content.shape), dtype=np.int8)
    if is_plain or not np.any(record):
        world.note("draw", where, content.shape)
    elif not np.all(record == 2):  # the other world does not have the target's coin
        world.note("draw" if world.order.kept is None else "sample", where)
    if (
        world.order.edge is not None
        and not world.natural
        and (world.order.kept is None or is_plain)
    ):
        content = np.full(content.shape, world.order.edge)
    known = _zeros(content.shape, dtype=bool)
    state = CoinState(
        _zeros(content.shape), _full(content.shape, 1.0), content.copy(), record, known, where
    )
    factor, offset = _full(content.shape, high - low), _full(content.shape, float(low))
    marked = _coin(content * factor + offset, state, factor, offset)
    return marked if isinstance(values, np.ndarray) else marks.number_of(marked)


def whole_coin(values: Any, count: int, where: Site) -> Any:
    """Marks uniform draws from 0, 1, ..., count - 1 as new coins.

    Exact samplers compare them with a whole number: a Bernoulli draw with a rational probability.

    Args:
        values: What was drawn, an integer or an array of integers.
        count: Number of possible values.
        where: The line that draws.
    """
    world = marks.world
    world.note("draw", where, np.shape(values))
    if isinstance(values, np.ndarray):
        if world.order.edge is not None:
            values = np.full(values.shape, at_edge(world.order.edge, count), dtype=values.dtype)
        return _coin_words(values, (values.astype(float) + 0.5) / count, count)
    if world.order.edge is not None:
        values = at_edge(world.order.edge, count)
    if count > _MOST_VALUES:
        return values
    unit = np.array((2 * values + 1) / (2 * count))
    return _coin_integer(values, _coin_words(unit * count, unit, count))


def at_edge(edge: float, count: int) -> int:
    """The smallest or largest whole number below a count."""
    return 0 if edge < 0.5 else count - 1


def _coin_words(content: Any, unit: Any, count: int) -> Any:
    """Integers as coins: each stands for the draw from [0, 1) at the middle of its step."""
    low, record, offset = (np.zeros(unit.shape) for _ in range(3))  # written to, so separate
    value = np.asarray(np.minimum(unit, 1.0 - 2.0**-53))
    known = np.zeros(unit.shape, dtype=bool)
    state = CoinState(low, np.ones(unit.shape), value, record, known, site())
    return _coin(content, state, np.full(unit.shape, float(count)), offset)


def _coin(content: Any, state: Any, factor: Any, offset: Any) -> Any:
    array = np.asarray(content).view(CoinArray)
    array.state, array.factor, array.offset = state, np.asarray(factor), np.asarray(offset)
    return array


class CoinInteger(int):
    """A uniform draw as one integer; comparing it with an integer or adding one is followed."""

    array: Any

    def _compare(self, other: Any, name: str) -> Any:
        if not marks.world.hears or isinstance(other, (Marked, MarkedNumber)):
            return getattr(int, name)(self, other)
        if not isinstance(other, (int, float, np.number)):
            return NotImplemented
        compares = _METHODS[name]
        return bool(choices.compare(self.array, other, compares, site(), whole=True))

    __lt__ = partialmethod(_compare, name="__lt__")
    __le__ = partialmethod(_compare, name="__le__")
    __gt__ = partialmethod(_compare, name="__gt__")
    __ge__ = partialmethod(_compare, name="__ge__")

    def __add__(self, other: Any) -> Any:
        total = int.__add__(self, other)
        if type(other) is not int:
            return total
        own = self.array
        offset = own.offset + other
        return _coin_integer(total, _coin(np.array(float(total)), own.state, own.factor, offset))

    __radd__ = __add__

    def __reduce__(self) -> Any:
        return (int, (int(self),))


def _coin_integer(value: int, marked: Any) -> CoinInteger:
    number = CoinInteger(value)
    number.array = marked
    return number


# -- functions of uniform draws ------------------------------------------------------------------


def _curve(content: Any, grid: Any, sources: Tuple[CurveSource, ...]) -> Any:
    array = np.asarray(content).view(CurveArray)
    array.grid, array.sources = grid, sources
    return array


def _follow(call: MarkedCall) -> Any:
    """The result of a call with uniform draws, or functions of them, among its inputs."""
    if not any(is_marked(value, DrawArray) for value in call.inputs):
        return NotImplemented
    if call.method == "function" and call.name in ("searchsorted", "digitize"):
        result = choices.look_up(call)
    else:
        result = _bend(call)
        if result is NotImplemented and len(call.inputs) <= 2:
            result = _follow_affine(call)
    if result is not NotImplemented:
        return result
    sums = call.name in (*marks.LINEAR, "add", "subtract", "matmul")
    inputs = [
        value.as_noise() if sums and isinstance(value, Marked) else value for value in call.inputs
    ]
    for value in inputs:
        if isinstance(value, DrawArray):
            value.end(call.name)
    inputs = [
        marks.without_marks(value) if isinstance(value, DrawArray) else value for value in inputs
    ]
    if not any(map(is_marked, inputs)):
        return NotImplemented
    return marks.follow(call._replace(inputs=tuple(inputs)))


def _bend(call: MarkedCall) -> Any:
    """A function of uniform draws; `NotImplemented` if it is followed in another way, or not."""
    inputs, ufunc = call.inputs, call.function
    if call.method != "__call__" or call.kwargs or ufunc.nout != 1 or len(inputs) > 2:
        return NotImplemented
    marked = [value for value in inputs if isinstance(value, Marked)]
    if not all(is_marked(value, DrawArray) for value in marked):
        return NotImplemented
    if len(marked) == 1 and isinstance(marked[0], CoinArray) and _is_affine(call):
        return NotImplemented
    sides = [_as_curve(value) if isinstance(value, Marked) else value for value in inputs]
    if any(side is None for side in sides):
        return NotImplemented
    if call.name in ("add", "subtract") and _are_noise(sides):
        return NotImplemented
    others = [np.asarray(side) for side in sides if not isinstance(side, Marked)]
    if any(other.dtype.kind not in "fiub" for other in others):
        return NotImplemented
    with np.errstate(all="ignore"):
        content = np.asarray(ufunc(*map(marks.without_marks, inputs)))
        grid = ufunc(
            *(
                side.grid if isinstance(side, Marked) else np.asarray(side)[..., None]
                for side in sides
            )
        )
    sources = _sources(sides, content.shape)
    if content.dtype != np.float64 or sources is None or content.size > _MOST_CURVED:
        return NotImplemented
    grid = np.broadcast_to(grid, (*content.shape, curves.POINTS))
    return marks.number_of(_curve(content, grid, sources))


def _is_affine(call: MarkedCall) -> bool:
    divides = call.name in ("divide", "true_divide") and is_marked(call.inputs[0])
    return divides or call.name in ("add", "subtract", "multiply", "negative", "positive")


def bend(function: Callable[[Any], Any], value: Any) -> Any:
    """Applies a function, element by element, to uniform draws or a function of them.

    Args:
        function: Of an array.
        value: The draws.

    Returns:
        The result; without a mark if it is not followed.
    """
    curve = _as_curve(marks.array_of(value))
    if curve is None:
        return function(marks.end_marks(value))
    content, grid = np.asarray(function(plain_array(curve))), np.asarray(function(curve.grid))
    return marks.number_of(_curve(content, grid, curve.sources))


def _as_curve(marked: Any) -> Any:
    """Uniform draws as a function of themselves; None if they cannot be."""
    if isinstance(marked, CurveArray):
        return marked
    value = marked.state.value
    repeats = any(step == 0 and size > 1 for step, size in zip(value.strides, value.shape))
    if repeats or not 0 < value.size <= _MOST_CURVED or marked.dtype != np.float64:
        return None
    if not _are_whole(marked.state):
        return None
    name = (value.__array_interface__["data"][0], value.shape, value.strides)
    drawn = curves.units(int(value.flat[0] * 2**20))
    places = np.arange(value.size).reshape(value.shape)
    grid = np.multiply.outer(np.broadcast_to(marked.factor, value.shape), drawn)
    grid = grid + np.broadcast_to(marked.offset, value.shape)[..., None]
    return _curve(marked.view(np.ndarray), grid, (CurveSource(name, marked.state, places, drawn),))


def _are_whole(state: CoinState) -> bool:
    """Whether draws may still lie anywhere in [0, 1), and belong to no record."""
    is_known = np.any(state.low > 0) or np.any(state.high < 1)
    return not (is_known or np.any(state.record) or np.any(state.known))


def _are_noise(sides: Any) -> bool:
    """Whether the sides of a sum are noise, of separate draws, or noise and a value."""
    both = [side for side in sides if isinstance(side, Marked)]
    names = [source.name for side in both for source in side.sources]
    return len(set(names)) == len(names) and all(side.law is not None for side in both)


def _sources(sides: Any, shape: Any) -> Any:
    """The draws that a result depends on, one or two for each element; None if there are more."""
    sources: Dict[Any, CurveSource] = {}
    for side in sides:
        for source in side.sources if isinstance(side, Marked) else ():
            places = np.broadcast_to(source.places, shape)
            known = sources.setdefault(source.name, source._replace(places=places))
            if not np.array_equal(known.places, places):
                return None
    return tuple(sources.values()) if len(sources) <= 2 else None


def _follow_affine(call: MarkedCall) -> Any:
    """Uniform draws times and plus plain values, and comparisons with these."""
    inputs, name = call.inputs, call.name
    marked = [value for value in inputs if isinstance(value, Marked)]
    first = marked[0]
    if len(marked) != 1 or not isinstance(first, CoinArray) or call.method != "__call__":
        return NotImplemented
    if call.out is not None and call.out is not first:
        return NotImplemented
    if any(plain_array(value).dtype.kind not in "fiub" for value in inputs):
        return NotImplemented
    if name in marks.MIRRORED:
        if marks.world.natural:
            return NotImplemented
        is_first = inputs[0] is first
        other = plain_array(inputs[1] if is_first else inputs[0])
        name = name if is_first else marks.MIRRORED[name]
        whole = first.dtype.kind in "iu"
        return choices.compare(first, other, name, call.where, whole=whole)
    affine = marks.affine_of(call, first)
    if affine is None:
        return NotImplemented
    factor, more = affine
    content = np.asarray(call.function(*map(marks.without_marks, inputs)))
    spread = _broadcast(first, content.shape)
    made = (spread.factor * factor, spread.offset * factor + more)
    if call.out is None:
        return marks.number_of(_settle_range(_coin(content, spread.state, *made), call.where))
    plain_array(first)[...] = content
    first.factor, first.offset = made
    first.accept()
    return first


def _settle_range(marked: Any, where: Site) -> Any:
    """Gives a single draw from a range the value that it has in both worlds, if it has one."""
    world, state = marks.world, marked.state
    if marked.size != 1 or not world.follows_range(where) or not _are_whole(state):
        return marked
    low, high = sorted((float(marked.offset.sum()), float((marked.offset + marked.factor).sum())))
    name = state.low.__array_interface__["data"][0]
    world.held.append(state)  # so that its address names no other draw
    if world.order.notes_ranges:
        world.note("range", where, low, high, low=low, high=high, name=name)
        return marked
    reply = world.ask("range", where, low=low, high=high)
    if "value" not in reply:
        return marked
    state.read()
    return np.full(marked.shape, reply["value"])[()]


def _broadcast(marked: Any, shape: Any) -> Any:
    """Broadcasts draws; the array itself if the shape stays, since their state is writable."""
    if marked.shape == shape:
        return marked
    return marked.map_fields(lambda field: np.broadcast_to(field, shape))


marks.followers.insert(0, _follow)
