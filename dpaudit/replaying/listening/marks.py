"""Arrays and numbers that carry noise, marked until their use is known.

A `NoiseArray` is a linear combination of noise draws, without data. Adding data to it makes an
`AnswerArray`, which is equal in both worlds. An answer stays marked until it is compared or
maximised (a selection), or used as a number (a release). A `CoinArray` holds uniform draws, perhaps
scaled, until they are compared. A `CurveArray` is another function of them, and becomes noise where
data is added, if it has a known law. `NoiseNumber`, `AnswerNumber`, `CoinNumber` and `CurveNumber`
are the same for one float.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from functools import cached_property, partialmethod, wraps
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from . import curves
from .channel import Site, is_operator, site
from .world import SEVERAL, ListeningWorld

_COMPARED = {"less": "<", "less_equal": "<", "greater": ">", "greater_equal": ">"}
_MOST_VALUES = 2**1000
"""Integers with more values than this stay unmarked: floats cannot hold their limits."""
_STRUCTURAL = {
    "concatenate",
    "stack",
    "hstack",
    "vstack",
    "column_stack",
    "reshape",
    "ravel",
    "transpose",
    "squeeze",
    "expand_dims",
    "broadcast_to",
    "flip",
    "roll",
    "swapaxes",
    "moveaxis",
    "take",
    "atleast_1d",
    "atleast_2d",
    "append",
    "delete",
    "split",
    "array_split",
    "tile",
    "repeat",
}

world: ListeningWorld = None  # type: ignore[assignment]
"""Set by `hooks.install`."""


_ARRAYS = ("ids", "factor", "scale", "shape", "other")
"""The fields of a `NoisePart` that are arrays."""


class NoisePart(NamedTuple):
    """One noise draw per element of an array: its law, parameters and factor."""

    law: str
    ids: Any
    factor: Any
    scale: Any
    shape: Any
    other: Any
    seed: Optional[str]
    site: Site

    def mapped(self, change: Callable[[Any], Any]) -> NoisePart:
        """The part with the same change applied to all its arrays."""
        arrays = (change(getattr(self, name)) for name in _ARRAYS)
        return NoisePart(self.law, *arrays, self.seed, self.site)

    def message(self) -> Dict[str, Any]:
        """The part as a message."""
        numbers = {name: np.asarray(getattr(self, name), dtype=float) for name in _ARRAYS[1:]}
        head = {"law": self.law, "ids": self.ids}
        return {**head, **numbers, "seed": self.seed, "site": list(self.site)}


def noise(
    values: Any,
    law: str,
    where: Site,
    *,
    scale: Any = 1.0,
    shape: Any = 1.0,
    other: Any = 1.0,
    seed: Optional[str] = None,
) -> Any:
    """Marks drawn values as new noise.

    Args:
        values: What was drawn, the same in both worlds: a number or an array.
        law: Its law, as `dpaudit.replaying.laws` names them.
        where: The line that draws.
        scale: Scale of the law, broadcast to the values.
        shape: Second parameter of the law, likewise.
        other: Third parameter, likewise.
        seed: What seeded the generator, if known.
    """
    if seed in world.public_seeds:
        return values
    content = np.asarray(values)
    ids = world.noise_ids(content.shape, where)
    full = [
        np.broadcast_to(np.asarray(one, dtype=float), content.shape)
        for one in (scale, shape, other)
    ]
    part = NoisePart(law, ids, np.ones(content.shape), *full, seed=seed, site=where)
    marked = _noise(content, (part,))
    return marked if isinstance(values, np.ndarray) else _number(marked)


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
    content = np.asarray(values, dtype=float)
    is_plain = type(record) is int and not record  # the usual case: single draws in loops
    if is_plain:
        record = np.zeros(content.shape, dtype=np.int8)
    else:
        record = np.array(np.broadcast_to(record, content.shape), dtype=np.int8)
    if is_plain or not np.any(record):
        world.note("draw", where, content.shape)
    elif not np.all(record == 2):  # the other world does not have the target's coin
        world.note("draw" if world.kept is None else "sample", where)
    known = np.zeros(content.shape, dtype=bool)
    state = CoinState(
        np.zeros(content.shape), np.ones(content.shape), content.copy(), record, known
    )
    if world.opposite and (world.kept is None or not np.any(record)):
        content = 1.0 - content
    factor, offset = np.full(content.shape, high - low), np.full(content.shape, float(low))
    marked = _coin(content * factor + offset, state, factor, offset)
    return marked if isinstance(values, np.ndarray) else _number(marked)


def whole_coin(values: Any, count: int, where: Site) -> Any:
    """Marks uniform draws from 0, 1, ..., count - 1 as new coins.

    Exact samplers compare them with a whole number: a Bernoulli draw with a rational probability.

    Args:
        values: What was drawn, an integer or an array of integers.
        count: Number of possible values.
        where: The line that draws.
    """
    world.note("draw", where, np.shape(values))
    if isinstance(values, np.ndarray):
        content = values.dtype.type(count - 1) - values if world.opposite else values
        return _words(content, (content.astype(float) + 0.5) / count, count)
    value = count - 1 - values if world.opposite else values
    if count > _MOST_VALUES:
        return value
    unit = np.array((2 * value + 1) / (2 * count))
    return _integer(value, _words(unit * count, unit, count))


def _words(content: Any, unit: Any, count: int) -> Any:
    """Integers as coins: each stands for the draw from [0, 1) at the middle of its step."""
    low, record, offset = (np.zeros(unit.shape) for _ in range(3))  # written to, so separate
    value = np.asarray(np.minimum(unit, 1.0 - 2.0**-53))
    state = CoinState(low, np.ones(unit.shape), value, record, np.zeros(unit.shape, dtype=bool))
    return _coin(content, state, np.full(unit.shape, float(count)), offset)


def answer(before: Any, parts: Tuple[NoisePart, ...], where: Site, *, out: Any = None) -> Any:
    """Requests the answer of a step: a value plus noise.

    Returns:
        The answer, equal in both worlds: an array, or a number for a shape of ().
    """
    shape = np.broadcast_shapes(np.shape(before), *(part.ids.shape for part in parts))
    before = np.broadcast_to(plain(before), shape)
    if before.dtype.kind not in "fiub":
        before = before.astype(float)
    parts = tuple(part.mapped(lambda one: np.broadcast_to(one, shape)) for part in parts)
    noisy = np.any([part.factor != 0 for part in parts], axis=0)
    if noisy.any() and not noisy.all():
        return _answered_in_part(before, parts, noisy, where, out)
    if _repeats(parts):
        return _answered_once(before, parts, where, out)
    for part in parts:
        world.use_noise(part.ids, where, "answer")
    reply = world.ask(
        "answer",
        where,
        before=before.astype(float),
        parts=[part.message() for part in parts],
        first=world.next_answer,
    )
    whole = before.dtype.kind in "iub" and all(part.law in WHOLE for part in parts)
    value = np.asarray(reply["value"]).reshape(shape).astype(np.int64 if whole else np.float64)
    return _new_answer(_into(out, value))


def _new_answer(content: Any) -> Any:
    """An answer that is made of no others."""
    shape = content.shape
    return _answer(content, world.answer_ids(shape), np.ones(shape), np.zeros(shape))


def _into(out: Any, content: Any) -> Any:
    """A result, in the array that the caller has given for it if there is one."""
    if out is None:
        return content
    plain(out)[...] = content
    return plain(out)


def _answered_in_part(
    before: Any, parts: Tuple[NoisePart, ...], noisy: Any, where: Site, out: Any
) -> Any:
    """Requests answers for the elements with noise and keeps the others as they are."""
    world.equal("operand", where, before[~noisy])
    some = answer(
        before[noisy], tuple(part.mapped(lambda one: one[noisy]) for part in parts), where
    )
    value = before.astype(float)
    value[noisy] = plain(some)
    ids = np.full(before.shape, -1)
    ids[noisy] = some.ids
    offset = np.where(noisy, 0.0, value)
    return _answer(_into(out, value), ids, noisy.astype(float), offset)


def _repeats(parts: Tuple[NoisePart, ...]) -> bool:
    """Whether a draw of noise occurs more than once."""
    ids = np.concatenate([part.ids.ravel() for part in parts])
    return not np.all(ids[1:] > ids[:-1]) and len(np.unique(ids)) < len(ids)


def _answered_once(before: Any, parts: Tuple[NoisePart, ...], where: Site, out: Any) -> Any:
    """Requests answers in which draws occur several times, as in a symmetric noise matrix.

    Each combination of draws is requested once, or if combinations share draws, equally many
    independent answers are. Elements with the same combination, or a multiple of it, follow from
    that answer; the rest of their value must be equal in both worlds.
    """
    flat = before.ravel().astype(float)
    fields = [[np.ravel(one) for one in (part.ids, part.factor)] for part in parts]
    draws: Dict[int, Tuple[int, int]] = {}
    groups: Dict[Any, List[Tuple[int, float]]] = defaultdict(list)
    for place in range(flat.size):
        form: Dict[int, float] = defaultdict(float)
        for number, (ids, factor) in enumerate(fields):
            form[int(ids[place])] += float(factor[place])
            draws.setdefault(int(ids[place]), (number, place))
        kept = sorted((one, by) for one, by in form.items() if by)
        lead = kept[0][1] if kept else 0.0
        groups[tuple((one, round(by / lead, 12)) for one, by in kept)].append((place, lead))
    known = {"ids": np.full(flat.size, -1), "factor": np.zeros(flat.size), "offset": flat.copy()}
    value = flat.copy()
    for place, _ in groups.pop((), ()):
        world.equal("operand", where, flat[place])
    used = [one for form in groups for one, _ in form]
    alike: Dict[Any, List[Any]] = defaultdict(list)
    for form in groups:
        alike[tuple(parts[draws[one][0]].law for one, _ in form)].append(form)
    is_correlated = len(set(used)) < len(used)
    for forms in [list(groups)] if is_correlated else alike.values():
        first = [groups[form][0] for form in forms]
        bare = flat[[place for place, _ in first]]
        if is_correlated:
            some = _whitened(bare, parts, draws, forms, first, where)
        else:
            own = tuple(_part_of(parts, draws, forms, at, first) for at in range(len(forms[0])))
            some = answer(bare, own, where)
        if some is None:  # this ends the fit
            world.tell("reused", where, "noise that is used more than once")
            world.settle(np.concatenate([ids for ids, _ in fields]))
            parts = tuple(
                part._replace(ids=world.noise_ids(part.ids.shape, part.site)) for part in parts
            )
            return answer(before, parts, where, out=out)
        for one, form in enumerate(forms):
            for place, lead in groups[form]:
                by = lead / first[one][1]
                known["ids"][place], known["factor"][place] = some.ids[one], by
                known["offset"][place] = flat[place] - by * flat[first[one][0]]
                value[place] = by * float(plain(some)[one]) + known["offset"][place]
    world.equal("again", where, known["offset"][known["factor"] != 0])
    content = _into(out, value.reshape(before.shape))
    return _answer(content, *(one.reshape(before.shape) for one in known.values()))


def _whitened(
    bare: Any, parts: Tuple[NoisePart, ...], draws: Any, forms: Any, first: Any, where: Site
) -> Any:
    """Answers with correlated Gaussian noise, as sums of equally many with independent noise.

    None for other noise, or if the noise of some answers determines that of others.
    """
    every = sorted({one for form in forms for one, _ in form})
    if {parts[draws[one][0]].law for one in every} != {"gaussian"} or len(every) < len(forms):
        return None
    place = {one: at for at, one in enumerate(every)}
    loads = np.zeros((len(forms), len(every)))
    for row, (form, (_, lead)) in enumerate(zip(forms, first)):
        for one, by in form:
            number, at = draws[one]
            loads[row, place[one]] = by * lead * float(np.ravel(parts[number].scale)[at])
    triangle = np.linalg.qr(loads.T, mode="r").T  # gives the same covariance
    sizes = np.linalg.norm(loads, axis=1)
    if np.any(np.abs(np.diag(triangle)) < 1e-9 * sizes) or not world.equal(
        "spend", where, triangle
    ):
        return None
    for part in parts:
        world.use_noise(part.ids, where, "answer")
    part = parts[draws[every[0]][0]]
    ids, one = world.noise_ids((len(forms),), part.site), np.ones(len(forms))
    unit = part._replace(ids=ids, factor=one, scale=one, shape=one, other=one)
    independent = answer(np.linalg.solve(triangle, bare), (unit,), where)
    return _sums(independent, triangle.__matmul__, triangle @ plain(independent), where)


def _part_of(
    parts: Tuple[NoisePart, ...], draws: Any, forms: Any, at: int, first: Any
) -> NoisePart:
    """The draw at one place of each combination, as a part of their answers."""
    found = [draws[form[at][0]] for form in forms]
    fields = {
        name: np.array([np.ravel(getattr(parts[number], name))[place] for number, place in found])
        for name in ("scale", "shape", "other")
    }
    ids = np.array([form[at][0] for form in forms])
    factor = np.array([form[at][1] * lead for form, (_, lead) in zip(forms, first)])
    return parts[found[0][0]]._replace(ids=ids, factor=factor, **fields)


WHOLE = ("geometric", "discrete_laplace", "discrete_gaussian", "poisson", "negative_binomial")
"""Laws on the integers."""


def plain(value: Any) -> Any:
    """A value without its mark."""
    if isinstance(value, Marked):
        return value.view(np.ndarray)
    if isinstance(value, MarkedNumber):
        return value.array.view(np.ndarray).reshape(())
    return np.asarray(value)


def as_count(value: Any) -> Any:
    """A marked integer as Python has it, for code that asks how many; its mark ends."""
    is_marked = isinstance(value, MarkedNumber) and value.array.dtype.kind in "iu"
    return operator.index(value) if is_marked else value


def counting(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that takes marked integers as Python has them, in slices, lists and dicts, too."""

    @wraps(function)
    def counted(*args: Any, **kwargs: Any) -> Any:
        more = {name: _as_counts(value) for name, value in kwargs.items()}
        return function(*map(_as_counts, args), **more)

    return counted


