"""Privacy accounting, mainly of PATE's released votes, and of DP-SGD.

One vote between two classes is a draw from a public table of probabilities (`VoteTable`), so its
divergences are finite maxima rather than bounds. `calibrate` turns a privacy budget into noise and
a number of labels, and `LabelBudget` refuses the label after the last one.
"""

from __future__ import annotations

from dpaudit.account.calibration import LabelBudget, LabelPlan, calibrate, calibrate_gaussian
from dpaudit.account.conversion import ORDERS, epsilon_from_moments, epsilon_from_rdp
from dpaudit.account.dp_sgd import dp_sgd_claim, dp_sgd_curve, dp_sgd_noise_multiplier
from dpaudit.account.moments import pate_moments
from dpaudit.account.noisy_max import ConfidentNoisyMax, GaussianNoisyMax, LaplaceNoisyMax, NoisyMax
from dpaudit.account.vote_table import VoteTable, vote_table
from dpaudit.model.choices import Mechanism, Method

__all__ = [
    "ORDERS",
    "ConfidentNoisyMax",
    "GaussianNoisyMax",
    "LabelBudget",
    "LabelPlan",
    "LaplaceNoisyMax",
    "Mechanism",
    "Method",
    "NoisyMax",
    "VoteTable",
    "calibrate",
    "calibrate_gaussian",
    "dp_sgd_claim",
    "dp_sgd_curve",
    "dp_sgd_noise_multiplier",
    "epsilon_from_moments",
    "epsilon_from_rdp",
    "pate_moments",
    "vote_table",
]
