"""The parts of the page on a released table, and a page as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dpaudit.formatting import (
    aligned,
    auc_text,
    listed,
    percent,
    rounded,
    rounded_down,
    rounded_up,
    wrapped,
)
from dpaudit.released_data.conclusion import MembershipOutcome, ReleasedBound, RowCounts
from dpaudit.released_data.copies import Copies, Excess, Hits, Outliers
from dpaudit.released_data.exchangeability import Exchangeability
from dpaudit.released_data.inference import Inference
from dpaudit.released_data.linkage import DistancePanel, DistanceQuantiles, Linkage
from dpaudit.released_data.membership import CONTROL_LEVEL, RiskyRow, p_text
from dpaudit.released_data.tables import ReleasedSources
from dpaudit.results.structure import Block, ReportTable

_ROWS_NAMED = 20
_INDENT = "  "
MOST_ROWS: Final = 10
"""Most rows that each table of the report shows."""
_NAME, _SHORT = 18, 12  # letters of a column's name, so that a terminal holds the tables
_NO_HOLDOUT = "Without a hold-out, nothing shows how many there would be by chance."
_COMPARED = ("train", "hold-out", "at least")


def membership_block(found: MembershipOutcome, *, confidence: float) -> Block:
    """How well train rows are recognised, and the results of the controls."""
    header = ("threshold", "TPR", "FPR", "TPR at least", "FPR at most")
    rows = tuple(
        (
            f"for FPR {percent(rate.nominal)}",
            f"{rate.flagged_members}/{rate.members}",
            f"{rate.flagged_others}/{rate.others}",
            percent(float(rounded_down(rate.true_positive_rate_lower))),
            percent(float(rounded_up(rate.false_positive_rate_upper))),
        )
        for rate in found.rates
    )
    return Block(
        title="Recognising training rows",
        paragraphs=(
            f"The attack {found.attack} was chosen on {found.fitted:,} rows and scored once on "
            f"{found.scored:,} others: AUC {auc_text(found.auc)}, p {p_text(found.p_value)}. The "
            f"limits in the table hold jointly at {percent(confidence)} confidence.",
            *_controls(found),
        ),
        table=ReportTable(header, rows, frozenset({1, 2, 3, 4})),
    )


def _controls(found: MembershipOutcome) -> Iterator[str]:
    if found.phantom_p_value is None:
        yield "There is no null control: the hold-out is too small to be halved."
    else:
        yield (
            "Null control passed: between two halves of the hold-out, where there is nothing to "
            f"find, the same test finds nothing (p {p_text(found.phantom_p_value)})."
            if found.phantom_p_value > CONTROL_LEVEL
            else "Null control FAILED: the same test distinguishes two halves of the hold-out, "
            f"where there is nothing to find (p {p_text(found.phantom_p_value)})."
        )
    if found.detectable_copies is None:
        yield "Power: even copies of half of the training rows might have been missed."
    else:
        yield (
            f"Power: copies of {percent(found.detectable_copies)} of the training rows are "
            "detected with 80 % probability."
        )


def bound_block(bound: ReleasedBound | None, why_none: str | None, *, confidence: float) -> Block:
    """The lower bound on epsilon, or why there is none."""
    said = (_sentence(why_none or ""),) if bound is None else tuple(_proved(bound, confidence))
    return Block(title="Bound on epsilon", paragraphs=said)


def _proved(bound: ReleasedBound, confidence: float) -> Iterator[str]:
    yield (
        f"Epsilon is at least {rounded_down(bound.proved)} at {percent(confidence)} confidence "
        f"(delta {bound.delta:g}, add or remove one row): whatever produced the synthetic table is "
        "not more private than that."
    )
    yield (
        "Assumed: each coin was fair, and the producer of the table saw neither coins nor "
        f"hold-out. The upper limit for this many rows is {rounded_down(bound.max_provable)}. "
        "Bound and test hold at their confidence separately."
    )


def riskiest_block(rows: Sequence[RiskyRow]) -> Block:
    """The rows of the train table that stand out."""
    named = listed([one.row for one in rows], _ROWS_NAMED)
    return Block(
        title="Riskiest rows",
        paragraphs=(
            f"{len(rows):,} training rows stand out (false discovery rate 5 %; the fifth of the "
            f"rows that served to choose the attack is left out). Row numbers from 0: {named}.",
        ),
    )


def linkage_blocks(found: Linkage) -> tuple[Block, ...]:
    """Links between the synthetic table and single records: a part for each kind of finding."""
    return (
        _copies(found.copies, percent(found.confidence)),
        _outliers(found.outliers),
        *([_inference(found.inference)] if found.inference else []),
        _panel(found.panel, proved=bool(found.proved)),
        _anonymeter(found),
    )


def _copies(found: Copies, confidence: str) -> Block:
    rows = [("exact", *_compared(found.exact.records))]
    rows += [(f"within {rounded(one.within)}", *_compared(one.records)) for one in found.near]
    named = ", ".join(map(str, found.riskiest))
    return Block(
        title="Copies",
        paragraphs=(
            f"{_of(found.synthetic)} synthetic rows equal a training row. Hold-out rows show how "
            "many copies occur by chance. The last column is a lower bound on the training rows "
            "that have a copy because they were trained on; all last columns hold jointly at "
            f"{confidence} confidence if train and hold-out were split at random."
            if found.exact.records.holdout
            else f"{_of(found.synthetic)} synthetic rows equal a training row. {_NO_HOLDOUT}",
            *(
                [f"Copied training rows, the least likely by chance first: {named}."]
                if found.riskiest
                else []
            ),
        ),
        table=_table("rows with a copy", rows),
    )


def _outliers(found: Outliers) -> Block:
    paragraphs = []
    if found.ends is not None:
        ends = found.ends
        paragraphs.append(
            f"Of the minima and maxima of numeric columns, {_of(ends.train)} equal those of the "
            f"training table and {ends.holdout.found} those of the hold-out (p "
            f"{rounded_up(ends.p_value)})"
            f"{': bounds were read from the training table' if found.ends_proved else ''}."
        )
        own = [one.column for one in found.columns if one.minimum or one.maximum]
        if own:
            paragraphs.append(
                f"Columns with an extreme of the training table alone: {listed(own, MOST_ROWS)}."
            )
    paragraphs.append(
        "Values that only one row has, and how many of them the synthetic table repeats:"
    )
    shown = [one for one in found.columns if one.repeated.train.of][:MOST_ROWS]
    rows = [(_short(one.column, _NAME), *_compared(one.repeated)) for one in shown]
    return Block(
        title="Extremes and rare values",
        paragraphs=tuple(paragraphs),
        table=_table("column", rows) if rows else None,
    )


def _inference(found: tuple[Inference, ...]) -> Block:
    shown = sorted(found, key=lambda one: one.right.p_value or 0.0)[:MOST_ROWS]
    rows = [
        (
            _short(one.secret, _NAME),
            str(one.guesser),
            percent(round(one.baseline, 3)),
            *_compared(one.right),
        )
        for one in shown
    ]
    header = ("column", "guessed by", "baseline", *_COMPARED)
    return Block(
        title="Guessing a value from all others",
        paragraphs=(
            "Right guesses of a value from all other values of its row. What is guessed as well "
            "on hold-out rows reflects the population, not the training. Baseline: guessing the "
            "most frequent value or the median."
            + (
                f" The last column is a lower bound on training rows whose value is revealed "
                f"because they were trained on. Shown: the {len(rows)} smallest p-values."
                if any(one.right.holdout for one in shown)
                else f" {_NO_HOLDOUT}"
            ),
        ),
        table=ReportTable(header, tuple(rows), frozenset({2, 3, 4, 5})),
    )


def _panel(found: DistancePanel, *, proved: bool) -> Block:
    def cells(name: str, of: DistanceQuantiles) -> tuple[str, ...]:
        return (name, rounded(of.low), rounded(of.median), rounded(of.ratio), _share(of.identical))

    rows = [cells("train", found.train)]
    rows += [cells("hold-out", found.holdout)] if found.holdout else []
    share = (
        ""
        if found.nearer_to_train is None
        else f" {_share(found.nearer_to_train)} of synthetic rows are nearer to a training row "
        "than to a hold-out row."
    )
    said = "passes" if found.passes else "does not pass"
    but = ", although leaks are proved above" if proved and found.passes else ""
    return Block(
        title="Distance to the closest record",
        paragraphs=(
            f"Many privacy panels show this. This table {said}{but}.{share} Averages and low "
            "quantiles over all synthetic rows hardly change when a few rows are copied: a table "
            "that passes may still leak.",
        ),
        table=ReportTable(
            ("distance to", "5 % quantile", "median", "ratio, 5 %", "identical"),
            tuple(rows),
            frozenset({1, 2, 3, 4}),
        ),
    )


def _anonymeter(found: Linkage) -> Block:
    title = "Singling out, linkability and inference by anonymeter"
    if found.anonymeter is None:
        return Block(
            title=title,
            paragraphs=("Not run: it takes a hold-out, its environment, and --anonymeter.",),
            folded=True,
            command="dpaudit env create anonymeter",
        )
    rows = tuple(
        (
            one.kind if one.secret is None else f"{one.kind}: {_short(one.secret, _SHORT)}",
            f"{one.train} of {one.attacks}",
            str(one.holdout),
            str(one.baseline),
            f"{one.risk:.2f} ({one.low:.2f} to {one.high:.2f})",
        )
        for one in found.anonymeter
    )
    return Block(
        title=title,
        paragraphs=(
            "Its risk is the success on training rows in excess of that on hold-out rows. Its "
            "intervals are approximate and separate; they decide nothing here.",
        ),
        items=tuple(
            f"{one.kind}: {note}" for one in found.anonymeter for note in dict.fromkeys(one.notes)
        ),
        table=ReportTable(
            ("attack", "train", "hold-out", "at random", "risk"), rows, frozenset({1, 2, 3, 4})
        ),
    )


def _compared(found: Excess) -> tuple[str, str, str]:
    holdout = "-" if found.holdout is None else _of(found.holdout)
    return _of(found.train), holdout, "-" if found.at_least is None else f"{found.at_least:,}"


def _short(name: str, letters: int) -> str:
    """A name without its middle, because column names often begin alike."""
    if len(name) <= letters:
        return name
    end = (letters - 1) // 2
    return f"{name[: letters - 1 - end]}…{name[-end:]}"


def _table(first: str, rows: Sequence[tuple[str, ...]]) -> ReportTable:
    return ReportTable((first, *_COMPARED), tuple(rows), frozenset({1, 2, 3}))


def _of(hits: Hits) -> str:
    return f"{hits.found:,} of {hits.of:,}"


def _share(value: float) -> str:
    return percent(round(value, 4))


def tables_block(
    rows: RowCounts,
    sources: ReleasedSources,
    tests: Exchangeability | None,
    warnings: Sequence[str],
) -> Block:
    """The tables compared, their sources and their peculiarities."""
    return Block(
        title="Tables", folded=not warnings, items=tuple(_tables(rows, sources, tests, warnings))
    )


def _tables(
    rows: RowCounts,
    sources: ReleasedSources,
    tests: Exchangeability | None,
    warnings: Sequence[str],
) -> Iterator[str]:
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
    yield from (f"warning: {warning}" for warning in warnings)


def text_of(finding: str, reasons: Sequence[str], blocks: Sequence[Block]) -> str:
    """A page as text of 80 columns.

    Args:
        finding: Its first line.
        reasons: Further reasons, each a sentence without its end.
        blocks: Its parts.

    Returns:
        The text.
    """
    lines = wrapped(finding)
    for reason in reasons:
        lines += wrapped(f"{reason}.", first=_INDENT, rest=_INDENT)
    for block in blocks:
        lines += ["", block.title]
        for said in (*block.paragraphs, *block.items):
            lines += wrapped(said, first=_INDENT, rest=_INDENT)
        if block.table:
            table = (block.table.header, *block.table.rows)
            lines += aligned(table, numeric=block.table.numeric, indent=_INDENT)
        if block.command:
            lines += ["", f"{_INDENT}{_INDENT}{block.command}"]  # whole, to be copied
    return "\n".join(lines)


def _sentence(clause: str) -> str:
    return f"{clause[:1].upper()}{clause[1:]}."
