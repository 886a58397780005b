"""The ledger of a replay on a page: its tables and its figure, pure functions of its lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dpaudit.formatting import counted, listed, percent, rounded
from dpaudit.replaying.charges import SELECTED
from dpaudit.replaying.ledger import LedgerLine
from dpaudit.report.charts import ChartRow, draw_rows
from dpaudit.results.structure import MOST_ROWS, Block, Picture, ReportTable

_BARS: Final = 8
"""Lines that the figure shows."""
_LONGEST: Final = 50
"""Letters of a place that the figure shows, its end."""


def ledger_block(lines: Sequence[LedgerLine]) -> Block:
    """The ledger as a part of a report: a table of at most 80 columns."""
    rows = []
    for line in lines[:MOST_ROWS]:
        scale = "" if line.scale is None else rounded(line.scale)
        moved = "" if line.scale is None else rounded(line.l2 if line.mu is not None else line.l1)
        share = "internal" if line.internal else _share(line)
        rows.append((line.place, line.law, str(line.times), scale, moved, cost(line), share))
    header = ("line", "law", "times", "scale", "moved", "cost", "share")
    table = ReportTable(header, tuple(rows), frozenset(range(2, 7)))
    return Block(title="Ledger", items=tuple(_notes(lines)), table=table)


def _notes(lines: Sequence[LedgerLine]) -> Iterator[str]:
    """What the columns do not say, and how many lines are left out."""
    selected = [line.place for line in lines[:MOST_ROWS] if line.counts_as == SELECTED]
    if selected:
        yield f"charged by what is selected, not as if the scores were released: {listed(selected)}"
    for line in lines[:MOST_ROWS]:
        if line.other_scale is not None:
            scales = f"{line.scale:.7g} and {line.other_scale:.7g}"
            yield f"{line.place}: the scale depends on the data: {scales}"
        if line.delta is not None:
            shown = "a key that only one world has shows with that chance"
            yield f"{line.place}: spends delta {rounded(line.delta)}: {shown}"
        if line.sampling is not None:
            chance = f"which has the record with probability {line.sampling:.4g}"
            yield f"{line.place}: from a secret sub-sample, {chance}"
    if len(lines) > MOST_ROWS:
        yield f"{len(lines) - MOST_ROWS} more lines are in the JSON document"


def cost(line: LedgerLine) -> str:
    """The cost of a line: mu for Gaussian noise, else its largest loss, or the delta it spends."""
    if line.delta is not None and line.epsilon == 0:
        return f"delta {rounded(line.delta)}"
    if line.mu is not None:
        return f"mu {rounded(line.mu)}"
    return "no limit" if line.epsilon is None else f"eps {rounded(line.epsilon)}"


def _share(line: LedgerLine) -> str:
    return percent(round(line.share, 2))


def costliest_lines(lines: Sequence[LedgerLine]) -> Block:
    """The figure: a bar for each of the costliest lines."""
    shown = lines[:_BARS]
    more = len(lines) - len(shown)
    rest = f" {counted(more, 'more line')} in the ledger." if more else ""
    return Block(
        title="Result",
        picture=Picture.LEDGER,
        caption=f"What each line of code spends, and its share of the total.{rest}",
        table=ReportTable(
            ("Line", "Share", "Cost"),
            tuple((line.place, _share(line), cost(line)) for line in shown),
            frozenset({1, 2}),
        ),
    )


def draw_lines(lines: Sequence[LedgerLine]) -> str:
    """A bar for each of the costliest lines, as long as its share."""
    rows = []
    for line in lines[:_BARS]:
        share = _share(line)
        name = line.place if len(line.place) <= _LONGEST else f"…{line.place[1 - _LONGEST :]}"
        rows.append(ChartRow(name, f"{share}, {cost(line)}", bars=(100.0 * line.share,)))
    title, ends = "What each line of code spends", (0.0, 100.0)
    return draw_rows(Picture.LEDGER, title, rows, axis="% of the total", ends=ends, legend={})
