"""`dpaudit list`: what can be named."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated

import typer

from dpaudit.cli.console import guarded, messages, results
from dpaudit.formatting import labelled, wrapped
from dpaudit.model.choices import Access, WorstCase


class Group(StrEnum):
    """What can be listed."""

    GENERATORS = "generators"
    ATTACKS = "attacks"
    BOUNDS = "bounds"
    WORST_CASES = "worst-cases"
    LIBRARIES = "libraries"


@guarded
def list_registered(
    group: Annotated[
        Group | None,
        typer.Argument(
            metavar="KIND",
            help="Kind to list: generators, attacks, bounds, worst-cases, libraries. Default: all.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Lists generators, attacks, bounds, worst cases and libraries."""
    from dpaudit.bounds.table import BOUNDS
    from dpaudit.plugins.named import libraries
    from dpaudit.plugins.registry import ATTACKS, GENERATORS

    output = results()
    for one in Group if group is None else (group,):
        if group is None:
            output.print(f"{one}:")
        if one is Group.BOUNDS:
            entries = {entry.key.value: entry.account for entry in BOUNDS}
        elif one is Group.WORST_CASES:
            entries = {case.value: case.meaning for case in WorstCase}
        elif one is Group.ATTACKS:
            entries = _registered(ATTACKS, _attack)
        elif one is Group.LIBRARIES:
            for of in libraries():
                names = ", ".join(f"{of.name}:{method}" for method in of.methods)
                output.print("\n".join(wrapped(of.account, first="  ", rest="  ")))
                output.print("\n".join(wrapped(names, first="    ", rest="    ")))
            continue
        else:
            entries = _registered(GENERATORS, _summary)
        width = max(map(len, entries), default=0) + 4
        for name, account in entries.items():
            for line in labelled(f"  {name}", account, width=width):
                output.print(line)


def _registered(group: str, account: Callable[[object], str]) -> dict[str, str]:
    """The account of each plugin of a group, and what must be installed before it can be used."""
    from dpaudit.plugins.registry import missing_extra, plugins

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = plugins(group)
    for warning in caught:
        messages().print(f"warning: {warning.message}")
    entries = {name: account(value) for name, value in found}
    for name in entries:
        missing = missing_extra(name, group)
        if missing is not None:
            entries[name] += f" (run: {missing.command})"
    return entries


def _attack(value: object) -> str:
    """What an attack does, and the access that it needs beyond synthetic rows."""
    from dpaudit.plugins.access import access_of

    needed = access_of(value)
    needs = "" if needed is Access.OUTPUT else f" Needs --access {needed}."
    return f"{_summary(value)}{needs}"


def _summary(value: object) -> str:
    return (inspect.getdoc(value) or "(no description)").splitlines()[0]
