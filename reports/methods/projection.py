"""The pair of error rates that a privacy claim allows and that explains given rates best."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from dpaudit.bounds.inputs import FloatArray

# Halvings of an interval of length at most 1: its width ends below the spacing of the floats
# that hold the root, which lies above 5e-5 for every bet; elsewhere the absolute width
# is what counts.
_HALVINGS = 72

# From here on e^-epsilon is nothing beside any number of trials: no claim this weak can be
# refuted, and the limit only keeps the arithmetic in range.
LARGEST_EPSILON = 500.0


class ErrorRates(NamedTuple):
    """Error rates of attacks.

    Attributes:
        fpr: Probability of the guess "in" in the "out" world, in [0, 1].
        fnr: Probability of the guess "out" in the "in" world, in [0, 1]; same shape.
    """

    fpr: FloatArray
    fnr: FloatArray


def project(
    rates: ErrorRates,
    *,
    epsilon: npt.ArrayLike,
    delta: float,
    n_out: npt.ArrayLike = 1.0,
    n_in: npt.ArrayLike = 1.0,
) -> ErrorRates:
    """Projects error rates on those that an (ε, δ)-DP mechanism allows.

    The allowed rates are the convex set C = {FNR + e^ε·FPR ≥ 1 − δ, FPR + e^ε·FNR ≥ 1 − δ}
    (Kairouz, Oh and Viswanath 2015, Theorem 2.1). The projection minimises

        n_out·kl(fpr ‖ FPR) + n_in·kl(fnr ‖ FNR)  over C,

    where kl is the divergence of Bernoulli distributions: it is the reverse information
    projection of the given product distribution for weights 1, and the constrained maximum of
    the likelihood for observed rates weighted by their trials.

    The objective is convex. For rates outside C the minimum lies on the lower-left boundary: two
    segments that meet in the corner FPR = FNR = (1 − δ)/(1 + e^ε). On a segment the derivative
    increases, and its root is bisected to machine precision; a segment without a root ends the
    search in the corner. By strict convexity at most one segment has a root before the corner.

    Args:
        rates: Rates to project.
        epsilon: ε, not negative; like the weights, broadcast with the rates.
        delta: δ, in [0, 1).
        n_out: Weight of the "out" world, not negative.
        n_in: Weight of the "in" world, not negative.

    Returns:
        The projection, in the broadcast shape; rates in C are returned as they are.
    """
    fpr, fnr, weight_out, weight_in, claim = np.broadcast_arrays(
        *(np.asarray(value, dtype=np.float64) for value in (*rates, n_out, n_in, epsilon))
    )
    claim = np.minimum(claim, LARGEST_EPSILON)
    near: FloatArray = np.asarray(expit(-claim))  # 1/(1 + e^ε)
    far: FloatArray = np.asarray(expit(claim))  # e^ε/(1 + e^ε)
    corner = np.asarray((1.0 - delta) * near)
    rise = np.asarray((1.0 - delta) * far)

    # A point of a segment: the share w in (0, 1] of the corner that its steep rate keeps. The
    # flat rate is corner + rise·(1 − w), its complement delta + rise·w: no cancellation.
    steep_fpr = _share(fpr, fnr, weight_out, weight_in, corner, rise, delta)
    steep_fnr = _share(fnr, fpr, weight_in, weight_out, corner, rise, delta)
    on_fpr_segment = steep_fpr < 1.0
    projected_fpr = np.where(on_fpr_segment, corner * steep_fpr, corner + rise * (1.0 - steep_fnr))
    projected_fnr = np.where(on_fpr_segment, corner + rise * (1.0 - steep_fpr), corner * steep_fnr)

    # The inequalities of C over 1 + e^ε.
    allowed = (near * fnr + far * fpr >= corner) & (near * fpr + far * fnr >= corner)
    return ErrorRates(np.where(allowed, fpr, projected_fpr), np.where(allowed, fnr, projected_fnr))


def _share(
    steep: FloatArray,
    flat: FloatArray,
    n_steep: FloatArray,
    n_flat: FloatArray,
    corner: FloatArray,
    rise: FloatArray,
    delta: float,
) -> FloatArray:
    """Where on the segment of the steep rate the objective is least; 1 is the corner."""

    def slope(share: FloatArray) -> FloatArray:
        a, b, one_minus_b = corner * share, corner + rise * (1.0 - share), delta + rise * share
        steep_part = corner * n_steep * ((1.0 - steep) / (1.0 - a) - steep / a)
        flat_part = rise * n_flat * ((1.0 - flat) / one_minus_b - flat / b)
        difference: FloatArray = steep_part - flat_part
        return difference

    high = np.ones_like(steep)
    before_corner = slope(high) > 0.0
    low = np.minimum(steep / corner, 1.0)  # the steep rate never wants to shrink
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        beyond = slope(middle) > 0.0
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    return np.where(before_corner, high, 1.0)
