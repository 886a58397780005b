"""The picture of a comparison: of each run claim, proved bound, and how far a proof reaches."""

from __future__ import annotations

import math

from dpaudit.comparison.compare import ComparedRun, Comparison
from dpaudit.formatting import clipped, printable
from dpaudit.report.figures import CLAIM, FAR, LETTER, MARGIN, WIDTH, SvgDrawing, bound_mark, framed
from dpaudit.report.svg import INK, Axes, Range, text
from dpaudit.results.sentences import claim_and_proof
from dpaudit.results.structure import Picture
from dpaudit.results.verdict import Verdict

_ROW = 36
_LEGEND = (
    "ring: proved lower bound; cross: one that violates the claim",
    "thin line: up to what a perfect attack would prove",
    "thick upright: claim",
)


def draw_forest(comparison: Comparison) -> str:
    """Draws the runs below one another, on one axis.

    Args:
        comparison: Audits whose claims limit one quantity.

    Returns:
        An `<svg>` element; the same bytes for the same comparison.

    Raises:
        ValueError: If the claims limit different quantities.
    """
    if comparison.quantity is None:
        raise ValueError("claims of different quantities have no common axis")
    noun = comparison.quantity.noun
    axes = Axes(
        left=MARGIN,
        top=6,
        width=WIDTH - 2 * MARGIN,
        height=_ROW * len(comparison.runs),
        x=Range(0.0, _reach(comparison)),
        y=Range(len(comparison.runs) - 0.5, -0.5),
    )
    elements = [axes.frame(), axes.x_ticks(), axes.x_label(noun)]
    for place, run in enumerate(comparison.runs):
        elements += _row(axes, place, run)
    for line, words in enumerate(_LEGEND):
        elements.append(text(words, MARGIN, axes.bottom + 46 + 14 * line))
    described = "; ".join(f"{printable(run.name)}: {_note(run)}" for run in comparison.runs)
    title = f"Claimed {noun} and proved lower bound, run by run"
    return framed(Picture.FOREST, title, SvgDrawing(elements, axes.bottom + 92, f"{described}."))


def _reach(comparison: Comparison) -> float:
    """Where the axis ends: beyond all bounds, and beyond claims that are not far from them."""
    found = [0.1]
    for run in comparison.runs:
        found += [run.audit.proved or 0.0, run.audit.max_provable or 0.0]
    reach = max(value for value in found if math.isfinite(value))
    claims = [run.audit.claim.value for run in comparison.runs]
    return 1.08 * max([reach, *(claim for claim in claims if claim <= FAR * reach)])


def _row(axes: Axes, place: int, run: ComparedRun) -> list[str]:
    """A name and what was found above, the line below."""
    audit, note = run.audit, _note(run)
    letters = int((axes.width - LETTER * len(note)) / LETTER) - 1
    above, below = axes.up(place) - 8, place + 0.22
    right = axes.left + axes.width
    drawn = [
        text(clipped(printable(run.name), max(letters, 12)), axes.left + 4, above),
        text(note, right, above, text_anchor="end"),
    ]
    claim, middle = audit.claim.value, axes.up(below)
    if claim <= axes.x.high:
        ends = [(claim, below - 0.2), (claim, below + 0.2)]
        drawn.append(axes.path(ends, stroke=CLAIM, stroke_width=3))
    else:
        drawn.append(text("claim →", right, middle, text_anchor="end", fill=CLAIM))
    if audit.proved is None:
        return drawn
    if audit.max_provable is not None:
        most = min(audit.max_provable, axes.x.high)
        drawn.append(axes.path([(audit.proved, below), (most, below)], stroke=INK))
        drawn.append(axes.path([(most, below - 0.1), (most, below + 0.1)], stroke=INK))
    violated = audit.verdict is Verdict.VIOLATION
    drawn.append(bound_mark(axes, audit.proved, below, size=5, violated=violated))
    return drawn


def _note(run: ComparedRun) -> str:
    """What was proved, and the verdict where that does not say it."""
    audit = run.audit
    claimed, proved = claim_and_proof(audit.claim, audit.proved)
    said = f"claimed {claimed}" if audit.proved is None else f"proved {proved}, claimed {claimed}"
    decided = audit.verdict in (Verdict.VIOLATION, Verdict.CONSISTENT)
    return said if decided else f"{audit.verdict}: {said}"
