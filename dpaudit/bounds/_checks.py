"""Checks of the settings that every bound shares, and the array types of the package."""

from __future__ import annotations

import math
import numbers
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dpaudit.errors import SettingsError

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


def check_delta(delta: float) -> None:
    """Refuses a delta outside [0, 1).

    Raises:
        SettingsError: If it is.
    """
    if not 0.0 <= delta < 1.0:
        raise SettingsError(f"`delta` is {delta}; give a number from 0 up to, but not including, 1")


def check_positive_delta(delta: float) -> None:
    """Refuses a delta outside (0, 1).

    Raises:
        SettingsError: If it is.
    """
    if not 0.0 < delta < 1.0:
        raise SettingsError(
            f"`delta` is {delta}; a Gaussian trade-off curve needs one strictly between 0 and 1"
        )


def check_confidence(confidence: float) -> None:
    """Refuses a confidence outside (0, 1).

    Raises:
        SettingsError: If it is.
    """
    if not 0.0 < confidence < 1.0:
        raise SettingsError(
            f"`confidence` is {confidence}; give a number strictly between 0 and 1, such as 0.95"
        )


def check_epsilon(epsilon: float) -> None:
    """Refuses an epsilon that is negative, infinite or not a number.

    Raises:
        SettingsError: If it is.
    """
    if not (math.isfinite(epsilon) and epsilon >= 0.0):
        raise SettingsError(f"`epsilon` is {epsilon}; give a finite number that is not negative")


def check_power(power: float, *, confidence: float) -> None:
    """Refuses a power outside (1 − confidence, 1).

    Args:
        power: Probability that a bound exceeds the claim.
        confidence: One-sided confidence of the bound.

    Raises:
        SettingsError: If it is.
    """
    if not 1.0 - confidence < power < 1.0:
        raise SettingsError(
            f"`power` is {power}; give a number strictly between 1 - confidence and 1, such as 0.8"
        )


def whole_number(name: str, value: object) -> int:
    """Returns a count as an int, whatever type of number it came as.

    Args:
        name: The argument, for the message.
        value: A count: a Python or numpy number without a fraction.

    Returns:
        The count.

    Raises:
        SettingsError: If it has a fraction, is not finite or is not a number.
    """
    if isinstance(value, numbers.Real) and float(value).is_integer():
        return int(float(value))
    raise SettingsError(f"`{name}` is {value!r}; give a whole number")
