"""The first and the last part of the page on a released table: for those who decide."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

from dpaudit.formatting import percent, rounded, rounded_down
from dpaudit.released_data.conclusion import MembershipOutcome, ReleasedBound, ReleasedFinding
from dpaudit.released_data.copies import Hits
from dpaudit.released_data.linkage import Linkage
from dpaudit.report.figures import MARGIN, SWATCH, WIDTH, SvgDrawing, below, framed
from dpaudit.report.page import Step
from dpaudit.report.svg import INK, Axes, Range, Style, tag, text
from dpaudit.results.structure import Block, Picture, ReportTable

_NAME: Final = 24  # letters of a column's name
_NOMINAL: Final = 0.01
"""False positive rate of the attack's bar."""
_ROW: Final = 34.0
_NUMBERS: Final = 78.0
"""Room for the numbers right of the bars."""
_TRAIN: Final[Style] = {"fill": "#b3420f", "stroke": "#b3420f"}
_HOLDOUT: Final[Style] = {"fill": "white", "stroke": "#1f4e79", "stroke_width": 1.2}


class BarPair(NamedTuple):
    """A pair of bars: how many rows of each table have a property.

    Attributes:
        name: The property.
        train: Hits among training rows.
        holdout: Hits among hold-out rows; None without a hold-out.
    """

    name: str
    train: Hits
    holdout: Hits | None


def shares(membership: MembershipOutcome | None, linkage: Linkage) -> tuple[BarPair, ...]:
    """What the figure shows: of each kind of finding on whole rows the clearest one."""
    exact, near = linkage.copies.exact.records, linkage.copies.near
    found = [BarPair("have an exact copy", exact.train, exact.holdout)]
    if near:
        clearest = max(near, key=lambda one: one.records.at_least or 0)
        records = clearest.records
        name = f"have an exact or near copy (within {rounded(clearest.within)})"
        found.append(BarPair(name, records.train, records.holdout))
    for rate in membership.rates if membership else ():
        if rate.nominal == _NOMINAL:
            flagged = (
                Hits(rate.flagged_members, rate.members),
                Hits(rate.flagged_others, rate.others),
            )
            found.append(BarPair(f"flagged by the attack at FPR {percent(_NOMINAL)}", *flagged))
    tested = [one for one in linkage.inference if one.right.p_value is not None]
    if tested:
        guess = min(tested, key=lambda one: one.right.p_value or 0.0)
        name = f"value of {guess.secret[:_NAME]} guessed from the others"
        found.append(BarPair(name, guess.right.train, guess.right.holdout))
    return tuple(found)


def result_block(found: tuple[BarPair, ...], noun: str) -> Block:
    """The figure: training rows next to hold-out rows; without these, one number in words."""
    exact = found[0]
    if exact.holdout is None:
        share = percent(round(exact.train.rate, 3))
        copied = f"{_of(exact.train)} training rows ({share}) {exact.name} in the synthetic table."
        return Block(title="Result", paragraphs=(copied,))
    return Block(
        title="Result",
        picture=Picture.RELEASED,
        caption=f"A longer bar for training {noun} than for hold-out {noun} points to a leak; the "
        "sections below say which differences exceed chance. Equal bars are due to chance or to "
        "the whole population.",
        table=ReportTable(
            (noun.capitalize(), "training", "hold-out"),
            tuple(
                (one.name, _of(one.train), "-" if one.holdout is None else _of(one.holdout))
                for one in found
            ),
            frozenset({1, 2}),
        ),
    )


def draw_shares(found: tuple[BarPair, ...], noun: str) -> str:
    """Draws the bars of each share, its name above them.

    Args:
        found: The shares, at least one.
        noun: What is counted: "rows" or "units".

    Returns:
        An `<svg>` element; the same bytes for the same shares.
    """
    compared = found[0].holdout is not None
    largest = max(_percentage(one) for pair in found for one in pair[1:] if one is not None)
    axes = Axes(
        left=2.0 * MARGIN,
        top=4.0,
        width=WIDTH - 3.0 * MARGIN - _NUMBERS,
        height=_ROW * len(found) + 4.0,
        x=Range(0.0, max(largest, 1.0)),
        y=Range(0.0, 1.0),
    )
    elements, listed = [axes.frame(), axes.x_ticks(), axes.x_label(f"% of {noun}")], []
    for number, (name, train, holdout) in enumerate(found):
        top = axes.top + _ROW * number
        elements.append(text(name, axes.left + 5.0, top + 7.0, fill=INK))
        elements.append(_bar(axes, train, top + 14.0, _TRAIN))
        said = _of(train)
        if holdout is not None:
            elements.append(_bar(axes, holdout, top + 22.0, _HOLDOUT))
            said += f", hold-out {_of(holdout)}"
        right = axes.left + axes.width + 6.0
        elements.append(text(_of(train), right, top + 17.0, fill=INK))
        listed.append(f"{name}: training {said}")
    entries = [(tag("rect", y=-3, width=SWATCH, height=6, **_TRAIN), f"training {noun}")]
    if compared:
        entries.append((tag("rect", y=-3, width=SWATCH, height=6, **_HOLDOUT), f"hold-out {noun}"))
    rows, bottom = below(entries, axes)
    others = f", and hold-out {noun}" if compared else ""
    title = f"Training {noun} that can be recognised{others}"
    drawing = SvgDrawing([*elements, *rows], bottom, f"{'; '.join(listed)}.")
    return framed(Picture.RELEASED, title, drawing)


