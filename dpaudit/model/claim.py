"""Claims of differential privacy: what a generator promises, and what a caller states instead.

A claim limits one quantity for neighbouring tables: epsilon at a delta, mu (Gaussian DP), rho
(zero-concentrated DP), or all epsilons of a privacy curve. There is a class for each quantity, and
one for an audit without a claim.
"""

from __future__ import annotations

import csv
import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, NamedTuple, Self, TypeAlias, cast

from dpaudit.errors import ClaimError, SettingsError
from dpaudit.files import io_reason
from dpaudit.model.setting import AT_LEAST_1, Option, Panel, check_settings

MOST_POINTS: Final = 1000
"""Largest number of points of a privacy curve."""
_FOR_THIS_AUDIT: Final = "set for this audit"
_ABSENT_IF_NONE: Final = {"optional": True}
"""Metadata of a claim's unit: documents leave it out for a claim per row."""


class Neighbours(StrEnum):
    """The neighbouring relation: how the tables D and D' of one game differ."""

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"


class Quantity(StrEnum):
    """The quantity that a claim limits, and for which a lower limit is proved."""

    EPSILON = "epsilon"
    MU = "mu"
    RHO = "rho"
    DELTA = "delta"
    """Delta at the claimed epsilon."""
    FACTOR = "factor"
    """The factor by which a privacy curve's epsilons must be multiplied for the curve to hold."""

    @property
    def noun(self) -> str:
        """The quantity in words."""
        return "curve factor" if self is Quantity.FACTOR else self.value


class _Claim:
    """The base of all claims. `quantity` also names the attribute with the claimed number."""

    quantity: ClassVar[Quantity] = Quantity.EPSILON
    _settings: ClassVar[tuple[str, ...]]
    _words: ClassVar[str]

    @property
    def value(self) -> float:
        """The claimed number in the claim's quantity; 0 if nothing is claimed."""
        return cast(float, getattr(self, self.quantity))

    @property
    def in_words(self) -> str:
        """The claim by its usual name."""
        return self._words.format(self)

    @property
    def as_settings(self) -> dict[str, Any]:
        """The settings of an audit that state this claim, as JSON."""
        return {name: getattr(self, name) for name in self._settings}


class _Promise(_Claim, ABC):
    """A claim of a generator: a positive number, from which claims about groups follow."""

    neighbours: Neighbours
    source: str

    def __post_init__(self) -> None:
        if not math.isfinite(self.value) or self.value <= 0:
            raise ClaimError(f"{self.quantity} must be a number greater than 0, got {self.value:g}")

    @abstractmethod
    def of_group(self, rows: int) -> Self:
        """What this claim implies for tables that differ in a group of rows.

        Args:
            rows: Number of rows k.
        """

    def under(self, neighbours: Neighbours) -> Self:
        """What this claim implies for another neighbouring relation.

        Replacing a record is removing one and adding another, so an add-remove claim implies its
        claim about groups of two (`of_group`) for replace-one. The other direction implies nothing.

        Args:
            neighbours: The relation.

        Returns:
            The implied claim; this one if the relation is the same.

        Raises:
            ClaimError: If this claim implies nothing for the relation.
        """
        if neighbours is self.neighbours:
            return self
        if neighbours is Neighbours.ADD_REMOVE:
            raise ClaimError(
                "a claim for replace-one neighbours says nothing about add-remove ones: audit with "
                f'`neighbours="replace-one"`, or state an add-remove claim with '
                f"`{self._settings[0]}`"
            )
        pair = cast(Any, self.of_group(2))  # every promise is a dataclass
        source = f"{self.source}, restated for replace-one (group of two)"
        return cast(Self, replace(pair, neighbours=neighbours, source=source))


@dataclass(frozen=True, kw_only=True)
class PrivacyClaim(_Promise):
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

    _settings: ClassVar[tuple[str, ...]] = ("epsilon", "delta")
    _words: ClassVar[str] = "({0.epsilon:g}, {0.delta:g})-DP"

    epsilon: float
    delta: float = 0.0
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    source: str = _FOR_THIS_AUDIT
    data_dependent: bool = field(default=False, metadata={"document": False})
    unit: str | None = field(default=None, metadata=_ABSENT_IF_NONE)

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_delta(self.delta)

    def of_group(self, rows: int) -> PrivacyClaim:
        """What this claim implies for tables that differ in a group of rows.

        (k epsilon, (1 + e^epsilon + ... + e^((k - 1) epsilon)) delta): Dwork and Roth 2014, Theorem
        2.2, and its (epsilon, delta) form along the same chain of k neighbours.

        Args:
            rows: Number of rows k.
        """
        factors = (math.exp(min(times * self.epsilon, 700.0)) for times in range(rows))
        delta = min(sum(factors) * self.delta, math.nextafter(1.0, 0.0))
        return replace(self, epsilon=rows * self.epsilon, delta=delta)


