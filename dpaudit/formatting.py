"""Numbers, errors, foreign strings, lists and tables as text to read; standard library only."""

from __future__ import annotations

import difflib
import os
import re
import reprlib
import signal
import sysconfig
import textwrap
import traceback
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any, Final, NamedTuple

TERMINAL_WIDTH = 80
"""Largest number of characters in a line of text for a terminal."""
LABEL_WIDTH = 10
"""Characters of the column of labels that a result on a terminal has."""
_GAP = "  "
_DIGITS = 3
_NO_VALUE = "none"
_DUST: Final = 1e-12
_LONGEST_TRACEBACK: Final = 20_000
_INSTALLED: Final = {"site-packages", "dist-packages"}
_OWN: Final = os.path.realpath(os.path.dirname(__file__)) + os.sep
_STDLIB: Final = os.path.realpath(sysconfig.get_path("stdlib")) + os.sep
_LONGEST_CHAIN: Final = 10
_ARE_SHOWN: Final = ContextVar("whether messages quote private values", default=False)
_CAUSE: Any = BaseException.__dict__["__cause__"]  # a subclass may do anything when it is asked
_TRACEBACK: Any = BaseException.__dict__["__traceback__"]


def rounded(value: float | None, *, digits: int = _DIGITS) -> str:
    """A number to the nearest, with this many significant digits; None reads "none"."""
    return _significant(value, digits, ROUND_HALF_EVEN)


def rounded_apart(value: float, other: float) -> str:
    """A number with as many significant digits as tell it from another one."""
    digits = _DIGITS
    while value != other and rounded(value, digits=digits) == rounded(other, digits=digits):
        digits += 1
    return rounded(value, digits=digits)


def rounded_down(value: float | None, *, digits: int = _DIGITS) -> str:
    """A lower bound: rounding never makes it claim more than was proved."""
    return _significant(value, digits, ROUND_FLOOR)


def rounded_up(value: float | None, *, digits: int = _DIGITS) -> str:
    """A detection limit: rounding never makes the audit seem sharper than it is."""
    return _significant(value, digits, ROUND_CEILING)


def auc_text(value: float | None) -> str:
    """An area under the ROC curve, with three decimals."""
    return _NO_VALUE if value is None else f"{value:.3f}"


def score_text(value: float) -> str:
    """A score or a threshold; a value that differs from 0 only by rounding errors reads 0."""
    return rounded(0.0 if abs(value) < _DUST else value)


def percent(share: float) -> str:
    """A share such as 0.95 as "95 %"."""
    return f"{100 * share:g} %"


def duration(seconds: float) -> str:
    """A time in seconds, such as 151.2, as "2 min 31 s"."""
    whole = round(seconds)
    if whole < 60:
        return f"{rounded(seconds)} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def printable(text: str) -> str:
    """A foreign string on one line, with control and direction characters made visible."""
    return visible(one_line(text))


def visible(text: str) -> str:
    """A text with its lines, in which no character steers a terminal, hides, or turns text round.

    Escapes, bidirectional controls and invisible characters become replacement characters.
    """
    return "\n".join(
        line if line.isprintable() else "".join(map(_visible, line)) for line in text.split("\n")
    )


def one_line(text: str) -> str:
    """A text with every run of white space replaced by one space."""
    return " ".join(text.split())


def with_short_words(text: str) -> str:
    """A text in which words of more than 300 characters are cut, but for their punctuation."""
    return re.sub(r"(\S{60})\S{240,}?(['`:;,.)]*)(?!\S)", r"\1…\2", text)


def error_line(error: BaseException) -> str:
    """An exception on one line, as "TypeName: message"; the type alone if it has no text.

    Never raises, whatever the exception does when it is asked for its text.
    """
    name = _type_name(error)
    try:
        return one_line(f"{name}: {error}")
    except BaseException:  # noqa: BLE001 - describing itself may do anything, such as exit
        return name


def error_text(error: BaseException) -> str:
    """The message of an exception on one line; the name of its type if it cannot say.

    Never raises, as `error_line`.
    """
    try:
        return one_line(f"{error}")
    except BaseException:  # noqa: BLE001 - as above
        return _type_name(error)


def located(error: BaseException) -> str:
    """As `error_line`, and where a user's code raised it: "OSError at gan.py:9 in fit: no file"."""
    place, line, name = raised_at(error), error_line(error), _type_name(error)
    return f"{name} at {place}{line.removeprefix(name)}" if place else line


def raised_at(error: BaseException) -> str:
    """Where a user's code raised an error: "gan.py:41 in fit"; empty if it did not.

    That is the innermost frame which is neither dpaudit's, the standard library's nor an installed
    package's; of an installed generator the frame that dpaudit called. Of an error that dpaudit
    raised from another one, the frame of that one. Never raises, as `error_line`.
    """
    chained: BaseException | None = error
    for _ in range(_LONGEST_CHAIN):
        if chained is None:
            break
        foreign = [
            (file, line, frame.f_code.co_name)
            for frame, line in traceback.walk_tb(_TRACEBACK.__get__(chained))
            if _is_foreign(file := _place(frame.f_code.co_filename))
        ]
        own = [at for at in foreign if not _is_installed(at[0])]
        if foreign:
            file, line, function = own[-1] if own else foreign[0]
            folder, name = os.path.split(file)
            if os.path.basename(folder).startswith("ipykernel_"):
                name = "notebook cell"  # the file has a number for its name
            return one_line(f"{name}:{line} in {function}")
        chained = _CAUSE.__get__(chained)
    return ""


