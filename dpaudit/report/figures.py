"""The three pictures, as inline SVG: deterministic, described in words, readable without colour."""

from __future__ import annotations

import html
import io
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure

from dpaudit.formatting import rounded, rounded_down, rounded_up
from dpaudit.report.curves import claim_region, histogram, operating_point, roc_of, shown_bounds
from dpaudit.report.structure import Picture
from dpaudit.results.record import AuditRecord
from dpaudit.results.sentences import quantity_noun

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_IN, _OUT, _INK, _CLAIM = "#b3420f", "#1f4e79", "#222222", "#6a1b9a"
# Narrow on purpose: the picture keeps legible letters when scaled down to a phone.
_WIDTH = 4.8
_POINTS_PER_INCH = 72  # the unit of matplotlib's SVG
_STYLE: Any = {
    "font.size": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "hatch.linewidth": 0.6,
    "svg.fonttype": "none",
    "svg.hashsalt": "dpaudit",
}
_NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}
# A claim this many times beyond everything else would squeeze the rest into the axis.
_FAR = 3.0
# Bounds are bars; what the audit could have reached is a mark.
_MARKERS = 2


def draw(picture: Picture, result: AuditRecord) -> str:
    """Draws one picture.

    Args:
        picture: Which one; SCORES and ROC need scores, CLAIM needs bounds.
        result: The record of an audit.

    Returns:
        An `<svg>` element whose identifiers begin with the picture's name; the same bytes for
        the same result.
    """
    painter, title = {
        Picture.CLAIM: (
            _claim,
            f"Claimed {quantity_noun(result.claim.quantity)} against the proved lower bound",
        ),
        Picture.SCORES: (_scores, "Attack scores, in and out"),
        Picture.ROC: (_roc, "Receiver operating characteristic of the attack"),
    }[picture]
    with mpl.rc_context(_STYLE):
        figure = Figure(layout="constrained")
        description = painter(figure, result)
        return _inline_svg(figure, picture=picture, title=title, description=description)


class _Row(NamedTuple):
    """One line of the picture of the claim: its name, where it lies, and how that is written."""

    name: str
    value: float | None
    note: str


