"""Arrays and numbers with a mark, and how numpy's functions treat them.

There are four kinds: `noise.NoiseArray`, a linear combination of draws without data;
`scores.ScoreArray`, noisy answers that were only selected from so far; `coins.CoinArray`, uniform
draws until they are compared; and `coins.CurveArray`, other functions of these. Each kind follows
some operations. All others end the mark, and their result is plain. A `MarkedNumber` is one
float: it behaves as an array without dimensions.
"""

from __future__ import annotations

import operator
import sys
import weakref
from functools import wraps
from typing import Any, Callable, ClassVar, List, NamedTuple, Set, Tuple

import numpy as np

from .channel import Site, site
from .world import ListeningWorld

world: ListeningWorld = None  # type: ignore[assignment]
"""Set by `hooks.install`."""

LIBRARIES = frozenset(
    (
        *("dpaudit", "jax", "joblib", "matplotlib", "numba", "numpy", "opacus", "pandas", "scipy"),
        *("sklearn", "statsmodels", "tensorflow", "torch", __name__.partition(".")[0]),
    )
)
"""Libraries whose own arrays carry no marks."""
_STRUCTURAL = frozenset(
    (
        *("concatenate", "stack", "hstack", "vstack", "column_stack", "reshape", "ravel"),
        *("transpose", "squeeze", "expand_dims", "broadcast_to", "flip", "roll", "swapaxes"),
        *("moveaxis", "take", "atleast_1d", "atleast_2d", "append", "delete", "split"),
        *("array_split", "tile", "repeat"),
    )
)
_HARMLESS = frozenset(
    (
        *("shape", "ndim", "size", "result_type", "may_share_memory", "can_cast", "iscomplexobj"),
        *("isnan", "isfinite", "isinf"),
    )
)
"""Functions whose results say nothing about a number."""
MIRRORED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}
"""Comparisons, and what they are when their sides are exchanged."""
_OWN_METHODS = {
    **{name: name for name in ("argmax", "argmin", "argsort", "argpartition", "sum", "mean")},
    "nanargmax": "argmax",
    "nanargmin": "argmin",
}
"""Functions for which marked arrays have methods."""


class MarkedCall(NamedTuple):
    """A call of a numpy function, or of a universal function's method.

    Attributes:
        name: The function's.
        method: "__call__", "reduce", ... of a universal function; "function" of another one.
        inputs: Its arguments.
        kwargs: Its other arguments.
        where: The line of the call.
        function: What is called.
    """

    name: str
    method: str
    inputs: Tuple[Any, ...]
    kwargs: Any
    where: Site
    function: Callable[..., Any]

    @property
    def out(self) -> Any:
        """The array for the result; None if there is none."""
        return self.kwargs.get("out", (None,))[0] if self.method != "function" else None

    def is_of(self, *names: str) -> bool:
        """Whether a universal function with one of these names is called, on two values or one."""
        return self.method == "__call__" and self.name in names and set(self.kwargs) <= {"out"}


def affine_of(call: MarkedCall, marked: Any) -> Any:
    """The factor and the offset that a call gives a marked array, the others being plain numbers.

    None if it does something else, or a factor is not finite.
    """
    if call.is_of("negative", "positive"):
        return (-1.0 if call.name == "negative" else 1.0), 0.0
    if len(call.inputs) != 2:
        return None
    is_first = call.inputs[0] is marked
    other = plain_array(call.inputs[1] if is_first else call.inputs[0])
    if other.dtype.kind not in "fiub":
        return None
    other = other.astype(float)
    if call.is_of("add"):
        return 1.0, other
    if call.is_of("subtract"):
        return (1.0, -other) if is_first else (-1.0, other)
    factor = None
    if call.is_of("multiply"):
        factor = other
    elif call.is_of("divide", "true_divide") and is_first:
        with np.errstate(all="ignore"):
            factor = 1.0 / other
    return None if factor is None or not np.isfinite(factor).all() else (factor, 0.0)


followers: List[Callable[[MarkedCall], Any]] = []
"""Functions that follow calls with marked inputs, or return `NotImplemented`, one of each kind."""
MOST_BLANK = 2000
"""Largest number of elements of a blank array: each time one is filled, all marks are copied."""
_kinds: Set[type] = set()
"""All classes of marked values."""


