"""What a caller claims of a generator, in any currency."""

from __future__ import annotations

from typing import Any, NamedTuple

from dpaudit.model.claim import Neighbours, PrivacyClaim
from dpaudit.model.currencies import Claim, ConcentratedClaim, CurveClaim, CurvePoint, GaussianClaim


class StatedClaim(NamedTuple):
    """What the caller claims; None leaves it to the generator. At most one quantity is stated.

    Attributes:
        epsilon: Epsilon of a (epsilon, delta) claim.
        delta: Its delta; it may also take the place of the generator's own.
        mu: Of a Gaussian claim.
        rho: Of a zCDP claim.
        curve: Points of a privacy curve.
        neighbours: The relation; by default the generator's own, else add-remove.
    """

    epsilon: float | None = None
    delta: float | None = None
    mu: float | None = None
    rho: float | None = None
    curve: tuple[CurvePoint, ...] | None = None
    neighbours: Neighbours | None = None

    def made(self, *, relation: Neighbours, default_delta: float, source: str) -> Claim | None:
        """The claim; None if none is stated.

        Raises:
            ClaimError: If it has no meaning.
        """
        said: dict[str, Any] = {"neighbours": relation, "source": source}
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