def _claim(figure: Figure, result: AuditRecord) -> str:
    """Bars from 0 to the bounds, marks for what the audit could reach, a line for the claim."""
    figure.set_size_inches(_WIDTH, 2.6)
    axes = figure.subplots()
    rows = _claim_rows(result)
    claim, noun = result.claim.value, quantity_noun(result.claim.quantity)
    reach = max([row.value for row in rows if row.value is not None] + [0.1])
    far = claim > _FAR * reach
    bars = len(rows) - _MARKERS
    for place, row in enumerate(rows):
        value = row.value or 0.0
        if place < bars:
            hatch = "////" if place else None
            colour = "white" if place else _IN
            axes.barh(
                place, value, height=0.55, facecolor=colour, edgecolor=_INK, hatch=hatch, zorder=2
            )
        elif row.value is not None:
            marker = "D" if place == bars else "|"
            axes.plot(
                [value], [place], marker, color=_INK, markersize=9, markeredgewidth=2, zorder=5
            )
        _beside(axes, place, value, row.note)
    _claim_line(axes, claim, far=far, reach=reach)
    axes.set_yticks(range(len(rows)), [row.name for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(0.0, 1.3 * (reach if far else max(reach, claim)))
    axes.set_xlabel(noun)
    listed = "; ".join(f"{' '.join(row.name.split())}: {row.note}" for row in rows)
    return f"Claimed {noun}: {rounded(claim)}; {listed}."


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


def _claim_line(axes: Axes, claim: float, *, far: bool, reach: float) -> None:
    label = f"claimed {rounded(claim)}"
    if far:
        axes.text(
            1.0,
            1.02,
            f"{label} (off the axis) →",
            color=_CLAIM,
            ha="right",
            transform=axes.transAxes,
        )
        return
    axes.axvline(claim, color=_CLAIM, linestyle="--", linewidth=1.8, zorder=1)
    side = "left" if claim < 0.7 * reach else "right"
    axes.text(claim, 1.02, label, color=_CLAIM, ha=side, transform=axes.get_xaxis_transform())


def _beside(axes: Axes, row: int, value: float, note: str) -> None:
    axes.annotate(
        note,
        (value, row),
        xytext=(11, 0),
        textcoords="offset points",
        va="center",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
    )


def _scores(figure: Figure, result: AuditRecord) -> str:
    """One panel per world over a common axis: hatched for in, outlined for out."""
    figure.set_size_inches(_WIDTH, 3.4)
    upper, lower = figure.subplots(2, 1, sharex=True, sharey=True)
    bins = histogram(result.scores)
    threshold = result.threshold
    if result.one_run is None:
        unit, meaning = "trials", ("trained with the target", "trained without the target")
    else:
        unit, meaning = "canaries", ("canaries trained on", "canaries left out")
    panels = [
        (upper, bins.inside, f"in: {meaning[0]}", _IN, "////"),
        (lower, bins.outside, f"out: {meaning[1]}", _OUT, None),
    ]
    for axes, counts, title, colour, hatch in panels:
        axes.stairs(
            100.0 * counts / counts.sum(),
            bins.edges,
            fill=hatch is not None,
            facecolor="#fbe3d6" if hatch else "none",
            edgecolor=colour,
            hatch=hatch,
            linewidth=1.6,
        )
        if threshold is not None:
            axes.axvline(threshold.value, color=_INK, linestyle="--", linewidth=1.2)
        axes.set_title(title, loc="left", fontsize=10, color=colour)
        axes.set_ylabel(f"% of {unit}")
    lower.set_ylim(bottom=0.0)
    listed = (
        f"Two histograms of scores: {int(bins.inside.sum())} {unit} in, hatched, above "
        f"{int(bins.outside.sum())} out, outlined."
    )
    if threshold is None:
        lower.set_xlabel("score")
        return f"{listed} The table below has the counts."
    left, right = min(bins.edges[0], threshold.value), max(bins.edges[-1], threshold.value)
    margin = 0.02 * (right - left)
    lower.set_xlim(left - margin, right + margin)
    lower.set_xlabel(f"score (dashed: threshold {rounded(threshold.value)})")
    return (
        f"{listed} The dashed line is the threshold {rounded(threshold.value)}; "
        f"{threshold.direction} scores are guessed in. The table below has the counts."
    )


def _roc(figure: Figure, result: AuditRecord) -> str:
    """The curve, the point that was counted, chance, and what the claim permits."""
    figure.set_size_inches(_WIDTH, 4.6)
    axes = figure.subplots()
    claim = result.claim
    region = claim_region(claim)
    axes.fill(
        [point.fpr for point in region],
        [point.tpr for point in region],
        facecolor="#efe6f4",
        edgecolor=_CLAIM,
        linestyle="--",
        linewidth=1.4,
        label=f"permitted by the claim ({quantity_noun(claim.quantity)} {rounded(claim.value)})",
    )
    axes.plot([0, 1], [0, 1], ":", color=_INK, linewidth=1.2, label="chance")
    curve = roc_of(result)
    axes.plot(curve.fpr, curve.tpr, "-", color=_IN, linewidth=2, label="attack", clip_on=False)
    point = operating_point(result)
    axes.plot(
        [point.fpr],
        [point.tpr],
        "o",
        color=_INK,
        markerfacecolor="white",
        markeredgewidth=2,
        markersize=8,
        clip_on=False,
        zorder=5,
        label="at the chosen threshold",
    )
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.set_xlabel("false positives: share of out guessed in")
    axes.set_ylabel("true positives: share of in guessed in")
    figure.legend(loc="outside lower center", ncols=1, frameon=False)
    return (
        f"At the chosen threshold the false-positive rate is {rounded(point.fpr)} and the "
        f"true-positive rate {rounded(point.tpr)}. The shaded band around the diagonal holds "
        "the rates that the claim permits."
    )


def _inline_svg(figure: Figure, *, picture: Picture, title: str, description: str) -> str:
    """Serialises a figure for inclusion in HTML: own identifiers, a title, and a description."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata=_NO_METADATA, transparent=True)
    drawing = buffer.getvalue()
    drawing = drawing[drawing.index("<svg") :]
    drawing = re.sub(r"<!--.*?-->\s*", "", drawing, flags=re.DOTALL)
    drawing = re.sub(r'\bid="', f'id="{picture}-', drawing)
    drawing = re.sub(r"url\(#", f"url(#{picture}-", drawing)
    drawing = re.sub(r'href="#', f'href="#{picture}-', drawing)
    _, rest = drawing.split(">", 1)
    width, height = (_POINTS_PER_INCH * side for side in figure.get_size_inches())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-labelledby="{picture}-title {picture}-desc">'
        f'<title id="{picture}-title">{html.escape(title)}</title>'
        f'<desc id="{picture}-desc">{html.escape(description)}</desc>{rest.strip()}'
    )
