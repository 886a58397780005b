"""Python's own modules: `random` and `secrets`, and `math`, whose functions are used on draws.

Code makes noise of uniform draws with them, such as `-b * math.log(u)`.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
import math
import random as plain_random
from typing import Any, Callable

import numpy as np

from .. import marks
from ..channel import site
from .numpy_hook import Seeded, intercepted, shared_order, single_coin

_Plain = plain_random.Random
_NUMBERS = (float, int)
_SAME = ("log1p", "log2", "log10", "exp", "expm1", "sqrt", "sin", "cos", "tan", "fabs", "copysign")
"""Functions of `math` that numpy has under the same name."""


class HeardRandom(Seeded, _Plain):
    """`random.Random`, intercepted; other methods build on `random()` and `getrandbits`."""

    dpaudit_plain = _Plain

    def seed(self, *args: Any, **kwargs: Any) -> None:
        """As Python's; remembers its seed."""
        super().seed(*args, **kwargs)
        given = args[0] if args else kwargs.get("a")
        self.dpaudit_seeded(None if given is None else repr(given)[:200])

    def getstate(self) -> Any:
        """As Python's."""
        return marks.world.saved(self.dpaudit_start, super().getstate())

    def setstate(self, state: Any) -> None:
        """As Python's."""
        super().setstate(state)
        self.dpaudit_restored(state)

    @intercepted
    def random(self) -> Any:
        """A coin."""
        return single_coin(site(), lambda stream: stream.random())

    @intercepted
    def getrandbits(self, k: int) -> Any:
        """A coin of 2**k values."""
        where = site()
        marks.world.note("parameters", where, "bits", k)
        if not k:
            return 0
        size = math.ceil(k / 8)
        drawn = int.from_bytes(marks.world.stream(where, None).bytes(size), "big")
        return marks.whole_coin(drawn >> (8 * size - k), 2**k, where)

    @intercepted
    def _randbelow(self, n: int) -> Any:
        where = site()
        marks.world.note("parameters", where, "below", n)
        stream = marks.world.stream(where, None)
        return marks.whole_coin(
            int(stream.integers(n)) if n < 2**63 else int(stream.random() * n), n, where
        )

    def uniform(self, a: Any, b: Any) -> Any:
        """A coin, scaled."""
        if self.dpaudit_hears and type(a) in _NUMBERS and type(b) in _NUMBERS:
            where = site()
            drawn = marks.world.stream(where, None).random()
            return marks.coin(drawn, where, low=a, high=b)
        return a + (b - a) * self.random()

    @intercepted
    def gauss(self, mu: Any = 0.0, sigma: Any = 1.0) -> Any:
        """Gaussian noise."""
        return self._located("gaussian", mu, sigma, lambda rng: rng.normal())

    @intercepted
    def normalvariate(self, mu: Any = 0.0, sigma: Any = 1.0) -> Any:
        """Gaussian noise."""
        return self.gauss(mu, sigma)

    @intercepted
    def expovariate(self, lambd: Any = 1.0) -> Any:
        """Exponential noise."""
        return self._located("exponential", 0.0, 1.0 / lambd, lambda rng: rng.exponential())

    @intercepted
    def gammavariate(self, alpha: Any, beta: Any) -> Any:
        """Gamma noise."""
        where = site()
        marks.world.drew(self.dpaudit_start, "gamma", None, where)
        drawn = float(marks.world.stream(where, None).gamma(alpha) * beta)
        return marks.noise(drawn, "gamma", where, scale=beta, shape=alpha, seed=self.dpaudit_seed)

    def _located(self, law: str, loc: Any, scale: Any, draw: Any) -> Any:
        where, world = site(), marks.world
        loc, scale = (marks.unmarked(one, where) for one in (loc, scale))
        world.drew(self.dpaudit_start, law, None, where)
        drawn = float(draw(world.stream(where, None)) * scale)
        if world.is_located(where, loc, scale):
            return drawn + loc
        made = marks.noise(drawn, law, where, scale=scale, seed=self.dpaudit_seed)
        if world.is_nothing(where, loc):
            return made
        return marks.answer(loc, made.array.parts, where)

    def choices(
        self, population: Any, weights: Any = None, *, cum_weights: Any = None, k: int = 1
    ) -> Any:
        """Draws with known probabilities."""
        if not self.dpaudit_hears or (weights is None and cum_weights is None):
            return super().choices(population, weights, cum_weights=cum_weights, k=k)
        where = site()
        if weights is None:
            given = list(cum_weights)
            weights = [high - low for low, high in zip([0, *given], given)]
        weights = [float(marks.unmarked(one, where)) for one in weights]
        if where[:2] in marks.world.asked:
            places = marks.chosen(weights, (k,), where)
        else:
            marks.world.note("choose", where, np.asarray(weights))
            total = list(itertools.accumulate(weights))
            drawn = marks.world.stream(where, k).random(k) * total[-1]
            places = np.minimum(np.searchsorted(total, drawn, side="right"), len(total) - 1)
        return [population[int(place)] for place in places]

    @intercepted
    def shuffle(self, x: Any) -> None:
        """Puts the common records in the same order in both worlds."""
        where = site()
        order = shared_order(where, len(x), marks.world.stream(where, len(x)))
        x[:] = [x[at] for at in order]


class HeardSystem(HeardRandom, plain_random.SystemRandom):
    """`random.SystemRandom`, intercepted."""

    dpaudit_plain = plain_random.SystemRandom

    def seed(self, *args: Any, **kwargs: Any) -> None:
        """Stays without a seed."""


_installed = False


def install(library: Any) -> None:
    """Replaces the classes and the functions of a module."""
    global _installed
    if library.__name__ == "math":
        _install_in_math(library)
        return
    if library.__name__ == "secrets":
        import secrets

        system = HeardSystem()
        secrets.SystemRandom = HeardSystem
        secrets._sysrand = system
        secrets.randbits, secrets.choice = system.getrandbits, system.choice
        secrets.randbelow = lambda n: system._randbelow(n)
        return
    if _installed:
        return
    _installed = True
    library.Random, library.SystemRandom = HeardRandom, HeardSystem
    everywhere = HeardRandom()
    library._inst = everywhere
    for name in library.__all__:
        if hasattr(everywhere, name):
            setattr(library, name, getattr(everywhere, name))


def _install_in_math(library: Any) -> None:
    """Replaces its functions, unless numba is there, which compiles only Python's own."""
    if importlib.util.find_spec("numba") is not None:
        return
    for name in _SAME:
        setattr(library, name, _of_draws(getattr(library, name), getattr(np, name)))
    library.log = _of_draws(library.log, _log)
    library.pow = _of_draws(library.pow, np.power)


def _log(value: Any, base: Any = np.e) -> Any:
    return np.log(value) if base == np.e else np.log(value) / np.log(base)


def _of_draws(plain: Callable[..., Any], followed: Callable[..., Any]) -> Callable[..., Any]:
    """A function that keeps the mark of a uniform draw."""

    @functools.wraps(plain)
    def heard(*values: Any) -> Any:
        if marks.world.hears and any(isinstance(one, marks.DRAWS) for one in values):
            return followed(*values)
        return plain(*values)

    return heard
