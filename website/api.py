"""The Python reference: every public name of the packages that users import."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from types import UnionType
from typing import Final

from website.docstrings import markdown
from website.signatures import signature

PACKAGES: Final = {
    "dpaudit.probe": "Cheap checks from outside.",
    "dpaudit.trace": "Checks of what a training records.",
    "dpaudit.explain": "Which suspect carries a violation.",
    "dpaudit.labels": "The audit of label bits.",
    "dpaudit.account": "What released votes and DP-SGD cost.",
    "dpaudit.bounds": "Counts and scores in, bounds out.",
}
"""Further packages, and what each is for."""


def main_page() -> str:
    """What `import dpaudit` offers, from docstrings and signatures alone."""
    lead = (
        "Written by `python -m website` from the code: what `import dpaudit` offers. "
        "[Further packages](packages.md) have single steps; what is on neither page is no part of "
        "the public interface and may change.\n"
    )
    return "\n".join(["# Python\n", lead, *_names("dpaudit", "##")])


def packages_page() -> str:
    """The same of packages for single steps."""
    parts = ["# Packages\n", "Written by `python -m website` from the code.\n"]
    for package, account in PACKAGES.items():
        parts += [f"## {package}\n", f"{account}\n", *_names(package, "###")]
    return "\n".join(parts)


def _names(package: str, heading: str) -> Iterator[str]:
    module = import_module(package)
    for name in module.__all__:
        if not name.startswith("_"):
            yield f"{heading} {name}\n"
            yield from _entry(name, getattr(module, name))


def _code(text: str) -> str:
    return f"```text\n{text}\n```\n"


def _entry(name: str, value: object) -> Iterator[str]:
    if inspect.isclass(value):
        yield from _class(name, value)
    elif callable(value):
        yield _code(signature(name, value))
        yield markdown(value)
    elif isinstance(value, UnionType):
        yield f"One of {', '.join(f'`{one.__name__}`' for one in value.__args__)}.\n"
    else:
        yield f"A constant: `{type(value).__name__}`.\n"


def _class(name: str, value: type) -> Iterator[str]:
    if issubclass(value, Enum):
        yield markdown(value)
        yield "".join(f"- `{one.name}`: `{one.value!r}`\n" for one in value)
        return
    protocol = getattr(value, "_is_protocol", False)
    if not protocol and not issubclass(value, Exception):
        yield _code(signature(name, value))
    yield markdown(value)
    for member, found in inspect.getmembers(value):
        if member.startswith("_") or not getattr(found, "__doc__", None):
            continue
        if isinstance(found, property):
            yield f"**`{name}.{member}`**: {inspect.getdoc(found)}\n"
        elif inspect.isfunction(found) and found.__module__.startswith("dpaudit"):
            yield _code(signature(f"{name}.{member}", found))
            yield markdown(found)
