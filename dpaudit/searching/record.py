"""What a search found, as an object, a JSON document and a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import pandas as pd

from dpaudit.formatting import Row, counted, duration, rounded
from dpaudit.model.claim import Claim
from dpaudit.model.linked_tables import LinkedTables
from dpaudit.model.neighbouring_tables import NeighbouringTables
from dpaudit.model.schema import Schema
from dpaudit.report.page import REPLAY, Page, Step, facts_block, page_text
from dpaudit.results.document import OPTIONAL, Document
from dpaudit.results.phrases import claim_and_relation
from dpaudit.results.sentences import HEADLINE_GAP
from dpaudit.results.structure import Block, ReportTable
from dpaudit.results.verdict import Verdict
from dpaudit.searching.examine import FindingKind

_MOST_SHOWN: Final = 12
"""Rows of a pair that a report shows; rows that are equal count once."""
_SAYS: Final[Mapping[FindingKind, str]] = {
    FindingKind.OVERSPENT: "{place}: the steps spend {spent}",
    FindingKind.FAILURE: "the generator fails with one table alone: {place}",
    FindingKind.AROUND: "{place}: data goes around the noise",
    FindingKind.STORED: "`{place}` in the fitted model depends on the record without noise",
    FindingKind.OUTSIDE: "column {place}: values leave the schema with one table alone",
    FindingKind.UNKNOWN: "{place}",
}


class PairRow(NamedTuple):
    """A row of a pair of tables, and its equals.

    Attributes:
        times: How many rows.
        values: The value of each column; null where it is missing.
        table: "both"; or the only table that has it, "with" or "without" the record.
    """

    times: int
    values: tuple[Any, ...]
    table: str


class SearchedPair(NamedTuple):
    """A pair of neighbouring tables, and what it shows.

    Attributes:
        kind: What a search looks for; null for the costliest pair of a search without findings.
        place: The line, the place in the fitted model, the column, or the reason.
        spent: What the steps spend, in the quantity of the claim; null without limit.
        columns: The names of the columns.
        rows: The rows of both tables.
        verdict: The verdict of a whole replay of the pair; null if there was none.
        said: Its headline; empty if there was none.
        reproduce: The command that replays the pair.
    """

    kind: FindingKind | None
    place: str
    spent: float | None
    columns: tuple[str, ...]
    rows: tuple[PairRow, ...]
    verdict: Verdict | None
    said: str
    reproduce: str

    @property
    def summary(self) -> str:
        """What it shows, in words."""
        spent = "without limit" if self.spent is None else rounded(self.spent)
        if self.kind is None:
            return f"the costliest pair spends {spent}"
        return _SAYS[self.kind].format(place=self.place, spent=spent)


@dataclass(frozen=True, kw_only=True)
class SearchRecord(Document):
    """All that a search found.

    Attributes:
        verdict: The worst verdict of the pairs that were replayed. "consistent" says that no pair
            that was tried shows anything.
        generator: The generator's name.
        parameters: Its parameters.
        claim: The claim.
        pairs: How many pairs were tried.
        failed: In how many of them the generator failed on both tables.
        failure: Why, in the last one.
        ended: With how many pairs the process of the code ended.
        end: How, in the last one.
        findings: What was found, the worst first, each with its smallest pair.
        unconfirmed: Findings that fits with other seeds did not show again, in words.
        costliest: The pair that spends most; null if there are findings.
        seed: Root of every random stream.
        seconds: Time, in seconds.
        versions: Versions of dpaudit and its libraries, and of the release.
        date: Day on which the search ended, in UTC.
    """

    schema_version = 1
    called = "a record of a search"
    kept_in = "the JSON of `dpaudit replay --search --json`"

    verdict: Verdict
    generator: str
    parameters: Mapping[str, Any]
    claim: Claim
    pairs: int
    failed: int
    failure: str
    ended: int
    end: str
    findings: tuple[SearchedPair, ...]
    unconfirmed: tuple[str, ...]
    costliest: SearchedPair | None
    seed: int
    seconds: float
    versions: Mapping[str, str]
    date: str | None = field(default=None, compare=False, metadata=OPTIONAL)

    def assert_no_violation(self) -> None:
        """Raises unless the search found nothing.

        Raises:
            AssertionError: The message is the report.
        """
        __tracebackhide__ = True
        if self.verdict is not Verdict.CONSISTENT:
            raise AssertionError(str(self))

    @property
    def headline(self) -> str:
        """The verdict in one sentence."""
        claimed = f"claimed {self.claim.quantity.noun} {rounded(self.claim.value)}"
        worst = self.findings[0] if self.findings else None
        if worst is not None and worst.verdict is Verdict.VIOLATION:
            shown = worst.said.partition(HEADLINE_GAP)[2]
            return f"{self.verdict.upper()}{HEADLINE_GAP}{shown}; {worst.summary}"
        if worst is not None:
            said = worst.summary
        elif self.unconfirmed:
            said = f"{self.unconfirmed[0]}, but not under other seeds"
        elif self.ended:
            said = self._ended
        elif self.verdict is Verdict.CONSISTENT or self.costliest is None:
            said = f"nothing found in {counted(self.pairs, 'pair')} of tables"
        else:
            said = self.costliest.said.partition("; ")[2] or self.costliest.said
        return f"{self.verdict.upper()}{HEADLINE_GAP}{claimed}, {said}"

    @property
    def _ended(self) -> str:
        return f"{counted(self.ended, 'pair')} of tables ended the process of the code: {self.end}"

    def __str__(self) -> str:
        """The verdict and each pair; 80 columns."""
        return page_text(search_page(self))

    @property
    def rows(self) -> tuple[Row, ...]:
        """All facts, with their labels."""
        tried = f"{self.pairs:,} of tables in {duration(self.seconds)}"
        rows = [Row("claim", claim_and_relation(self.claim)), Row("pairs", tried)]
        if self.failed:
            said = f"the generator fails on both tables of {self.failed:,} pairs: {self.failure}"
            rows.append(Row("failed", said))
        if self.ended and self.findings:
            rows.append(Row("ended", self._ended))
        rows += [Row("once", f"{said}; not under other seeds") for said in self.unconfirmed]
        return tuple(rows)


def search_page(record: SearchRecord) -> Page:
    """Arranges the report of a search."""
    word, _, finding = record.headline.partition(HEADLINE_GAP)
    pairs = record.findings or ((record.costliest,) if record.costliest else ())
    blocks = tuple(_block(number, pair) for number, pair in enumerate(pairs, 1))
    worst = record.findings[0] if record.findings else None
    return Page(
        verdict=record.verdict,
        word=word,
        finding=finding,
        about=f"Search of {record.generator}",
        date=record.date,
        lead=(
            "Hypothesis drew pairs of neighbouring tables from the public schema, and shrank what "
            "it found. Both tables of a pair were fitted with the same noisy answers.",
        ),
        result=blocks[0],
        next_step=_next_step(worst),
        findings=(*blocks[1:], facts_block("Numbers", record.rows)),
        clauses=REPLAY,
        reproduce=None,
        origin=f"dpaudit {record.versions['dpaudit']} replay --search",
        draw=lambda picture: "",
        facts=record.rows,
        terminal=blocks,
    )


def _next_step(worst: SearchedPair | None) -> Step:
    if worst is None:
        said = (
            "audit what the code does with real tables (dpaudit audit); search longer (--seconds)."
        )
        return Step((said,))
    return Step(("Repair the line, and replay this pair again:",), worst.reproduce)


def _block(number: int, pair: SearchedPair) -> Block:
    """A pair on a page: its rows, and which one only one of the tables has."""
    marks = {"both": "", "with": "<- the record", "without": "<- in its place"}
    shown = tuple(
        (f"{row.times:,}", *map(_cell, row.values), marks[row.table])
        for row in pair.rows[:_MOST_SHOWN]
    )
    left = len(pair.rows) - len(shown)
    notes = [f"and {counted(left, 'more kind')} of rows: see the files"] if left else []
    notes += [f"Replayed: {pair.said}"] if pair.said else []
    return Block(
        title=f"{number}. {pair.summary}",
        items=tuple(notes),
        table=ReportTable(("rows", *pair.columns, ""), shown, frozenset({0})),
    )


def _cell(value: object) -> str:
    if value is None:
        return "missing"
    return f"{value:.17g}" if isinstance(value, float) else str(value)


def pair_columns(schema: Schema) -> tuple[str, ...]:
    """The columns of `pair_rows`: those of the table; for linked ones, its name and its values."""
    if isinstance(schema, LinkedTables):
        return ("table", "values")
    return tuple(schema.names) if schema.unit is None else (*schema.names, schema.unit.column)


def pair_rows(pair: NeighbouringTables) -> tuple[PairRow, ...]:
    """The rows of a pair; equal rows of the same table count once."""
    only = set(pair.rows)
    rows = [
        (row, "with" if place in only else "both") for place, row in enumerate(_values_of(pair))
    ]
    if pair.replacement is not None:
        rows += [(row, "without") for row in _values(pair.schema.handed(pair.replacement))]
    return tuple(PairRow(times, *row) for row, times in Counter(rows).items())


def _values_of(pair: NeighbouringTables) -> Iterator[tuple[Any, ...]]:
    """The values of each row of the table with the record; of linked ones without keys."""
    schema, handed = pair.schema, pair.schema.handed(pair.data)
    if not isinstance(schema, LinkedTables):
        yield from _values(handed)
        return
    for name in schema.order:  # the order of the frame's rows
        columns = schema.tables[name].names
        for row in _values(handed[name][columns]):
            yield (
                name,
                ", ".join(
                    f"{column} {_cell(value)}" for column, value in zip(columns, row, strict=True)
                ),
            )


def _values(table: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
    """The values of each row, None where one is missing."""
    for row in table.astype(object).itertuples(index=False, name=None):
        plain = (str(value) if isinstance(value, pd.Timestamp) else value for value in row)
        yield tuple(None if pd.isna(value) else value for value in plain)
