"""The number of hypotheses that an audit tests, and the confidence that each of them needs.

A hypothesis is a bound or a p-value computed from the scored trials: one per attack, threshold,
direction and target evaluated on them. A choice made on other trials (the fitting part) counts as
one hypothesis, however many candidates there were.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from dpaudit.bounds.inputs import check_confidence, whole_number
from dpaudit.errors import SettingsError


@dataclass(frozen=True)
class Hypotheses:
    """The hypotheses of one audit on the scored trials: the product of these factors.

    Attributes:
        attacks: Attacks, each with a bound of its own.
        thresholds: Thresholds per attack; 1 where it was chosen on other trials.
        directions: Directions per threshold; 1 where it was chosen on other trials.
        targets: Target records, each attacked by all attacks.

    Raises:
        SettingsError: If a number is not whole or is below 1.
    """

    attacks: int
    thresholds: int = 1
    directions: int = 1
    targets: int = 1

    def __post_init__(self) -> None:
        for field in fields(self):
            number = _number(field.name, getattr(self, field.name))
            object.__setattr__(self, field.name, number)

    @property
    def count(self) -> int:
        """How many bounds are computed; the report gives the largest of them."""
        return self.attacks * self.thresholds * self.directions * self.targets

    def confidence(self, overall: float) -> float:
        """Confidence that each bound needs for the largest one to hold (Bonferroni).

        Args:
            overall: Confidence of the bound that is reported, in (0, 1).

        Returns:
            1 − (1 − overall)/count.

        Raises:
            SettingsError: If the confidence is out of range.
        """
        return bonferroni(overall, self.count)


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
    return 1.0 - (1.0 - confidence) / _number("hypotheses", hypotheses)


def attack_confidence(
    overall: float, hypotheses: int, *, sequential: bool, others: float = 0.0
) -> float:
    """Confidence of each bound of an attack, in a running and in a finished audit.

    A sequential audit takes two bounds of each attack, the one that holds at any time and the one
    at its cap: each has half of the error probability.

    Args:
        overall: Confidence of the audit, in (0, 1).
        hypotheses: Number of hypotheses tested on the scored trials, at least 1.
        sequential: Whether the audit may stop early.
        others: Share of the error probability that something else has, in [0, 1).

    Returns:
        1 − (1 − overall)(1 − others)/K, or 1 − (1 − overall)(1 − others)/2K if it is sequential.

    Raises:
        SettingsError: If an argument is out of range.
    """
    check_confidence(overall)
    left = 1.0 - (1.0 - overall) * (1.0 - others) if others else overall
    return bonferroni(bonferroni(left, 2 if sequential else 1), hypotheses)


def _number(name: str, value: object) -> int:
    """Returns a number of hypotheses, or refuses one that is not whole or is below 1."""
    number = whole_number(name, value)
    if number < 1:
        raise SettingsError(f"`{name}` is {number}; give the number tested, at least 1")
    return number
