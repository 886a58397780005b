"""Python's `math`, of uniform draws: code makes noise of them, such as `-b * math.log(u)`."""

from __future__ import annotations

import functools
import importlib.util
from typing import Any, Callable

import numpy as np

from .. import marks

_SAME = ("log1p", "log2", "log10", "exp", "expm1", "sqrt", "sin", "cos", "tan", "fabs", "copysign")
"""Functions that numpy has under the same name."""


def install(library: Any) -> None:
    """Replaces the functions, unless numba is there, which compiles only Python's own."""
    if importlib.util.find_spec("numba") is not None:
        return
    for name in _SAME:
        setattr(library, name, _heard(getattr(library, name), getattr(np, name)))
    library.log = _heard(library.log, _log)
    library.pow = _heard(library.pow, np.power)


def _log(value: Any, base: Any = np.e) -> Any:
    return np.log(value) if base == np.e else np.log(value) / np.log(base)


def _heard(plain: Callable[..., Any], followed: Callable[..., Any]) -> Callable[..., Any]:
    """A function that keeps the mark of a uniform draw."""

    @functools.wraps(plain)
    def heard(*values: Any) -> Any:
        if marks.world.hears and any(isinstance(one, marks.DRAWS) for one in values):
            return followed(*values)
        return plain(*values)

    return heard
