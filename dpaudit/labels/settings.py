"""The settings of an audit of released labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from dpaudit.errors import SettingsError
from dpaudit.model.choices import Drawing
from dpaudit.model.setting import CONFIDENCE, SEED, NumberRange, Option, check_settings

MOST_RUNS: Final = 1_000_000
"""Of each world; the exact bound takes a minute or two there."""
MOST_BITS: Final = 2**32
"""Of both worlds together; a minute or two."""


@dataclass(frozen=True, kw_only=True)
class LabelAuditSettings:
    """Every choice of an audit of released labels.

    Attributes:
        runs: Simulated runs of each world.
        seed: Seed of the simulation.
        confidence: One-sided confidence of the simulation's bound.
        drawing: What is simulated: bits (each label, through the sampler), counts (the number of
            ones, for millions of labels).

    Raises:
        SettingsError: If a setting is out of range.
    """

    runs: Annotated[int, NumberRange(1, MOST_RUNS), Option("N")] = 100_000
    seed: Annotated[int, SEED, Option("S")] = 0
    confidence: Annotated[float, CONFIDENCE, Option("C")] = 0.95
    drawing: Annotated[Drawing, Option("UNIT")] = Drawing.BITS

    def __post_init__(self) -> None:
        check_settings(self)

    def require_drawable(self, labels: int) -> None:
        """Refuses too many labels to draw individually in minutes.

        Args:
            labels: Labels that each run releases.

        Raises:
            SettingsError: If there are too many.
        """
        if self.drawing is Drawing.BITS and 2 * self.runs * labels > MOST_BITS:
            raise SettingsError(
                f"{self.runs} runs of {labels} labels are too many bits to draw one by one: lower "
                '`runs`, or use `drawing="counts"`'
            )
