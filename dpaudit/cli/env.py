"""`dpaudit env`: the environments of libraries that are audited in their own process."""

from __future__ import annotations

from operator import itemgetter
from typing import Annotated

import typer

from dpaudit.cli import options
from dpaudit.cli.command import PanelledCommand, SuggestingGroup
from dpaudit.cli.console import guard, messages, results
from dpaudit.errors import RegistryError
from dpaudit.external.environments import (
    Environment,
    create_environment,
    existing_environments,
    read_built,
    remove_environments,
)
from dpaudit.formatting import Row, aligned, counted, did_you_mean, headed

env = typer.Typer(
    cls=SuggestingGroup,
    add_completion=False,
    help="Manages the pinned Python environments of libraries.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

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
            there = f"there is {', '.join(known)}" if known else "there is none"
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
