"""Privacy accounting of a PATE ensemble that releases one-bit labels.

One label is a draw from a public table of probabilities (`VoteTable`), so its Rényi divergence
is a finite maximum rather than a bound. `plan_labels` turns a privacy budget into the number of
labels it pays for, and `LabelBudget` refuses the label after the last one.
"""

from __future__ import annotations

from dpaudit.account.budget import LabelBudget
from dpaudit.account.conversion import ORDERS, epsilon_from_rdp
from dpaudit.account.labels import LabelPlan, epsilon_of_labels, plan_labels
from dpaudit.account.vote_table import VoteTable, gaussian_vote_table

__all__ = [
    "ORDERS",
    "LabelBudget",
    "LabelPlan",
    "VoteTable",
    "epsilon_from_rdp",
    "epsilon_of_labels",
    "gaussian_vote_table",
    "plan_labels",
]
