"""The three pictures of an audit as inline SVG, and the shapes, axes and legends of every picture.

Sizes are in points; text is sans-serif of ten. Pictures are deterministic, described in words, and
readable without colour.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from dpaudit.bounds import RocCurve
from dpaudit.formatting import percent, rounded, score_text
from dpaudit.model.claim import NoClaim
from dpaudit.results import curves
from dpaudit.results.record import AuditRecord
from dpaudit.results.structure import Picture

INK = "#222222"
FONT_SIZE = 10.0
_LINE_HEIGHT = 12.0
_TICK = 3.5
_MOST_X, _MOST_Y = 7, 5
_ROUND_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)

Style: TypeAlias = dict[str, str | float]
"""Attributes of elements, hyphens as underscores."""
MEMBER, OTHER, CLAIM = "#b3420f", "#1f4e79", "#6a1b9a"
_PALE_IN, _PALE_CLAIM = "#fbe3d6", "#efe6f4"
# Narrow on purpose: the picture keeps legible letters when scaled down to a phone.
WIDTH = 346
MARGIN = 8
LETTER = 0.58 * FONT_SIZE
"""Approximate width of a letter, to reserve room for names."""
GREY = "#cccccc"
"""Colour of the range beyond the limit, in which nothing can be proved."""
_DARK = (
    "<style>@media (prefers-color-scheme: dark) "
    "{ svg { filter: invert(1) hue-rotate(180deg) } }</style>"
)
SWATCH = 20.0
"""Width of the marks of a legend."""
LEGEND_ROW = 15.0
"""Height of a row of a legend."""
_PERMITTED: Style = {
    "fill": _PALE_CLAIM,
    "stroke": CLAIM,
    "stroke_width": 1.4,
    "stroke_dasharray": "5 3",
}
_CHANCE: Style = {"stroke": INK, "stroke_width": 1.2, "stroke_dasharray": "1 2"}
_BAND: Style = {"fill": MEMBER, "fill_opacity": 0.22, "stroke": "none"}
_ATTACK: Style = {"stroke": MEMBER, "stroke_width": 2}
_CHOSEN: Style = {"fill": "white", "stroke": INK, "stroke_width": 2, "r": 4}
_ROC_SIDE = 222
_ROC_LEFT = 62


class Range(NamedTuple):
    """The range of an axis."""

    low: float
    high: float

    def ticks(self, most: int) -> list[float]:
        """Round numbers inside it, with at most so many steps between its ends."""
        finest = (self.high - self.low) / most
        magnitude = 10.0 ** math.floor(math.log10(finest))
        step = next(step * magnitude for step in _ROUND_STEPS if step * magnitude >= finest)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [round(place * step, 12) for place in range(first, last + 1)]


def tag(name: str, *children: str, **attributes: str | float) -> str:
    """Writes an element.

    Args:
        name: Its name.
        children: What is inside, escaped already.
        attributes: Its attributes, hyphens as underscores; numbers are rounded.

    Returns:
        The element.
    """
    written = (f'{key.replace("_", "-")}="{_value(value)}"' for key, value in attributes.items())
    return f"<{' '.join([name, *written])}>{''.join(children)}</{name}>"


def text(words: str, x: float, y: float, **attributes: str | float) -> str:
    """Writes text whose lines are centred around a height.

    Args:
        words: The text, which may have several lines.
        x: Where it is anchored.
        y: The middle of its lines.
        attributes: Attributes of every line.

    Returns:
        The elements.
    """
    lines = words.splitlines()
    first = y + 0.35 * FONT_SIZE - (len(lines) - 1) * _LINE_HEIGHT / 2.0
    return "".join(
        tag("text", html.escape(line), x=x, y=first + place * _LINE_HEIGHT, **attributes)
        for place, line in enumerate(lines)
    )


def hatch(name: str, *, colour: str, fill: str) -> str:
    """Defines the pattern of that name: oblique lines."""
    square = tag("rect", width=5, height=5, fill=fill)
    line = tag("path", d="M0 0V5", stroke=colour, stroke_width=1.2)
    turned: Style = {"patternUnits": "userSpaceOnUse", "patternTransform": "rotate(45)"}
    return tag("defs", tag("pattern", square, line, id=name, width=5, height=5, **turned))


def _value(value: str | float) -> str:
    return html.escape(value) if isinstance(value, str) else _number(value)


def _number(value: float) -> str:
    return f"{round(value, 2):g}"


@dataclass(frozen=True, kw_only=True)
class Axes:
    """A rectangle of a picture and the ranges that it shows.

    Attributes:
        left: Where it begins.
        top: Its upper edge.
        width: Width of the rectangle.
        height: Height of the rectangle.
        x: Range from left to right.
        y: Range from the bottom up.
    """

    left: float
    top: float
    width: float
    height: float
    x: Range
    y: Range

    @property
    def bottom(self) -> float:
        """The lower edge."""
        return self.top + self.height

    def across(self, value: float) -> float:
        """Where a value of x lies."""
        return self.left + self.width * (value - self.x.low) / (self.x.high - self.x.low)

    def up(self, value: float) -> float:
        """Where a value of y lies."""
        return self.bottom - self.height * (value - self.y.low) / (self.y.high - self.y.low)

    def path(self, points: Iterable[tuple[float, float]], **attributes: str | float) -> str:
        """A line through points (x, y)."""
        corners = (f"{_number(self.across(x))} {_number(self.up(y))}" for x, y in points)
        return tag("path", d=f"M{'L'.join(corners)}", **({"fill": "none"} | attributes))

    def upright(self, x: float, **attributes: str | float) -> str:
        """A line from the bottom to the top."""
        return self.path([(x, self.y.low), (x, self.y.high)], stroke_dasharray="5 3", **attributes)

    def frame(self) -> str:
        """The line on the left and the one below."""
        corners = f"M{self.left} {self.top}V{self.bottom}H{self.left + self.width}"
        return tag("path", d=corners, fill="none", stroke="black", stroke_width=0.8)

    def x_ticks(self, *, numbers: bool = True) -> str:
        """Ticks below, with their numbers."""
        return "".join(
            self.x_tick(value, _shown(value) if numbers else "") for value in self.x.ticks(_MOST_X)
        )

    def x_tick(self, value: float, words: str) -> str:
        """One tick below, and what is written under it."""
        place = self.across(value)
        line = tag("path", d=f"M{_number(place)} {self.bottom}v{_TICK}", stroke="black")
        return line + text(words, place, self.bottom + 11, text_anchor="middle")

    def y_ticks(self) -> str:
        """Ticks on the left, with their numbers."""
        return "".join(self.y_tick(value, _shown(value)) for value in self.y.ticks(_MOST_Y))

    def y_tick(self, value: float, words: str) -> str:
        """One tick on the left, and its label."""
        place = self.up(value)
        line = tag("path", d=f"M{self.left} {_number(place)}h{-_TICK}", stroke="black")
        return line + text(words, self.left - 7, place, text_anchor="end")

    def x_label(self, words: str) -> str:
        """The name of the axis below."""
        return text(words, self.left + self.width / 2, self.bottom + 26, text_anchor="middle")

    def y_label(self, words: str, *, gap: float = 36.0) -> str:
        """The name of the axis on the left, from the bottom up."""
        x, y = self.left - gap, self.top + self.height / 2
        turned = f"rotate(-90 {_number(x)} {_number(y)})"
        return text(words, x, y, text_anchor="middle", transform=turned)


def _shown(value: float) -> str:
    return f"{value:g}".replace("-", "\N{MINUS SIGN}")


class SvgDrawing(NamedTuple):
    """A picture's elements, its height, and a description in words."""

    elements: list[str]
    height: float
    description: str


