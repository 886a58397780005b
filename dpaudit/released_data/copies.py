"""Exact and near copies of train records in a synthetic table, beside those of hold-out records.

A record of the population may stand in a synthetic table by chance, and a record that was never
trained on does so as often as any. What hold-out records show is therefore taken away.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from dpaudit.bounds.multiplicity import bonferroni
from dpaudit.plugins.protocols import BoolArray, FloatArray
from dpaudit.released_data.rows import row_keys

Distances = npt.NDArray[np.floating]
_SHARES: Final = (0.001, 0.01, 0.1)
"""Shares of the hold-out's first half that are nearer than each threshold of a near copy."""
_FEWEST: Final = 5
"""Hold-out records that a threshold must be chosen from."""
MOST_ROWS: Final = 10
"""Rows that are named, at most."""


class Hits(NamedTuple):
    """How many of some records something holds of.

    Attributes:
        found: Of so many it holds.
        of: Records.
    """

    found: int
    of: int

    @property
    def rate(self) -> float:
        """Their share; 0 of no records."""
        return self.found / self.of if self.of else 0.0


class Excess(NamedTuple):
    """Hits among train records beside hits among hold-out records: what chance does not explain.

    Where a random split decided which records were trained on, and the synthetic table does not
    depend on the split, every choice of as many train records among all records is equally likely,
    so that the hits among them have a hypergeometric distribution (Fisher's exact test).

    Attributes:
        train: Hits among the train records.
        holdout: Hits among the hold-out records; None without a hold-out.
        p_value: Probability of so many among the train records if the synthetic table does not
            depend on the split; None without a hold-out.
        at_least: Lower confidence limit on the train records that are hits because they were
            trained on, corrected for the tests made with this one; None without a hold-out.
    """

    train: Hits
    holdout: Hits | None = None
    p_value: float | None = None
    at_least: int | None = None

    @property
    def proved(self) -> bool:
        """Whether some train records are hits because they were trained on."""
        return bool(self.at_least)


def excess_of(train: Hits, holdout: Hits | None, *, confidence: float, tests: int) -> Excess:
    """Compares hits among train records with hits among hold-out records.

    Args:
        train: Hits among the train records.
        holdout: Hits among the hold-out records; None if there are none.
        confidence: Probability that all limits of the family hold, in (0, 1).
        tests: How many tests the family has, at least 1.

    Returns:
        Both, the p-value (of this test alone), and the limit.

    Raises:
        SettingsError: If the confidence or the number of tests is out of range.
    """
    if holdout is None or not holdout.of:
        return Excess(train)
    level = 1.0 - bonferroni(confidence, tests)
    return Excess(
        train, holdout, excess_p_value(train, holdout), _excess_limit(train, holdout, level)
    )


def excess_p_value(train: Hits, holdout: Hits) -> float:
    """Probability that a random split puts at least so many of all hits among the train records.

    Args:
        train: Hits among the train records.
        holdout: Hits among the hold-out records.

    Returns:
        The one-sided p-value of Fisher's exact test.
    """
    hits, records = train.found + holdout.found, train.of + holdout.of
    counts = np.arange(train.found, min(hits, train.of) + 1)
    logs = _log_choose(train.of, counts) + _log_choose(holdout.of, hits - counts)
    logs -= _log_choose(records, np.asarray([hits]))
    return min(1.0, float(np.exp(logs).sum()))


def _excess_limit(train: Hits, holdout: Hits, level: float) -> int:
    """The fewest hits that, taken away, leave what chance explains.

    If m train records are hits because they were trained on, and the others are hits by chance as
    hold-out records are, then at least `train.found - m` train records would be hits by chance
    alone. Each m for which so many are too unlikely is refuted, and the p-value rises with m.
    """
    low, high = -1, train.found  # `low` is refuted, `high` is not
    while high - low > 1:
        middle = (low + high) // 2
        rest = Hits(train.found - middle, train.of)
        if excess_p_value(rest, holdout) <= level:
            low = middle
        else:
            high = middle
    return high


def _log_choose(of: int, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    logs = gammaln(of + 1.0) - gammaln(counts + 1.0) - gammaln(of - counts + 1.0)
    return np.asarray(logs, dtype=np.float64)


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