def _as_counts(value: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)(_as_counts(one) for one in value)
    if type(value) is dict:
        return {key: _as_counts(one) for key, one in value.items()}
    if isinstance(value, slice):
        return slice(*map(as_count, (value.start, value.stop, value.step)))
    return as_count(value)


def unmarked(value: Any, where: Site) -> Any:
    """Removes the mark of a value: its noise and coins count as used, its answers as released."""
    if isinstance(value, MarkedNumber):
        used(value.array, where)
        return plain(value).item()
    if isinstance(value, Marked):
        used(value, where)
        return value.view(np.ndarray)
    if isinstance(value, (list, tuple)) and any(
        isinstance(one, (Marked, MarkedNumber)) for one in value
    ):
        return type(value)(unmarked(one, where) for one in value)
    return value


def used(value: Any, where: Site) -> None:
    """Ends a mark: from here on answers count as released, and noise as a coin."""
    if not value.is_marked:
        return
    if isinstance(value, AnswerArray):
        world.release(value.ids, where)
    elif isinstance(value, NoiseArray):
        for part in value.parts:
            world.use_noise(part.ids, where, "number")
        # from here on it is a coin, whose law must not depend on the data
        laws = [(one.factor * one.scale, one.shape, one.other) for one in value.parts]
        fields = (np.array(field) for law in laws for field in law)
        world.note("draw", where, value.shape, *fields, law=True)
    elif isinstance(value, CurveArray):
        for source in value.sources:
            _note_read(source.state)
    else:
        _note_read(value.state)
        if world.kept is not None and np.any(value.state.record):
            world.tell("unfollowed", where, "coins of the records are used as numbers")
    # the value of any other coin is equal in both worlds as long as its comparisons are


def _note_read(state: CoinState) -> None:
    """Notes that something may depend on draws: what is made of them then has another law."""
    if state.known.flags.writeable:
        state.known[...] = True


class Marked(np.ndarray):
    """Base class of the three marked arrays: their interface to numpy.

    Attributes:
        is_blank: Whether it was an array of zeros, which is filled element by element.
    """

    is_blank = False

    def __array_finalize__(self, source: Any) -> None:
        """Counts the source as used if numpy made this view itself, which has no mark then."""
        if isinstance(source, Marked) and source.is_marked and world.hears:
            used(source, site())

    @property
    def is_marked(self) -> bool:
        """Whether it still carries its mark."""
        return False

    def _changed(self, change: Callable[[Any], Any]) -> Any:
        raise NotImplementedError

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Follows linear operations, comparisons and sums; everything else is a use."""
        return operated(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Follows functions that move elements or select; everything else is a use."""
        return _called(function, args, kwargs)

    # array methods that bypass the two above

    def __getitem__(self, key: Any) -> Any:
        if not self.is_marked:
            return self.view(np.ndarray)[key]
        is_number = not isinstance(self.view(np.ndarray)[key], np.ndarray)
        if isinstance(self, CoinArray) and isinstance(key, (int, np.integer)):
            key = (key, ...)  # a view: information about a coin is shared by all its views
        moved = self._changed(lambda one: np.asarray(one)[key])
        return _number(moved) if is_number else moved

    def __setitem__(self, key: Any, value: Any) -> None:
        where = site()
        if not self.is_marked or not _fill(self, key, value):
            used(self, where)
            self._forget()
            value = unmarked(value, where)
            self.view(np.ndarray)[key] = value

    def _forget(self) -> None:
        raise NotImplementedError

    def __iter__(self) -> Any:
        return (self[index] for index in range(len(self)))

    def tolist(self) -> Any:
        """Nested lists of marked numbers."""
        if self.ndim == 0:
            return _number(self)
        return [one.tolist() if isinstance(one, Marked) else one for one in self]

    def item(self, *index: Any) -> Any:
        """One element, marked."""
        flat = self._changed(np.ravel)
        return _number(
            flat[
                int(np.ravel_multi_index(index, self.shape))
                if len(index) > 1
                else (index[0] if index else 0)
            ]
        )

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """Conversion to another float type keeps the mark; rounding to integers is a use."""
        if np.dtype(dtype).kind == "f" or np.dtype(dtype) == self.dtype:
            found = self._changed(lambda one: one)
            return found if np.dtype(dtype) == self.dtype else _retyped(found, dtype)
        return unmarked(self, site()).astype(dtype, *args, **kwargs)

    def copy(self, *_: Any, **__: Any) -> Any:
        """A copy with the same mark."""
        return self._changed(np.copy)

    __copy__ = __deepcopy__ = copy

    def reshape(self, *shape: Any, **kwargs: Any) -> Any:
        """As in numpy."""
        return self._changed(lambda one: np.asarray(one).reshape(*shape, **kwargs))

    def ravel(self, *_: Any, **__: Any) -> Any:
        """As in numpy."""
        return self._changed(np.ravel)

    flatten = ravel

    def squeeze(self, axis: Any = None) -> Any:
        """As in numpy."""
        return self._changed(lambda one: np.squeeze(one, axis))

    def transpose(self, *axes: Any) -> Any:
        """As in numpy."""
        return self._changed(lambda one: np.asarray(one).transpose(*axes))

    @property
    def T(self) -> Any:  # noqa: N802 - numpy's name
        """As in numpy."""
        return self._changed(lambda one: np.asarray(one).T)

    def sum(self, axis: Any = None, **kwargs: Any) -> Any:
        """As in numpy."""
        return np.add.reduce(
            self, axis=axis, **{k: v for k, v in kwargs.items() if k == "keepdims" and v}
        )

    def mean(self, axis: Any = None, **kwargs: Any) -> Any:
        """As in numpy."""
        count = self.size if axis is None else self.shape[axis]
        return self.sum(axis=axis, **kwargs) / count

    def argmax(self, axis: Any = None, out: Any = None, **_: Any) -> Any:
        """The place of the largest; for answers, a selection."""
        return selected(self, "max", axis, site())

    def argmin(self, axis: Any = None, out: Any = None, **_: Any) -> Any:
        """The place of the smallest; for answers, a selection."""
        return selected(self, "min", axis, site())

    def argsort(self, axis: Any = -1, *_: Any, **__: Any) -> Any:
        """The order; for answers, a selection."""
        if isinstance(self, AnswerArray) and self.is_marked and self.ndim == 1:
            return ordered(self, site())
        return np.argsort(unmarked(self, site()), axis=axis)

    def __reduce__(self) -> Any:
        return unmarked(self, site()).__reduce__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return unmarked(self, site()).__reduce_ex__(protocol)


