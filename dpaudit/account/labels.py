"""How many labels a privacy budget pays for."""

from __future__ import annotations

import bisect
import math
from typing import Final, NamedTuple

from scipy.special import ndtri

from dpaudit.account.conversion import ORDERS, epsilon_from_rdp
from dpaudit.account.vote_table import VoteTable, gaussian_vote_table
from dpaudit.errors import SettingsError

_CONSENSUS_MARGIN: Final = 0.3
"""Votes above a tie, as a share of the teachers, when 80 % of them agree."""

_MAX_LABELS: Final = 10**12
"""No plan is longer: far more labels than any training can use."""


class LabelPlan(NamedTuple):
    """What a privacy budget buys.

    Attributes:
        teachers: Number of teachers that vote.
        labels: Number T of labels that may be released.
        scale: Standard deviation of the Gaussian noise on the vote, in votes.
        epsilon: What all T labels together spend, at most the budget.
        delta: The delta at which epsilon holds.
    """

    teachers: int
    labels: int
    scale: float
    epsilon: float
    delta: float


def plan_labels(
    *, epsilon: float, delta: float, teachers: int, accuracy: float = 0.65
) -> LabelPlan:
    """Choose the noise from the wanted accuracy, then buy as many labels as the budget allows.

    Every number here is a function of public settings alone, never of the data.

    Args:
        epsilon: The budget for adding or removing one record, positive and finite.
        delta: The delta of the budget, in (0, 1).
        teachers: Number of teachers, at least 1.
        accuracy: Probability in (0.5, 1) that a label follows the majority when 80 % of the
            teachers agree. Lower accuracy buys more labels; the total information is about the
            same.

    Returns:
        The plan with the largest number of labels that stays within the budget.

    Raises:
        SettingsError: If an argument is outside its range or the budget pays for no label.
    """
    if not 0.0 < epsilon < math.inf:
        raise SettingsError(f"epsilon is {epsilon}: choose a positive, finite budget.")
    if not 0.0 < delta < 1.0:
        raise SettingsError(f"delta is {delta}: choose it in (0, 1), below one over the records.")
    if not 0.5 < accuracy < 1.0:
        raise SettingsError(f"accuracy is {accuracy}: choose it in (0.5, 1).")
    if teachers < 1:
        raise SettingsError(f"teachers is {teachers}: use at least 1.")
    scale = _CONSENSUS_MARGIN * teachers / float(ndtri(accuracy))
    rdp = gaussian_vote_table(teachers=teachers, scale=scale).rdp(ORDERS)

    def spent(labels: int) -> float:
        return epsilon_from_rdp(ORDERS, labels * rdp, delta=delta)

    # Epsilon grows with the number of labels, so the affordable ones among 1, 2, ... come first
    # and counting them gives the largest.
    labels = bisect.bisect_right(range(1, _MAX_LABELS + 1), epsilon, key=spent)
    if labels == 0:
        raise SettingsError(
            f"epsilon {epsilon:g} pays for no label: one label of accuracy {accuracy:g} from "
            f"{teachers} teachers costs {spent(1):.3g} at delta {delta:g}. Raise epsilon, use "
            "more teachers or lower the accuracy."
        )
    return LabelPlan(teachers, labels, scale, spent(labels), delta)


def epsilon_of_labels(table: VoteTable, *, labels: int, delta: float) -> float:
    """What a number of labels costs, for adding or removing one record.

    The Rényi divergences of the labels add up under adaptive composition (Mironov 2017,
    Proposition 1), also where later teachers depend on earlier labels.

    Args:
        table: The mechanism that releases each label.
        labels: How many labels are released, at least 0. Count discarded ones too.
        delta: The delta of the statement, in [0, 1).

    Returns:
        Epsilon in nats.

    Raises:
        SettingsError: If the number of labels or delta is outside its range.
    """
    if labels < 0:
        raise SettingsError(f"labels is {labels}: use a count, at least 0.")
    if labels == 0:
        return 0.0  # also for a table with infinite divergence
    return epsilon_from_rdp(ORDERS, labels * table.rdp(ORDERS), delta=delta)
