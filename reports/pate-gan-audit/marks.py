"""Pieces of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def bullets(lines: Iterable[str]) -> str:
    """A list."""
    return "".join(f"- {line}\n" for line in lines)


def picture(words: str, file: str) -> str:
    """A figure; its description is in the file, its numbers are in the table below it."""
    return f"![{words}]({file})\n"


def number(value: float | None, digits: int = 2) -> str:
    """A number, or a dash."""
    return "–" if value is None else f"{value:.{digits}f}"


def named(names: Iterable[str]) -> str:
    """Names in brackets, if there are any."""
    said = ", ".join(names)
    return f" ({said})" if said else ""