for _name in (
    "max",
    "min",
    "std",
    "var",
    "prod",
    "cumsum",
    "dot",
    "round",
    "clip",
    "ptp",
    "tobytes",
    "nonzero",
    "any",
    "all",
    "sort",
    "partition",
    "argpartition",
    "searchsorted",
    "choose",
    "fill",
    "conj",
    "trace",
    "diagonal",
    "byteswap",
    "dump",
    "dumps",
    "tofile",
    "put",
    "take",
    "repeat",
    "compress",
    "cumprod",
    "__format__",
    "__str__",
    "__repr__",
    "__bool__",
    "__float__",
    "__int__",
    "__contains__",
):

    def _using(self: Any, *args: Any, _name: str = _name, **kwargs: Any) -> Any:
        where = site()
        others = [unmarked(one, where) for one in args]

        def again(values: Any) -> Any:
            return getattr(values, _name)(*others, **kwargs)

        found = again(self.view(np.ndarray))
        axis = kwargs.get("axis", args[0] if args else None)
        if set(kwargs) <= {"axis", "keepdims"} and extreme(self, _name, found, where, axis=axis):
            return found
        linear = again if _name in _LINEAR else None
        return spent((self,), (*others, *kwargs.values()), found, where, linear=linear)

    setattr(Marked, _name, _using)

_SELECTING = {"argmax", "argmin", "argsort", "sum", "mean"}


class NoiseArray(Marked):
    """A linear combination of noise draws."""

    parts: Tuple[NoisePart, ...] = ()

    @property
    def is_marked(self) -> bool:
        return bool(self.parts)

    def _changed(self, change: Callable[[Any], Any]) -> Any:
        parts = tuple(part.mapped(change) for part in self.parts)
        return _noise(np.asarray(change(self.view(np.ndarray))), parts)

    def _forget(self) -> None:
        self.parts = ()


class AnswerArray(Marked):
    """Noisy answers, perhaps scaled and shifted: `factor * answer + offset`."""

    ids: Any = None
    factor: Any = None
    offset: Any = None

    @property
    def is_marked(self) -> bool:
        return self.ids is not None

    def _changed(self, change: Callable[[Any], Any]) -> Any:
        if self.ids is None:
            return np.asarray(change(self.view(np.ndarray)))
        content = np.asarray(change(self.view(np.ndarray)))
        return _answer(content, change(self.ids), change(self.factor), change(self.offset))

    def _forget(self) -> None:
        self.ids = None


class CoinState(NamedTuple):
    """What is known of uniform draws; all views of the draws share it.

    The interval each still lies in, its value, whose coin it is, and whether it was compared, or
    used as a number.
    """

    low: Any
    high: Any
    value: Any
    record: Any
    known: Any


class CoinArray(Marked):
    """Uniform draws, perhaps scaled and shifted: `factor * u + offset`."""

    state: Optional[CoinState] = None
    factor: Any = None
    offset: Any = None

    @property
    def is_marked(self) -> bool:
        return self.state is not None

    def _changed(self, change: Callable[[Any], Any]) -> Any:
        content = np.asarray(change(self.view(np.ndarray)))
        if self.state is None:
            return content
        state = CoinState(*(change(one) for one in self.state))
        return _coin(content, state, change(self.factor), change(self.offset))

    def _forget(self) -> None:
        self.state = None


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


class CurveArray(Marked):
    """A function of uniform draws, element by element, and its values at `curves.POINTS` draws."""

    sources: Tuple[CurveSource, ...] = ()
    grid: Any = None

    @property
    def is_marked(self) -> bool:
        return bool(self.sources)

    def _changed(self, change: Callable[[Any], Any]) -> Any:
        content = np.asarray(change(self.view(np.ndarray)))
        grid = [np.asarray(change(self.grid[..., at])) for at in range(curves.POINTS)]
        sources = [one._replace(places=np.asarray(change(one.places))) for one in self.sources]
        return _curve(content, np.stack(grid, axis=-1), tuple(sources))

    def _forget(self) -> None:
        self.sources = ()

    @cached_property
    def law(self) -> Optional[curves.Known]:
        """The law that its values are quantiles of, if draws may still be any; None if of none."""
        return curves.law_of(self.grid, tuple(one.drawn for one in self.sources))


def _curve(content: Any, grid: Any, sources: Tuple[CurveSource, ...]) -> Any:
    found = np.asarray(content).view(CurveArray)
    found.grid, found.sources = grid, sources
    return found


def _noise(content: Any, parts: Tuple[NoisePart, ...]) -> Any:
    found = np.asarray(content).view(NoiseArray)
    found.parts = parts
    if world.hears:
        world.recent.append(found)
    return found


def recognised(values: Any) -> Any:
    """Marks noise again that was copied into a plain array, recognised by its values.

    Zeros among them are padding, without noise. An array with any other value stays plain.
    """
    pool = [
        one
        for one in world.recent
        if len(one.parts) == 1 and not world.are_settled(one.parts[0].ids).all()
    ]
    if type(values) not in (np.ndarray, Blank) or values.dtype.kind != "f" or not pool:
        return values
    values = values.view(np.ndarray)
    known = np.concatenate([one.view(np.ndarray).ravel() for one in pool]).astype(values.dtype)
    order = np.argsort(known, kind="stable")
    place = np.searchsorted(known[order], values).clip(max=len(known) - 1)
    source = order[place]
    found = (known[source] == values) & (values != 0)
    every = [one.parts[0] for one in pool]
    if not found.any() or np.any((values != 0) & ~found):
        return values
    if len({(part.law, part.seed) for part in every}) != 1:
        return values
    gathered = {
        name: np.concatenate([np.ravel(getattr(part, name)) for part in every])[source]
        for name in _ARRAYS
    }
    padding = world.noise_ids(values.shape, every[0].site)
    gathered["ids"] = np.where(found, gathered["ids"], padding)
    gathered["factor"] = np.where(found, gathered["factor"], 0.0)
    world.settle(padding)
    return _noise(values, (every[0]._replace(**gathered),))


def _answer(content: Any, ids: Any, factor: Any, offset: Any) -> Any:
    found = np.asarray(content).view(AnswerArray)
    found.ids, found.factor, found.offset = np.asarray(ids), np.asarray(factor), np.asarray(offset)
    return found if found.ndim else _number(found)


def _coin(content: Any, state: CoinState, factor: Any, offset: Any) -> Any:
    found = np.asarray(content).view(CoinArray)
    found.state, found.factor, found.offset = state, np.asarray(factor), np.asarray(offset)
    return found


def _retyped(marked: Any, dtype: Any) -> Any:
    marked = _uncurved(marked)
    content = plain(marked).astype(dtype)
    if not isinstance(marked, Marked):
        return content
    if isinstance(marked, NoiseArray):
        return _noise(content, marked.parts)
    if isinstance(marked, AnswerArray):
        return _answer(content, marked.ids, marked.factor, marked.offset)
    return _coin(content, marked.state, marked.factor, marked.offset)


class MarkedNumber(np.float64):
    """A marked float: it behaves as an array without dimensions.

    It subclasses numpy's float, because `numpy.float64 + other` defers only to subclasses. An
    integer calls itself one.
    """

    array: Any

    @property
    def __class__(self) -> Any:
        return np.int64 if self.array.dtype.kind in "iu" else type(self)

    @property
    def dtype(self) -> Any:
        """As numpy's numbers have it."""
        return self.array.dtype

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """As for arrays."""
        return operated(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """As for arrays."""
        return _called(function, tuple(_array(one) for one in args), kwargs)

    def __hash__(self) -> int:
        used(self.array, site())
        return hash(float(self))

    def __reduce_ex__(self, protocol: Any) -> Any:
        used(self.array, site())
        return (float, (float(self),))

    def __index__(self) -> int:
        if self.array.dtype.kind not in "iu":
            raise TypeError("'numpy.float64' object cannot be interpreted as an integer")
        return int(self)

    def item(self) -> Any:
        """As for numpy's numbers."""
        return self

    def __deepcopy__(self, _: Any) -> Any:
        return self

    def reshape(self, *shape: Any) -> Any:
        """As for numpy's numbers."""
        return self.array.reshape(*shape)

    def astype(self, dtype: Any) -> Any:
        """As for numpy's numbers."""
        return self if np.dtype(dtype).kind == "f" else np.dtype(dtype).type(int(self))


class NoiseNumber(MarkedNumber):
    """Noise that is one float."""


class AnswerNumber(MarkedNumber):
    """A noisy answer that is one float."""


class DrawNumber(MarkedNumber):
    """A function of uniform draws that is one float, as its absolute value is."""

    def __abs__(self) -> Any:
        return np.absolute(self)


class CoinNumber(DrawNumber):
    """A uniform draw that is one float, perhaps scaled and shifted."""


class CurveNumber(DrawNumber):
    """Another function of uniform draws that is one float."""


class CoinInteger(int):
    """A uniform draw as one integer; comparing it with an integer or adding one is followed."""

    array: Any

    def _against(self, other: Any, name: str) -> Any:
        if not world.hears or isinstance(other, (Marked, MarkedNumber)):
            return getattr(int, name)(self, other)
        if not isinstance(other, (int, float, np.number)):
            return NotImplemented
        bound, sign = _whole_limit(other, name.strip("_"))
        return bool(tossed(self.array, bound, sign, site()))

    __lt__ = partialmethod(_against, name="__lt__")
    __le__ = partialmethod(_against, name="__le__")
    __gt__ = partialmethod(_against, name="__gt__")
    __ge__ = partialmethod(_against, name="__ge__")

    def __add__(self, other: Any) -> Any:
        found = int.__add__(self, other)
        if type(other) is not int:
            return found
        own = self.array
        return _integer(
            found, _coin(np.array(float(found)), own.state, own.factor, own.offset + other)
        )

    __radd__ = __add__

    def __reduce__(self) -> Any:
        return (int, (int(self),))


def _integer(value: int, marked: Any) -> CoinInteger:
    found = CoinInteger(value)
    found.array = marked
    return found


def _whole_limit(bound: Any, name: str) -> Tuple[Any, str]:
    """A limit on integers as a limit on the draw in [0, 1) behind them."""
    limit = np.asarray(bound).astype(float)
    if name in ("le", "gt", "less_equal", "greater"):
        return np.floor(limit) + 1.0, "<" if name[0] == "l" else ">"
    return np.ceil(limit), "<" if name[0] == "l" else ">"


_MIRRORED_NAMES = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}


