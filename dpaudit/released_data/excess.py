"""Hits among train records beside hits among hold-out records: what chance does not explain.

Where a random split decided which records were trained on, and the synthetic table does not depend
on the split, every choice of as many train records among all records is equally likely, so that
the hits among them have a hypergeometric distribution (Fisher's exact test).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from dpaudit.bounds.multiplicity import bonferroni


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
    """Hits among train records beside hits among hold-out records.

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