@dataclass(frozen=True, kw_only=True)
class DeltaClaim(_Claim):
    """An (epsilon, delta) claim whose delta an audit bounds, at the claimed epsilon.

    Attributes:
        at_epsilon: Claimed epsilon.
        delta: Claimed delta, in [0, 1).
        neighbours: Relation between the two tables that the claim covers.
        source: Where the claim comes from, in words.
        unit: The column that names whose rows enter and leave together; absent for a claim per row.

    Raises:
        ClaimError: If epsilon is not positive and finite, or delta is outside [0, 1).
    """

    quantity: ClassVar[Quantity] = Quantity.DELTA
    _words: ClassVar[str] = "({0.at_epsilon:g}, {0.delta:g})-DP"

    at_epsilon: float
    delta: float
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    source: str = _FOR_THIS_AUDIT
    unit: str | None = field(default=None, metadata=_ABSENT_IF_NONE)

    def __post_init__(self) -> None:
        PrivacyClaim(epsilon=self.at_epsilon, delta=self.delta)

    @classmethod
    def of(cls, claim: Claim) -> DeltaClaim:
        """The same claim, for an audit that bounds its delta.

        Raises:
            SettingsError: If the claim is not in epsilon and delta.
        """
        if not isinstance(claim, PrivacyClaim):
            raise SettingsError(
                f'`bound="delta"` needs a claim in epsilon and delta, and there is {claim.in_words}'
                ": give `epsilon` and `delta`"
            )
        return cls(
            at_epsilon=claim.epsilon,
            delta=claim.delta,
            neighbours=claim.neighbours,
            source=claim.source,
            unit=claim.unit,
        )

    @property
    def as_settings(self) -> dict[str, Any]:
        """The settings of an audit that state this claim, as JSON."""
        return {"epsilon": self.at_epsilon, "delta": self.delta}


@dataclass(frozen=True, kw_only=True)
class GaussianClaim(_Promise):
    """A claim of Gaussian differential privacy (Dong, Roth and Su 2022).

    Attributes:
        mu: Claimed mu, positive and finite: distinguishing the two worlds is at least as hard as
            distinguishing N(0, 1) from N(mu, 1).
        neighbours: Relation between the two tables that the claim covers.
        source: Where the claim comes from, in words.
        unit: The column that names whose rows enter and leave together; absent for a claim per row.

    Raises:
        ClaimError: If mu is not positive and finite.
    """

    quantity: ClassVar[Quantity] = Quantity.MU
    _settings: ClassVar[tuple[str, ...]] = ("mu",)
    _words: ClassVar[str] = "{0.mu:g}-Gaussian DP"

    mu: float
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    source: str = _FOR_THIS_AUDIT
    unit: str | None = field(default=None, metadata=_ABSENT_IF_NONE)

    def of_group(self, rows: int) -> GaussianClaim:
        """What this claim implies for tables that differ in k rows: k mu.

        Dong, Roth and Su 2022, Theorem 2.14.

        Args:
            rows: Number of rows k.
        """
        return replace(self, mu=rows * self.mu)


@dataclass(frozen=True, kw_only=True)
class ConcentratedClaim(_Promise):
    """A claim of zero-concentrated differential privacy (Bun and Steinke 2016).

    Attributes:
        rho: Claimed rho, positive and finite: the Rényi divergence of every order alpha above 1 is
            at most rho alpha, in both directions.
        neighbours: Relation between the two tables that the claim covers.
        source: Where the claim comes from, in words.
        unit: The column that names whose rows enter and leave together; absent for a claim per row.

    Raises:
        ClaimError: If rho is not positive and finite.
    """

    quantity: ClassVar[Quantity] = Quantity.RHO
    _settings: ClassVar[tuple[str, ...]] = ("rho",)
    _words: ClassVar[str] = "{0.rho:g}-zCDP"

    rho: float
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    source: str = _FOR_THIS_AUDIT
    unit: str | None = field(default=None, metadata=_ABSENT_IF_NONE)

    def of_group(self, rows: int) -> ConcentratedClaim:
        """What this claim implies for tables that differ in k rows: k squared rho.

        Bun and Steinke 2016, Proposition 1.9.

        Args:
            rows: Number of rows k.
        """
        return replace(self, rho=rows**2 * self.rho)


