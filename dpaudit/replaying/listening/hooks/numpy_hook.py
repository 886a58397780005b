"""numpy's random numbers: `Generator`, `RandomState`, and the functions of `numpy.random`.

Where numpy and pandas ask how many, a noisy integer may answer.
"""

from __future__ import annotations

import copy
import functools
import sys
from typing import Any, Callable, Optional

import numpy as np

from .. import marks
from ..channel import Site, site
from ..world import PlainGenerator, PlainState, SeededStream


def install(library: Any) -> None:
    """Replaces numpy's two classes, their factories, and the functions of the module."""
    if library.__name__ == "pandas":
        _install_in_pandas(library)
        return
    random, legacy = library.random, library.random.mtrand
    everywhere = HeardState()
    random.Generator = random._generator.Generator = HeardGenerator
    random.RandomState = legacy.RandomState = HeardState
    random.default_rng = random._generator.default_rng = default_rng
    pickled = random._pickle
    pickled.Generator, pickled.RandomState = HeardGenerator, HeardState
    for name in ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"):
        pickled.BitGenerators[name] = _heard_bits(getattr(random, name))
        setattr(random, name, pickled.BitGenerators[name])
    legacy._rand = everywhere
    for name in dir(everywhere):
        if not name.startswith("_") and hasattr(random, name) and callable(getattr(random, name)):
            setattr(random, name, getattr(everywhere, name))
            if hasattr(legacy, name):
                setattr(legacy, name, getattr(everywhere, name))
    for name in ("ranf", "sample"):
        setattr(random, name, everywhere.random_sample)
    for name in ("array", "asarray", "asanyarray", "ascontiguousarray"):
        setattr(library, name, _keeping(getattr(library, name)))
    for name in ("zeros", "empty", "zeros_like", "empty_like"):
        setattr(library, name, _blank(getattr(library, name)))
    for name in ("arange", "full", "linspace"):
        setattr(library, name, marks.counting(getattr(library, name)))
    for name in ("sum", "mean", "max", "min", "amax", "amin", "argmax", "argmin", "argsort"):
        setattr(library, name, _taking_lists(getattr(library, name)))


def _install_in_pandas(library: Any) -> None:
    """Replaces the methods that ask how many rows, or which, and make a column of a list."""
    for owner, names in (
        (library.DataFrame, ("__init__", "head", "tail", "sample", "nlargest", "nsmallest")),
        (library.Series, ("__init__", "head", "tail", "sample", "repeat")),
        (library.Index, ("repeat",)),
        (library.core.indexing._iLocIndexer, ("__getitem__",)),
    ):
        for name in names:
            setattr(owner, name, marks.counting(getattr(owner, name)))


def _heard_bits(plain: Any) -> Any:
    """A bit generator whose raw words are coins."""
    bits = 32 if plain.__name__ == "MT19937" else 64

    def random_raw(self: Any, size: Any = None, output: bool = True) -> Any:
        world = marks.world
        if not world.hears or not output:
            return plain.random_raw(self, size, output)
        where = site()
        drawn = world.stream(where, size).bit_generator.random_raw(size)
        words = np.asarray(drawn, dtype=np.uint64) >> np.uint64(64 - bits)
        return marks.whole_coin(words if size is not None else int(words), 2**bits, where)

    def state(self: Any) -> Any:
        found, owner = plain.state.__get__(self), self.dpaudit_owner
        return found if owner is None else marks.world.saved(owner.dpaudit_start, found)

    def set_state(self: Any, value: Any) -> None:
        plain.state.__set__(self, value)
        if self.dpaudit_owner is not None:
            self.dpaudit_owner.dpaudit_restored(value)

    def reduced(self: Any) -> Any:
        make, _, *state = plain.__reduce__(self)
        return (make, (plain.__name__,), *state)  # a name, because the class is not numpy's

    names = {
        "random_raw": random_raw,
        "__reduce__": reduced,
        "state": property(state, set_state),
        "dpaudit_owner": None,
        "__module__": plain.__module__,
        "__doc__": plain.__doc__,
    }
    return type(plain.__name__, (plain,), names)


