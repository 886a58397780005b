"""Turns the measurements into a finding and its sentences."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final, NamedTuple

from dpaudit.formatting import listed, percent, rounded_down, rounded_up
from dpaudit.model.claim import PrivacyClaim
from dpaudit.released_data.exchangeability import Exchangeability
from dpaudit.released_data.linkage import Linkage
from dpaudit.released_data.membership import CONTROL_LEVEL, RateAtThreshold, p_text
from dpaudit.released_data.resemblance import Resemblance
from dpaudit.results.decide import decide
from dpaudit.results.document import Limits
from dpaudit.results.sentences import HEADLINE_GAP, Conclusion, headline
from dpaudit.results.verdict import Power, SampleUnit, Verdict

LARGEST_SHARE: Final = 0.05
"""A negative result counts only if copies of this share of the rows would be detected."""
LINKAGE_SHARE: Final = 0.2
"""Share of the error probability for linkage; the membership test has the rest."""
REPEATS_REMOVED: Final = (
    "repeated rows were removed from train or hold-out, or rows come in groups: no random split "
    "deals them as they are"
)
WEAK: Final = 0.005
"""A leak that only a p-value above this one shows is called weak evidence."""
_MANY: Final = 0.1
"""Share of the real rows that were not compared from which on the first screen says so."""
HAND_IN: Final = "give both tables as they were drawn, with every repeated row"
HOLDOUT: Final = "give a hold-out drawn as train was"
DIFFER: Final = (
    "train and hold-out differ without the synthetic table too: they are not of one population, or "
    "their rows come in groups"
)
_NOT_COMPARED: Final = (
    "train and hold-out rows were not compared: they occur more than once, or would by chance, and "
    "so reveal nothing about membership"
)
_EQUAL: Final = "synthetic rows equal a training row"
REVEALED: Final = "the synthetic table depends on single training rows"
"""The headline of a leak where no row was recognised as a whole."""


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
        """The verdict that decides exit codes and colours."""
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
        coins: Rows (or units) that a coin assigned to a table; None without a coin file.
        compared: Train and hold-out rows that are compared with each other; the place of the others
            may depend on the removal of repeated rows.
    """

    train: int
    synthetic: int
    holdout: int | None
    coins: int | None
    compared: int

    @property
    def real(self) -> int:
        """Rows of train and hold-out."""
        return self.train + (self.holdout or 0)

    @property
    def left_out(self) -> int:
        """Rows of train and hold-out that are not compared."""
        return self.real - self.compared


