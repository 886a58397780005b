"""Python's own modules: `random`, `secrets`, and `math` and `bisect`, which are used on draws.

Code makes noise of uniform draws with them, such as `-b * math.log(u)`.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import math
import random as plain_random
from typing import Any, Callable, Dict, Tuple

import numpy as np

from .. import choices, coins, marks
from ..channel import site
from . import steps
from .numpy_hook import Seeded, intercepted, shared_order, single_coin

_Plain = plain_random.Random
_SAME = ("log1p", "log2", "log10", "exp", "expm1", "sqrt", "sin", "cos", "tan", "fabs", "copysign")
"""Functions of `math` that numpy has under the same name."""


def _is_exact(value: Any) -> bool:
    """Whether a value is a plain number that is exact as a float, and whose sums are finite."""
    return type(value) in (int, float, np.int64, np.float64) and abs(value) < 2**53


class HeardRandom(Seeded, _Plain):
    """`random.Random`, intercepted; other methods build on `random()` and `getrandbits`."""

    dpaudit_plain = _Plain

    def seed(self, *args: Any, **kwargs: Any) -> None:
        """As Python's; remembers its seed."""
        super().seed(*args, **kwargs)
        given = args[0] if args else kwargs.get("a")
        self.dpaudit_keep_seed(None if given is None else repr(given))

    def random(self) -> Any:
        """A coin."""
        return self.uniform()

    def uniform(self, a: Any = 0.0, b: Any = 1.0) -> Any:
        """A coin, scaled."""
        if not marks.world.hears_draw:
            return a + (b - a) * self.dpaudit_plain.random(self)
        where, world = site(), marks.world
        self.dpaudit_count_draw(where)
        if world.natural and where[:2] not in world.bent:
            return a + (b - a) * self.dpaudit_draw("random")
        # a coin is made in its range at once, unless its range or its ends are followed
        in_range = _is_exact(a) and _is_exact(b) and not world.follows_range(where)
        low, high = (float(a), float(b)) if in_range else (0.0, 1.0)
        if world.natural:
            drawn = coins.coin(self.dpaudit_draw("random"), where, low=low, high=high)
        else:
            drawn = single_coin(where, lambda stream: stream.random(), low=low, high=high)
        return drawn if in_range else a + (b - a) * drawn

    @intercepted
    def getrandbits(self, k: int) -> Any:
        """A coin of 2**k values."""
        where = site()
        marks.world.note("parameters", where, "bits", k)
        if not k:
            return 0
        size = math.ceil(k / 8)
        drawn = int.from_bytes(marks.world.stream(where, None).bytes(size), "big")
        return coins.whole_coin(drawn >> (8 * size - k), 2**k, where)

    @intercepted
    def _randbelow(self, n: int) -> Any:
        where = site()
        marks.world.note("parameters", where, "below", n)
        stream = marks.world.stream(where, None)
        drawn = int(stream.integers(n)) if n < 2**63 else int(stream.random() * n)
        return coins.whole_coin(drawn, n, where)

    def choices(
        self, population: Any, weights: Any = None, *, cum_weights: Any = None, k: int = 1
    ) -> Any:
        """Draws with known probabilities."""
        if not marks.world.hears_draw or (weights is None and cum_weights is None):
            return super().choices(population, weights, cum_weights=cum_weights, k=k)
        marks.world.count_draw(site())
        if marks.world.natural:
            given = {"weights": weights, "cum_weights": cum_weights, "k": k}
            return self.dpaudit_draw("choices", population, **given)
        if weights is None:
            given = list(cum_weights)
            weights = [high - low for low, high in zip([0, *given], given)]
        weights = [float(marks.end_marks(weight, "choices")) for weight in weights]
        return [population[int(place)] for place in choices.draw_places(weights, (k,), site())]

    @intercepted
    def shuffle(self, x: Any) -> None:
        """Puts the common records in the same order in both worlds."""
        where = site()
        order = shared_order(where, len(x), marks.world.stream(where, len(x)))
        x[:] = [x[at] for at in order]


def _noise_method(
    name: str, law: str, parameters: Callable[..., Tuple[Any, Any, Any]]
) -> Callable[..., Any]:
    """A method that draws noise of a law, whose value before noise, scale and shape are given."""
    plain = getattr(_Plain, name)
    signature = inspect.signature(plain)

    @functools.wraps(plain)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        given = bound.args[1:]
        if not marks.world.hears_draw:
            return getattr(self.dpaudit_plain, name)(self, *given)
        where = site()
        marks.world.count_draw(where)
        loc, scale, shape = parameters(*(marks.end_marks(value, name) for value in given))
        return steps.draw_around(
            where,
            law,
            loc,
            scale,
            None,
            natural=lambda: self.dpaudit_draw(name, *given),
            shape=shape,
            seed=self.dpaudit_seed,
        )

    return method


