"""Expected privacy loss of a synthetic table: a heuristic, no bound of differential privacy.

Triastcyn and Faltings 2018 (section 4.2): instead of training without a record, the synthetic rows
nearest to it are taken out; the divergence between the table and what is left stands for the
privacy loss of that record, and Chebyshev's inequality for what lies beyond the records that were
looked at. Nothing follows from a small number: whether a record's absence shows in its nearest rows
is an assumption.

The divergence is that of Pérez-Cruz 2008, from distances to nearest neighbours: no density is
estimated. It converges for continuous distributions, slowly where there are many dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from dpaudit.errors import DataError, SettingsError
from dpaudit.model.encoding import encode
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray
from dpaudit.seeds import Stream


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


@dataclass(frozen=True, kw_only=True)
class ExpectedPrivacyLoss:
    """What the heuristic says of one synthetic table.

    Attributes:
        mean: Mean estimated loss over the records.
        upper_deviation: Root of their upper semi-variance.
        mu: Loss that Chebyshev's inequality leaves with probability `gamma`, if mean and
            semi-variance of all records were those of the ones that were looked at.
        gamma: That probability.
        records: Real records that were looked at.
        removed: Synthetic rows taken out for each.
    """

    mean: float
    upper_deviation: float
    mu: float
    gamma: float
    records: int
    removed: int


def expected_privacy_loss(
    real: pd.DataFrame,
    synthetic: pd.DataFrame,
    schema: Schema,
    *,
    records: int = 200,
    removed: int | None = None,
    neighbour: int = 1,
    gamma: float = 1e-5,
    seed: int = 0,
) -> ExpectedPrivacyLoss:
    """Estimates the expected privacy loss of records by what is near to them.

    Args:
        real: The table that the generator was trained on.
        synthetic: What it gave; continuous enough that no rows repeat.
        schema: Their schema, by which rows are scaled.
        records: Real records to look at, drawn at random; all if there are fewer.
        removed: Synthetic rows that stand for one record; by default synthetic rows per real one.
        neighbour: Which nearest neighbour's distance the divergence is estimated from.
        gamma: Probability of a larger loss, in (0, 1).
        seed: Root of the random streams.

    Returns:
        The estimate.

    Raises:
        SettingsError: If a setting is out of range.
        DataError: If a table is too small, or synthetic rows repeat.
    """
    if records < 2:
        raise SettingsError(f"`records` must be at least 2, got {records}")
    if not 0.0 < gamma < 1.0:
        raise SettingsError(f"`gamma` must be in (0, 1), got {gamma}")
    if len(real) < 2:
        raise DataError(f"the real table has {len(real)} rows, 2 are needed: give more")
    per_record = max(round(len(synthetic) / len(real)), 1) if removed is None else removed
    rng = Stream(seed, "utility", "privacy-loss").rng()
    drawn = rng.choice(len(real), min(records, len(real)), replace=False)
    losses = removal_losses(
        encode(real, schema)[drawn],
        encode(synthetic, schema),
        removed=per_record,
        neighbour=neighbour,
    )
    deviation = upper_deviation(losses)
    return ExpectedPrivacyLoss(
        mean=float(losses.mean()),
        upper_deviation=deviation,
        mu=float(losses.mean()) + chebyshev_reach(deviation, gamma=gamma),
        gamma=gamma,
        records=len(drawn),
        removed=per_record,
    )


def removal_losses(
    records: FloatArray, rows: FloatArray, *, removed: int, neighbour: int = 1
) -> FloatArray:
    """Divergence of a table from itself without the rows nearest to each record.

    The estimate of `divergence`, for two samples that share rows: a row that is
    in both is no neighbour of itself in either.

    Args:
        records: Records [r, d].
        rows: Synthetic rows [n, d].
        removed: How many of them are taken out for a record.
        neighbour: Which nearest neighbour's distance is taken.

    Returns:
        The estimates [r], in nats; chance alone makes some negative.

    Raises:
        SettingsError: If a number is below 1.
        DataError: If too few rows would be left, or rows repeat.
    """
    from scipy.spatial import KDTree

    if removed < 1 or neighbour < 1:
        raise SettingsError(f"`removed` ({removed}) and `neighbour` ({neighbour}) begin at 1")
    n, d = rows.shape
    if n - removed <= neighbour + 1:
        raise DataError(f"{n} synthetic rows less {removed} are too few: give more")
    tree = KDTree(rows)
    # Of a row's nearest, `removed` may go: one more than that and it has `neighbour` left.
    found = tree.query(rows, k=np.arange(2, neighbour + removed + 2))  # 1 is the row itself
    distances, places = np.asarray(found[0], dtype=np.float64), np.asarray(found[1])
    if not (distances > 0).all():
        raise DataError("synthetic rows repeat: the heuristic needs continuous columns")
    own = distances[:, neighbour - 1]
    nearest = np.asarray(tree.query(records, k=np.arange(1, removed + 1))[1])
    losses = np.empty(len(records))
    for number, gone in enumerate(nearest):
        is_gone = np.zeros(n, dtype=bool)
        is_gone[gone] = True
        left = ~is_gone[places]
        position = (left.cumsum(axis=1) == neighbour).argmax(axis=1)
        across = distances[np.arange(n), position]
        others = n - removed - ~is_gone  # rows left that are not the row itself
        losses[number] = np.mean(d * np.log(across / own) + np.log(others / (n - 1)))
    return losses


def upper_deviation(values: FloatArray) -> float:
    """Root of the upper semi-variance of values [n] about their mean."""
    above = np.clip(values - values.mean(), 0.0, None)
    return float(np.sqrt(np.mean(above**2)))


def chebyshev_reach(deviation: float, *, gamma: float) -> float:
    """How far above its mean a quantity lies with probability `gamma` at most (Chebyshev).

    Args:
        deviation: Root of its upper semi-variance.
        gamma: The probability.

    Returns:
        The distance from the mean.
    """
    return deviation / float(np.sqrt(gamma))
