"""A frontier as a page, with its picture."""

from __future__ import annotations

import math
from itertools import groupby
from typing import Final

from dpaudit.formatting import printable, rounded
from dpaudit.frontiers.record import (
    AUDIT_FOLDER,
    Frontier,
    FrontierPoint,
    finding,
    frontier_table,
    notes,
)
from dpaudit.report.figures import (
    GREY,
    LETTER,
    MARGIN,
    SWATCH,
    WIDTH,
    SvgDrawing,
    below,
    bound_mark,
    bound_marks,
    framed,
)
from dpaudit.report.page import Page, Step, again
from dpaudit.report.standards import FRONTIER
from dpaudit.report.svg import INK, Axes, Range, Style, tag, text
from dpaudit.results.record import days
from dpaudit.results.sentences import bound_of, gravest_in_odds
from dpaudit.results.structure import Block, Picture
from dpaudit.results.verdict import Verdict
from dpaudit.versions import __version__

_AGAIN: Final = (
    "The same command continues in the same folder, and gives the same numbers again.",
)
_HEIGHT: Final = 190.0
_LEFT: Final = 44.0
_STYLES: Final = (
    ("#1f4e79", "none"),
    ("#b3420f", "6 3"),
    ("#2e6b34", "2 2"),
    ("#6a1b9a", "8 3 2 3"),
    ("#7a4d00", "1 3"),
    ("#444444", "12 3"),
)
"""Colour and dashes of each generator's line, which together no other one of six has."""
_DIAMOND: Final = "m0 -5l5 5l-5 5l-5 -5z"
_NAME: Final = 24
"""Letters that stand at either end of a name that is cut."""


def frontier_page(frontier: Frontier) -> Page:
    """Arranges the report of a frontier."""
    audits = {
        f"{point.asked} at epsilon {rounded(point.epsilon)}": point.audit
        for point in frontier.points
        if point.audit
    }
    table = frontier_table(frontier)
    failed = [Block(title="What failed", items=frontier.failures)] if frontier.failures else []
    return Page(
        verdict=frontier.verdict,
        word="FRONTIER",
        finding=finding(frontier),
        about=f"Privacy and utility on {frontier.source}, {frontier.label} predicted",
        date=days(audits.values()),
        lead=(
            *gravest_in_odds(audits),
            "Each point is a generator at one epsilon: what it claims, what an audit proves, and "
            f"how well classifiers trained on its synthetic rows predict {frontier.label}.",
            "No violation found is not evidence of privacy: smaller leaks, other records and "
            "stronger attackers are not ruled out.",
        ),
        result=Block(
            title="Result",
            picture=Picture.FRONTIER,
            caption="Higher is more useful, farther left is more private; a cross marks a claim "
            "that does not hold.",
        ),
        next_step=Step((_next(frontier),)),
        findings=(
            Block(title="Points", table=table),
            *failed,
            Block(
                title="How to read the numbers", items=tuple(row.fact for row in notes(frontier))
            ),
        ),
        clauses=FRONTIER,
        reproduce=again(frontier.source, frontier.reproduce),
        origin=f"dpaudit {__version__} from frontier.json",
        draw=lambda picture: draw_frontier(frontier),
    )


def _next(frontier: Frontier) -> str:
    """What to do about the most severe verdict."""
    audited = [(point.folder, point.audit) for point in frontier.points if point.audit]
    there = [folder for folder, audit in audited if audit.verdict is frontier.verdict]
    match frontier.verdict:
        case Verdict.VIOLATION:
            return (
                f"Open {there[0]}/{AUDIT_FOLDER}/report.html in the folder of this report: "
                "it says what leaks and how to find the cause."
            )
        case Verdict.INCONCLUSIVE:
            return (
                "Audit again with more models (--shadow-models) in another folder; dpaudit plan "
                "says how many a leak needs."
            )
        case Verdict.INVALID:
            return "Repair what failed, then run the same command again in another folder."
    return (
        "Choose a generator by its utility at the epsilon that you can defend, then audit it with "
        "more models before you release its tables (dpaudit plan)."
    )


