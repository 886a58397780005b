"""Pieces of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from reports.command import write_text

MARK = "<!-- table -->"
"""Stands before and after the table of a page that is otherwise written by hand."""


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


def replace_table(page: Path, text: str) -> None:
    """Writes the table between the two marks of a page.

    Args:
        page: The page.
        text: The table in Markdown.

    Raises:
        ValueError: If the page does not have exactly two marks.
    """
    before, _, after = page.read_text(encoding="utf-8").split(MARK)
    write_text(page, f"{before}{MARK}\n{text}{MARK}{after}")
