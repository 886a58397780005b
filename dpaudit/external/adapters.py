"""What an adapter's class takes, read from its file: its library is not installed here."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from dpaudit.errors import RegistryError
from dpaudit.files import io_reason


class AdapterAccount(NamedTuple):
    """What is said of an adapter's class.

    Attributes:
        summary: Its docstring; empty if it has none.
        parameters: Its constructor's parameters with their defaults as they are written; None where
            there is none. Those that dpaudit hands over itself are left out.
    """

    summary: str
    parameters: Mapping[str, str | None]


def adapter_account(adapter: Path, name: str) -> AdapterAccount:
    """Reads a class of an adapter; runs nothing.

    Args:
        adapter: The file.
        name: The class.

    Returns:
        What it says of itself.

    Raises:
        RegistryError: If the file cannot be read, or has no such class.
    """
    try:
        tree = ast.parse(adapter.read_bytes())
    except (OSError, SyntaxError, ValueError) as error:
        reason = io_reason(error) if isinstance(error, OSError) else str(error)
        raise RegistryError(f"the adapter {adapter} cannot be read: {reason}") from None
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    if name not in classes:
        raise RegistryError(f"the adapter {adapter} has no class {name}")
    parameters = _parameters(name, classes)
    for own in ("self", "schema"):
        parameters.pop(own, None)
    return AdapterAccount(ast.get_docstring(classes[name]) or "", parameters)


def _parameters(name: str, classes: Mapping[str, ast.ClassDef]) -> dict[str, str | None]:
    """Parameters of a class, and of its base where its constructor hands others on."""
    if name not in classes:  # it is another module's
        return {}
    bases = [base.id for base in classes[name].bases if isinstance(base, ast.Name)]
    others = {other: node for other, node in classes.items() if other != name}
    inherited = _parameters(bases[0], others) if bases else {}
    for node in classes[name].body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            own = _arguments(node.args)
            return {**own, **inherited, **own} if node.args.kwarg else own
    return inherited


def _arguments(given: ast.arguments) -> dict[str, str | None]:
    placed = [*given.posonlyargs, *given.args]
    defaults = [*[None] * (len(placed) - len(given.defaults)), *given.defaults]
    pairs = zip((*placed, *given.kwonlyargs), (*defaults, *given.kw_defaults), strict=True)
    return {of.arg: None if default is None else ast.unparse(default) for of, default in pairs}
