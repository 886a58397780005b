"""Errors and foreign strings on one line."""

from __future__ import annotations

from dpaudit.formatting import clipped, error_line, printable


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_an_error_is_its_type_and_its_message_on_one_line() -> None:
    assert error_line(ValueError("two\n  lines")) == "ValueError: two lines"
    assert error_line(ValueError()) == "ValueError:"
    assert error_line(MuteError()) == "MuteError"


def test_a_foreign_string_steers_no_terminal() -> None:
    assert printable("a\n\x1b[31mb\t c") == "a \N{REPLACEMENT CHARACTER}[31mb c"


def test_a_clipped_text_has_the_width_asked_for() -> None:
    assert clipped("12345", 5) == "12345"
    assert clipped("123456", 5) == "1234…"