class CurvePoint(NamedTuple):
    """One point of a privacy curve: (epsilon, delta)-differential privacy.

    Attributes:
        epsilon: Positive and finite.
        delta: In [0, 1).
    """

    epsilon: float
    delta: float


@dataclass(frozen=True, kw_only=True)
class CurveClaim(_Promise):
    """A claim of (epsilon, delta)-differential privacy at every point of a curve at once.

    Attributes:
        points: The points by increasing epsilon, 1 to 1000 with distinct epsilons; they may be
            given in any order.
        neighbours: Relation between the two tables that the claim covers.
        source: Where the claim comes from, in words.
        unit: The column that names whose rows enter and leave together; absent for a claim per row.

    Raises:
        ClaimError: If there are no points, more than 1000, or two with the same epsilon, or if a
            point is out of range.
    """

    quantity: ClassVar[Quantity] = Quantity.FACTOR
    _settings: ClassVar[tuple[str, ...]] = ("curve",)

    points: tuple[CurvePoint, ...]
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    source: str = _FOR_THIS_AUDIT
    unit: str | None = field(default=None, metadata=_ABSENT_IF_NONE)

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", curve_points(self.points))

    @property
    def value(self) -> float:
        """1: the claim is that the curve holds without a larger factor."""
        return 1.0

    @property
    def in_words(self) -> str:
        """The claim by its size and first point."""
        first, *others = self.points
        rest = f" and {len(others)} more points" if others else ""
        return f"privacy curve with ({first.epsilon:g}, {first.delta:g}){rest}"

    @property
    def as_settings(self) -> dict[str, Any]:
        """The settings of an audit that state this claim, as JSON."""
        return {"curve": [list(point) for point in self.points]}

    def of_group(self, rows: int) -> CurveClaim:
        """What this claim implies for tables that differ in k rows, point by point.

        Args:
            rows: Number of rows k.
        """
        claims = [PrivacyClaim(epsilon=epsilon, delta=delta) for epsilon, delta in self.points]
        groups = [claim.of_group(rows) for claim in claims]
        return replace(
            self, points=tuple(CurvePoint(group.epsilon, group.delta) for group in groups)
        )


@dataclass(frozen=True, kw_only=True)
class NoClaim(_Claim):
    """No claim: the audit measures epsilon and tests nothing.

    Attributes:
        delta: Delta at which epsilon is bounded, in [0, 1).
        neighbours: Relation between the two tables of the game.
        source: A note that no claim was given.
        unit: The column that names whose rows enter and leave together; absent for single rows.

    Raises:
        ClaimError: If delta is outside [0, 1).
    """

    _settings: ClassVar[tuple[str, ...]] = ("delta",)
    _words: ClassVar[str] = "no claim"

    delta: float = 0.0
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    source: str = "no claim was given"
    unit: str | None = field(default=None, metadata=_ABSENT_IF_NONE)

    def __post_init__(self) -> None:
        _check_delta(self.delta)

    @property
    def epsilon(self) -> float:
        """0, so that every bound exceeds it and the attack proves as much as it can."""
        return 0.0


Promise: TypeAlias = PrivacyClaim | GaussianClaim | ConcentratedClaim | CurveClaim
"""The claims of a generator."""
Claim: TypeAlias = Promise | DeltaClaim | NoClaim
"""The claim of an audit, or no claim."""
EpsilonClaim: TypeAlias = PrivacyClaim | NoClaim
"""The claim of an audit that bounds epsilon only."""


def _check_delta(delta: float) -> None:
    if not 0 <= delta < 1:
        raise ClaimError(f"delta must be in [0, 1), got {delta:g}; usual is 1e-5 or less")


# The claims that a method can test.


def require_claim(claim: Claim, *, method: str) -> None:
    """Refuses a missing claim.

    Args:
        claim: Any claim.
        method: The method that tests it, for the message.

    Raises:
        ClaimError: If nothing is claimed.
    """
    if isinstance(claim, NoClaim):
        raise ClaimError(f"{method} needs a claim, and none was given: give `epsilon` and `delta`")


def require_on_epsilon(claim: Claim, *, method: str) -> EpsilonClaim:
    """Returns the claim; refuses mu, rho and curves, for a method that bounds epsilon alone.

    Args:
        claim: Any claim.
        method: The method, for the message.

    Raises:
        SettingsError: If the claim is not in epsilon and delta.
    """
    if isinstance(claim, EpsilonClaim):
        return claim
    raise SettingsError(
        f"{method} bounds epsilon alone, and the claim is {claim.in_words}: state one with "
        f"`epsilon` and `delta`, or do without {method}"
    )


