"""`dpaudit list`: what can be named, and what a name stands for."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from dpaudit.cli.console import guard, messages, results
from dpaudit.errors import RegistryError
from dpaudit.formatting import Row, aligned, did_you_mean, headed, labelled, one_line, wrapped
from dpaudit.model.choices import Access, WorstCase

if TYPE_CHECKING:
    from dpaudit.external.generator import Library


class Group(StrEnum):
    """What can be listed."""

    GENERATORS = "generators"
    ATTACKS = "attacks"
    BOUNDS = "bounds"
    WORST_CASES = "worst-cases"
    LIBRARIES = "libraries"


@guard
def list_registered(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="KIND|NAME",
            help="Kind to list: generators, attacks, bounds, worst-cases, libraries. Or the "
            "generator, attack, bound or LIBRARY:METHOD to describe with its parameters. Default: "
            "all kinds.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Lists generators, attacks, bounds, worst cases and libraries, or describes one of them."""
    if name is None:
        for group in Group:
            results().print(f"{group}:")
            _list_group(group)
    elif name in tuple(Group):
        _list_group(Group(name))
    else:
        _describe(name)


def _list_group(group: Group) -> None:
    from dpaudit.bounds.table import BOUNDS
    from dpaudit.plugins.named import libraries
    from dpaudit.plugins.registry import ATTACKS, GENERATORS

    output = results()
    if group is Group.LIBRARIES:
        for of in libraries():
            names = ", ".join(f"{of.name}:{method}" for method in of.methods)
            output.print("\n".join(wrapped(of.account, first="  ", rest="  ")))
            output.print("\n".join(wrapped(names, first="    ", rest="    ")))
        return
    if group is Group.BOUNDS:
        entries = {entry.key.value: entry.account for entry in BOUNDS}
    elif group is Group.WORST_CASES:
        entries = {case.value: case.meaning for case in WorstCase}
    elif group is Group.ATTACKS:
        entries = _registered(ATTACKS, _attack)
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
        named = plugins(group)
    for warning in caught:
        messages().print(f"warning: {warning.message}")
    entries = {name: account(value) for name, value in named.items()}
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


def _describe(name: str) -> None:
    from dpaudit.bounds.table import BOUNDS
    from dpaudit.plugins.named import library_named
    from dpaudit.plugins.registry import ATTACKS, GENERATORS, names

    place, colon, method = name.rpartition(":")
    library = library_named(place if colon else name)
    if library is not None and (colon or name not in names(GENERATORS)):
        _show_method(library, method if colon else "")
        return
    output = results()
    bound = next((entry for entry in BOUNDS if name == entry.key.value), None)
    if bound is not None:
        rows = [Row("label", bound.label), Row("kind", bound.account)]
        output.print("\n".join(headed(name, rows)))
        return
    value = _find(name)
    output.print(f"{name}\n")
    described, _, _ = (inspect.getdoc(value) or "(no description)").partition("\n\nRaises:\n")
    output.print("\n".join(_reflow(described)))
    parameters = [
        parameter
        for parameter in inspect.signature(value).parameters.values()  # type: ignore[arg-type]  # a class or function
        if parameter.name not in ("schema", "target", "self")
    ]
    no_default = inspect.Parameter.empty
    is_attack = name in names(ATTACKS) and name not in names(GENERATORS)
    _show_parameters(
        {p.name: None if p.default is no_default else str(p.default) for p in parameters},
        given="from Python" if is_attack else "-p NAME=VALUE",
    )


def _show_method(library: Library, method: str) -> None:
    from dpaudit.external.generator import adapter_account

    library.check_method(method)
    account = adapter_account(library.adapter, library.methods[method])
    rows = [Row("method", account.summary or "(no description)"), Row("library", library.account)]
    results().print("\n".join(headed(f"{library.name}:{method}", rows)))
    _show_parameters(account.parameters)


def _show_parameters(defaults: Mapping[str, str | None], *, given: str = "-p NAME=VALUE") -> None:
    rows = [(f"parameter ({given})", "default")]
    rows += [(name, "required" if of is None else of) for name, of in defaults.items()]
    results().print("\n".join(["", *(aligned(rows) if defaults else ["takes no parameters"])]))


def _reflow(docstring: str) -> list[str]:
    """A docstring in lines of a terminal: source is wider. Entries of a section keep their own."""
    lines, block = list[str](), list[str]()
    for line in [*docstring.splitlines(), ""]:
        indent = len(line) - len(line.lstrip())
        first = len(block[0]) - len(block[0].lstrip()) if block else 0
        heads = len(block) == 1 and re.fullmatch(r"\w+:", block[0]) is not None
        goes_on = block and line and (indent > first or not indent) and not heads
        if not goes_on:
            if block:
                lines += wrapped(one_line(" ".join(block)), first=" " * first, rest=" " * 2 * first)
            block = []
            if not line:
                lines.append("")
        if line:
            block.append(line)
    return lines[:-1]


def _find(name: str) -> object:
    from dpaudit.bounds.table import BOUNDS
    from dpaudit.plugins.registry import ATTACKS, GENERATORS, LIBRARIES, names, resolve

    if ":" in name:
        return resolve(name, GENERATORS)
    for group in (GENERATORS, ATTACKS):
        if name in names(group):
            return resolve(name, group)
    bounds = [entry.key.value for entry in BOUNDS]
    known = [*names(GENERATORS), *names(ATTACKS), *names(LIBRARIES), *bounds, *map(str, Group)]
    raise RegistryError(
        f"unknown name {name!r}{did_you_mean(name, known)}: `dpaudit list` lists all names"
    )
