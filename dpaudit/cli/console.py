"""What every command shares: exit codes, the two output streams, errors in one line."""

from __future__ import annotations

import functools
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from enum import IntEnum, StrEnum
from types import FrameType
from typing import Any, NoReturn, ParamSpec, TextIO

import typer
from rich.console import Console

from dpaudit.cli.options import spelled
from dpaudit.errors import DpauditError, InputError, InterruptedRunError
from dpaudit.formatting import error_line, one_line, visible
from dpaudit.results.verdict import Verdict

P = ParamSpec("P")


class ExitCode(IntEnum):
    """The exit codes."""

    PASS = 0
    VIOLATION = 1
    USAGE = 2
    INCONCLUSIVE = 3
    INTERNAL = 4
    INTERRUPTED = 130


class FailOn(StrEnum):
    """Least severe verdict that fails."""

    VIOLATION = "violation"
    INCONCLUSIVE = "inconclusive"
    NEVER = "never"


def exit_code(verdict: Verdict, fail_on: FailOn) -> ExitCode:
    """The exit code of a verdict; an invalid run passes only where nothing fails."""
    if fail_on is FailOn.NEVER or verdict is Verdict.CONSISTENT:
        return ExitCode.PASS
    if verdict is Verdict.VIOLATION:
        return ExitCode.VIOLATION
    if verdict is Verdict.INCONCLUSIVE and fail_on is FailOn.VIOLATION:
        return ExitCode.PASS
    return ExitCode.INCONCLUSIVE


_result_stream: ContextVar[TextIO] = ContextVar("result_stream")


class VisibleConsole(Console):
    """A console on which no foreign string steers the terminal: neither names, paths nor errors."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Prints; in strings whatever would steer or turn text round is made visible."""
        super().print(*(visible(of) if isinstance(of, str) else of for of in objects), **options)


def results() -> Console:
    """Standard output: the result and nothing else; lines are never wrapped or coloured."""
    stream = _result_stream.get(sys.stdout)
    return VisibleConsole(file=stream, soft_wrap=True, highlight=False, markup=False, no_color=True)


def messages() -> Console:
    """Standard error: progress, notes, errors."""
    return VisibleConsole(file=sys.stderr, soft_wrap=True, highlight=False, markup=False)


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """Turns whatever a command raises into one line on standard error and an exit code."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            # A generator's file may print while it is imported: not among the results.
            _result_stream.set(sys.stdout)
            with redirect_stdout(sys.stderr), _termination_as_interrupt():
                command(*args, **kwargs)
        except typer.Exit:
            raise
        except InputError as error:
            _fail(f"error: {spelled(one_line(str(error)), options=kwargs)}", ExitCode.USAGE)
        except InterruptedRunError as error:
            _fail(str(error), ExitCode.INTERRUPTED)
        except KeyboardInterrupt:
            _fail("interrupted", ExitCode.INTERRUPTED)
        except BrokenPipeError:
            sys.stdout = None  # the reader has gone: nothing left to flush
            raise typer.Exit(ExitCode.PASS) from None
        except DpauditError as error:
            _fail(f"error: {one_line(str(error))}", ExitCode.INTERNAL)
        except Exception as error:  # noqa: BLE001 - a crash must not exit with 1, a violation's code
            messages().print(traceback.format_exc())
            _fail(f"internal error: {error_line(error)}", ExitCode.INTERNAL)

    return run


def _fail(message: str, code: ExitCode) -> NoReturn:
    messages().print(message)
    raise typer.Exit(code)


@contextmanager
def _termination_as_interrupt() -> Iterator[None]:
    """A polite kill is a Ctrl-C: what finished is kept and workers are stopped."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
