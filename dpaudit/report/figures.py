"""The three pictures, as inline SVG: deterministic, described in words, readable without colour."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable
from typing import NamedTuple

from dpaudit.formatting import percent, rounded, rounded_down, rounded_up
from dpaudit.model.claim import NoClaim
from dpaudit.report.svg import FONT_SIZE, INK, Axes, Range, Style, hatch, tag, text
from dpaudit.results.curves import (
    RocBand,
    claim_region,
    histogram,
    on_logarithmic_axes,
    operating_point,
    permitted_from,
    roc_band,
    roc_of,
    shown_bounds,
)
from dpaudit.results.record import AuditRecord
from dpaudit.results.structure import Picture

_IN, _OUT, CLAIM = "#b3420f", "#1f4e79", "#6a1b9a"
_PALE_IN, _PALE_CLAIM = "#fbe3d6", "#efe6f4"
# Narrow on purpose: the picture keeps legible letters when scaled down to a phone.
WIDTH = 346
MARGIN = 8
LETTER = 0.58 * FONT_SIZE
"""Width of a letter, more or less: room for names."""
# A claim this many times beyond everything else would squeeze the rest into the axis.
FAR = 3.0


class SvgDrawing(NamedTuple):
    """A picture's elements, how tall it is, and what it shows, in words."""

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
    paint, title = {
        Picture.CLAIM: (
            _claim,
            "Empirical epsilon: the proved lower bound"
            if isinstance(result.claim, NoClaim)
            else f"Claimed {result.claim.quantity.noun} against the proved lower bound",
        ),
        Picture.SCORES: (_scores, "Attack scores, in and out"),
        Picture.ROC: (_roc, "Receiver operating characteristic of the attack"),
    }[picture]
    return framed(picture, title, paint(result))