def draw(picture: Picture, result: AuditRecord) -> str:
    """Draws one picture.

    Args:
        picture: Which one; SCORES and ROC need scores, CLAIM needs bounds.
        result: The record of an audit.

    Returns:
        An `<svg>` element whose identifiers begin with the picture's name; the same bytes for
        the same result.
    """
    claimed = "Empirical" if isinstance(result.claim, NoClaim) else "Claimed and empirical"
    paint, title = {
        Picture.CLAIM: (_claim, f"{claimed} {result.claim.quantity.noun}"),
        Picture.SCORES: (_scores, "Attack scores of members and non-members"),
        Picture.ROC: (_roc, "Receiver operating characteristic of the attack"),
    }[picture]
    return frame(picture, title, paint(result))


def frame(picture: Picture, title: str, drawing: SvgDrawing) -> str:
    """A drawing as an `<svg>` element with its title and description.

    Args:
        picture: Prefix of its identifiers.
        title: In a few words, what it shows.
        drawing: What was drawn, `WIDTH` wide.

    Returns:
        The element.
    """
    return tag(
        "svg",
        tag("title", html.escape(title), id=f"{picture}-title"),
        tag("desc", html.escape(drawing.description), id=f"{picture}-desc"),
        *drawing.elements,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {drawing.height:g}",
        role="img",
        aria_labelledby=f"{picture}-title {picture}-desc",
        font_family="sans-serif",
        font_size=FONT_SIZE,
    )


