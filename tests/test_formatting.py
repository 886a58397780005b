"""Numbers, errors and foreign strings as text."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from dpaudit.errors import RegistryError
from dpaudit.formatting import (
    Row,
    aligned,
    clipped,
    counted,
    did_you_mean,
    duration,
    error_line,
    error_text,
    headed,
    labelled,
    listed,
    located,
    percent,
    printable,
    raised_at,
    rounded,
    rounded_apart,
    rounded_down,
    rounded_up,
    whole_traceback,
    wrapped,
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


def _loaded(folder: Path, name: str, text: str) -> Any:
    file = folder / f"{name}.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    spec = spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _raised(call: Callable[[], object]) -> BaseException:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - it is what is tested
        call()
    inner = caught.tb.tb_next
    assert inner is not None
    return caught.value.with_traceback(inner)  # without the frame of this test


def test_an_error_is_located_in_the_innermost_frame_of_the_user(tmp_path: Path) -> None:
    gan = _loaded(
        tmp_path,
        "gan",
        "import json, numpy\n\n"
        "def fit():\n    numpy.linalg.inv(numpy.zeros((2, 2)))\n\n"
        "def chained():\n    try:\n        fit()\n    except Exception as error:\n"
        "        raise LookupError('it') from error\n",
    )
    assert raised_at(_raised(gan.fit)) == "gan.py:4 in fit"
    assert raised_at(_raised(gan.chained)) == "gan.py:10 in chained"
    assert located(_raised(gan.fit)) == "LinAlgError at gan.py:4 in fit: Singular matrix"
    ours = RegistryError("it cannot be built")
    ours.__cause__ = _raised(gan.fit)
    assert raised_at(ours) == "gan.py:4 in fit"
    assert "in fit" in whole_traceback(_raised(gan.fit))
    assert raised_at(RegistryError("never raised")) == ""
    site = tmp_path / "lib" / "site-packages"
    library = _loaded(site, "library", "def fit(call):\n    return call()\n\ndef bad(): 1 / 0\n")
    error = _raised(lambda: library.fit(library.bad))
    assert error.__traceback__ is not None
    # An installed generator: the line that dpaudit called, not the innermost of many.
    assert raised_at(error.with_traceback(error.__traceback__.tb_next)) == "library.py:2 in fit"


def test_a_foreign_string_steers_no_terminal() -> None:
    assert printable("a\n\x1b[31mb\t c") == "a \N{REPLACEMENT CHARACTER}[31mb c"


def test_a_clipped_text_has_the_width_asked_for() -> None:
    assert clipped("12345", 5) == "12345"
    assert clipped("123456", 5) == "1234…"


def test_a_slip_is_understood_if_one_word_of_the_name_is_close() -> None:
    known = ["rounds", "generator_hidden", "shadow_models"]
    assert did_you_mean("hiden", known) == " (did you mean 'generator_hidden'?)"
    assert did_you_mean("shadow_model", known) == " (did you mean 'shadow_models'?)"
    assert did_you_mean("epsilon", known) == ""


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


def test_numbers_that_are_compared_have_digits_that_tell_them_apart() -> None:
    assert rounded_apart(1.00149, 1.0) == "1.001"
    assert rounded_apart(2.5, 1.0) == "2.5"
    assert rounded_apart(1.0, 1.0) == "1"
    assert rounded_apart(1.0 + 1e-12, 1.0) == "1.000000000001"


def test_lists_and_counts_in_words() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed(range(1005), 2) == "0, 1 and 1,003 more"
    assert (counted(0, "run"), counted(1, "run"), counted(2, "run")) == (
        "0 runs",
        "1 run",
        "2 runs",
    )


def test_a_wrapped_text_keeps_what_is_copied_whole_and_steers_no_terminal() -> None:
    address = "https://example.org/" + "a-b/" * 20
    lines = wrapped(f"see\x1b {'pate-gan ' * 12}at {address}", first="  ", rest="    ")
    assert lines[0].startswith("  see\N{REPLACEMENT CHARACTER} pate-gan")
    assert lines[-1] == f"    {address}"
    assert max(map(len, lines[:-1])) <= 80
    assert not any(line.endswith("-") for line in lines)
    assert wrapped("") == [""]
    assert labelled("why", "word " * 20, width=6) == [
        "why   " + "word " * 14 + "word",
        " " * 6 + "word " * 4 + "word",
    ]


def test_a_table_fits_and_a_long_name_stands_above_its_rows() -> None:
    name = "x" * 70
    rows = [("name", "n"), (name, "1"), (name, "23"), ("b", "a cell of 30 characters, or two")]
    lines = aligned(rows, numeric={1}, indent=" ")
    assert [line for line in lines if name in line] == [f" {name}"]
    assert [len(line) for line in lines if name not in line] == [80] * 4
    assert max(map(len, lines)) <= 80
    assert [line.split() for line in lines[2:4]] == [["1"], ["23"]]
    assert lines[-1].startswith(" b     ")
    assert aligned([]) == []


def test_rows_stand_below_a_headline_and_a_command_stays_whole() -> None:
    command = "dpaudit audit " + "--option value " * 10 + "end"
    rows = [Row("bound", "word " * 20), Row("next", command, whole=True), Row("\x1b[2J", "a\nb")]
    lines = headed("VIOLATION  " + "word " * 20, rows)
    at = lines.index("")
    assert [line[:2] for line in lines[1:at]] == ["  "]
    assert [line[:10] for line in lines[at + 1 : -1]] == ["bound     ", " " * 10, "next      "]
    assert lines[-2] == f"next      {command}"
    assert lines[-1].endswith("[2J      a b")
    assert all(len(line) <= 80 for line in lines if command not in line)
