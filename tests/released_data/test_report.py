"""The parts of the page on a released table, from findings made by hand."""

from __future__ import annotations

import numpy as np

from dpaudit.released_data.conclusion import MembershipOutcome
from dpaudit.released_data.copies import (
    ClosestDistances,
    Copied,
    Excess,
    Hits,
    Outliers,
    find_copies,
)
from dpaudit.released_data.inference import Guesser, Inference
from dpaudit.released_data.linkage import DistancePanel, DistanceQuantiles, Linkage
from dpaudit.released_data.membership import RateAtThreshold, RiskyRow
from dpaudit.released_data.report import linkage_blocks, membership_block, riskiest_block
from dpaudit.results.structure import Block

SOME = DistanceQuantiles(0.1, 0.2, 0.5, 0.0)


def recognised(*flagged: int) -> Block:
    rates = tuple(
        RateAtThreshold(nominal, 2 * one, 50, one, 50, 0.01, 0.1)
        for nominal, one in zip((0.001, 0.01, 0.1), flagged, strict=True)
    )
    found = MembershipOutcome(
        attack="matching",
        fitted=100,
        scored=100,
        p_value=0.2,
        auc=0.5,
        rates=rates,
        phantom_p_value=None,
        detectable_copies=None,
    )
    return membership_block(found, confidence=0.95, noun="rows")


def thresholds(block: Block) -> list[str]:
    assert block.table is not None
    return [row[0] for row in block.table.rows]


def test_thresholds_that_too_few_rows_separate_share_a_line() -> None:
    why = "too few, or their scores too alike, to separate them"
    apart = recognised(0, 1, 5)
    assert thresholds(apart) == ["for FPR 0.1 %", "for FPR 1 %", "for FPR 10 %"]
    assert why not in " ".join(apart.paragraphs)
    alike = recognised(1, 1, 5)
    assert thresholds(alike) == ["for FPR 0.1 %, 1 %", "for FPR 10 %"]
    assert why in " ".join(alike.paragraphs)
    assert thresholds(recognised(1, 1, 1)) == ["for FPR 0.1 %, 1 %, 10 %"]


def test_near_copies_include_exact_ones_and_their_row_says_so() -> None:
    rng = np.random.default_rng(3)
    exact = rng.random(400) < 0.3
    own, others = np.where(exact, 0.0, rng.random(400)), rng.random(400)
    copies = find_copies(
        Copied(exact, np.zeros(400, dtype=np.bool_), ClosestDistances(own, others)),
        synthetic_copied=exact,
        riskiest=(),
        rng=rng,
        confidence=0.99,
    )
    assert all(one.records.train.found >= int(exact.sum()) for one in copies.near)
    assert copies.near
    guessed = Inference("age", Guesser.CLOSEST, 0.1, Excess(Hits(5, 50), Hits(4, 50), 0.5, 0))
    outliers = Outliers(None, (), False)
    panel = DistancePanel(SOME, SOME, 0.5, True)
    blocks = linkage_blocks(Linkage(400, copies, outliers, (guessed,), panel, None, (), 0.99))
    found = {block.title: block for block in blocks}
    first, *near = thresholds(found["Copies"])
    assert first == "exact"
    assert near
    assert all(one.startswith("exact or within 0.") for one in near)
    assert (
        "A wider distance also finds copies that chance explains" in found["Copies"].paragraphs[0]
    )
    guesses = found["Guessing a value from all others"].table
    assert guesses is not None
    assert guesses.header[:2] == ("column", "method")
    assert guesses.rows[0][1] == "nearest row"


def test_the_two_lists_of_rows_say_how_they_differ() -> None:
    block = riskiest_block((RiskyRow(7, 0.001), RiskyRow(3, 0.002)), compared=100, noun="rows")
    first, second = block.paragraphs
    assert first.endswith("the clearest first: 7, 3.")
    assert "copied or not" in first
    assert "leaves out the 20 of 100 rows" in second