_NUMBERS = {
    NoiseArray: NoiseNumber,
    AnswerArray: AnswerNumber,
    CoinArray: CoinNumber,
    CurveArray: CurveNumber,
}


def _number(marked: Any) -> Any:
    if not isinstance(marked, Marked):
        return marked
    if not marked.is_marked:
        return marked.view(np.ndarray)[()]
    content = marked.view(np.ndarray)
    found = _NUMBERS[type(marked)](content[()] if content.ndim == 0 else content.item())
    found.array = marked
    return found


_PLAIN_NUMBERS = frozenset({int, float, np.float64})
_ARITHMETIC = {"add": "shift", "subtract": "shift", "multiply": "rescale", "true_divide": "rescale"}
"""The kind of note for arithmetic with an answer and a plain number.

Once an answer is released, the results of arithmetic with it carry no mark: they reveal nothing
new, and loops over released answers are common.
"""


def _binary(name: str, *, reflected: bool = False) -> Any:
    ufunc = getattr(np, name)

    kind = _ARITHMETIC.get(name)

    def method(self: Any, other: Any) -> Any:
        is_plain = type(self) is AnswerNumber and type(other) in _PLAIN_NUMBERS
        if kind is not None and is_plain and world.are_released(self.array.ids) and world.hears:
            where = site()
            mixes = world.mixes(where, "sum" if kind == "shift" else "factor")
            if mixes or where[:2] not in world.asked:
                if mixes:
                    world.mix(self.array.ids, where, numbers=1)
                else:
                    world.note(kind, where, other)
                value = self.array.view(np.ndarray)[()]
                return ufunc(other, value) if reflected else ufunc(value, other)
        if name == "multiply" and isinstance(other, (list, tuple, str, bytes)):
            count = as_count(self)
            if count is not self:  # numpy's integers repeat a list
                return other * count
        if not isinstance(other, (int, float, np.ndarray, np.generic, list)):
            return NotImplemented
        return ufunc(other, self) if reflected else ufunc(self, other)

    return method


for _operator, _ufunc in (
    ("add", "add"),
    ("sub", "subtract"),
    ("mul", "multiply"),
    ("truediv", "true_divide"),
    ("floordiv", "floor_divide"),
    ("mod", "mod"),
    ("pow", "power"),
):
    setattr(MarkedNumber, f"__{_operator}__", _binary(_ufunc))
    setattr(MarkedNumber, f"__r{_operator}__", _binary(_ufunc, reflected=True))
for _operator, _ufunc in (
    ("lt", "less"),
    ("le", "less_equal"),
    ("gt", "greater"),
    ("ge", "greater_equal"),
    ("eq", "equal"),
    ("ne", "not_equal"),
):
    setattr(MarkedNumber, f"__{_operator}__", _binary(_ufunc))
MarkedNumber.__neg__ = lambda self: np.negative(self)
MarkedNumber.__pos__ = lambda self: self
for _name in ("sum", "mean", "max", "min", "squeeze", "copy"):
    setattr(MarkedNumber, _name, lambda self, *_, **__: self)
for _name in ("ravel", "flatten"):
    setattr(MarkedNumber, _name, lambda self, *_: self.array.reshape(-1))
for _name in (
    "__abs__",
    "__round__",
    "__int__",
    "__trunc__",
    "__floor__",
    "__ceil__",
    "__bool__",
    "__str__",
    "__repr__",
    "__format__",
    "as_integer_ratio",
    "hex",
    "is_integer",
    "round",
    "clip",
    "tolist",
    "tobytes",
    "any",
    "all",
    "view",
    "nonzero",
    "std",
    "var",
    "prod",
    "cumsum",
):

    def _spending(self: Any, *args: Any, _name: str = _name, **kwargs: Any) -> Any:
        used(self.array, site())
        value = self.array.view(np.ndarray)[()]  # an integer stays one
        plain_value = value.item()
        return getattr(plain_value if hasattr(plain_value, _name) else value, _name)(
            *args, **kwargs
        )

    setattr(MarkedNumber, _name, _spending)


def _called(function: Any, args: Any, kwargs: Any) -> Any:
    """The result of a numpy function when some arguments are marked."""
    name, where = function.__name__, site()
    if name in _SELECTING and isinstance(args[0], Marked):
        return getattr(args[0], name)(*args[1:], **kwargs)
    if name in ("argmax", "argmin", "argsort"):
        args = (combined(args[0]), *args[1:])
        return getattr(args[0], name)(*args[1:], **kwargs)
    if name in _STRUCTURAL:
        if name.startswith("atleast") and len(args) > 1:
            return tuple(function(one) for one in args)
        followed = _moved(function, args, kwargs)
        if followed is not None:
            return followed
    if name == "where" and len(args) == 3:
        return np.where(*(unmarked(one, where) for one in args))
    if (
        name == "searchsorted"
        and isinstance(args[1], CoinArray)
        and not isinstance(args[0], Marked)
    ):
        return inverted(plain(args[0]), args[1], where, side=kwargs.get("side", "left"))
    if name in (
        "shape",
        "ndim",
        "size",
        "result_type",
        "may_share_memory",
        "can_cast",
        "iscomplexobj",
    ):
        return function(*map(_bare, args), **kwargs)
    if name in _LINEAR or name in ("triu", "tril"):
        args = tuple(map(_uncurved, args))
    if name in ("triu", "tril") and isinstance(args[0], Marked):
        kept = function(np.ones(args[0].shape), *args[1:], **kwargs)
        return _scaled(args[0], kept, where)
    if name in _LINEAR:
        args = tuple(_array(combined(one)) for one in args)
    found = function(*map(_bare, args), **{key: _bare(one) for key, one in kwargs.items()})
    axis = kwargs.get("axis", args[1] if len(args) > 1 else None)
    is_plain = len(args) <= 2 and set(kwargs) <= {"axis", "keepdims"}
    if is_plain and args and extreme(args[0], name, found, where, axis=axis):
        return found
    values = [*args, *kwargs.values()]
    others = [one for one in values if not isinstance(one, (Marked, MarkedNumber))]
    linear = _linear_in(function, args, kwargs) if name in _LINEAR else None
    return spent(values, others, found, where, linear=linear)


def _array(value: Any) -> Any:
    return value.array if isinstance(value, MarkedNumber) else value


def combined(values: Any) -> Any:
    """Joins a list of marked numbers or arrays, perhaps nested, into one marked array if possible.

    Noise among answers counts as an answer whose value before noise is 0. A plain number among
    them is no answer and gets the number -1.
    """
    if (
        isinstance(values, (Marked, MarkedNumber))
        or not isinstance(values, (list, tuple))
        or not values
    ):
        return values
    marks = [_uncurved(_array(combined(one))) for one in values]
    kinds = {type(one) for one in marks if isinstance(one, Marked) and one.is_marked}
    if not kinds or len({np.shape(one) for one in marks}) != 1:
        return values
    if kinds == {NoiseArray, AnswerArray}:
        marks = [
            _array(answer(0.0, one.parts, site())) if isinstance(one, NoiseArray) else one
            for one in marks
        ]
        kinds = {AnswerArray}
    if all(isinstance(one, Marked) and one.is_marked for one in marks):
        return _joined(marks, np.stack) if len(kinds) == 1 else values
    if kinds != {AnswerArray} or any(plain(one).dtype.kind not in "fiub" for one in marks):
        return values
    return _joined(
        [one if isinstance(one, AnswerArray) else _constant(one) for one in marks], np.stack
    )


def _constant(value: Any) -> Any:
    content = np.asarray(value)
    world.equal("operand", site(), content)
    none = np.full(content.shape, -1)
    found = content.view(AnswerArray)
    found.ids, found.factor, found.offset = none, np.zeros(content.shape), content.astype(float)
    return found


def _joined(marks: List[Any], join: Callable[[List[Any]], Any]) -> Any:
    first = marks[0]
    content = join([one.view(np.ndarray) for one in marks])
    if isinstance(first, NoiseArray):
        if len({tuple((part.law, part.seed) for part in one.parts) for one in marks}) != 1:
            return content
        parts = []
        for column in zip(*(one.parts for one in marks)):
            fields = {
                name: join([np.asarray(getattr(part, name)) for part in column]) for name in _ARRAYS
            }
            parts.append(column[0]._replace(**fields))
        return _noise(content, tuple(parts))
    fields = [
        join([np.asarray(getattr(one, name)) for one in marks]) for name in ("factor", "offset")
    ]
    if isinstance(first, AnswerArray):
        return _answer(content, join([one.ids for one in marks]), *fields)
    state = CoinState(
        *(join([one.state[at] for one in marks]) for at in range(len(CoinState._fields)))
    )
    return _coin(content, state, *fields)


