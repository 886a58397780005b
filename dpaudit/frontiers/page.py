"""A frontier as a page, HTML and Markdown, with its picture."""

from __future__ import annotations

import math
from itertools import groupby
from typing import Final

from dpaudit.formatting import clipped, printable, rounded, rounded_down
from dpaudit.frontiers.record import (
    Frontier,
    FrontierPoint,
    PointUtility,
    finding,
    frontier_table,
    notes,
)
from dpaudit.report.figures import CLAIM, LETTER, MARGIN, WIDTH, SvgDrawing, bound_mark, framed
from dpaudit.report.render import Page, page_html, page_markdown
from dpaudit.report.svg import INK, Axes, Range, Style, tag, text
from dpaudit.results.record import AuditBrief
from dpaudit.results.structure import Block, Picture
from dpaudit.results.verdict import Verdict
from dpaudit.versions import __version__

_SLOT = 17
_BETWEEN = 190
"""Where the panel of epsilon ends and that of usefulness begins, more or less."""
_LEGEND: Final = (
    "ring: proved lower bound; cross: one that violates the claim",
    "thin line: up to what a perfect attack would prove",
    "thick upright: claim; number on the left: epsilon asked for",
    "diamond: mean AUROC, with its interval; dashed: real data",
    "hollow: not distinguishable from noise, which is dotted",
)
_USEFUL = "#1f4e79"
_DIAMOND = "m0 -5l5 5l-5 5l-5 -5z"


def frontier_html(frontier: Frontier) -> str:
    """The frontier as one HTML file without scripts or anything from the network."""
    return page_html(_page(frontier), draw=lambda picture: draw_frontier(frontier))


def frontier_markdown(frontier: Frontier) -> str:
    """The frontier as Markdown, without its picture; the table has its numbers."""
    return page_markdown(_page(frontier))


def _page(frontier: Frontier) -> Page:
    blocks = [
        Block(
            title="Claim, proved bound and usefulness",
            picture=Picture.FRONTIER,
            table=frontier_table(frontier),
        ),
        Block(title="How to read this", items=notes(frontier)),
        Block(title="Again", command=frontier.reproduce),
    ]
    if frontier.failures:
        blocks.insert(1, Block(title="What failed", items=frontier.failures))
    return Page(
        verdict=frontier.verdict,
        word="FRONTIER",
        finding=finding(frontier),
        subject=f"{frontier.source}: {frontier.label} predicted",
        lead=(),
        blocks=tuple(blocks),
        origin=f"dpaudit {__version__} from frontier.json",
    )


def draw_frontier(frontier: Frontier) -> str:
    """Draws the points below one another: epsilon on the left, AUROC on the right.

    Args:
        frontier: The frontier.

    Returns:
        An `<svg>` element; the same bytes for the same frontier.
    """
    grouped = [
        (asked, list(points)) for asked, points in groupby(frontier.points, lambda one: one.asked)
    ]
    slots = sum(1 + len(points) for _, points in grouped)
    y = Range(slots - 0.5, -0.5)
    height = _SLOT * slots
    privacy = Axes(left=38, top=6, width=_BETWEEN - 50, height=height, x=_epsilons(frontier), y=y)
    useful = Axes(
        left=_BETWEEN + 6,
        top=6,
        width=WIDTH - _BETWEEN - 6 - 2 * MARGIN,
        height=height,
        x=_scores(frontier),
        y=y,
    )
    elements = [privacy.frame(), *_ticks(privacy, frontier), privacy.x_label("epsilon")]
    elements += [useful.frame(), useful.x_ticks(), useful.x_label("AUROC on real rows")]
    elements += _levels(useful, frontier)
    place = 0
    for asked, points in grouped:
        elements.append(_name(privacy, place, asked))
        for point in points:
            place += 1
            elements.append(
                text(rounded(point.epsilon), privacy.left - 9, privacy.up(place), text_anchor="end")
            )
            if point.audit is not None:
                elements += _audited(privacy, place, point.audit)
            if point.utility is not None:
                elements += _measured(useful, place, point.utility)
        place += 1
    for line, words in enumerate(_LEGEND):
        elements.append(text(words, MARGIN, privacy.bottom + 46 + 14 * line))
    described = "; ".join(map(_described, frontier.points))
    return framed(
        Picture.FRONTIER,
        "Claimed epsilon, proved bound and usefulness of every generator",
        SvgDrawing(
            elements,
            privacy.bottom + 46 + 14 * len(_LEGEND),
            f"{described}. Noise: {frontier.noise.mean:.3f}; real data: {frontier.real:.3f}.",
        ),
    )


