"""A replay's report as a page: pure functions of its record."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from dpaudit.formatting import (
    counted,
    duration,
    percent,
    rounded,
)
from dpaudit.model.claim import PrivacyClaim
from dpaudit.replaying.ledger import LedgerLine
from dpaudit.replaying.record import ReplayRecord, cost
from dpaudit.report.figures import LETTER, MARGIN, WIDTH, SvgDrawing, framed
from dpaudit.report.page import Page, Step, again
from dpaudit.report.standards import REPLAY
from dpaudit.report.svg import INK, tag, text
from dpaudit.results.odds import but_for, odds
from dpaudit.results.phrases import PUBLIC_SCHEMA
from dpaudit.results.sentences import CONFIDENTIAL, HEADLINE_GAP
from dpaudit.results.structure import MOST_ROWS, Block, Picture, ReportTable, left_out
from dpaudit.results.verdict import Verdict

_ROW: Final = 30.0
_WIDEST: Final = WIDTH - 2 * MARGIN - 95.0
_BAR: Final = "#1f4e79"
_BARS: Final = 8
"""Lines that the figure shows."""
_INFERRED: Final = (
    "Bounds and categories were inferred from the table, for both fits alike, so what they reveal "
    f"is not seen: {PUBLIC_SCHEMA}."
)
_LONGEST: Final = int((WIDTH - 2 * MARGIN) / LETTER)


def replay_page(record: ReplayRecord) -> Page:
    """Arranges the report of a replay, with a bar for each line of code."""
    word, _, finding = record.headline.partition(HEADLINE_GAP)
    bound = Block(
        title="Bound" if record.ledger else "Result",
        table=ReportTable(("Quantity", "Value"), tuple(_numbers(record))),
    )
    return Page(
        verdict=record.verdict,
        word=word,
        finding=finding,
        about=f"Replay of {record.generator} on {record.source}",
        date=record.date,
        lead=tuple(_lead(record)),
        result=_result(record) if record.ledger else bound,
        next_step=Step((_next(record),)),
        findings=(*([bound] if record.ledger else []), *_findings(record)),
        clauses=REPLAY,
        reproduce=again(record.source, record.reproduce),
        origin=f"dpaudit {record.versions['dpaudit']} replay",
        draw=lambda picture: _bars(record),
    )


def _lead(record: ReplayRecord) -> Iterator[str]:
    violated = record.verdict is Verdict.VIOLATION
    if violated and isinstance(record.claim, PrivacyClaim):
        yield _odds(record, record.claim)
    yield (
        "Replay fitted the unmodified code with and without one record, with the same noisy "
        "answers both times: the privacy loss of these answers is known exactly."
    )
    for reason in record.unsaid_reasons:
        yield f"{reason[:1].upper()}{reason[1:]}.".replace("`", "")
    if record.target.startswith("row:"):
        yield CONFIDENTIAL


def _odds(record: ReplayRecord, claim: PrivacyClaim) -> str:
    """A violation in odds."""
    seen = "the noisy answers" if record.guesses is None else "the synthetic rows"
    proved = math.inf if record.proved is None else record.proved
    return (
        f"For some outputs, an attacker who sees {seen} can change the odds that this record was "
        f"used by a factor of at least {odds(proved, up=False)}. The claim allows "
        f"{odds(claim.epsilon, up=True)}{but_for(claim)}."
    )


def _findings(record: ReplayRecord) -> Iterator[Block]:
    if record.parting is not None:
        found = record.parting
        yield Block(
            title="Where the two fits diverge",
            paragraphs=(f"{found.place or 'Synthetic rows'}: {found.meaning}.",),
            table=ReportTable(
                ("Fit", "There"),
                (("with the record", found.inside), ("without it", found.outside))
                if found.outside
                else (("both", found.inside),),
            ),
        )
    if record.ledger:
        yield Block(
            title="Ledger",
            paragraphs=(
                "The cost of each line of code, and its share of the mean privacy loss. L1, L2 and "
                "Linf are the distances by which the record moved its answers.",
                *left_out(record.ledger, "lines"),
            ),
            table=ReportTable(
                ("Line", "Noise", "Times", "L1", "L2", "Linf", "Cost", "Share", "Counts as"),
                tuple(_ledger_row(one) for one in record.ledger[:MOST_ROWS]),
                frozenset({2, 3, 4, 5, 7}),
            ),
        )
    if record.not_followed:
        yield Block(
            title="Not followed",
            items=tuple(f"{one.place}: {one.why}" for one in record.not_followed),
        )
    yield Block(
        title="Threat model",
        paragraphs=(
            "The attacker is that of the proof, who sees every noisy answer. Synthetic rows are "
            "made from these answers and may reveal less, which an audit measures.",
            "Other records and tables, draws that replay does not follow, and coins taken as "
            "public are not ruled out.",
            *([_INFERRED] if record.schema_inferred else []),
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
        caption=f"Share of the mean privacy loss by line of code, and the cost of each line.{rest}",
        table=ReportTable(
            ("Line", "Share", "Cost"),
            tuple((one.place, percent(round(one.share, 2)), cost(one)) for one in shown),
            frozenset({1, 2}),
        ),
    )


def _numbers(record: ReplayRecord) -> Iterator[tuple[str, str]]:
    yield ("Claim", f"{record.claim.in_words}, {record.claim.neighbours}")
    yield ("Lower bound", record.bound_text)
    yield ("Computed", record.computed_text)
    yield ("Record", record.target)
    if record.detectable is not None:
        yield ("Power", record.power_text)
    yield ("Fits", f"{record.fits} in {duration(record.seconds)}")
    differ = "differ with and without the record"
    yield ("Synthetic rows", differ if record.rows_differ else "are equal with and without it")


def _next(record: ReplayRecord) -> str:
    step = f"{record.next_step[:1].upper()}{record.next_step[1:]}."
    if record.features and record.verdict is Verdict.VIOLATION:
        return f"{step} To prove the leak from synthetic rows alone: dpaudit audit --after-replay."
    return step


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
    """A bar for each of the costliest lines, as long as its share."""
    shown, elements = record.ledger[:_BARS], list[str]()
    for number, line in enumerate(shown):
        top = MARGIN + number * _ROW
        length = max(1.0, line.share * _WIDEST)
        elements += [
            text(_ended(line.place), MARGIN, top + 5.0, fill=INK),
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


def _ended(place: str) -> str:
    """A file and line, without its beginning if it is too long for the figure."""
    return place if len(place) <= _LONGEST else f"…{place[1 - _LONGEST :]}"