def standalone(element: str) -> str:
    """A picture as a separate file whose colours follow a dark page around it.

    Args:
        element: An `<svg>` element.

    Returns:
        The file.
    """
    start, end, rest = element.partition(">")
    return f"{start}{end}{_DARK}{rest}\n"


def legend(entries: Iterable[tuple[str, str]], *, left: float, top: float) -> list[str]:
    """The rows of a legend, below one another.

    Args:
        entries: For each row its mark, drawn from (0, 0) to the right, `SWATCH` wide, and its text.
        left: Where the marks begin.
        top: The middle of the first row.

    Returns:
        Elements; each row is 15 points high.
    """
    return [
        tag(
            "g",
            mark,
            text(words, SWATCH + 8.0, 0.0),
            transform=f"translate({left:g} {top + LEGEND_ROW * place:g})",
        )
        for place, (mark, words) in enumerate(entries)
    ]


def below(entries: Sequence[tuple[str, str]], axes: Axes) -> tuple[list[str], float]:
    """A legend below an axis with its name, and where it ends."""
    top = axes.bottom + 48.0
    return legend(entries, left=MARGIN, top=top), top + LEGEND_ROW * len(entries) - 3.0


def _claim(result: AuditRecord) -> SvgDrawing:
    """One axis: bars up to the bounds, marks for the claim and for what the audit can reach."""
    shown = curves.claim_axis(result)
    left, x = 2.0 * MARGIN, Range(0.0, shown.end)
    width = WIDTH - 2.0 * left
    axes = Axes(left=left, top=MARGIN, width=width, height=48.0, x=x, y=Range(0.0, 1.0))
    drawn: list[tuple[str, str, str]] = []  # on the axis, in the legend, its words
    if shown.limit is not None:
        corners = [(shown.limit.value, 0.0), (shown.end, 0.0), (shown.end, 1.0)]
        area = axes.path([*corners, (shown.limit.value, 1.0)], fill=GREY)
        drawn.append((area, _box(GREY), shown.limit.words))
    bar = _bar(axes, shown.proved.value, 0.52, fill=MEMBER)
    drawn.append((bar, _box(MEMBER, 8.0), shown.proved.words))
    if shown.compared is not None:
        thin: Style = {"fill": "white", "stroke": INK, "stroke_width": 0.8}
        bar = _bar(axes, shown.compared.value, 0.16, **thin)
        drawn.append((bar, tag("rect", y=-2, width=SWATCH, height=4, **thin), shown.compared.words))
    if shown.detectable is not None:
        triangle: Style = {"fill": INK}
        place = axes.across(shown.detectable.value)
        mark = tag("path", d=f"M{place:.1f} {axes.bottom:.1f}l-4 -8h8z", **triangle)
        swatch = tag("path", d=f"M{SWATCH / 2:g} 4l-4 -8h8z", **triangle)
        drawn.append((mark, swatch, shown.detectable.words))
    if shown.claim is not None:
        line: Style = {"stroke": CLAIM, "stroke_width": 2.2, "fill": "none"}
        place = min(shown.claim.value, shown.end)
        mark = "" if shown.claim_is_off else axes.path([(place, 0.0), (place, 1.0)], **line)
        swatch = tag("path", d=f"M{SWATCH / 2:g} -6v12", **line)
        drawn.append((mark, swatch, shown.claim.words))
    order = [*drawn[1:], *drawn[:1]] if shown.limit is not None else drawn
    entries = [(swatch, words) for _, swatch, words in order]
    rows, bottom = below(entries, axes)
    noun = result.claim.quantity.noun
    elements = [mark for mark, _, _ in drawn] + [axes.frame(), axes.x_ticks(), axes.x_label(noun)]
    listed = "; ".join(words for _, words in entries)
    return SvgDrawing([*elements, *rows], bottom, f"On an axis of {noun}: {listed}.")