def draw_frontier(frontier: Frontier) -> str:
    """Draws utility over epsilon: a line for each generator, and the proved bound of each point.

    Args:
        frontier: The frontier.

    Returns:
        An `<svg>` element; the same bytes for the same frontier.
    """
    width = WIDTH - _LEFT - 2.0 * MARGIN
    x, y = _epsilons(frontier), _scores(frontier)
    axes = Axes(left=_LEFT, top=8.0, width=width, height=_HEIGHT, x=x, y=y)
    real: Style = {"stroke": INK, "stroke_width": 1.0, "stroke_dasharray": "6 3"}
    elements = [
        _noise(axes, frontier),
        axes.path([(axes.x.low, frontier.real), (axes.x.high, frontier.real)], **real),
        axes.frame(),
        *_ticks(axes, frontier),
        axes.y_ticks(),
        axes.x_label("epsilon (claim)"),
        axes.y_label("AUROC on real rows"),
    ]
    entries = []
    grouped = groupby(frontier.points, lambda one: one.asked)
    for number, (asked, points) in enumerate(grouped):
        colour, dashes = _STYLES[number % len(_STYLES)]
        line: Style = {"stroke": colour, "stroke_width": 1.6, "stroke_dasharray": dashes}
        elements += _curve(axes, list(points), line)
        entries.append((tag("path", d=f"M0 0H{SWATCH:g}", **line), _shortened(asked)))
    rows, bottom = below([*entries, *_marks(real)], axes)
    described = "; ".join(map(_described, frontier.points))
    return framed(
        Picture.FRONTIER,
        "Utility over epsilon, and the proved bound of every generator",
        SvgDrawing(
            [*elements, *rows],
            bottom,
            f"{described}. Noise: {frontier.noise.mean:.3f}; real data: {frontier.real:.3f}.",
        ),
    )


def _curve(axes: Axes, points: list[FrontierPoint], line: Style) -> list[str]:
    """One generator: its line, the interval of each point, and what was proved there."""
    measured = [
        (_scaled(point.epsilon), point.utility, point.audit) for point in points if point.utility
    ]
    colour = str(line["stroke"])
    drawn = []
    if len(measured) > 1:
        drawn.append(axes.path([(x, utility.auroc.mean) for x, utility, _ in measured], **line))
    for x, utility, audit in measured:
        mean, low, high = utility.auroc
        drawn.append(axes.path([(x, low), (x, high)], stroke=colour, stroke_width=1.4))
        shape = f"M{axes.across(x):.1f} {axes.up(mean):.1f}{_DIAMOND}"
        fill = colour if utility.beats_noise else "white"
        drawn.append(tag("path", d=shape, fill=fill, stroke=colour, stroke_width=1.6))
        if audit is not None and audit.proved is not None and not audit.is_withheld:
            proved, violated = _scaled(audit.proved), audit.verdict is Verdict.VIOLATION
            drawn += [
                axes.path([(x, mean), (proved, mean)], stroke=INK, stroke_width=0.8),
                bound_mark(axes, proved, mean, size=4, violated=violated),
            ]
    return drawn


def _noise(axes: Axes, frontier: Frontier) -> str:
    """The band of what noise reaches."""
    low, high = (min(max(of, axes.y.low), 1.0) for of in (frontier.noise.low, frontier.noise.high))
    left, right = axes.x
    corners = [(left, low), (right, low), (right, high), (left, high)]
    return axes.path(corners, fill=GREY)


def _marks(real: Style) -> list[tuple[str, str]]:
    """The rows of the legend that are of no generator."""
    middle = SWATCH / 2.0

    def diamond(fill: str) -> str:
        return tag("path", d=f"M{middle:g} 0{_DIAMOND}", fill=fill, stroke=INK, stroke_width=1.6)

    ring, cross, *_ = bound_marks("epsilon")
    return [
        (diamond(INK), "mean AUROC, better than noise, with its interval"),
        (diamond("white"), "mean AUROC, not distinguishable from noise"),
        ring,
        cross,
        (tag("path", d=f"M0 0H{SWATCH:g}", **real), "real data"),
        (tag("rect", y=-4, width=SWATCH, height=8, fill=GREY), "noise"),
    ]


def _shortened(name: str) -> str:
    """A name without its middle, for names often begin and end alike."""
    shown = printable(name)
    if len(shown) <= 2 * _NAME + 1:
        return shown
    return f"{shown[:_NAME]}…{shown[-_NAME:]}"


def _epsilons(frontier: Frontier) -> Range:
    """From 0 to beyond every claim and bound, as `_scaled`."""
    ends = [0.1, *(point.epsilon for point in frontier.points)]
    ends += [point.audit.proved or 0.0 for point in frontier.points if point.audit]
    return Range(0.0, 1.05 * _scaled(max(end for end in ends if math.isfinite(end))))


def _scores(frontier: Frontier) -> Range:
    """From a round number below every interval to 1."""
    lows = [0.5, frontier.noise.low, frontier.real]
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


def _described(point: FrontierPoint) -> str:
    """A point in words."""
    audit, utility = point.audit, point.utility
    bound = f"bound {bound_of(audit)}, {audit.verdict}" if audit else "no audit"
    score = f"AUROC {utility.auroc.mean:.3f}" if utility else "no AUROC"
    return f"{printable(point.asked)} at epsilon {rounded(point.epsilon)}: {bound}, {score}"
