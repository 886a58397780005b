"""`dpaudit bugs`: real privacy bugs of released software, and their proofs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpaudit.cli import options
from dpaudit.cli.command import PanelledCommand
from dpaudit.cli.console import ExitCode, guarded, messages, results
from dpaudit.cli.lazy import SuggestingGroup
from dpaudit.cli.panels import Panel, option
from dpaudit.formatting import Row, counted, duration, row_lines, wrapped

bugs = typer.Typer(
    cls=SuggestingGroup,
    add_completion=False,
    help="Lists real privacy bugs of released software; `run ID` proves one.",
    invoke_without_command=True,
    rich_markup_mode=None,
)


@bugs.callback()
@guarded
def listed(context: typer.Context) -> None:
    """Lists real privacy bugs of released software; `run ID` proves one."""
    if context.invoked_subcommand is not None:
        return
    from dpaudit.bugs.bug import Status, known_bugs

    found = known_bugs().values()
    counts = {status: sum(bug.status is status for bug in found) for status in Status}
    named = ", ".join(f"{n} {status}" for status, n in counts.items() if n)
    lines = wrapped(f"BUGS  {counted(len(found), 'privacy bug')} of released software: {named}")
    for bug in found:
        rows = [
            Row("release", f"{bug.package} {bug.versions}"),
            Row("flaw", bug.flaw),
            Row("source", bug.source),
            Row("twin", "" if bug.case is None else bug.case.twin.account),
            Row("note", bug.note),
        ]
        lines += ["", f"{bug.id}: {bug.status}", *row_lines(row for row in rows if row.fact)]
    lines += ["", *row_lines([Row("next", "dpaudit bugs run ID proves one of them")])]
    results().print("\n".join(lines))


@bugs.command("run", cls=PanelledCommand)
@guarded
def run(
    name: Annotated[
        str, typer.Argument(metavar="ID", help="Bug (see `dpaudit bugs`).", show_default=False)
    ],
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    out: Annotated[
        Path | None,
        option(
            metavar="DIR",
            help="Folder to keep both runs in. Default: none is kept.",
            shown=False,
            panel=Panel.OUTPUT,
        ),
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Audits a broken release and its twin without the bug.

    Creates the environment first. The exit code is 0 if the broken release is proved to violate
    its claim and no violation of the twin is found, else 1.
    """
    from dpaudit.auditing.progress_bar import ConsoleProgress
    from dpaudit.bugs.bug import bug_named
    from dpaudit.bugs.run import SIDES, run_bug
    from dpaudit.results.sentences import headline

    bug, errors = bug_named(name), messages()
    with ConsoleProgress(errors, quiet=quiet) as progress:
        sides = run_bug(
            bug,
            seed=seed,
            jobs=jobs,
            out=out,
            on_step=(lambda step: None) if quiet else errors.print,
            on_progress=progress,
        )
    good = all(side.as_expected for side in sides)
    found = "AS EXPECTED" if good else "NOT AS EXPECTED"
    lines = wrapped(f"{found}  {bug.id}: {bug.flaw}", rest="  ")
    for side in sides:
        rows = [
            Row(side.name, side.account),
            Row("verdict", headline(side.result)),
            Row("expected", "" if side.as_expected else str(SIDES[side.name])),
            Row("time", duration(side.seconds)),
        ]
        lines += ["", *row_lines(row for row in rows if row.fact)]
    results().print("\n".join(lines))
    raise typer.Exit(ExitCode.PASS if good else ExitCode.VIOLATION)