def _moved(function: Any, args: Any, kwargs: Any) -> Any:
    """Applies a function that only moves elements to one marked array or a list of them."""
    first = args[0]
    if isinstance(first, Marked) and first.is_marked:
        if function.__name__ == "append" or any(
            isinstance(one, (Marked, MarkedNumber)) for one in args[1:]
        ):
            return None
        parts = function(first.view(np.ndarray), *args[1:], **kwargs)
        if isinstance(parts, list):
            count = range(len(parts))
            return [
                first._changed(lambda one, at=at: function(one, *args[1:], **kwargs)[at])
                for at in count
            ]
        return first._changed(lambda one: function(np.asarray(one), *args[1:], **kwargs))
    if isinstance(first, (list, tuple)):
        marks = [_uncurved(_array(one)) for one in first]
        if not all(isinstance(one, Marked) and one.is_marked for one in marks):
            return None
        if len({type(one) for one in marks}) != 1:
            return None
        return _joined(marks, lambda arrays: function(arrays, *args[1:], **kwargs))
    return None


def _fill(target: Any, key: Any, value: Any) -> bool:
    """Sets elements of a marked array to marked ones; returns whether that was followed."""
    value = _uncurved(_array(value))
    if isinstance(target, NoiseArray) and isinstance(value, NoiseArray):
        return _filled_noise(target, key, value)
    if target.is_blank and {type(target), type(value)} == {NoiseArray, AnswerArray}:
        value = _answering_alike(target, value)
    # where code fills an array step by step, an exact number may get its noise later
    kind = "zero" if target.is_blank else "operand"
    if (
        isinstance(target, AnswerArray)
        and not isinstance(value, Marked)
        and world.equal(kind, site(), plain(value))
    ):
        # a constant: an answer multiplied by 0
        target.factor = _with(target.factor, key, 0.0)
        target.offset = _with(target.offset, key, value)
        target.view(np.ndarray)[key] = value
        return True
    if type(value) is not type(target) or not isinstance(target, AnswerArray):
        return False
    for name in ("ids", "factor", "offset"):
        setattr(target, name, _with(getattr(target, name), key, getattr(value, name)))
    target.view(np.ndarray)[key] = value.view(np.ndarray)
    return True


def _with(array: Any, key: Any, value: Any) -> Any:
    """A copy with another value at some places."""
    changed = np.array(array)
    changed[key] = value
    return changed


def _answering_alike(target: Any, value: Any) -> Any:
    """Makes noise among answers an answer, whose value before noise is 0; returns the value."""
    if isinstance(value, NoiseArray):
        return _array(answer(np.zeros(value.shape), value.parts, site()))
    made = _array(answer(np.zeros(target.shape), target.parts, site()))
    target.view(np.ndarray)[...] = made.view(np.ndarray)
    target.__class__ = AnswerArray
    target.ids, target.factor, target.offset = made.ids, made.factor, made.offset
    return value


def _filled_noise(target: Any, key: Any, value: Any) -> bool:
    """Sets elements of noise to noise of one law and generator; returns whether it could."""
    if len(target.parts) != 1 or len(value.parts) != 1:
        return False
    [old], [new] = target.parts, value.parts
    if (old.law, old.seed) != (new.law, new.seed):
        return False
    fields = {name: _with(getattr(old, name), key, getattr(new, name)) for name in _ARRAYS}
    target.parts = (old._replace(**fields),)
    target.view(np.ndarray)[key] = value.view(np.ndarray)
    return True


class Blank(np.ndarray):
    """Zeros that code fills in place: a marked array as soon as one of them becomes noisy.

    Until then it is an array like any other.
    """

    is_written = False
    """Whether it has been filled with plain numbers."""

    def __setitem__(self, key: Any, value: Any) -> None:
        new = value = _uncurved(_array(value))
        is_marked = isinstance(new, (NoiseArray, AnswerArray)) and new.is_marked
        if not is_marked:
            self.is_written = True
        elif self.base is None and not self.is_written and world.hears and _marks(self, key, new):
            return
        if self.base is None:
            super().__setitem__(key, unmarked(value, site()) if world.hears else value)
        else:  # rows of zeros are plain: noise in them is found by its numbers
            self.view(np.ndarray)[key] = value

    def __array_wrap__(self, array: Any, *_: Any) -> Any:
        """A number where a plain array gives one."""
        return array if array.ndim else array[()]

    def __reduce__(self) -> Any:
        return self.view(np.ndarray).__reduce__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.view(np.ndarray).__reduce_ex__(protocol)


MOST_BLANK = 2000
"""Largest number of elements of a blank array: each time one is filled, all marks are copied."""


def _marks(blank: Any, key: Any, value: Any) -> bool:
    """Fills part of a blank array with noise or answers; returns whether it is marked now."""
    where, bare = site(), blank.view(np.ndarray)
    if isinstance(value, NoiseArray) and len(value.parts) != 1:
        return False
    if not world.are_zero(where, bare):
        return False
    none, zeros = np.full(bare.shape, -1), np.zeros(bare.shape)
    if isinstance(value, NoiseArray):
        ids, ones = world.noise_ids(bare.shape, value.parts[0].site), np.ones(bare.shape)
        world.settle(ids)  # no draw: these elements have no noise yet
        part = value.parts[0]._replace(ids=ids, factor=zeros, scale=ones, shape=ones, other=ones)
        blank.__class__ = NoiseArray
        blank.parts = (part,)
        followed = _filled_noise(blank, key, value)
        world.recent.append(blank)
    else:
        blank.__class__ = AnswerArray
        blank.ids, blank.factor, blank.offset = none, zeros, zeros
        followed = _fill(blank, key, value)
    blank.is_blank = True
    return followed


def _bare(value: Any) -> Any:
    """A value, or a list of values, without marks; this is no use of them."""
    if isinstance(value, MarkedNumber):
        return plain(value).item()
    if isinstance(value, Marked):
        return value.view(np.ndarray)
    if isinstance(value, (list, tuple)) and any(True for _ in _flattened(value)):
        return type(value)(_bare(one) for one in value)
    return value


def spent(
    values: Any,
    others: Any,
    found: Any,
    where: Site,
    *,
    linear: Optional[Callable[[Any], Any]] = None,
    are_bits: bool = False,
) -> Any:
    """Ends the marks of the arguments of a function that is not followed.

    Noise and coins count as used. Answers count as released, unless the function returns fewer
    numbers than it got answers, as a quantile does: perhaps only these numbers are used. The
    results of a linear function are new answers. The result of released answers and data is data.
    Noise or unreleased answers may protect the data that they meet here, in a way that is not
    followed.

    Args:
        values: The arguments of the function.
        others: Those of them without a mark.
        found: What it returned.
        where: The line of the call.
        linear: The function of the marked argument, if it is linear.
        are_bits: Whether only equality was tested, which reveals no number.

    Returns:
        What it returned; sums of answers or of noise have a mark.
    """
    marked = [one for one in map(_array, _flattened(values)) if one.is_marked]
    answers = [one for one in marked if isinstance(one, AnswerArray)]
    only = marked[0] if linear is not None and len(marked) == 1 else None
    operands = [one for one in others if _is_operand(one)]
    if isinstance(only, NoiseArray) and only.size <= MOST_DRAWS:
        if all(world.equal("spend", where, one) for one in operands):
            return noise_by(linear, only)
        operands = []
    kind, fewer = "spend", False
    if len(answers) == len(marked):
        hidden = [one for one in answers if not world.are_released(one.ids)]
        fewer = _is_number(found) and np.size(found) < sum(one.size for one in hidden)
        fewer = fewer or (bool(hidden) and are_bits)
        mixes = world.mixes(where, "function")
        fewer = fewer and not mixes
        kind = "reduce with" if fewer else "use with"
        if mixes:
            for one in answers:
                world.mix(one.ids, where, numbers=np.size(found) * one.size)
        if not hidden or mixes:
            operands = []
    are_equal = [world.equal(kind, where, one) for one in operands]
    few_factors = only is not None and only.size * np.size(found) <= _MOST_FACTORS
    if fewer and few_factors and all(are_equal):
        return _sums(only, linear, np.asarray(found), where)
    for one in marked:
        if fewer:
            world.reduce(one.ids, where)
        else:
            used(one, where)
    return found


def _is_operand(value: Any) -> bool:
    """Whether a value may be numbers that depend on the data."""
    if isinstance(value, (list, tuple)):
        return all(isinstance(one, (float, np.number)) or type(one) is int for one in value)
    is_number = isinstance(value, (np.ndarray, np.generic, float, int))
    return is_number and not isinstance(value, (bool, Marked, MarkedNumber))


_LINEAR = {
    *("average", "convolve", "cumsum", "diff", "dot", "einsum", "inner", "kron", "outer"),
    *("tensordot", "trace", "vdot"),
}
"""Functions of numpy that are linear in each of their arguments."""
MOST_DRAWS = 64
"""With more draws, linear functions of noise are not followed."""
_MOST_FACTORS = 20_000
"""With more factors, linear functions of answers are not followed."""


def _linear_in(function: Any, args: Any, kwargs: Any) -> Any:
    """The function of the only marked argument; None if there are several, or marked weights."""
    places = [at for at, one in enumerate(args) if isinstance(one, Marked) and one.is_marked]
    if len(places) != 1 or any(True for _ in _flattened(kwargs.values())):
        return None
    [place] = places
    before, after = [[_bare(one) for one in some] for some in (args[:place], args[place + 1 :])]
    return lambda values: function(*before, values, *after, **kwargs)


