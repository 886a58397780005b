"""Numbers, errors and foreign strings as text."""

from __future__ import annotations

from dpaudit.formatting import (
    clipped,
    duration,
    error_line,
    error_text,
    percent,
    printable,
    rounded,
    rounded_down,
    rounded_up,
)


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class LeavingError(Exception):
    def __str__(self) -> str:
        raise SystemExit(0)


def test_an_error_is_its_type_and_its_message_on_one_line() -> None:
    assert error_line(ValueError("two\n  lines")) == "ValueError: two lines"
    assert error_line(ValueError()) == "ValueError:"
    assert error_line(MuteError()) == "MuteError"
    assert error_line(LeavingError()) == error_text(LeavingError()) == "LeavingError"


def test_a_foreign_string_steers_no_terminal() -> None:
    assert printable("a\n\x1b[31mb\t c") == "a \N{REPLACEMENT CHARACTER}[31mb c"


def test_a_clipped_text_has_the_width_asked_for() -> None:
    assert clipped("12345", 5) == "12345"
    assert clipped("123456", 5) == "1234…"


def test_numbers_are_rounded_to_the_safe_side() -> None:
    assert (rounded_down(3.219), rounded_up(1.761), rounded(3.216)) == ("3.21", "1.77", "3.22")
    assert (rounded_down(0.0), rounded(None), rounded(1e-05)) == ("0", "none", "1e-05")
    assert (rounded(123456.0), rounded(2.0), percent(0.95), percent(0.999)) == (
        "123000",
        "2",
        "95 %",
        "99.9 %",
    )
    assert (duration(0.51234), duration(151.2), duration(3725)) == (
        "0.512 s",
        "2 min 31 s",
        "1 h 2 min",
    )
