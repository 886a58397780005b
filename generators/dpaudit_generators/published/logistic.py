"""Logistic regressions fitted side by side: the teachers of two published PATE-GANs.

Each is the minimum of a strictly convex function, so any method finds the same one. Newton's method
with a line search needs four or five Hessians from 0, even for separable classes; on convergence a
last step reuses the previous Hessian. Gradients are exact; a Hessian only gives the direction, and
is in single precision if that suffices.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import expit

from dpaudit.plugins.protocols import FloatArray

_CERTAIN: Final = 40.0  # a margin whose probability is 1 in float64
_RESIDUAL: Final = 1e-9  # largest entry of a solution's gradient
_ROUNDING: Final = 1e-14  # or this share of the gradient at 0, the limit of float64
_FAST: Final = 0.02  # a step that shrinks the gradient to this share needs no new Hessian
_CLOSE: Final = 0.2  # share of a slope that may be left before the last step of a search
_STEPS: Final = 100  # at most; rows in [-1, 1] need about 7
_LANES: Final = 8  # float64 numbers in a cache line
_TAME: Final = 1e5  # largest eigenvalue of a Hessian, with smallest 1, that float32 suffices for
_AT_ONCE: Final = 16  # regressions that share the cost of an operation, and a cache


def fit_logistic(
    rows: npt.NDArray[np.floating],
    labels: npt.NDArray[np.floating],
    *,
    weights: npt.NDArray[np.floating] | None = None,
) -> FloatArray:
    """Fits B logistic regressions, each bit-identical to fitting it alone.

    Each minimises half the squared norm of its coefficients plus the sum of its rows' logistic
    losses: an L2 penalty with C = 1 that leaves the intercept free, as in scikit-learn.

    Args:
        rows: Their rows [B, n, width], scaled; beyond 1e5 the search may miss the solution.
        labels: 0 or 1, [B, n].
        weights: How much each row counts [B, n]; 1 if left out.

    Returns:
        Coefficients and, last, intercepts, [B, width + 1]. A regression whose rows are all of one
        class always predicts that class: coefficients 0, an intercept of -40 or 40.
    """
    many, n, width = rows.shape
    counts = np.ones((many, n)) if weights is None else weights.astype(np.float64)
    found = np.zeros((many, width + 1))
    ones, every = (counts * labels).sum(axis=1), counts.sum(axis=1)
    found[:, width] = np.where(ones > 0.0, _CERTAIN, -_CERTAIN)
    mixed = (ones > 0.0) & (ones < every)
    # An eigenvalue is at most the trace; a maximum does not depend on the order of its terms.
    largest = np.abs(rows).max(axis=(1, 2), initial=1.0).astype(np.float64)
    tame = every * (width + 1) * largest**2 / 4.0 < _TAME
    for chosen, precision in ((mixed & tame, np.float32), (mixed & ~tame, np.float64)):
        numbers = np.flatnonzero(chosen)
        for start in range(0, len(numbers), _AT_ONCE):
            part = numbers[start : start + _AT_ONCE]
            design = np.zeros((len(part), n, -(-(width + 1) // _LANES) * _LANES))
            design[..., :width] = rows[part]
            design[..., width] = 1.0
            penalty = np.ones(design.shape[2])
            penalty[width] = 0.0
            solved = _minimum(
                design, labels[part].astype(np.float64), counts[part], penalty, precision
            )
            found[part] = solved[:, : width + 1]
    return found


def _minimum(
    design: FloatArray,
    labels: FloatArray,
    counts: FloatArray,
    penalty: FloatArray,
    precision: type[np.float32 | np.float64],
) -> FloatArray:
    """Minimises counted logistic losses and half the penalised squares, from 0: [b, columns]."""
    many, n, columns = design.shape
    found, margins = np.zeros((many, columns)), np.zeros((many, n))
    coarse: npt.NDArray[np.floating] = design.astype(precision, copy=False)
    # The identity is for regressions that start at their minimum and so never get a Hessian.
    factors = torch.from_numpy(np.tile(np.eye(columns, dtype=precision), (many, 1, 1)))
    goal, before = np.zeros(many), np.zeros(many)
    for step in range(_STEPS):
        chances = expit(margins)
        slope = ((counts * (chances - labels))[:, None] @ design)[:, 0] + penalty * found
        size = np.abs(slope).max(axis=1)
        if step == 0:
            goal = np.maximum(_RESIDUAL, _ROUNDING * size)
        left = size > goal
        if not left.any():
            break
        new = np.flatnonzero(left & ~(size < _FAST * before))
        if len(new) > 0:
            factors[new] = _factors(coarse, counts * chances * (1.0 - chances), penalty, new)
        downhill = torch.from_numpy(np.negative(slope).astype(precision))
        solved = torch.cholesky_solve(downhill[..., None], factors)
        direction = solved.numpy().astype(np.float64)
        change, direction = (design @ direction)[..., 0], direction[..., 0]
        length = left.astype(np.float64)
        if len(new) > 0:
            length[new] = _lengths(
                (margins[new], change[new], labels[new], counts[new]),
                inner=(penalty * found[new] * direction[new]).sum(axis=1),
                square=(penalty * direction[new] ** 2).sum(axis=1),
            )
        found += length[:, None] * direction
        margins += length[:, None] * change
        before = size
    return found


def _factors(
    design: npt.NDArray[np.floating],
    curvature: FloatArray,
    penalty: FloatArray,
    chosen: npt.NDArray[np.intp],
) -> torch.Tensor:
    """Cholesky factors of the Hessians of the chosen regressions."""
    some = design if len(chosen) == len(design) else design[chosen]
    root = some * np.sqrt(curvature[chosen]).astype(some.dtype)[..., None]
    hessian = root.swapaxes(1, 2) @ root
    diagonal = np.arange(len(penalty))
    hessian[:, diagonal, diagonal] += penalty + 1e-12  # in case all probabilities are 0 or 1
    factors: torch.Tensor = torch.linalg.cholesky(torch.from_numpy(hessian))
    return factors


def _lengths(
    rows: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    *,
    inner: FloatArray,
    square: FloatArray,
) -> FloatArray:
    """The step along each direction, close to the minimum, by Newton's method.

    A step that leaves the interval known to enclose the minimum is replaced by bisection.

    Args:
        rows: Margins, their change along the direction, labels and counts, each [b, n].
        inner: Penalised product of coefficients and direction [b].
        square: Penalised square of the direction [b].
    """
    margins, change, labels, counts = rows
    weighted = counts * change
    first = (weighted * (expit(margins) - labels)).sum(axis=1) + inner
    length: FloatArray = np.ones_like(first)
    low, high = np.zeros_like(first), np.full_like(first, np.inf)
    close = np.zeros(len(first), dtype=np.bool_)
    for _ in range(_STEPS):
        chances = expit(margins + length[:, None] * change)
        slope = (weighted * (chances - labels)).sum(axis=1) + inner + length * square
        curvature = (weighted * change * chances * (1.0 - chances)).sum(axis=1) + square
        low, high = np.where(slope > 0.0, low, length), np.where(slope > 0.0, length, high)
        better = np.clip(length - slope / curvature, length / 4.0, length * 4.0)
        better = np.where((low <= better) & (better <= high), better, (low + high) / 2.0)
        length = np.where(close, length, better)
        close |= np.abs(slope) <= _CLOSE * np.abs(first)
        if close.all():
            break
    return length
