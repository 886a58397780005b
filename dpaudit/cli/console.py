"""What every command shares: exit codes, the two output streams, errors in one line."""

from __future__ import annotations

import errno
import functools
import io
import logging
import os
import re
import shlex
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from contextvars import ContextVar
from enum import IntEnum
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, NoReturn, ParamSpec, Protocol, TextIO, TypeVar

import typer
from rich.console import Console

from dpaudit.errors import DpauditError, InputError, InterruptedRunError
from dpaudit.files import io_reason, write_whole
from dpaudit.formatting import (
    Row,
    error_line,
    error_text,
    one_line,
    row_lines,
    visible,
    with_short_words,
)
from dpaudit.model.choices import FailOn
from dpaudit.plugins.exits import end_at_once
from dpaudit.results.verdict import Verdict

if TYPE_CHECKING:
    from dpaudit.report.page import Page

P = ParamSpec("P")
T = TypeVar("T")


class ExitCode(IntEnum):
    """The exit codes."""

    PASS = 0
    VIOLATION = 1
    USAGE = 2
    INCONCLUSIVE = 3
    INTERNAL = 4
    INTERRUPTED = 130


EXIT_CODES: Final = {
    ExitCode.PASS: "passed",
    ExitCode.VIOLATION: "violation or leak",
    ExitCode.USAGE: "wrong usage or input",
    ExitCode.INCONCLUSIVE: "inconclusive, overspent or invalid",
    ExitCode.INTERNAL: "internal error",
    ExitCode.INTERRUPTED: "interrupted; the same command resumes an audit",
}
"""Their meaning, as the help of every command lists them."""


def exit_code(verdict: Verdict, fail_on: FailOn) -> ExitCode:
    """The exit code of a verdict; an invalid run passes only under `FailOn.NEVER`."""
    if fail_on is FailOn.NEVER or verdict in (Verdict.CONSISTENT, Verdict.MEASURED):
        return ExitCode.PASS
    if verdict is Verdict.VIOLATION:
        return ExitCode.VIOLATION
    if verdict in (Verdict.INCONCLUSIVE, Verdict.OVERSPENT) and fail_on is FailOn.VIOLATION:
        return ExitCode.PASS
    return ExitCode.INCONCLUSIVE


REPEATABLE = {
    "parameters": "-p",
    "attacks": "--attack",
    "links": "--link",
    "samplers": "--sampler",
    "secrets": "--secret",
    "classifiers": "--classifier",
}
"""Settings with several values, and the option that gives one of them."""


def spell_options(message: str, *, options: Collection[str] = ()) -> str:
    """A message of the core with its settings spelled as options: `` `one_run` `` as --one-run.

    Args:
        message: The message; it names settings in backquotes, as Python spells them.
        options: Names of the command's own options, in addition to the settings of an audit.

    Returns:
        The message.
    """
    from dpaudit.auditing.games import by_name, keywords

    def as_option(match: re.Match[str]) -> str:
        name, value = match.groups()
        if "set" in options and name in by_name():
            word = f"--set {name.replace('_', '-')}"
            return (
                word if value is None else f"{word}={value.lower() if value in _BOOLS else value}"
            )
        if name not in keywords() and name not in options:
            return match[0]
        option = REPEATABLE.get(name, f"--{name.replace('_', '-')}")
        return option if value in (None, "True") else f"{option} {value}"

    return re.sub(r"`(\w+)(?:=\"?([^`\"]*)\"?)?`", as_option, message)


_BOOLS: Final = ("True", "False")


