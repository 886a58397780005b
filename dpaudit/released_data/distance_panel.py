"""The distance to the closest record, as privacy panels of synthetic data show it.

It is here to be compared with, not to be believed: its figures are averages and low quantiles over
all synthetic records, so that a table may hold hundreds of copied records and pass.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

Distances = npt.NDArray[np.floating]

_LOW: Final = 0.05
"""The low quantile that panels look at."""
_MARGIN: Final = 0.05
"""By how much the share nearer to train records may exceed one half before panels object."""


class DistanceQuantiles(NamedTuple):
    """Distances of synthetic records to their nearest record of a table.

    Attributes:
        low: Their 5 % quantile.
        median: Their median.
        ratio: The 5 % quantile of the nearest distance over the second nearest one.
        identical: Share of synthetic records that equal a record of the table.
    """

    low: float
    median: float
    ratio: float
    identical: float


class DistancePanel(NamedTuple):
    """What such a panel shows.

    Attributes:
        train: Distances to train records.
        holdout: Distances to hold-out records; None without a hold-out.
        nearer_to_train: Share of synthetic records nearer to a train record than to a hold-out
            record, ties by half; None without a hold-out.
        passes: Whether a panel of this kind would call the table safe, which is no evidence that it
            is: that share is at most 5 points above one half; without a hold-out, the 5 % quantile
            is not 0.
    """

    train: DistanceQuantiles
    holdout: DistanceQuantiles | None
    nearer_to_train: float | None
    passes: bool


def distance_panel(to_train: Distances, to_holdout: Distances | None) -> DistancePanel:
    """Summarises distances of synthetic records.

    Args:
        to_train: Of each synthetic record [m, 2] to its two nearest train records.
        to_holdout: To its two nearest hold-out records, of as many as there were train records;
            None without a hold-out.

    Returns:
        The panel.
    """
    if to_holdout is None:
        own = _quantiles(to_train)
        return DistancePanel(own, None, None, own.low > 0.0)
    ours, theirs = to_train[:, 0], to_holdout[:, 0]
    nearer = float(np.mean(np.where(ours == theirs, 0.5, ours < theirs)))
    return DistancePanel(
        _quantiles(to_train), _quantiles(to_holdout), nearer, nearer <= 0.5 + _MARGIN
    )


def _quantiles(distances: Distances) -> DistanceQuantiles:
    nearest, second = distances[:, 0], distances[:, -1]
    ratios = np.divide(nearest, second, out=np.ones_like(nearest), where=second > 0.0)
    return DistanceQuantiles(
        low=float(np.quantile(nearest, _LOW)),
        median=float(np.median(nearest)),
        ratio=float(np.quantile(ratios, _LOW)),
        identical=float(np.mean(nearest == 0.0)),
    )
