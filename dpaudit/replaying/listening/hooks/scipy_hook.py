"""scipy.stats: `rvs` of noise distributions, which draws and adds `loc` itself, and quantiles.

Other distributions draw from numpy's generators, which are intercepted; if their `loc` depends on
the data, the law of the sum is not known.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, Optional, Tuple

import numpy as np

from .. import coins, marks
from ..channel import site
from . import steps

_LAWS: Dict[str, Tuple[str, Callable[..., Tuple[Any, Any]]]] = {
    "laplace": ("laplace", lambda: (1.0, 1.0)),
    "norm": ("gaussian", lambda: (1.0, 1.0)),
    "gumbel_r": ("gumbel", lambda: (1.0, 1.0)),
    "gumbel_l": ("gumbel", lambda: (1.0, 1.0)),
    "logistic": ("logistic", lambda: (1.0, 1.0)),
    "expon": ("exponential", lambda: (1.0, 1.0)),
    "gamma": ("gamma", lambda a: (1.0, a)),
    "erlang": ("gamma", lambda a: (1.0, a)),
    "geom": ("geometric", lambda p: (1.0, p)),
    "dlaplace": ("discrete_laplace", lambda a: (1.0 / a, 1.0)),
}
"""The law for a distribution's name; and of its own parameters, the factor of scale and shape."""


def install(library: Any) -> None:
    """Replaces `rvs` of all distributions, and `ppf` and `isf` of continuous ones."""
    generic = library.rv_continuous.__mro__[1]
    generic.rvs = _follow_rvs(generic.rvs)
    for name in ("ppf", "isf"):
        setattr(library.rv_continuous, name, _follow_quantile(getattr(library.rv_continuous, name)))


def _follow_quantile(quantile: Callable[..., Any]) -> Callable[..., Any]:
    """A quantile function that may be given uniform draws."""

    @functools.wraps(quantile)
    def wrapper(self: Any, q: Any, *args: Any, **kwargs: Any) -> Any:
        is_draw = isinstance(q, (coins.DrawArray, coins.DrawNumber))
        if not marks.world.hears or not is_draw:
            return quantile(self, q, *args, **kwargs)
        own, loc, scale = self._parse_args(*args, **kwargs)

        def at(values: Any) -> Any:
            return quantile(self, values, *own)

        return loc + scale * coins.bend(at, q)

    return wrapper


def _follow_rvs(rvs: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = {
            key: value for key, value in kwargs.items() if key not in ("random_state", "discrete")
        }
        own, loc, scale, size = self._parse_args_rvs(*args, **given)
        if self.name not in _LAWS:
            moved = bool(np.any(marks.plain_array(loc) != 0))
            if moved and not marks.world.is_equal("spend", site(), loc):
                steps.report_unfollowed(
                    f"scipy's {self.name}, whose law replay does not know, around a value"
                )
            return rvs(self, *args, **kwargs)
        law, parameters = _LAWS[self.name]
        factor, shape = parameters(*(marks.end_marks(parameter, "scipy") for parameter in own))
        sign = -1 if self.name == "gumbel_l" else 1
        state = kwargs.get("random_state")

        def draw() -> Any:
            return sign * rvs(self, *marks.without_marks(args), **kwargs)

        noisy = steps.add_noise(
            sign * marks.array_of(loc),
            law,
            library=lambda _: draw(),
            redraw=None if isinstance(state, (int, np.integer)) else draw,
            scale=scale * factor,
            shape=shape,
            size=size,
            seed=_seed_of(self.random_state if state is None else state),
        )
        return -noisy if sign < 0 else noisy

    return steps.intercept(rvs, wrapper)


def _seed_of(state: Any) -> Optional[str]:
    """The seed of a random state, noted where scipy makes a generator of it."""
    if isinstance(state, (int, np.integer)):
        marks.world.note_seed(repr(int(state)))
        return repr(int(state))
    seed: Optional[str] = getattr(state, "dpaudit_seed", None)
    return seed
