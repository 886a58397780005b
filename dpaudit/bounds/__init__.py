"""Lower bounds on epsilon from the errors of a membership inference attack.

Everything here is a pure function of counts and scores. A bound is valid for counts that come
from a threshold or a calibration fixed before the counted trials were scored.
"""

from __future__ import annotations

from dpaudit.bounds.calibration import (
    FailedTrials,
    Forecast,
    GuessCalibration,
    choose_calibration,
    choose_rule,
    count_guesses,
    log_odds_line,
    scaled_errors,
)
from dpaudit.bounds.clopper_pearson import (
    clopper_pearson,
    gdp,
    jeffreys,
    joint_beta,
    statistic,
    upper_limits,
)
from dpaudit.bounds.exact import exact, p_value
from dpaudit.bounds.fair_coin import CoinGuesses, CoinPlan, fair_coin, fair_coin_p_value
from dpaudit.bounds.guarantee import (
    Detectable,
    EpsilonGuarantee,
    Guarantee,
    TradeOffGuarantee,
    guarantee_of,
)
from dpaudit.bounds.inputs import Counts, attack_confidence, bonferroni
from dpaudit.bounds.one_run import (
    GuessesInTurn,
    Prefix,
    one_run,
    one_run_gaussian,
    one_run_in_turn,
    one_run_in_turn_detectable,
    one_run_in_turn_p_value,
    one_run_p_value,
    strongest_prefix,
)
from dpaudit.bounds.sequential import ScoredBlock, coin_bound, e_process, refit_schedule
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
    "CoinPlan",
    "Counts",
    "Detectable",
    "Direction",
    "EpsilonGuarantee",
    "FailedTrials",
    "Forecast",
    "Guarantee",
    "GuessCalibration",
    "GuessesInTurn",
    "Prefix",
    "RocCurve",
    "ScoredBlock",
    "Threshold",
    "ThresholdRule",
    "TradeOffGuarantee",
    "attack_confidence",
    "auc",
    "aucs",
    "bonferroni",
    "choose_calibration",
    "choose_rule",
    "choose_threshold",
    "choose_threshold_by",
    "clopper_pearson",
    "coin_bound",
    "count_errors",
    "count_guesses",
    "e_process",
    "exact",
    "fair_coin",
    "fair_coin_p_value",
    "gdp",
    "guarantee_of",
    "jeffreys",
    "joint_beta",
    "log_odds_line",
    "one_run",
    "one_run_gaussian",
    "one_run_in_turn",
    "one_run_in_turn_detectable",
    "one_run_in_turn_p_value",
    "one_run_p_value",
    "p_value",
    "refit_schedule",
    "roc",
    "scaled_errors",
    "statistic",
    "strongest_prefix",
    "upper_limits",
]
