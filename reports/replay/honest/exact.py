"""What a step or a release costs, by formula: nothing here knows how a replay computes it."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

DELTA: Final = 1e-5


def gaussian_epsilon(mu: float, delta: float = DELTA) -> float:
    """Epsilon at delta of a Gaussian answer that moves by mu deviations (Balle and Wang 2018)."""

    def excess(epsilon: float) -> float:
        above, below = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
        return float(ndtr(above) - math.exp(epsilon + log_ndtr(below))) - delta

    return 0.0 if excess(0.0) <= 0.0 else float(brentq(excess, 0.0, 50.0 + mu**2, xtol=1e-12))


def gaussian_mu(epsilon: float, delta: float = DELTA) -> float:
    """The largest mu that costs epsilon at delta."""
    return float(brentq(lambda mu: gaussian_epsilon(mu, delta) - epsilon, 1e-4, 50.0, xtol=1e-12))


def linear_mu(matrix: Any, place: int, sigma: float) -> float:
    """Mu of `matrix @ (counts + noise)`, noise of deviation sigma, if one count moves by 1.

    The part of the moved direction that the matrix does not drop: its projection on the row space.
    """
    _, singular, rows = np.linalg.svd(np.atleast_2d(matrix), full_matrices=False)
    kept = rows[singular > 1e-10 * singular[0]]
    return float(np.linalg.norm(kept[:, place])) / sigma


def moved_mu(noise: Any, moved: Any, sigma: float) -> float:
    """Mu of a release that a record moves so far, with `noise @ draws`, each of deviation sigma."""
    return float(np.sqrt(moved @ np.linalg.pinv(noise @ noise.T) @ moved)) / sigma


def worst_place(matrix: Any) -> int:
    """The count that such a release shows best."""
    return int(np.argmax([linear_mu(matrix, at, 1.0) for at in range(np.shape(matrix)[-1])]))


def matrix_of(linear: Any, size: int) -> Any:
    """The matrix of a linear function of `size` numbers."""
    return np.stack([np.ravel(linear(row)) for row in np.eye(size)], axis=1)


def pure_epsilon(one: Any, other: Any) -> float:
    """The largest loss between two densities or tables of probabilities."""
    return float(np.abs(np.log(one) - np.log(other)).max())


def epsilon_at(one: Any, other: Any, delta: float) -> float:
    """Epsilon at delta between two tables of probabilities (a density times its step)."""

    def excess(epsilon: float) -> float:
        factor = math.exp(epsilon)
        ahead = np.maximum(one - factor * other, 0.0).sum()
        return float(max(ahead, np.maximum(other - factor * one, 0.0).sum())) - delta

    return 0.0 if excess(0.0) <= 0.0 else float(brentq(excess, 0.0, 60.0, xtol=1e-12))


def laplace_pdf(at: Any, scale: float) -> Any:
    """Density of Laplace noise."""
    return np.exp(-np.abs(at) / scale) / (2 * scale)


def laplace_tail(at: Any, scale: float) -> Any:
    """Chance that Laplace noise is at least `at`."""
    small = 0.5 * np.exp(-np.abs(at) / scale)
    return np.where(np.asarray(at) > 0, small, 1.0 - small)


def rounded_laplace(whole: Any, scale: float) -> Any:
    """Chance that Laplace noise, rounded, is a whole number."""
    return laplace_tail(np.asarray(whole) - 0.5, scale) - laplace_tail(
        np.asarray(whole) + 0.5, scale
    )
