"""The result of an audit of a released table: its record, and the page for those who decide."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from dpaudit.formatting import Row, percent, printable, rounded_down
from dpaudit.model.claim import PrivacyClaim
from dpaudit.released_data.conclusion import (
    MembershipOutcome,
    ReleasedBound,
    ReleasedFinding,
    RowCounts,
    is_weak,
    membership_level,
)
from dpaudit.released_data.copies import Hits
from dpaudit.released_data.exchangeability import Exchangeability
from dpaudit.released_data.linkage import Linkage
from dpaudit.released_data.membership import RiskyRow
from dpaudit.released_data.report import (
    bound_block,
    linkage_blocks,
    membership_block,
    not_tested_block,
    riskiest_block,
    shortened,
    tables_block,
)
from dpaudit.released_data.resemblance import Resemblance
from dpaudit.released_data.tables import ReleasedSources
from dpaudit.report.charts import ChartRow, draw_rows
from dpaudit.report.page import Page, Step, page_text, released_clauses
from dpaudit.report.render import page_html, page_markdown
from dpaudit.results.document import OPTIONAL, Document, document_schema
from dpaudit.results.sentences import CONFIDENTIAL, HEADLINE_GAP
from dpaudit.results.structure import Block, Picture, ReportTable
from dpaudit.results.verdict import Verdict

_NAME: Final = 20  # letters of a column's name
_CHANGED_ROWS: Final = (
    "Do not release this table before someone has compared its rows with the training rows nearest "
    "to them: it looks like the training table with small changes."
)
_NOMINAL: Final = 0.01
"""False positive rate of the attack's bar."""


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
        riskiest: Rows of the train table that stand out, or the first rows of units that do; on
            average at most 5 % of them by chance.
        linkage: Copies, rare values, guessed attributes, and the distance to the closest record.
        dpaudit: Version of dpaudit.
        date: Day on which the audit ended, in UTC; absent from results written before it was
            recorded.
        reproduce: The command that repeats the audit; absent where a table was in memory.
        resemblance: Whether synthetic rows look like training rows with small changes; absent where
            a hold-out decided, or where rows are too few.
        unit: The column of the units that had a coin each, and that count as records; absent if
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
    resemblance: Resemblance | None = field(default=None, metadata=OPTIONAL)
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
        return page_markdown(released_page(self))

    def to_html(self) -> str:
        """The report as one HTML file without scripts or anything from the network."""
        return page_html(released_page(self))

    def __str__(self) -> str:
        """The report as text of 80 columns."""
        return page_text(released_page(self))


