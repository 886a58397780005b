"""Exact and near copies of train records in a synthetic table, beside those of hold-out records.

A record of the population may stand in a synthetic table by chance, and a record that was never
trained on does so as often as any. What hold-out records show is therefore taken away.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dpaudit.plugins.protocols import BoolArray, FloatArray
from dpaudit.released_data.excess import Excess, Hits, excess_of
from dpaudit.released_data.row_keys import row_keys

Distances = npt.NDArray[np.floating]

_SHARES: Final = (0.001, 0.01, 0.1)
"""Shares of the hold-out's first half that are nearer than each threshold of a near copy."""
_FEWEST: Final = 5
"""Hold-out records that a threshold must be chosen from."""
MOST_ROWS: Final = 10
"""Rows that are named, at most."""


class ClosestDistances(NamedTuple):
    """Distances of real records to their nearest synthetic record.

    Attributes:
        train: Of the train records [n] that are compared with the hold-out.
        holdout: Of the hold-out records [h], in any order.
    """

    train: Distances
    holdout: Distances


class CopyFinding(NamedTuple):
    """Records that have a copy in the synthetic table.

    Attributes:
        within: Largest distance to the synthetic record; 0 for a copy of every value.
        share: Share of hold-out records by which the distance was chosen; None for exact copies.
        records: How many train and hold-out records have one.
    """

    within: float
    share: float | None
    records: Excess


class Copies(NamedTuple):
    """All that is said of copies.

    Attributes:
        exact: Records whose every value stands in one synthetic record.
        near: Records with a synthetic record nearby, a finding for each threshold.
        synthetic: Synthetic records that equal a train record.
        riskiest: Rows of the train table, from 0, that have an exact copy: those farthest from all
            hold-out records first, for chance explains them least.
    """

    exact: CopyFinding
    near: tuple[CopyFinding, ...]
    synthetic: Hits
    riskiest: tuple[int, ...]

    @property
    def proved(self) -> bool:
        """Whether some train records have copies because they were trained on."""
        return any(one.records.proved for one in (self.exact, *self.near))


def equal_rows(values: FloatArray, among: FloatArray) -> BoolArray:
    """Which rows occur in another table; missing values equal each other.

    Args:
        values: Rows [n, d], as `dpaudit.model.encoding.values_of_table` gives them.
        among: Rows [m, d] of the other table.

    Returns:
        Whether each row [n] occurs there.
    """
    return np.isin(row_keys(values), row_keys(among))


def nearness_thresholds(distances: Distances) -> tuple[tuple[float, float], ...]:
    """Distances that so many hold-out records are within: what counts as near, and its share.

    Args:
        distances: Of hold-out records [n] to their nearest synthetic record; other ones than
            those that are counted.

    Returns:
        Pairs of a share and a distance above 0; none from too few records.
    """
    found = {}
    for share in _SHARES:
        if share * len(distances) >= _FEWEST:
            within = float(np.quantile(distances, share))
            if within > 0.0:
                found[within] = share
    return tuple((share, within) for within, share in found.items())


def find_copies(
    *,
    train_copied: BoolArray,
    holdout_copied: BoolArray | None,
    synthetic_copied: BoolArray,
    closest: ClosestDistances | None,
    riskiest: Sequence[int],
    rng: np.random.Generator,
    confidence: float,
) -> Copies:
    """Counts copies of train records and compares them with those of hold-out records.

    The hold-out is halved at random: one half chooses what counts as near, the other is counted.
    All limits hold at once with the given confidence.

    Args:
        train_copied: Whether each train record [n] equals a synthetic one (`equal_rows`).
        holdout_copied: Of the hold-out records [h]; None without a hold-out.
        synthetic_copied: Whether each synthetic record [m] equals a train one.
        closest: Distances to the nearest synthetic record; None without a hold-out.
        riskiest: Rows of copied train records, the riskiest first.
        rng: Halves the hold-out.
        confidence: Probability that all limits hold, in (0, 1).

    Returns:
        The findings.

    Raises:
        SettingsError: If the confidence is out of range.
    """
    own: Distances = np.empty(0)
    counted = own
    thresholds: Sequence[tuple[float, float]] = ()
    if closest is not None:
        own, shuffled = closest.train, rng.permutation(closest.holdout)
        middle = len(shuffled) // 2
        thresholds, counted = nearness_thresholds(shuffled[:middle]), shuffled[middle:]
    tests = 1 + len(thresholds)
    exact = excess_of(
        _hits(train_copied),
        None if holdout_copied is None else _hits(holdout_copied),
        confidence=confidence,
        tests=tests,
    )
    near = [
        CopyFinding(
            within,
            share,
            excess_of(
                _hits(own <= within),
                _hits(counted <= within),
                confidence=confidence,
                tests=tests,
            ),
        )
        for share, within in thresholds
    ]
    return Copies(
        CopyFinding(0.0, None, exact),
        tuple(near),
        _hits(synthetic_copied),
        tuple(riskiest[:MOST_ROWS]),
    )


def _hits(holds: BoolArray) -> Hits:
    return Hits(int(holds.sum()), len(holds))
