"""`dpaudit env` and `dpaudit bugs`: released libraries in pinned environments, and their bugs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpaudit.cli import options
from dpaudit.cli.command import PanelledCommand, command_group
from dpaudit.cli.console import ExitCode, guard, messages, results, suggest_resuming
from dpaudit.errors import RegistryError, SettingsError
from dpaudit.external.environments import (
    Environment,
    create_environment,
    existing_environments,
    read_built,
    remove_environments,
)
from dpaudit.formatting import (
    Row,
    aligned,
    counted,
    did_you_mean,
    duration,
    headed,
    row_lines,
    wrapped,
)
from dpaudit.model.setting import Option, Panel

if TYPE_CHECKING:
    from dpaudit.bugs.bug import Bug
    from dpaudit.bugs.run import BugEnding

env = command_group("Manages the pinned Python environments of libraries.")

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="Environment (see `dpaudit env list`); NAME@VERSION for another release.",
        show_default=False,
    ),
]


@env.command("list", cls=PanelledCommand)
@guard
def list_environments() -> None:
    """Lists all environments, created or not, and their state."""
    from dpaudit.bugs.bug import known_environments

    rows, folders = [("environment", "state")], set()
    known = {library.folder: library.name for library in _registered().values()}
    of_bugs = {bug.folder for bug in known_environments()}
    for folder, name in sorted({**known, **existing_environments()}.items(), key=itemgetter(1)):
        built = read_built(folder)
        folders.add(str(folder.parent))
        if built is not None:
            state = f"Python {built.python_version}, {counted(len(built.packages), 'package')}"
            if folder not in known and folder not in of_bugs and "@" not in name:
                state = f"of older pins: dpaudit env remove {name}"
        elif folder.exists():
            state = "not complete: it is being made, or was interrupted"
        else:
            state = f"missing: dpaudit env create {name}"
        rows.append((name, state))
    ready = sum(read_built(folder) is not None for folder in known)
    text = f"ENVIRONMENTS  {ready} of {len(known)} libraries are ready"
    kept = [Row("folder", folder, whole=True) for folder in sorted(folders)]
    results().print("\n".join([*headed(text, kept), "", *aligned(rows)]))


@env.command(cls=PanelledCommand)
@guard
def create(
    name: Name,
    python: options.Python = None,
) -> None:
    """Creates an environment with pip, unless it is complete.

    pip runs the build scripts of packages with your rights, and contacts the package index.
    """
    environment = _named(name)
    before = environment.built
    built = create_environment(environment, python=python, on_step=messages().print)
    state = "is there already" if before else "is ready"
    results().print(f"{environment.name} {state}: Python {built.python_version}, {built.folder}")


@env.command(cls=PanelledCommand)
@guard
def remove(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...", help="Environments (see `dpaudit env list`).", show_default=False
        ),
    ],
) -> None:
    """Deletes environments, older pins included."""
    known = sorted(set(existing_environments().values()))
    for name in names:
        if name not in known:
            there = f"there is {', '.join(known)}" if known else "no environment exists"
            hint = did_you_mean(name, known)
            raise RegistryError(f"no environment {name!r} to remove{hint}; {there}")
    for name in names:
        for folder in remove_environments(name):
            results().print(f"deleted {folder}")


def _registered() -> dict[str, Environment]:
    from dpaudit.plugins.named import libraries
    from dpaudit.released_data.anonymeter.run import ENVIRONMENT

    return {ENVIRONMENT.name: ENVIRONMENT} | {
        library.environment.name: library.environment for library in libraries()
    }


def _named(name: str) -> Environment:
    from dpaudit.plugins.named import library_named

    registered = _registered()
    if name in registered:
        return registered[name]
    library = library_named(name.partition(":")[0])
    if library is not None:
        return library.environment
    known = list(registered)
    raise RegistryError(
        f"no environment {name!r}{did_you_mean(name, known)}; there is {', '.join(known) or 'none'}"
    )


bugs = command_group(
    "Lists real privacy bugs of released software; `run ID` proves one.", bare=True
)


@bugs.callback()
@guard
def listed(context: typer.Context) -> None:
    """Lists real privacy bugs of released software; `run ID` proves one."""
    if context.invoked_subcommand is not None:
        return
    from dpaudit.bugs.bug import Status, known_bugs

    bugs = known_bugs().values()
    counts = {status: sum(bug.status is status for bug in bugs) for status in Status}
    named = ", ".join(f"{n} {status}" for status, n in counts.items() if n)
    lines = wrapped(f"BUGS  {counted(len(bugs), 'privacy bug')} of released software: {named}")
    for bug in bugs:
        rows = [
            Row("release", f"{bug.package} {bug.versions}"),
            Row("flaw", bug.flaw),
            Row("source", bug.source),
            Row("twin", "" if bug.case is None else bug.case.twin.account),
            Row("note", bug.note),
        ]
        lines += ["", f"{bug.id}: {bug.status}", *row_lines(row for row in rows if row.fact)]
    lines += [
        "",
        *row_lines([Row("next", "dpaudit bugs run ID proves one of them, --all proves all")]),
    ]
    results().print("\n".join(lines))


@dataclass(frozen=True, kw_only=True)
class BugOptions:
    """Which bugs are run, and how.

    Attributes:
        every: Run every proved bug.
        black_box: Audit both sides even if replays decide.
        out: Folder of results, one ID.json each; what is there is not run again.
    """

    every: Annotated[bool, Option(flags=("--all",), panel=Panel.INPUT)] = False
    black_box: bool = False
    out: Annotated[Path, Option("DIR", panel=Panel.OUTPUT)] = Path("runs/bugs")


@bugs.command("run", cls=PanelledCommand)
@guard
@options.takes_settings()
def run(
    *,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID]...", help="Bugs (see `dpaudit bugs`).", show_default=False),
    ] = None,
    asked: BugOptions,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    quiet: options.Quiet = False,
) -> None:
    """Replays broken releases and their twins without the bug.

    Creates the environments first. Where replays do not decide, both sides are audited from their
    rows. The exit code is 0 if each broken release is proved to violate its claim and no violation
    of a twin is found, 3 if one could not be run, else 1.
    """
    from dpaudit.auditing.progress_bar import ConsoleProgress
    from dpaudit.bugs.run import BugRun, run_bugs

    chosen, errors = _bugs_to_run(names or [], every=asked.every), messages(quiet=quiet)
    endings, start = [], time.monotonic()
    with suggest_resuming(), ConsoleProgress(errors, quiet=quiet) as progress:
        where = asked.out, asked.black_box
        how = BugRun(*where, seed=seed, jobs=jobs, on_step=errors.print, on_progress=progress)
        for ending in run_bugs(chosen, how):
            endings.append(ending)
            if not quiet or len(chosen) == 1:
                results().print("\n".join(_ending_lines(ending)) + "\n" * (len(chosen) > 1))
    proved = sum(ending.outcome is not None and ending.outcome.is_proved for ending in endings)
    failed = sum(ending.outcome is None for ending in endings)
    if len(endings) > 1:
        seconds = time.monotonic() - start
        text = f"{proved} of {counted(len(endings), 'bug')} proved in {duration(seconds)}"
        text += f"; {failed} could not be run" if failed else ""
        results().print("\n".join(wrapped(f"BUGS  {text}")))
    if proved == len(endings):
        raise typer.Exit(ExitCode.PASS)
    only_failed = proved + failed == len(endings)
    raise typer.Exit(ExitCode.INCONCLUSIVE if only_failed else ExitCode.VIOLATION)


def _bugs_to_run(names: Sequence[str], *, every: bool) -> list[Bug]:
    """The bugs to run.

    Raises:
        SettingsError: If no bug is named, or some are named together with `every`.
    """
    from dpaudit.bugs.bug import Status, bug_named, known_bugs

    if every == bool(names):
        raise SettingsError("name bugs to run, or give `all` alone; `dpaudit bugs` lists them")
    if not every:
        return [bug_named(name) for name in names]
    return [bug for bug in known_bugs().values() if bug.status is Status.PROVED]


def _ending_lines(ending: BugEnding) -> list[str]:
    """The lines about one bug."""
    bug, outcome = ending.bug, ending.outcome
    if outcome is None:
        return wrapped(f"NOT RUN  {bug.id}: {ending.reason}", rest="  ")
    word = "PROVED" if outcome.is_proved else "NOT PROVED"
    lines = wrapped(f"{word}  {bug.id}: {bug.flaw}", rest="  ")
    for name, side in outcome.sides():
        rows = [
            Row(name, side.account),
            Row("replay", side.replay.text),
            Row("rows", "" if side.audit is None else side.audit.text),
            Row("time", duration(side.seconds)),
        ]
        lines += ["", *row_lines(row for row in rows if row.fact)]
    return lines