def framed(picture: Picture, title: str, drawing: SvgDrawing) -> str:
    """A drawing as an `<svg>` element with its title and description.

    Args:
        picture: What its identifiers begin with.
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


def bound_mark(axes: Axes, bound: float, place: float, *, size: int, violated: bool) -> str:
    """A proved bound: a cross if it violates the claim, else a ring; known by shape and colour.

    Args:
        axes: Where it stands.
        bound: The bound, as on the axis.
        place: Its place on the other axis.
        size: Half of the mark's width.
        violated: Whether it violates the claim.

    Returns:
        A `<path>` element.
    """
    across = 2 * size
    shape = (
        f"m-{size} -{size}l{across} {across}m0 -{across}l-{across} {across}"
        if violated
        else f"m-{size} 0a{size} {size} 0 1 0 {across} 0a{size} {size} 0 1 0 -{across} 0"
    )
    return tag(
        "path",
        d=f"M{axes.across(bound):.1f} {axes.up(place):.1f}{shape}",
        fill="none" if violated else "white",
        stroke=_IN if violated else INK,
        stroke_width=2,
    )


class _Row(NamedTuple):
    """One line of the picture of the claim: its name, where it lies, and how that is written."""

    name: str
    value: float | None
    note: str


def _claim(result: AuditRecord) -> SvgDrawing:
    """Bars from 0 to the bounds, marks for what the audit could reach, a line for the claim."""
    rows = _claim_rows(result)
    claim, noun = result.claim.value, result.claim.quantity.noun
    reach = max([row.value for row in rows if row.value is not None] + [0.1])
    far = claim > FAR * reach
    left = 2 * MARGIN + LETTER * max(len(line) for row in rows for line in row.name.split("\n"))
    axes = Axes(
        left=left,
        top=20,
        width=WIDTH - left - MARGIN,
        height=46 * len(rows),
        x=Range(0.0, 1.3 * (reach if far else max(reach, claim))),
        y=Range(len(rows) - 0.5, -0.5),
    )
    elements = [axes.frame(), axes.x_ticks(), axes.x_label(noun)]
    elements += [hatch("claim-hatch", colour=INK, fill="white")]
    claimed = "Claimed nothing"
    if not isinstance(result.claim, NoClaim):
        elements += [_claim_line(axes, claim, far=far, reach=reach)]
        claimed = f"Claimed {noun}: {rounded(claim)}"
    bars = len(shown_bounds(result))
    for place, row in enumerate(rows):
        value = row.value or 0.0
        along, middle = axes.across(value), axes.up(place)
        elements.append(axes.y_tick(place, row.name))
        if place < bars:
            bar = [(0.0, place - 0.28), (value, place - 0.28), (value, place + 0.28)]
            fill = "url(#claim-hatch)" if place else _IN
            elements.append(axes.path([*bar, (0.0, place + 0.28)], fill=fill, stroke=INK))
        elif row.value is not None:
            shape = "m-1 -5h2v10h-2z" if place == len(rows) - 1 else "m-6 0l6 -6l6 6l-6 6z"
            elements.append(tag("path", d=f"M{along:.1f} {middle:.1f}{shape}", fill=INK))
        # Legible where the line of the claim goes through it.
        outline: Style = {"stroke": "white", "stroke_width": 4, "paint_order": "stroke"}
        elements.append(text(row.note, along + 11, middle, **outline))
    listed = "; ".join(f"{' '.join(row.name.split())}: {row.note}" for row in rows)
    return SvgDrawing(elements, axes.bottom + 34, f"{claimed}; {listed}.")


def _claim_rows(result: AuditRecord) -> tuple[_Row, ...]:
    """The lines of the picture from top to bottom; bars first, then two markers."""
    most, least, _ = result.power or (None, None, None)
    return (
        *(
            _Row(
                f"proved\n({entry.label})" if entry.decides else entry.label.replace("-", "-\n"),
                value,
                rounded_down(value),
            )
            for _, entry, value in shown_bounds(result)
        ),
        *(
            ()
            if isinstance(result.claim, NoClaim)
            else (_Row("caught with\n80 % power", least, rounded_up(least)),)
        ),
        _Row("largest\nprovable", most, rounded_down(most)),
    )


def _claim_line(axes: Axes, claim: float, *, far: bool, reach: float) -> str:
    label = f"claimed {rounded(claim)}"
    if far:
        right = axes.left + axes.width
        return text(f"{label} (off the axis) →", right, 10, fill=CLAIM, text_anchor="end")
    anchor = "start" if claim < 0.7 * reach else "end"
    line = axes.upright(claim, stroke=CLAIM, stroke_width=1.8)
    return line + text(label, axes.across(claim), 10, fill=CLAIM, text_anchor=anchor)


def _scores(result: AuditRecord) -> SvgDrawing:
    """One panel per world over a common axis: hatched for in, outlined for out."""
    bins = histogram(result.scores)
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
        for top in (20, 130)
    )
    panels = [
        (upper, shares[0], f"in: {words.inside}", _IN, "url(#scores-hatch)"),
        (lower, shares[1], f"out: {words.outside}", _OUT, "none"),
    ]
    elements = [hatch("scores-hatch", colour=_IN, fill=_PALE_IN)]
    for axes, share, title, colour, fill in panels:
        elements += [axes.frame(), axes.x_ticks(numbers=axes is lower), axes.y_ticks()]
        steps = zip(bins.edges.repeat(2), [0.0, *share.repeat(2), 0.0], strict=True)
        elements.append(axes.path(steps, fill=fill, stroke=colour, stroke_width=1.6))
        if threshold is not None:
            elements.append(axes.upright(threshold.value, stroke=INK, stroke_width=1.2))
        elements.append(text(title, axes.left, axes.top - 10, fill=colour))
        elements.append(axes.y_label(f"% of {words.units}"))
    listed = (
        f"Two histograms of scores: {int(bins.inside.sum())} {words.units} in, hatched, above "
        f"{int(bins.outside.sum())} out, outlined."
    )
    if threshold is None:
        elements.append(lower.x_label("score"))
        return SvgDrawing(elements, lower.bottom + 34, f"{listed} The table below has the counts.")
    elements.append(lower.x_label(f"score (dashed: threshold {rounded(threshold.value)})"))
    listed += (
        f" The dashed line is the threshold {rounded(threshold.value)}; "
        f"{threshold.direction} scores are guessed in. The table below has the counts."
    )
    return SvgDrawing(elements, lower.bottom + 34, listed)


_PERMITTED: Style = {"fill": _PALE_CLAIM, "stroke": CLAIM, "stroke_width": 1.4}
_PERMITTED |= {"stroke_dasharray": "5 3"}
_CHANCE: Style = {"stroke": INK, "stroke_width": 1.2, "stroke_dasharray": "1 2"}
_BAND: Style = {"fill": _IN, "fill_opacity": 0.22, "stroke": "none"}
_ATTACK: Style = {"stroke": _IN, "stroke_width": 2}
_CHOSEN: Style = {"fill": "white", "stroke": INK, "stroke_width": 2, "r": 4}
_ROC_SIDE = 222
_ROC_LEFT = 62


def _roc(result: AuditRecord) -> SvgDrawing:
    """The curve, the point that was counted, chance, and what the claim permits: on two scales."""
    claim, band = result.claim, roc_band(result)
    linear = _linear_roc(result, band)
    logarithmic, bottom = _logarithmic_roc(result, band, top=8 + _ROC_SIDE + 48)
    limit = f"({claim.quantity.noun} {rounded(claim.value)})"
    permits = not isinstance(claim, NoClaim)
    region = tag("rect", x=74, y=-4, width=20, height=8, **_PERMITTED)
    legend = [
        *([(region, f"permitted by the claim {limit}")] if permits else []),
        (tag("path", d="M74 0h20", **_CHANCE), "chance"),
        (tag("path", d="M74 0h20", **_ATTACK), "attack"),
        (tag("circle", cx=84, cy=0, **_CHOSEN), "at the chosen threshold"),
    ]
    if band is not None:
        sign = tag("rect", x=74, y=-4, width=20, height=8, **_BAND)
        legend.append((sign, f"{percent(result.confidence)} limits of each rate"))
    elements = [*linear, *logarithmic]
    for place, (sign, words) in enumerate(legend):
        below = bottom + 44 + 15 * place
        elements.append(tag("g", sign, text(words, 102, 0), transform=f"translate(0 {below:g})"))
    point = operating_point(result)
    described = (
        f"At the chosen threshold the false-positive rate is {rounded(point.fpr)} and the "
        f"true-positive rate {rounded(point.tpr)}."
    )
    if permits:
        described += " The shaded band around the diagonal holds the rates that the claim permits."
    described += " Below, the same on logarithmic axes."
    if band is not None:
        described += (
            f" Around the curve, {percent(result.confidence)} Clopper-Pearson limits of each rate "
            "by itself."
        )
    return SvgDrawing(elements, bottom + 40 + 15 * len(legend), described)


def _linear_roc(result: AuditRecord, band: RocBand | None) -> list[str]:
    unit = Range(0.0, 1.0)
    axes = Axes(left=_ROC_LEFT, top=8, width=_ROC_SIDE, height=_ROC_SIDE, x=unit, y=unit)
    point = operating_point(result)
    return [
        *(
            []
            if isinstance(result.claim, NoClaim)
            else [axes.path(claim_region(result.claim), **_PERMITTED)]
        ),
        *([] if band is None else [axes.path(_outline(band), **_BAND)]),
        axes.path([(0, 0), (1, 1)], **_CHANCE),
        axes.frame(),
        axes.x_ticks(),
        axes.y_ticks(),
        axes.x_label("false positives: share of out guessed in"),
        axes.y_label("true positives: share of in guessed in"),
        axes.path(zip(*roc_of(result), strict=True), **_ATTACK),
        tag("circle", cx=axes.across(point.fpr), cy=axes.up(point.tpr), **_CHOSEN),
    ]


def _logarithmic_roc(
    result: AuditRecord, band: RocBand | None, *, top: float
) -> tuple[list[str], float]:
    """The panel and where it ends; its axes begin below what one trial in a world can show."""
    decades = math.floor(-math.log10(max(map(len, result.scores.values()))))
    low = 10.0**decades
    span = Range(decades, 0.0)
    axes = Axes(left=_ROC_LEFT, top=top, width=_ROC_SIDE, height=_ROC_SIDE, x=span, y=span)

    def path(points: Iterable[tuple[float, float]], style: Style) -> str:
        placed = [(math.log10(max(x, low)), math.log10(max(y, low))) for x, y in points]
        return axes.path(placed, **style)

    point = operating_point(result)
    x, y = (math.log10(max(rate, low)) for rate in point)
    shown = [] if band is None else [RocBand(*(on_logarithmic_axes(one, low=low) for one in band))]
    ticks = range(decades, 1)
    return [
        *(
            []
            if isinstance(result.claim, NoClaim)
            else [path(permitted_from(result.claim, low=low), _PERMITTED)]
        ),
        *(path(_outline(one), _BAND) for one in shown),
        path([(low, low), (1, 1)], _CHANCE),
        axes.frame(),
        *(axes.x_tick(place, f"{10.0**place:g}") for place in ticks),
        *(axes.y_tick(place, f"{10.0**place:g}") for place in ticks),
        axes.x_label("false positives, logarithmic"),
        axes.y_label("true positives, logarithmic", gap=44.0),
        path(zip(*on_logarithmic_axes(roc_of(result), low=low), strict=True), _ATTACK),
        tag("circle", cx=axes.across(x), cy=axes.up(y), **_CHOSEN),
    ], axes.bottom


def _outline(band: RocBand) -> list[tuple[float, float]]:
    """The corners of a band, once around."""
    worse, better = (list(zip(*curve, strict=True)) for curve in band)
    return [*worse, *reversed(better)]
