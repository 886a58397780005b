"""What an audit could have proved of a claim that is not stated in epsilon."""

from __future__ import annotations

from dataclasses import dataclass, field

from dpaudit.model.claim import Quantity
from dpaudit.results.fields import OPTIONAL, NonNegative


@dataclass(frozen=True, kw_only=True)
class Reach:
    """What an audit of a claim that is not stated in epsilon could have proved.

    Attributes:
        quantity: What the claim limits, and `proved`, `bounds` and these numbers are of: mu, rho,
            or factor, by which all epsilons of a privacy curve must be multiplied for it to hold.
        claimed: The claim in that quantity; 1 of a privacy curve.
        max_provable: The limit that a perfect attack would reach with this many trials; null if no
            trial was scored.
        detectable: The smallest true value that this audit exposes with 80 % power, of a mechanism
            that shows as much at one threshold as that value allows; null if there is none, or if
            no trial was scored.
        detectable_gaussian: The same of a Gaussian mechanism; absent where that is the same, or
            nothing is known of it.
    """

    quantity: Quantity
    claimed: NonNegative
    max_provable: NonNegative | None
    detectable: NonNegative | None
    detectable_gaussian: NonNegative | None = field(default=None, metadata=OPTIONAL)
