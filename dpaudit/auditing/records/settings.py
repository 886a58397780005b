"""The choices of an audit of many records per shadow model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

from dpaudit.auditing.settings import (
    MODELS_OPTION,
    MOST_MODELS,
    GameSwitch,
    ShadowModelSettings,
)
from dpaudit.errors import SettingsError
from dpaudit.model.setting import NumberRange, Option

if TYPE_CHECKING:
    from dpaudit.model.tables import Population

LARGEST_SHARE: Final = 1 / 4
"""Largest share of the table's rows; a model is trained without half of them."""

FEWEST_MODELS: Final = 8
"""Fewer than in two worlds: every model gives many guesses."""
MOST_RECORDS: Final = 10_000
"""The bound of so many, with the default of shadow models, takes a minute."""


@dataclass(frozen=True, kw_only=True)
class ManyRecords(ShadowModelSettings):
    """Shadow models that each serve many records, the most exposed ones.

    Attributes:
        attacks: Registered names or objects; each is one hypothesis (Bonferroni).
        shadow_models: Total number of shadow models, an even one.
        multiplicity: "bonferroni" scores every attack; "select" scores only the one with the
            largest forecast on the fitting part, without correction.
        records: Number of records (or units) that share the shadow models, each one attacked.
        probe: Whether probes run first, as in two worlds.
        ignore_bits: Whether attacks do without the last bits of numbers, as in two worlds.

    Raises:
        SettingsError: If a setting is out of range.
    """

    NAME: ClassVar[str] = "many records"
    SWITCH: ClassVar[GameSwitch] = GameSwitch("records", off=1)
    shadow_models: Annotated[int, NumberRange(FEWEST_MODELS, MOST_MODELS), MODELS_OPTION] = 400
    records: Annotated[
        int, NumberRange(2, MOST_RECORDS, why="leave it out for a single target"), Option("K")
    ]

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
