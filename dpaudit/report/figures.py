"""The three pictures, as inline SVG: deterministic, described in words, readable without colour."""

from __future__ import annotations

import html
from typing import NamedTuple

from dpaudit.formatting import rounded, rounded_down, rounded_up
from dpaudit.report.curves import claim_region, histogram, operating_point, roc_of, shown_bounds
from dpaudit.report.structure import Picture
from dpaudit.report.svg import FONT_SIZE, INK, Axes, Range, Style, hatch, tag, text
from dpaudit.results.record import AuditRecord
from dpaudit.results.sentences import quantity_noun

_IN, _OUT, CLAIM = "#b3420f", "#1f4e79", "#6a1b9a"
_PALE_IN, _PALE_CLAIM = "#fbe3d6", "#efe6f4"
# Narrow on purpose: the picture keeps legible letters when scaled down to a phone.
WIDTH = 346
MARGIN = 8
LETTER = 0.58 * FONT_SIZE
"""Width of a letter, more or less: room for names."""
# A claim this many times beyond everything else would squeeze the rest into the axis.
FAR = 3.0
# Bounds are bars; what the audit could have reached is a mark.
_MARKERS = 2


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
            f"Claimed {quantity_noun(result.claim.quantity)} against the proved lower bound",
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
    claim, noun = result.claim.value, quantity_noun(result.claim.quantity)
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
    elements += [_claim_line(axes, claim, far=far, reach=reach)]
    for place, row in enumerate(rows):
        value = row.value or 0.0
        along, middle = axes.across(value), axes.up(place)
        elements.append(axes.y_tick(place, row.name))
        if place < len(rows) - _MARKERS:
            bar = [(0.0, place - 0.28), (value, place - 0.28), (value, place + 0.28)]
            fill = "url(#claim-hatch)" if place else _IN
            elements.append(axes.path([*bar, (0.0, place + 0.28)], fill=fill, stroke=INK))
        elif row.value is not None:
            shape = "m-6 0l6 -6l6 6l-6 6z" if place == len(rows) - _MARKERS else "m-1 -5h2v10h-2z"
            elements.append(tag("path", d=f"M{along:.1f} {middle:.1f}{shape}", fill=INK))
        # Legible where the line of the claim goes through it.
        outline: Style = {"stroke": "white", "stroke_width": 4, "paint_order": "stroke"}
        elements.append(text(row.note, along + 11, middle, **outline))
    listed = "; ".join(f"{' '.join(row.name.split())}: {row.note}" for row in rows)
    return SvgDrawing(elements, axes.bottom + 34, f"Claimed {noun}: {rounded(claim)}; {listed}.")


def _claim_rows(result: AuditRecord) -> tuple[_Row, ...]:
    """The lines of the picture from top to bottom; bars first, then two markers."""
    most, least, _ = result.power or (None, None, None)
    return (
        *(
            _Row(f"proved\n({entry.label})", value, rounded_down(value))
            for _, entry, value in shown_bounds(result)
        ),
        _Row("caught with\n80 % power", least, rounded_up(least)),
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
    threshold = result.threshold
    if result.one_run is None:
        unit, meaning = "trials", ("trained with the target", "trained without the target")
    else:
        unit, meaning = "canaries", ("canaries trained on", "canaries left out")
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
        (upper, shares[0], f"in: {meaning[0]}", _IN, "url(#scores-hatch)"),
        (lower, shares[1], f"out: {meaning[1]}", _OUT, "none"),
    ]
    elements = [hatch("scores-hatch", colour=_IN, fill=_PALE_IN)]
    for axes, share, title, colour, fill in panels:
        elements += [axes.frame(), axes.x_ticks(numbers=axes is lower), axes.y_ticks()]
        steps = zip(bins.edges.repeat(2), [0.0, *share.repeat(2), 0.0], strict=True)
        elements.append(axes.path(steps, fill=fill, stroke=colour, stroke_width=1.6))
        if threshold is not None:
            elements.append(axes.upright(threshold.value, stroke=INK, stroke_width=1.2))
        elements.append(text(title, axes.left, axes.top - 10, fill=colour))
        elements.append(axes.y_label(f"% of {unit}"))
    listed = (
        f"Two histograms of scores: {int(bins.inside.sum())} {unit} in, hatched, above "
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


def _roc(result: AuditRecord) -> SvgDrawing:
    """The curve, the point that was counted, chance, and what the claim permits."""
    claim = result.claim
    axes = Axes(left=62, top=8, width=222, height=222, x=Range(0.0, 1.0), y=Range(0.0, 1.0))
    permitted: Style = {"fill": _PALE_CLAIM, "stroke": CLAIM, "stroke_width": 1.4}
    permitted |= {"stroke_dasharray": "5 3"}
    chance: Style = {"stroke": INK, "stroke_width": 1.2, "stroke_dasharray": "1 2"}
    attack: Style = {"stroke": _IN, "stroke_width": 2}
    chosen: Style = {"fill": "white", "stroke": INK, "stroke_width": 2, "r": 4}
    curve = roc_of(result)
    point = operating_point(result)
    elements = [
        axes.path(claim_region(claim), **permitted),
        axes.path([(0, 0), (1, 1)], **chance),
        axes.frame(),
        axes.x_ticks(),
        axes.y_ticks(),
        axes.x_label("false positives: share of out guessed in"),
        axes.y_label("true positives: share of in guessed in"),
        axes.path(zip(curve.fpr, curve.tpr, strict=True), **attack),
        tag("circle", cx=axes.across(point.fpr), cy=axes.up(point.tpr), **chosen),
    ]
    limit = f"({quantity_noun(claim.quantity)} {rounded(claim.value)})"
    legend = [
        (
            tag("rect", x=74, y=-4, width=20, height=8, **permitted),
            f"permitted by the claim {limit}",
        ),
        (tag("path", d="M74 0h20", **chance), "chance"),
        (tag("path", d="M74 0h20", **attack), "attack"),
        (tag("circle", cx=84, cy=0, **chosen), "at the chosen threshold"),
    ]
    for place, (sign, words) in enumerate(legend):
        below = axes.bottom + 44 + 15 * place
        elements.append(tag("g", sign, text(words, 102, 0), transform=f"translate(0 {below:g})"))
    described = (
        f"At the chosen threshold the false-positive rate is {rounded(point.fpr)} and the "
        f"true-positive rate {rounded(point.tpr)}. The shaded band around the diagonal holds "
        "the rates that the claim permits."
    )
    return SvgDrawing(elements, axes.bottom + 100, described)
