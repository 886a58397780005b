"""The effect of fixing each suspect on a leak: as a JSON document, in words and as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

import scipy
from statsmodels.stats.proportion import proportion_confint

from dpaudit.formatting import (
    Row,
    auc_text,
    duration,
    percent,
    rounded,
    rounded_down,
)
from dpaudit.model.claim import PrivacyClaim
from dpaudit.report.charts import ChartRow, draw_rows
from dpaudit.report.page import EXPLANATION, Page, Step, page_text
from dpaudit.results.document import Document
from dpaudit.results.phrases import changed_odds, claim_and_relation
from dpaudit.results.record import AuditBrief, AuditRecord, days
from dpaudit.results.sentences import HEADLINE_GAP
from dpaudit.results.structure import Block, Level, Picture, ReportTable
from dpaudit.results.verdict import Verdict
from dpaudit.versions import __version__

ROW_ORDER: Final = "row-order"
"""The suspect of every generator: the places of the records in the table."""
TOGETHER: Final = "all-together"
"""All suspects fixed at once."""


class Effect(StrEnum):
    """The effect of a fix on the leak."""

    REMOVES = "removes"
    """No violation is proved, and every attack of the audit is within the claim's limit.

    It is shown that no attack separates the worlds more than the claim allows.
    """
    UNPROVED = "unproved"
    """No violation is proved, but a remaining leak is not ruled out."""
    REMAINS = "remains"
    """A violation is still proved."""
    INVALID = "invalid"
    """The fixed generator's audit is not valid."""


class Interval(NamedTuple):
    """Two-sided confidence limits."""

    low: float
    high: float


class FixedAudit(NamedTuple):
    """How the audit of a fixed generator ended.

    Attributes:
        suspect: What was fixed.
        effect: The effect of the fix.
        audit: The outcome of the fixed generator's audit.
        auc: AUC of the attack that separates the worlds most; None if none was scored.
        limits: Confidence limits of the AUC.
        folder: Where that audit ran, under the run's folder.
    """

    suspect: str
    effect: Effect
    audit: AuditBrief
    auc: float | None
    limits: Interval | None
    folder: str


def judge_fix(suspect: str, result: AuditRecord, claim: PrivacyClaim, *, folder: str) -> FixedAudit:
    """The effect on the leak according to a fixed generator's audit.

    Args:
        suspect: What was fixed.
        result: The result of its audit.
        claim: The claim under audit.
        folder: Where it ran.

    Returns:
        The audit with its effect on the leak.
    """
    attacks, brief = result.attacks, AuditBrief.of(result)
    if not attacks:
        return FixedAudit(suspect, Effect.INVALID, brief, None, None, folder)
    most = max(attacks, key=lambda attack: abs(attack.auc - 0.5))
    # Of several attacks the one that separates most counts: each gets a share of the error.
    confidence = 1.0 - (1.0 - result.confidence) / len(attacks)
    # A failed trial has no score, and gives no information on the separation of the others.
    scored = min(len(scores) for scores in result.scores.values())
    limits = auc_limits(most.auc, scored, confidence=confidence)
    verdict = result.verdict
    if verdict is Verdict.VIOLATION:
        effect = Effect.REMAINS
    elif verdict is Verdict.INVALID:
        effect = Effect.INVALID
    elif verdict is Verdict.CONSISTENT and _within_claim(limits, claim):
        effect = Effect.REMOVES
    else:
        effect = Effect.UNPROVED
    return FixedAudit(suspect, effect, brief, most.auc, limits, folder)


def auc_limits(auc: float, scored: int, *, confidence: float) -> Interval:
    """Confidence limits of an area under the ROC curve, whatever the scores' distributions.

    Its variance is at most A (1 - A) / min(m, n) (van Dantzig 1951; Birnbaum and Klose 1957), that
    of a proportion: Wilson's limits for one.

    Args:
        auc: The area observed.
        scored: Trials scored in the world that has fewer.
        confidence: Two-sided.

    Returns:
        The limits.
    """
    low, high = proportion_confint(auc * scored, scored, alpha=1.0 - confidence, method="wilson")
    return Interval(float(low), float(high))


def allowed_auc(claim: PrivacyClaim) -> float:
    """The largest area under the ROC curve of any attack if the claim is true.

    The area of the region of error rates that (epsilon, delta)-DP allows (Kairouz, Oh and
    Viswanath 2015): the curve from (0, delta) by (f, 1 - f) to (1 - delta, 1).
    """
    corner = (1.0 - claim.delta) * float(scipy.special.expit(-claim.epsilon))  # FPR and FNR
    left = corner * (claim.delta + 1.0 - corner) / 2.0
    right = (1.0 - claim.delta - corner) * (2.0 - corner) / 2.0
    return left + right + claim.delta


