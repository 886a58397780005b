"""Claims that are not stated in epsilon and delta: Gaussian, concentrated, and a privacy curve.

A curve may be text: a JSON or CSV file, or points written out.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

from dpaudit.errors import ClaimError, SettingsError
from dpaudit.files import io_reason
from dpaudit.model.claim import (
    ABSENT_IF_NONE,
    Neighbours,
    NoClaim,
    PrivacyClaim,
    Quantity,
    check_positive,
    check_under,
    restated,
)

MOST_POINTS: Final = 1000
"""Largest number of points of a privacy curve."""


@dataclass(frozen=True, kw_only=True)
class GaussianClaim:
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

    mu: float
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    source: str = "set for this audit"
    unit: str | None = field(default=None, metadata=ABSENT_IF_NONE)

    def __post_init__(self) -> None:
        check_positive("mu", self.mu)

    @property
    def value(self) -> float:
        """The claimed mu."""
        return self.mu

    @property
    def in_words(self) -> str:
        """The claim by its usual name."""
        return f"{self.mu:g}-Gaussian DP"

    @property
    def as_settings(self) -> dict[str, Any]:
        """The settings of an audit that state this claim, as JSON."""
        return {"mu": self.mu}

    def under(self, neighbours: Neighbours) -> GaussianClaim:
        """What this claim implies for another relation: 2 mu for replace-one.

        Group privacy for a group of two: Dong, Roth and Su 2022, Theorem 2.14.

        Raises:
            ClaimError: If nothing follows for that relation.
        """
        if not check_under(self.neighbours, neighbours, setting="mu"):
            return self
        return replace(self.of_group(2), neighbours=neighbours, source=restated(self.source))

    def of_group(self, rows: int) -> GaussianClaim:
        """What this claim implies for tables that differ in so many rows: k mu.

        Dong, Roth and Su 2022, Theorem 2.14.

        Args:
            rows: Number of rows k.
        """
        return replace(self, mu=rows * self.mu)


@dataclass(frozen=True, kw_only=True)
class ConcentratedClaim:
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

    rho: float
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    source: str = "set for this audit"
    unit: str | None = field(default=None, metadata=ABSENT_IF_NONE)

    def __post_init__(self) -> None:
        check_positive("rho", self.rho)

    @property
    def value(self) -> float:
        """The claimed rho."""
        return self.rho

    @property
    def in_words(self) -> str:
        """The claim by its usual name."""
        return f"{self.rho:g}-zCDP"

    @property
    def as_settings(self) -> dict[str, Any]:
        """The settings of an audit that state this claim, as JSON."""
        return {"rho": self.rho}

    def under(self, neighbours: Neighbours) -> ConcentratedClaim:
        """What this claim implies for another relation: 4 rho for replace-one.

        Group privacy for a group of two: Bun and Steinke 2016, Proposition 1.9.

        Raises:
            ClaimError: If nothing follows for that relation.
        """
        if not check_under(self.neighbours, neighbours, setting="rho"):
            return self
        return replace(self.of_group(2), neighbours=neighbours, source=restated(self.source))

    def of_group(self, rows: int) -> ConcentratedClaim:
        """What this claim implies for tables that differ in so many rows: k squared rho.

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
class CurveClaim:
    """A claim of (epsilon, delta)-differential privacy at every point of a curve at once.

    Attributes:
        points: The points by increasing epsilon, which are all different; 1 to 1000 of them. Pairs
            are taken in any order.
        neighbours: Relation between the two tables that the claim covers.
        source: Where the claim comes from, in words.
        unit: The column that names whose rows enter and leave together; absent for a claim per row.

    Raises:
        ClaimError: If there is no point, there are more than 1000 or two of one epsilon, or a point
            has no meaning.
    """

    quantity: ClassVar[Quantity] = Quantity.FACTOR

    points: tuple[CurvePoint, ...]
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    source: str = "set for this audit"
    unit: str | None = field(default=None, metadata=ABSENT_IF_NONE)

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", curve_points(self.points))

    @property
    def value(self) -> float:
        """1: the claim is that its epsilons need no larger factor."""
        return 1.0

    @property
    def in_words(self) -> str:
        """The claim by its size and first point."""
        first, *others = self.points
        more = f" and {len(others)} more points" if others else ""
        return f"privacy curve with ({first.epsilon:g}, {first.delta:g}){more}"

    @property
    def as_settings(self) -> dict[str, Any]:
        """The settings of an audit that state this claim, as JSON."""
        return {"curve": [list(point) for point in self.points]}

    def under(self, neighbours: Neighbours) -> CurveClaim:
        """What this claim implies for another relation, point by point as `PrivacyClaim.under`.

        Raises:
            ClaimError: If nothing follows for that relation.
        """
        if not check_under(self.neighbours, neighbours, setting="curve"):
            return self
        return replace(self.of_group(2), neighbours=neighbours, source=restated(self.source))

    def of_group(self, rows: int) -> CurveClaim:
        """What this claim implies for tables that differ in so many rows, point by point.

        Args:
            rows: Number of rows k.
        """
        implied = [
            PrivacyClaim(epsilon=epsilon, delta=delta).of_group(rows)
            for epsilon, delta in self.points
        ]
        return replace(self, points=tuple(CurvePoint(one.epsilon, one.delta) for one in implied))


Promise: TypeAlias = PrivacyClaim | GaussianClaim | ConcentratedClaim | CurveClaim
"""The claims of a generator."""
Claim: TypeAlias = Promise | NoClaim
"""The claim of an audit, or no claim."""
EpsilonClaim: TypeAlias = PrivacyClaim | NoClaim
"""The claim of an audit that bounds epsilon only."""


