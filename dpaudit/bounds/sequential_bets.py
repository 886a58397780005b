"""The bets of the pair process: a grid of attacks, each against its nearest innocent one.

Under an (ε, δ)-DP claim the outcome of a pair of trials, one of either world, follows a product
p of two Bernoulli distributions whose error rates lie in the convex set C of `project`. For an
alternative q outside C and its projection p* on C, the factor q(x)/p*(x) has expectation at most
1 under every p in C.

Proof. The products p are not a convex set of distributions, so that the general theorem on
reverse information projections (Grünwald, de Heide and Koolen 2024, Theorem 1) does not apply
as it stands. But the factor splits by world, and the expectation of either part is linear in its
rate and 1 at p*:

    E_p[q/p*] = (1 − s)(1 − t),   s = g·(FPR − FPR*),   t = h·(FNR − FNR*),

where (g, h) is the gradient at p* of the divergence that the projection minimises. A minimum of a
convex function over a convex set has s + t ≥ 0 for every p in C: on either segment of the
boundary, in the corner and inside. Both parts are expectations of positive numbers, so by the
inequality of the means (1 − s)(1 − t) ≤ (1 − (s + t)/2)² ≤ 1. ∎
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from dpaudit.bounds._checks import FloatArray
from dpaudit.bounds.sequential_outcomes import PairErrors
from dpaudit.bounds.sequential_projection import LARGEST_EPSILON, ErrorRates, project

# Alternatives lie on the boundaries of weaker claims, epsilon + gap: in the corner, where
# randomised response leaks, and where one error rate is nearly 0 and the other .5 or .8: attacks
# that recognise half or a fifth of their targets and are seldom wrong about it. The share of the
# corners decides how soon a gross leak is proved; a larger one delays the others. The smallest
# gaps share one place: they matter in long runs only, where a factor of 2 is soon made up.
_GAPS = np.array([0.25, 0.5, 1.0, 2.0, 4.0, 8.0])
_GAP_SHARES = np.array([0.1, 0.1, 0.2, 0.2, 0.2, 0.2])
_LARGE_RATES = np.array([0.5, 0.8])
_CORNER_SHARE = 0.4


@dataclass(frozen=True, eq=False)
class PairBets:
    """What every alternative wins or loses, in logarithms, by an outcome of either world.

    Attributes:
        log_weights: Share of each alternative in the first wealth; shape (alternatives,).
        log_out: By the guess in the "out" world, right or wrong; shape (..., alternatives, 2),
            where ... is the shape of the claims.
        log_in: By the guess in the "in" world, right or wrong; same shape.
    """

    log_weights: FloatArray
    log_out: FloatArray
    log_in: FloatArray

    @classmethod
    def against(cls, epsilon: npt.ArrayLike, delta: float) -> PairBets:
        """The bets against (ε, δ)-DP claims.

        Args:
            epsilon: Claimed ε, not negative; one or several.
            delta: Claimed δ, in [0, 1).

        Returns:
            Bets whose factors have expectation at most 1 under their claim.
        """
        claims = np.asarray(epsilon, dtype=np.float64)[..., None]
        bet = alternatives(claims, delta)
        null = project(bet, epsilon=claims, delta=delta)
        log_out, log_in = (
            np.stack([np.log1p(-q) - np.log1p(-p), np.log(q) - np.log(p)], axis=-1)
            for q, p in zip(bet, null, strict=True)
        )
        return cls(_log_weights(), log_out, log_in)

    def one(self, index: int) -> PairBets:
        """The bets against one of several claims, by its position on the first axis."""
        return PairBets(self.log_weights, self.log_out[index], self.log_in[index])

    def log_e_values(self, errors: PairErrors) -> FloatArray:
        """Log of the average wealth after each of the given counts.

        Args:
            errors: Pairs and errors so far; shape (pairs,).

        Returns:
            Log e-values; shape (..., pairs).
        """
        log_out, log_in = self.log_out[..., None, :, :], self.log_in[..., None, :, :]
        log_wealths = (
            self.log_weights
            + (errors.pairs - errors.wrong_out)[:, None] * log_out[..., 0]
            + errors.wrong_out[:, None] * log_out[..., 1]
            + (errors.pairs - errors.wrong_in)[:, None] * log_in[..., 0]
            + errors.wrong_in[:, None] * log_in[..., 1]
        )
        e_values: FloatArray = np.logaddexp.reduce(log_wealths, axis=-1)
        return e_values


def alternatives(claims: FloatArray, delta: float) -> ErrorRates:
    """Error rates to bet on, symmetric in the two worlds, all of them outside the claim.

    Args:
        claims: Claimed ε; shape (..., 1).
        delta: Claimed δ, in [0, 1).

    Returns:
        Rates on the boundaries of weaker claims; shape (..., alternatives).
    """
    weaker = np.minimum(claims, LARGEST_EPSILON) + _GAPS
    corner = (1.0 - delta) * expit(-weaker)
    columns = [(corner, corner)]
    for rate in _LARGE_RATES:
        large = np.full_like(weaker, (1.0 - delta) * rate)
        small = (1.0 - delta) * (1.0 - rate) * np.exp(-weaker)
        columns += [(small, large), (large, small)]
    fprs, fnrs = zip(*columns, strict=True)
    return ErrorRates(np.concatenate(fprs, axis=-1), np.concatenate(fnrs, axis=-1))


def _log_weights() -> FloatArray:
    """Log share of each alternative, in the order of `alternatives`."""
    others = 2 * _LARGE_RATES.size
    kinds = np.repeat([_CORNER_SHARE, (1.0 - _CORNER_SHARE) / others], [1, others])
    log_shares: FloatArray = np.log(np.outer(kinds, _GAP_SHARES).ravel())
    return log_shares