def _within_claim(limits: Interval, claim: PrivacyClaim) -> bool:
    """Whether an attack is shown to separate the worlds no more than the claim allows.

    An area that is merely compatible with chance shows nothing: with few trials most areas are.
    """
    return max(limits.high, 1.0 - limits.low) <= allowed_auc(claim)


EFFECTS = {
    Effect.REMOVES: "removed",
    Effect.UNPROVED: "not shown",
    Effect.REMAINS: "remains",
    Effect.INVALID: "invalid",
}


class Before(NamedTuple):
    """The leak as it was found, with as many shadow models as fixed generators are given.

    Attributes:
        attack: The attack that proved most.
        proved: Its bound.
        auc: Its AUC.
    """

    attack: str
    proved: float
    auc: float


@dataclass(frozen=True, kw_only=True)
class Explanation(Document):
    """What fixing each suspect did to a leak.

    Attributes:
        generator: Name of the generator that leaks.
        claim: The claim that it violates.
        confidence: Confidence of each bound by itself.
        shadow_models: Largest number of models for each fixed generator.
        allowed_auc: The largest area under the ROC curve that the claim allows.
        before: The leak.
        conclusion: The cause, in one sentence.
        removed_by: The suspects whose fix removes it: single ones if there are any, else all.
        fixed: One audit for each suspect.
        reproduce: The command that repeats this explanation.
    """

    schema_version = 1

    generator: str
    claim: PrivacyClaim
    confidence: float
    shadow_models: int
    allowed_auc: float
    before: Before
    conclusion: str
    removed_by: tuple[str, ...]
    fixed: tuple[FixedAudit, ...]
    reproduce: str

    @property
    def allowed_limits(self) -> str:
        """The areas under the ROC curve that the claim allows, rounded inwards."""
        most = float(rounded_down(self.allowed_auc))
        return f"{rounded(1 - most)} to {rounded(most)}"

    @property
    def headline(self) -> str:
        """The conclusion in one line."""
        word = "EXPLAINED" if self.removed_by else "NOT EXPLAINED"
        return f"{word}{HEADLINE_GAP}{self.conclusion}"

    def __str__(self) -> str:
        """The conclusion, and the leak with each suspect fixed; 80 columns."""
        return page_text(explanation_page(self))


def removing(fixed: Sequence[FixedAudit]) -> list[FixedAudit]:
    """The fixes that remove the leak: single ones if there are any, else all together."""
    effective = [fix for fix in fixed if fix.effect is Effect.REMOVES]
    return [fix for fix in effective if fix.suspect != TOGETHER] or effective


def conclusion(before: Before, fixed: Sequence[FixedAudit]) -> str:
    """The cause of a leak, in one sentence."""
    removed = removing(fixed)
    after = " and ".join(rounded_down(fix.audit.proved) for fix in removed)
    bounds = f"bound {rounded_down(before.proved)} before, {after} after"
    names = {
        effect: " or ".join(fix.suspect for fix in fixed if fix.effect is effect)
        for effect in Effect
    }
    if [fix.suspect for fix in removed] == [TOGETHER]:
        if len(fixed) == 1:
            return f"fixing all suspects together removes the leak: {bounds}"
        return f"no fix alone removes the leak, all together do: {bounds}"
    if removed:
        suspects = " or ".join(fix.suspect for fix in removed)
        alone = ", each alone," if len(removed) > 1 else ""
        return f"fixing {suspects}{alone} removes the leak: {bounds}"
    if unproved := names[Effect.UNPROVED]:
        return (
            f"no fix is shown to remove the leak; with {unproved} fixed it is no longer proved, "
            "but not ruled out: try more shadow models"
        )
    if invalid := names[Effect.INVALID]:
        return f"no fix is shown to remove the leak; with {invalid} fixed the audit is invalid"
    return "no fix that was tried removes the leak: its cause is elsewhere"


def _undecided(fixed: Sequence[FixedAudit]) -> list[str]:
    """Why some audits could not decide, with their suspects."""
    return [
        f"{fix.suspect}: {fix.audit.reasons[0]}"
        for fix in fixed
        if fix.audit.verdict in (Verdict.INVALID, Verdict.INCONCLUSIVE) and fix.audit.reasons
    ]


def _row(name: str, effect: str, bound: float | None, auc: float | None) -> tuple[str, ...]:
    return (name, effect, rounded_down(bound), auc_text(auc))


