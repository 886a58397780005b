"""A frontier in words: its table, and what a reader needs to know of the numbers."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

from dpaudit.formatting import TERMINAL_WIDTH, clipped, percent, printable, rounded, rounded_down
from dpaudit.results.structure import ReportTable
from dpaudit.results.verdict import Verdict

if TYPE_CHECKING:
    from dpaudit.frontiers.record import Frontier, FrontierPoint

HEADER: Final = ("generator", "claimed", "proved", "most", "AUROC", "interval", "verdict")
_NUMERIC = frozenset({1, 2, 3, 4, 5})
_GAP = "  "


def frontier_table(frontier: Frontier) -> ReportTable:
    """The points, one a row."""
    return ReportTable(HEADER, tuple(map(_row, frontier.points)), _NUMERIC)


def frontier_lines(frontier: Frontier) -> list[str]:
    """The table and what is to be known of it, in lines of at most 80 characters.

    A name that is too long for its column has a line of its own above its points.
    """
    table = frontier_table(frontier)
    rows = [[printable(cell) for cell in row] for row in (table.header, *table.rows)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(table.header))]
    widths[0] = min(widths[0], TERMINAL_WIDTH - sum(widths[1:]) - len(_GAP) * len(widths[1:]))
    lines: list[str] = []
    above = ""
    for row in rows:
        if len(row[0]) > widths[0]:
            if row[0] != above:
                lines.append(_short(row[0], TERMINAL_WIDTH))
            above, row[0] = row[0], ""
        cells = [
            (str.rjust if at in _NUMERIC else str.ljust)(cell, width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(_GAP.join(cells).rstrip())
    said = ["", f"{finding(frontier)}.", *notes(frontier)]
    said += [f"Failed: {reason}" for reason in frontier.failures]
    return [*lines, *(part for one in said for part in _wrapped(printable(one)))]


def finding(frontier: Frontier) -> str:
    """The frontier in one sentence without its end: "6 points, 1 of them a violation"."""
    audits = [point.audit for point in frontier.points if point.audit]
    violations = sum(audit.verdict is Verdict.VIOLATION for audit in audits)
    count = len(frontier.points)
    said = f"{count} point{'s' if count > 1 else ''}, "
    if violations:
        said += f"{violations} of them {'a violation' if violations == 1 else 'violations'}"
    else:
        said += f"no violation found in {'any' if audits else 'none audited'}"
    failed = sum(bool(point.failures) for point in frontier.points)
    return f"{said}; {failed} failed" if failed else said


def notes(frontier: Frontier) -> tuple[str, ...]:
    """What a reader needs to know of the numbers, one sentence or two each."""
    audits = sum(point.audit is not None for point in frontier.points)
    chance = 1.0 - frontier.confidence**audits
    low, high = frontier.noise.low, frontier.noise.high
    test = "a part held out" if frontier.test_source is None else printable(frontier.test_source)
    plural = "s" if len(frontier.classifiers) > 1 else ""
    found = [
        f"AUROC is the mean of {len(frontier.classifiers)} classifier{plural} trained on "
        f"{frontier.rows} synthetic rows and tested on {frontier.test_rows} real ones ({test}), of "
        f"which {frontier.positive_test_rows} are positive: {frontier.noise.mean:.3f} "
        f"({low:.3f} to {high:.3f}) for noise, {frontier.real:.3f} for real data. ~: not "
        "distinguishable from noise.",
        f"Each bound and interval holds at {percent(frontier.confidence)} by itself. A bound says "
        "how much is proved, not how much is there; most is what a perfect attack would have "
        "proved, so an audit says nothing of a claim beyond it.",
    ]
    if audits > 1:
        found.append(
            f"Of {audits} independent audits of generators that keep their claims, one or more "
            f"would be flagged with probability {percent(round(chance, 2))} at most."
        )
    found.append(
        "Utility is measured on real rows, which no claim covers: this report is for those who may "
        "see the table. Generators had the part that is not held out there, and all of the table "
        "in audits."
        if frontier.test_source is None
        else "Utility is measured on real rows, which no claim covers: this report is for those "
        "who may see the tables."
    )
    if frontier.schema_inferred:
        found.append("Bounds and categories were read off the table, which no claim covers.")
    return tuple(found)


def _row(point: FrontierPoint) -> tuple[str, ...]:
    audit, utility = point.audit, point.utility
    bounds = (rounded(point.epsilon), "-", "-")
    if audit is not None:
        claimed, proved = rounded(audit.claim.value), rounded_down(audit.proved)
        bounds = (claimed, proved, rounded_down(audit.max_provable))
    useful = ("-", "-")
    if utility is not None:
        mark = "" if utility.beats_noise else " ~"
        _, low, high = utility.auroc
        useful = (f"{utility.auroc.mean:.3f}{mark}", f"{low:.3f} to {high:.3f}")
    verdict = "failed" if audit is None else str(audit.verdict)
    return (point.asked, *bounds, *useful, verdict)


def _short(name: str, width: int) -> str:
    """As much of a name as there is room for: of a file's name the end, which says most."""
    if "/" not in name or len(name) <= width:
        return clipped(name, width)
    return f"…{name[len(name) - width + 1 :]}"


def _wrapped(line: str) -> list[str]:
    return textwrap.wrap(line, TERMINAL_WIDTH) or [""]
