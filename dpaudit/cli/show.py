"""`dpaudit show`: what a name stands for."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from dpaudit.cli.console import guarded, results
from dpaudit.errors import RegistryError
from dpaudit.formatting import did_you_mean

if TYPE_CHECKING:
    from dpaudit.external.libraries import Library


@guarded
def show(
    name: Annotated[
        str, typer.Argument(help="A generator, an attack, LIBRARY:METHOD, or a bound.")
    ],
) -> None:
    """Shows what a generator, an attack or a bound is and which parameters it takes."""
    from dpaudit.bounds.table import BOUNDS
    from dpaudit.plugins.named import library_named
    from dpaudit.plugins.registry import GENERATORS, names

    place, colon, method = name.rpartition(":")
    library = library_named(place if colon else name)
    if library is not None and (colon or name not in names(GENERATORS)):
        _show_method(library, method if colon else "")
        return
    output = results()
    bound = next((entry for entry in BOUNDS if name == entry.key.value), None)
    if bound is not None:
        output.print(name)
        output.print(bound.account)
        return
    value = _find(name)
    output.print(name)
    output.print(inspect.getdoc(value) or "(no description)")
    parameters = [
        parameter
        for parameter in inspect.signature(value).parameters.values()  # type: ignore[arg-type]  # a class or function
        if parameter.name not in ("schema", "target", "self")
    ]
    no_default = inspect.Parameter.empty
    _show_parameters(
        {one.name: None if one.default is no_default else str(one.default) for one in parameters}
    )


def _show_method(library: Library, method: str) -> None:
    from dpaudit.external.libraries import adapter_account

    library.check_method(method)
    account = adapter_account(library.adapter, library.methods[method])
    output = results()
    output.print(f"{library.name}:{method}")
    output.print(account.summary or "(no description)")
    output.print(library.account)
    _show_parameters(account.parameters)


def _show_parameters(defaults: Mapping[str, str | None]) -> None:
    output = results()
    output.print("")
    output.print("parameters (-p key=value):" if defaults else "takes no parameters")
    for name, default in defaults.items():
        output.print(f"  {name}: {'required' if default is None else f'default {default}'}")


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
