"""The blocks of the page on a released table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from dpaudit.formatting import (
    auc_text,
    listed,
    percent,
    rounded,
    rounded_down,
    rounded_up,
)
from dpaudit.released_data.anonymeter.run import AnonymeterFinding
from dpaudit.released_data.conclusion import (
    MembershipOutcome,
    ReleasedBound,
    RowCounts,
    linkage_confidence,
    membership_level,
)
from dpaudit.released_data.copies import Copies, CopyFinding, Excess, Outliers
from dpaudit.released_data.exchangeability import Exchangeability
from dpaudit.released_data.inference import TOLERANCE, Guesser, Inference
from dpaudit.released_data.linkage import DistancePanel, DistanceQuantiles, Linkage
from dpaudit.released_data.membership import CONTROL_LEVEL, RiskyRow, p_text
from dpaudit.released_data.tables import ReleasedSources
from dpaudit.results.structure import Block, ReportTable

_ROWS_NAMED = 20
MOST_ROWS: Final = 10
"""Most rows that each table of the report shows."""
_METHOD: Final = {Guesser.CLOSEST: "nearest row", Guesser.MODEL: "random forest"}
_NAME, _SHORT = 18, 12  # letters of a column's name, so that a terminal holds the tables
_SHARED: Final = (
    "False positive rates on one line have the same threshold: the hold-out {noun} that set it are "
    "too few, or their scores too alike, to separate them."
)
_COPIED_ROWS: Final = "the output of --json, as linkage.copies.riskiest"
NO_HOLDOUT: Final = "Without a hold-out, nothing shows how many there would be by chance."
ANONYMETER: Final = "Singling out, linkability and inference by anonymeter"


def membership_block(membership: MembershipOutcome, *, confidence: float, noun: str) -> Block:
    """How well train rows (or units) are recognised, and the results of the controls."""
    header = ("threshold", "TPR", "FPR", "TPR at least", "FPR at most")
    rows, shared = [], False
    for _, alike in groupby(membership.rates, lambda rate: rate._replace(nominal=0.0)):
        rate, *others = alike
        shared = shared or bool(others)
        nominal = ", ".join(percent(each.nominal) for each in (rate, *others))
        rows.append(
            (
                f"for FPR {nominal}",
                f"{rate.flagged_members}/{rate.members}",
                f"{rate.flagged_others}/{rate.others}",
                percent(float(rounded_down(rate.true_positive_rate_lower))),
                percent(float(rounded_up(rate.false_positive_rate_upper))),
            )
        )
    return Block(
        title=f"Recognising training {noun}",
        paragraphs=(
            f'The attack "{membership.attack}" was chosen on {membership.fitted:,} {noun}, which '
            f"also set the thresholds, and scored once on {membership.scored:,} others: AUC "
            f"{auc_text(membership.auc)}, p {p_text(membership.p_value)}.",
            f"The limits in the table below hold jointly at {percent(confidence)} confidence. "
            'Those in later tables ("at least") hold jointly at '
            f"{percent(linkage_confidence(confidence))}, because they share the "
            f"{percent(1.0 - confidence)} chance of a false leak with the test above: "
            f"{percent(1.0 - linkage_confidence(confidence))} for them, "
            f"{percent(membership_level(confidence))} for its p-value.",
            *_controls(membership, noun),
            *([_SHARED.format(noun=noun)] if shared else []),
        ),
        table=ReportTable(header, tuple(rows), frozenset({1, 2, 3, 4})),
    )


def _controls(membership: MembershipOutcome, noun: str) -> tuple[str, str]:
    """The null control and the power."""
    if membership.phantom_p_value is None:
        null = "There is no null control: the hold-out is too small to be halved."
    elif membership.phantom_p_value > CONTROL_LEVEL:
        null = (
            "Null control passed: between two halves of the hold-out, where there is nothing to "
            f"find, the same test finds nothing (p {p_text(membership.phantom_p_value)}, above its "
            f"threshold of {CONTROL_LEVEL:g})."
        )
    else:
        null = (
            "Null control FAILED: the same test distinguishes two halves of the hold-out, "
            f"where there is nothing to find (p {p_text(membership.phantom_p_value)})."
        )
    if membership.detectable_copies is None:
        return null, f"Power: even copies of half of the training {noun} might have been missed."
    return null, (
        f"Power: copies of {percent(membership.detectable_copies)} of the training {noun} are "
        "detected with 80 % probability."
    )


def bound_block(bound: ReleasedBound, *, confidence: float, unit: str | None) -> Block:
    """The lower bound on epsilon."""
    noun, which = ("rows", "one row") if unit is None else ("units", f"all rows of one {unit}")
    return Block(
        title="Bound on epsilon",
        paragraphs=(
            f"Epsilon is at least {rounded_down(bound.proved)} at {percent(confidence)} confidence "
            f"(delta {bound.delta:g}, add or remove {which}): whatever produced the synthetic "
            "table is not more private than that.",
            "Assumed: each coin was fair, and the producer of the table saw neither coins nor "
            f"hold-out. The upper limit for this many {noun} is "
            f"{rounded_down(bound.max_provable)}. The bound and the membership test each hold at "
            "their own confidence, not jointly.",
        ),
    )


def not_tested_block(
    not_a_bound: str | None, anonymeter: object | None, *, has_holdout: bool
) -> tuple[Block, ...]:
    """What this audit did not test, and what a test needs; nothing if all was tested."""
    if not has_holdout:
        needs = (
            "Each of these needs a hold-out: whether training rows can be recognised, near copies, "
            "a bound on epsilon, and singling out, linkability and inference by anonymeter.",
        )
        return (Block(title="Not tested", paragraphs=needs),)
    items = [] if not_a_bound is None else [f"{not_a_bound[:1].upper()}{not_a_bound[1:]}."]
    if anonymeter is None:
        items.append(f"{ANONYMETER}: run dpaudit env create anonymeter, then add --anonymeter.")
    return (Block(title="Not tested", items=tuple(items)),) if items else ()


def riskiest_block(rows: Sequence[RiskyRow], *, compared: int, noun: str) -> Block:
    """The rows of the train table that stand out, or the first rows of units that do."""
    named = listed([risky.row for risky in rows], _ROWS_NAMED)
    all_in = " All are in the output of --json, as riskiest." if len(rows) > _ROWS_NAMED else ""
    numbers = "Row numbers" if noun == "rows" else "Their first rows, numbered"
    return Block(
        title=f"Riskiest {noun}",
        paragraphs=(
            f"An attacker recognises {len(rows):,} training {noun}, copied or not (false discovery "
            f"rate 5 %). {numbers} from 0, the clearest first: {named}.{all_in}",
            f"A copied row may be missing: this list leaves out the {compared // 5:,} of "
            f"{compared:,} {noun} on which its attack was chosen, and copies that chance explains. "
            "The section Copies counts every copied row that is compared.",
        ),
    )


def linkage_blocks(linkage: Linkage) -> tuple[Block, ...]:
    """The parts on copies, extremes, guesses, distances and anonymeter."""
    return (
        _copies(linkage.copies, percent(linkage.confidence)),
        _outliers(linkage.outliers),
        *([_inference(linkage.inference)] if linkage.inference else []),
        _panel(linkage.panel),
        *([_anonymeter(linkage.anonymeter)] if linkage.anonymeter is not None else []),
    )


def _copies(copies: Copies, confidence: str) -> Block:
    exact = copies.exact.records
    noun = copies.noun
    findings = [_named_finding(finding) for finding in (copies.exact, *copies.near)]
    findings += [_named_finding(finding, ", two rows or more") for finding in copies.several or ()]
    wider = (
        " The distance of a near copy was set on one half of the hold-out and is tested on the "
        "other. A wider distance also finds copies that chance explains, so its bound may be "
        "smaller."
        if copies.near
        else ""
    )
    these = f"training {noun} that are compared" if exact.holdout else f"training {noun}"
    counted = (
        f"{copies.synthetic} synthetic rows equal a training row; {exact.train} {these} "
        "have such a copy."
    )
    return Block(
        title="Copies",
        paragraphs=(
            f"{counted} Hold-out {noun} show how many copies occur by chance. The last column is a "
            f"lower bound on the training {noun} that have a copy because they were trained on; "
            "such bounds, here and in later tables, hold jointly at "
            f"{confidence} confidence if train and hold-out were split at random.{wider}"
            if exact.holdout
            else f"{counted} {NO_HOLDOUT}",
            *_copied_rows(copies),
        ),
        table=_table(f"{noun} with a copy", findings),
    )


def _named_finding(finding: CopyFinding, several: str = "") -> tuple[str, Excess]:
    """A finding with its name in the table of copies."""
    name = "exact" if finding.share is None else f"exact or within {rounded(finding.within)}"
    return f"{name}{several}", finding.records


def _copied_rows(copies: Copies) -> Iterator[str]:
    """Names the first copied rows, and says where the rest are listed."""
    shown, copied = copies.riskiest[:MOST_ROWS], len(copies.riskiest)
    if not shown:
        return
    cut = copied > len(shown)
    order = "the least likely by chance first" if copies.exact.records.holdout else "in their order"
    rest = f" {len(shown)} of {copied:,} are shown; all are in {_COPIED_ROWS}." if cut else ""
    yield (
        f"Copied training rows, {order} (row 0 is the first below the header): "
        f"{', '.join(map(str, shown))}.{rest}"
    )


def _outliers(outliers: Outliers) -> Block:
    paragraphs = []
    if outliers.ends is not None:
        ends = outliers.ends
        paragraphs.append(
            f"Of the minima and maxima of numeric columns, {ends.train} equal those of the "
            f"training table and {ends.holdout.found} those of the hold-out (p "
            f"{rounded_up(ends.p_value)})"
            f"{': bounds were read from the training table' if outliers.ends_proved else ''}."
        )
        own = [column.column for column in outliers.columns if column.minimum or column.maximum]
        if own:
            paragraphs.append(
                f"Columns with an extreme of the training table alone: {listed(own, MOST_ROWS)}."
            )
    alone = [column for column in outliers.columns if column.repeated.train.of]
    compared = any(column.repeated.holdout for column in alone)
    if not compared:
        alone.sort(key=lambda column: -column.repeated.train.found)
    shown = alone[:MOST_ROWS]
    if not shown:
        paragraphs.append("No value belongs to one real row alone.")
    elif not compared:
        paragraphs.append(
            "A repeated value may point at one person; in a column of many different numbers it "
            f"may as well be chance. {NO_HOLDOUT}"
        )
    if shown:
        paragraphs.append(
            "Values that only one real row has, and how many of them the synthetic table repeats"
            f"{_cut(len(alone), 'columns')}:"
        )
    rows = [(shortened(column.column, _NAME), column.repeated) for column in shown]
    return Block(
        title="Rare values" if outliers.ends is None else "Extremes and rare values",
        paragraphs=tuple(paragraphs),
        table=_table("column", rows) if rows else None,
    )


def _cut(number: int, what: str) -> str:
    """The note that a table shows only its first rows, if it does."""
    if number <= MOST_ROWS:
        return ""
    return f" (the first {MOST_ROWS} of {number:,} {what}; the output of --json has all)"


def _inference(inferences: tuple[Inference, ...]) -> Block:
    compared = any(guess.right.holdout for guess in inferences)
    order = "smallest p-values" if compared else "largest gains"

    def rank(guess: Inference) -> float:
        return (guess.right.p_value or 0.0) if compared else guess.baseline - guess.right.train.rate

    shown = sorted(inferences, key=rank)[:MOST_ROWS]
    more = f" Shown: the {MOST_ROWS} {order} of {len(inferences)}; the output of --json has all."
    cut = more if len(inferences) > MOST_ROWS else ""
    rows = [
        (
            shortened(guess.secret, _NAME),
            _METHOD[guess.guesser],
            _rate(guess.baseline),
            *_guess_cells(guess, compared=compared),
        )
        for guess in shown
    ]
    last = ("train", "hold-out", "at least") if compared else ("train", "above baseline")
    return Block(
        title="Guessing a value from all others",
        paragraphs=(
            "How often a value is guessed right from all other values of its row, in two ways: "
            "it is taken from the synthetic row nearest in the other columns (nearest row), or "
            "predicted by a random forest that learned from the synthetic table. A number is "
            f"right within {percent(TOLERANCE)} of its column's range. Baseline: always guessing "
            "the most frequent value or the median."
            + (
                " What is guessed as well on hold-out rows reflects the population, not the "
                "training. The last column is a lower bound on the training rows whose value is "
                "revealed because they were trained on."
                if compared
                else " Above baseline: by more than two standard errors. It may reflect the "
                "population as well as the training; only a hold-out shows which."
            )
            + cut,
        ),
        table=ReportTable(
            ("column", "method", "baseline", *last),
            tuple(rows),
            frozenset({2, 3, 4, 5} if compared else {2, 3}),
        ),
    )


def _guess_cells(guess: Inference, *, compared: bool) -> tuple[str, ...]:
    """Shares of right guesses, and what they mean."""
    train, holdout, at_least = guess.right.train, guess.right.holdout, guess.right.at_least
    if not compared:
        error = math.sqrt(guess.baseline * (1.0 - guess.baseline) / max(train.of, 1))
        more = train.rate > guess.baseline + 2.0 * error
        return _rate(train.rate), "yes" if more else "no"
    return (
        _rate(train.rate),
        "-" if holdout is None else _rate(holdout.rate),
        percent(float(rounded_down(at_least / train.of))) if at_least else "none shown",
    )


def _panel(panel: DistancePanel) -> Block:
    def cells(name: str, of: DistanceQuantiles) -> tuple[str, ...]:
        return (name, rounded(of.low), rounded(of.median), rounded(of.ratio), _share(of.identical))

    rows = [cells("train", panel.train)]
    rows += [cells("hold-out", panel.holdout)] if panel.holdout else []
    share = (
        ""
        if panel.nearer_to_train is None
        else f" {_share(panel.nearer_to_train)} of synthetic rows are nearer to a training row "
        "than to a hold-out row. As many training as hold-out rows, drawn at random, are compared "
        "here, so the share of identical ones may differ from Copies."
    )
    return Block(
        title="Distance to the closest record",
        paragraphs=(
            "Many privacy panels judge a table by the distance of its rows to the closest real "
            "row. That decides nothing here: averages and low quantiles over all synthetic rows "
            "hardly change when a few rows are copied. The ratio is that of the closest to the "
            f"second closest distance.{share}",
        ),
        table=ReportTable(
            ("distance to", "5 % quantile", "median", "ratio, 5 %", "identical"),
            tuple(rows),
            frozenset({1, 2, 3, 4}),
        ),
    )


def _anonymeter(risks: Sequence[AnonymeterFinding]) -> Block:
    rows = tuple(
        (
            risk.kind if risk.secret is None else f"{risk.kind}: {shortened(risk.secret, _SHORT)}",
            f"{risk.train} of {risk.attacks}",
            str(risk.holdout),
            str(risk.baseline),
            f"{risk.risk:.2f} ({risk.low:.2f} to {risk.high:.2f})",
        )
        for risk in risks
    )
    return Block(
        title=ANONYMETER,
        paragraphs=(
            "Its risk is the success on training rows in excess of that on hold-out rows. Its "
            "intervals are approximate and separate; they decide nothing here.",
        ),
        items=tuple(f"{risk.kind}: {note}" for risk in risks for note in dict.fromkeys(risk.notes)),
        table=ReportTable(
            ("attack", "train", "hold-out", "at random", "risk"), rows, frozenset({1, 2, 3, 4})
        ),
    )


def _excess_cells(excess: Excess, *, compared: bool) -> tuple[str, ...]:
    if not compared:
        return (str(excess.train),)
    holdout = "-" if excess.holdout is None else str(excess.holdout)
    return str(excess.train), holdout, "-" if excess.at_least is None else f"{excess.at_least:,}"


def shortened(name: str, letters: int) -> str:
    """Shortens a name in the middle, because column names often begin alike."""
    if len(name) <= letters:
        return name
    end = (letters - 1) // 2
    return f"{name[: letters - 1 - end]}…{name[-end:]}"


def _table(first: str, findings: Sequence[tuple[str, Excess]]) -> ReportTable:
    """Findings by name; without a hold-out there is nothing to compare them with."""
    compared = any(excess.holdout for _, excess in findings)
    header = ("train", "hold-out", "at least") if compared else ("train",)
    rows = tuple((name, *_excess_cells(excess, compared=compared)) for name, excess in findings)
    return ReportTable((first, *header), rows, frozenset(range(1, 1 + len(header))))


def _rate(value: float) -> str:
    return percent(round(value, 3))


def _share(value: float) -> str:
    return percent(round(value, 4))


def tables_block(
    rows: RowCounts,
    sources: ReleasedSources,
    tests: Exchangeability | None,
    warnings: Sequence[str],
    *,
    noun: str,
) -> Block:
    """The tables compared, their sources and warnings about them."""
    items = [f"train: {rows.train:,} rows ({sources.train})"]
    if rows.holdout is not None:
        items.append(f"hold-out: {rows.holdout:,} rows ({sources.holdout})")
    items.append(f"synthetic: {rows.synthetic:,} rows ({sources.synthetic})")
    if rows.coins is not None:
        items.append(f"{noun} with a coin: {rows.coins:,}")
    if tests is not None:
        signs = "signs" if tests.repeats_removed or tests.differ else "no sign"
        p_values = ", ".join(f"{name} {p_text(value)}" for name, value in tests.p_values.items())
        items.append(
            f"train and hold-out rows that are compared: {rows.compared:,}; {signs} that the "
            f"split was not random (p-values: {p_values})"
        )
    items += [f"warning: {warning}" for warning in warnings]
    return Block(title="Tables", folded=not warnings, items=tuple(items))
