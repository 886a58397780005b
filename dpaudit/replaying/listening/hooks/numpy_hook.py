"""numpy's random numbers: `Generator`, `RandomState`, and the functions of `numpy.random`."""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, Optional, Tuple

import numpy as np

from .. import choices, coins, marks, noise
from ..channel import Site, site
from ..world import PlainGenerator, PlainState
from . import arrays_hook, steps


def install(library: Any) -> None:
    """Replaces numpy's two classes, their factories, and the functions of the module."""
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
    arrays_hook.install(library)


def _heard_bits(plain: Any) -> Any:
    """A bit generator whose raw words are coins, and that knows its seed."""
    bits = 32 if plain.__name__ == "MT19937" else 64

    def __init__(self: Any, seed: Any = None, **key: Any) -> None:  # noqa: N807 - a method
        plain.__init__(self, seed, **key)
        self.dpaudit_seed = _seed_text(key.get("key", seed))

    def random_raw(self: Any, size: Any = None, output: bool = True) -> Any:
        world = marks.world
        if not world.hears_draw or not output:
            return plain.random_raw(self, size, output)
        where = site()
        world.count_draw(where)
        if world.natural:
            return plain.random_raw(self, size, output)
        drawn = world.stream(where, size).bit_generator.random_raw(size)
        words = np.asarray(drawn, dtype=np.uint64) >> np.uint64(64 - bits)
        return coins.whole_coin(words if size is not None else int(words), 2**bits, where)

    def reduced(self: Any) -> Any:
        make, _, *state = plain.__reduce__(self)
        return (make, (plain.__name__,), *state)  # a name, because the class is not numpy's

    names = {
        "__init__": __init__,
        "random_raw": random_raw,
        "__reduce__": reduced,
        "__module__": plain.__module__,
        "__doc__": plain.__doc__,
    }
    return type(plain.__name__, (plain,), names)


def default_rng(seed: Any = None) -> Any:
    """As numpy's, for intercepted generators."""
    if isinstance(seed, PlainGenerator):
        return seed
    if isinstance(seed, PlainState):
        seed = seed._bit_generator
    return HeardGenerator(
        seed if isinstance(seed, np.random.BitGenerator) else np.random.PCG64(seed)
    )


_LONGEST_SEED = 2**96
"""Larger entropy comes from the system."""


def _seed_text(seed: Any) -> Optional[str]:
    """The seed of a generator as text; None for system entropy."""
    if isinstance(seed, np.random.SeedSequence):
        entropy = seed.entropy
        if entropy is None or (isinstance(entropy, int) and entropy >= _LONGEST_SEED):
            return None
        return repr((entropy, seed.spawn_key))
    if isinstance(seed, (int, np.integer)):
        return repr(int(seed))
    return None if seed is None else repr(seed)


_MOST_PICKED = 1_000_000
"""Most probabilities sent for one draw without replacement."""
_WORDS = 2**16
"""With at least this many values an integer is a word to compare, not a place in a table."""


