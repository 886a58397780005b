"""DP-SGD: noisy sums of clipped gradients over Poisson-sampled batches."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from dpaudit.account._checks import check_positive_delta
from dpaudit.errors import SettingsError
from dpaudit.model.claim import Neighbours, PrivacyClaim

if TYPE_CHECKING:
    from dp_accounting import PrivacyAccountant


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
    """What DP-SGD proves (Abadi et al. 2016; the subsampled Gaussian of Mironov et al. 2019).

    The proof is about this procedure and no other: every step takes each record into the batch
    independently with a public rate, clips each record's gradient, adds noise to the sum (an empty
    batch too) and divides by the expected batch size, never the realised one. Fixed-size batches
    of a shuffled table are not Poisson sampling.

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
    if steps < 1:
        raise SettingsError(f"`steps` is {steps}: use at least 1")
    if not 0.0 < rate <= 1.0:
        raise SettingsError(f"`rate` is {rate}: choose a sampling probability in (0, 1]")
    if not 0.0 < noise_multiplier < math.inf:
        raise SettingsError(
            f"`noise_multiplier` is {noise_multiplier}: choose it positive and finite"
        )
    check_positive_delta(delta)
    if method not in list(DpSgdMethod):
        raise SettingsError(f"`method` is {method!r}: use {', '.join(DpSgdMethod)}")
    proof = DpSgdMethod(method)
    if proof is DpSgdMethod.RDP and neighbours is Neighbours.REPLACE_ONE:
        raise SettingsError(
            "method rdp has no proof for replace-one neighbours under Poisson sampling: use pld"
        )
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent

    step = PoissonSampledDpEvent(rate, GaussianDpEvent(noise_multiplier))
    accountant = _accountant(proof, neighbours)
    accountant.compose(SelfComposedDpEvent(step, steps))
    return PrivacyClaim(
        epsilon=float(accountant.get_epsilon(delta)),
        delta=delta,
        neighbours=neighbours,
        source=(
            f"DP-SGD: {steps} steps, Poisson sampling at rate {rate:g}, noise multiplier "
            f"{noise_multiplier:g}; {_PROOF[proof]} (dp-accounting)"
        ),
    )


def _accountant(method: DpSgdMethod, neighbours: Neighbours) -> PrivacyAccountant:
    # Only here: dp-accounting takes about a second to import, six when cold.
    from dp_accounting import NeighboringRelation

    relation = {
        Neighbours.ADD_REMOVE: NeighboringRelation.ADD_OR_REMOVE_ONE,
        Neighbours.REPLACE_ONE: NeighboringRelation.REPLACE_ONE,
    }[neighbours]
    if method is DpSgdMethod.RDP:
        from dp_accounting.rdp import RdpAccountant

        return RdpAccountant(neighboring_relation=relation)
    from dp_accounting.pld import PLDAccountant

    return PLDAccountant(neighboring_relation=relation)
