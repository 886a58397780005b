"""Every sentence about a verdict: terminal, HTML, Markdown and pytest read them here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from dpaudit.formatting import (
    TERMINAL_WIDTH,
    clipped,
    percent,
    printable,
    rounded,
    rounded_down,
    rounded_up,
)
from dpaudit.model.claim import PrivacyClaim
from dpaudit.results.record import AuditRecord
from dpaudit.results.verdict import SampleUnit, Verdict

NOT_EVIDENCE: Final = "not evidence of privacy"
"""Stands alone in a headline, and after "it is" and "This is" in sentences."""
SCHEMA_INFERRED: Final = (
    "bounds and categories were inferred from the table handed in: what the generator reveals "
    "through them is outside this audit; give a public schema"
)
PROVES_NOTHING: Final = (
    "The audit is invalid: these numbers prove nothing; they help to find out why."
)
_MOST_DIGITS = 15


class Conclusion(Protocol):
    """What a headline is about: an audit's record, or another result with a verdict."""

    @property
    def verdict(self) -> Verdict:
        """The verdict."""
        ...

    @property
    def claim(self) -> PrivacyClaim:
        """The claim under audit."""
        ...

    @property
    def proved(self) -> float | None:
        """The bound that decides; None if nothing was scored."""
        ...

    @property
    def confidence(self) -> float:
        """Its one-sided confidence."""
        ...

    @property
    def failed_parts(self) -> Sequence[str]:
        """What made the audit invalid."""
        ...


class ClaimAndProof(NamedTuple):
    """Claimed and proved epsilon, with as many digits as it takes to tell them apart."""

    claimed: str
    proved: str


def headline(result: Conclusion) -> str:
    """The verdict in one line of at most 80 characters that begins with it in capitals."""
    claimed, proved = claim_and_proof(result)
    text = {
        Verdict.VIOLATION: f"claimed epsilon {claimed}, proved at least {proved} at "
        f"{percent(result.confidence)} confidence",
        Verdict.CONSISTENT: f"no violation of epsilon {claimed} found; {NOT_EVIDENCE}",
        Verdict.INCONCLUSIVE: f"epsilon {claimed} neither contradicted nor put to a fair test",
        Verdict.INVALID: f"{failed_part(result)}; nothing is known about epsilon {claimed}",
    }[result.verdict]
    return clipped(f"{result.verdict.upper()}: {text}", TERMINAL_WIDTH)


def lead(result: AuditRecord) -> tuple[str, ...]:
    """Plain sentences: what was claimed, what was proved, and what could have been."""
    claimed, proved = claim_and_proof(result)
    confidence = percent(result.confidence)
    promise = (
        "The generator is claimed to satisfy differential privacy with "
        f"epsilon {claimed} and delta {rounded(result.claim.delta)}: its output should hardly show "
        "whether any one record was in the table"
    )
    if result.verdict is Verdict.VIOLATION:
        return (
            f"{promise}. This audit proved, at {confidence} confidence, that it shows as much as "
            f"epsilon {proved} or more: the claim does not hold.",
            power(result),
        )
    if result.verdict is Verdict.CONSISTENT:
        return (
            f"{promise}. The most that this audit proved, at {confidence} confidence, is epsilon "
            f"{proved}, which the claim allows.",
            f"No violation found. This is {NOT_EVIDENCE}.",
            power(result),
        )
    if result.verdict is Verdict.INCONCLUSIVE:
        return (
            f"{promise}. This audit could not put that to a fair test: it neither contradicts the "
            "claim nor supports it.",
            power(result),
        )
    return (f"{promise}. This audit says nothing about it: {failed_part(result)}.",)


def power(result: AuditRecord) -> str:
    """What the audit could have caught, in one sentence."""
    if result.max_provable_epsilon is None:
        return "No trial was scored, so no leak could have been caught."
    limit = f"no audit of this size proves more than {rounded_down(result.max_provable_epsilon)}"
    least = result.detectable_epsilon
    if least is None:
        return f"No leak, however large, would have been caught with 80 % power; {limit}."
    gaussian = result.detectable_gaussian
    beside = "" if gaussian is None else f", a Gaussian one from {rounded_up(gaussian)} on"
    return (
        f"A leak of epsilon {rounded_up(least)} or more that shows as clearly as in randomised "
        f"response would have been caught with 80 % power{beside}; {limit}."
    )


def violation_reason(claim: PrivacyClaim, bound: float, *, confidence: float) -> str:
    """Why the verdict is violation."""
    return (
        f"violates ({claim.epsilon:g}, {claim.delta:g})-DP: at {percent(confidence)} "
        f"confidence the true epsilon is at least {rounded_down(bound)}"
    )


def too_small_reason(max_provable_epsilon: float, unit: SampleUnit) -> str:
    """Why the verdict is inconclusive: no attack could prove more than the claim."""
    return (
        f"cannot decide: even a perfect attack on this many {unit} proves only epsilon "
        f"{rounded_down(max_provable_epsilon)}; run more {unit.remedy}"
    )


def poor_power_reason(detectable_epsilon: float | None, unit: SampleUnit) -> str:
    """Why the verdict is inconclusive: only a leak far beyond the claim would be caught."""
    reached = "no leak" if detectable_epsilon is None else f"only a {_leak_of(detectable_epsilon)}"
    return f"cannot decide: {reached} would be caught with 80 % power; run more {unit.remedy}"


def consistent_reason(detectable_epsilon: float, detectable_gaussian: float | None) -> str:
    """Why the verdict is consistent, and of which leaks that says something."""
    beside = (
        ""
        if detectable_gaussian is None
        else f", a Gaussian one from epsilon {rounded_up(detectable_gaussian)} on"
    )
    return (
        f"no violation found; this audit would have caught a {_leak_of(detectable_epsilon)} with "
        f"80 % power if it shows as clearly as in randomised response{beside}; it is {NOT_EVIDENCE}"
    )


def claim_and_proof(result: Conclusion) -> ClaimAndProof:
    """Claim and proved bound, so written that a bound above the claim also reads so."""
    claim, bound = result.claim.epsilon, result.proved
    pair = ClaimAndProof(rounded(claim), rounded_down(bound))
    if bound is None:
        return pair
    digits = 4
    while bound > claim and float(pair.proved) <= float(pair.claimed) and digits <= _MOST_DIGITS:
        pair = ClaimAndProof(rounded(claim, digits=digits), rounded_down(bound, digits=digits))
        digits += 1
    return pair


def failed_part(result: Conclusion) -> str:
    """What made an audit invalid: "the null control and 1 more failed"."""
    if not result.failed_parts:
        return "the audit is not valid"
    first, *others = result.failed_parts
    more = f" and {len(others)} more" if others else ""
    return printable(f"{first}{more} failed")


def target(result: AuditRecord) -> str:
    """The target and how it was chosen: "row:3 (row 3)"."""
    choice, row, selection = result.target.choice, result.target.row, result.target.selection
    if result.records is not None:
        return f"{len(result.records.each)} records, each by a fair coin in every model"
    place = "not a row of the table" if row is None else f"row {row}"
    if selection is None:
        compared = result.target.compared
        how = "" if compared is None else f", of {compared} that are far from samples of the table"
        return f"{choice} ({place}{how})"
    return (
        f"{choice}: {place}, best of {selection.candidates} candidates in {selection.trainings} "
        "trainings"
    )


def _leak_of(epsilon: float) -> str:
    return f"leak of epsilon {rounded_up(epsilon)}"
