"""Docstrings as Markdown."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from textwrap import dedent

_SECTIONS = frozenset({"Args", "Attributes", "Returns", "Yields", "Raises"})
_ITEM = re.compile(r"(\*{0,2}[\w.]+): (.*)")


def markdown(value: object) -> str:
    """The docstring of something public: its text, and its sections as lists.

    Raises:
        ValueError: If it has none.
    """
    found = inspect.getdoc(value)
    if not found:
        raise ValueError(f"{value!r} has no docstring")
    return "\n".join(_lines(found.splitlines())).strip("\n") + "\n"


def _lines(lines: Sequence[str]) -> Iterator[str]:
    """The text as it is; below the name of a section, its items."""
    title, section = "", list[str]()
    for line in lines:
        if title and (not line or line.startswith(" ")):
            section.append(line)
            continue
        if title:
            yield from _section(title, section)
            title, section = "", []
        if line.endswith(":") and line.removesuffix(":") in _SECTIONS:
            title = line.removesuffix(":")
        else:
            yield line
    if title:
        yield from _section(title, section)


def _section(title: str, lines: Sequence[str]) -> Iterator[str]:
    text = dedent("\n".join(lines)).strip("\n")
    yield f"*{title}*"
    yield ""
    for line in text.splitlines():
        item = None if line.startswith(" ") else _ITEM.fullmatch(line)
        if item:
            yield f"- `{item[1]}`: {item[2]}"
        elif line:
            yield f"  {line.strip()}" if line.startswith(" ") else f"- {line}"
    yield ""