def how_it_died(code: int | None) -> str:
    """The exit code or the signal that ended a process, in brackets; empty if it is not known."""
    if code is None:
        return ""
    if code >= 0:
        return f" (exit code {code})"
    known = -code in {known.value for known in signal.Signals}
    name = f", {signal.Signals(-code).name}" if known else ""
    memory = ": often too little memory" if -code == signal.SIGKILL else ""
    return f" (signal {-code}{name}{memory})"


def whole_traceback(error: BaseException) -> str:
    """The traceback of an error, its last 20,000 characters at most; it may quote records.

    Never raises, as `error_line`.
    """
    try:
        return "".join(traceback.format_exception(error))[-_LONGEST_TRACEBACK:]
    except BaseException:  # noqa: BLE001 - describing itself may do anything, such as exit
        return ""


def _place(file: str) -> str:
    """A file with all links resolved; unchanged if it is none, such as a cell of a notebook."""
    return file if file.startswith("<") else os.path.realpath(file)


def _is_foreign(file: str) -> bool:
    """Whether a file is neither dpaudit's nor of Python itself."""
    python = file.startswith((_STDLIB, "<frozen ", "<__array_function__"))
    return not file.startswith(_OWN) and (not python or _is_installed(file))


def _is_installed(file: str) -> bool:
    compiled = file.endswith(".pyx")  # of a package that was built elsewhere
    return compiled or not _INSTALLED.isdisjoint(file.split(os.sep))


def _type_name(error: BaseException) -> str:
    name: str = type.__dict__["__name__"].__get__(type(error))  # a metaclass may hide it
    return one_line(name)


def clipped(text: str, width: int) -> str:
    """A text shortened to a width in characters, with an ellipsis where something is cut off."""
    return text if len(text) <= width else text[: width - 1] + "…"


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """` (did you mean 'x'?)` if a known name, or a word of one, is close; else nothing."""
    close = difflib.get_close_matches(name, known, n=1)
    if not close:
        words = {word: name for name in reversed(known) for word in re.split("[_-]", name)}
        close = [words[word] for word in difflib.get_close_matches(name, words, n=1, cutoff=0.75)]
    return f" (did you mean {close[0]!r}?)" if close else ""


def counted(number: int, noun: str) -> str:
    """A number of things, as "1 record" or "3 records"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


@contextmanager
def show_values() -> Iterator[None]:
    """Lets messages quote private values; elsewhere they name rows, because they end up in logs."""
    token = _ARE_SHOWN.set(True)
    try:
        yield
    finally:
        _ARE_SHOWN.reset(token)


def quote(value: object) -> str:
    """How a message shows a private value, after its row: `: 'abc'`, or nothing by default."""
    plain = value.item() if hasattr(value, "item") else value
    return f": {reprlib.repr(plain)}" if _ARE_SHOWN.get() else ""


def listed(names: Collection[object], most: int = 3, *, separator: str = ", ") -> str:
    """The first names and how many more there are, as "a, b and 7 more"."""
    shown, more = separator.join(map(str, [*names][:most])), len(names) - most
    return f"{shown} and {more:,} more" if more > 0 else shown


def wrapped(text: str, *, first: str = "", rest: str = "") -> list[str]:
    """A text in lines of a terminal's width, in which nothing steers the terminal.

    A word that is longer than a line stays whole, so that an address or a path can be copied.

    Args:
        text: The text.
        first: What its first line begins with.
        rest: What every other line begins with.
    """
    lines = textwrap.wrap(
        visible(text),
        TERMINAL_WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines or [first.rstrip()]


def labelled(label: str, text: str, *, width: int = LABEL_WIDTH) -> list[str]:
    """A text in lines, to the right of a label that has this width."""
    return wrapped(text, first=f"{visible(label):<{width}}", rest=" " * width)


class Row(NamedTuple):
    """A fact and its label: one row of a result on a terminal.

    Attributes:
        label: Its label.
        fact: The fact.
        whole: Whether it stays on one line, however long: a command or a path to be copied.
    """

    label: str
    fact: str
    whole: bool = False


def row_lines(rows: Iterable[Row]) -> list[str]:
    """Rows as lines of a terminal: labels in one column, facts in the other."""
    lines = []
    for label, fact, whole in rows:
        if whole:
            lines.append(f"{visible(label):<{LABEL_WIDTH}}{printable(fact)}")
        else:
            lines += labelled(label, fact)
    return lines


def headed(headline: str, rows: Iterable[Row]) -> list[str]:
    """A result for a terminal: its headline, then a label and a fact in each row."""
    return [*wrapped(headline, rest="  "), "", *row_lines(rows)]


def aligned(
    rows: Sequence[Sequence[str]],
    *,
    numeric: Collection[int] = (),
    indent: str = "",
) -> list[str]:
    """Rows in columns, one line each, in which nothing steers the terminal.

    A first cell for which the other columns leave no room has a line of its own above its rows.

    Args:
        rows: All of one length; the first may be a header.
        numeric: Columns whose cells stand to the right.
        indent: What every line begins with.
    """
    if not rows:
        return []
    table = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    others = sum(len(_GAP) + width for width in widths[1:])
    widths[0] = min(widths[0], TERMINAL_WIDTH - len(indent) - others)
    lines, above = [], ""
    for row in table:
        if len(row[0]) > widths[0]:
            if row[0] != above:
                lines.append(indent + row[0])
            above, row[0] = row[0], ""
        cells = [
            (str.rjust if at in numeric else str.ljust)(cell, width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append((indent + _GAP.join(cells)).rstrip())
    return lines


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    return " " if character.isspace() else "\N{REPLACEMENT CHARACTER}"


def _significant(value: float | None, digits: int, rounding: str) -> str:
    if value is None:
        return _NO_VALUE
    exact = Decimal(repr(value))
    if not exact:
        return "0"
    step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    return f"{float(exact.quantize(step, rounding=rounding)):.{max(digits, 6)}g}"
