"""Values that a generator may keep from one trial to the next, because no trial affects them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CodeType
from typing import Any, Generic, TypeVar

from dpaudit.seeds import seeded_globals

T = TypeVar("T")

_SEED = 0
_kept: dict[tuple[str, str, CodeType], Any] = {}
"""Values loaded in this process, by module, function and the code of the function."""


class Kept(Generic[T]):
    """A function without arguments that is called once in each worker process; see `keep`."""

    def __init__(self, function: Callable[[], T]) -> None:
        """Takes the function.

        Raises:
            TypeError: If it has arguments or uses variables of another function: its result could
                then depend on a trial.
        """
        code = getattr(function, "__code__", None)
        if code is None or function.__closure__ or code.co_argcount + code.co_kwonlyargcount:
            raise TypeError("keep takes a function without arguments, outside any other function")
        self.function = function
        functools.update_wrapper(self, function)

    def __call__(self) -> T:
        """Returns the function's first result in this process."""
        function: Any = self.function
        key = (function.__module__, function.__qualname__, function.__code__)
        if key not in _kept:
            with seeded_globals(_SEED):
                _kept[key] = self.function()
        value: T = _kept[key]
        return value


def keep(function: Callable[[], T]) -> Kept[T]:
    """Decorates a function that loads something expensive: a library's tables, a compiled model.

    A generator in a file is loaded anew for each trial, with the globals of its file. The result of
    a decorated function instead stays in the worker process, for all trials that it runs.

    The result must not depend on which trial asks first, and no trial may change it: otherwise one
    trial could affect another. A call leaves the global random generators unchanged.

    Args:
        function: A function without arguments, at the top level of a file.

    Returns:
        The function; later calls in a process return its first result.

    Raises:
        TypeError: If it is another kind of function.
    """
    return Kept(function)
