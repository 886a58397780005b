"""The figure with a row for each of several things: its name, and below it a bound or bars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from dpaudit.formatting import clipped, printable
from dpaudit.report import figures
from dpaudit.report.svg import INK, Axes, Range, Style, tag, text
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