def curve_points(pairs: Iterable[Iterable[float | str]]) -> tuple[CurvePoint, ...]:
    """The points of a curve in order, once each has a meaning.

    Args:
        pairs: Pairs of epsilon and delta, in any order.

    Returns:
        The points by increasing epsilon.

    Raises:
        ClaimError: As `CurveClaim`.
    """
    found = []
    for place, pair in enumerate(pairs, start=1):
        try:
            epsilon, delta = (float(number) for number in pair)
            stated = PrivacyClaim(epsilon=epsilon, delta=delta)
        except (TypeError, ValueError):
            raise ClaimError(
                f"point {place} of the curve is {pair!r}: give a pair of numbers, epsilon and delta"
            ) from None
        except ClaimError as error:
            raise ClaimError(f"point {place} of the curve: {error}") from None
        found.append(CurvePoint(stated.epsilon, stated.delta))
    if not 1 <= len(found) <= MOST_POINTS:
        raise ClaimError(f"a privacy curve has 1 to {MOST_POINTS} points, got {len(found)}")
    found.sort()
    for before, after in pairwise(found):
        if before.epsilon == after.epsilon:
            raise ClaimError(f"the curve has two points of epsilon {after.epsilon:g}: keep one")
    return tuple(found)


def require_epsilon(claim: Claim, *, method: str) -> PrivacyClaim:
    """The claim, for a method that tests a claim of epsilon and nothing else.

    Args:
        claim: Any claim.
        method: What cannot use another one, for the message.

    Raises:
        ClaimError: If there is none.
        SettingsError: If it is not stated in epsilon and delta.
    """
    require_claim(bounded := require_on_epsilon(claim, method=method), method=method)
    assert isinstance(bounded, PrivacyClaim)
    return bounded


def require_claim(claim: Claim, *, method: str) -> None:
    """Refuses to test nothing.

    Args:
        claim: Any claim.
        method: What tests it, for the message.

    Raises:
        ClaimError: If there is none.
    """
    if isinstance(claim, NoClaim):
        raise ClaimError(f"{method} needs a claim, and none was given: give `epsilon` and `delta`")


def require_on_epsilon(claim: Claim, *, method: str) -> EpsilonClaim:
    """The claim, or that there is none, for a method that bounds epsilon and nothing else.

    Args:
        claim: Any claim.
        method: What cannot use another one, for the message.

    Raises:
        SettingsError: If it is stated otherwise than in epsilon and delta.
    """
    if isinstance(claim, EpsilonClaim):
        return claim
    raise SettingsError(
        f"{method} bounds epsilon alone, and the claim is {claim.in_words}: state one with "
        f"`epsilon` and `delta`, or do without {method}"
    )


def require_add_remove(neighbours: Neighbours, *, method: str) -> None:
    """Refuses a claim that cannot be tested by adding and removing records.

    Args:
        neighbours: Neighbouring relation of the claim.
        method: What adds and removes records, for the message.

    Raises:
        ClaimError: If it is for replace-one neighbours.
    """
    if neighbours is not Neighbours.ADD_REMOVE:
        raise ClaimError(
            f"{method} adds and removes records, so it says nothing about replace-one "
            f"neighbours: audit an add-remove claim, or leave out {method}"
        )


_FORMS: Final = (
    'a JSON list of [epsilon, delta] or of {"epsilon": ..., "delta": ...}, or CSV with the columns '
    "epsilon and delta"
)
_NUMBER: Final = r"[0-9.]+(?:[eE][+-]?[0-9]+)?"
_INLINE: Final = re.compile(rf"{_NUMBER}:{_NUMBER}(?:,{_NUMBER}:{_NUMBER})*")


def read_curve(text: str | Path) -> tuple[CurvePoint, ...]:
    """The points that a command names: "0.5:1e-3,1:1e-5", or a file that holds them.

    Args:
        text: Points written out, or a JSON or CSV file.

    Returns:
        The points by increasing epsilon.

    Raises:
        ClaimError: If the file cannot be read or is neither, or a point has no meaning.
    """
    written = str(text).replace(" ", "")
    if _INLINE.fullmatch(written):
        return curve_points(pair.split(":") for pair in written.split(","))
    try:
        content = Path(text).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = io_reason(error) if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ClaimError(f"the curve {text} cannot be read: {reason}; give {_FORMS}") from None
    try:
        return curve_points(_pairs(content))
    except ClaimError as error:
        raise ClaimError(f"{text}: {error}") from None
    except (ValueError, KeyError, TypeError, csv.Error):
        raise ClaimError(f"{text} is no privacy curve: give {_FORMS}") from None


def written_out(points: Sequence[CurvePoint]) -> str:
    """The points as `read_curve` takes them, without loss."""
    return ",".join(f"{epsilon!r}:{delta!r}" for epsilon, delta in points)


def _pairs(content: str) -> list[Any]:
    """Pairs of a file, JSON if it begins as a list.

    Raises:
        ValueError: If it is neither JSON nor CSV.
        KeyError: If epsilon or delta is missing.
    """
    if content.lstrip().startswith("["):
        listed = json.loads(content)
        return [(of["epsilon"], of["delta"]) if isinstance(of, dict) else of for of in listed]
    rows = csv.DictReader(content.splitlines(), skipinitialspace=True)
    return [(float(row["epsilon"]), float(row["delta"])) for row in rows]
