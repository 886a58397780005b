"""`dpaudit show`: what a name stands for."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from dpaudit.cli.console import guarded, results
from dpaudit.errors import RegistryError
from dpaudit.formatting import (
    Row,
    aligned,
    did_you_mean,
    headed,
    one_line,
    wrapped,
)

if TYPE_CHECKING:
    from dpaudit.external.libraries import Library


@guarded
def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Generator, attack, bound, or LIBRARY:METHOD (see `dpaudit list`)."
        ),
    ],
) -> None:
    """Shows the description and parameters of a generator, attack or bound."""
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
    output.print("\n".join(_reflowed(described)))
    parameters = [
        parameter
        for parameter in inspect.signature(value).parameters.values()  # type: ignore[arg-type]  # a class or function
        if parameter.name not in ("schema", "target", "self")
    ]
    no_default = inspect.Parameter.empty
    is_attack = name in names(ATTACKS) and name not in names(GENERATORS)
    _show_parameters(
        {one.name: None if one.default is no_default else str(one.default) for one in parameters},
        given="from Python" if is_attack else "-p NAME=VALUE",
    )


def _show_method(library: Library, method: str) -> None:
    from dpaudit.external.libraries import adapter_account

    library.check_method(method)
    account = adapter_account(library.adapter, library.methods[method])
    rows = [Row("method", account.summary or "(no description)"), Row("library", library.account)]
    results().print("\n".join(headed(f"{library.name}:{method}", rows)))
    _show_parameters(account.parameters)


def _show_parameters(defaults: Mapping[str, str | None], *, given: str = "-p NAME=VALUE") -> None:
    rows = [(f"parameter ({given})", "default")]
    rows += [(name, "required" if of is None else of) for name, of in defaults.items()]
    results().print("\n".join(["", *(aligned(rows) if defaults else ["takes no parameters"])]))


def _reflowed(docstring: str) -> list[str]:
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
    known = [*names(GENERATORS), *names(ATTACKS), *names(LIBRARIES), *bounds]
    raise RegistryError(
        f"unknown name {name!r}{did_you_mean(name, known)}. Known: {', '.join(known)}"
    )
