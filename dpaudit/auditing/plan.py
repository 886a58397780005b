"""Sample sizes and power of audits, common to all games."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from dpaudit.auditing.settings import MOST_MODELS, AuditSettings, ShadowModelSettings
from dpaudit.bounds import guarantee_of
from dpaudit.formatting import Row
from dpaudit.model.claim import Quantity
from dpaudit.model.currencies import Claim
from dpaudit.results.verdict import Power

if TYPE_CHECKING:
    from dpaudit.model.tables import Table

AnyShadowModels = TypeVar("AnyShadowModels", bound=ShadowModelSettings)

MOST_PLANNED: Final = MOST_MODELS
"""Largest number of shadow models that a plan considers."""
SHADOW_MODELS = (50, 100, 200, 400, 1000, 2000)
"""Numbers of shadow models that every plan shows."""


class AssumedAttack(NamedTuple):
    """The attack that a plan assumes: its error rates on the scored trials."""

    fpr: float
    tpr: float

    @classmethod
    def of_leak(cls, level: float, claim: Claim) -> AssumedAttack:
        """The balanced attack on the worst mechanism of that level, in the claim's quantity.

        For epsilon that is randomised response.
        """
        error = guarantee_of(claim).balanced_error(level)
        return cls(fpr=error, tpr=1 - error)


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


class PlanQuestion(NamedTuple):
    """What an audit is to be large enough for.

    Attributes:
        detect: A true number of the claim's quantity that is to be proved, if one was given.
        assumed: The attack that is counted on: that on such a leak, or one given by its rates.
    """

    detect: float | None = None
    assumed: AssumedAttack | None = None


class Needed(NamedTuple):
    """The answer to a question.

    Attributes:
        size: Shadow models or canaries; None if more than are planned.
        purpose: What they are enough for, in words.
    """

    size: int | None
    purpose: str


@dataclass(frozen=True, kw_only=True)
class Sizing:
    """Sizes of one kind of audit, and the power of each.

    Attributes:
        unit: What a size counts, as the key of a row.
        scored: Key of what is scored for it.
        asked: The size that was asked for.
        rows: What each size can prove.
        needed: How large it must be; None if that was not asked.
        of: What else the bounds depend on, in words.
        attacks: How many there are.
        most: The largest size that `needed` looks at.
        cost: Its cost as far as known before a model is timed, in words; may be empty.
        details: Rows about other factors; they name settings in backquotes.
        table: Lines of a second table; may be empty.
        advice: How to go on, in words; may be empty.
        document: Further entries for JSON.
    """

    unit: str
    scored: str
    asked: int
    rows: Sequence[Mapping[str, Any]]
    needed: Needed | None
    of: str
    attacks: int
    most: int = MOST_PLANNED
    cost: str = ""
    details: Sequence[Row] = ()
    table: Sequence[str] = ()
    advice: str = ""
    document: Mapping[str, Any] = field(default_factory=dict)

    @property
    def asked_row(self) -> Mapping[str, Any]:
        """The row of the size that was asked for."""
        return next(row for row in self.rows if row[self.unit] == self.asked)


def proves(reached: Power, claim: Claim) -> dict[str, Any]:
    """The power of one size; the keys are those of epsilon, or of the claim's quantity."""
    suffix = "_epsilon" if claim.quantity is Quantity.EPSILON else ""
    return {
        f"max_provable{suffix}": reached.max_provable,
        f"detectable{suffix}": reached.detectable,
        "detectable_gaussian": reached.detectable_gaussian,
    }


def rows_of(row: Callable[[int], dict[str, Any]], sizes: set[int]) -> list[dict[str, Any]]:
    """A row for each size, the smallest first."""
    return [row(size) for size in sorted(sizes)]


def rows_by_models(
    settings: AuditSettings[AnyShadowModels],
    claim: Claim,
    power: Callable[[AuditSettings[AnyShadowModels], Claim], Power],
) -> list[dict[str, Any]]:
    """A row for each number of shadow models that a plan shows, including the requested one.

    Args:
        settings: The settings of the audit.
        claim: The claim under audit.
        power: What an audit with such settings can prove.
    """

    def row(shadow_models: int) -> dict[str, Any]:
        sized = settings.with_game(shadow_models=shadow_models)
        fitted = {"fitted": 2 * sized.game.fitted, "scored": sized.game.scored}
        return {"shadow_models": shadow_models, **fitted, **proves(power(sized, claim), claim)}

    return rows_of(row, {*SHADOW_MODELS, settings.game.shadow_models})


def fewest(enough: Callable[[int], bool], *, least: int, most: int) -> int | None:
    """The smallest even size that is enough, to within 4; None if none is.

    Args:
        enough: Whether a size is enough.
        least: The smallest size, even.
        most: The largest.
    """
    high = least
    while not enough(high):
        high *= 2
        if high > most:
            return None
    low = high // 2 if high > least else high
    while high - low > 4:
        middle = (low + high) // 4 * 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