def _name(axes: Axes, place: int, asked: str) -> str:
    outline: Style = {"stroke": "white", "stroke_width": 4, "paint_order": "stroke"}
    shown = clipped(printable(asked), int((WIDTH - 2 * MARGIN) / LETTER))
    return text(shown, MARGIN, axes.up(place), font_weight="bold", **outline)


def _epsilons(frontier: Frontier) -> Range:
    """From 0 to beyond every claim and bound, as `_scaled`."""
    ends = [0.1]
    for point in frontier.points:
        ends.append(point.epsilon)
        if point.audit is not None:
            audit = point.audit
            ends += [audit.claim.value, audit.proved or 0.0, audit.max_provable or 0.0]
    return Range(0.0, 1.05 * _scaled(max(end for end in ends if math.isfinite(end))))


def _scores(frontier: Frontier) -> Range:
    """From a round number below every interval to 1."""
    lows = [0.5, frontier.noise.mean, frontier.real]
    lows += [point.utility.auroc.low for point in frontier.points if point.utility]
    return Range(math.floor(10 * min(lows)) / 10, 1.0)


def _scaled(epsilon: float) -> float:
    """Where an epsilon lies: near 0 in proportion, far from it by its logarithm."""
    return math.log1p(epsilon)


def _ticks(axes: Axes, frontier: Frontier) -> list[str]:
    """Ticks at 0 and at the epsilons asked for, where their numbers have room."""
    drawn, last = [], -math.inf
    for epsilon in [0.0, *sorted({point.epsilon for point in frontier.points})]:
        place = axes.across(_scaled(epsilon))
        drawn.append(tag("path", d=f"M{place:.1f} {axes.bottom:g}v3.5", stroke="black"))
        words = rounded(epsilon)
        if place - last > LETTER * (len(words) + 1):
            drawn.append(text(words, place, axes.bottom + 11, text_anchor="middle"))
            last = place
    return drawn


def _levels(axes: Axes, frontier: Frontier) -> list[str]:
    """What real data and noise get, from the bottom to the top."""
    return [
        axes.path(
            [(value, axes.y.low), (value, axes.y.high)],
            stroke=INK,
            stroke_width=1,
            stroke_dasharray=dash,
        )
        for value, dash in ((frontier.real, "6 3"), (frontier.noise.mean, "1 3"))
    ]


def _audited(axes: Axes, place: int, audit: AuditBrief) -> list[str]:
    """The claim, the proved bound, and how far a proof would reach."""
    claim = _scaled(audit.claim.value)
    ends = [(claim, place - 0.4), (claim, place + 0.4)]
    drawn = [axes.path(ends, stroke=CLAIM, stroke_width=3)]
    if audit.proved is None:
        return drawn
    proved = _scaled(audit.proved)
    if audit.max_provable is not None and math.isfinite(audit.max_provable):
        most = _scaled(audit.max_provable)
        drawn.append(axes.path([(proved, place), (most, place)], stroke=INK))
        drawn.append(axes.path([(most, place - 0.2), (most, place + 0.2)], stroke=INK))
    violated = audit.verdict is Verdict.VIOLATION
    drawn.append(bound_mark(axes, proved, place, size=4, violated=violated))
    return drawn


def _measured(axes: Axes, place: int, utility: PointUtility) -> list[str]:
    """The mean AUROC and its interval."""
    mean, low, high = utility.auroc
    shape = f"M{axes.across(mean):.1f} {axes.up(place):.1f}{_DIAMOND}"
    fill = _USEFUL if utility.beats_noise else "white"
    return [
        axes.path([(low, place), (high, place)], stroke=_USEFUL, stroke_width=1.4),
        tag("path", d=shape, fill=fill, stroke=_USEFUL, stroke_width=1.6),
    ]


def _described(point: FrontierPoint) -> str:
    """A point in words."""
    said = f"{printable(point.asked)} at epsilon {rounded(point.epsilon)}: "
    if point.audit is None:
        said += "no audit"
    else:
        said += f"proved {rounded_down(point.audit.proved)}, {point.audit.verdict}"
    if point.utility is None:
        return f"{said}, no AUROC"
    return f"{said}, AUROC {point.utility.auroc.mean:.3f}"
