"""A replay's report as a page: pure functions of its record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dpaudit.formatting import duration, percent, rounded
from dpaudit.replaying.ledger import LedgerLine
from dpaudit.replaying.record import ReplayRecord, cost
from dpaudit.report.figures import MARGIN, WIDTH, SvgDrawing, framed
from dpaudit.report.render import Page, page_html, page_markdown
from dpaudit.report.svg import INK, tag, text
from dpaudit.results.structure import Block, Picture, ReportTable
from dpaudit.results.verdict import Verdict

_ROW: Final = 30.0
_WIDEST: Final = WIDTH - 2 * MARGIN - 95.0
_BAR: Final = "#1f4e79"


def replay_html(record: ReplayRecord) -> str:
    """The report as one HTML file, with a bar for each line of code."""
    return page_html(_page(record), draw=lambda picture: _bars(record))


def replay_markdown(record: ReplayRecord) -> str:
    """The report as Markdown."""
    return page_markdown(_page(record))


def _page(record: ReplayRecord) -> Page:
    word, _, finding = record.headline.partition("  ")
    return Page(
        verdict=record.verdict,
        word=word,
        finding=finding,
        subject=f"Replay of {record.generator} on {record.source}",
        lead=tuple(_lead(record)),
        blocks=tuple(_blocks(record)),
        origin=f"dpaudit {record.versions['dpaudit']}",
    )


def _lead(record: ReplayRecord) -> Iterator[str]:
    yield (
        "The unmodified code was fitted with and without one record, with the same noisy answers "
        "in both worlds, so that the privacy loss of those answers is known exactly."
    )
    if record.verdict is Verdict.VIOLATION:
        yield "The claim does not hold for the noisy answers that its proof releases."
    for reason in record.reasons:
        yield f"{reason[:1].upper()}{reason[1:]}."


def _blocks(record: ReplayRecord) -> Iterator[Block]:
    rows = [
        ("Claim", record.claim.in_words),
        ("Lower bound", record.bound_text),
        *([("Computed", record.computed_text)] if record.computed is not None else []),
        ("Record", record.target),
        *([("Power", record.power_text)] if record.detectable is not None else []),
        ("Fits", f"{record.fits} in {duration(record.seconds)}"),
        ("Rows", "differ between the worlds" if record.rows_differ else "are equal in both worlds"),
    ]
    yield Block(title="Result", table=ReportTable(("Quantity", "Value"), tuple(rows)))
    if record.parting is not None:
        found = record.parting
        yield Block(
            title="Where the worlds part",
            paragraphs=(f"{found.place or 'Synthetic rows'}: {found.meaning}.",),
            table=ReportTable(
                ("World", "There"),
                (("in", found.inside), ("out", found.outside))
                if found.outside
                else (("both", found.inside),),
            ),
        )
    if record.ledger:
        yield Block(
            title="Ledger",
            paragraphs=(
                "What each line of code costs, as its share of the mean privacy loss; L1, L2 and "
                "Linf say how far its answers moved.",
            ),
            picture=Picture.LEDGER,
            table=ReportTable(
                ("Line", "Noise", "Times", "L1", "L2", "Linf", "Cost", "Share", "Counts as"),
                tuple(_ledger_row(one) for one in record.ledger[:20]),
                frozenset({2, 3, 4, 5, 7}),
            ),
        )
    if record.not_followed:
        yield Block(
            title="Not followed",
            items=tuple(f"{one.place}: {one.why}" for one in record.not_followed),
        )
    yield Block(
        title="What this says",
        paragraphs=(
            "The adversary of a replay is that of the proof: it sees every noisy answer. Synthetic "
            "rows are made of those answers and may show less: that is for an audit.",
            "A replay says nothing of other records and tables, of draws that it does not hear, or "
            "of coins that are taken to be public.",
        ),
    )
    yield Block(title="Reproduce", command=record.reproduce)


def _ledger_row(line: LedgerLine) -> tuple[str, ...]:
    noise = line.law if line.scale is None else f"{line.law} {line.scale:.6g}"
    if line.other_scale is not None:
        noise += f", without the record {line.other_scale:.6g}"
    return (
        line.place,
        noise,
        str(line.times),
        rounded(line.l1),
        rounded(line.l2),
        rounded(line.linf),
        cost(line),
        percent(round(line.share, 2)),
        line.counts_as,
    )


def _bars(record: ReplayRecord) -> str:
    """A bar for each line, as long as its share."""
    shown, elements = record.ledger[:20], list[str]()
    for number, line in enumerate(shown):
        top = MARGIN + number * _ROW
        length = max(1.0, line.share * _WIDEST)
        elements += [
            text(line.place, MARGIN, top + 5.0, fill=INK),
            tag("rect", x=MARGIN, y=top + 12.0, width=length, height=8.0, fill=_BAR),
            text(
                f"{percent(round(line.share, 2))}, {cost(line)}",
                MARGIN + length + 5.0,
                top + 16.0,
                fill=INK,
            ),
        ]
    described = "; ".join(f"{one.place}: {percent(round(one.share, 2))}" for one in shown)
    drawing = SvgDrawing(elements, 2 * MARGIN + len(shown) * _ROW, f"{described}.")
    return framed(Picture.LEDGER, "Share of the privacy loss by line of code", drawing)
