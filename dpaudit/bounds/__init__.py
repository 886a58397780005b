"""Lower bounds on epsilon from the errors of a membership inference attack.

Everything here is a pure function of counts and scores. A bound is valid for counts that come
from a threshold or a grading fixed before the counted trials were scored.
"""

from __future__ import annotations

from dpaudit.bounds.clopper_pearson import clopper_pearson, statistic, upper_limits
from dpaudit.bounds.counts import Counts
from dpaudit.bounds.estimates import gdp, jeffreys, joint_beta
from dpaudit.bounds.exact import exact, p_value
from dpaudit.bounds.fair_coin import CoinGuesses, fair_coin, fair_coin_p_value
from dpaudit.bounds.fair_coin_power import (
    coin_detectable,
    coin_detectable_gaussian,
    coin_detectable_shift,
    coin_provable,
)
from dpaudit.bounds.grading import Grading, choose_grading, count_guesses
from dpaudit.bounds.guarantee import Detectable, EpsilonGuarantee, Guarantee, guarantee_of
from dpaudit.bounds.multiplicity import Hypotheses, attack_confidence, bonferroni
from dpaudit.bounds.one_run import (
    one_run,
    one_run_gaussian,
    one_run_p_value,
)
from dpaudit.bounds.one_run_in_turn import (
    Prefix,
    one_run_in_turn,
    one_run_in_turn_detectable,
    one_run_in_turn_p_value,
    strongest_prefix,
)
from dpaudit.bounds.power import (
    detectable_epsilon,
    detectable_gaussian,
    detection_power,
    max_provable,
)
from dpaudit.bounds.promise import FailedTrials, Promised, promise, scaled_errors
from dpaudit.bounds.sequential import coin_bound, e_process
from dpaudit.bounds.sequential_schedule import ScoredBlock, refit_schedule
from dpaudit.bounds.threshold import (
    Direction,
    RocCurve,
    Threshold,
    auc,
    aucs,
    choose_threshold,
    choose_threshold_by,
    count_errors,
    roc,
)
from dpaudit.model.choices import ThresholdRule

__all__ = [
    "CoinGuesses",
    "Counts",
    "Detectable",
    "Direction",
    "EpsilonGuarantee",
    "FailedTrials",
    "Grading",
    "Guarantee",
    "Hypotheses",
    "Prefix",
    "Promised",
    "RocCurve",
    "ScoredBlock",
    "Threshold",
    "ThresholdRule",
    "attack_confidence",
    "auc",
    "aucs",
    "bonferroni",
    "choose_grading",
    "choose_threshold",
    "choose_threshold_by",
    "clopper_pearson",
    "coin_bound",
    "coin_detectable",
    "coin_detectable_gaussian",
    "coin_detectable_shift",
    "coin_provable",
    "count_errors",
    "count_guesses",
    "detectable_epsilon",
    "detectable_gaussian",
    "detection_power",
    "e_process",
    "exact",
    "fair_coin",
    "fair_coin_p_value",
    "gdp",
    "guarantee_of",
    "jeffreys",
    "joint_beta",
    "max_provable",
    "one_run",
    "one_run_gaussian",
    "one_run_in_turn",
    "one_run_in_turn_detectable",
    "one_run_in_turn_p_value",
    "one_run_p_value",
    "p_value",
    "promise",
    "refit_schedule",
    "roc",
    "scaled_errors",
    "statistic",
    "strongest_prefix",
    "upper_limits",
]