class Seeded:
    """A generator of random numbers that knows its seed, and the class that it replaces."""

    dpaudit_plain: Any = None
    _dpaudit_seed: Optional[str] = None
    _dpaudit_fit = 0

    def dpaudit_keep_seed(self, seed: Optional[str]) -> None:
        """Remembers the seed, and the fit in which it was set."""
        world = marks.world
        self._dpaudit_seed = None if seed is None else seed[:200]
        self._dpaudit_fit = world.fit if world.active else 0
        if seed is not None:
            world.note_seed(seed)

    @property
    def dpaudit_seed(self) -> Optional[str]:
        """The seed that was set in this fit, or before all fits; None if in another one."""
        return self._dpaudit_seed if self._dpaudit_fit in (0, marks.world.fit) else None

    def dpaudit_count_draw(self, where: Site) -> None:
        """Counts a draw of coins, and notes the generator's seed."""
        marks.world.count_draw(where)
        if self.dpaudit_seed is not None:
            marks.world.seeds.add((where, self.dpaudit_seed))

    def dpaudit_draw(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """What the plain class draws, which is not intercepted once more."""
        args = tuple(marks.end_marks(value, name) for value in args)
        kwargs = {key: marks.end_marks(value, name) for key, value in kwargs.items()}
        with marks.world.hushed():
            return getattr(self.dpaudit_plain, name)(self, *args, **kwargs)


def intercepted(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method for draws of a lockstep fit; the plain class makes the others."""
    name = method.__name__

    @functools.wraps(method)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not marks.world.hears_draw:
            return getattr(self.dpaudit_plain, name)(self, *args, **kwargs)
        marks.world.count_draw(site())
        if marks.world.natural:
            return self.dpaudit_draw(name, *args, **kwargs)
        return method(self, *args, **kwargs)

    return wrapper


_REQUIRED = object()
_NOISE: Dict[str, Tuple[str, Dict[str, Any]]] = {
    "normal": ("gaussian", {"loc": 0.0, "scale": 1.0}),
    "laplace": ("laplace", {"loc": 0.0, "scale": 1.0}),
    "gumbel": ("gumbel", {"loc": 0.0, "scale": 1.0}),
    "logistic": ("logistic", {"loc": 0.0, "scale": 1.0}),
    "exponential": ("exponential", {"scale": 1.0}),
    "gamma": ("gamma", {"shape": _REQUIRED, "scale": 1.0}),
    "geometric": ("geometric", {"p": _REQUIRED}),
    "standard_normal": ("gaussian", {}),
    "standard_exponential": ("exponential", {}),
    "standard_gamma": ("gamma", {"shape": _REQUIRED}),
}
"""Methods that draw noise: its law, and their parameters before the size."""


def _noise_method(name: str, law: str, defaults: Dict[str, Any]) -> Callable[..., Any]:
    """A method that draws noise of a law."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not marks.world.hears_draw:
            return getattr(self.dpaudit_plain, name)(self, *args, **kwargs)
        given = {**defaults, **dict(zip((*defaults, "size", "dtype"), args)), **kwargs}
        if any(value is _REQUIRED for value in given.values()):
            raise TypeError(f"{name}() takes more arguments")  # as numpy
        size, dtype, out = (given.pop(key, None) for key in ("size", "dtype", "out"))
        given.pop("method", None)
        drawn = self._noise(name, law, given, size if out is None else np.shape(out))
        if out is not None:
            out[...] = marks.end_marks(drawn, "out")
            return out
        return drawn if dtype is None or size is None else drawn.astype(dtype)

    method.__name__ = name
    return method


class _Heard(Seeded):
    """The common part of both classes: every draw is intercepted."""

    def _stream(self, where: Site, size: Any) -> Any:
        return marks.world.stream(where, size, self.dpaudit_plain)

    def _noise(self, name: str, law: str, given: Dict[str, Any], size: Any) -> Any:
        """Draws noise of a law around a value.

        Args:
            name: The method.
            law: The law.
            given: Its parameters.
            size: As numpy takes it.
        """
        where = site()
        marks.world.count_draw(where)
        given = {key: _as_parameter(marks.end_marks(value, name)) for key, value in given.items()}
        size = _size(size, *given.values())
        return steps.draw_around(
            where,
            law,
            given.get("loc", 0),
            given.get("scale", 1),
            size,
            natural=lambda: self.dpaudit_draw(name, **given, size=size),
            shape=given.get("shape", given.get("p", 1.0)),
            make=self.dpaudit_plain,
            seed=self.dpaudit_seed,
        )

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """Coins, scaled."""
        if not marks.world.hears_draw:
            return self.dpaudit_plain.uniform(self, low, high, size)
        where = site()
        size = _size(size, low, high)
        if marks.world.natural and where[:2] not in marks.world.bent:
            self.dpaudit_count_draw(where)
            return self.dpaudit_draw("uniform", low, high, size)
        low, high = (_as_parameter(marks.end_marks(end, "uniform")) for end in (low, high))
        coin = self._coin(where, size)
        is_unit = np.ndim(low) == 0 and np.ndim(high) == 0 and low == 0 and high == 1
        if is_unit and not marks.world.follows_range(where):
            return coin
        return coin * np.subtract(high, low) + low

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Coins."""
        if not marks.world.hears_draw or out is not None:
            if self.dpaudit_plain is PlainState:  # whose `random` calls `random_sample`
                return PlainState.random_sample(self, size)
            return PlainGenerator.random(self, size, dtype=dtype, out=out)
        coin = self._coin(site(), size)
        return coin if np.dtype(dtype) == np.float64 or size is None else coin.astype(dtype)

    def _coin(self, where: Site, size: Any, *, is_counted: bool = True) -> Any:
        world = marks.world
        if is_counted:
            self.dpaudit_count_draw(where)
        name = "random_sample" if self.dpaudit_plain is PlainState else "random"
        if world.natural:
            drawn = self.dpaudit_draw(name, size)
            return coins.coin(drawn, where) if where[:2] in world.bent else drawn
        if size is None:
            return single_coin(where, lambda stream: getattr(stream, name)(), self.dpaudit_plain)
        place = world.record_place(where, size)
        if place is None:
            return coins.coin(np.asarray(getattr(self._stream(where, size), name)(size)), where)
        stream = self._stream(where, size)
        return coins_of_records(getattr(stream, name), where, size, place)

    @intercepted
    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        """As numpy's; with one trial, a coin."""
        where = site()
        n, p = marks.end_marks(n, "binomial"), marks.end_marks(p, "binomial")
        if not np.all(np.asarray(n) == 1):
            marks.world.note("draw", where, "binomial", n, p, size)
            return self._stream(where, size).binomial(n, p, size)
        size = _size(size, n, p)
        coin = self._coin(where, size, is_counted=False) < p
        return np.asarray(coin).astype(np.int64) if size is not None else int(coin)

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
        """As numpy's; with probabilities, a choice that may depend on the data."""
        world, where = marks.world, site()
        extra = {} if self.dpaudit_plain is PlainState else {"axis": axis, "shuffle": shuffle}
        a = marks.as_count(a)
        if p is None:
            return self._pick(where, a, size, replace, extra)
        p = np.asarray(marks.end_marks(p, "choice"), dtype=float)
        if np.any(p < 0) or not abs(np.sum(p) - 1) <= 1e-8:
            raise ValueError("probabilities do not sum to 1")  # as numpy
        if replace or size is None:
            place = choices.draw_places(p, () if size is None else size, where)
        elif where[:2] in world.asked and len(p) * np.prod(size) <= _MOST_PICKED:
            place = choices.ask_distinct_places(p, int(np.prod(size)), where).reshape(size)
        else:
            if where[:2] in world.asked:
                world.tell("unfollowed", where, "many places drawn without replacement")
            world.note("choose", where, p)
            return self._stream(where, size).choice(a, size, replace, p, **extra)
        place = place if size is not None else int(place)
        return place if isinstance(a, (int, np.integer)) else np.take(np.asarray(a), place, axis)

    def _pick(self, where: Site, a: Any, size: Any, replace: bool, extra: Any) -> Any:
        """A choice without probabilities, usually of records: coupled by the target's place."""
        world = marks.world
        count = int(a) if isinstance(a, (int, np.integer)) else len(a)
        place = world.shared_row(where, count)
        if place is None:
            world.note("parameters", where, "choice", count, size)
            if world.order.edge is not None and (replace or size is None):
                at_edge = coins.at_edge(world.order.edge, count)
                return _values_at(np.full(() if size is None else size, at_edge), a, size)
            return self._stream(where, size).choice(a, size, replace, **extra)
        picks = self._stream(where, size if size is not None else ())
        union, short = max(world.order.rows), world.order.rows[0] < world.order.rows[1]
        places = np.asarray(picks.choice(union, size, replace))
        if short:  # this world lacks the record: another one takes its place
            others = np.delete(np.arange(union), place)
            left = others if replace else np.setdiff1d(others, places)
            others = left if len(left) else others
            draw = picks.integers if hasattr(picks, "integers") else picks.randint
            places = np.where(places == place, others[draw(len(others))], places)
            places = places - (places > place)
        why = "a draw of records that is followed only if coins are public (--public-coins)"
        world.tell("subsample", where, why)
        return _values_at(places, a, size)

    @intercepted
    def permutation(self, x: Any, axis: int = 0) -> Any:
        """As numpy's; the common records are in the same order in both worlds."""
        where, x = site(), marks.as_count(x)
        is_count = isinstance(x, (int, np.integer))
        length = int(x) if is_count else np.shape(x)[axis]
        order = shared_order(where, length, self._stream(where, length))
        return order if is_count else np.take(np.asarray(x), order, axis=axis)

    @intercepted
    def shuffle(self, x: Any, axis: int = 0) -> None:
        """As numpy's; the common records are in the same order in both worlds."""
        where, length = site(), len(x) if axis == 0 else np.shape(x)[axis]
        order = shared_order(where, length, self._stream(where, length))
        if isinstance(x, np.ndarray):
            x[...] = np.take(x, order, axis=axis)
        else:
            x[:] = [x[place] for place in order]

    def multivariate_normal(self, mean: Any, cov: Any, *args: Any, **kwargs: Any) -> Any:
        """As numpy's; one vector is noise, its covariance made of independent draws."""
        if not marks.world.hears_draw:
            return self.dpaudit_plain.multivariate_normal(self, mean, cov, *args, **kwargs)
        world, where = marks.world, site()
        mean, cov = (
            np.asarray(marks.end_marks(parameter, "a mean"), dtype=float)
            for parameter in (mean, cov)
        )
        is_one = not args and kwargs.get("size") is None and mean.size <= noise.MOST_DRAWS
        if not is_one or world.is_located(where, mean, cov):
            return _multivariate_normal(self, mean, cov, *args, **kwargs)
        world.count_draw(where)
        values, vectors = np.linalg.eigh(cov)
        loads = vectors * np.sqrt(np.maximum(values, 0.0))
        drawn = np.zeros(mean.shape)
        if not world.natural:
            drawn = self._stream(where, mean.shape).normal(size=mean.shape)
        unit = noise.noise(drawn, "gaussian", where, seed=self.dpaudit_seed)
        made = noise.apply_linear(loads.__matmul__, unit)
        if world.natural:
            marks.plain_array(made)[...] = (
                self.dpaudit_draw("multivariate_normal", mean, cov) - mean
            )
            made.accept()
        return noise.add_to(mean, made, where)


def _as_parameter(value: Any) -> Any:
    """A parameter as a number or an array: a series would align by its index."""
    return value if isinstance(value, (float, int, np.number, np.ndarray)) else np.asarray(value)


def _size(size: Any, *parameters: Any) -> Any:
    """The size of a draw: that of its parameters if none is given; None for one number."""
    return np.broadcast_shapes(*map(np.shape, parameters)) or None if size is None else size


def shared_order(where: Site, length: int, stream: Any) -> Any:
    """A random order, in which the common records are in the same order in both worlds."""
    world = marks.world
    place = world.shared_row(where, length)
    world.note("draw", where, "permutation", None if place is not None else length)
    order = stream.permutation(length if place is None else max(world.order.rows))
    if place is not None and world.order.rows[0] < world.order.rows[1]:
        order = order[order != place]
        order = order - (order > place)
    return order


def _values_at(places: Any, a: Any, size: Any) -> Any:
    """The values at places of what `choice` is given: a number of them, or an array."""
    values = places if isinstance(a, (int, np.integer)) else np.asarray(a)[places]
    return values if size is not None else values[()]


def single_coin(
    where: Site,
    draw: Callable[[Any], Any],
    make: Any = PlainGenerator,
    *,
    low: float = 0.0,
    high: float = 1.0,
) -> Any:
    """One uniform draw; the target's own draw does not shift those of others."""
    world = marks.world
    record = world.record_of(where)
    own = (where[0], where[1], f"{where[2]} of the target") if record == 2 else where
    stream = world.stream(own, None, make, records=record > 0)
    return coins.coin(draw(stream), where, record=record, low=low, high=high)


def coins_of_records(draw: Callable[[Any], Any], where: Site, size: Any, place: int) -> Any:
    """Uniform draws, one per record: the worlds share those of common records."""
    drawn = steps.draw_for_records(draw, size, place)
    record = np.ones(np.shape(drawn), dtype=np.int8)
    record[marks.world.order.own_rows] = 2
    return coins.coin(drawn, where, record=record)


def draw_plainly(self: Any, name: str, args: Any, kwargs: Any, where: Site) -> Any:
    """Draws that involve no data: both worlds make the same ones."""
    args = tuple(marks.end_marks(value, name) for value in args)
    size = kwargs.get("size")
    if size is None and args and isinstance(args[-1], tuple):
        size = args[-1]  # scalars share the stream of their line, each array has its own
    marks.world.note("parameters", where, name, *args, *kwargs.values())
    return getattr(self._stream(where, size), name)(*args, **kwargs)


def _plain_method(name: str) -> Callable[..., Any]:
    """A method that is not followed."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return draw_plainly(self, name, args, kwargs, site())

    method.__name__ = name
    return intercepted(method)


_multivariate_normal = _plain_method("multivariate_normal")
for _name, _given in _NOISE.items():
    setattr(_Heard, _name, _noise_method(_name, *_given))


class HeardGenerator(_Heard, PlainGenerator):
    """`numpy.random.Generator`, intercepted."""

    dpaudit_plain = PlainGenerator

    def __init__(self, bit_generator: Any = None) -> None:
        super().__init__(np.random.PCG64() if bit_generator is None else bit_generator)
        self.dpaudit_keep_seed(getattr(bit_generator, "dpaudit_seed", None))

    @intercepted
    def integers(
        self, low: Any, high: Any = None, size: Any = None, *rest: Any, **more: Any
    ) -> Any:
        """As numpy's; with one number per record, a selection of records."""
        world, where = marks.world, site()
        low, high = marks.as_count(low), marks.as_count(high)
        first, count = (0, low) if high is None else (low, high)
        is_count = isinstance(count, (int, np.integer)) and not rest and not more
        own, other = world.order.rows
        if is_count and first == 0 and own != other and count in (own, other):
            return self._pick(where, count, size, True, {})
        if is_count and size is not None and count - first >= _WORDS:
            drawn = self._stream(where, size).integers(0, count - first, size)
            made = coins.whole_coin(np.asarray(drawn), int(count - first), where)
            return made + first if first else made
        return draw_plainly(self, "integers", (low, high, size, *rest), more, where)

    @intercepted
    def permuted(self, x: Any, axis: Any = None, out: Any = None) -> Any:
        """As numpy's, the same in both worlds."""
        where = site()
        marks.world.note("draw", where, "permuted", np.shape(x))
        return self._stream(where, np.shape(x)).permuted(x, axis=axis, out=out)

    def spawn(self, n_children: int) -> Any:
        """Children, also intercepted."""
        return [HeardGenerator(child.bit_generator) for child in super().spawn(n_children)]


class HeardState(_Heard, PlainState):
    """`numpy.random.RandomState`, intercepted."""

    dpaudit_plain = PlainState

    def __init__(self, seed: Any = None) -> None:
        super().__init__(seed)
        is_bits = isinstance(seed, np.random.BitGenerator)
        self.dpaudit_keep_seed(getattr(seed, "dpaudit_seed", None) if is_bits else _seed_text(seed))

    def seed(self, seed: Any = None) -> None:
        """As numpy's; remembers its seed."""
        super().seed(seed)
        self.dpaudit_keep_seed(_seed_text(seed))

    def random_sample(self, size: Any = None) -> Any:
        """As numpy's."""
        return self.random(size)

    def rand(self, *shape: int) -> Any:
        """As numpy's."""
        return self.random(shape if shape else None)

    def randn(self, *shape: int) -> Any:
        """As numpy's."""
        return self.standard_normal(shape if shape else None)


for _kind in (HeardGenerator, HeardState):
    for _name, _method in vars(_kind.dpaudit_plain).items():
        is_other = _name not in vars(_kind) and _name not in vars(_Heard)
        if is_other and callable(_method) and not _name.startswith("_"):
            setattr(_kind, _name, _plain_method(_name))
