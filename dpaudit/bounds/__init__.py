"""Lower bounds on epsilon from the errors of a membership inference attack.

Everything here is a pure function of counts and scores. A bound is valid for counts that come
from a threshold fixed before the counted trials were scored; `threshold` says more.
"""

from __future__ import annotations

from dpaudit.bounds.clopper_pearson import clopper_pearson, statistic, upper_limits
from dpaudit.bounds.counts import Counts
from dpaudit.bounds.exact import exact, p_value
from dpaudit.bounds.multiplicity import bonferroni
from dpaudit.bounds.power import detectable_epsilon, max_provable_epsilon
from dpaudit.bounds.threshold import (
    Direction,
    RocCurve,
    Threshold,
    auc,
    choose_threshold,
    count_errors,
    roc,
)

__all__ = [
    "Counts",
    "Direction",
    "RocCurve",
    "Threshold",
    "auc",
    "bonferroni",
    "choose_threshold",
    "clopper_pearson",
    "count_errors",
    "detectable_epsilon",
    "exact",
    "max_provable_epsilon",
    "p_value",
    "roc",
    "statistic",
    "upper_limits",
]
