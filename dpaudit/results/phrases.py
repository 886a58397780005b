"""Phrases about claims and power; they load no table, so that plans say them as results do."""

from __future__ import annotations

from typing import Final

from dpaudit.formatting import rounded, rounded_up
from dpaudit.model.claim import Neighbours, PrivacyClaim, Quantity
from dpaudit.model.currencies import Claim
from dpaudit.results.verdict import Power

CURVE_FACTOR: Final = (
    "A curve factor of t means that the curve holds only with all its epsilons multiplied by t"
)
NOTHING_DETECTED: Final = "detects no leak with 80 % power"


def relation(neighbours: Neighbours) -> str:
    """How the tables of both worlds differ: "add or remove one record"."""
    return {
        Neighbours.ADD_REMOVE: "add or remove one record",
        Neighbours.REPLACE_ONE: "replace one record",
    }[neighbours]


def claim_and_relation(claim: Claim) -> str:
    """A claim in a row: "(1, 1e-05)-DP, add or remove one record"."""
    name = claim.in_words
    if isinstance(claim, PrivacyClaim):
        name = f"({rounded(claim.epsilon)}, {rounded(claim.delta)})-DP"
    return f"{name}, {relation(claim.neighbours)}"


def detects_from(power: Power, claim: Claim) -> str:
    """The smallest leak that an audit detects: "detects epsilon 1.5 with 80 % power"."""
    _, least, gaussian = power
    return NOTHING_DETECTED if least is None else detects(claim.quantity, least, gaussian)


def detects(quantity: Quantity, least: float, gaussian: float | None) -> str:
    """The same for a smallest leak, and the smallest Gaussian one."""
    gaussian_too = "" if gaussian is None else f" (Gaussian leak: {rounded_up(gaussian)})"
    return f"detects {quantity.noun} {rounded_up(least)} with 80 % power{gaussian_too}"
