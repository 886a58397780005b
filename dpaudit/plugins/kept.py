"""Values that a generator may keep from one trial to the next, because no trial affects them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CodeType
from typing import Any, Generic, TypeVar

from dpaudit.seeds import seeded_globals

T = TypeVar("T")

_SEED = 0
_kept: dict[tuple[str, str, str], Any] = {}
"""What was loaded in this process: by module, function, and what that function does."""


class Kept(Generic[T]):
    """A function without arguments that is called once in each worker process; see `keep`."""

    def __init__(self, function: Callable[[], T]) -> None:
        """Takes the function.

        Raises:
            TypeError: If it has arguments or holds variables of another function: what it returns
                could then depend on a trial.
        """
        code = getattr(function, "__code__", None)
        if code is None or function.__closure__ or code.co_argcount + code.co_kwonlyargcount:
            raise TypeError("keep takes a function without arguments, outside any other function")
        self.function = function
        functools.update_wrapper(self, function)

    def __call__(self) -> T:
        """What the function returned when it was first called in this process."""
        function: Any = self.function
        key = (function.__module__, function.__qualname__, _text_of(function.__code__))
        if key not in _kept:
            with seeded_globals(_SEED):
                _kept[key] = self.function()
        found: T = _kept[key]
        return found


def keep(function: Callable[[], T]) -> Kept[T]:
    """Decorates a function that loads something expensive: a library's tables, a compiled model.

    A generator in a file comes to each trial anew, with the globals of its file. What such a
    function returns stays in the worker process instead, for all trials that it runs.

    It must not depend on which trial asks first, and no trial may change it: otherwise one trial
    could affect another. A call leaves the global random generators unchanged.

    Args:
        function: Without arguments, at the top level of a file.

    Returns:
        The function; from the second call on in a process it returns its first result.

    Raises:
        TypeError: If it is another kind of function.
    """
    return Kept(function)


def _text_of(code: CodeType) -> str:
    """What a function does, as text: that of another version of the same file differs."""
    parts = (_text_of(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts)
    return "|".join((code.co_code.hex(), *code.co_names, *parts))
