"""Phrases about claims, power and odds, shared by plans and results; they load no pandas."""

from __future__ import annotations

import math
from typing import Final

from dpaudit.formatting import rounded, rounded_down, rounded_up
from dpaudit.model.claim import Claim, Neighbours, NoClaim, PrivacyClaim, Quantity
from dpaudit.results.verdict import Power

CURVE_FACTOR: Final = (
    "A curve factor of t means that the curve holds only with all its epsilons multiplied by t"
)
INFERRED: Final = "bounds and categories were inferred from the table itself"
PUBLIC_SCHEMA: Final = "write a public schema (start from dpaudit schema) and give it with --schema"
IN_FLOATING_POINT: Final = " in floating point"
"""After the verdict, if only the last bits of numbers prove a violation."""
FLOATING_POINT_REMEDY: Final = (
    "round outputs to a public grid, draw discrete noise, or use the snapping mechanism"
)
"""What ends a leak in floating point."""
NOTHING_DETECTED: Final = "cannot detect any leak with 80 % power"
_LARGEST = 1e6
"""Above this, only the order of magnitude of a factor is shown."""


def relation(neighbours: Neighbours, unit: str | None = None) -> str:
    """How the tables of both worlds differ: "add or remove one record".

    Args:
        neighbours: The relation.
        unit: The column of the unit whose rows differ; None if one row does.
    """
    verb = {Neighbours.ADD_REMOVE: "add or remove", Neighbours.REPLACE_ONE: "replace"}[neighbours]
    return f"{verb} {'one record' if unit is None else f'all rows of one {unit}'}"


def per_unit(claim: Claim) -> str:
    """The unit of a claim, after its name: " per patient_id"; empty for a claim per row."""
    return "" if claim.unit is None else f" per {claim.unit}"


def claim_and_relation(claim: Claim) -> str:
    """A claim in a row: "(1, 1e-05)-DP, add or remove one record"."""
    name = claim.in_words
    if isinstance(claim, PrivacyClaim):
        name = f"({rounded(claim.epsilon)}, {rounded(claim.delta)})-DP"
    return f"{name}, {relation(claim.neighbours, claim.unit)}"


def detects_from(power: Power, claim: Claim) -> str:
    """The smallest leak that an audit detects: "detects epsilon 1.5 with 80 % power".

    A small audit detects leaks that are larger than any bound it can prove: its bound then exceeds
    the claim but stays below the leak, which is said.
    """
    most, least, gaussian = power
    if least is None:
        return NOTHING_DETECTED
    gaussian_too = "" if gaussian is None else f" (Gaussian leak: {rounded_up(gaussian)})"
    by_less = f", by a lower bound of at most {rounded_down(most)}"
    limit = by_less if detects_beyond_limit(power) else ""
    return f"detects {claim.quantity.noun} {rounded_up(least)} with 80 % power{gaussian_too}{limit}"


def too_narrow(power: Power, claim: Claim) -> str:
    """How much too narrow noise is whose leak an audit detects: "noise 33 % too narrow".

    Empty if nothing is detected, or if the claim limits what no scale of noise gives by itself.
    """
    exponent = {Quantity.EPSILON: 1.0, Quantity.MU: 1.0, Quantity.RHO: 0.5}.get(claim.quantity)
    if exponent is None or power.detectable is None or isinstance(claim, NoClaim):
        return ""
    share = 1.0 - (claim.value / power.detectable) ** exponent
    return f"noise {math.ceil(100.0 * share)} % too narrow, if the leak shows clearly"


def detects_beyond_limit(power: Power) -> bool:
    """Whether the smallest leak that an audit detects is larger than the bound it can prove."""
    return power.detectable is not None and power.detectable > power.max_provable


def changed_odds(claim: Claim, proved: float | None) -> str:
    """How far a bound beyond a claim changes odds, as the end of a sentence.

    A lower bound e means that some set of outputs is more than exp(e) times as probable in one
    world as in the other, and by more than delta (by definition). An attacker who sees such an
    output multiplies prior odds by more than exp(e) (Bayes' theorem).

    Args:
        claim: The claim.
        proved: A lower bound on what it limits; None if nothing was scored.

    Returns:
        The words; empty without a bound, or if the claim has no meaning in odds.
    """
    if proved is None or not isinstance(claim, PrivacyClaim) or claim.epsilon > math.log(_LARGEST):
        return ""
    return (
        "; some outputs change the odds that a record was in the table by a factor of at least "
        f"{odds(proved, up=False)}, where the claim allows {odds(claim.epsilon, up=True)}"
        f"{but_for(claim)}"
    )


def odds(epsilon: float, *, up: bool) -> str:
    """exp(epsilon), rounded so that it never says more than holds."""
    if epsilon > math.log(_LARGEST):
        return "any factor" if up else "a million"
    factor = math.exp(epsilon)
    return rounded_up(factor) if up else rounded_down(factor)


def but_for(claim: PrivacyClaim) -> str:
    """The outputs that delta exempts, as the end of a sentence; empty if delta is 0."""
    if not claim.delta:
        return ""
    return f", apart from outputs of total probability {rounded(claim.delta)}"
