"""Sample sizes and power of audits, common to all games."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, TypeVar

from dpaudit.auditing.settings import MOST_MODELS, AuditSettings, ShadowModelSettings
from dpaudit.formatting import Row
from dpaudit.model.claim import Claim, Quantity
from dpaudit.results.document import OPTIONAL, Document, NonNegative, Positive, Probability, Whole
from dpaudit.results.verdict import Power

if TYPE_CHECKING:
    from dpaudit.model.tables import Population, Table

AnyShadowModels = TypeVar("AnyShadowModels", bound=ShadowModelSettings)

MOST_PLANNED: Final = MOST_MODELS
"""Largest number of shadow models that a plan considers."""
SHADOW_MODELS = (50, 100, 200, 400, 1000, 2000)
"""Numbers of shadow models that every plan shows."""


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
    def population(self) -> Population | None:
        """Rows of the table, or its units; None if none was handed in."""
        return None if self.table is None else self.table.population


class Needed(NamedTuple):
    """The answer to a question.

    Attributes:
        size: Shadow models or canaries; None if more than are planned.
        purpose: What they are enough for, in words.
    """

    size: int | None
    purpose: str


class PlannedSize(NamedTuple):
    """What an audit of one size can prove, in the unit of the claim.

    Attributes:
        size: Shadow models or canaries.
        fitted: Models that train the attack; null where there are none.
        scored: What is scored: models, or the guesses at canaries.
        max_provable: The bound that a perfect attack would reach.
        detectable: The minimum detectable number (80 % power), if the leak shows clearly; null if
            there is none.
        detectable_gaussian: The same if it hides in Gaussian noise.
    """

    size: Positive
    fitted: Whole | None
    scored: Whole
    max_provable: NonNegative
    detectable: NonNegative | None
    detectable_gaussian: NonNegative | None


class Caught(NamedTuple):
    """The smallest Gaussian leak on each record that an audit of k records detects.

    Attributes:
        records: Records that each model serves, k.
        guesses: Scored models times records.
        apart: mu of that leak if records do not interfere; null if no leak is detected.
        together: mu of that leak if all records shift the same statistic.
    """

    records: int
    guesses: int
    apart: float | None
    together: float | None


@dataclass(frozen=True, kw_only=True)
class Sizing:
    """Sizes of one kind of audit, and the power of each.

    Attributes:
        unit: What a size counts, as the setting is called.
        scored: What is scored, in one word.
        asked: The requested size.
        rows: What each size can prove.
        needed: How large it must be; None if that was not asked.
        of: What else the bounds depend on, in words.
        attacks: How many there are.
        most: The largest size that `needed` looks at.
        cost: Its cost as far as known before a model is timed, in words; may be empty.
        details: Rows about other factors; they name settings in backquotes.
        table: Lines of a second table; may be empty.
        advice: How to go on, in words; may be empty.
        interference: As in `Plan`.
        records: As in `Plan`.
    """

    unit: str
    scored: str
    asked: int
    rows: tuple[PlannedSize, ...]
    needed: Needed | None
    of: str
    attacks: int
    most: int = MOST_PLANNED
    cost: str = ""
    details: Sequence[Row] = ()
    table: Sequence[str] = ()
    advice: str = ""
    interference: float | None = None
    records: tuple[Caught, ...] = ()

    @property
    def asked_row(self) -> PlannedSize:
        """The row of the size that was asked for."""
        return next(row for row in self.rows if row.size == self.asked)


class MoreRows(NamedTuple):
    """What larger synthetic tables of every model cost.

    Attributes:
        rows: Rows of each.
        seconds: Wall time that they add to the whole audit; null if the generator does not give
            that many rows.
    """

    rows: Positive
    seconds: NonNegative | None


@dataclass(frozen=True, kw_only=True)
class Plan(Document):
    """What an audit can prove and what it costs, as `dpaudit audit --plan --json` prints it.

    Attributes:
        game: How the audit is run.
        unit: What a size counts: shadow_models or canaries.
        needed: The size that detects the requested leak; null without a request, or if no size
            does.
        asked: What the requested audit can prove.
        alternatives: What audits of other sizes can prove.
        claim: The claim.
        quantity: Unit of `max_provable` and `detectable`: that of the claim.
        attacks: Number of attacks.
        confidence: Confidence of the bound.
        seconds: Wall time of the whole audit; null if the time of a model is not known.
        trainings: Number of trainings by kind; null where `seconds` is.
        worker_memory: Bytes that a worker process takes; null if not known.
        more_rows: What larger synthetic tables cost; absent if no model was timed.
        interference: Share of what marginals reveal about a canary that other canaries hide; null
            if it is not known.
        records: What each number of records per model detects; empty for other games.
    """

    schema_version: ClassVar[int] = 1
    called: ClassVar[str] = "a plan"
    game: str
    unit: str
    needed: Positive | None
    asked: PlannedSize
    alternatives: tuple[PlannedSize, ...]
    claim: Claim
    quantity: Quantity
    attacks: Positive
    confidence: Probability
    seconds: NonNegative | None
    trainings: Mapping[str, int] | None
    worker_memory: int | None
    more_rows: MoreRows | None = field(default=None, metadata=OPTIONAL)
    interference: float | None
    records: tuple[Caught, ...]


def rows_by_models(
    settings: AuditSettings[AnyShadowModels],
    claim: Claim,
    power: Callable[[AuditSettings[AnyShadowModels], Claim], Power],
) -> tuple[PlannedSize, ...]:
    """A row for each number of shadow models that a plan shows, including the requested one.

    Args:
        settings: The settings of the audit.
        claim: The claim under audit.
        power: What an audit with such settings can prove.
    """

    def row(shadow_models: int) -> PlannedSize:
        sized = settings.with_game(shadow_models=shadow_models)
        game = sized.game
        return PlannedSize(shadow_models, 2 * game.fitted, game.scored, *power(sized, claim))

    return tuple(map(row, sorted({*SHADOW_MODELS, settings.game.shadow_models})))


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