def plain_array(value: Any) -> Any:
    """A value as an array without its mark, which does not count as a use of it."""
    if isinstance(value, Marked):
        return value.view(np.ndarray)
    if isinstance(value, MarkedNumber):
        return value.array.view(np.ndarray).reshape(())
    return np.asarray(value)


def without_marks(value: Any) -> Any:
    """A value, or a list of values, without marks, which does not count as a use of them."""
    if isinstance(value, MarkedNumber):
        return plain_array(value).item()
    if isinstance(value, Marked):
        return value.view(np.ndarray)
    if isinstance(value, (list, tuple)) and any(True for _ in _marked_arrays(value)):
        return _sequence_like(value)(without_marks(part) for part in value)
    return value


def _sequence_like(value: Any) -> Any:
    """A list or a tuple, as which classes of these, such as named tuples, are made again."""
    return list if isinstance(value, list) else tuple


def end_marks(value: Any, why: str = "a function") -> Any:
    """A value, or a list of values, whose marks end here."""
    if isinstance(value, (MarkedNumber, Marked)):
        array_of(value).end(why)
        return plain_array(value).item() if isinstance(value, MarkedNumber) else plain_array(value)
    if isinstance(value, (list, tuple)) and any(True for _ in _marked_arrays(value)):
        return _sequence_like(value)(end_marks(part, why) for part in value)
    return value


def array_of(value: Any) -> Any:
    """The array of a marked number; any other value as it is."""
    return value.array if isinstance(value, MarkedNumber) else value


def number_of(marked: Any) -> Any:
    """An array without dimensions as a number, with its mark; any other value as it is."""
    if not isinstance(marked, Marked) or marked.ndim:
        return marked
    content = marked.view(np.ndarray)[()]
    if not marked.is_marked:
        return content
    number = marked.number(content)
    number.array = marked
    return number


def is_marked(value: Any, kind: Any = None) -> bool:
    """Whether a value is an array, of this kind if one is given, that still carries its mark."""
    return isinstance(value, kind or Marked) and value.is_marked


def is_bare(value: Any) -> bool:
    """Whether a value neither carries a mark nor has parts that may: the most frequent case."""
    kind = type(value)
    return kind is not list and kind is not tuple and kind not in _kinds


def combine(values: Any) -> Any:
    """Joins a list of marked numbers or arrays, perhaps nested, into one marked array if it can."""
    if type(values) not in (list, tuple) or (_kinds | {list, tuple}).isdisjoint(map(type, values)):
        return values
    items = [array_of(combine(value)) for value in values]
    if len({np.shape(item) for item in items}) != 1:
        return values
    joined = _join(items, np.stack)
    return values if joined is None else joined


def _join(items: List[Any], join: Callable[[List[Any]], Any]) -> Any:
    """Arrays as one array, which is marked; None if no kind joins them."""
    items = [item.as_noise() if isinstance(item, Marked) else item for item in items]
    for kind in sorted(
        {type(item) for item in items if is_marked(item)}, key=lambda kind: kind.rank
    ):
        return kind.join_arrays(items, join)
    return None


def as_count(value: Any) -> Any:
    """A marked integer as a plain one, for code that asks how many; its mark ends."""
    whole = isinstance(value, MarkedNumber) and value.array.dtype.kind in "iu"
    return operator.index(value) if whole else value


