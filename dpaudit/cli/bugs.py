"""`dpaudit bugs`: real privacy bugs of released software, and their proofs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpaudit.cli import options
from dpaudit.cli.console import ExitCode, guarded, messages, results
from dpaudit.formatting import wrapped

bugs = typer.Typer(
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
    from dpaudit.bugs.bug import known_bugs

    output = results()
    for bug in known_bugs().values():
        output.print(f"{bug.id}: {bug.status}")
        about = [f"{bug.package} {bug.versions}", bug.flaw, f"source: {bug.source}"]
        if bug.case is not None:
            about.append(f"twin: {bug.case.twin.account}")
        for text in (*about, *([bug.note] if bug.note else [])):
            output.print("\n".join(wrapped(text, first="  ", rest="    ")))


@bugs.command("run")
@guarded
def run(
    name: Annotated[
        str, typer.Argument(metavar="ID", help="Of a bug (see `dpaudit bugs`).", show_default=False)
    ],
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keeps both run folders there. Default: none is kept."),
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Makes the environment, then audits the broken release and its twin without the bug.

    Exits with 0 if a violation of the one is proved and none of the other is found, else with 1.
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
    output = results()
    for side in sides:
        output.print(f"{side.name}: {side.account}")
        output.print(f"  {headline(side.result)} ({side.seconds:.0f} s)")
        if not side.as_expected:
            output.print(f"  NOT AS EXPECTED: {SIDES[side.name].upper()}")
    if not all(side.as_expected for side in sides):
        raise typer.Exit(ExitCode.VIOLATION)
    output.print(f"{bug.id}: as expected")