def require_epsilon(claim: Claim, *, method: str) -> PrivacyClaim:
    """Returns the claim; refuses all others, for a method that tests a claim of epsilon.

    Args:
        claim: Any claim.
        method: The method, for the message.

    Raises:
        ClaimError: If nothing is claimed.
        SettingsError: If the claim is not in epsilon and delta.
    """
    require_claim(claim, method=method)
    return cast(PrivacyClaim, require_on_epsilon(claim, method=method))


def require_add_remove(neighbours: Neighbours, *, method: str) -> None:
    """Refuses a claim that cannot be tested by adding and removing records.

    Args:
        neighbours: Neighbouring relation of the claim.
        method: The method that adds and removes records, for the message.

    Raises:
        ClaimError: If the claim is for replace-one neighbours.
    """
    if neighbours is not Neighbours.ADD_REMOVE:
        raise ClaimError(
            f"{method} adds and removes records, so it says nothing about replace-one "
            f"neighbours: audit an add-remove claim, or leave out {method}"
        )


# Privacy curves: pairs of numbers, text, or a JSON or CSV file.

_FORMS: Final = (
    'a JSON list of [epsilon, delta] or of {"epsilon": ..., "delta": ...}, or CSV with the columns '
    "epsilon and delta"
)
_NUMBER: Final = r"[0-9.]+(?:[eE][+-]?[0-9]+)?"
_INLINE: Final = re.compile(rf"{_NUMBER}:{_NUMBER}(?:,{_NUMBER}:{_NUMBER})*")


def curve_points(pairs: Iterable[Iterable[float | str]]) -> tuple[CurvePoint, ...]:
    """Checks and sorts the points of a curve.

    Args:
        pairs: Pairs of epsilon and delta, in any order.

    Returns:
        The points by increasing epsilon.

    Raises:
        ClaimError: As `CurveClaim`.
    """
    points = []
    for place, pair in enumerate(pairs, start=1):
        try:
            point = CurvePoint(*(float(number) for number in pair))
            PrivacyClaim(epsilon=point.epsilon, delta=point.delta)
        except (TypeError, ValueError):
            raise ClaimError(
                f"point {place} of the curve is {pair!r}: give a pair of numbers, epsilon and delta"
            ) from None
        except ClaimError as error:
            raise ClaimError(f"point {place} of the curve: {error}") from None
        points.append(point)
    if not 1 <= len(points) <= MOST_POINTS:
        raise ClaimError(f"a privacy curve has 1 to {MOST_POINTS} points, got {len(points)}")
    points.sort()
    for before, after in pairwise(points):
        if before.epsilon == after.epsilon:
            raise ClaimError(f"the curve has two points of epsilon {after.epsilon:g}: keep one")
    return tuple(points)


def read_curve(text: str | Path) -> tuple[CurvePoint, ...]:
    """Reads the points that a command names: "0.5:1e-3,1:1e-5", or a file of points.

    Args:
        text: Points written out, or a JSON or CSV file.

    Returns:
        The points by increasing epsilon.

    Raises:
        ClaimError: If the file cannot be read or has another format, or a point is impossible.
    """
    compact = str(text).replace(" ", "")
    if _INLINE.fullmatch(compact):
        return curve_points(pair.split(":") for pair in compact.split(","))
    try:
        content = Path(text).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = io_reason(error) if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ClaimError(f"the curve {text} cannot be read: {reason}; give {_FORMS}") from None
    try:
        return curve_points(_read_pairs(content))
    except ClaimError as error:
        raise ClaimError(f"{text}: {error}") from None
    except (ValueError, KeyError, TypeError, csv.Error):
        raise ClaimError(f"{text} is not a privacy curve: give {_FORMS}") from None


def written_out(points: Sequence[CurvePoint]) -> str:
    """Writes points as `read_curve` reads them, without loss."""
    return ",".join(f"{epsilon!r}:{delta!r}" for epsilon, delta in points)


def _read_pairs(content: str) -> list[Any]:
    """Reads pairs from the content of a file, as JSON if it begins with a list, else as CSV.

    Raises:
        ValueError: If the content is neither JSON nor CSV.
        KeyError: If epsilon or delta is missing.
    """
    if content.lstrip().startswith("["):
        return [
            (point["epsilon"], point["delta"]) if isinstance(point, dict) else point
            for point in json.loads(content)
        ]
    rows = csv.DictReader(content.splitlines(), skipinitialspace=True)
    return [(float(row["epsilon"]), float(row["delta"])) for row in rows]


