"""Checks of the settings that every accountant shares."""

from __future__ import annotations

from dpaudit.errors import SettingsError


def check_delta(delta: float) -> None:
    """Refuses a delta outside [0, 1).

    Raises:
        SettingsError: If it is.
    """
    if not 0.0 <= delta < 1.0:
        raise SettingsError(f"`delta` is {delta}: choose it in [0, 1)")


def check_positive_delta(delta: float) -> None:
    """Refuses a delta outside (0, 1).

    Raises:
        SettingsError: If it is.
    """
    if not 0.0 < delta < 1.0:
        raise SettingsError(f"`delta` is {delta}: choose it in (0, 1), below one over the records")


def check_teachers(teachers: int) -> None:
    """Refuses a number of teachers that is not whole or is below 1.

    Raises:
        SettingsError: If it is.
    """
    if not isinstance(teachers, int) or teachers < 1:
        raise SettingsError(f"the number of teachers is {teachers}: use at least 1")
