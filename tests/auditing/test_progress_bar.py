"""Progress that Python shows: on a terminal and in a notebook unless it is told otherwise."""

from __future__ import annotations

import io
import re
import sys

import pytest
from rich.console import Console

from dpaudit.auditing import progress_bar
from dpaudit.auditing.progress_bar import show_progress
from dpaudit.game.flight import TrialProgress
from dpaudit.game.trial import Role


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_control_that_is_run_again_in_full_has_a_name_and_a_total_of_its_own() -> None:
    for terminal in (True, False):
        stream = io.StringIO()
        console = Console(file=stream, force_terminal=terminal, width=100)
        with progress_bar.ConsoleProgress(console, quiet=False) as progress:
            for done, total in ((7, 14), (14, 14), (20, 60), (60, 60)):
                progress(TrialProgress(Role.NULL_CONTROL, done, total, 0))
        plain = re.sub(r"\x1b\[[0-9?;]*[A-Za-z]", "", stream.getvalue())
        lines = plain.splitlines()
        if terminal:
            assert re.match(r"null control .* 14/14 ", lines[-2])
            assert re.match(r"full null control .* 60/60 ", lines[-1])
        else:
            assert [line.partition(",")[0] for line in lines] == [
                "null control: 14 of 14",
                "full null control: 60 of 60",
            ]


def written(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch, *, asked: bool | None) -> str:
    """What stands on standard error after half of an audit."""
    monkeypatch.setattr(sys, "stderr", stream)
    events: list[TrialProgress] = []
    with show_progress(events.append, asked=asked) as on_progress:
        for done in range(6):
            on_progress(TrialProgress(Role.AUDIT, done, 10, 0))
    assert len(events) == 6
    return stream.getvalue()


def test_a_terminal_shows_bars_and_a_pipe_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert "5/10" in written(_Terminal(), monkeypatch, asked=None)
    assert written(io.StringIO(), monkeypatch, asked=None) == ""


def test_it_can_be_asked_for_and_forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = written(io.StringIO(), monkeypatch, asked=True).splitlines()
    assert [line.partition(",")[0] for line in lines] == [
        f"shadow models: {n} of 10" for n in (2, 4)
    ]
    assert written(_Terminal(), monkeypatch, asked=False) == ""


def test_a_line_says_what_is_left_at_the_pace_of_this_run(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, now = io.StringIO(), iter([100.0, 103.0, 103.0, 106.0, 106.0, 109.0])
    monkeypatch.setattr(progress_bar, "monotonic", lambda: next(now))
    with progress_bar.ConsoleProgress(Console(file=stream), quiet=False) as progress:
        for done in (4, 6, 8, 10):  # 4 were there before
            progress(TrialProgress(Role.AUDIT, done, 10, 0))
    assert stream.getvalue().splitlines() == [
        "shadow models: 4 of 10",
        "shadow models: 6 of 10, about 6 s left",
        "shadow models: 8 of 10, about 3 s left",
        "shadow models: 10 of 10",
    ]


def test_each_of_several_audits_has_its_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, now = io.StringIO(), iter([0.0, 6.0, 100.0, 101.0])
    monkeypatch.setattr(progress_bar, "monotonic", lambda: next(now))
    with progress_bar.ConsoleProgress(Console(file=stream), quiet=False) as progress:
        for done in (1, 2, 1, 2):
            progress(TrialProgress(Role.AUDIT, done, 2, 0))
    assert stream.getvalue().splitlines() == ["shadow models: 1 of 2", "shadow models: 2 of 2"] * 2


def test_a_log_of_a_whole_audit_has_ten_lines_at_most() -> None:
    stream = io.StringIO()
    controls = (Role.NULL_CONTROL, Role.POSITIVE_CONTROL)
    parts = [(role, total) for total in (14, 60) for role in controls]
    with progress_bar.ConsoleProgress(Console(file=stream), quiet=False) as progress:
        for role, total in [(Role.TARGET_SELECTION, 320), *parts, (Role.AUDIT, 1000)]:
            for done in range(total + 1):
                progress(TrialProgress(role, done, total, 0))
    lines = stream.getvalue().splitlines()
    assert len(lines) == 10
    assert lines[-1] == "shadow models: 1000 of 1000"


def test_a_notebook_has_one_output_that_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[list[str]] = []

    class Output:
        def update(self, text: dict[str, str], *, raw: bool) -> None:
            assert raw
            shown[-1].append(text["text/plain"])

    def display(text: dict[str, str], *, raw: bool, display_id: bool) -> Output:
        assert raw
        assert display_id
        shown.append([text["text/plain"]])
        return Output()

    monkeypatch.setattr("IPython.display.display", display)
    stream = io.StringIO()
    console = Console(file=stream, force_jupyter=True)
    with progress_bar.ConsoleProgress(console, quiet=False) as progress:
        for role in (Role.NULL_CONTROL, Role.AUDIT):
            for done in range(41):
                progress(TrialProgress(role, done, 40, 0))
    [texts] = shown
    assert texts[-1] == "null control: 40 of 40\nshadow models: 40 of 40"
    assert stream.getvalue() == ""


def test_a_part_without_lines_is_shown_on_a_terminal_alone() -> None:
    for terminal in (True, False):
        stream = io.StringIO()
        console = Console(file=stream, force_terminal=terminal, width=100)
        with progress_bar.ConsoleProgress(console, quiet=False) as progress:
            for percent in (0, 41):
                progress.show("percent", percent, 100, lines=0)
        assert ("41/100" in stream.getvalue()) is terminal
        assert bool(stream.getvalue().strip()) is terminal