def noise_by(linear: Callable[[Any], Any], marked: Any) -> Any:
    """Applies a linear function to noise, in which each draw may then occur several times.

    Args:
        linear: The function of an array.
        marked: The noise, of at most some dozen draws.
    """
    found = np.asarray(linear(marked.view(np.ndarray)))
    columns = [(place, _column(linear, marked.shape, place)) for place in np.ndindex(marked.shape)]
    parts = tuple(
        part.mapped(
            lambda one, at=place: np.broadcast_to(np.asarray(one)[at], found.shape)
        )._replace(factor=part.factor[place] * column)
        for part in marked.parts
        for place, column in columns
    )
    return _shaped(_noise(found, parts))


def _column(linear: Callable[[Any], Any], shape: Any, place: Any) -> Any:
    """The value of a linear function for 1 at one place and 0 elsewhere."""
    unit = np.zeros(shape)
    unit[place] = 1.0
    return np.asarray(linear(unit), dtype=float)


def _sums(marked: Any, linear: Callable[[Any], Any], found: Any, where: Site) -> Any:
    """Applies a linear function to answers: the results are sums of them, which are new answers."""
    shape = found.shape
    offset = np.broadcast_to(linear(np.asarray(marked.offset, dtype=float)), shape)
    parents = [
        [
            np.broadcast_to(marked.ids[place], shape),
            marked.factor[place] * _column(linear, marked.shape, place),
        ]
        for place in np.ndindex(marked.shape)
        if marked.factor[place]
    ]
    return _made_of(found, parents, [], offset, where)


def _is_number(found: Any) -> bool:
    """Whether a result is a number or an array of numbers; booleans are none."""
    numeric = isinstance(found, (float, int, np.number, np.ndarray)) and not isinstance(found, bool)
    return numeric and np.asarray(found).dtype.kind in "fiuc"


def _flattened(values: Any) -> Any:
    for one in values:
        if isinstance(one, (list, tuple)):
            yield from _flattened(one)
        elif isinstance(one, (Marked, MarkedNumber)):
            yield one


# -- operations ----------------------------------------------------------------------------------


def operated(ufunc: Any, method: str, inputs: Any, kwargs: Any) -> Any:
    """The result of a numpy universal function when some inputs are marked."""
    where = site()
    inputs = tuple(_array(combined(one)) for one in inputs)
    marked = [one for one in inputs if isinstance(one, Marked) and one.is_marked]
    out = kwargs.get("out", (None,))[0]
    if not marked or not world.hears:
        return getattr(ufunc, method)(*map(_bare, inputs), **_bare_out(kwargs))
    name = ufunc.__name__
    if any(isinstance(one, (CoinArray, CurveArray)) for one in marked):
        found = _bent(ufunc, method, inputs, kwargs)
        if found is not NotImplemented:
            return found
        inputs = tuple(map(_uncurved if name in ("add", "subtract", "matmul") else _read, inputs))
        if not any(isinstance(one, Marked) and one.is_marked for one in inputs):
            return getattr(ufunc, method)(*map(_bare, inputs), **_bare_out(kwargs))
    if method == "__call__" and len(inputs) <= 2 and (not kwargs or set(kwargs) <= {"out"}):
        found = _followed(name, inputs, out, where)
        if found is not NotImplemented:
            return found
    if (
        method == "reduce"
        and name == "add"
        and set(kwargs) <= {"axis", "keepdims", "dtype", "out"}
        and out is None
    ):
        found = _summed(
            inputs[0], kwargs.get("axis", 0), bool(kwargs.get("keepdims", False)), where
        )
        if found is not NotImplemented:
            return found
    found = getattr(ufunc, method)(*map(_bare, inputs), **_bare_out(kwargs))
    is_plain = method == "reduce" and set(kwargs) <= {"axis", "keepdims", "dtype"}
    if is_plain and extreme(inputs[0], name, found, where, axis=kwargs.get("axis", 0)):
        return found
    others = [one for one in inputs if not isinstance(one, Marked)]
    linear = _linear_in(ufunc, inputs, kwargs) if name == "matmul" and out is None else None
    are_bits = name in ("equal", "not_equal")
    return spent(inputs, others, found, where, linear=linear, are_bits=are_bits)


def _bare_out(kwargs: Any) -> Any:
    return {**kwargs, "out": tuple(map(_bare, kwargs["out"]))} if "out" in kwargs else kwargs


def _followed(name: str, inputs: Any, out: Any, where: Site) -> Any:
    if name in ("negative", "positive"):
        return _scaled(inputs[0], _unit(inputs[0], -1 if name == "negative" else 1), where, out)
    if len(inputs) != 2:
        return NotImplemented
    first, second = inputs
    if name in ("add", "subtract"):
        if name == "subtract":
            is_marked = isinstance(second, Marked)
            negative = (
                _scaled(second, _unit(second, -1), where) if is_marked else -np.asarray(second)
            )
            second = _array(negative)
        if not isinstance(first, Marked) and not isinstance(second, Marked):
            return np.add(first, second, out=None if out is None else plain(out))
        return _added(first, second, out, where)
    both = isinstance(first, Marked) and isinstance(second, Marked)
    if name in ("divide", "true_divide") and both:
        return divided(first, second, out, where)
    if name in ("multiply", "divide", "true_divide") and not both:
        if isinstance(first, Marked):
            factor = (
                plain(second)
                if name == "multiply"
                else 1.0 / np.asarray(plain(second), dtype=float)
            )
            return _scaled(first, factor, where, out)
        if name == "multiply":
            return _scaled(second, plain(first), where, out)
    if name in _COMPARED and out is None:
        if _is_whole(second) and not isinstance(first, Marked):
            first, second, name = second, first, _MIRRORED_NAMES[name]
        if _is_whole(first) and not isinstance(second, Marked):
            return tossed(first, *_whole_limit(second, name), where)
        return _compared(first, second, name, where)
    return NotImplemented


def _unit(marked: Any, sign: int) -> Any:
    """1 or -1 as a factor that leaves whole numbers whole."""
    return sign if marked.dtype.kind == "i" else float(sign)


def divided(first: Any, second: Any, out: Any, where: Site) -> Any:
    """Divides answers by answers; the ratios count as released and have no mark.

    The answers are not released: ratios determine them only up to a common factor.
    """
    sides = (first, second)
    if not all(isinstance(one, AnswerArray) and one.is_marked for one in sides):
        return NotImplemented
    if any(world.are_released(one.ids) or np.any(one.ids < 0) for one in sides):
        return NotImplemented
    content = np.asarray(np.true_divide(plain(first), plain(second)))
    spread = [_spread(one, content.shape) for one in sides]
    world.note(
        "divide",
        where,
        *(value for one in spread for value in (one.factor, one.offset)),
        ids=np.concatenate([np.ravel(one.ids) for one in spread]),
        sides=[[one.ids, one.factor, one.offset] for one in spread],
    )
    return _plainly(content, out)


def _is_whole(value: Any) -> bool:
    return isinstance(value, CoinArray) and value.dtype.kind in "iu"


def _scaled(marked: Any, factor: Any, where: Site, out: Any = None) -> Any:
    content = np.asarray(np.multiply(marked.view(np.ndarray), factor))
    shape = content.shape
    if content.dtype.kind not in "fiub" or not np.isfinite(factor).all():
        return NotImplemented
    content = _into(out, content)
    spread = _spread(marked, shape)
    if isinstance(spread, NoiseArray):
        parts = tuple(part._replace(factor=part.factor * factor) for part in spread.parts)
        return _shaped(_noise(content, parts))
    if isinstance(spread, AnswerArray):
        if np.ndim(factor) == 0 and factor == -1.0:  # usually a difference: no factor from the data
            return _answer(content, spread.ids, -spread.factor, -spread.offset)
        if world.mixes(where, "factor"):
            world.mix(marked.ids, where, numbers=content.size)
            return _plainly(content)
        return _rescaled(spread, factor, content, where)
    return _shaped(_coin(content, spread.state, spread.factor * factor, spread.offset * factor))


def _rescaled(spread: Any, factor: Any, content: Any, where: Site) -> Any:
    """Multiplies answers; the products are new answers if the factor differs between worlds."""
    if where[:2] not in world.asked:
        world.note("rescale", where, factor)
        if world.are_released(spread.ids):
            return content[()]
        return _answer(content, spread.ids, spread.factor * factor, spread.offset * factor)
    shape = content.shape
    reply = world.ask(
        "rescale",
        where,
        ids=spread.ids,
        factor=spread.factor,
        offset=spread.offset,
        by=np.broadcast_to(np.asarray(factor, dtype=float), shape),
        first=world.next_answer,
    )
    if reply.get("known"):
        return _plainly(content)
    if reply["equal"]:
        return _answer(content, spread.ids, spread.factor * factor, spread.offset * factor)
    content[...] = np.asarray(reply["value"]).reshape(shape)
    return _new_answer(content)


def _spread(marked: Any, shape: Any) -> Any:
    """Broadcasts a marked array; the array itself if the shape stays, since coins are writable."""
    return (
        marked
        if marked.shape == shape
        else _array(marked._changed(lambda one: np.broadcast_to(one, shape)))
    )


def _shaped(result: Any) -> Any:
    """The result, as a number where numpy would return one."""
    return result if result.ndim else _number(result)