def _bar(axes: Axes, value: float, thickness: float, **style: str | float) -> str:
    """A bar from 0 to a value, centred; a value of 0 has the thinnest visible bar."""
    low, high = 0.5 - thickness / 2.0, 0.5 + thickness / 2.0
    width = max(axes.across(value) - axes.left, 1.5)
    top = axes.up(high)
    return tag("rect", x=axes.left, y=top, width=width, height=axes.up(low) - top, **style)


def _box(fill: str, height: float = 10.0) -> str:
    return tag("rect", y=-height / 2.0, width=SWATCH, height=height, fill=fill)


def _scores(result: AuditRecord) -> SvgDrawing:
    """One panel per world over a common axis: hatched for members, outlined for the others."""
    bins = curves.histogram(result.scores)
    threshold, words = result.threshold, result.game.words
    shares = [100.0 * counts / counts.sum() for counts in (bins.inside, bins.outside)]
    tallest = Range(0.0, 1.05 * max(float(share.max()) for share in shares))
    low, high = float(bins.edges[0]), float(bins.edges[-1])
    if threshold is not None:
        low, high = min(low, threshold.value), max(high, threshold.value)
    margin = 0.02 * (high - low)
    across = Range(low - margin, high + margin)
    upper, lower = (
        Axes(left=46, top=top, width=WIDTH - 46 - MARGIN, height=84, x=across, y=tallest)
        for top in (8, 108)
    )
    member: Style = {"fill": "url(#scores-hatch)", "stroke": MEMBER, "stroke_width": 1.6}
    other: Style = {"fill": "none", "stroke": OTHER, "stroke_width": 1.6}
    cut: Style = {"stroke": INK, "stroke_width": 1.2, "stroke_dasharray": "5 3"}
    box: Style = {"y": -4.0, "width": SWATCH, "height": 8.0}
    entries = [
        (tag("rect", **box, **member), words.inside),
        (tag("rect", **box, **other), words.outside),
    ]
    elements = [hatch("scores-hatch", colour=MEMBER, fill=_PALE_IN)]
    for axes, share, style in ((upper, shares[0], member), (lower, shares[1], other)):
        elements += [axes.frame(), axes.x_ticks(numbers=axes is lower), axes.y_ticks()]
        steps = zip(bins.edges.repeat(2), [0.0, *share.repeat(2), 0.0], strict=True)
        elements.append(axes.path(steps, **style))
        if threshold is not None:
            elements.append(axes.upright(threshold.value, stroke=INK, stroke_width=1.2))
        elements.append(axes.y_label(f"% of {words.units}"))
    elements.append(lower.x_label("membership score"))
    listed = (
        f"Two histograms of the scores of {words.units}: {words.inside}, hatched "
        f"({int(bins.inside.sum())}); below, {words.outside}, outlined ({int(bins.outside.sum())})."
    )
    if threshold is not None:
        value = score_text(threshold.value)
        entries.append((tag("path", d=f"M0 0h{SWATCH:g}", **cut), f"threshold: {value}"))
        listed += (
            f" The dashed line is the threshold {value}; "
            f"{threshold.direction} scores are guessed to be members."
        )
    rows, bottom = below(entries, lower)
    return SvgDrawing([*elements, *rows], bottom, f"{listed} The table below has the counts.")