@dataclass(frozen=True, kw_only=True)
class StatedClaim:
    """The caller's claim; None leaves it to the generator. At most one quantity is stated.

    Attributes:
        epsilon: Claimed epsilon: tested, not passed to the generator (-p epsilon=E does that).
            Default: the generator's claim; if it has none, the audit gives a bound and no verdict.
        delta: Claimed delta; give it if there is one: 0 tests pure DP. Default: the generator's
            claim, else 0.
        mu: Claimed mu, for Gaussian DP instead of (epsilon, delta).
        rho: Claimed rho, for zCDP instead of (epsilon, delta).
        curve: Claimed privacy curve instead of one (epsilon, delta): pairs of both, a JSON or CSV
            file of them, or text such as 0.5:1e-3,1:1e-5.
        neighbours: Neighbouring relation: add-remove, replace-one. Default: the generator's claim,
            else add-remove.
        unit: Column that says whose rows each row is, such as patient_id: both worlds differ in all
            rows of one unit, and the claim is per unit. Default: the schema's unit, else single
            rows.
        max_rows_per_unit: Largest number of rows that a unit may have. Default: the schema's, else
            none.

    Raises:
        ClaimError: If the points of the curve are not those of a privacy curve.
        SettingsError: If two claims are stated, a value is not a number, or the neighbouring
            relation is unknown.
    """

    epsilon: Annotated[float | None, Option("E", panel=Panel.CLAIM)] = None
    delta: Annotated[float | None, Option("D", panel=Panel.CLAIM)] = None
    mu: Annotated[float | None, Option("M", panel=Panel.CLAIM, by_name=True)] = None
    rho: Annotated[float | None, Option("R", panel=Panel.CLAIM, by_name=True)] = None
    curve: Annotated[
        tuple[CurvePoint, ...] | None,
        Option("FILE|E:D,E:D", panel=Panel.CLAIM, by_name=True, text=True),
    ] = None
    neighbours: Annotated[Neighbours | None, Option("RELATION", panel=Panel.CLAIM)] = None
    unit: Annotated[str | None, Option("COLUMN", panel=Panel.RULES, by_name=True)] = None
    max_rows_per_unit: Annotated[
        int | None, AT_LEAST_1, Option("K", panel=Panel.RULES, by_name=True)
    ] = None

    def __post_init__(self) -> None:
        if self.curve is not None:
            curve: Any = self.curve
            read = read_curve if isinstance(curve, str | Path) else curve_points
            object.__setattr__(self, "curve", read(curve))
        check_settings(self)
        if self.unit is None and self.max_rows_per_unit is not None:
            raise SettingsError("`max_rows_per_unit` needs `unit`: give the column of the unit too")
        quantities = self._quantities
        if self.delta is not None and quantities and quantities != ["epsilon"]:
            raise SettingsError(f"`delta` belongs to `epsilon`: leave it out of `{quantities[0]}`")
        if len(quantities) > 1:
            named = " and ".join(f"`{name}`" for name in quantities)
            raise SettingsError(f"{named} state one claim each: give one of them")

    @property
    def _quantities(self) -> list[str]:
        """The settings that each state a claim."""
        return [n for n in ("epsilon", "mu", "rho", "curve") if getattr(self, n) is not None]

    @classmethod
    def of(cls, claim: Claim) -> StatedClaim:
        """The statement of a claim, with its neighbours and unit."""
        return cls(**claim.as_settings, neighbours=claim.neighbours, unit=claim.unit)

    @property
    def is_stated(self) -> bool:
        """Whether a quantity is stated; otherwise the claim is the generator's own."""
        return self.delta is not None or bool(self._quantities)

    def made(
        self, *, relation: Neighbours, default_delta: float, source: str, unit: str | None = None
    ) -> Promise | None:
        """Makes the stated claim; None if no quantity is stated.

        Args:
            relation: Neighbouring relation of the claim.
            default_delta: Delta of the claim, if none is stated.
            source: Where the claim comes from, in words.
            unit: The column of the unit; None for a claim per row.

        Raises:
            ClaimError: If a number of the claim is out of range.
        """
        common: dict[str, Any] = {"neighbours": relation, "source": source, "unit": unit}
        if self.epsilon is not None:
            delta = default_delta if self.delta is None else self.delta
            return PrivacyClaim(epsilon=self.epsilon, delta=delta, **common)
        if self.mu is not None:
            return GaussianClaim(mu=self.mu, **common)
        if self.rho is not None:
            return ConcentratedClaim(rho=self.rho, **common)
        if self.curve is not None:
            return CurveClaim(points=self.curve, **common)
        return None
