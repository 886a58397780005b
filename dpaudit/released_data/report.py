"""The audit of a released table as a page: HTML, Markdown, and text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpaudit.formatting import (
    TERMINAL_WIDTH,
    auc_text,
    percent,
    printable,
    rounded_down,
    rounded_up,
)
from dpaudit.released_data.controls import LEVEL
from dpaudit.released_data.grades import p_text
from dpaudit.released_data.linkage_report import linkage_blocks
from dpaudit.report.render import Page, page_html, page_markdown
from dpaudit.results.structure import Block, ReportTable

if TYPE_CHECKING:  # results render themselves through this module
    from dpaudit.released_data.result import (
        MembershipOutcome,
        ReleasedBound,
        ReleasedDataResult,
    )

_ROWS_NAMED = 20
_INDENT = "  "


def released_html(result: ReleasedDataResult) -> str:
    """The report as one HTML file without scripts or anything from the network."""
    return page_html(_page(result), draw=lambda picture: "")


def released_markdown(result: ReleasedDataResult) -> str:
    """The report as Markdown."""
    return page_markdown(_page(result))


def headline(result: ReleasedDataResult) -> str:
    """The finding in one line."""
    return f"{result.finding.upper()}: {result.reasons[0]}"


def released_text(result: ReleasedDataResult) -> str:
    """The report as text of 80 columns."""
    lines = _wrapped(printable(headline(result)))
    for reason in result.reasons[1:]:
        lines += _wrapped(printable(reason) + ".", _INDENT)
    for block in blocks(result):
        lines += ["", block.title]
        for text in (*block.paragraphs, *block.items):
            lines += _wrapped(printable(text), _INDENT)
        if block.table:
            lines += _aligned(block.table)
    return "\n".join(lines)


def blocks(result: ReleasedDataResult) -> tuple[Block, ...]:
    """The parts of the report."""
    return tuple(_blocks(result))


def _blocks(result: ReleasedDataResult) -> Iterator[Block]:
    if result.membership is not None:
        yield _membership(result, result.membership)
    yield Block(title="Bound on epsilon", paragraphs=_bound(result))
    if result.riskiest:
        yield _riskiest(result)
    yield from linkage_blocks(result.linkage)
    yield Block(title="Tables", items=tuple(_tables(result)))


def _page(result: ReleasedDataResult) -> Page:
    return Page(
        verdict=result.finding.verdict,
        word=result.finding.upper(),
        finding=result.reasons[0],
        subject=f"A released table: {result.sources.synthetic}",
        lead=tuple(f"{reason[:1].upper()}{reason[1:]}." for reason in result.reasons[1:]),
        blocks=blocks(result),
        origin=f"dpaudit {result.dpaudit} audit-data",
    )


def _membership(result: ReleasedDataResult, found: MembershipOutcome) -> Block:
    header = ("rows flagged", "train", "hold-out", "train at least", "others at most")
    rows = tuple(
        (
            f"at nominal {percent(rate.nominal)}",
            f"{rate.flagged_members} of {rate.members}",
            f"{rate.flagged_others} of {rate.others}",
            percent(float(rounded_down(rate.true_positive_rate_lower))),
            percent(float(rounded_up(rate.false_positive_rate_upper))),
        )
        for rate in found.rates
    )
    return Block(
        title="Who was in train",
        paragraphs=(
            f"Attack {found.attack}, chosen on {found.fitted:,} rows and scored once on "
            f"{found.scored:,} others: p {p_text(found.p_value)}, AUC {auc_text(found.auc)}. The "
            f"limits in the table hold together at {percent(result.confidence)}.",
            *_controls(found),
        ),
        table=ReportTable(header, rows, frozenset({1, 2, 3, 4})),
    )


def _controls(found: MembershipOutcome) -> Iterator[str]:
    if found.phantom_p_value is None:
        yield "The hold-out is too small to be tested against itself."
    else:
        yield (
            f"Between two halves of the hold-out the same test gives p "
            f"{p_text(found.phantom_p_value)}, as it should where nothing is to find."
            if found.phantom_p_value > LEVEL
            else f"Between two halves of the hold-out the same test gives p "
            f"{p_text(found.phantom_p_value)}: something is wrong."
        )
    if found.detectable_copies is None:
        yield "Copies of half of the train rows would not have been found."
    else:
        yield (
            f"Copies of {percent(found.detectable_copies)} of the train rows would have been found "
            "with 80 % power."
        )


def _bound(result: ReleasedDataResult) -> tuple[str, ...]:
    if result.bound is None:
        reason = result.not_a_bound or ""
        return (f"{reason[:1].upper()}{reason[1:]}.",)
    return tuple(_proved(result.bound, result.confidence))


def _proved(bound: ReleasedBound, confidence: float) -> Iterator[str]:
    yield (
        f"Epsilon is at least {rounded_down(bound.proved)} at {percent(confidence)} confidence and "
        f"delta {bound.delta:g}, of whatever made the synthetic table from train, for tables that "
        "differ by one row more or less."
    )
    yield (
        "It needs that each coin was fair, and that whoever made the table saw neither the coins "
        f"nor the hold-out. A perfect attack would have proved {rounded_down(bound.max_provable)}. "
        "Bound and test each hold at their confidence by themselves."
    )


def _riskiest(result: ReleasedDataResult) -> Block:
    rows = result.riskiest
    named = ", ".join(str(one.row) for one in rows[:_ROWS_NAMED])
    more = len(rows) - _ROWS_NAMED
    rest = f", and {more:,} more" if more > 0 else ""
    return Block(
        title="Riskiest rows",
        paragraphs=(
            f"{len(rows):,} rows of the train table stand out, of which at most 5 % in the mean by "
            "chance; a fifth of the rows served to choose the attack and were left out. Row "
            f"numbers from 0: {named}{rest}.",
        ),
    )


def _tables(result: ReleasedDataResult) -> Iterator[str]:
    rows, sources, tests = result.rows, result.sources, result.exchangeability
    yield f"train: {rows.train:,} rows ({sources.train})"
    if rows.holdout is not None:
        yield f"hold-out: {rows.holdout:,} rows ({sources.holdout})"
    yield f"synthetic: {rows.synthetic:,} rows ({sources.synthetic})"
    if rows.coins is not None:
        yield f"rows with a coin: {rows.coins:,}"
    if tests is not None:
        p_values = ", ".join(f"{name} {p_text(value)}" for name, value in tests._asdict().items())
        yield (
            f"train and hold-out rows that are compared: {rows.compared:,}; tests that a random "
            f"split made both tables, p-values: {p_values}"
        )
    yield from (f"warning: {warning}" for warning in result.warnings)


def _aligned(table: ReportTable) -> list[str]:
    lines = (table.header, *table.rows)
    widths = [max(len(line[place]) for line in lines) for place in range(len(table.header))]
    return [
        _INDENT
        + "  ".join(
            cell.rjust(width) if place in table.numeric else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, TERMINAL_WIDTH, initial_indent=indent, subsequent_indent=indent)
