"""Lower bounds on epsilon from the errors of a membership inference attack.

Everything here is a pure function of counts and scores. A bound is valid for counts that come
from a threshold fixed before the counted trials were scored; `threshold` says more.
"""

from __future__ import annotations

from dpaudit.bounds.clopper_pearson import clopper_pearson, statistic, upper_limits
from dpaudit.bounds.counts import Counts
from dpaudit.bounds.estimates import gdp, jeffreys, joint_beta
from dpaudit.bounds.exact import exact, p_value
from dpaudit.bounds.guarantee import EpsilonGuarantee, Guarantee, guarantee_of
from dpaudit.bounds.multiplicity import Hypotheses, attack_confidence, bonferroni
from dpaudit.bounds.one_run import (
    one_run,
    one_run_detectable,
    one_run_gaussian,
    one_run_p_value,
)
from dpaudit.bounds.power import (
    detectable_epsilon,
    detectable_gaussian,
    detection_power,
    max_provable,
)
from dpaudit.bounds.sequential import PairProcess, e_process, pair_bound
from dpaudit.bounds.sequential_schedule import ScoredBlock, refit_schedule
from dpaudit.bounds.threshold import (
    Direction,
    RocCurve,
    Threshold,
    ThresholdRule,
    auc,
    choose_threshold,
    choose_threshold_by,
    count_errors,
    roc,
)

__all__ = [
    "Counts",
    "Direction",
    "EpsilonGuarantee",
    "Guarantee",
    "Hypotheses",
    "PairProcess",
    "RocCurve",
    "ScoredBlock",
    "Threshold",
    "ThresholdRule",
    "attack_confidence",
    "auc",
    "bonferroni",
    "choose_threshold",
    "choose_threshold_by",
    "clopper_pearson",
    "count_errors",
    "detectable_epsilon",
    "detectable_gaussian",
    "detection_power",
    "e_process",
    "exact",
    "gdp",
    "guarantee_of",
    "jeffreys",
    "joint_beta",
    "max_provable",
    "one_run",
    "one_run_detectable",
    "one_run_gaussian",
    "one_run_p_value",
    "p_value",
    "pair_bound",
    "refit_schedule",
    "roc",
    "statistic",
    "upper_limits",
]
