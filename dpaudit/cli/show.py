"""`dpaudit show`: what a name stands for."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer

from dpaudit.cli.console import guarded, results
from dpaudit.errors import RegistryError
from dpaudit.formatting import did_you_mean
from dpaudit.plugins.registry import ATTACKS, GENERATORS, names, resolve


@guarded
def show(
    name: Annotated[str, typer.Argument(help="A generator or an attack, as for audit.")],
) -> None:
    """Shows what a generator or an attack is and which parameters it takes."""
    value = _find(name)
    output = results()
    output.print(name)
    output.print(inspect.getdoc(value) or "(no description)")
    parameters = [
        parameter
        for parameter in inspect.signature(value).parameters.values()  # type: ignore[arg-type]  # a class or function
        if parameter.name not in ("schema", "target", "self")
    ]
    output.print("")
    output.print("parameters (-p key=value):" if parameters else "takes no parameters")
    for parameter in parameters:
        default = parameter.default
        shown = "required" if default is inspect.Parameter.empty else f"default {default!s}"
        output.print(f"  {parameter.name}: {shown}")


def _find(name: str) -> object:
    if ":" in name:
        return resolve(name, GENERATORS)
    for group in (GENERATORS, ATTACKS):
        if name in names(group):
            return resolve(name, group)
    known = [*names(GENERATORS), *names(ATTACKS)]
    raise RegistryError(
        f"unknown name {name!r}{did_you_mean(name, known)}. Known: {', '.join(known)}"
    )
