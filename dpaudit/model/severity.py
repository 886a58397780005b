"""How grave it is what a trace finds or a probe sees."""

from __future__ import annotations

from enum import StrEnum


class Severity(StrEnum):
    """What follows from a finding or an alarm, gravest first."""

    VIOLATION = "violation"
    """The privacy claim does not hold, or its proof does not."""
    BUG = "bug"
    """The output or the claim is wrong; the promise may hold."""
    NOTE = "note"
    """Worth knowing."""

    @property
    def rank(self) -> int:
        """0 for the gravest."""
        return list(Severity).index(self)
