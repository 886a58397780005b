"""The picture of checks: a row for each check or group of checks, a box for each outcome."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from dpaudit.formatting import printable
from dpaudit.model.choices import Severity
from dpaudit.report import figures
from dpaudit.report.svg import INK, Style, tag, text
from dpaudit.results.structure import Picture

_ROW: Final = 18.0
_BOX: Final = 12.0
_STEP: Final = 15.0
_CROSS: Final = "M3 3l6 6m0 -6l-6 6"
_SLASH: Final = "M3 9l6 -6"


class CheckEnding(StrEnum):
    """How a check ended, in the words of the legend."""

    VIOLATION = "violation"
    FLAW = "bug or note"
    PASSED = "nothing found"
    NOT_MADE = "could not be made"

    @classmethod
    def of(cls, severity: Severity) -> CheckEnding:
        """The outcome of a check with a finding."""
        return cls.VIOLATION if severity is Severity.VIOLATION else cls.FLAW


_BOXES: Final[dict[CheckEnding, Style]] = {
    CheckEnding.VIOLATION: {"fill": figures.MEMBER, "stroke": figures.MEMBER},
    CheckEnding.FLAW: {"fill": "#fbe3d6", "stroke": figures.MEMBER},
    CheckEnding.PASSED: {"fill": "white", "stroke": figures.OTHER},
    CheckEnding.NOT_MADE: {"fill": figures.GREY, "stroke": figures.GREY},
}


class CheckRow(NamedTuple):
    """One row of the picture.

    Attributes:
        name: The check, or the group of checks.
        outcomes: A box for each.
        note: The text after the boxes.
    """

    name: str
    outcomes: tuple[CheckEnding, ...]
    note: str


def draw_checks(rows: Sequence[CheckRow], *, title: str) -> str:
    """Draws rows of boxes, each distinct by mark and colour.

    Args:
        rows: The rows, at least one.
        title: What the picture shows, in a few words.

    Returns:
        An `<svg>` element; the same bytes for the same rows.
    """
    names = figures.MARGIN + figures.LETTER * max(len(row.name) for row in rows) + 8.0
    notes = names + _STEP * max(len(row.outcomes) for row in rows) + 6.0
    elements, texts = list[str](), list[str]()
    for number, row in enumerate(rows):
        middle = figures.MARGIN + _ROW * (number + 0.5)
        elements.append(text(printable(row.name), figures.MARGIN, middle, fill=INK))
        elements += [
            _box(outcome, names + _STEP * place, middle)
            for place, outcome in enumerate(row.outcomes)
        ]
        elements.append(text(printable(row.note), notes, middle, fill=INK))
        counts = (f"{n} {ending}" for ending in CheckEnding if (n := row.outcomes.count(ending)))
        texts.append(f"{printable(row.name)}: {', '.join(counts)}")
    shown = [ending for ending in CheckEnding if any(ending in row.outcomes for row in rows)]
    bottom = figures.MARGIN + _ROW * len(rows)
    entries = [(_box(ending, (figures.SWATCH - _BOX) / 2.0, 0.0), ending.value) for ending in shown]
    elements += figures.legend(entries, left=figures.MARGIN, top=bottom + 16.0)
    height = bottom + 13.0 + figures.LEGEND_ROW * len(entries)
    return figures.frame(
        Picture.CHECKS, title, figures.SvgDrawing(elements, height, f"{'; '.join(texts)}.")
    )


def _box(outcome: CheckEnding, left: float, middle: float) -> str:
    marks = {
        CheckEnding.VIOLATION: tag("path", d=_CROSS, stroke="white", stroke_width=1.8),
        CheckEnding.FLAW: tag("path", d=_SLASH, stroke=figures.MEMBER, stroke_width=1.8),
    }
    square = tag("rect", width=_BOX, height=_BOX, stroke_width=1.2, **_BOXES[outcome])
    place = f"translate({left:g} {middle - _BOX / 2.0:g})"
    return tag("g", square, marks.get(outcome, ""), transform=place)
