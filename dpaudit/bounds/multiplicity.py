"""Confidence per hypothesis where one audit tests several."""

from __future__ import annotations

from dpaudit.bounds._checks import check_confidence
from dpaudit.errors import SettingsError


def bonferroni(confidence: float, hypotheses: int) -> float:
    """Confidence that each of several bounds needs for all to hold at once (Bonferroni).

    Every attack, target, threshold or direction that is evaluated on the scored trials is a
    hypothesis; what was chosen on other trials is not.

    Args:
        confidence: Confidence that all bounds hold together, in (0, 1).
        hypotheses: Number of bounds, at least 1.

    Returns:
        1 − (1 − confidence)/hypotheses.

    Raises:
        SettingsError: An argument is out of range.
    """
    check_confidence(confidence)
    if hypotheses < 1:
        raise SettingsError(f"{hypotheses} hypotheses; give the number tested, at least 1")
    return 1.0 - (1.0 - confidence) / hypotheses
