"""`dpaudit list` and `dpaudit show`: what can be named."""

from __future__ import annotations

import inspect
import warnings
from enum import StrEnum
from typing import Annotated

import typer

from dpaudit.cli.faces import guarded, messages, results
from dpaudit.errors import RegistryError
from dpaudit.registry import ATTACKS, GENERATORS, Plugin, did_you_mean, names, plugins, resolve


class Group(StrEnum):
    """What can be listed."""

    GENERATORS = "generators"
    ATTACKS = "attacks"
    BOUNDS = "bounds"


_BOUNDS = {
    "exact": "Buehler bound: inverts the exact unconditional test; the verdict's bound.",
    "clopper_pearson": "Clopper-Pearson limits on both error rates; as published audits use it.",
}


@guarded
def list_registered(
    group: Annotated[Group | None, typer.Argument(help="What to list.", show_default=False)] = None,
) -> None:
    """List registered generators, attacks and bounds."""
    output = results()
    for one in Group if group is None else (group,):
        if group is None:
            output.print(f"{one}:")
        if one is Group.BOUNDS:
            entries = dict(_BOUNDS)
        else:
            entries = {name: _summary(value) for name, value in _plugins(f"dpaudit.{one}")}
        width = max((len(name) for name in entries), default=0)
        for name, summary in entries.items():
            output.print(f"  {name:<{width}}  {summary}")


@guarded
def show(
    name: Annotated[str, typer.Argument(help="A generator or an attack, as for audit.")],
) -> None:
    """Show what a generator or an attack is and which parameters it takes."""
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


def _plugins(group: str) -> list[Plugin]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = plugins(group)
    for warning in caught:
        messages().print(f"warning: {warning.message}")
    return found


def _summary(value: object) -> str:
    return (inspect.getdoc(value) or "(no description)").splitlines()[0]
