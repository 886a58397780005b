"""What an audit of a released table found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple

from dpaudit.formatting import printable
from dpaudit.model.claim import PrivacyClaim
from dpaudit.released_data.exchangeability import Exchangeability
from dpaudit.released_data.linkage import Linkage
from dpaudit.released_data.membership import RateAtThreshold
from dpaudit.released_data.riskiest import RiskyRow
from dpaudit.released_data.tables import ReleasedSources
from dpaudit.results.document import Document, Limits, document_schema
from dpaudit.results.verdict import Verdict


class ReleasedFinding(StrEnum):
    """What an audit of a released table concludes."""

    VIOLATION = "violation"
    LEAK = "leak"
    CONSISTENT = "consistent"
    NOTHING_FOUND = "nothing found"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"

    @property
    def verdict(self) -> Verdict:
        """The verdict that exit codes and colours go by."""
        return {
            ReleasedFinding.LEAK: Verdict.VIOLATION,
            ReleasedFinding.NOTHING_FOUND: Verdict.CONSISTENT,
        }.get(self) or Verdict(self.value)


class RowCounts(NamedTuple):
    """Rows of the tables.

    Attributes:
        train: Rows of the train table.
        synthetic: Rows of the synthetic table.
        holdout: Rows of the hold-out; None if there is none.
        coins: Rows whose place was decided by a coin; None without a coin file.
        compared: Train and hold-out rows that are compared with each other; the others may stand
            where they do because repeated rows were removed.
    """

    train: int
    synthetic: int
    holdout: int | None
    coins: int | None
    compared: int


@dataclass(frozen=True, kw_only=True)
class MembershipOutcome:
    """How well train rows are told from hold-out rows by the synthetic table.

    Attributes:
        attack: The attack that was chosen on the fitting part.
        fitted: Rows of the fitting part.
        scored: Rows that were scored.
        p_value: Probability of such scores if the table says nothing of membership.
        auc: Probability that a train row scores above a hold-out row; an estimate.
        rates: Rates at fixed thresholds, with limits that hold together.
        phantom_p_value: The same test between two halves of the hold-out; None if they are too
            small.
        detectable_copies: The least share of train rows that, copied, would have been found with
            probability 0.8; None if even half of them would not.
    """

    attack: str
    fitted: int
    scored: int
    p_value: Annotated[float, Limits(0.0, 1.0)]
    auc: Annotated[float, Limits(0.0, 1.0)]
    rates: tuple[RateAtThreshold, ...]
    phantom_p_value: float | None
    detectable_copies: float | None


@dataclass(frozen=True, kw_only=True)
class ReleasedBound:
    """The lower bound on epsilon, for tables that differ by one row more or less.

    Attributes:
        proved: The bound at the result's confidence.
        delta: δ for which it holds.
        max_provable: What a perfect attack would have proved.
        detectable: The smallest ε of randomised response that would have been proved to exceed the
            claim (0 if there is none) with probability 0.8; None if none would.
    """

    proved: float
    delta: float
    max_provable: float
    detectable: float | None


@dataclass(frozen=True, kw_only=True)
class ReleasedDataResult(Document):
    """An audit of a released table.

    Attributes:
        finding: What it concludes.
        reasons: Why, the main one first.
        claim: The claim under audit; None if there is none.
        confidence: Of the bound, of the limits together, and that no leak is found where none is.
        seed: Root of every random stream.
        rows: Rows of the tables.
        sources: Where they came from.
        schema_inferred: Whether kinds, categories and bounds were read off the tables.
        warnings: What is odd about the tables.
        exchangeability: Tests whether a random split made train and hold-out; None where coins
            decided, or without a hold-out.
        membership: How well members are recognised; None without a hold-out, or with too few rows.
        bound: The lower bound on epsilon; None if this is none.
        not_a_bound: Why there is no bound; None if there is one.
        riskiest: Rows of the train table that stand out, of which at most 5 % in the mean by
            chance.
        linkage: Copies, rare values, guessed attributes, and the distance to the closest record.
        dpaudit: Version of dpaudit.
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

    @property
    def found(self) -> bool:
        """Whether a leak was found, or a claim refuted."""
        return self.finding.verdict is Verdict.VIOLATION

    def assert_no_violation(self, *, on_inconclusive: Literal["fail", "pass"] = "fail") -> None:
        """Fails a test unless the audit was sound and found neither a leak nor a violation.

        Args:
            on_inconclusive: Whether an audit too weak to decide fails too.

        Raises:
            AssertionError: On a leak, a violation, an invalid audit, and on an inconclusive one
                unless that is to pass; the message has finding, reasons, tables and seed.
        """
        __tracebackhide__ = True
        passing = {Verdict.CONSISTENT}
        if on_inconclusive == "pass":
            passing.add(Verdict.INCONCLUSIVE)
        if self.finding.verdict in passing:
            return
        tables = ", ".join(str(source) for source in self.sources if source is not None)
        lines = (
            f"{self.finding.upper()}: {self.reasons[0]}",
            *self.reasons[1:],
            f"tables: {tables}",
            f"seed: {self.seed}",
        )
        raise AssertionError("\n".join(map(printable, lines)))

    def to_markdown(self) -> str:
        """The report as a Markdown page."""
        from dpaudit.released_data.report import released_markdown

        return released_markdown(self)

    def to_html(self) -> str:
        """The report as one HTML file without scripts or anything from the network."""
        from dpaudit.released_data.report import released_html

        return released_html(self)

    def __str__(self) -> str:
        """The report as text of 80 columns."""
        from dpaudit.released_data.report import released_text

        return released_text(self)


def released_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of `ReleasedDataResult.to_document`."""
    return document_schema(ReleasedDataResult, title="dpaudit audit of a released table")
