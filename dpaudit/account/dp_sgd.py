"""DP-SGD: noisy sums of clipped gradients over Poisson-sampled batches."""

from __future__ import annotations

import math
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from dpaudit.errors import SettingsError
from dpaudit.model.choices import member_named
from dpaudit.model.claim import CurveClaim, Neighbours, PrivacyClaim, curve_points
from dpaudit.model.setting import AT_LEAST_1, BETWEEN_0_AND_1, POSITIVE, NumberRange, check_number

if TYPE_CHECKING:
    from dp_accounting import PrivacyAccountant

_PRECISION: Final = 1e-3
"""Largest unspent share of a budget for a calibrated noise multiplier."""
_CURVE_END: Final = 1e-6
"""Smallest delta of a privacy curve."""


class DpSgdMethod(StrEnum):
    """How the cost of all steps is proved; each is an upper bound."""

    RDP = "rdp"
    """Rényi divergences add up; add-remove neighbours only."""
    PLD = "pld"
    """Privacy loss distributions are convolved: tight up to the grid."""


_PROOF: Final = {
    DpSgdMethod.RDP: "Rényi divergences of the steps added up",
    DpSgdMethod.PLD: "privacy loss distributions of the steps convolved",
}


def dp_sgd_claim(
    *,
    steps: int,
    rate: float,
    noise_multiplier: float,
    delta: float,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    method: DpSgdMethod | str = DpSgdMethod.PLD,
) -> PrivacyClaim:
    """The claim of DP-SGD (Abadi et al. 2016; the subsampled Gaussian of Mironov et al. 2019).

    The proof covers only this procedure: every step takes each record into the batch independently
    with a public rate, clips each record's gradient, adds noise to the sum (an empty batch too) and
    divides by the expected batch size, never the realised one. Fixed-size batches of a shuffled
    table are not Poisson sampling.

    Args:
        steps: The number of steps, fixed beforehand, at least 1.
        rate: Probability that a record is in a batch, in (0, 1].
        noise_multiplier: Standard deviation of the noise in units of the clipping norm, positive.
        delta: The delta of the claim, in (0, 1).
        neighbours: The neighbouring relation.
        method: How the cost is proved.

    Returns:
        The claim: a function of public settings only, hence releasable.

    Raises:
        SettingsError: If an argument is outside its range, or the method has no proof for the
            relation.
        ClaimError: If nothing can be claimed: the cost is 0 (delta covers it) or infinite.
    """
    _check_run(steps=steps, rate=rate, noise_multiplier=noise_multiplier, delta=delta)
    proof = member_named("method", DpSgdMethod, method)
    if proof is DpSgdMethod.RDP and neighbours is Neighbours.REPLACE_ONE:
        raise SettingsError(
            "method rdp has no proof for replace-one neighbours under Poisson sampling: use pld"
        )
    accountant = _accountant_after(
        proof, neighbours, steps=steps, rate=rate, noise_multiplier=noise_multiplier
    )
    return PrivacyClaim(
        epsilon=float(accountant.get_epsilon(delta)),
        delta=delta,
        neighbours=neighbours,
        source=(
            f"DP-SGD: {steps} steps, Poisson sampling at rate {rate:g}, noise multiplier "
            f"{noise_multiplier:g}; {_PROOF[proof]} (dp-accounting)"
        ),
    )


def dp_sgd_curve(
    *, steps: int, rate: float, noise_multiplier: float, points: int = 60
) -> CurveClaim:
    """The privacy curve of DP-SGD, for adding or removing one record.

    Args:
        steps: The number of steps, as in `dp_sgd_claim`.
        rate: Probability that a record is in a batch.
        noise_multiplier: Standard deviation of the noise in units of the clipping norm.
        points: Points of the curve, equally far apart in epsilon, the last one at delta 1e-6.

    Returns:
        The curve by privacy loss distributions.

    Raises:
        SettingsError: If an argument is outside its range.
        ClaimError: If nothing can be claimed.
    """
    last = dp_sgd_claim(
        steps=steps, rate=rate, noise_multiplier=noise_multiplier, delta=_CURVE_END
    )  # checks the arguments
    accountant = _accountant_after(
        DpSgdMethod.PLD,
        Neighbours.ADD_REMOVE,
        steps=steps,
        rate=rate,
        noise_multiplier=noise_multiplier,
    )
    curve = [
        (float(epsilon), float(accountant.get_delta(epsilon)))
        for epsilon in np.linspace(0.0, last.epsilon, points + 1)[1:]
    ]
    return CurveClaim(points=curve_points(curve), source=last.source)


