"""The privacy claim under audit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, ClassVar, Final

from dpaudit.errors import ClaimError


class Neighbours(StrEnum):
    """The neighbouring relation: how the tables D and D' of one game differ."""

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"


class Quantity(StrEnum):
    """The quantity that a claim limits, and for which a lower limit is proved."""

    EPSILON = "epsilon"
    MU = "mu"
    RHO = "rho"
    FACTOR = "factor"
    """The factor by which all epsilons of a privacy curve must be multiplied for it to hold."""

    @property
    def noun(self) -> str:
        """The quantity in words."""
        return "curve factor" if self is Quantity.FACTOR else self.value


ABSENT_IF_NONE: Final = {"optional": True}
"""Metadata of a claim's unit, which is absent from documents for a claim per row."""


@dataclass(frozen=True, kw_only=True)
class PrivacyClaim:
    """An (epsilon, delta)-differential-privacy claim.

    Attributes:
        epsilon: Claimed epsilon, positive and finite.
        delta: Claimed delta, in [0, 1).
        neighbours: Relation between the two tables that the claim covers.
        source: Where the claim comes from, in words.
        data_dependent: Whether the number itself is computed from private data, so it must not be
            published and holds for that data only.
        unit: The column that names whose rows enter and leave together; absent for a claim per row.

    Raises:
        ClaimError: If epsilon is not positive and finite, or delta is outside [0, 1).
    """

    quantity: ClassVar[Quantity] = Quantity.EPSILON

    epsilon: float
    delta: float = 0.0
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    source: str = "set for this audit"
    data_dependent: bool = field(default=False, metadata={"document": False})
    unit: str | None = field(default=None, metadata=ABSENT_IF_NONE)

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)
        check_delta(self.delta)

    @property
    def value(self) -> float:
        """The claimed epsilon."""
        return self.epsilon

    @property
    def in_words(self) -> str:
        """The claim by its usual name."""
        return f"({self.epsilon:g}, {self.delta:g})-DP"

    @property
    def as_settings(self) -> dict[str, Any]:
        """The settings of an audit that state this claim, as JSON."""
        return {"epsilon": self.epsilon, "delta": self.delta}

    def under(self, neighbours: Neighbours) -> PrivacyClaim:
        """What this claim implies for tables that are neighbours in another sense.

        Replacing a record is removing one and adding another, so an add-remove claim implies
        (2 epsilon, (1 + e^epsilon) delta) for replace-one (group privacy for a group of two:
        Dwork and Roth 2014, Theorem 2.2 and its (epsilon, delta) form). Nothing follows in the
        other direction.

        Args:
            neighbours: The relation asked for.

        Returns:
            The implied claim; this one if the relation is the same.

        Raises:
            ClaimError: If nothing follows for that relation.
        """
        if not check_under(self.neighbours, neighbours, setting="epsilon"):
            return self
        return replace(self.of_group(2), neighbours=neighbours, source=restated(self.source))

    def of_group(self, rows: int) -> PrivacyClaim:
        """What this claim implies for tables that differ in so many rows.

        (k epsilon, (1 + e^epsilon + ... + e^((k - 1) epsilon)) delta): Dwork and Roth 2014, Theorem
        2.2, and its (epsilon, delta) form along the same chain of k neighbours.

        Args:
            rows: Number of rows k.
        """
        factors = (math.exp(min(times * self.epsilon, 700.0)) for times in range(rows))
        delta = min(sum(factors) * self.delta, math.nextafter(1.0, 0.0))
        return replace(self, epsilon=rows * self.epsilon, delta=delta)


@dataclass(frozen=True, kw_only=True)
class NoClaim:
    """No claim: the audit measures epsilon and tests nothing.

    Attributes:
        delta: Delta at which epsilon is bounded, in [0, 1).
        neighbours: Relation between the two tables of the game.
        source: A note that no claim was given.
        unit: The column that names whose rows enter and leave together; absent for single rows.

    Raises:
        ClaimError: If delta is outside [0, 1).
    """

    quantity: ClassVar[Quantity] = Quantity.EPSILON

    delta: float = 0.0
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    source: str = "no claim was given"
    unit: str | None = field(default=None, metadata=ABSENT_IF_NONE)

    def __post_init__(self) -> None:
        check_delta(self.delta)

    @property
    def epsilon(self) -> float:
        """0: any bound exceeds it, and the attack should prove as much as it can."""
        return 0.0

    @property
    def value(self) -> float:
        """0, likewise."""
        return 0.0

    @property
    def in_words(self) -> str:
        """That there is none."""
        return "no claim"

    @property
    def as_settings(self) -> dict[str, Any]:
        """The settings of an audit that bound epsilon at this delta, as JSON."""
        return {"delta": self.delta}


def restated(source: str) -> str:
    """The source of a claim that was restated for replace-one neighbours."""
    return f"{source}, restated for replace-one (group of two)"


def check_positive(name: str, value: float) -> None:
    """Refuses a value of a claim that is not positive and finite.

    Raises:
        ClaimError: If it is not.
    """
    if not math.isfinite(value) or value <= 0:
        raise ClaimError(f"{name} must be a number greater than 0, got {value:g}")


def check_delta(delta: float) -> None:
    """Refuses a delta outside [0, 1).

    Raises:
        ClaimError: If it is.
    """
    if not 0 <= delta < 1:
        raise ClaimError(f"delta must be in [0, 1), got {delta:g}; usual is 1e-5 or less")


def check_under(own: Neighbours, asked: Neighbours, *, setting: str) -> bool:
    """Whether a claim must be restated for the relation asked for.

    Args:
        own: The relation that the claim covers.
        asked: The relation asked for.
        setting: What states such a claim, for the message.

    Raises:
        ClaimError: If nothing follows for that relation.
    """
    if asked is own:
        return False
    if asked is Neighbours.ADD_REMOVE:
        raise ClaimError(
            "a claim for replace-one neighbours says nothing about add-remove ones: "
            f'audit with `neighbours="replace-one"`, or state an add-remove claim with `{setting}`'
        )
    return True
