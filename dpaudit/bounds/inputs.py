"""Inputs of every bound: error counts, settings in their ranges, and the confidence of each bound.

The number of hypotheses is the number of bounds or p-values computed from the scored trials: the
product of the attacks, thresholds, directions and targets evaluated on them. A choice made on other
trials (the fitting part) counts as one hypothesis, however many candidates there were.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dpaudit.errors import SettingsError
from dpaudit.model.setting import (
    AT_LEAST_0,
    AT_LEAST_1,
    BETWEEN_0_AND_1,
    DELTA,
    NumberRange,
    check_number,
)


@dataclass(frozen=True)
class Counts:
    """Errors of a membership inference attack over independent trials.

    It unpacks in this order, so that `exact(*counts, delta=..., confidence=...)` bounds ε.

    Attributes:
        false_negatives: Trials of the "in" world that the attack guessed "out".
        false_positives: Trials of the "out" world that the attack guessed "in".
        n_in: Scored trials of the "in" world, at least 1.
        n_out: Scored trials of the "out" world, at least 1.

    Raises:
        SettingsError: If a count is not a whole number, a world has no trial, or its errors are
            negative or outnumber its trials.
    """

    false_negatives: int
    false_positives: int
    n_in: int
    n_out: int

    def __post_init__(self) -> None:
        for name in ("n_in", "n_out", "false_negatives", "false_positives"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name)))
        for name, trials in (("n_in", self.n_in), ("n_out", self.n_out)):
            check_number(name, trials, AT_LEAST_1)
        for name, errors, trials in (
            ("false_negatives", self.false_negatives, self.n_in),
            ("false_positives", self.false_positives, self.n_out),
        ):
            check_number(name, errors, NumberRange(0, trials))

    def __iter__(self) -> Iterator[int]:
        yield from (self.false_negatives, self.false_positives, self.n_in, self.n_out)


FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


def check_delta(delta: float) -> None:
    """Refuses a delta outside [0, 1).

    Raises:
        SettingsError: If `delta` is out of range.
    """
    check_number("delta", delta, DELTA)


def check_positive_delta(delta: float) -> None:
    """Refuses a delta outside (0, 1).

    Raises:
        SettingsError: If `delta` is out of range.
    """
    check_number("delta", delta, BETWEEN_0_AND_1)


def check_confidence(confidence: float) -> None:
    """Refuses a confidence outside (0, 1).

    Raises:
        SettingsError: If `confidence` is out of range.
    """
    check_number("confidence", confidence, BETWEEN_0_AND_1)


def check_epsilon(epsilon: float) -> None:
    """Refuses an epsilon that is negative, infinite or not a number.

    Raises:
        SettingsError: If `epsilon` is out of range.
    """
    check_number("epsilon", epsilon, AT_LEAST_0)


def check_power(power: float, *, confidence: float) -> None:
    """Refuses a power outside (1 − confidence, 1).

    Args:
        power: Probability that the bound exceeds the claim.
        confidence: One-sided confidence of the bound.

    Raises:
        SettingsError: If `power` is out of range.
    """
    check_number("power", power, NumberRange(above=1.0 - confidence, below=1))


def whole_number(name: str, value: object) -> int:
    """Returns a count of any numeric type as an int.

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


def bonferroni(confidence: float, hypotheses: int) -> float:
    """Confidence that each of several bounds needs for all to hold at once (Bonferroni).

    Theorem (Boole's inequality): K bounds that each fail with probability at most α/K fail
    somewhere with probability at most α, whatever their dependence.

    Args:
        confidence: Confidence that all bounds hold together, in (0, 1).
        hypotheses: Number of bounds, at least 1.

    Returns:
        1 − (1 − confidence)/hypotheses.

    Raises:
        SettingsError: If an argument is out of range.
    """
    check_confidence(confidence)
    number = whole_number("hypotheses", hypotheses)
    check_number("hypotheses", number, AT_LEAST_1)
    return 1.0 - (1.0 - confidence) / number


def attack_confidence(
    overall: float, hypotheses: int, *, sequential: bool, others: float = 0.0
) -> float:
    """Confidence that each bound of an attack needs, in a sequential or a fixed-size audit.

    A sequential audit computes two bounds for each attack, one that holds at any time and one at
    the cap of trials: each has half of the error probability.

    Args:
        overall: Confidence of the audit, in (0, 1).
        hypotheses: Number of hypotheses tested on the scored trials, at least 1.
        sequential: Whether the audit may stop early.
        others: Share of the error probability reserved for something else, in [0, 1).

    Returns:
        1 − (1 − overall)(1 − others)/K, or 1 − (1 − overall)(1 − others)/2K if it is sequential.

    Raises:
        SettingsError: If an argument is out of range.
    """
    check_confidence(overall)
    remaining = 1.0 - (1.0 - overall) * (1.0 - others) if others else overall
    return bonferroni(bonferroni(remaining, 2 if sequential else 1), hypotheses)