class _Tolerant(io.TextIOBase):
    """A stream that survives a closed pipe or a full disk, and keeps the error.

    The exit code states the finding, so a failure to print must not change it.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self.failure: OSError | None = None
        if stream is None:  # closed before the program began
            self.failure = OSError(errno.EBADF, os.strerror(errno.EBADF))

    @property
    def encoding(self) -> str:  # type: ignore[override]  # that of a text stream can be set
        """The encoding of the stream, which decides the characters of a progress bar."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return self.failure is None and self._stream is not None and self._stream.isatty()

    def fileno(self) -> int:
        """The file descriptor, for the width of a terminal."""
        if self._stream is None:
            raise io.UnsupportedOperation("fileno")
        return self._stream.fileno()

    def write(self, text: str) -> int:
        """Writes a text, or notes why that fails."""
        self._try(lambda stream: stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Writes what is buffered, or notes why that fails."""
        self._try(lambda stream: stream.flush())

    def _try(self, action: Callable[[TextIO], object]) -> None:
        if self._stream is None or self.failure is not None:
            return
        try:
            action(self._stream)
        except OSError as error:
            self.failure = error
            _give_up(self._stream)  # else the next flush, for example by loky, fails too
        except ValueError:  # someone closed it
            self.failure = OSError(errno.EBADF, os.strerror(errno.EBADF))


_result_stream: ContextVar[_Tolerant] = ContextVar("result_stream")


class VisibleConsole(Console):
    """A console that escapes control characters in foreign strings: names, paths and errors."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Prints, with control and direction characters of strings made visible."""
        super().print(*(visible(of) if isinstance(of, str) else of for of in objects), **options)


class _MessageConsole(VisibleConsole):
    """A visible console that cuts words which are longer than any path or name."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Prints, with long words cut."""
        short = (with_short_words(of) if isinstance(of, str) else of for of in objects)
        super().print(*short, **options)


def results() -> Console:
    """Standard output: the result and nothing else; lines are never wrapped or coloured."""
    stream: Any = _result_stream.get(None) or _Tolerant(sys.stdout)
    return VisibleConsole(
        file=stream, soft_wrap=True, highlight=False, markup=False, emoji=False, no_color=True
    )


def messages(*, quiet: bool = False) -> Console:
    """Standard error: progress, notes, errors; nothing is printed there if `quiet`."""
    stream: Any = _Tolerant(sys.stderr)
    return _MessageConsole(
        file=stream, soft_wrap=True, highlight=False, markup=False, emoji=False, quiet=quiet
    )


class Printable(Protocol):
    """The finding of a command, with its text, headline and JSON."""

    @property
    def headline(self) -> str:
        """The finding in one line."""
        ...

    def to_json(self) -> str:
        """The finding as one JSON document."""
        ...


def show(
    finding: Printable,
    *,
    json: bool,
    quiet: bool,
    text: Callable[[str], str] = str,
    rows: Iterable[Row] = (),
) -> None:
    """Prints the finding of a command.

    Args:
        finding: The finding.
        json: Whether to print one JSON document.
        quiet: Whether to print one line only.
        text: Applied to the text if all of it is printed.
        rows: Printed below the text.
    """
    if json:
        results().print(finding.to_json(), end="")
    elif quiet:
        results().print(finding.headline)
    else:
        results().print("\n".join([text(str(finding)), *row_lines(rows)]))


def progress_of(line: Callable[[T], str], *, quiet: bool) -> Callable[[T], None] | None:
    """Prints a line for each step of a long command; None if quiet."""
    return None if quiet else lambda step: messages().print(line(step))


def write_named(path: Path, content: str | bytes, *, option: str) -> None:
    """Writes a file that an option names.

    Args:
        path: The file.
        content: Its content.
        option: The option, as Python spells it.

    Raises:
        InputError: If it cannot be written.
    """
    try:
        write_whole(path, content)
    except OSError as error:
        raise InputError(
            f"{path} cannot be written: {io_reason(error)}; give another `{option}`"
        ) from None


def require_folders(**files: Path | None) -> None:
    """Refuses, before any work, output files whose folder does not exist.

    Args:
        files: The files that options name, if any, by the option as Python spells it.

    Raises:
        InputError: If a folder does not exist.
    """
    for name, path in files.items():
        if path is not None and not path.parent.is_dir():
            raise InputError(
                f"folder {path.parent} does not exist: make it, or give another `{name}`"
            )


def write_pages(page: Page, *, html: Path | None, markdown: Path | None) -> None:
    """Writes a report to the files that options name.

    Args:
        page: The report.
        html: The HTML file, if any.
        markdown: The Markdown file, if any.

    Raises:
        InputError: If one cannot be written.
    """
    if html is None and markdown is None:
        return  # what renders them takes long to load
    from dpaudit.report.render import page_html, page_markdown

    if html is not None:
        write_named(html, page_html(page), option="html")
    if markdown is not None:
        write_named(markdown, page_markdown(page), option="markdown")


def guard(command: Callable[P, None]) -> Callable[P, None]:
    """Turns every exception of a command into one line on standard error and an exit code.

    A command that has written its result elsewhere, or that ends with a verdict, raises
    `typer.Exit`: its code is kept whether or not standard output takes the words. A command that
    only prints fails if it cannot print, except to a closed pipe.
    """

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        output = _Tolerant(sys.stdout)
        _result_stream.set(output)
        try:
            with _printed_notes():
                _run(command, *args, **kwargs)
        except typer.Exit:
            if reason := _output_failure(output):
                messages().print(f"note: {reason}; the exit code says what was found")
            raise
        reason = _output_failure(output)
        if reason and not isinstance(output.failure, BrokenPipeError):
            _fail(f"error: {reason}", ExitCode.INTERNAL)

    return run


@contextmanager
def _printed_notes() -> Iterator[None]:
    """Prints what the package logs, such as how a file was read, each line once."""
    logger, console, printed = logging.getLogger("dpaudit"), messages(), set[str]()

    class NotePrinter(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            line = one_line(record.getMessage())
            if line not in printed:
                printed.add(line)
                console.print(f"note: {line}")

    handler, level = NotePrinter(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def _run(command: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
    try:
        # A generator's file may print while it is imported: not among the results.
        with redirect_stdout(sys.stderr), _termination_as_interrupt():
            command(*args, **kwargs)
    except typer.Exit:
        raise
    except InputError as error:
        _fail(f"error: {spell_options(error_text(error), options=kwargs)}", ExitCode.USAGE)
    except InterruptedRunError as error:
        _fail(str(error), ExitCode.INTERRUPTED)
    except KeyboardInterrupt:
        _fail("interrupted: run the same command again", ExitCode.INTERRUPTED)
    except (DpauditError, OSError) as error:
        _fail(f"error: {error_text(error)}", ExitCode.INTERNAL)
    except (RecursionError, MemoryError) as error:
        _fail(f"error: {error_line(error)}", ExitCode.INTERNAL)
    except BaseException as error:  # noqa: BLE001 - a crash must exit neither with 1 nor with 0
        if not isinstance(error, SystemExit):
            messages().print(traceback.format_exc())
        _fail(f"internal error: {error_line(error)}", ExitCode.INTERNAL)


def _output_failure(output: _Tolerant) -> str:
    """Why the result was not printed completely; empty if it was."""
    output.flush()
    if output.failure is None:
        return ""
    return f"standard output cannot be written: {io_reason(output.failure)}"


def end_program(code: int) -> NoReturn:
    """Ends the program with an exit code that neither a stream nor a thread can change.

    Buffered output that cannot be written is dropped, because Python would try again and exit with
    120. Threads that foreign code left running are not waited for.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            _give_up(stream)
    others = set(threading.enumerate()) - {threading.main_thread()}
    if any(not thread.daemon for thread in others):
        end_at_once(code)
    sys.exit(code)


def _give_up(stream: TextIO) -> None:
    """Drops what a stream has buffered, and everything written to it later."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        stream.flush()


def _fail(message: str, code: ExitCode) -> NoReturn:
    messages().print(message)
    raise typer.Exit(code)


@contextmanager
def suggest_resuming() -> Iterator[None]:
    """Adds the command that resumes to the message of an interruption.

    Raises:
        InterruptedRunError: On Ctrl-C, with that command.
    """
    try:
        yield
    except (InterruptedRunError, KeyboardInterrupt) as error:
        again = shlex.join(["dpaudit", *sys.argv[1:]])
        raise InterruptedRunError(f"{str(error) or 'interrupted'}\nresume with: {again}") from None


@contextmanager
def _termination_as_interrupt() -> Iterator[None]:
    """Treats SIGTERM and a closed terminal like Ctrl-C: results are kept and workers stop."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    if before[signal.SIGHUP] is signal.SIG_IGN:
        del before[signal.SIGHUP]  # started with nohup: to go on when its terminal is closed
    for number in before:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
