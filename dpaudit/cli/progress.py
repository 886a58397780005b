"""Progress on standard error: a bar on a terminal, a line per tenth elsewhere."""

from __future__ import annotations

from types import TracebackType
from typing import Self

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

from dpaudit.game.progress import TrialProgress
from dpaudit.game.trial import Role

_TITLES = {
    Role.TARGET_SELECTION: "target",
    Role.NULL_CONTROL: "null control",
    Role.POSITIVE_CONTROL: "positive control",
    Role.AUDIT: "shadow models",
    Role.ONE_RUN: "one training",
}


class ConsoleProgress:
    """Shows the events of a run; a context manager, and callable with each event.

    Args:
        console: Standard error.
        quiet: Whether to show nothing.
    """

    def __init__(self, console: Console, *, quiet: bool) -> None:
        self._console = console
        self._quiet = quiet
        self._bars = Progress(
            TextColumn("{task.description:<16}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            disable=quiet or not console.is_terminal,
        )
        self._tasks: dict[Role, TaskID] = {}
        self._tenths: dict[Role, int] = {}

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def __call__(self, event: TrialProgress) -> None:
        """Shows one event."""
        title = _TITLES.get(event.role)
        if title is None or self._quiet:
            return
        if event.failed:
            title = f"{title} ({event.failed} failed)"
        if self._console.is_terminal:
            if event.role not in self._tasks:
                # Resumed trials are not this run's pace: they start the bar, not its clock.
                self._tasks[event.role] = self._bars.add_task(title, total=event.total)
            self._bars.update(self._tasks[event.role], completed=event.done, description=title)
            return
        tenth = 10 * event.done // event.total
        if tenth > self._tenths.get(event.role, 0):
            self._tenths[event.role] = tenth
            self._console.print(f"{title}: {event.done} of {event.total}")
