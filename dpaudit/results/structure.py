"""The shape of a report before it becomes HTML or Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum

# A report is for reading: further entries stay in result.json, and the report says so.
MOST_ROWS = 20
_SHORT = 14
"""Largest length of a cell that counts as short, such as a verdict."""


class Picture(StrEnum):
    """Which picture of which page."""

    CLAIM = "claim"
    SCORES = "scores"
    ROC = "roc"
    FOREST = "forest"
    LEDGER = "ledger"
    RELEASED = "released"
    CHECKS = "checks"
    SUSPECTS = "suspects"


class Level(IntEnum):
    """Level of a heading."""

    SECTION = 2
    SUBSECTION = 3


@dataclass(frozen=True)
class ReportTable:
    """A table whose first column names the rows.

    Attributes:
        header: Titles of the columns.
        rows: Cells, row by row.
        numeric: Positions of the columns that hold numbers.

    Raises:
        ValueError: If a row has another number of cells than the header.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(f"a row of {len(row)} cells under {len(self.header)} titles")

    @property
    def short(self) -> frozenset[int]:
        """Positions of the columns whose cells are all short."""
        columns = enumerate(zip(self.header, *self.rows, strict=True))
        return frozenset(at for at, cells in columns if max(map(len, cells)) <= _SHORT)

    @property
    def is_wide(self) -> bool:
        """Whether it does not fit a telephone: five columns or more, or three of text."""
        return len(self.header) > 4 or len(self.header) - len(self.numeric) > 2


@dataclass(frozen=True, kw_only=True)
class Block:
    """One part of a report under its own heading.

    Attributes:
        title: The heading.
        level: Its level.
        paragraphs: Sentences before anything else.
        items: A list.
        picture: A picture, in formats that show pictures.
        caption: What to see in the picture, in one line.
        table: A table; under a picture it holds the picture's numbers.
        command: A command to copy.
        folded: Whether it is a detail, which a page folds and a print shows.
    """

    title: str
    level: Level = Level.SECTION
    paragraphs: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    picture: Picture | None = None
    caption: str = ""
    table: ReportTable | None = None
    command: str | None = None
    folded: bool = False


def left_out(entries: Sequence[object], noun: str) -> tuple[str, ...]:
    """Says how many entries of a table are not shown, if any."""
    more = len(entries) - MOST_ROWS
    return (f"{more} more {noun} are in result.json.",) if more > 0 else ()
