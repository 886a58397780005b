"""The choices of a one-run audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

from dpaudit.auditing.settings import GameSettings, GameSwitch
from dpaudit.errors import SettingsError
from dpaudit.model.choices import Effort
from dpaudit.model.setting import NumberRange, Option

if TYPE_CHECKING:
    from dpaudit.model.tables import Population

MIN_CANARIES: Final = 20
CANARY_ATTACKS: Final = ("closest-record", "canary-matches", "canary-marginals")
"""The attacks of every one-run audit, each with an equal share of the error probability."""

MOST_CANARIES: Final = 100_000
"""The bound of so many takes seconds, and of more memory."""


@dataclass(frozen=True, kw_only=True)
class OneRun(GameSettings):
    """One training with many canaries, for generators too slow for shadow models.

    Attributes:
        canaries: Canaries of `one_run`: records (or units) that are each included with probability
            1/2; at most half of the table.
        probe: Whether probes run first, as in two worlds.

    Raises:
        SettingsError: If there are too few canaries, or too many.
    """

    NAME: ClassVar[str] = "one run"
    SWITCH: ClassVar[GameSwitch] = GameSwitch(
        "one_run",
        off=False,
        description="One training, many canaries: for slow generators.",
    )
    SIZES: ClassVar[Mapping[Effort, Mapping[str, int]]] = {
        Effort.QUICK: {"canaries": 50},
        Effort.STANDARD: {"canaries": 100},
        Effort.THOROUGH: {"canaries": 400},
    }

    canaries: Annotated[
        int, NumberRange(MIN_CANARIES, MOST_CANARIES), Option("M", by_name=True)
    ] = 100

    @property
    def hypotheses(self) -> int:
        """The number of attacks."""
        return len(CANARY_ATTACKS)

    def check_population(self, of: Population) -> None:
        """Refuses more canaries than a table allows.

        Raises:
            SettingsError: If they are more than half of its rows, or of its units.
        """
        if self.canaries > of.number // 2:
            raise SettingsError(
                f"`canaries` must be a number from {MIN_CANARIES} to half of the table's "
                f"{of.number} {of.noun}, got {self.canaries}"
            )