def explanation_page(explanation: Explanation) -> Page:
    """Arranges the report of an explanation.

    Args:
        explanation: What fixing each suspect did.

    Returns:
        The page.
    """
    word, _, finding = explanation.headline.partition(HEADLINE_GAP)
    findings = [_suspects(explanation)]
    if reasons := _undecided(explanation.fixed):
        findings.append(Block(title="Not decided", level=Level.SUBSECTION, items=tuple(reasons)))
    claim = f"{claim_and_relation(explanation.claim)}; {explanation.generator}"
    models = f"at most {explanation.shadow_models} shadow models, as for each fix"
    before = f"{explanation.before.attack} proves the leak with {models}"
    return Page(
        verdict=Verdict.VIOLATION if explanation.removed_by else Verdict.INCONCLUSIVE,
        word=word,
        finding=finding,
        about=f"Explanation of the violation by {explanation.generator}",
        date=days(fix.audit for fix in explanation.fixed),
        lead=tuple(_lead(explanation)),
        result=Block(
            title="Result",
            picture=Picture.SUSPECTS,
            caption="A fix whose interval lies within the shaded band removes the leak.",
        ),
        next_step=Step((_next(explanation),)),
        findings=tuple(findings),
        clauses=EXPLANATION,
        reproduce=Step(command=explanation.reproduce),
        origin=f"dpaudit {__version__} explain",
        draw=lambda picture: _forest(explanation),
        facts=(
            Row("claim", claim),
            Row("before", before),
            Row("beyond", "an attack that this audit lacks might find more"),
        ),
        terminal=tuple(findings),
    )


def _lead(explanation: Explanation) -> Iterator[str]:
    before = explanation.before
    confidence = percent(explanation.confidence)
    yield (
        f"{explanation.generator} claims epsilon {rounded(explanation.claim.epsilon)}. With "
        f"{confidence} confidence its true epsilon is at least {rounded_down(before.proved)}"
        f"{changed_odds(explanation.claim, before.proved)}."
    )
    yield (
        f"The same audit ran again with one suspect fixed at a time, {explanation.shadow_models} "
        "shadow models each. Causes that are not among the suspects, and other attacks, were not "
        "tested."
    )


def _next(explanation: Explanation) -> str:
    removed = [name for name in explanation.removed_by if name != TOGETHER]
    if removed:
        return (
            f"Repair {removed[0]} in the generator, then audit it again with a fresh seed: other "
            "leaks may become visible once this one is gone."
        )
    if explanation.removed_by:
        return (
            "Repair all suspects in the generator, for none of them alone removes the leak, then "
            "audit it again with a fresh seed."
        )
    if any(fix.effect is Effect.UNPROVED for fix in explanation.fixed):
        return "Run the same command with more shadow models (--shadow-models)."
    return (
        "Look elsewhere: dpaudit replay names the lines of Python code that a loss comes from, and "
        "dpaudit probe changes one thing at a time."
    )


def _suspects(explanation: Explanation) -> Block:
    before = explanation.before
    rows = [(*_row("nothing", "proved", before.proved, before.auc), "-", "-")]
    for fix in explanation.fixed:
        limits = "-" if fix.limits is None else " to ".join(map(rounded, fix.limits))
        numbers = _row(fix.suspect, EFFECTS[fix.effect], fix.audit.proved, fix.auc)
        rows.append((*numbers, limits, duration(fix.audit.seconds)))
    return Block(
        title="Suspects",
        paragraphs=(
            f"Each bound holds at {percent(explanation.confidence)} by itself. A fix removes the "
            "leak if no violation is proved any more and the limits of the AUC lie within what the "
            f"claim allows, {explanation.allowed_limits}, for every attack of this audit. Not "
            "shown: none is proved, but those limits are wider. Of several attacks the AUC is the "
            "one farthest from 0.5, chosen on the same models, so it is optimistic; its limits "
            "allow for that.",
        ),
        table=ReportTable(
            ("Fixed", "Leak", "Bound", "AUC", "Its limits", "Time"),
            tuple(rows),
            frozenset({2, 3, 5}),
        ),
    )


def _forest(explanation: Explanation) -> str:
    """The AUC of each fixed generator with its limits, next to what the claim allows."""
    auc, most = explanation.before.auc, explanation.allowed_auc
    rows = [ChartRow("nothing fixed", f"AUC {auc_text(auc)}", bound=auc, violates=True)]
    for fix in explanation.fixed:
        name = f"{fix.suspect} fixed: {EFFECTS[fix.effect]}"
        violates = fix.effect is Effect.REMAINS
        row = ChartRow(name, f"AUC {auc_text(fix.auc)}", bound=fix.auc, violates=violates)
        rows.append(row._replace(reach=fix.limits))
    ends = [1.0 - most, most, auc, *(end for row in rows for end in row.reach or ())]
    return draw_rows(
        Picture.SUSPECTS,
        "AUC with each suspect fixed",
        rows,
        axis="AUC",
        ends=(min(ends), max(ends) + 0.02),
        legend={
            "violation": "AUC, violation proved",
            "bound": "AUC, no violation proved",
            "reach": "its limits",
            "allowed": "allowed by the claim",
        },
        allowed=(1.0 - most, most),
    )
