"""The parts of a report on what links a synthetic table to single records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dpaudit.formatting import percent, rounded, rounded_up
from dpaudit.released_data.copies import Copies
from dpaudit.released_data.distance_panel import DistancePanel, DistanceQuantiles
from dpaudit.released_data.excess import Excess, Hits
from dpaudit.released_data.inference import Inference
from dpaudit.released_data.linkage import Linkage
from dpaudit.released_data.outliers import Outliers
from dpaudit.results.structure import Block, ReportTable

MOST_ROWS: Final = 10
"""Rows of each table that are shown."""
_NAME, _SHORT = 20, 12  # letters of a column's name, so that a terminal holds the tables
_NO_HOLDOUT = "Without a hold-out nothing says how many there would be by chance."


def linkage_blocks(found: Linkage) -> tuple[Block, ...]:
    """The parts of the report.

    Args:
        found: The findings.

    Returns:
        A part for each kind of finding.
    """
    return tuple(_blocks(found))


def _blocks(found: Linkage) -> Iterator[Block]:
    yield _copies(found.copies, percent(found.confidence))
    yield _outliers(found.outliers)
    if found.inference:
        yield _inference(found.inference)
    yield _panel(found.panel, proved=bool(found.proved))
    yield _anonymeter(found)


def _copies(found: Copies, confidence: str) -> Block:
    rows = [("every value", *_compared(found.exact.records))]
    rows += [(f"within {rounded(one.within)}", *_compared(one.records)) for one in found.near]
    named = ", ".join(map(str, found.riskiest))
    return Block(
        title="Copies",
        paragraphs=(
            f"{_of(found.synthetic)} synthetic records equal a train record. What hold-out records "
            "show is chance; the last column is how many train records have a copy because they "
            f"were trained on, at least. It holds, as that of the next tables, at {confidence} "
            "confidence if a random split made train and hold-out."
            if found.exact.records.holdout
            else f"{_of(found.synthetic)} synthetic records equal a train record. {_NO_HOLDOUT}",
            *(
                [f"Copied rows of the train table, the least likely by chance first: {named}."]
                if found.riskiest
                else []
            ),
        ),
        table=_table("records with a copy", rows),
    )


def _outliers(found: Outliers) -> Block:
    paragraphs = []
    if found.ends is not None:
        ends = found.ends
        paragraphs.append(
            f"The synthetic table has the smallest or largest value of the train table at "
            f"{_of(ends.train)} ends of numeric columns, and that of the hold-out at "
            f"{ends.holdout.found}; a random split differs so much with p "
            f"{rounded_up(ends.p_value)}"
            f"{': bounds were read off the train table' if found.ends_proved else ''}."
        )
        own = [one.column for one in found.columns if one.minimum or one.maximum]
        if own:
            paragraphs.append(f"Ends of the train table and not of the hold-out: {_listed(own)}.")
    paragraphs.append(
        "Below: values that one record alone has, and how many of them the synthetic table repeats."
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
            "What is guessed of hold-out records as well holds of the population. Baseline: right "
            "with the most frequent value or the median alone. The last column: train records "
            "whose value was given away because they were trained on, at least. These are the "
            f"{len(rows)} guesses with the smallest p-values.",
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
        else f" {_share(found.nearer_to_train)} of synthetic records are nearer to a train record "
        "than to a hold-out record."
    )
    said = "passes" if found.passes else "does not pass"
    but = ", although leaks are proved above" if proved and found.passes else ""
    return Block(
        title="Distance to the closest record",
        paragraphs=(
            f"Many privacy panels show this. This table {said}{but}.{share} These are averages "
            "and low quantiles over all synthetic records: copies of a few records do not move "
            "them, so that a table that passes may still leak.",
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
            paragraphs=("Not run: make its environment, ask for it, and give a hold-out.",),
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
            "Its risk is the success on train records beyond that on hold-out records. Its "
            "intervals are approximate, hold one by one, and decide nothing here.",
        ),
        items=tuple(
            f"{one.kind}: {note}" for one in found.anonymeter for note in dict.fromkeys(one.notes)
        ),
        table=ReportTable(
            ("attack", "train", "hold-out", "at random", "risk"), rows, frozenset({1, 2, 3, 4})
        ),
    )


_COMPARED = ("train", "hold-out", "at least")


def _compared(found: Excess) -> tuple[str, str, str]:
    holdout = "-" if found.holdout is None else _of(found.holdout)
    return _of(found.train), holdout, "-" if found.at_least is None else f"{found.at_least:,}"


def _short(name: str, letters: int) -> str:
    """A name without its middle, for names of columns often begin alike."""
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


def _listed(names: list[str]) -> str:
    more = len(names) - MOST_ROWS
    return ", ".join(names[:MOST_ROWS]) + (f" and {more} more" if more > 0 else "")