def released_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of `ReleasedDataResult.to_document`."""
    return document_schema(ReleasedDataResult, title="dpaudit audit of a released table")


def released_page(result: ReleasedDataResult) -> Page:
    """Arranges the report of an audit of a released table."""
    names_rows = result.riskiest or result.linkage.copies.riskiest
    confidential = (CONFIDENTIAL,) if names_rows else ()
    has_holdout = result.rows.holdout is not None
    pairs, noun = _shares(result), result.linkage.copies.noun
    blocks = _blocks(result)
    return Page(
        verdict=result.finding.verdict,
        word=result.finding.upper(),
        finding=result.reasons[0],
        about=f"Audit of the released table {result.sources.synthetic}",
        date=result.date,
        lead=(*_lead(result), *confidential),
        result=_result_block(pairs, noun),
        next_step=_next_step(result),
        findings=(*blocks, _threat_block()),
        clauses=released_clauses(
            {block.title for block in blocks},
            has_holdout=has_holdout,
            has_command=result.reproduce is not None,
        ),
        reproduce=None if result.reproduce is None else Step(command=result.reproduce),
        origin=f"dpaudit {result.dpaudit} audit-data",
        draw=lambda picture: _draw_shares(pairs, noun),
        facts=(
            *(Row("reason", reason) for reason in result.reasons[1:]),
            *(Row("warning", warning) for warning in confidential),
        ),
        terminal=blocks,
    )


def _blocks(result: ReleasedDataResult) -> tuple[Block, ...]:
    membership, confidence, noun = result.membership, result.confidence, result.linkage.copies.noun
    compared = membership.fitted + membership.scored if membership else result.rows.compared
    blocks: list[Block] = []
    if membership:
        blocks.append(membership_block(membership, confidence=confidence, noun=noun))
    if result.bound:
        blocks.append(bound_block(result.bound, confidence=confidence, unit=result.unit))
    if result.riskiest:
        blocks.append(riskiest_block(result.riskiest, compared=compared, noun=noun))
    return (
        *blocks,
        *linkage_blocks(result.linkage),
        *not_tested_block(
            result.not_a_bound,
            result.linkage.anonymeter,
            has_holdout=result.rows.holdout is not None,
        ),
        tables_block(
            result.rows, result.sources, result.exchangeability, result.warnings, noun=noun
        ),
    )


class BarPair(NamedTuple):
    """A pair of bars: how many rows of each table have a property.

    Attributes:
        name: The property.
        train: Hits among training rows.
        holdout: Hits among hold-out rows; None without a hold-out.
        beyond_chance: Whether a random split does not explain the difference.
    """

    name: str
    train: Hits
    holdout: Hits | None
    beyond_chance: bool

    @property
    def label(self) -> str:
        """Its name, which says if chance explains it."""
        return f"{self.name}{'' if self.beyond_chance else ' (within chance)'}"


def _shares(result: ReleasedDataResult) -> tuple[BarPair, ...]:
    """The pairs of bars of the figure: the clearest finding of each kind on whole rows."""
    membership, linkage = result.membership, result.linkage
    exact, near = linkage.copies.exact.records, linkage.copies.near
    pairs = [BarPair("have an exact copy", exact.train, exact.holdout, exact.proved)]
    if near:
        clearest = max(near, key=lambda finding: finding.records.at_least or 0)
        records = clearest.records
        name = "have an exact or near copy"
        pairs.append(BarPair(name, records.train, records.holdout, records.proved))
    for rate in membership.rates if membership else ():
        if rate.nominal == _NOMINAL:
            flagged = (
                Hits(rate.flagged_members, rate.members),
                Hits(rate.flagged_others, rate.others),
            )
            beyond = membership is not None and membership.p_value <= membership_level(
                result.confidence
            )
            name = f"flagged by the attack at FPR {percent(_NOMINAL)}"
            pairs.append(BarPair(name, *flagged, beyond))
    tested = [guess for guess in linkage.inference if guess.right.p_value is not None]
    if tested:
        guess = min(tested, key=lambda each: each.right.p_value or 0.0)
        name = f"{shortened(guess.secret, _NAME)} guessed from the others"
        pairs.append(BarPair(name, guess.right.train, guess.right.holdout, guess.right.proved))
    return tuple(pairs)


def _result_block(pairs: tuple[BarPair, ...], noun: str) -> Block:
    """The figure: training rows next to hold-out rows; without these, one number in words."""
    exact = pairs[0]
    if exact.holdout is None:
        share = percent(round(exact.train.rate, 3))
        copied = f"{exact.train} training rows ({share}) {exact.name} in the synthetic table."
        return Block(title="Result", paragraphs=(copied,))
    return Block(
        title="Result",
        picture=Picture.RELEASED,
        caption=f"A longer bar for training {noun} than for hold-out {noun} points to a leak, "
        'unless it is marked "within chance": a random split of the real rows explains that '
        f"difference. The numbers are training {noun} vs hold-out {noun}, of all compared.",
        table=ReportTable(
            (noun.capitalize(), "training", "hold-out"),
            tuple(
                (pair.label, str(pair.train), "-" if pair.holdout is None else str(pair.holdout))
                for pair in pairs
            ),
            frozenset({1, 2}),
        ),
    )


def _draw_shares(pairs: tuple[BarPair, ...], noun: str) -> str:
    """Draws the bars of each share; `noun`: what is counted, "rows" or "units"."""
    rows = []
    for pair in pairs:
        hits = [of for of in (pair.train, pair.holdout) if of is not None]
        counts = " vs ".join(f"{of.found:,}/{of.of:,}" for of in hits)
        rows.append(ChartRow(pair.label, counts, bars=tuple(100.0 * of.rate for of in hits)))
    largest = max(1.0, *(bar for row in rows for bar in row.bars))
    return draw_rows(
        Picture.RELEASED,
        f"Training {noun} that can be recognised, and hold-out {noun}",
        rows,
        axis=f"% of {noun}",
        ends=(0.0, largest),
        legend={"bar": f"training {noun}", "other bar": f"hold-out {noun}"},
    )


def _lead(result: ReleasedDataResult) -> Iterator[str]:
    """The sentences below the headline: odds, further reasons, and what remains unknown."""
    bound, unit = result.bound, result.unit
    noun, was = ("rows", "a row was") if unit is None else ("units", f"the rows of a {unit} were")
    if bound is not None and bound.proved > 0.0:
        yield (
            "Some outputs of the procedure that produced this table change the odds that "
            f"{was} in the training table by a factor of at least "
            f"{rounded_down(math.exp(bound.proved))} ({percent(result.confidence)} confidence)."
        )
    yield from (f"{reason[:1].upper()}{reason[1:]}." for reason in result.reasons[1:])
    if result.rows.holdout is None:
        yield (
            "A hold-out is a table of real rows of the same population that the generator never "
            "saw. Without one, this report can say which real rows were copied, and not why, nor "
            "whether other people can be recognised, nor how large epsilon is."
        )
    elif result.finding in (ReleasedFinding.LEAK, ReleasedFinding.VIOLATION):
        yield (
            f"{noun.capitalize()} that are not recognised here are not thereby safe: other attacks "
            "may find them."
        )
    elif result.finding in (ReleasedFinding.NOTHING_FOUND, ReleasedFinding.CONSISTENT):
        yield (
            f"{noun.capitalize()} that this audit did not recognise may be recognised by a "
            "stronger attack."
        )


def _next_step(result: ReleasedDataResult) -> Step:
    """What to do next."""
    finding = result.finding
    split = "dpaudit split --data table.csv --to split"
    advice: tuple[str, ...]
    flagged = result.resemblance is not None and result.resemblance.flagged
    if result.rows.holdout is None:
        advice = (
            _CHANGED_ROWS if flagged else _of_this_table(result.linkage.copies.synthetic.found),
            "If there are rows that the generator never saw, drawn at random from the same "
            "population as the training rows, give them with --holdout: copies are then compared "
            "with chance. Older rows will do only if the population has not changed since.",
            "If there are none, only the next table can be decided: split before its training and "
            "train on split/train.csv alone:",
        )
        return Step(advice, split)
    if finding is ReleasedFinding.LEAK and is_weak(result.membership, result.linkage):
        advice = (
            "Hold this table back until the evidence is stronger or gone: tables that reveal "
            "nothing look like this, too, now and then. Give more training and hold-out rows, or "
            "split the next table by coins. Another seed is no new evidence.",
        )
        return Step(advice, split)
    if finding in (ReleasedFinding.LEAK, ReleasedFinding.VIOLATION):
        advice = (
            "Do not release this table as anonymous. If it is already released, stop sharing it "
            "and assess it as a possible disclosure of personal data. The riskiest rows and the "
            "copies show where to look. After a change to the generator, train again and repeat "
            "this audit.",
        )
        return Step(advice)
    if finding is ReleasedFinding.NOTHING_FOUND and result.rows.coins is None:
        advice = (
            "For a lower bound on epsilon, split the next table by coins before training. To test "
            "a claim of differential privacy, audit the generator (dpaudit audit).",
        )
        return Step(advice, split)
    if finding in (ReleasedFinding.NOTHING_FOUND, ReleasedFinding.CONSISTENT):
        advice = ("To test a claim more sharply, audit the generator itself (dpaudit audit).",)
        return Step(advice)
    again = "Change what the headline names, then audit again with a fresh seed (--seed)."
    return Step((_CHANGED_ROWS, again) if flagged else (again,))


def _of_this_table(copied: int) -> str:
    """What to do with a table that was not compared with a hold-out."""
    if not copied:
        return (
            "No synthetic row equals a training row, which does not make this table safe: whether "
            "it reveals training rows in another way was not decided."
        )
    equal, them = ("row equals", "it") if copied == 1 else ("rows equal", "them")
    return (
        f"{copied:,} synthetic {equal} a real row: do not release this table before someone has "
        f"looked at {them} (Copies). Deleting {them} does not make the table safe, because what "
        "else the generator kept is not known."
    )


def _threat_block() -> Block:
    """What the attacker sees and knows."""
    rows = (
        ("Sees", "the synthetic table, nothing of the generator"),
        ("Knows", "a candidate row, every value of it, and rows of the same population"),
        ("Does not know", "whether the candidate was in the training table"),
        ("Guessing values", "knows all values of a row but one"),
    )
    return Block(
        title="Threat model",
        table=ReportTable(("The attacker", "In this audit"), rows),
    )
