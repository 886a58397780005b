"""Pieces of Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from reports.command import write_text

MARK = "<!-- table -->"
"""Stands before and after the table of a page that is otherwise written by hand."""
_CODE = re.compile(
    r"^(?P<fence>[ \t]*(?:```|~~~)).*?^(?P=fence)|(?P<ticks>`+).+?(?P=ticks)|<!--.*?-->"
    r"|^#+ \w+$|</?[a-z][^<>]*>|\]\([^)]*\)|https?://\S+|(?<=\n\n)(?:(?: {4}|\t)[^\n]*\n)+",
    re.DOTALL | re.MULTILINE,
)
"""Code, comments, tags and addresses of a page, and headings of the reference."""
_PLACEHOLDER = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b|\{\{.*?\}\}")


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


def placeholders(text: str) -> list[str]:
    """Names in capitals such as `MEDIAN_OF_ALL`, which a figure was to replace, outside of code."""
    return _PLACEHOLDER.findall(_CODE.sub(" ", text))


def require_filled(text: str, page: str) -> None:
    """Checks that a page has no place left for a figure.

    Args:
        text: The page.
        page: Its name.

    Raises:
        ValueError: If it has one; names it.
    """
    left = placeholders(text)
    if left:
        raise ValueError(f"{page}: {left[0]} was never filled")


def replace_table(page: Path, text: str, *, mark: str = MARK) -> None:
    """Writes the table between the two marks of a page.

    Args:
        page: The page.
        text: The table in Markdown.
        mark: What stands before and after it.

    Raises:
        ValueError: If the page does not have exactly two marks, or a figure is not filled in.
    """
    before, _, after = page.read_text(encoding="utf-8").split(mark)
    filled = f"{before}{mark}\n{text}{mark}{after}"
    require_filled(filled, page.name)
    write_text(page, filled)
