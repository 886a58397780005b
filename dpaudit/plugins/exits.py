"""How code of generators and attacks may end processes; no numpy, no pandas."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from dpaudit.formatting import how_it_died

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


def go_on_apart() -> None:
    """Goes on in a child process; the parent ends as it does, by 2 where a signal ended it."""
    child = os.fork()
    if not child:
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to both
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda given, _: os.kill(child, given))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code < 0:
        line = f"error: the generator's process died{how_it_died(code)}: repair the generator\n"
        os.write(2, line.encode())
    end_at_once(2 if code < 0 else code)


def _refusal(name: str, process: int) -> Callable[..., NoReturn]:
    """The function that replaces one of `_ENDINGS` in a process."""

    def refuse(*args: object) -> NoReturn:
        if os.getpid() != process:
            _REAL[name](*args)
        raise SystemExit(f"it calls os.{name} in the program's own process")

    return refuse