for _name, _law, _parameters in (
    ("gauss", "gaussian", lambda mu, sigma: (mu, sigma, 1.0)),
    ("normalvariate", "gaussian", lambda mu, sigma: (mu, sigma, 1.0)),
    ("expovariate", "exponential", lambda lambd: (0.0, 1.0 / lambd, 1.0)),
    ("gammavariate", "gamma", lambda alpha, beta: (0.0, beta, alpha)),
):
    setattr(HeardRandom, _name, _noise_method(_name, _law, _parameters))


class HeardSystem(HeardRandom, plain_random.SystemRandom):
    """`random.SystemRandom`, intercepted."""

    dpaudit_plain = plain_random.SystemRandom

    def seed(self, *args: Any, **kwargs: Any) -> None:
        """Stays without a seed."""


def install(library: Any) -> None:
    """Replaces the classes and the functions of a module."""
    _INSTALLERS[library.__name__](library)


def _install_in_random(library: Any) -> None:
    everywhere = HeardRandom()
    library.Random, library.SystemRandom, library._inst = HeardRandom, HeardSystem, everywhere
    for name in library.__all__:
        if hasattr(everywhere, name):
            setattr(library, name, getattr(everywhere, name))


def _install_in_secrets(library: Any) -> None:
    system = HeardSystem()
    library.SystemRandom, library._sysrand = HeardSystem, system
    library.randbits, library.choice = system.getrandbits, system.choice
    library.randbelow = lambda n: system._randbelow(n)


def _install_in_statistics(library: Any) -> None:
    for name in library.__all__:
        function = getattr(library, name)
        if not isinstance(function, type):
            setattr(library, name, marks.with_plain_arguments(function))


def _install_in_json(library: Any) -> None:
    """Has the encoder write marked numbers as the numbers that they are."""
    plain = library.JSONEncoder.iterencode

    def iterencode(self: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        return plain(self, _plain_document(value), *args, **kwargs)

    library.JSONEncoder.iterencode = iterencode


def _plain_document(value: Any) -> Any:
    """A document whose numbers carry no marks."""
    if isinstance(value, dict):
        return {key: _plain_document(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain_document(part) for part in value]
    return marks.end_marks(value, "json")


def _install_in_math(library: Any) -> None:
    """Replaces its functions, unless numba is there, which compiles only Python's own."""
    if importlib.util.find_spec("numba") is not None:
        return
    for name in _SAME:
        setattr(library, name, _follow_draws(getattr(library, name), getattr(np, name)))
    library.log = _follow_draws(library.log, _log)
    library.pow = _follow_draws(library.pow, np.power)


def _log(value: Any, base: Any = np.e) -> Any:
    return np.log(value) if base == np.e else np.log(value) / np.log(base)


def _follow_draws(plain: Callable[..., Any], followed: Callable[..., Any]) -> Callable[..., Any]:
    """A function of uniform draws that is followed; other marks end."""

    @functools.wraps(plain)
    def wrapper(*values: Any) -> Any:
        if any(isinstance(value, coins.DrawNumber) for value in values) and marks.world.hears:
            return followed(*values)
        return plain(*(marks.end_marks(value, plain.__name__) for value in values))

    return wrapper


def _install_in_bisect(library: Any) -> None:
    """Replaces the functions that look up a value in a list."""
    for name in ("bisect", "bisect_left", "bisect_right"):
        side = "left" if name.endswith("left") else "right"
        setattr(library, name, _follow_look_up(getattr(library, name), side))


def _follow_look_up(plain: Callable[..., Any], side: str) -> Callable[..., Any]:
    @functools.wraps(plain)
    def wrapper(a: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(x, coins.CoinNumber) and not args and not kwargs and marks.world.hears:
            table = np.asarray(marks.end_marks(list(a)))
            return int(choices.invert(table, x.array, site(), side=side))
        return plain(a, x, *args, **kwargs)

    return wrapper


_INSTALLERS: Dict[str, Callable[[Any], None]] = {
    "bisect": _install_in_bisect,
    "json": _install_in_json,
    "math": _install_in_math,
    "random": _install_in_random,
    "secrets": _install_in_secrets,
    "statistics": _install_in_statistics,
}
