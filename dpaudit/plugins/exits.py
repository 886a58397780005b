"""Keeps code of generators and attacks from ending the program; standard library only."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

_ENDINGS = ("_exit", "execv", "execve")
"""Functions of `os` that end the program at once, before it sets its exit code."""

_REAL = {name: getattr(os, name) for name in _ENDINGS}


@contextmanager
def exits_refused() -> Iterator[None]:
    """Makes calls that would end this process without the program's exit code raise SystemExit."""
    before = {name: getattr(os, name) for name in _ENDINGS}
    refuse_exits()
    try:
        yield
    finally:
        for name, function in before.items():
            setattr(os, name, function)


def refuse_exits() -> None:
    """As `exits_refused`, but for good; processes that this one forks may end as they like."""
    process = os.getpid()
    for name in _ENDINGS:
        setattr(os, name, _refusal(name, process))


def end_at_once(code: int) -> NoReturn:
    """Ends this process without waiting for threads that foreign code has left running."""
    _REAL["_exit"](code)
    raise AssertionError("the process has ended")


def _refusal(name: str, process: int) -> Callable[..., NoReturn]:
    """The function that replaces one of `_ENDINGS` in a process."""

    def refuse(*args: object) -> NoReturn:
        if os.getpid() != process:
            _REAL[name](*args)
        raise SystemExit(f"it calls os.{name} in the program's own process")

    return refuse
