"""A replay's report as a page: pure functions of its record."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from dpaudit.formatting import counted, percent, rounded
from dpaudit.model.claim import PrivacyClaim
from dpaudit.replaying.ledger import LedgerLine
from dpaudit.replaying.record import ReplayRecord, cost
from dpaudit.report.figures import LETTER, MARGIN, WIDTH, SvgDrawing, framed
from dpaudit.report.page import Page, Step, again
from dpaudit.report.standards import REPLAY
from dpaudit.report.svg import INK, tag, text
from dpaudit.results.odds import but_for, odds
from dpaudit.results.sentences import CONFIDENTIAL, HEADLINE_GAP
from dpaudit.results.structure import MOST_ROWS, Block, Picture, ReportTable, left_out
from dpaudit.results.verdict import Verdict

_ROW: Final = 30.0
_WIDEST: Final = WIDTH - 2 * MARGIN - 95.0
_BAR: Final = "#1f4e79"
_BARS: Final = 8
"""Lines that the figure shows."""
_LONGEST: Final = int((WIDTH - 2 * MARGIN) / LETTER)


def replay_page(record: ReplayRecord) -> Page:
    """Arranges the report of a replay, with a bar for each line of code."""
    word, _, finding = record.headline.partition(HEADLINE_GAP)
    facts = tuple((row.label.capitalize(), row.fact) for row in record.rows)
    bound = Block(
        title="Numbers" if record.ledger else "Result",
        table=ReportTable(("Quantity", "Value"), facts),
    )
    return Page(
        verdict=record.verdict,
        word=word,
        finding=finding,
        about=f"Replay of {record.generator} on {record.source}",
        date=record.date,
        lead=tuple(_lead(record)),
        result=_result(record) if record.ledger else bound,
        next_step=Step((_sentence(record.next_step),)),
        findings=(*([bound] if record.ledger else []), *_findings(record)),
        clauses=REPLAY,
        reproduce=again(record.source, record.reproduce),
        origin=f"dpaudit {record.versions['dpaudit']} replay",
        draw=lambda picture: _bars(record),
    )


def _lead(record: ReplayRecord) -> Iterator[str]:
    shown = record.verdict is Verdict.VIOLATION and not record.of_proof
    if shown and isinstance(record.claim, PrivacyClaim):
        proved = math.inf if record.proved is None else record.proved
        yield (
            f"For some outputs, an attacker who sees {record.seen} can change the odds that this "
            f"record was used by a factor of at least {odds(proved, up=False)}. The claim allows "
            f"{odds(record.claim.epsilon, up=True)}{but_for(record.claim)}."
        )
    yield (
        "Replay fitted the unmodified code with and without one record, with the same noisy "
        "answers both times, and computed what a proof by composition charges for them."
    )
    if record.of_proof or record.verdict is Verdict.OVERSPENT:
        yield (
            "That is more than the claim, so such a proof does not hold for this code. The release "
            "was not shown to leak more than the claim: it may show less than the noisy answers."
        )
    for reason in record.unsaid_reasons:
        yield _sentence(reason)
    if record.target.startswith("row:"):
        yield CONFIDENTIAL


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}.".replace("`", "")


def _findings(record: ReplayRecord) -> Iterator[Block]:
    if record.parting is not None:
        found = record.parting
        yield Block(
            title="Where the worlds part",
            paragraphs=(f"{found.place or 'The release'}: {found.meaning}.",),
            table=ReportTable(
                ("World", "There"), tuple((row.label, row.fact) for row in record.parted)
            ),
        )
    if record.ledger:
        yield Block(
            title="Ledger",
            paragraphs=(
                "The cost of each line of code, and its share of the total. L1, L2 and Linf are "
                "the distances by which the record moved its answers.",
                *left_out(record.ledger, "lines"),
            ),
            table=ReportTable(
                ("Line", "Noise", "Times", "L1", "L2", "Linf", "Cost", "Share", "Counts as"),
                tuple(_ledger_row(one) for one in record.ledger[:MOST_ROWS]),
                frozenset({2, 3, 4, 5, 7}),
            ),
        )
    if record.not_followed:
        items = tuple(f"{one.place}: {one.why}" for one in record.not_followed)
        yield Block(title="Not followed", items=items)
    yield Block(
        title="Threat model",
        paragraphs=(
            f"The attacker sees {record.seen}. Only what these show refutes the claim itself; what "
            "the code spends is what somebody could learn who saw every noisy answer.",
            "Leaks of other records and tables, and through draws that replay does not follow, are "
            "not ruled out.",
        ),
    )


def _result(record: ReplayRecord) -> Block:
    """The figure: a bar for each of the costliest lines."""
    shown = record.ledger[:_BARS]
    more = len(record.ledger) - len(shown)
    rest = f" {counted(more, 'more line')} in the ledger." if more else ""
    return Block(
        title="Result",
        picture=Picture.LEDGER,
        caption=f"What each line of code spends, and its share of the total.{rest}",
        table=ReportTable(
            ("Line", "Share", "Cost"),
            tuple((one.place, percent(round(one.share, 2)), cost(one)) for one in shown),
            frozenset({1, 2}),
        ),
    )


def _ledger_row(line: LedgerLine) -> tuple[str, ...]:
    noise = line.law if line.scale is None else f"{line.law} {line.scale:.6g}"
    if line.other_scale is not None:
        noise += f", without the record {line.other_scale:.6g}"
    return (
        line.place,
        noise,
        str(line.times),
        *map(rounded, (line.l1, line.l2, line.linf)),
        cost(line),
        percent(round(line.share, 2)),
        "internal" if line.internal else line.counts_as,
    )


def _bars(record: ReplayRecord) -> str:
    """A bar for each of the costliest lines, as long as its share."""
    shown, elements, said = record.ledger[:_BARS], list[str](), list[str]()
    for number, line in enumerate(shown):
        top, share = MARGIN + number * _ROW, percent(round(line.share, 2))
        length = max(1.0, line.share * _WIDEST)
        place = line.place if len(line.place) <= _LONGEST else f"…{line.place[1 - _LONGEST :]}"
        elements += [
            text(place, MARGIN, top + 5.0, fill=INK),
            tag("rect", x=MARGIN, y=top + 12.0, width=length, height=8.0, fill=_BAR),
            text(f"{share}, {cost(line)}", MARGIN + length + 5.0, top + 16.0, fill=INK),
        ]
        said.append(f"{line.place}: {share}")
    drawing = SvgDrawing(elements, 2 * MARGIN + len(shown) * _ROW, f"{'; '.join(said)}.")
    return framed(Picture.LEDGER, "What each line of code spends", drawing)
