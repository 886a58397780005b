"""Severity of a finding."""

from __future__ import annotations

from enum import StrEnum


class Severity(StrEnum):
    """What follows from a finding of a trace or an alarm of a probe, the most severe first."""

    VIOLATION = "violation"
    """The privacy claim does not hold, or its proof does not."""
    BUG = "bug"
    """The output or the claim is wrong; the privacy claim may still hold."""
    NOTE = "note"
    """Worth knowing."""

    @property
    def rank(self) -> int:
        """0 for the most severe."""
        return list(Severity).index(self)
