"""Progress: bars on a terminal, one output of a notebook's cell, at most ten lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, Final, NamedTuple, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from dpaudit.auditing.checks import CONTROLS
from dpaudit.formatting import duration
from dpaudit.game.flight import OnProgress, TrialProgress
from dpaudit.game.trial import Role

_TITLES = {
    Role.TARGET_SELECTION: "target",
    Role.NULL_CONTROL: "null control",
    Role.POSITIVE_CONTROL: "positive control",
    Role.AUDIT: "shadow models",
    Role.ONE_RUN: "one training",
}
_LINES: Final = {Role.AUDIT: 5, Role.ONE_RUN: 5}
"""Lines of a role where they stay, as in a log; of another role one, at its end."""
_UPDATES: Final = 50
"""How often a role's line is replaced in a notebook."""


class _Begun(NamedTuple):
    """The first event of a part: earlier trials do not count for the pace of this run."""

    at: float
    done: int

    def left(self, done: int, total: int) -> str:
        """The time left, in words; empty if unknown or zero."""
        made, still = done - self.done, total - done
        if not made or not still:
            return ""
        seconds = round((monotonic() - self.at) / made * still)
        return f", about {duration(seconds)} left" if seconds else ""


class ConsoleProgress:
    """Shows how far a command is; a context manager, and callable with each event of an audit.

    Args:
        console: Standard error, or a notebook.
        quiet: Whether to show nothing.
    """

    def __init__(self, console: Console, *, quiet: bool) -> None:
        self._console = console
        self._quiet = quiet
        self._drawn = console.is_terminal
        self._bars = Progress(
            TextColumn("{task.description:<16}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            disable=quiet or not self._drawn,
        )
        self._tasks: dict[str, TaskID] = {}
        self._steps: dict[tuple[str, int], int] = {}
        self._totals: dict[Role, int] = {}
        self._begun: dict[str, _Begun] = {}
        self._lines: dict[str, str] = {}
        self._output: Any = None

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *ended: object) -> None:
        self._bars.stop()

    def __call__(self, event: TrialProgress) -> None:
        """Shows one event of an audit."""
        named = _TITLES.get(event.role)
        if named is None:
            return
        if (
            event.total > self._totals.setdefault(event.role, event.total)
            and event.role in CONTROLS
        ):
            named = f"full {named}"  # a small control that does not pass is followed by a full one
        title = f"{named} ({event.failed} failed)" if event.failed else named
        self.show(named, event.done, event.total, title=title, lines=_LINES.get(event.role, 1))

    def show(
        self, name: str, done: int, total: int, *, title: str | None = None, lines: int = 1
    ) -> None:
        """Shows how much of a part is done.

        Args:
            name: The part.
            done: What is done of it.
            total: All of it.
            title: What it is called now; by default its name.
            lines: How many lines it has where they stay, as in a log.
        """
        title = title or name
        if self._quiet:
            return
        if self._drawn:
            if name not in self._tasks:
                # Resumed trials move the bar, not the clock.
                self._tasks[name] = self._bars.add_task(title, total=total)
            self._bars.update(self._tasks[name], completed=done, total=total, description=title)
            return
        part = name, total
        step = (_UPDATES if self._console.is_jupyter else lines) * done // total
        if step < self._steps.get(part, 0):  # the next of several audits
            del self._steps[part], self._begun[name]
        begun = self._begun.setdefault(name, _Begun(monotonic(), done))
        if step > self._steps.get(part, 0):
            self._steps[part] = step
            self._print(name, f"{title}: {done} of {total}{begun.left(done, total)}")

    def _print(self, role: str, line: str) -> None:
        """Prints a line; in a notebook, replaces the role's line in the one output."""
        if not self._console.is_jupyter:
            self._console.print(line)
            return
        self._lines[role] = line
        text = {"text/plain": "\n".join(self._lines.values())}
        if self._output is None:
            from IPython.display import display

            # IPython's functions have no types
            self._output = display(text, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._output.update(text, raw=True)


@contextmanager
def show_progress(on_progress: OnProgress, *, asked: bool | None) -> Iterator[OnProgress]:
    """Shows the progress of an audit that Python called for.

    Args:
        on_progress: Also called with each event.
        asked: Whether to show it; if None, on a terminal and in a notebook.

    Yields:
        What is called with each event.
    """
    console = Console(stderr=True, highlight=False)
    if not (console.is_terminal or console.is_jupyter if asked is None else asked):
        yield on_progress
        return
    with ConsoleProgress(console, quiet=False) as bars:

        def both(event: TrialProgress) -> None:
            bars(event)
            on_progress(event)

        yield both
