"""What a generator promises: the privacy claim under audit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import StrEnum

from dpaudit.errors import ClaimError


class Neighbours(StrEnum):
    """The neighbouring relation: how the tables D and D' of one game differ."""

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"


@dataclass(frozen=True, kw_only=True)
class PrivacyClaim:
    """An (epsilon, delta)-differential-privacy claim.

    Attributes:
        epsilon: Claimed epsilon, positive and finite.
        delta: Claimed delta, in [0, 1).
        neighbours: Relation between the two tables that the claim covers.
        source: Where the claim comes from, in words.
        data_dependent: Whether the number is itself computed from private data, so that it must
            not be published and holds for that data only.

    Raises:
        ClaimError: If epsilon is not positive and finite, or delta is outside [0, 1).
    """

    epsilon: float
    delta: float = 0.0
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    source: str = "given by the caller"
    data_dependent: bool = field(default=False, metadata={"document": False})

    def __post_init__(self) -> None:
        if not math.isfinite(self.epsilon) or self.epsilon <= 0:
            raise ClaimError(f"epsilon must be a number greater than 0, got {self.epsilon:g}")
        if not 0 <= self.delta < 1:
            raise ClaimError(f"delta must be in [0, 1), got {self.delta:g}; usual is 1e-5 or less")

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
        if neighbours is self.neighbours:
            return self
        if neighbours is Neighbours.ADD_REMOVE:
            raise ClaimError(
                "a claim for replace-one neighbours says nothing about add-remove ones: "
                'audit with `neighbours="replace-one"`, or state an add-remove claim with `epsilon`'
            )
        delta = (1 + math.exp(min(self.epsilon, 700.0))) * self.delta
        return replace(
            self,
            epsilon=2 * self.epsilon,
            delta=min(delta, math.nextafter(1.0, 0.0)),
            neighbours=neighbours,
            source=f"{self.source}, restated for replace-one (group of two)",
        )
