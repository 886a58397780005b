"""Figures with a row for each of several things: a bound or bars, or a box for each check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from dpaudit.formatting import clipped, printable
from dpaudit.model.choices import Severity
from dpaudit.report import figures
from dpaudit.report.figures import INK, Axes, Range, Style, tag, text
from dpaudit.results.structure import Picture

_ROW: Final = 34.0
_HALF: Final = 0.2
"""How far a name is above the middle of its row, and what it names below."""
_WIDTH: Final = figures.WIDTH - 4.0 * figures.MARGIN
_NUMBERS: Final = 95.0
"""Least room for the numbers right of bars."""
_BARS: Final[tuple[Style, ...]] = (
    {"fill": figures.MEMBER, "stroke": figures.MEMBER},
    {"fill": "white", "stroke": figures.OTHER, "stroke_width": 1.2},
)
_CHECK_ROW: Final = 18.0
_BOX: Final = 12.0
_STEP: Final = 15.0
_CROSS: Final = "M3 3l6 6m0 -6l-6 6"
_SLASH: Final = "M3 9l6 -6"


class ChartRow(NamedTuple):
    """One row.

    Attributes:
        name: What it is about.
        note: Its numbers, in words.
        unseen: Numbers that only the description has.
        bars: Lengths of bars, at most two.
        bound: A bound; None if there is none.
        violates: Whether the bound violates the claim.
        reach: A line up to these ends; None if there is none.
        claim: The claim; None if there is none.
    """

    name: str
    note: str = ""
    unseen: str = ""
    bars: tuple[float, ...] = ()
    bound: float | None = None
    violates: bool = False
    reach: tuple[float, float] | None = None
    claim: float | None = None


def draw_rows(
    picture: Picture,
    title: str,
    rows: Sequence[ChartRow],
    *,
    axis: str,
    ends: tuple[float, float],
    legend: Mapping[str, str],
    allowed: tuple[float, float] | None = None,
) -> str:
    """Draws rows below one another, on one axis.

    Args:
        picture: Prefix of identifiers.
        title: In a few words, what it shows.
        rows: The rows, at least one.
        axis: What their axis measures.
        ends: Where it begins and ends; a claim beyond it is an arrow.
        legend: Meanings of marks: "bar", "other bar", "bound", "violation", "reach", "claim",
            "allowed".
        allowed: A range behind all rows.

    Returns:
        An `<svg>` element; the same bytes for the same rows.
    """
    numbers = [figures.LETTER * len(row.note) + 6.0 for row in rows if row.bars]
    axes = Axes(
        left=2.0 * figures.MARGIN,
        top=6.0,
        width=_WIDTH - (min(max(_NUMBERS, *numbers), _WIDTH / 2.0) if numbers else 0.0),
        height=_ROW * len(rows),
        x=Range(*ends),
        y=Range(len(rows) - 0.5, -0.5),
    )
    elements = [axes.frame(), axes.x_ticks(), axes.x_label(axis)]
    if allowed is not None:
        (low, high), (bottom, top) = allowed, axes.y
        corners = [(low, bottom), (high, bottom), (high, top), (low, top)]
        elements.insert(0, axes.path(corners, fill=figures.GREY))
    for place, row in enumerate(rows):
        elements += _drawn(row, place, axes)
    described = "; ".join(f"{printable(row.name)}: {row.note}{row.unseen}" for row in rows)
    entries = [(_swatch(mark), words) for mark, words in legend.items()]
    below, height = figures.below(entries, axes)
    drawing = figures.SvgDrawing([*elements, *below], height, f"{described}.")
    return figures.frame(picture, title, drawing)


def _drawn(row: ChartRow, place: int, axes: Axes) -> Iterator[str]:
    above, below, right = axes.up(place - _HALF), place + _HALF, axes.left + axes.width
    letters = int(_WIDTH / figures.LETTER) - 1
    letters = letters if row.bars else max(letters - len(row.note) - 1, 12)
    yield text(clipped(printable(row.name), letters), axes.left + 4.0, above, fill=INK)
    if row.bars:
        yield text(row.note, right + 6.0, axes.up(below), fill=INK)
    else:
        yield text(row.note, right, above, text_anchor="end", fill=INK)
    for number, (length, style) in enumerate(zip(row.bars, _BARS, strict=False)):
        width, top = max(axes.across(length) - axes.left, 1.0), axes.up(below) - 7.0 + 8.0 * number
        yield tag("rect", x=axes.left, y=top, width=width, height=6.0, **style)
    if row.claim is not None and row.claim > axes.x.high:
        yield text("claim →", right, axes.up(below), text_anchor="end", fill=figures.CLAIM)
    elif row.claim is not None:
        line = [(row.claim, below - _HALF), (row.claim, below + _HALF)]
        yield axes.path(line, stroke=figures.CLAIM, stroke_width=3)
    if row.reach is not None:
        for line in ([(end, below) for end in row.reach], *_caps(row.reach, below)):
            yield axes.path(line, stroke=INK, stroke_width=1.2)
    if row.bound is not None:
        yield _bound(axes.across(row.bound), axes.up(below), violates=row.violates)


def _caps(ends: tuple[float, float], middle: float) -> list[list[tuple[float, float]]]:
    return [[(end, middle - 0.1), (end, middle + 0.1)] for end in ends]


def _bound(x: float, y: float, *, violates: bool) -> str:
    """A cross if it violates the claim, else a ring: distinct by shape and colour."""
    shape = "m-5 -5l10 10m0 -10l-10 10" if violates else "m-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0"
    style: Style = (
        {"fill": "none", "stroke": figures.MEMBER} if violates else {"fill": "white", "stroke": INK}
    )
    return tag("path", d=f"M{x:.1f} {y:.1f}{shape}", stroke_width=2, **style)


def _swatch(mark: str) -> str:
    middle = figures.SWATCH / 2.0
    box: Style = {"y": -4, "width": figures.SWATCH, "height": 8}
    return {
        "bar": tag("rect", **box, **_BARS[0]),
        "other bar": tag("rect", **box, **_BARS[1]),
        "bound": _bound(middle, 0.0, violates=False),
        "violation": _bound(middle, 0.0, violates=True),
        "reach": tag("path", d="M0 -4V4M0 0h20M20 -4V4", stroke=INK),
        "claim": tag("path", d=f"M{middle:g} -6V6", stroke=figures.CLAIM, stroke_width=3),
        "allowed": tag("rect", **box, fill=figures.GREY),
    }[mark]


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
        middle = figures.MARGIN + _CHECK_ROW * (number + 0.5)
        elements.append(text(printable(row.name), figures.MARGIN, middle, fill=INK))
        elements += [
            _box(outcome, names + _STEP * place, middle)
            for place, outcome in enumerate(row.outcomes)
        ]
        elements.append(text(printable(row.note), notes, middle, fill=INK))
        counts = (f"{n} {ending}" for ending in CheckEnding if (n := row.outcomes.count(ending)))
        texts.append(f"{printable(row.name)}: {', '.join(counts)}")
    shown = [ending for ending in CheckEnding if any(ending in row.outcomes for row in rows)]
    bottom = figures.MARGIN + _CHECK_ROW * len(rows)
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