def with_plain_arguments(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose arguments lose their marks, in slices, lists and dicts as well."""

    @wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        more = {name: _plain_argument(value) for name, value in kwargs.items()}
        return function(*map(_plain_argument, args), **more)

    return wrapper


def _plain_argument(value: Any) -> Any:
    kind = type(value)
    if kind in (list, tuple):
        return value if _kinds.isdisjoint(map(type, value)) else kind(map(_plain_argument, value))
    if kind is dict:
        return {key: _plain_argument(part) for key, part in value.items()}
    if kind is slice:
        return slice(*map(as_count, (value.start, value.stop, value.step)))
    return as_count(value) if getattr(kind, "keeps_noise", True) else end_marks(value)


def is_in_library() -> bool:
    """Whether the caller is a library whose arrays carry no marks."""
    frame: Any = sys._getframe(1)
    own = __name__.partition(".")[0]
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == own:
        frame = frame.f_back
    if frame is None or package_of(frame) in LIBRARIES:
        return frame is not None
    return frame.f_back is not None and package_of(frame.f_back) == "pandas"  # as in `map`


def package_of(frame: Any) -> str:
    """The top-level package of a frame."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


class Marked(np.ndarray):
    """Base class of marked arrays: their interface to numpy.

    Attributes:
        rank: Its place in the order of kinds: a list of several kinds becomes the first of them.
        number: The class of its numbers.
        keeps_noise: Whether it is made of noise or coins, and of no data.
        has_mark: Whether it still carries its mark, unless other numbers were written to it.
        seen: Its numbers when it was marked.
        part_of: The array that it is a part of, which has the same memory, and its place there.
    """

    rank = 0
    number: Any = None
    keeps_noise = True
    has_mark = False
    seen: Any = None
    part_of: Any = None

    @property
    def is_marked(self) -> bool:
        """Whether it still carries its mark."""
        self.check()
        return self.has_mark

    def check(self) -> None:
        """Ends the mark if its memory was written to through another array."""
        if self.has_mark and world.hears and not np.array_equal(self.view(np.ndarray), self.seen):
            self.end("an array in the same memory")
            self.forget()

    def __init_subclass__(cls) -> None:
        _kinds.add(cls)

    @classmethod
    def join_arrays(cls, items: List[Any], join: Callable[[List[Any]], Any]) -> Any:
        """Arrays, some of which are of this kind, as one; None if it cannot be marked."""
        raise NotImplementedError

    def map_fields(self, change: Callable[[Any], Any]) -> Any:
        """The array with its elements moved, and their marks."""
        raise NotImplementedError

    def end(self, why: str) -> None:
        """Ends the mark, because a function uses the numbers."""
        raise NotImplementedError

    def forget(self) -> None:
        """Removes the mark, because other numbers are written here."""
        raise NotImplementedError

    def with_content(self, content: Any) -> Any:
        """The mark with the same numbers of another type."""
        raise NotImplementedError

    def replace_at(self, key: Any, value: Any) -> bool:
        """Sets elements to others, if the array has a mark; returns whether that was followed."""
        del key, value
        return False

    def as_noise(self) -> Any:
        """A function of uniform draws as the noise that it is; any other array as it is."""
        return self

    def as_answer(self) -> Any:
        """Noise as an answer whose value before noise is 0; any other array as it is."""
        return self

    def accept(self) -> None:
        """Takes its numbers as those of its mark, here and in the array that it is a part of."""
        self.seen = self.view(np.ndarray).copy()
        if self.part_of is not None:
            whole, key = self.part_of
            if whole.replace_at(key, self):
                whole.accept()

    def __array_finalize__(self, source: Any) -> None:
        """Ends the mark if numpy made this view itself, which has none."""
        if is_marked(source) and world.hears:
            source.end("a view")
        self.remember()

    def remember(self) -> None:
        """Has the world end this mark when the next fit begins: a cache may keep the array."""
        world.marked.append(weakref.ref(self))
        self.seen = self.view(np.ndarray).copy()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return apply_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return apply_function(function, args, kwargs)

    # array methods that bypass the two above

    def __getitem__(self, key: Any) -> Any:
        content = self.view(np.ndarray)[key]
        if not self.is_marked:
            return content
        if isinstance(content, np.ndarray):
            part = self.map_fields(lambda field: np.asarray(field)[key])
            if isinstance(part, Marked) and np.may_share_memory(part, self):
                part.part_of = self, key
            return part
        # its number is its own; information about a coin is shared by all its views
        key = (*key, ...) if isinstance(key, tuple) else (key, ...)

        def element(field: Any) -> Any:
            part = np.asarray(field)[key]
            return part.copy() if np.may_share_memory(part, self) else part

        return number_of(self.map_fields(element))

    def __setitem__(self, key: Any, value: Any) -> None:
        value = array_of(value)
        value = value.as_noise() if isinstance(value, Marked) else value
        self.check()
        if world.hears and self.replace_at(key, value):
            self.accept()
            return
        if self.is_marked:
            self.end("an array")
        self.forget()
        self.view(np.ndarray)[key] = end_marks(value, "an array")

    def __iter__(self) -> Any:
        return (self[index] for index in range(len(self)))

    def tolist(self) -> Any:
        """Nested lists of marked numbers."""
        if self.ndim == 0:
            return number_of(self)
        return [
            element.tolist() if isinstance(element, (Marked, np.ndarray)) else element
            for element in self
        ]

    def item(self, *index: Any) -> Any:
        """One element, marked."""
        if len(index) == 1 and not isinstance(index[0], tuple):
            return self.ravel()[index[0]]
        return self[
            index[0] if index and isinstance(index[0], tuple) else index or (0,) * self.ndim
        ]

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """Conversion to another float type keeps the mark."""
        if np.dtype(dtype) == self.dtype:
            return self.copy()
        if np.dtype(dtype).kind == "f" and self.is_marked:
            marked = self.as_noise()
            content = plain_array(marked).astype(dtype)
            return marked.with_content(content) if isinstance(marked, Marked) else content
        return end_marks(self, "astype").astype(dtype, *args, **kwargs)

    def copy(self, *_: Any, **__: Any) -> Any:
        """A copy with the same mark."""
        return self.map_fields(np.copy)

    __copy__ = __deepcopy__ = copy

    def reshape(self, *shape: Any, **kwargs: Any) -> Any:
        """As in numpy."""
        return self.map_fields(lambda field: np.asarray(field).reshape(*shape, **kwargs))

    def ravel(self, *_: Any, **__: Any) -> Any:
        """As in numpy."""
        return self.map_fields(np.ravel)

    flatten = ravel

    def squeeze(self, axis: Any = None) -> Any:
        """As in numpy."""
        return self.map_fields(lambda field: np.squeeze(field, axis))

    def transpose(self, *axes: Any) -> Any:
        """As in numpy."""
        return self.map_fields(lambda field: np.asarray(field).transpose(*axes))

    @property
    def T(self) -> Any:  # noqa: N802 - numpy's name
        """As in numpy."""
        return self.transpose()

    def sum(self, axis: Any = None, **kwargs: Any) -> Any:
        """As in numpy."""
        more = {"keepdims": True} if kwargs.get("keepdims") else {}
        return np.add.reduce(self, axis=axis, **more)

    def mean(self, axis: Any = None, **kwargs: Any) -> Any:
        """As in numpy."""
        return self.sum(axis=axis, **kwargs) / (self.size if axis is None else self.shape[axis])

    def __reduce__(self) -> Any:
        return end_marks(self, "pickle").__reduce__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return end_marks(self, "pickle").__reduce_ex__(protocol)


class Blank(np.ndarray):
    """Zeros that code fills in place: a marked array as soon as one of them becomes noisy.

    Until then it is an array like any other.
    """

    is_written = False
    """Whether it has been filled with plain numbers."""
    fillers: ClassVar[List[Callable[[Any, Any], bool]]] = []
    """Functions that turn a blank array into a marked one like another; each kind adds its own."""

    def __setitem__(self, key: Any, value: Any) -> None:
        new = array_of(value)
        new = new.as_noise() if isinstance(new, Marked) else new
        if not is_marked(new):
            self.is_written = True
        elif self.base is None and not self.is_written and world.hears and self._becomes(new):
            self[key] = new
            return
        super().__setitem__(key, end_marks(new, "an array"))

    def _becomes(self, like: Any) -> bool:
        """Turns it into a marked array if it holds 0 in both worlds; returns whether it did."""
        is_zero = world.are_zero(site(), self.view(np.ndarray))
        return is_zero and any(fill(self, like) for fill in self.fillers)

    def __array_wrap__(self, array: Any, *_: Any) -> Any:
        """A number where a plain array gives one."""
        return array if array.ndim else array[()]

    def __reduce__(self) -> Any:
        return self.view(np.ndarray).__reduce__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.view(np.ndarray).__reduce_ex__(protocol)


class MarkedNumber:
    """A marked number, the base class of each kind's: it behaves as an array without dimensions.

    Its `__class__` is numpy's float or integer.
    """

    array: Any
    keeps_noise = True

    def __init_subclass__(cls) -> None:
        _kinds.add(cls)

    @property
    def __class__(self) -> Any:
        return np.int64 if self.array.dtype.kind in "iu" else np.float64

    @property
    def dtype(self) -> Any:
        """As numpy's numbers have it."""
        return self.array.dtype

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return apply_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return apply_function(function, tuple(map(array_of, args)), kwargs)

    def __hash__(self) -> int:
        return hash(end_marks(self, "hash"))

    def __reduce_ex__(self, protocol: Any) -> Any:
        value = end_marks(self, "pickle")
        return (type(value), (value,))

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


def _ending_method(name: str) -> Any:
    """A method of arrays that ends their marks."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if name in LINEAR and self.is_marked:
            return apply_function(getattr(np, name), (self, *args), kwargs)
        return getattr(end_marks(self, name), name)(
            *(end_marks(value, name) for value in args), **kwargs
        )

    return method


def _ending_number_method(name: str) -> Any:
    """A method of numbers that ends their marks."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        value = end_marks(self, name.strip("_"))
        return getattr(value if hasattr(value, name) else np.float64(value), name)(*args, **kwargs)

    return method


def _operator_method(name: str, *, reflected: bool = False) -> Any:
    ufunc = getattr(np, name)

    def method(self: Any, other: Any) -> Any:
        if name == "multiply" and isinstance(other, (list, tuple, str, bytes)):
            count = as_count(self)
            if count is not self:  # numpy's integers repeat a list
                return other * count
        if not isinstance(other, (int, float, np.ndarray, np.generic, list)):
            return NotImplemented
        return ufunc(other, self) if reflected else ufunc(self, other)

    return method


LINEAR = frozenset(
    (
        *("average", "convolve", "cumsum", "diff", "dot", "einsum", "inner", "kron", "outer"),
        *("tensordot", "trace", "vdot", "triu", "tril", "mean"),
    )
)
"""Functions of numpy that are linear in each of their arguments."""
for _name in (
    *("max", "min", "std", "var", "prod", "cumsum", "dot", "round", "clip", "ptp", "tobytes"),
    *("nonzero", "any", "all", "sort", "partition", "argpartition", "searchsorted", "choose"),
    *("fill", "conj", "trace", "diagonal", "byteswap", "dump", "dumps", "tofile", "put", "take"),
    *("repeat", "compress", "cumprod", "argmax", "argmin", "argsort"),
    *("__format__", "__str__", "__repr__", "__bool__", "__float__", "__int__", "__contains__"),
):
    setattr(Marked, _name, _ending_method(_name))
for _name, _ufunc in (
    *(("add", "add"), ("sub", "subtract"), ("mul", "multiply"), ("truediv", "true_divide")),
    *(("floordiv", "floor_divide"), ("mod", "mod"), ("pow", "power")),
):
    setattr(MarkedNumber, f"__{_name}__", _operator_method(_ufunc))
    setattr(MarkedNumber, f"__r{_name}__", _operator_method(_ufunc, reflected=True))
for _name, _ufunc in (
    *(("lt", "less"), ("le", "less_equal"), ("gt", "greater"), ("ge", "greater_equal")),
    *(("eq", "equal"), ("ne", "not_equal")),
):
    setattr(MarkedNumber, f"__{_name}__", _operator_method(_ufunc))
MarkedNumber.__neg__ = lambda self: np.negative(self)
MarkedNumber.__abs__ = lambda self: np.absolute(self)
MarkedNumber.__pos__ = lambda self: self
for _name in ("sum", "mean", "max", "min", "squeeze", "copy"):
    setattr(MarkedNumber, _name, lambda self, *_, **__: self)
for _name in ("ravel", "flatten"):
    setattr(MarkedNumber, _name, lambda self, *_: self.array.reshape(-1))
for _name in (
    *("__round__", "__int__", "__trunc__", "__floor__", "__ceil__", "__bool__", "__str__"),
    *("__repr__", "__format__", "__float__", "as_integer_ratio", "hex", "is_integer", "round"),
    *("clip", "tolist", "tobytes", "any", "all", "view", "nonzero", "std", "var", "prod", "cumsum"),
):
    setattr(MarkedNumber, _name, _ending_number_method(_name))


_members = {
    name: member
    for name, member in vars(MarkedNumber).items()
    if name not in ("__dict__", "__weakref__", "__doc__")
}
MarkedFloat: Any = type("MarkedFloat", (np.float64, MarkedNumber), _members)
"""A marked number that is numpy's float: `numpy.float64 + other` defers to its subclasses.

Numpy finds the type of a number in the first base class, which therefore has none of its methods.
"""


def apply_ufunc(ufunc: Any, method: str, inputs: Any, kwargs: Any) -> Any:
    """The result of a numpy universal function when some inputs are marked."""
    inputs = tuple(array_of(combine(value)) for value in inputs)
    if world.hears and any(map(is_marked, inputs)):
        inputs = tuple(map(_as_numbers, inputs))
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        call = MarkedCall(ufunc.__name__, method, inputs, kwargs, site(), function)
        result = follow(call)
        if result is not NotImplemented:
            return result
    return _compute(getattr(ufunc, method), inputs, kwargs)


def _as_numbers(value: Any) -> Any:
    """An array of objects that are numbers, as pandas makes of columns, as one of floats."""
    if isinstance(value, Marked) or np.asarray(value).dtype.kind != "O":
        return value
    try:
        return np.asarray(value).astype(float)
    except (TypeError, ValueError):
        return value


def apply_function(function: Any, args: Any, kwargs: Any) -> Any:
    """The result of another numpy function when some arguments are marked."""
    name = function.__name__
    if name in _OWN_METHODS:
        first = combine(args[0])
        if isinstance(first, Marked):
            return getattr(first, _OWN_METHODS[name])(*args[1:], **kwargs)
    if name in _STRUCTURAL:
        if name.startswith("atleast") and len(args) > 1:
            return tuple(function(array) for array in args)
        moved = _move(function, args, kwargs)
        if moved is not None:
            return moved
    args = tuple(array_of(combine(value)) for value in args)
    if world.hears and any(map(is_marked, args)):
        result = follow(MarkedCall(name, "function", args, kwargs, site(), function))
        if result is not NotImplemented:
            return result
    if name in _HARMLESS:
        return function(*map(without_marks, args), **kwargs)
    values = [end_marks(value, name) for value in args]
    return function(*values, **{key: end_marks(value, name) for key, value in kwargs.items()})


def follow(call: MarkedCall) -> Any:
    """The result of a call by the first kind that follows it; if none does, all marks end."""
    if call.name in _HARMLESS:
        return NotImplemented
    for follower in followers:
        result = follower(call)
        if result is not NotImplemented:
            return result
    for array in _marked_arrays(call.inputs):
        array.end(call.name)
    return NotImplemented


def _compute(function: Any, inputs: Any, kwargs: Any) -> Any:
    """The result for plain numbers; marks of an array that it is written to end."""
    if "out" not in kwargs:
        return function(*map(without_marks, inputs), **kwargs)
    for array in kwargs["out"]:
        if isinstance(array, Marked):
            array.forget()
    result = function(
        *map(without_marks, inputs), **{**kwargs, "out": tuple(map(without_marks, kwargs["out"]))}
    )
    return kwargs["out"][0] if len(kwargs["out"]) == 1 else result


def write_to(out: Any, content: Any) -> Any:
    """A plain result, in the array that the caller has given for it if there is one."""
    if out is None:
        return content[()]
    plain_array(out)[...] = content
    if isinstance(out, Marked):
        out.forget()
    return out


def _move(function: Any, args: Any, kwargs: Any) -> Any:
    """Applies a function that only moves elements to one marked array or a list of them."""
    first, rest = args[0], args[1:]
    if is_marked(first):
        if function.__name__ == "append" or any(True for _ in _marked_arrays(rest)):
            return None
        parts = function(first.view(np.ndarray), *rest, **kwargs)
        if not isinstance(parts, list):
            return first.map_fields(lambda field: function(np.asarray(field), *rest, **kwargs))
        return [
            first.map_fields(lambda field, at=at: function(np.asarray(field), *rest, **kwargs)[at])
            for at in range(len(parts))
        ]
    if isinstance(first, (list, tuple)):
        return _join(
            [array_of(combine(value)) for value in first],
            lambda arrays: function(arrays, *rest, **kwargs),
        )
    return None


def _marked_arrays(values: Any) -> Any:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _marked_arrays(value)
        elif isinstance(value, (Marked, MarkedNumber)):
            yield array_of(value)