@dataclass(frozen=True, kw_only=True)
class MembershipOutcome:
    """How well an attacker distinguishes train rows from hold-out rows by the synthetic table.

    Attributes:
        attack: The attack that was chosen on the fitting part.
        fitted: Rows (or units) of the fitting part.
        scored: Rows (or units) that were scored.
        p_value: Probability of such scores if the table is independent of membership.
        auc: Probability that a train row scores above a hold-out row; an estimate.
        rates: Rates at fixed thresholds, with limits that hold together.
        phantom_p_value: The same test between two halves of the hold-out; None if they are too
            small.
        detectable_copies: The smallest share of copied train rows that is detected with 80 % power;
            None if even half of the rows are not.
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
    """The lower bound on epsilon, for tables that differ by one added or removed row (or unit).

    Attributes:
        proved: The bound at the result's confidence.
        delta: δ for which it holds.
        max_provable: The bound of a perfect attack.
        detectable: The minimum detectable ε (80 % power) of randomised response, compared with the
            claim, or with 0 without one; None if no ε is detectable.
    """

    proved: float
    delta: float
    max_provable: float
    detectable: float | None


class Concluded(NamedTuple):
    """A finding and its reasons, the main one first."""

    finding: ReleasedFinding
    reasons: tuple[str, ...]


def split_warnings(rows: RowCounts, exchangeable: Exchangeability | None) -> Iterator[str]:
    """Warnings about train and hold-out, one sentence each."""
    if exchangeable is None:
        return
    if rows.left_out:
        yield f"{rows.left_out:,} of {rows.real:,} {_NOT_COMPARED}"
    if exchangeable.repeats_removed:
        cause = _cause(exchangeable, HAND_IN)
        yield f"{REPEATS_REMOVED} (p {p_text(exchangeable.repeats)}); {cause}"
    if exchangeable.differ:
        cause = _cause(exchangeable, HOLDOUT)
        yield f"{DIFFER} (p {p_text(exchangeable.least)}), so no leak can be concluded; {cause}"


def _cause(exchangeable: Exchangeability, otherwise: str) -> str:
    """Names the columns that separate train from hold-out, or gives general advice."""
    if not exchangeable.columns:
        return otherwise
    columns = listed([repr(name) for name in exchangeable.columns])
    drop = " ".join(f"--drop {shlex.quote(name)}" for name in exchangeable.columns)
    return (
        f"the cause is {columns}, which alone tells train from hold-out: if it numbers rows or "
        f"people, leave it out ({drop}), else {otherwise}"
    )


def is_weak(membership: MembershipOutcome | None, linkage: Linkage) -> bool:
    """Whether a leak rests on a p-value alone, and not a small one."""
    return membership is not None and membership.p_value > WEAK and not linkage.proved


def membership_level(confidence: float) -> float:
    """Error probability of the membership test."""
    return (1.0 - LINKAGE_SHARE) * (1.0 - confidence)


def linkage_confidence(confidence: float) -> float:
    """Confidence of the findings on copies, rare values and guessed attributes."""
    return 1.0 - LINKAGE_SHARE * (1.0 - confidence)


def conclude(
    rows: RowCounts,
    membership: MembershipOutcome | None,
    bound: ReleasedBound | None,
    linkage: Linkage,
    exchangeable: Exchangeability | None,
    resemblance: Resemblance | None = None,
    *,
    claim: PrivacyClaim | None,
    confidence: float,
) -> Concluded:
    """Decides on a claim if there is one, else whether the table reveals membership in train.

    A red flag comes first where nothing is decided.

    Args:
        rows: Rows of the tables.
        membership: How well members are recognised; None if that was not tested.
        bound: The bound on epsilon, if there is one.
        linkage: Findings on copies, rare values and guessed attributes, at `linkage_confidence`.
        exchangeable: Whether a random split made the tables; None if coins decided.
        resemblance: Whether synthetic rows look like changed training rows; None if a hold-out
            decides.
        claim: The claim, if there is one.
        confidence: Confidence of the bound, and of finding no leak where there is none.

    Returns:
        The finding.
    """
    finding, reasons = _decide(
        rows, membership, bound, linkage, exchangeable, claim=claim, confidence=confidence
    )
    undecided = finding in (ReleasedFinding.INCONCLUSIVE, ReleasedFinding.NOTHING_FOUND)
    if undecided and resemblance is not None and resemblance.flagged:
        finding, reasons = ReleasedFinding.INCONCLUSIVE, (_red_flag(resemblance), *reasons)
    if rows.holdout is not None and rows.coins is None and rows.left_out > _MANY * rows.real:
        reasons = (*reasons, f"{rows.left_out:,} of {rows.real:,} {_NOT_COMPARED}")
    return Concluded(finding, reasons)


def _red_flag(resemblance: Resemblance) -> str:
    synthetic, train = (percent(round(share, 2)) for share in resemblance)
    return (
        f"red flag: {synthetic} of the synthetic rows lie unusually close to one training row, but "
        f"only {train} of the other training rows do: the table looks like training rows with "
        "small changes (a heuristic, no proof)"
    )


def _decide(
    rows: RowCounts,
    membership: MembershipOutcome | None,
    bound: ReleasedBound | None,
    linkage: Linkage,
    exchangeable: Exchangeability | None,
    *,
    claim: PrivacyClaim | None,
    confidence: float,
) -> Concluded:
    """The finding without a red flag."""
    if membership is None:
        why = (
            f"{linkage.copies.synthetic} {_EQUAL}; without a hold-out (real rows that the "
            "generator never saw) nothing shows how many would by chance"
            if rows.holdout is None
            else f"{_copied(linkage)}only {rows.compared:,} rows of train and hold-out can be "
            "compared, too few to test membership: give more, or more columns if rows repeat"
        )
        return Concluded(ReleasedFinding.INCONCLUSIVE, (why,))
    if exchangeable is not None and exchangeable.repeats_removed:
        why = (
            f"{_copied(linkage)}{REPEATS_REMOVED} (p {p_text(exchangeable.repeats)}), so nothing "
            f"can be concluded; {_cause(exchangeable, HAND_IN)}"
        )
        return Concluded(ReleasedFinding.INCONCLUSIVE, (why,))
    ghost = membership.phantom_p_value
    if ghost is not None and ghost <= CONTROL_LEVEL:
        why = (
            f"the same test distinguishes two halves of the hold-out (p = {rounded_up(ghost)}), "
            "where nothing is to find: rows of the hold-out are not alike, or one was used"
        )
        return Concluded(ReleasedFinding.INVALID, (why,))
    if claim is not None and bound is not None:
        return _decide_claim(claim, bound, confidence=confidence)
    return _decide_leak(membership, bound, linkage, exchangeable, confidence=confidence)


def _copied(linkage: Linkage) -> str:
    """The exact copies, if there are any, for the beginning of a headline."""
    return f"{copied} {_EQUAL}; " if (copied := linkage.copies.synthetic).found else ""


def _decide_claim(claim: PrivacyClaim, bound: ReleasedBound, *, confidence: float) -> Concluded:
    power = Power(bound.max_provable, bound.detectable)
    verdict, reasons = decide(
        bound.proved, claim, power, (), confidence=confidence, unit=SampleUnit.COINS
    )
    decided = Conclusion(verdict, claim, bound.proved, confidence, power)
    _, _, sentence = headline(decided).partition(HEADLINE_GAP)
    why = reasons if verdict is Verdict.INCONCLUSIVE else ()  # else the headline says it
    return Concluded(ReleasedFinding(verdict.value), (sentence, *why))


def _decide_leak(
    membership: MembershipOutcome,
    bound: ReleasedBound | None,
    linkage: Linkage,
    exchangeable: Exchangeability | None,
    *,
    confidence: float,
) -> Concluded:
    noun = linkage.copies.noun
    attacked = (
        f"an attacker who sees this table distinguishes training {noun} from hold-out {noun} "
        f"better than by chance (p {p_text(membership.p_value)} on {membership.scored:,} {noun})"
    )
    share = membership.detectable_copies
    recognised = membership.p_value <= membership_level(confidence)
    linked = linkage.proved
    leaks = (*linked, attacked) if recognised else linked
    if leaks:
        if exchangeable is not None and exchangeable.differ:
            why = (
                f"{_copied(linkage)}{DIFFER} (p {p_text(exchangeable.least)}), which explains as "
                "well as a leak does that the synthetic table is closer to train; "
                f"{_cause(exchangeable, HOLDOUT)}"
            )
            return Concluded(ReleasedFinding.INCONCLUSIVE, (why,))
        what = f"{noun} of the training table can be recognised" if recognised else REVEALED
        what = f"weak evidence that {what}: " if is_weak(membership, linkage) else f"{what}: "
        if linkage.copies.proved:  # which says it in plain words
            what = ""
        proof = (
            (
                f"epsilon is at least {rounded_down(bound.proved)} at {percent(confidence)} "
                f"confidence{f' and delta {bound.delta:g}' if bound.delta else ''}",
            )
            if bound is not None and bound.proved > 0.0
            else ()
        )
        return Concluded(ReleasedFinding.LEAK, (f"{what}{leaks[0]}", *proof, *leaks[1:]))
    if share is None or share > LARGEST_SHARE:
        least = "half" if share is None else percent(share)
        why = (
            f"nothing was found, but copies of {least} of the training {noun} might have been "
            f"missed: give more {noun}"
        )
        return Concluded(ReleasedFinding.INCONCLUSIVE, (why,))
    why = (
        f"no training {noun[:-1]} was recognised: no attack distinguishes training {noun} from "
        f"hold-out {noun} (p {p_text(membership.p_value)}); copies of {percent(share)} of the "
        f"training {noun} would have been detected with 80 % power; not evidence of privacy"
    )
    return Concluded(ReleasedFinding.NOTHING_FOUND, (why,))


def why_no_bound(rows: RowCounts, membership: MembershipOutcome | None) -> str:
    """Why there is no lower bound on epsilon, as a sentence without its full stop."""
    if rows.holdout is None:
        return "no bound on epsilon: it needs a hold-out, split off by coins before training"
    if rows.coins is None:
        return (
            "no bound on epsilon: it needs a coin file, which shows that a fair coin put each row "
            "into train or hold-out; split the next table with `dpaudit split` before training"
        )
    assert membership is None  # else there is one
    return "no bound on epsilon: too few rows had a coin"