def _roc(result: AuditRecord) -> SvgDrawing:
    """The curve, the chosen point, chance, and what the claim permits, on two scales."""
    claim, band = result.claim, curves.roc_band(result)
    # Logarithmic axes begin below what one trial in a world can show.
    decades = math.floor(-math.log10(max(map(len, result.scores.values()))))
    linear, logarithmic = (
        Axes(left=_ROC_LEFT, top=top, width=_ROC_SIDE, height=_ROC_SIDE, x=span, y=span)
        for top, span in ((8, Range(0.0, 1.0)), (8 + _ROC_SIDE + 48, Range(decades, 0.0)))
    )
    permits = not isinstance(claim, NoClaim)
    box: Style = {"y": -4.0, "width": SWATCH, "height": 8.0}
    line = f"M0 0h{SWATCH:g}"
    entries = []
    if permits:
        limit = f"({claim.quantity.noun} {rounded(claim.value)})"
        entries.append((tag("rect", **box, **_PERMITTED), f"permitted by the claim {limit}"))
    entries += [
        (tag("path", d=line, **_CHANCE), "chance"),
        (tag("path", d=line, **_ATTACK), f"attack {result.attack}"),
        (tag("circle", cx=SWATCH / 2, cy=0, **_CHOSEN), "at the threshold"),
    ]
    if band is not None:
        limits = f"{percent(result.confidence)} limits of each rate"
        entries.append((tag("rect", **box, **_BAND), limits))
    top = logarithmic.bottom + 48.0
    elements = [
        *_roc_panel(result, band, linear),
        *_roc_panel(result, band, logarithmic, low=10.0**decades),
        *legend(entries, left=_ROC_LEFT, top=top),
    ]
    point = curves.operating_point(result)
    described = (
        f"At the threshold the false positive rate is {rounded(point.fpr)} and the true positive "
        f"rate {rounded(point.tpr)}."
    )
    if permits:
        described += " The shaded band around the diagonal holds the rates that the claim permits."
    described += " Below, the same on logarithmic axes."
    if band is not None:
        described += (
            f" Around the curve, {percent(result.confidence)} Clopper-Pearson limits of each rate "
            "by itself."
        )
    return SvgDrawing(elements, top + LEGEND_ROW * len(entries) - 3.0, described)


def _roc_panel(
    result: AuditRecord, band: curves.RocBand | None, axes: Axes, *, low: float | None = None
) -> list[str]:
    """The curve, the chosen point, chance, limits and what the claim permits, on some axes.

    Args:
        result: The record of an audit.
        band: Limits of the rates.
        axes: Where they are drawn.
        low: Where logarithmic axes begin; None for linear ones.
    """

    def placed(rate: float) -> float:
        return rate if low is None else math.log10(max(rate, low))

    def path(points: Iterable[tuple[float, float]], style: Style) -> str:
        return axes.path([(placed(x), placed(y)) for x, y in points], **style)

    def drawn(curve: RocCurve) -> RocCurve:
        return curve if low is None else curves.on_logarithmic_axes(curve, low=low)

    elements = []
    if not isinstance(result.claim, NoClaim):
        region = curves.claim_region(result.claim)
        elements.append(
            path(
                region if low is None else curves.permitted_from(result.claim, low=low), _PERMITTED
            )
        )
    if band is not None:
        worse, better = (list(zip(*drawn(corners), strict=True)) for corners in band)
        elements.append(path([*worse, *reversed(better)], _BAND))
    start = 0.0 if low is None else low
    x, y = map(placed, curves.operating_point(result))
    elements += [path([(start, start), (1, 1)], _CHANCE), axes.frame()]
    if low is None:
        elements += [axes.x_ticks(), axes.y_ticks()]
    else:
        ticks = range(round(axes.x.low), 1)
        elements += [axes.x_tick(place, f"{10.0**place:g}") for place in ticks]
        elements += [axes.y_tick(place, f"{10.0**place:g}") for place in ticks]
    scale = "" if low is None else ", logarithmic"
    return [
        *elements,
        axes.x_label(f"false positive rate{scale}"),
        axes.y_label(f"true positive rate{scale}", gap=36.0 if low is None else 44.0),
        path(zip(*drawn(curves.roc_of(result)), strict=True), _ATTACK),
        tag("circle", cx=axes.across(x), cy=axes.up(y), **_CHOSEN),
    ]
