"""The result of an audit of a released table: its record and its page."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from dpaudit.formatting import printable
from dpaudit.model.claim import PrivacyClaim
from dpaudit.released_data.conclusion import (
    MembershipOutcome,
    ReleasedBound,
    ReleasedFinding,
    RowCounts,
)
from dpaudit.released_data.exchangeability import Exchangeability
from dpaudit.released_data.linkage import Linkage
from dpaudit.released_data.membership import RiskyRow
from dpaudit.released_data.opening import (
    draw_shares,
    lead,
    next_step,
    result_block,
    shares,
    threat_block,
)
from dpaudit.released_data.report import (
    bound_block,
    linkage_blocks,
    membership_block,
    not_tested_block,
    riskiest_block,
    tables_block,
    text_of,
)
from dpaudit.released_data.tables import ReleasedSources
from dpaudit.report.page import Page, Step
from dpaudit.report.render import page_html, page_markdown
from dpaudit.report.standards import released
from dpaudit.results.document import OPTIONAL, Document, document_schema
from dpaudit.results.sentences import CONFIDENTIAL, HEADLINE_GAP
from dpaudit.results.structure import Block
from dpaudit.results.verdict import Verdict


@dataclass(frozen=True, kw_only=True)
class ReleasedDataResult(Document):
    """An audit of a released table.

    Attributes:
        finding: The conclusion.
        reasons: The reasons, the main one first.
        claim: The claim under audit; None if there is none.
        confidence: Confidence of the bound and of all limits together, and probability of no false
            leak.
        seed: Root of every random stream.
        rows: Rows of the tables.
        sources: Where they came from.
        schema_inferred: Whether kinds, categories and bounds were inferred from the tables.
        warnings: Warnings about the tables.
        exchangeability: Tests whether a random split made train and hold-out; None where coins
            decided, or without a hold-out.
        membership: How well members are recognised; None without a hold-out, or with too few rows.
        bound: The lower bound on epsilon; None if there is none.
        not_a_bound: Why there is no bound; None if there is one.
        riskiest: Rows of the train table that stand out, of units the first ones; on average at
            most 5 % of them by chance.
        linkage: Copies, rare values, guessed attributes, and the distance to the closest record.
        dpaudit: Version of dpaudit.
        date: Day on which the audit ended, in UTC; absent from results written before it was
            recorded.
        reproduce: The command that repeats the audit; absent where a table was in memory.
        unit: The column of the units that had a coin each, which records then are; absent where
            rows had one each.
    """

    schema_version = 2

    finding: ReleasedFinding
    reasons: tuple[str, ...]
    claim: PrivacyClaim | None
    confidence: float
    seed: int
    rows: RowCounts
    sources: ReleasedSources
    schema_inferred: bool
    warnings: tuple[str, ...]
    exchangeability: Exchangeability | None
    membership: MembershipOutcome | None
    bound: ReleasedBound | None
    not_a_bound: str | None
    riskiest: tuple[RiskyRow, ...]
    linkage: Linkage
    dpaudit: str
    date: str | None = field(default=None, compare=False, metadata=OPTIONAL)
    reproduce: str | None = field(default=None, metadata=OPTIONAL)
    unit: str | None = field(default=None, metadata=OPTIONAL)

    @property
    def found(self) -> bool:
        """Whether a leak was found, or a claim refuted."""
        return self.finding.verdict is Verdict.VIOLATION

    def assert_no_violation(self, *, on_inconclusive: Literal["fail", "pass"] = "fail") -> None:
        """Raises unless the audit was valid and found neither a leak nor a violation.

        Args:
            on_inconclusive: Whether to raise for an inconclusive audit too.

        Raises:
            AssertionError: On a leak, a violation, an invalid audit, and on an inconclusive one if
                asked; the message has finding, reasons, tables and seed.
        """
        __tracebackhide__ = True
        passing = {Verdict.CONSISTENT}
        if on_inconclusive == "pass":
            passing.add(Verdict.INCONCLUSIVE)
        if self.finding.verdict in passing:
            return
        tables = ", ".join(str(source) for source in self.sources if source is not None)
        rest = (*self.reasons[1:], f"tables: {tables}", f"seed: {self.seed}")
        raise AssertionError("\n".join([self.headline, *map(printable, rest)]))

    @property
    def headline(self) -> str:
        """The finding in one line."""
        return f"{self.finding.upper()}{HEADLINE_GAP}{printable(self.reasons[0])}"

    def to_markdown(self) -> str:
        """The report as a Markdown page."""
        return page_markdown(self._page())

    def to_html(self) -> str:
        """The report as one HTML file without scripts or anything from the network."""
        return page_html(self._page())

    def __str__(self) -> str:
        """The report as text of 80 columns."""
        blocks = (self._page().next_block, *self._blocks())
        reasons = (*self.reasons[1:], *(said.removesuffix(".") for said in self._confidential))
        return text_of(self.headline, reasons, blocks)

    @property
    def _confidential(self) -> tuple[str, ...]:
        """The warning of a report that names rows."""
        return (CONFIDENTIAL,) if self.riskiest or self.linkage.copies.riskiest else ()

    def _page(self) -> Page:
        has_holdout = self.rows.holdout is not None
        found, noun = shares(self.membership, self.linkage), self.linkage.copies.noun
        blocks = self._blocks()
        return Page(
            verdict=self.finding.verdict,
            word=self.finding.upper(),
            finding=self.reasons[0],
            about=f"Audit of the released table {self.sources.synthetic}",
            date=self.date,
            lead=(
                *lead(
                    self.finding,
                    self.reasons[1:],
                    self.bound,
                    has_holdout=has_holdout,
                    confidence=self.confidence,
                    unit=self.unit,
                ),
                *self._confidential,
            ),
            result=result_block(found, noun),
            next_step=next_step(
                self.finding,
                self.linkage.copies.synthetic,
                has_holdout=has_holdout,
                has_coins=self.rows.coins is not None,
            ),
            findings=(*blocks, threat_block()),
            clauses=released(
                {block.title for block in blocks},
                has_holdout=has_holdout,
                has_command=self.reproduce is not None,
            ),
            reproduce=None if self.reproduce is None else Step(command=self.reproduce),
            origin=f"dpaudit {self.dpaudit} audit-data",
            draw=lambda picture: draw_shares(found, noun),
        )

    def _blocks(self) -> tuple[Block, ...]:
        found, confidence, noun = self.membership, self.confidence, self.linkage.copies.noun
        compared = found.fitted + found.scored if found else self.rows.compared
        return (
            *([membership_block(found, confidence=confidence, noun=noun)] if found else []),
            *(
                [bound_block(self.bound, confidence=confidence, unit=self.unit)]
                if self.bound
                else []
            ),
            *(
                [riskiest_block(self.riskiest, compared=compared, noun=noun)]
                if self.riskiest
                else []
            ),
            *linkage_blocks(self.linkage),
            *not_tested_block(
                self.not_a_bound,
                self.linkage.anonymeter,
                has_holdout=self.rows.holdout is not None,
            ),
            tables_block(self.rows, self.sources, self.exchangeability, self.warnings, noun=noun),
        )


def released_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of `ReleasedDataResult.to_document`."""
    return document_schema(ReleasedDataResult, title="dpaudit audit of a released table")
