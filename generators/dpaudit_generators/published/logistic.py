"""Logistic regressions fitted side by side: the teachers of two published PATE-GANs."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from dpaudit.protocols import FloatArray

_STEPS: Final = 50  # at most; six to ten will do
_CERTAIN: Final = 40.0  # a margin whose chance is 1 in float64
_RESIDUAL: Final = 1e-9  # largest entry of the gradient at a solution


def fit_logistic(
    rows: npt.NDArray[np.floating],
    labels: npt.NDArray[np.floating],
    *,
    weights: npt.NDArray[np.floating] | None = None,
) -> FloatArray:
    """Fits B logistic regressions, each independent of the others to the last bit.

    Each minimises half the squared norm of its coefficients plus the sum of its rows' logistic
    losses (L2 penalty with C = 1; the intercept goes free), by Newton's method from 0.

    Args:
        rows: Their rows [B, n, width].
        labels: 0 or 1, [B, n].
        weights: How much each row counts [B, n]; 1 if left out.

    Returns:
        Coefficients and, last, intercepts, [B, width + 1]. A regression whose rows are all of one
        class says so whatever it is asked: coefficients 0, an intercept of -40 or 40.
    """
    count, n, width = rows.shape
    design = np.ones((count, n, width + 1))
    design[..., :width] = rows
    labels = labels.astype(np.float64)
    counts = np.ones((count, n)) if weights is None else weights.astype(np.float64)
    ones, every = (counts * labels).sum(axis=1), counts.sum(axis=1)
    single = (ones == 0.0) | (ones == every)
    penalty = np.ones(width + 1)
    penalty[width] = 0.0
    found = np.zeros((count, width + 1))
    margins = np.zeros((count, n))
    done = single.copy()
    for _ in range(_STEPS):
        chances = expit(margins)
        slope = _gradient(design, counts * (chances - labels)) + penalty * found
        done |= np.abs(slope).max(axis=1) <= _RESIDUAL
        if done.all():
            break
        curved = design * (counts * chances * (1.0 - chances))[..., None]
        hessian = design.swapaxes(1, 2) @ curved
        hessian[:, range(width + 1), range(width + 1)] += penalty + 1e-12
        step = -np.linalg.solve(hessian, slope[..., None])
        change = (design @ step)[..., 0]
        step = step[..., 0]
        length = np.where(done, 0.0, 1.0)
        descent = (slope * step).sum(axis=1)
        for _ in range(_STEPS):  # back while the step goes far beyond the lowest point
            moved = counts * (expit(margins + length[:, None] * change) - labels)
            ahead = (moved * change).sum(axis=1)
            ahead += ((found + length[:, None] * step) * penalty * step).sum(axis=1)
            far = ahead > -0.5 * descent
            far &= ~done
            if not far.any():
                break
            length[far] /= 2.0
        found += length[:, None] * step
        margins += length[:, None] * change
    found[single] = 0.0
    found[single, width] = np.where(ones[single] > 0.0, _CERTAIN, -_CERTAIN)
    return found


def _gradient(design: FloatArray, residuals: FloatArray) -> FloatArray:
    return (residuals[:, None, :] @ design)[:, 0]