def default_rng(seed: Any = None) -> Any:
    """As numpy's, for intercepted generators."""
    if isinstance(seed, np.random.BitGenerator):
        return HeardGenerator(seed)
    if isinstance(seed, PlainGenerator):
        return seed
    if isinstance(seed, PlainState):
        return HeardGenerator(seed._bit_generator)
    made = HeardGenerator(np.random.PCG64(seed))
    made.dpaudit_seeded(_seed_text(seed))
    return made


def _seed_text(seed: Any) -> Optional[str]:
    """The seed of a generator as text; None for system entropy."""
    if seed is None:
        return None
    if isinstance(seed, np.random.SeedSequence):
        return None if seed.entropy is None else repr((seed.entropy, seed.spawn_key))
    return repr(seed)[:200]


def _keeping(convert: Callable[..., Any]) -> Callable[..., Any]:
    """A function like `np.array` that keeps a mark."""

    def kept(value: Any, *args: Any, **kwargs: Any) -> Any:
        if type(value) in _BARE:
            return convert(value, *args, **kwargs)
        if isinstance(value, (list, tuple)):
            value = marks.combined(value)
        if isinstance(value, marks.MarkedNumber):
            value = value.array
        if isinstance(value, marks.Marked) and value.is_marked and _goes_away(sys._getframe(1)):
            value = marks.unmarked(value, site())
        if isinstance(value, marks.Marked) and value.is_marked:
            wanted = kwargs.get("dtype", args[0] if args else None)
            found = value if wanted is None else value.astype(wanted)
            copies = convert.__name__ == "array" and kwargs.get("copy", True) is True
            more = (1,) * (kwargs.get("ndmin", 0) - np.ndim(found))
            found = found.reshape(more + np.shape(found)) if more else found
            return found.copy() if copies else found
        return convert(value, *args, **kwargs)

    kept.__name__ = convert.__name__
    kept.__doc__ = convert.__doc__
    return kept


def _blank(make: Callable[..., Any]) -> Callable[..., Any]:
    """A function like `np.zeros` whose arrays keep the marks of what fills them.

    Libraries make arrays for purposes of their own, which stay as they are.
    """

    @functools.wraps(make)
    def made(*args: Any, **kwargs: Any) -> Any:
        found = make(*args, **kwargs)
        is_small = type(found) is np.ndarray and 0 < found.size <= marks.MOST_BLANK and found.ndim
        if not is_small or found.dtype != np.float64 or not marks.world.hears:
            return found
        if str(sys._getframe(1).f_globals.get("__name__", "")).partition(".")[0] in _LIBRARIES:
            return found
        blank = marks.Blank(found.shape)
        blank.view(np.ndarray)[...] = 0.0
        return blank

    return made


_LIBRARIES = frozenset(
    (
        *("dpaudit", "jax", "joblib", "matplotlib", "numba", "numpy", "opacus", "pandas", "scipy"),
        *("sklearn", "statsmodels", "tensorflow", "torch"),
    )
)


_BARE = frozenset({np.ndarray, np.float64, np.int64, np.bool_, float, int, bool})
"""Types that carry no mark and have no marked parts; the most frequent arguments."""


def _goes_away(caller: Any) -> bool:
    """Whether a library whose own arrays carry no marks makes the conversion."""
    return str(caller.f_globals.get("__name__", "")).partition(".")[0] in (
        "jax",
        "tensorflow",
        "sklearn",
    )