def _added(first: Any, second: Any, out: Any, where: Site) -> Any:
    kinds = (type(first), type(second))
    if CoinArray in kinds:
        coin_, other = (first, second) if isinstance(first, CoinArray) else (second, first)
        if isinstance(other, Marked):
            return NotImplemented
        content = np.add(plain(coin_), plain(other))
        spread = _spread(coin_, content.shape)
        offset = spread.offset + plain(other)
        return _shaped(_coin(content, spread.state, spread.factor, offset))
    if isinstance(first, NoiseArray) and isinstance(second, NoiseArray):
        shape = np.broadcast_shapes(first.shape, second.shape)
        parts = tuple(
            part.mapped(lambda one: np.broadcast_to(one, shape))
            for part in (*first.parts, *second.parts)
        )
        return _shaped(_noise(np.add(plain(first), plain(second)), parts))
    if isinstance(first, AnswerArray) or isinstance(second, AnswerArray):
        known, other = (first, second) if isinstance(first, AnswerArray) else (second, first)
        if isinstance(other, Marked):
            return _derived(known, other, out, where)
        return _shifted(known, other, out, where)
    noise_, data = (first, second) if isinstance(first, NoiseArray) else (second, first)
    # `sum` of noise shares begins with 0 + noise, and a count may be 0
    if type(data) in (int, float) and not is_operator() and world.are_zero(where, data):
        return _shaped(noise_)
    data = plain(data)
    if data.dtype.kind not in "fiub":
        return NotImplemented
    return answer(data, noise_.parts, where, out=out)


def _shifted(known: Any, other: Any, out: Any, where: Site, *, use: str = "sum") -> Any:
    """An answer plus a value: a shift if the value is equal in both worlds, else a new answer.

    `use` is "sum" or "comparison".
    """
    other = plain(other)
    content = np.asarray(np.add(plain(known), other))
    shape = content.shape
    spread = _spread(known, shape)
    ids, factor, offset = spread.ids, spread.factor, spread.offset + other
    # one draw of noise cannot protect many values that it is compared with
    mixes = use == "sum" or ids.size >= SEVERAL * len(np.unique(ids))
    if mixes and world.mixes(where, use):
        world.mix(known.ids, where, numbers=content.size)
        return _plainly(content, out)
    if where[:2] in world.asked:
        reply = world.ask(
            "shift",
            where,
            use=use,
            mixes=mixes,
            ids=ids,
            factor=spread.factor,
            offset=spread.offset,
            other=np.broadcast_to(other, shape).astype(float),
            first=world.next_answer,
        )
        if reply.get("known"):
            return _plainly(content, out)
        if not reply["equal"]:
            content = np.asarray(reply["value"]).reshape(shape).astype(content.dtype)
            ids, factor, offset = world.answer_ids(shape), np.ones(shape), np.zeros(shape)
    else:
        world.note("shift", where, other)
    content = _into(out, content)
    if where[:2] not in world.asked and world.are_released(ids):
        return content if out is not None else content[()]
    return _answer(content, ids, factor, offset)


def _plainly(content: Any, out: Any = None) -> Any:
    """The result of data and released answers: it is data, without a mark."""
    if out is None:
        return content[()]
    plain(out)[...] = content
    if isinstance(out, Marked):
        out._forget()
    return out


def _derived(known: Any, other: Any, out: Any, where: Site) -> Any:
    """Adds another answer, or more noise, to an answer: the sum is one new answer."""
    shape = np.broadcast_shapes(known.shape, other.shape)
    content = np.add(plain(known), plain(other))
    parents, offset = [], np.zeros(shape)
    fresh: List[Dict[str, Any]] = []
    for one in (known, other):
        spread = _array(one._changed(lambda array: np.broadcast_to(array, shape)))
        if isinstance(spread, AnswerArray):
            parents.append([spread.ids, spread.factor])
            offset = offset + spread.offset
        else:
            for part in spread.parts:
                world.use_noise(part.ids, where, "sum")
                fresh.append(part.message())
    return _made_of(_into(out, content), parents, fresh, offset, where)


def _made_of(content: Any, parents: Any, fresh: Any, offset: Any, where: Site) -> Any:
    """New answers that are sums of others."""
    ids = world.answer_ids(content.shape)
    world.note(
        "derive", where, offset, ids=ids, parents=parents, noise=fresh, offset=offset, value=content
    )
    return _answer(content, ids, np.ones(content.shape), np.zeros(content.shape))


def _summed(marked: Any, axis: Any, keepdims: bool, where: Site) -> Any:
    if not isinstance(marked, (NoiseArray, AnswerArray)) or not (
        axis is None or isinstance(axis, int)
    ):
        return NotImplemented
    if axis is None:
        flat = marked._changed(np.ravel)
    else:
        flat = marked._changed(lambda one: np.moveaxis(one, axis, 0))
    if not len(flat) or len(flat) > 10_000:
        return NotImplemented
    content = np.add.reduce(marked.view(np.ndarray), axis=axis, keepdims=keepdims)
    if isinstance(marked, NoiseArray):
        if len(flat) > 64:
            return NotImplemented
        parts = tuple(
            part.mapped(lambda one, at=at: np.asarray(one)[at].reshape(np.shape(content)))
            for part in flat.parts
            for at in range(len(flat))
        )
        return _shaped(_noise(np.asarray(content), parts))
    shape = np.shape(content)
    parents = [
        [flat.ids[at].reshape(shape), flat.factor[at].reshape(shape)] for at in range(len(flat))
    ]
    offset = np.sum(flat.offset, axis=0).reshape(shape)
    return _made_of(np.asarray(content), parents, [], offset, where)


# -- functions of uniform draws ------------------------------------------------------------------

DRAWS = (CoinArray, CurveArray, DrawNumber)
"""Uniform draws, and functions of them."""
_MOST_CURVED = 20_000
"""Largest number of elements of a function of uniform draws."""
_AFFINE = {"add", "subtract", "multiply", "negative", "positive"}


def _bent(ufunc: Any, method: str, inputs: Any, kwargs: Any) -> Any:
    """A function of uniform draws; `NotImplemented` if it is followed in another way, or not."""
    if method != "__call__" or kwargs or ufunc.nout != 1 or len(inputs) > 2:
        return NotImplemented
    name, marked = ufunc.__name__, [one for one in inputs if isinstance(one, Marked)]
    if not all(isinstance(one, (CoinArray, CurveArray)) and one.is_marked for one in marked):
        return NotImplemented
    by_number = name in ("divide", "true_divide") and inputs[1] is not marked[0]
    if len(marked) == 1 and isinstance(marked[0], CoinArray) and (name in _AFFINE or by_number):
        return NotImplemented
    sides = [_as_curve(one) if isinstance(one, Marked) else one for one in inputs]
    if any(one is None for one in sides):
        return NotImplemented
    if name in ("add", "subtract") and _are_noise(sides):
        return NotImplemented
    others = [np.asarray(one) for one in sides if not isinstance(one, Marked)]
    if any(one.dtype.kind not in "fiub" for one in others):
        return NotImplemented
    with np.errstate(all="ignore"):
        content = np.asarray(ufunc(*map(_bare, inputs)))
        grid = ufunc(
            *(one.grid if isinstance(one, Marked) else np.asarray(one)[..., None] for one in sides)
        )
    sources = _sources(sides, content.shape)
    if content.dtype != np.float64 or sources is None or content.size > _MOST_CURVED:
        return NotImplemented
    grid = np.broadcast_to(grid, (*content.shape, curves.POINTS))
    return _shaped(_curve(content, grid, sources))


def bent_by(function: Callable[[Any], Any], value: Any) -> Any:
    """Applies a function, element by element, to uniform draws or a function of them.

    Args:
        function: Of an array.
        value: The draws.

    Returns:
        The result; without a mark if it is not followed.
    """
    curve = _as_curve(_array(value))
    if curve is None:
        return function(unmarked(value, site()))
    content, grid = np.asarray(function(plain(curve))), np.asarray(function(curve.grid))
    return _shaped(_curve(content, grid, curve.sources))


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
    both = [one for one in sides if isinstance(one, Marked)]
    names = [source.name for one in both for source in one.sources]
    return len(set(names)) == len(names) and all(_law_of(one) is not None for one in both)


def _sources(sides: Any, shape: Any) -> Any:
    """The draws that a result depends on, one or two for each element; None if there are more."""
    found: Dict[Any, CurveSource] = {}
    for one in sides:
        for source in one.sources if isinstance(one, Marked) else ():
            places = np.broadcast_to(source.places, shape)
            known = found.setdefault(source.name, source._replace(places=places))
            if not np.array_equal(known.places, places):
                return None
    return tuple(found.values()) if len(found) <= 2 else None


def _law_of(curve: Any) -> Any:
    """The law of a function of draws, each of which occurs once; None if it has no known law."""
    places = curve.sources[0].places
    for one in curve.sources:
        if not _are_whole(one.state) or not np.array_equal(one.places, places):
            return None
    if len(np.unique(places)) < places.size:
        return None
    return curve.law


def _uncurved(value: Any) -> Any:
    """A function of uniform draws as noise if it has a known law, and else without a mark.

    The same function of the same draws is the same noise. Another one of them is not followed.
    """
    if isinstance(value, MarkedNumber):
        return value if not isinstance(value.array, CurveArray) else _uncurved(value.array)
    if not isinstance(value, CurveArray) or not value.is_marked or not world.hears:
        return value
    known, content = _law_of(value), value.view(np.ndarray)
    if known is None:
        return _read(value)
    names = tuple(one.name for one in value.sources)
    form = (names, known.form)
    uses = [world.curved.setdefault(one.name, (form, one.state)) for one in value.sources]
    if any(use[0] != form for use in uses):
        return _read(value)
    where, places = site(), value.sources[0].places
    size = value.sources[0].state.value.size
    ids = world.curve_ids.setdefault((form, known.turn), np.full(size, -1))
    new = places[ids[places] < 0]
    ids[new] = world.noise_ids(new.shape, where)
    ones = np.ones(content.shape)
    sign, scale = np.sign(known.factor) * ones, np.abs(known.factor) * ones
    part = NoisePart(known.law, ids[places], sign, scale, ones, ones, None, where)
    return _noise(content, (part,))


def _read(value: Any) -> Any:
    """A function of uniform draws as numbers, on which anything may depend from here on."""
    if not isinstance(value, CurveArray):
        return value
    used(value, site())
    return value.view(np.ndarray)


# -- selections ----------------------------------------------------------------------------------


