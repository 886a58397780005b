"""Sizes of an audit and what each can prove; those of a one-run audit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dpaudit.auditing.plan import MOST_PLANNED, AssumedAttack
from dpaudit.auditing.records.interference import Caught
from dpaudit.auditing.settings import DEFAULT_CANARIES, MIN_CANARIES, AuditSettings
from dpaudit.errors import SettingsError
from dpaudit.model.claim import PrivacyClaim, Quantity
from dpaudit.model.currencies import Claim, require_add_remove, require_epsilon
from dpaudit.model.tables import Table
from dpaudit.results.verdict import Power

ALTERNATIVE_CANARIES = (50, 100, 200, 500, 1000, 2000)


class Needed(NamedTuple):
    """The answer to --detect, or to --tpr with --fpr.

    Attributes:
        size: Shadow models or canaries; None if more than are planned.
        purpose: What they are enough for, in words.
    """

    size: int | None
    purpose: str


class Sizing(NamedTuple):
    """Sizes of one kind of audit, and what each can prove.

    Attributes:
        unit: What a size counts, as the key of a row.
        scored: Key of what is scored for it.
        asked: The size that was asked for.
        rows: What each size can prove.
        needed: How large it must be; None if that was not asked.
        of: What else the bounds depend on, in words.
        most: The largest size that `needed` looks at.
        interference: How much canaries disturb one another; None if that is not known.
        choices: What other numbers of records catch; empty if one record is attacked.
    """

    unit: str
    scored: str
    asked: int
    rows: list[dict[str, Any]]
    needed: Needed | None
    of: str
    most: int = MOST_PLANNED
    interference: float | None = None
    choices: Sequence[Caught] = ()


class PlanSubject(NamedTuple):
    """What is to be audited.

    Attributes:
        claim: The claim.
        table: The table; None if none was handed in.
        together: Whether the generator trains many models at once.
    """

    claim: Claim
    table: Table | None = None
    together: bool = False

    @property
    def table_rows(self) -> int | None:
        """Rows of the table; None if none was handed in."""
        return None if self.table is None else len(self.table.data)


def size_canaries(
    subject: PlanSubject,
    settings: AuditSettings,
    *,
    detect: float | None,
    assumed: AssumedAttack | None,
) -> Sizing:
    """What one training can prove with so many canaries.

    Args:
        subject: What is to be audited.
        settings: The settings of the audit.
        detect: A true epsilon that is to be proved, if one was given.
        assumed: The attack that was assumed, if one was.

    Raises:
        SettingsError: If there can be no such audit.
        ClaimError: If the claim is none that one training can be compared with.
    """
    from dpaudit.auditing.one_run import plan as one_run
    from dpaudit.auditing.one_run.spec import check_canaries

    claim = require_epsilon(subject.claim, method="`one_run`")
    confidence = settings.attack_confidence
    require_add_remove(claim.neighbours, method="`one_run`")
    asked = DEFAULT_CANARIES if settings.canaries is None else settings.canaries
    if subject.table_rows is not None:
        check_canaries(asked, rows=subject.table_rows)
    elif asked < MIN_CANARIES:
        raise SettingsError(f"`canaries` must be at least {MIN_CANARIES}, got {asked}")
    if assumed is not None and detect is None:
        raise SettingsError("--tpr and --fpr are for shadow models: with `one_run` give --detect")

    def row(canaries: int) -> dict[str, Any]:
        proven = proves(one_run.power(canaries, claim, confidence), claim)
        return {"canaries": canaries, "guesses": canaries, **proven}

    most = one_run.MOST_PLANNED if subject.table_rows is None else subject.table_rows // 2
    needed = None
    if detect is not None:
        size = one_run.needed_canaries(claim, detect, confidence)
        needed = Needed(size, f"a true epsilon of {detect:g}")
    return Sizing(
        unit="canaries",
        scored="guesses",
        most=one_run.MOST_PLANNED,
        interference=_interference(subject.table, settings, asked, claim),
        asked=asked,
        rows=rows_of(row, {asked, *(size for size in ALTERNATIVE_CANARIES if size <= most)}),
        needed=needed,
        of=f"one training, {settings.hypotheses.count} attacks",
    )


def _interference(
    table: Table | None, settings: AuditSettings, canaries: int, claim: PrivacyClaim
) -> float | None:
    """How much the canaries of a table disturb one another, before anything is trained."""
    from dpaudit.auditing.one_run.marginals import interference
    from dpaudit.auditing.one_run.spec import view_of
    from dpaudit.game.canaries import choose_canaries

    if table is None:
        return None
    chosen = choose_canaries(table.data, table.schema, canaries)
    rows = len(table.data) if settings.rows is None else settings.rows
    return interference(view_of(table, chosen, rows=rows, neighbours=claim.neighbours))


def proves(reached: Power, claim: Claim) -> dict[str, Any]:
    """What a size proves; the keys are of epsilon, or of the quantity beside the row."""
    suffix = "_epsilon" if claim.quantity is Quantity.EPSILON else ""
    return {
        f"max_provable{suffix}": reached.max_provable,
        f"detectable{suffix}": reached.detectable,
        "detectable_gaussian": reached.detectable_gaussian,
    }


def rows_of(row: Callable[[int], dict[str, Any]], sizes: set[int]) -> list[dict[str, Any]]:
    """A row for each size, the smallest first."""
    return [row(size) for size in sorted(sizes)]