def _taking_lists(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of an array that keeps marks when it is given a list."""

    def taken(a: Any, *args: Any, **kwargs: Any) -> Any:
        return function(marks.combined(a) if isinstance(a, (list, tuple)) else a, *args, **kwargs)

    taken.__name__, taken.__doc__ = function.__name__, function.__doc__
    return taken


_MOST_PICKED = 1_000_000
"""Most probabilities sent for one draw without replacement."""
_WORDS = 2**16
"""With at least this many values an integer is a word to compare, not a place in a table."""


class Seeded:
    """A generator of random numbers that knows its seed, and the class that it replaces."""

    dpaudit_plain: Any = None
    dpaudit_start = SeededStream(0, None, None)

    def dpaudit_seeded(self, seed: Optional[str], *, is_new: bool = True) -> None:
        """Remembers the seed and the fit in which it was set; `is_new` if a stream begins here."""
        fit = marks.world.fit_of_seeds
        name = f"{type(self).__name__} {seed}" if is_new and seed else None
        self.dpaudit_start = SeededStream(fit, seed, name)

    def dpaudit_restored(self, state: Any) -> None:
        """Goes on from a state that was saved, or that the code has made."""
        self.dpaudit_start = marks.world.restored(state)

    @property
    def dpaudit_seed(self) -> Optional[str]:
        """The seed that was set in this fit; None if it was set in another one."""
        return self.dpaudit_start.seed_in(marks.world.fit)

    @property
    def dpaudit_hears(self) -> bool:
        """Whether a draw made now is intercepted; those of a public seed are not."""
        world = marks.world
        return bool(world.hears) and self.dpaudit_seed not in world.public_seeds


def intercepted(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method for draws that are intercepted; the plain class makes the others."""
    name = method.__name__

    @functools.wraps(method)
    def drawn(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.dpaudit_hears:
            return method(self, *args, **kwargs)
        return getattr(self.dpaudit_plain, name)(self, *args, **kwargs)

    return drawn


class _Heard(Seeded):
    """The common part of both classes: every draw is intercepted."""

    def _stream(self, where: Site, size: Any) -> Any:
        return marks.world.stream(where, size, self.dpaudit_plain)

    def _noise(
        self, law: str, loc: Any, scale: Any, size: Any, shape: Any, draw: Callable[[Any, Any], Any]
    ) -> Any:
        where, world = site(), marks.world
        loc, scale, shape = (_bare(marks.unmarked(one, where)) for one in (loc, scale, shape))
        size = _size(size, loc, scale, shape)
        world.drew(self.dpaudit_start, law, size, where)
        if world.is_located(where, loc, scale):
            value = np.asarray(draw(self._stream(where, size), size)) * scale + loc
            return value if size is not None else float(value)
        place = world.rows_shared(where, size)
        drawn = of_records(functools.partial(draw, self._stream(where, size)), size, place)
        content = drawn * scale if size is not None else float(drawn * scale)
        made = marks.noise(content, law, where, scale=scale, shape=shape, seed=self.dpaudit_seed)
        if world.is_nothing(where, loc):
            return made
        return marks.answer(loc, (made if size is not None else made.array).parts, where)

    @intercepted
    def standard_normal(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        if out is not None:
            return PlainGenerator.standard_normal(self, size, dtype, out)
        found = self._noise("gaussian", 0.0, 1.0, size, 1.0, lambda rng, n: rng.normal(size=n))
        return found if np.dtype(dtype) == np.float64 or size is None else found.astype(dtype)

    @intercepted
    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        return self._noise(
            "exponential", 0.0, scale, size, 1.0, lambda rng, n: rng.exponential(size=n)
        )

    @intercepted
    def standard_exponential(self, size: Any = None, *_: Any, **__: Any) -> Any:
        return self.exponential(1.0, size)

    @intercepted
    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None) -> Any:
        return self._noise(
            "gamma", 0.0, scale, size, shape, lambda rng, n: rng.gamma(shape, size=n)
        )

    @intercepted
    def standard_gamma(self, shape: Any, size: Any = None, *_: Any, **__: Any) -> Any:
        return self.gamma(shape, 1.0, size)

    @intercepted
    def geometric(self, p: Any, size: Any = None) -> Any:
        where = site()
        p = marks.unmarked(p, where)
        size = _size(size, p)
        marks.world.drew(self.dpaudit_start, "geometric", size, where)
        drawn = self._stream(where, size).geometric(p, size=size)
        return marks.noise(drawn, "geometric", where, shape=p, seed=self.dpaudit_seed)

    @intercepted
    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        where = site()
        size = _size(size, low, high)
        low, high = (_bare(marks.unmarked(one, where)) for one in (low, high))
        found = self._coin(where, size)
        if np.ndim(low) == 0 and np.ndim(high) == 0 and low == 0 and high == 1:
            return found
        return found * np.subtract(high, low) + low

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        if not self.dpaudit_hears or out is not None:
            if self.dpaudit_plain is PlainState:  # whose `random` calls `random_sample`
                return PlainState.random_sample(self, size)
            return super().random(size, dtype=dtype, out=out)  # type: ignore[misc]
        found = self._coin(site(), size)
        return found if np.dtype(dtype) == np.float64 or size is None else found.astype(dtype)

    def _coin(self, where: Site, size: Any) -> Any:
        name = "random_sample" if self.dpaudit_plain is PlainState else "random"
        if size is None:
            return single_coin(where, lambda stream: getattr(stream, name)(), self.dpaudit_plain)
        place = marks.world.of_records(where, size)
        if place is None:
            return marks.coin(np.asarray(getattr(self._stream(where, size), name)(size)), where)
        stream = marks.world.stream(where, size, self.dpaudit_plain, records=True)
        return coins_of_records(getattr(stream, name), where, size, place)

    @intercepted
    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        """As numpy's; with one trial, a coin."""
        where = site()
        n, p = marks.unmarked(n, where), marks.unmarked(p, where)
        if not np.all(np.asarray(n) == 1):
            marks.world.note("draw", where, "binomial", n, p, size)
            return marks.world.other_way(self._stream(where, size).binomial, n, p, size)
        size = _size(size, n, p)
        found = self._coin(where, size) < p
        return np.asarray(found).astype(np.int64) if size is not None else int(found)

    @intercepted
    def choice(
        self,
        a: Any,
        size: Any = None,
        replace: bool = True,
        p: Any = None,
        axis: int = 0,
        shuffle: bool = True,
    ) -> Any:
        world = marks.world
        extra = {} if self.dpaudit_plain is PlainState else {"axis": axis, "shuffle": shuffle}
        where = site()
        a = marks.as_count(a)
        if p is None:
            return self._picked(where, a, size, replace, extra)
        p = np.asarray(marks.unmarked(p, where), dtype=float)
        if where[:2] in world.asked and not replace and size is not None:
            if len(p) * np.prod(size) > _MOST_PICKED:
                world.tell("unfollowed", where, "many places drawn without replacement")
            else:
                place = marks.picked(p, int(np.prod(size)), where).reshape(size)
                return place if isinstance(a, (int, np.integer)) else np.asarray(a)[place]
        elif where[:2] in world.asked:
            place = marks.chosen(p, () if size is None else size, where)
            if np.ndim(a) == 0 and isinstance(a, (int, np.integer)):
                return place if size is not None else int(place)
            return np.asarray(a)[place] if size is not None else np.asarray(a)[int(place)]
        world.note("choose", where, p)
        return self._stream(where, size).choice(a, size, replace, p, **extra)

    def _picked(self, where: Site, a: Any, size: Any, replace: bool, extra: Any) -> Any:
        """A choice without probabilities, usually of records: coupled by the target's place."""
        world = marks.world
        count = int(a) if isinstance(a, (int, np.integer)) else len(a)
        place = world.rows_shared(where, count)
        if place is None:
            world.note("parameters", where, "choice", count, size)
            choice = self._stream(where, size).choice
            return world.other_way(choice, a, size, replace, **extra)
        picks = self._stream(where, size if size is not None else ())
        union, short = max(world.counted), world.counted[0] < world.counted[1]
        found = np.asarray(picks.choice(union, size, replace))
        if world.draws_record and found.size and place not in found:
            found = found.copy()
            found[(0,) * found.ndim] = place
        if short:  # this world lacks the record: another one takes its place
            others = np.delete(np.arange(union), place)
            left = others if replace else np.setdiff1d(others, found)
            others = left if len(left) else others
            draw = picks.integers if hasattr(picks, "integers") else picks.randint
            found = np.where(found == place, others[draw(len(others))], found)
            found = found - (found > place)
        world.tell("subsample", where, "records are drawn by coins that count as public")
        values = found if isinstance(a, (int, np.integer)) else np.asarray(a)[found]
        return values if size is not None else values[()]

    def integers(
        self, low: Any, high: Any = None, size: Any = None, *rest: Any, **more: Any
    ) -> Any:
        """As numpy's; with one number per record, a selection of records."""
        world = marks.world
        if not self.dpaudit_hears or rest or more:
            return _integers(self, low, high, size, *rest, **more)
        low, high = marks.as_count(low), marks.as_count(high)
        first, count = (0, low) if high is None else (low, high)
        own, other = world.counted
        is_count = isinstance(count, (int, np.integer))
        if is_count and own != other and first == 0 and count in (own, other):
            return self._picked(site(), count, size, True, {})
        if size is not None and is_count and count - first >= _WORDS:
            where = site()
            drawn = self._stream(where, size).integers(0, count - first, size)
            made = marks.whole_coin(np.asarray(drawn), int(count - first), where)
            return made + first if first else made
        return _integers(self, low, high, size)

    def multivariate_normal(
        self, mean: Any, cov: Any, size: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        """As numpy's; one vector is noise, its covariance made of independent draws."""
        world = marks.world
        if not self.dpaudit_hears or size is not None or np.size(mean) > marks.MOST_DRAWS:
            return _multivariate_normal(self, mean, cov, size, *args, **kwargs)
        where = site()
        mean, cov = (np.asarray(marks.unmarked(one, where), dtype=float) for one in (mean, cov))
        if world.is_located(where, mean, cov):
            return self._stream(where, ()).multivariate_normal(mean, cov)
        values, vectors = np.linalg.eigh(cov)
        loads = vectors * np.sqrt(np.maximum(values, 0.0))
        drawn = self._stream(where, mean.shape).normal(size=mean.shape)
        unit = marks.noise(drawn, "gaussian", where, seed=self.dpaudit_seed)
        made = marks.noise_by(loads.__matmul__, unit)
        return made if world.is_nothing(where, mean) else marks.answer(mean, made.parts, where)

    @intercepted
    def permutation(self, x: Any, axis: int = 0) -> Any:
        where, x = site(), marks.as_count(x)
        is_count = isinstance(x, (int, np.integer))
        length = int(x) if is_count else np.shape(x)[axis]
        order = shared_order(where, length, self._stream(where, length))
        return order if is_count else np.take(np.asarray(x), order, axis=axis)

    @intercepted
    def shuffle(self, x: Any, axis: int = 0) -> None:
        where, length = site(), len(x) if axis == 0 else np.shape(x)[axis]
        order = shared_order(where, length, self._stream(where, length))
        if isinstance(x, np.ndarray):
            x[...] = np.take(x, order, axis=axis)
        else:
            x[:] = [x[place] for place in order]

    def __reduce__(self) -> Any:
        return _copied, (super().__reduce__(), copy.copy(self.dpaudit_start))


def _copied(reduced: Any, start: SeededStream) -> Any:
    """A generator from what pickle keeps of it: a copy, which draws the same numbers."""
    make, given, *state = reduced
    made = make(*given)
    if state and state[0] is not None:
        made.__setstate__(state[0])
    made.dpaudit_start = start
    return made


def _bare(value: Any) -> Any:
    """A parameter as a number or an array: a series would align by its index."""
    return value if isinstance(value, _NUMBERS) else np.asarray(value)


_NUMBERS = (float, int, np.number, np.ndarray)


def _size(size: Any, *parameters: Any) -> Any:
    """The size of a draw: that of its parameters if none is given; None for one number."""
    return np.broadcast_shapes(*map(np.shape, parameters)) or None if size is None else size


def of_records(draw: Callable[[Any], Any], size: Any, place: Optional[int]) -> Any:
    """Draws, one per record if one world lacks that at a place: common records share theirs."""
    if place is None:
        return draw(size)
    own, other = marks.world.counted
    most = max(own, other)
    drawn = draw((most, *size[1:]) if isinstance(size, (tuple, list)) else most)
    return np.delete(drawn, place, axis=0) if own < other else drawn


def shared_order(where: Site, length: int, stream: Any) -> Any:
    """A random order, in which the common records are in the same order in both worlds."""
    world = marks.world
    place = world.rows_shared(where, length)
    world.note("draw", where, "permutation", None if place is not None else length)
    most = length if place is None else max(world.counted)
    order = world.other_way(stream.permutation, most)
    if place is not None and world.counted[0] < world.counted[1]:
        order = order[order != place]
        order = order - (order > place)
    return order


def single_coin(where: Site, draw: Callable[[Any], Any], make: Any = PlainGenerator) -> Any:
    """One uniform draw; the target's own draw does not shift those of others."""
    world = marks.world
    record = world.record_of(where)
    if record == 2:
        where_own = (where[0], where[1], f"{where[2]} of the target")
        return marks.coin(draw(world.stream(where_own, None, make, records=True)), where, record=2)
    return marks.coin(
        draw(world.stream(where, None, make, records=record == 1)), where, record=record
    )


def coins_of_records(draw: Callable[[Any], Any], where: Site, size: Any, place: int) -> Any:
    """Uniform draws, one per record: the worlds share those of common records."""
    drawn = of_records(draw, size, place)
    record = np.ones(np.shape(drawn), dtype=np.int8)
    record[marks.world.own_rows] = 2
    return marks.coin(drawn, where, record=record)


def _plain_draw(name: str) -> Callable[..., Any]:
    """A method whose draws involve no data: both worlds make the same ones."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        where = site()
        args = tuple(marks.unmarked(one, where) for one in args)
        size = kwargs.get("size")
        if size is None and args and isinstance(args[-1], tuple):
            size = args[-1]  # scalars share the stream of their line, each array has its own
        marks.world.note("parameters", where, name, *args, *kwargs.values())
        draw = getattr(self._stream(where, size), name)
        return marks.world.other_way(draw, *args, **kwargs)

    method.__name__ = name
    return intercepted(method)


def _around(name: str, law: str) -> Callable[..., Any]:
    """A method that draws noise of a law, around a value."""

    def method(self: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return self._noise(law, loc, scale, size, 1.0, lambda rng, n: getattr(rng, name)(size=n))

    method.__name__ = name
    return intercepted(method)


for _name in ("laplace", "gumbel", "logistic"):
    setattr(_Heard, _name, _around(_name, _name))
_Heard.normal = _around("normal", "gaussian")


class HeardGenerator(_Heard, PlainGenerator):
    """`numpy.random.Generator`, intercepted."""

    dpaudit_plain = PlainGenerator

    def __init__(self, bit_generator: Any = None) -> None:
        super().__init__(np.random.PCG64() if bit_generator is None else bit_generator)
        sequence = getattr(bit_generator, "seed_seq", None) or getattr(
            bit_generator, "_seed_seq", None
        )
        self.dpaudit_seeded(_seed_text(sequence), is_new=False)  # others may share its numbers
        if hasattr(self.bit_generator, "dpaudit_owner"):
            self.bit_generator.dpaudit_owner = self

    @intercepted
    def permuted(self, x: Any, axis: Any = None, out: Any = None) -> Any:
        """As numpy's, the same in both worlds."""
        where = site()
        marks.world.note("draw", where, "permuted", np.shape(x))
        return self._stream(where, np.shape(x)).permuted(x, axis=axis, out=out)

    def spawn(self, n_children: int) -> Any:
        """Children, also intercepted."""
        return [HeardGenerator(one.bit_generator) for one in super().spawn(n_children)]


class HeardState(_Heard, PlainState):
    """`numpy.random.RandomState`, intercepted."""

    dpaudit_plain = PlainState

    def __init__(self, seed: Any = None) -> None:
        super().__init__(seed)
        self.dpaudit_seeded(None if isinstance(seed, np.random.BitGenerator) else _seed_text(seed))

    def seed(self, seed: Any = None) -> None:
        """As numpy's; remembers its seed."""
        super().seed(seed)
        self.dpaudit_seeded(_seed_text(seed))

    def get_state(self, legacy: bool = True) -> Any:
        """As numpy's."""
        return marks.world.saved(self.dpaudit_start, super().get_state(legacy))

    def set_state(self, state: Any) -> None:
        """As numpy's."""
        super().set_state(state)
        self.dpaudit_restored(state)

    def random_sample(self, size: Any = None) -> Any:
        """As numpy's."""
        return self.random(size)

    def rand(self, *shape: int) -> Any:
        """As numpy's."""
        return self.random(shape if shape else None)

    def randn(self, *shape: int) -> Any:
        """As numpy's."""
        return self.standard_normal(shape if shape else None)


_integers = _plain_draw("integers")
_multivariate_normal = _plain_draw("multivariate_normal")
for _kind in (HeardGenerator, HeardState):
    for _name, _method in vars(_kind.dpaudit_plain).items():
        is_other = _name not in vars(_kind) and _name not in vars(_Heard)
        if is_other and callable(_method) and not _name.startswith("_"):
            setattr(_kind, _name, _plain_draw(_name))
