"""The claim that a caller states for a generator, in any quantity."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpaudit.errors import SettingsError
from dpaudit.model.choices import member_named
from dpaudit.model.claim import Neighbours, PrivacyClaim
from dpaudit.model.currencies import (
    Claim,
    ConcentratedClaim,
    CurveClaim,
    CurvePoint,
    GaussianClaim,
    Promise,
    curve_points,
    read_curve,
)

if TYPE_CHECKING:
    from dpaudit.model.column import Unit


@dataclass(frozen=True, kw_only=True)
class StatedClaim:
    """The caller's claim; None leaves it to the generator. At most one quantity is stated.

    Attributes:
        epsilon: Epsilon of the claim under audit; the generator's own if None.
        delta: Delta of the claim; the generator's own, else 0, if None.
        mu: A claim of Gaussian DP under audit, instead of epsilon.
        rho: A claim of zCDP, instead of epsilon.
        curve: A privacy curve, instead of epsilon: pairs of epsilon and delta, a JSON or CSV file
            of them, or text such as "0.5:1e-3,1:1e-5".
        neighbours: "add-remove" or "replace-one"; that of the generator's claim if None.
        unit: The column that names the unit of each row, such as patient_id: both worlds then
            differ in all rows of one unit, and the claim is per unit. That of the schema if None.
        max_rows_per_unit: Largest number of rows that a unit may have.

    Raises:
        ClaimError: If the points of the curve have no meaning.
        SettingsError: If two claims are stated, one is not a number, or the relation is none.
    """

    epsilon: float | None = None
    delta: float | None = None
    mu: float | None = None
    rho: float | None = None
    curve: tuple[CurvePoint, ...] | None = None
    neighbours: Neighbours | None = None
    unit: str | None = None
    max_rows_per_unit: int | None = None

    def __post_init__(self) -> None:
        if self.curve is not None:
            given: Any = self.curve
            text = isinstance(given, str | Path)
            object.__setattr__(self, "curve", read_curve(given) if text else curve_points(given))
        if self.neighbours is not None:
            relation = member_named("neighbours", Neighbours, self.neighbours)
            object.__setattr__(self, "neighbours", relation)
        for name in ("epsilon", "delta", "mu", "rho"):
            value: object = getattr(self, name)
            if value is not None and not isinstance(value, Real):
                raise SettingsError(f"`{name}` must be a number, got {value!r}")
        if self.unit is None and self.max_rows_per_unit is not None:
            raise SettingsError("`max_rows_per_unit` needs `unit`: give the column of the unit too")
        stated = [
            name for name in ("epsilon", "mu", "rho", "curve") if getattr(self, name) is not None
        ]
        if self.delta is not None and stated and stated != ["epsilon"]:
            raise SettingsError(f"`delta` belongs to `epsilon`: leave it out of `{stated[0]}`")
        if len(stated) > 1:
            named = " and ".join(f"`{name}`" for name in stated)
            raise SettingsError(f"{named} state one claim each: give one of them")

    @classmethod
    def of(cls, claim: Claim) -> StatedClaim:
        """What a claim states, its neighbours and its unit included."""
        return cls(**claim.as_settings, neighbours=claim.neighbours, unit=claim.unit)

    @property
    def stated_unit(self) -> Unit | None:
        """The unit, if one is stated.

        Raises:
            SchemaError: If it is none.
        """
        # Here, because it loads pandas: options are made of these fields.
        from dpaudit.model.column import Unit

        if self.unit is None:
            return None
        return Unit(column=self.unit, max_rows=self.max_rows_per_unit)

    @property
    def is_stated(self) -> bool:
        """Whether a quantity is stated; else the claim is the generator's own."""
        return replace(self, neighbours=None, unit=None, max_rows_per_unit=None) != StatedClaim()

    def made(
        self, *, relation: Neighbours, default_delta: float, source: str, unit: str | None = None
    ) -> Promise | None:
        """The claim; None if none is stated.

        Args:
            relation: Its neighbouring relation.
            default_delta: Its delta, if none is stated.
            source: Where it comes from, in words.
            unit: The column of its unit; None for a claim per row.

        Raises:
            ClaimError: If it has no meaning.
        """
        said: dict[str, Any] = {"neighbours": relation, "source": source, "unit": unit}
        if self.epsilon is not None:
            delta = default_delta if self.delta is None else self.delta
            return PrivacyClaim(epsilon=self.epsilon, delta=delta, **said)
        if self.mu is not None:
            return GaussianClaim(mu=self.mu, **said)
        if self.rho is not None:
            return ConcentratedClaim(rho=self.rho, **said)
        if self.curve is not None:
            return CurveClaim(points=self.curve, **said)
        return None
