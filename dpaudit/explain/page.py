"""An explanation as a page: a pure function of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dpaudit.explain.explanation import EFFECTS, Effect, Explanation, FixedAudit
from dpaudit.explain.suspects import TOGETHER
from dpaudit.formatting import auc_text, duration, percent, printable, rounded, rounded_down
from dpaudit.report.figures import (
    GREY,
    MARGIN,
    SWATCH,
    WIDTH,
    SvgDrawing,
    below,
    bound_mark,
    framed,
)
from dpaudit.report.page import Page, Step
from dpaudit.report.standards import EXPLANATION
from dpaudit.report.svg import INK, Axes, Range, Style, tag, text
from dpaudit.results.odds import changed_odds
from dpaudit.results.record import days
from dpaudit.results.structure import Block, Level, Picture, ReportTable
from dpaudit.results.verdict import Verdict
from dpaudit.versions import __version__

_ROW: Final = 34.0


def explanation_page(explanation: Explanation) -> Page:
    """Arranges the report of an explanation.

    Args:
        explanation: What fixing each suspect did.

    Returns:
        The page.
    """
    found = bool(explanation.removed_by)
    return Page(
        verdict=Verdict.VIOLATION if found else Verdict.INCONCLUSIVE,
        word="CAUSE FOUND" if found else "CAUSE NOT FOUND",
        finding=explanation.conclusion,
        about=f"Explanation of the violation by {explanation.generator}",
        date=days(one.audit for one in explanation.fixed),
        lead=tuple(_lead(explanation)),
        result=Block(
            title="Result",
            picture=Picture.SUSPECTS,
            caption="A fix whose interval lies within the shaded band removes the leak.",
        ),
        next_step=Step((_next(explanation),)),
        findings=(_suspects(explanation), *_undecided(explanation)),
        clauses=EXPLANATION,
        reproduce=Step(command=explanation.reproduce),
        origin=f"dpaudit {__version__} explain",
        draw=lambda picture: _forest(explanation),
    )


def _lead(explanation: Explanation) -> Iterator[str]:
    before = explanation.before
    confidence = percent(explanation.confidence)
    yield (
        f"{explanation.generator} claims epsilon {rounded(explanation.claim.epsilon)}. With "
        f"{confidence} confidence its true epsilon is at least {rounded_down(before.proved)}"
        f"{changed_odds(explanation.claim, before.proved)}."
    )
    yield (
        f"The same audit ran again with one suspect fixed at a time, {explanation.shadow_models} "
        "shadow models each. Causes that are not among the suspects, and other attacks, were not "
        "tested."
    )


def _next(explanation: Explanation) -> str:
    removed = [one for one in explanation.removed_by if one != TOGETHER]
    if removed:
        return (
            f"Repair {removed[0]} in the generator, then audit it again with a fresh seed: other "
            "leaks may become visible once this one is gone."
        )
    if explanation.removed_by:
        return (
            "Repair all suspects in the generator, for none of them alone removes the leak, then "
            "audit it again with a fresh seed."
        )
    if any(one.effect is Effect.UNPROVED for one in explanation.fixed):
        return "Run the same command with more shadow models (--shadow-models)."
    return (
        "Look elsewhere: dpaudit replay names the lines of Python code that a loss comes from, and "
        "dpaudit probe changes one thing at a time."
    )


def _suspects(explanation: Explanation) -> Block:
    before = explanation.before
    nothing = (rounded_down(before.proved), auc_text(before.auc), "-", "violation", "-")
    rows = [("nothing", *nothing), *map(_row, explanation.fixed)]
    return Block(
        title="Suspects",
        paragraphs=(
            f"Each bound holds at {percent(explanation.confidence)} by itself. A fix removes the "
            "leak if no violation is proved any more and the limits of the AUC lie within what the "
            f"claim allows, {explanation.allowed_limits}, for every attack of this audit. Not "
            "shown: none is proved, but those limits are wider. Of several attacks the AUC is the "
            "one farthest from 0.5, chosen on the same models, so it is optimistic; its limits "
            "allow for that.",
        ),
        table=ReportTable(
            ("Fixed", "Bound", "AUC", "Limits of the AUC", "Effect", "Time"),
            tuple(rows),
            frozenset({1, 2}),
        ),
    )


def _row(one: FixedAudit) -> tuple[str, ...]:
    limits = one.limits
    return (
        one.suspect,
        rounded_down(one.audit.proved),
        auc_text(one.auc),
        "-" if limits is None else f"{rounded(limits.low)} to {rounded(limits.high)}",
        EFFECTS[one.effect],
        duration(one.audit.seconds),
    )


def _undecided(explanation: Explanation) -> Iterator[Block]:
    """Why some audits could not decide."""
    reasons = [
        f"{one.suspect}: {one.audit.reasons[0]}"
        for one in explanation.fixed
        if one.audit.verdict in (Verdict.INVALID, Verdict.INCONCLUSIVE) and one.audit.reasons
    ]
    if reasons:
        yield Block(title="Not decided", level=Level.SUBSECTION, items=tuple(reasons))


def _forest(explanation: Explanation) -> str:
    """The AUC of each fixed generator with its limits, next to what the claim allows."""
    fixed, before = explanation.fixed, explanation.before
    ends = [value for one in fixed if one.limits for value in one.limits]
    most = explanation.allowed_auc
    axes = Axes(
        left=2.0 * MARGIN,
        top=6.0,
        width=WIDTH - 4.0 * MARGIN,
        height=_ROW * (len(fixed) + 1),
        x=Range(min([1.0 - most, before.auc, *ends]), max([most, before.auc, *ends]) + 0.02),
        y=Range(len(fixed) + 0.5, -0.5),
    )
    low, high = axes.y
    band: Style = {"fill": GREY}
    corners = [(1.0 - most, low), (most, low), (most, high), (1.0 - most, high)]
    elements = [axes.path(corners, **band), axes.frame(), axes.x_ticks(), axes.x_label("AUC")]
    elements += _point(axes, 0, "nothing fixed", before.auc, violated=True)
    for place, one in enumerate(fixed, start=1):
        name = f"{printable(one.suspect)} fixed: {EFFECTS[one.effect]}"
        if one.limits is not None:
            line = [(one.limits.low, place + 0.2), (one.limits.high, place + 0.2)]
            elements.append(axes.path(line, stroke=INK, stroke_width=1.4))
        elements += _point(axes, place, name, one.auc, violated=one.effect is Effect.REMAINS)
    unit = Axes(left=0, top=0, width=SWATCH, height=0, x=Range(0.0, 1.0), y=Range(0.0, 1.0))
    entries = [
        (bound_mark(unit, 0.5, 0.0, size=5, violated=True), "AUC, violation proved"),
        (bound_mark(unit, 0.5, 0.0, size=5, violated=False), "AUC, no violation proved"),
        (tag("path", d=f"M0 0H{SWATCH:g}", stroke=INK, stroke_width=1.4), "its limits"),
        (tag("rect", y=-5, width=SWATCH, height=10, **band), "allowed by the claim"),
    ]
    rows, bottom = below(entries, axes)
    described = "; ".join(
        f"{printable(one.suspect)}: AUC {auc_text(one.auc)}, {EFFECTS[one.effect]}" for one in fixed
    )
    drawing = SvgDrawing([*elements, *rows], bottom, f"{described}.")
    return framed(Picture.SUSPECTS, "AUC with each suspect fixed", drawing)


def _point(axes: Axes, place: int, name: str, auc: float | None, *, violated: bool) -> list[str]:
    """A name, and below it the mark of an AUC."""
    words = text(name, axes.left + 4.0, axes.up(place - 0.22), fill=INK)
    if auc is None:
        return [words]
    return [words, bound_mark(axes, auc, place + 0.2, size=5, violated=violated)]