def _bar(axes: Axes, hits: Hits, top: float, style: Style) -> str:
    width = max(axes.across(_percentage(hits)) - axes.left, 1.0)
    return tag("rect", x=axes.left, y=top, width=width, height=6.0, **style)


def _percentage(hits: Hits) -> float:
    return 100.0 * hits.found / hits.of if hits.of else 0.0


def _of(hits: Hits) -> str:
    return f"{hits.found:,} of {hits.of:,}"


def lead(
    finding: ReleasedFinding,
    reasons: tuple[str, ...],
    bound: ReleasedBound | None,
    *,
    has_holdout: bool,
    confidence: float,
    unit: str | None,
) -> Iterator[str]:
    """The sentences below the headline: odds, further reasons, and what remains unknown."""
    noun, one = ("rows", "a row was") if unit is None else ("units", f"the rows of a {unit} were")
    if bound is not None and bound.proved > 0.0:
        yield (
            "Some outputs of the procedure that produced this table change the odds that "
            f"{one} in the training table by a factor of at least "
            f"{rounded_down(math.exp(bound.proved))} ({percent(confidence)} confidence)."
        )
    yield from (f"{reason[:1].upper()}{reason[1:]}." for reason in reasons)
    if not has_holdout:
        yield (
            "A hold-out is a table of real rows of the same population that the generator never "
            "saw. Without one, this report can say which real rows were copied, and not why, nor "
            "whether other people can be recognised, nor how large epsilon is."
        )
    elif finding in (ReleasedFinding.LEAK, ReleasedFinding.VIOLATION):
        yield (
            f"{noun.capitalize()} that are not recognised here are not thereby safe: other attacks "
            "may find them."
        )
    elif finding in (ReleasedFinding.NOTHING_FOUND, ReleasedFinding.CONSISTENT):
        yield (
            f"{noun.capitalize()} that this audit did not recognise may be recognised by a "
            "stronger attack."
        )


def next_step(
    finding: ReleasedFinding, copied: Hits, *, has_holdout: bool, has_coins: bool
) -> Step:
    """What to do next."""
    split = "dpaudit split --data table.csv --to split"
    said: tuple[str, ...]
    if not has_holdout:
        said = (
            _of_this_table(copied.found),
            "If there are rows that the generator never saw, drawn at random from the same "
            "population as the training rows, give them with --holdout: copies are then compared "
            "with chance. Older rows will do only if the population has not changed since.",
            "If there are none, only the next table can be decided: split before its training and "
            "train on split/train.csv alone:",
        )
        return Step(said, split)
    if finding in (ReleasedFinding.LEAK, ReleasedFinding.VIOLATION):
        said = (
            "Do not release this table as anonymous. If it is already released, stop sharing it "
            "and assess it as a possible disclosure of personal data. The riskiest rows and the "
            "copies show where to look. After a change to the generator, train again and repeat "
            "this audit.",
        )
        return Step(said)
    if finding is ReleasedFinding.NOTHING_FOUND and not has_coins:
        said = (
            "For a lower bound on epsilon, split the next table by coins before training. To test "
            "a claim of differential privacy, audit the generator (dpaudit audit).",
        )
        return Step(said, split)
    if finding in (ReleasedFinding.NOTHING_FOUND, ReleasedFinding.CONSISTENT):
        said = ("To test a claim more sharply, audit the generator itself (dpaudit audit).",)
        return Step(said)
    said = ("Change what the headline names, then audit again with a fresh seed (--seed).",)
    return Step(said)


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


def threat_block() -> Block:
    """What the attacker of this audit sees and knows."""
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
