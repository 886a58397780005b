"""The choices of an audit of many records per shadow model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from dpaudit.auditing.settings import GameSwitch, ShadowModelSettings, check_whole
from dpaudit.errors import SettingsError

if TYPE_CHECKING:
    from dpaudit.model.tables import Population

LARGEST_SHARE: Final = 1 / 4
"""Largest share of the table's rows; a model is trained without half of them."""

MOST_RECORDS: Final = 10_000
"""The bound of so many, with the default of shadow models, takes a minute."""


@dataclass(frozen=True, kw_only=True)
class ManyRecords(ShadowModelSettings):
    """Shadow models that each serve many records, the most exposed ones.

    Attributes:
        attacks: Registered names or objects; each is one hypothesis (Bonferroni).
        shadow_models: Models to train, an even number of at least 8.
        multiplicity: "bonferroni" scores every attack; "select" scores only the one with the
            largest forecast on the fitting part, without correction.
        records: Records (or units) that every shadow model serves, each by its own coin: the most
            exposed ones. More than 1 gives as many guesses per model and no single target.

    Raises:
        SettingsError: If a setting is out of range.
    """

    NAME: ClassVar[str] = "many records"
    SWITCH: ClassVar[GameSwitch] = GameSwitch("records", off=1)
    FEWEST: ClassVar[int] = 8
    """Fewer than in two worlds: every model gives many guesses."""

    records: int

    def __post_init__(self) -> None:
        check_whole(self, "records")
        if self.records > MOST_RECORDS:
            raise SettingsError(f"`records` must be at most {MOST_RECORDS:,}, got {self.records:,}")
        if self.records < 2:
            raise SettingsError(
                f"`records` must be at least 2, or 1 for a single target, got {self.records}"
            )
        super().__post_init__()

    def check_population(self, of: Population) -> None:
        """Refuses too many records for a table.

        Raises:
            SettingsError: If they are more than a quarter of its rows, or of its units.
        """
        if self.records > LARGEST_SHARE * of.number:
            raise SettingsError(
                f"`records` must be at most a quarter of the table's {of.number} {of.noun}, got "
                f"{self.records}: half of them are missing from what each model is trained on"
            )