def selected(marked: Any, which: str, axis: Any, where: Site) -> Any:
    """The place of the largest or smallest; for answers along one axis, a selection."""
    bare = marked.view(np.ndarray)
    found = np.argmax(bare, axis=axis) if which == "max" else np.argmin(bare, axis=axis)
    if not isinstance(marked, AnswerArray) or not marked.is_marked or not world.hears:
        used(marked, where)
        return found
    _note_largest("largest", marked, which, axis, where)
    return found


def _note_largest(kind: str, marked: Any, which: str, axis: Any, where: Site) -> None:
    """Notes a selection of the largest or smallest answer along an axis."""
    sign = 1.0 if which == "max" else -1.0
    rows = np.moveaxis(
        marked.reshape(1, -1) if axis is None else marked, -1 if axis is None else axis, -1
    )
    rows = rows.reshape(-1, rows.shape[-1])
    for row in rows:
        world.note(
            kind,
            where,
            row.offset,
            ids=row.ids,
            factor=sign * row.factor,
            offset=sign * row.offset,
            place=int(np.argmax(sign * row.view(np.ndarray))),
        )


def extreme(marked: Any, name: str, found: Any, where: Site, *, axis: Any = None) -> bool:
    """Notes that the largest or smallest of answers is released; returns whether it is followed.

    Args:
        marked: The answers.
        name: The function.
        found: What it returned: a value without a mark.
        where: The line of the call.
        axis: The axis along which it is taken.
    """
    which = _EXTREMES.get(name)
    followed = (
        which is not None
        and isinstance(marked, AnswerArray)
        and marked.is_marked
        and world.hears
        and (axis is None or isinstance(axis, int))
        and np.size(found) < marked.size
        and not np.any(marked.ids < 0)
        and not world.are_released(marked.ids)
        and not world.mixes(where, "function")
    )
    if followed:
        _note_largest("value", marked, str(which), axis, where)
    return followed


_EXTREMES = {
    **dict.fromkeys(("max", "amax", "maximum"), "max"),
    **dict.fromkeys(("min", "amin", "minimum"), "min"),
}


def ordered(marked: Any, where: Site) -> Any:
    """The order of answers, smallest first: one selection per place."""
    order = np.argsort(marked.view(np.ndarray))
    world.note(
        "ordered",
        where,
        marked.offset,
        ids=marked.ids,
        factor=marked.factor,
        offset=marked.offset,
        order=order,
    )
    return order


def _compared(first: Any, second: Any, name: str, where: Site) -> Any:
    """A comparison, named as numpy does, of which at least one side is marked."""
    if not isinstance(first, Marked):
        first, second, name = second, first, _MIRRORED_NAMES[name]
    sign, compare = _COMPARED[name], getattr(np, name)
    if isinstance(first, NoiseArray) or isinstance(second, NoiseArray):
        return NotImplemented
    if isinstance(first, CoinArray):
        if isinstance(second, Marked):
            return NotImplemented
        return tossed(first, plain(second), sign, where)
    if isinstance(second, CoinArray):
        return NotImplemented
    shape = np.broadcast_shapes(first.shape, np.shape(second))
    if not isinstance(second, Marked) and where[:2] in world.asked:
        # a limit that depends on the data is part of the value before noise
        moved = -np.asarray(plain(second), dtype=float)
        first = _array(_shifted(first, moved, None, where, use="comparison"))
        second = np.zeros(())
        if not isinstance(first, Marked):
            return compare(first, second)
    bare = compare(plain(first), plain(second))
    sides: List[Any] = []
    for one in (first, second):
        if isinstance(one, Marked):
            spread = _spread(one, shape)
            sides.append([spread.ids, spread.factor, spread.offset])
        else:
            value = np.broadcast_to(plain(one), shape).astype(float)
            if not world.equal("operand", where, value):
                return NotImplemented
            sides.append([None, None, value])
    # the outcome is equal in both worlds, as are the answers and what they are compared with
    world.note(
        "compare", where, bare, sides=sides, sign=sign, outcome=np.asarray(bare, dtype=np.uint8)
    )
    return bare


def tossed(marked: Any, bound: Any, sign: str, where: Site) -> Any:
    """Compares a coin with a value, which shrinks the coin's interval."""
    shape = np.broadcast_shapes(marked.shape, bound.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        limit = np.broadcast_to((bound - marked.offset) / marked.factor, shape).astype(float)
    flipped = np.broadcast_to(np.asarray(marked.factor) < 0, shape)
    below = np.full(shape, sign == "<") ^ flipped  # whether "true" means u < limit
    state = marked.state
    _note_read(state)
    if world.kept is not None and np.any(state.record):
        return _sampled(marked, limit, below, where)
    if where[:2] in world.asked and marked.size == 1 and limit.size > 1:
        order = np.argsort(limit, axis=None, kind="stable")
        if world.equal("spend", where, order):
            under = _between(state, limit, where)
            return np.where(below, under, ~under)
        world.tell(
            "unfollowed", where, "one coin compared with limits whose order depends on the data"
        )
    if where[:2] in world.asked:
        low, high = (np.broadcast_to(one, shape) for one in (state.low, state.high))
        value = np.broadcast_to(state.value, shape)
        name = state.low.__array_interface__["data"][0]
        reply = world.ask("coin", where, low=low, high=high, limit=limit, value=value, name=name)
        under = np.asarray(reply["under"], dtype=bool).reshape(shape)
        if shape == marked.shape and state.low.flags.writeable:
            share = (value - low) / (high - low)  # position in the interval, equal in both worlds
            inside = np.clip(limit, low, high)
            # the lower part of the interval is [low, inside), the upper one [inside, high)
            new_low, new_high = np.where(under, low, inside), np.where(under, inside, high)
            state.low[...], state.high[...] = new_low, new_high
            state.value[...] = new_low + share * (new_high - new_low)
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            own = (
                np.unique((bound - np.unique(marked.offset)) / np.unique(marked.factor))
                if (
                    marked.size
                    and np.ptp(marked.offset) == 0
                    and np.ptp(marked.factor) == 0
                    and bound.ndim == 0
                )
                else limit
            )
        world.note("coin", where, own)
        under = np.broadcast_to(state.value, shape) < limit
        if world.opposite:
            under = under ^ ((limit > 0) & (limit < 1))
    outcome = np.where(below, under, ~under)
    return outcome if outcome.ndim else np.bool_(outcome)


def _sampled(marked: Any, limit: Any, below: Any, where: Site) -> Any:
    """Compares coins of the records: the coordinator decides the target's own coin."""
    state = marked.state
    own = np.broadcast_to(state.record == 2, limit.shape)
    if not own.all():
        world.note("sampled", where, limit[~own], below[~own])
    if own.any():
        single = own.sum() <= len(world.own_rows)  # otherwise several coins of one record
        if single and marked.shape == limit.shape and state.low.flags.writeable:
            for place in zip(*np.nonzero(own)) if own.ndim else [()]:
                _decide(state, place, limit, below, where)
        else:
            world.tell(
                "unfollowed", where, "several coins of the record, or one coin with several views"
            )
    under = np.broadcast_to(state.value, limit.shape) < limit
    outcome = np.where(below, under, ~under)
    return outcome if outcome.ndim else np.bool_(outcome)


def _decide(state: CoinState, place: Any, limit: Any, below: Any, where: Site) -> None:
    """Decides on which side of its limit the target's coin falls, if both are possible."""
    low, high, value = (float(one[place]) for one in state[:3])
    inside = min(max(float(limit[place]), low), high)
    share = (inside - low) / (high - low)
    if not 0.0 < share < 1.0:
        return
    true_below = bool(below[place])
    chance = share if true_below == world.kept else 1.0 - share
    under = (world.toss(where, chance) == world.kept) == true_below
    new_low, new_high = (low, inside) if under else (inside, high)
    state.low[place], state.high[place] = new_low, new_high
    state.value[place] = new_low + (value - low) / (high - low) * (new_high - new_low)


def _between(state: CoinState, limit: Any, where: Site) -> Any:
    """Finds the two of several limits between which a coin lies."""
    low, high, value = (float(one.reshape(())) for one in state[:3])
    edges = np.concatenate([[low], np.sort(np.clip(limit, low, high), axis=None), [high]])
    place = int(chosen(np.diff(edges), (), where))
    inside = edges[place] + (value - low) / (high - low) * (edges[place + 1] - edges[place])
    if state.low.flags.writeable:
        state.low[...], state.high[...], state.value[...] = edges[place], edges[place + 1], inside
    return np.clip(limit, low, high) >= edges[place + 1]


def inverted(cdf: Any, marked: Any, where: Site, *, side: str) -> Any:
    """Looks up a coin in a table of cumulative weights."""
    weights = np.diff(np.concatenate([[0.0], np.asarray(cdf, dtype=float)]))
    _note_read(marked.state)
    total = marked.factor + marked.offset
    exact = bool(np.all(marked.offset == 0)) and bool(np.allclose(total, cdf[-1]))
    if where[:2] in world.asked and exact:
        return chosen(weights, marked.shape, where)
    world.note("choose", where, weights)
    return np.searchsorted(cdf, marked.view(np.ndarray), side=side)


def picked(weights: Any, count: int, where: Site) -> Any:
    """Distinct places drawn one after another, requested from the coordinator."""
    weights = np.asarray(weights, dtype=float)
    if np.count_nonzero(weights) < count:
        raise ValueError("Fewer non-zero entries in p than size")  # as numpy
    return np.asarray(world.ask("pick", where, weights=weights, count=count)["places"])


def chosen(weights: Any, shape: Any, where: Site) -> Any:
    """Places drawn with known probabilities, requested from the coordinator."""
    weights = np.asarray(weights, dtype=float)
    reply = world.ask("choose", where, weights=weights, count=int(np.prod(shape, dtype=int)))
    return np.asarray(reply["places"]).reshape(shape)
