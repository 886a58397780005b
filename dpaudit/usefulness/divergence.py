"""Kullback-Leibler divergence between two samples, from distances to nearest neighbours.

Pérez-Cruz 2008: no density is estimated. The estimate converges to the divergence for continuous
distributions, slowly where there are many dimensions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpaudit.errors import DataError, SettingsError
from dpaudit.plugins.protocols import FloatArray


class Divergence(NamedTuple):
    """An estimate of a Kullback-Leibler divergence, in nats.

    Attributes:
        value: The estimate; it may be below 0.
        standard_error: How far chance alone carries it; its bias is no part of this.
    """

    value: float
    standard_error: float


def divergence(sample: FloatArray, other: FloatArray, *, neighbour: int = 1) -> Divergence:
    """Estimates the divergence of the distribution of one sample from that of another.

    Args:
        sample: Rows [n, d] of P.
        other: Rows [m, d] of Q, independent of the sample.
        neighbour: Which nearest neighbour's distance is taken; more is steadier and more biased.

    Returns:
        The estimate of KL(P, Q).

    Raises:
        SettingsError: If `neighbour` is below 1.
        DataError: If there are too few rows, or rows repeat: then there is no density.
    """
    if neighbour < 1:
        raise SettingsError(f"`neighbour` must be at least 1, got {neighbour}")
    least = min(len(sample) - 1, len(other))
    if least < neighbour:
        raise DataError(f"{least} neighbours at most, `neighbour` is {neighbour}: give more rows")
    own = _distances(sample, sample, neighbour + 1)[:, -1]  # the first neighbour is the row itself
    across = _distances(sample, other, neighbour)[:, -1]
    if not (own > 0).all() or not (across > 0).all():
        raise DataError("rows repeat: an estimate from distances needs continuous columns")
    terms = sample.shape[1] * np.log(across / own)
    shift = np.log(len(other) / (len(sample) - 1))
    error = terms.std(ddof=1) / np.sqrt(len(terms))
    return Divergence(float(terms.mean() + shift), float(error))


def _distances(rows: FloatArray, among: FloatArray, count: int) -> FloatArray:
    """Distances [n, count] to the nearest neighbours, nearest first."""
    from scipy.spatial import KDTree

    found, _ = KDTree(among).query(rows, k=np.arange(1, count + 1))
    return np.asarray(found, dtype=np.float64)
