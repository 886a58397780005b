"""The settings of an audit of released labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dpaudit.errors import SettingsError
from dpaudit.model.choices import Drawing

MOST_RUNS: Final = 1_000_000
"""Of each world; the exact bound takes a minute or two there."""
MOST_BITS: Final = 2**32
"""Of both worlds together; a minute or two."""


@dataclass(frozen=True, kw_only=True)
class LabelAuditSettings:
    """Every choice of an audit of released labels.

    Attributes:
        runs: Simulated runs of each world, in 1..1,000,000.
        seed: Root of the random streams.
        confidence: One-sided confidence of the bound, in (0.5, 1).
        drawing: What is simulated.

    Raises:
        SettingsError: If a setting is out of range.
    """

    runs: int = 100_000
    seed: int = 0
    confidence: float = 0.95
    drawing: Drawing = Drawing.BITS

    def __post_init__(self) -> None:
        if not 1 <= self.runs <= MOST_RUNS:
            raise SettingsError(
                f"`runs` is {self.runs}: simulate 1 to {MOST_RUNS} runs of each world"
            )
        if not 0.5 < self.confidence < 1.0:
            raise SettingsError(f"`confidence` is {self.confidence}: choose it in (0.5, 1)")
        if self.drawing not in list(Drawing):
            raise SettingsError(f"`drawing` is {self.drawing!r}: use {' or '.join(Drawing)}")
        object.__setattr__(self, "drawing", Drawing(self.drawing))  # a caller may give its text

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