@cache
def dp_sgd_noise_multiplier(*, epsilon: float, delta: float, steps: int, rate: float) -> float:
    """The smallest noise that keeps DP-SGD within a budget, for adding or removing one record.

    Args:
        epsilon: The epsilon of the budget, positive.
        delta: The delta of the budget, in (0, 1).
        steps: The number of steps, as in `dp_sgd_claim`.
        rate: Probability that a record is in a batch.

    Returns:
        A noise multiplier that costs, by privacy loss distributions, between 99.9 and 100 % of
        epsilon.

    Raises:
        SettingsError: If an argument is outside its range.
        ClaimError: If delta covers the whole cost.
    """
    _check_run(steps=steps, rate=rate, noise_multiplier=1.0, delta=delta)
    check_number("epsilon", epsilon, POSITIVE)

    # First guess, by a normal score shifted by mu: epsilon = mu^2 / 2 + mu sqrt(2 log(1 / delta)).
    mu = math.sqrt(2.0 * (epsilon - math.log(delta))) - math.sqrt(-2.0 * math.log(delta))
    guess = -0.5 * math.log(math.log1p(mu**2 / (rate**2 * steps)))
    excess_at: dict[float, float] = {}
    while True:
        noise = math.exp(guess)
        claim = dp_sgd_claim(steps=steps, rate=rate, noise_multiplier=noise, delta=delta)
        excess_at[guess] = math.log(claim.epsilon / epsilon)
        if -_PRECISION <= excess_at[guess] <= 0.0:
            return noise
        guess = _interpolate(excess_at, aim=-_PRECISION / 2)


def _check_run(*, steps: int, rate: float, noise_multiplier: float, delta: float) -> None:
    check_number("steps", steps, AT_LEAST_1)
    check_number("rate", rate, NumberRange(above=0, most=1))
    check_number("noise_multiplier", noise_multiplier, POSITIVE)
    check_number("delta", delta, BETWEEN_0_AND_1)


def _interpolate(points: dict[float, float], *, aim: float) -> float:
    """Estimates where a decreasing function takes a value, from its two nearest known points.

    With one point the slope is taken as -1: epsilon is roughly inverse to the noise.
    """
    (x, y), *others = sorted(points.items(), key=lambda point: abs(point[1] - aim))
    slope = (y - others[0][1]) / (x - others[0][0]) if others else -1.0
    return x + (aim - y) / slope


def _accountant_after(
    method: DpSgdMethod, neighbours: Neighbours, *, steps: int, rate: float, noise_multiplier: float
) -> PrivacyAccountant:
    """An accountant that has composed all steps."""
    # Imported here: dp-accounting takes about a second to import, six when cold.
    from dp_accounting import (
        GaussianDpEvent,
        NeighboringRelation,
        PoissonSampledDpEvent,
        SelfComposedDpEvent,
    )
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    relation = {
        Neighbours.ADD_REMOVE: NeighboringRelation.ADD_OR_REMOVE_ONE,
        Neighbours.REPLACE_ONE: NeighboringRelation.REPLACE_ONE,
    }[neighbours]
    kind = RdpAccountant if method is DpSgdMethod.RDP else PLDAccountant
    accountant = kind(neighboring_relation=relation)
    step = PoissonSampledDpEvent(rate, GaussianDpEvent(noise_multiplier))
    accountant.compose(SelfComposedDpEvent(step, steps))
    return accountant
