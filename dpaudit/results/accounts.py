"""The records of `dpaudit account`: what labels cost, what calls cost next to a stated epsilon."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

from dpaudit.account.accountants import Call, Figure, figures, lower_limit
from dpaudit.account.calibration import Prospect
from dpaudit.errors import ClaimError
from dpaudit.formatting import (
    Row,
    aligned,
    counted,
    headed,
    rounded,
    rounded_down,
    rounded_up,
    row_lines,
)
from dpaudit.model.choices import Method
from dpaudit.model.claim import Neighbours
from dpaudit.results.document import Document, NonNegative, Positive, Probability
from dpaudit.results.phrases import relation
from dpaudit.results.verdict import Verdict

_LOOSE: Final = 1.05
"""A stated epsilon this much above the largest account is called loose."""

_LEAST: Final = 1e-3
"""Smaller accounts are mostly rounding."""


@dataclass(frozen=True, kw_only=True)
class LabelCosts(Document):
    """Plans of labels, as `dpaudit account --json` prints them.

    Attributes:
        teachers: Number of teachers that vote.
        budget: Epsilon of all labels together; null if their cost was asked for.
        delta: The delta at which it holds.
        neighbours: The neighbouring relation for which it holds.
        method: The method that was asked for.
        plans: The plans: noise, number of labels, cost and accuracy.
        warnings: Warnings about them, one sentence each.
    """

    schema_version: ClassVar[int] = 1
    called: ClassVar[str] = "a table of label costs"
    teachers: Positive
    budget: NonNegative | None
    delta: Probability
    neighbours: Neighbours
    method: Method
    plans: tuple[Prospect, ...]
    warnings: tuple[str, ...]

    @property
    def headline(self) -> str:
        """What a budget buys, or what labels cost."""
        rows = self.plans
        if self.budget is None:
            least = min(rows, key=lambda row: row.plan.epsilon)
            cost = f"epsilon {rounded_up(least.plan.epsilon)} with {least.plan.mechanism} noise"
            cost += ", the least" if len(rows) > 1 else ""
            return f"ACCOUNT  {counted(least.plan.labels, 'label')} cost {cost}"
        useful = [row.plan.labels for row in rows if not row.near_coin_flips]
        bought = counted(max(useful), "label") if useful else "no labels"
        return f"ACCOUNT  epsilon {self.budget:g} pays for {bought} better than coin flips"

    def __str__(self) -> str:
        """The finding, a row for each plan, and warnings; 80 columns."""
        shares = [f"{100 * each.consensus:.4g} %" for each in self.plans[0].qualities]
        table = [("mechanism", "labels", "noise", "epsilon", "proof", *shares, "")]
        for row in self.plans:
            plan = row.plan
            # Noise and cost are rounded up: noise copied from here stays within the budget.
            cost = rounded_up(plan.scale, digits=4), rounded_up(plan.epsilon)
            right = (f"{_floor(each.right):.3f}" for each in row.qualities)
            mark = "coin flip" if row.near_coin_flips else ""
            table.append((plan.mechanism, str(plan.labels), *cost, row.proof, *right, mark))
        budget = "" if self.budget is None else f"epsilon {self.budget:g}, "
        correct = ", ".join(shares)
        facts = [
            Row("budget", f"{budget}delta {self.delta:g}, {relation(self.neighbours)}"),
            Row("teachers", str(self.teachers)),
            Row("noise", "in votes: standard deviation (gaussian), Laplace scale (others)"),
            Row("right", f"{correct}: how often a label is right if so many teachers agree"),
        ]
        numeric = {1, 2, 3, *range(5, 5 + len(shares))}
        lines = [*headed(self.headline, facts), "", *aligned(table, numeric=numeric)]
        for warning in self.warnings:
            lines += ["", *row_lines([Row("warning", warning)])]
        return "\n".join(lines)


@dataclass(frozen=True, kw_only=True)
class AccountCheck(Document):
    """What recorded calls cost, next to the epsilon that was stated for them.

    Attributes:
        verdict: "violation" if the lower limit is above the stated epsilon, "consistent" if an
            accountant covers the calls with it, else "inconclusive".
        source: The file of the calls.
        stated: The stated epsilon.
        delta: Its delta.
        calls: Number of mechanism calls.
        lower: What the calls cost at least; null if no epsilon holds.
        lower_from: What proves that.
        accounts: An epsilon from each accountant that covers the calls.
        excess: The stated epsilon over the smallest account, or over 0.001 if that is smaller;
            null if there is no account.
        loose: Whether the stated epsilon is above every account.
        covers: What the accounts cover.
    """

    schema_version: ClassVar[int] = 1
    called: ClassVar[str] = "a check of an account"
    verdict: Verdict
    source: str
    stated: NonNegative
    delta: NonNegative
    calls: Positive
    lower: NonNegative | None
    lower_from: str
    accounts: tuple[Figure, ...]
    excess: NonNegative | None
    loose: bool
    covers: str

    @property
    def least(self) -> float | None:
        """The smallest epsilon that covers the calls; None if no accountant has one."""
        return min((a.epsilon for a in self.accounts if a.epsilon is not None), default=None)

    @property
    def headline(self) -> str:
        """The finding in one sentence."""
        stated = f"stated epsilon {rounded(self.stated)}"
        least = "no accountant covers them"
        if self.least is not None:
            least = f"they cost at most {rounded_up(self.least)}"
        if self.verdict is Verdict.VIOLATION:
            return f"VIOLATION  {stated}, the calls cost {self.lower_text}"
        if self.verdict is Verdict.INCONCLUSIVE:
            return f"INCONCLUSIVE  {stated}, the calls cost {self.lower_text}; {least}"
        if self.loose and self.excess is not None:
            excess = rounded_down(self.excess)
            return f"LOOSE  {stated} is at least {excess} times what the calls cost"
        return f"COVERED  {stated} covers the calls; {least}"

    @property
    def lower_text(self) -> str:
        """The lower limit, in words."""
        return "no limit" if self.lower is None else f"at least {rounded_down(self.lower)}"

    def __str__(self) -> str:
        """The finding, the lower limit and every account; 80 columns."""
        facts = [
            Row("stated", f"({rounded(self.stated)}, {rounded(self.delta)})-DP"),
            Row("calls", f"{counted(self.calls, 'mechanism call')} in {self.source}"),
            Row("bound", f"{self.lower_text}, {self.lower_from}"),
            Row("covers", self.covers),
        ]
        table = [("accountant", "epsilon", "")]
        for figure in self.accounts:
            epsilon = "" if figure.epsilon is None else rounded_up(figure.epsilon, digits=4)
            table.append((figure.accountant, epsilon, figure.note or ""))
        return "\n".join([*headed(self.headline, facts), "", *aligned(table, numeric={1})])


def _floor(probability: float) -> float:
    """Rounds down to three decimals, so that "< 0.6" never appears as 0.600."""
    return math.floor(1000 * probability + 1e-6) / 1000


class Replayed(NamedTuple):
    """What a replay found; its calls alone do not say what the release shows.

    Attributes:
        proved: What the release shows at the delta of the check; infinite if no epsilon holds.
        spent: What the calls spend together at that delta; None if it is not known or has no limit.
        unknown: Why the calls do not determine their total; None if they do.
    """

    proved: float
    spent: float | None
    unknown: str | None


def check_account(
    calls: Sequence[Call],
    *,
    epsilon: float,
    delta: float,
    source: str,
    replay: Replayed | None = None,
) -> AccountCheck:
    """Compares a stated epsilon with what calls cost.

    Args:
        calls: The calls.
        epsilon: The stated epsilon.
        delta: Its delta.
        source: Where the calls come from, for the record.
        replay: The findings of the replay that recorded the calls; None if there was no replay.

    Returns:
        The verdict and every number.

    Raises:
        ClaimError: If epsilon or delta have no meaning.
    """
    if not 0 <= epsilon < math.inf:
        raise ClaimError(f"`epsilon` is {epsilon}: give the stated one, at least 0")
    if not 0 <= delta < 1:
        raise ClaimError(f"`delta` is {delta}: give that of the stated epsilon, from 0 to below 1")
    accounts = figures(calls, delta=delta) if replay is None else _accounts(calls, delta, replay)
    known = [figure.epsilon for figure in accounts if figure.epsilon is not None]
    if replay is None:
        lower = lower_limit(calls, delta=delta, near=max(min([*known, epsilon]), 0.01))
        lower_from = "from losses rounded down"
        covers = "two tables that move every answer by its sensitivity"
    else:
        lower = replay.proved
        lower_from = "shown by the release" if lower else "as the replay shows nothing here"
        covers = "the two tables of the replay, at the distances that it saw"
    verdict = Verdict.INCONCLUSIVE
    if lower > epsilon * (1 + 1e-9):
        verdict = Verdict.VIOLATION
    elif known and min(known) <= epsilon * (1 + 1e-9):
        verdict = Verdict.CONSISTENT
    return AccountCheck(
        verdict=verdict,
        source=source,
        stated=float(epsilon),
        delta=float(delta),
        calls=max(1, sum(call.steps for call in calls)),
        lower=lower if math.isfinite(lower) else None,
        lower_from=lower_from,
        accounts=accounts,
        excess=epsilon / max(min(known), _LEAST) if known else None,
        loose=bool(known) and epsilon > _LOOSE * max(known),
        covers=covers,
    )


def _accounts(calls: Sequence[Call], delta: float, replay: Replayed) -> tuple[Figure, ...]:
    accounts: tuple[Figure, ...] = (Figure("all", None, replay.unknown),)
    if replay.unknown is None:
        accounts = figures(calls, delta=delta) if calls else (Figure("exact (dpaudit)", 0.0),)
    own = () if replay.spent is None else (Figure("spent in the replay", replay.spent),)
    return (*accounts, *own)
