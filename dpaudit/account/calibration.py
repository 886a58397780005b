"""Plans of label releases: number of labels and noise for a budget, their cost and accuracy."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

import numpy as np
import scipy

from dpaudit.account.vote_table import VoteTable, vote_table, wrong_at
from dpaudit.errors import BudgetError, SettingsError
from dpaudit.model.choices import CLEAR_MAJORITY, Mechanism, Method, member_named
from dpaudit.model.gaussian import gaussian_epsilon
from dpaudit.model.setting import (
    AT_LEAST_0,
    AT_LEAST_1,
    BETWEEN_0_AND_1,
    POSITIVE,
    NumberRange,
    check_number,
)

_MOST_LABELS: Final = 10**12
"""Largest number of labels: far more than any training can use."""

_LEAST_NOISE: Final = 1e-9
"""The smallest noise tried, in votes; every entry of the table is then clipped."""

_MOST_NOISE: Final = 1e9
"""The most noise tried, in votes."""

_LEAST_COST: Final = 1e-300
"""Stands in for a cost of 0 in logarithms."""

_RESOLUTION: Final = 1.0 + 1e-7
"""Tolerance of the search for the smallest noise, as a ratio."""
USUAL_LABELS: Final = (10, 100, 1000, 10_000)
"""Numbers of labels that span what students of PATE and PATE-GAN ask for."""
USUAL_CONSENSUS: Final = (CLEAR_MAJORITY, 0.95)
"""A clear majority, and almost all teachers."""
COIN_FLIP: Final = 0.6
"""A label less accurate than this at a clear majority is nearly useless for a student.

It carries less than 3 % of a bit.
"""
_ROUNDING: Final = 1e-9
"""Rounding tolerance: a plan for an accuracy of 0.6 causes no warning."""


class LabelPlan(NamedTuple):
    """The labels that a privacy budget pays for.

    Attributes:
        mechanism: The noise that decides the votes.
        teachers: Number k of teachers that vote.
        labels: Number T of labels that may be released.
        scale: Scale of the noise, in votes.
        epsilon: The cost of all T labels together, at most the budget.
        delta: The delta at which epsilon holds.
    """

    mechanism: Mechanism
    teachers: int
    labels: int
    scale: float
    epsilon: float
    delta: float

    @property
    def table(self) -> VoteTable:
        """The table that labels are drawn from and that `epsilon` accounts for."""
        return vote_table(self.mechanism, self.teachers, self.scale).quantised()


def calibrate(
    *,
    epsilon: float,
    delta: float,
    k: int,
    labels: int | None = None,
    accuracy: float | None = None,
    consensus: float = 0.8,
    mechanism: Mechanism = Mechanism.GAUSSIAN,
    method: Method | str = Method.BEST,
) -> LabelPlan:
    """Chooses noise and number of labels so that all labels together stay within a budget.

    Give either the number of labels, for the least noise that they afford, or the accuracy of a
    label, which fixes the noise, for the most labels. Every number here is a function of public
    settings alone.

    Args:
        epsilon: The budget for adding or removing one record, positive and finite.
        delta: The delta of the budget, in (0, 1).
        k: Number of teachers, at least 1.
        labels: Number T of labels, at least 1.
        accuracy: Probability in (0.5, 1) that a label follows the majority when a share of
            `consensus` of the teachers agree.
        consensus: The share of agreeing teachers, in (0.5, 1].
        mechanism: The noise that decides the votes.
        method: How the cost is proved.

    Returns:
        The plan.

    Raises:
        SettingsError: If an argument is outside its range, not exactly one of labels and accuracy
            is given, or the budget pays for no label.
    """
    check_number("epsilon", epsilon, POSITIVE)
    check_number("delta", delta, BETWEEN_0_AND_1)
    check_number("teachers", k, AT_LEAST_1, whole=True)
    check_number("consensus", consensus, NumberRange(above=0.5, most=1))
    if (labels is None) == (accuracy is None):
        raise SettingsError("give either the number of labels or the accuracy of a label")

    def cost_at(scale: float, count: int, proof: Method | str) -> float:
        table = vote_table(mechanism, k, scale).quantised()
        return table.epsilon(count, delta=delta, method=proof)

    if labels is not None:
        check_number("labels", labels, NumberRange(1, _MOST_LABELS))
        # The quickest proof first: its answer starts the search with the slower one.
        scale = 1.0
        for proof in dict.fromkeys((Method.RDP, method)):
            scale = _least_scale(partial(cost_at, count=labels, proof=proof), epsilon, near=scale)
        return LabelPlan(mechanism, k, labels, scale, cost_at(scale, labels, method), delta)
    assert accuracy is not None  # one of the two is given
    scale = scale_of_accuracy(mechanism, k=k, accuracy=accuracy, consensus=consensus)
    table = vote_table(mechanism, k, scale).quantised()

    def cost(count: int) -> float:
        return table.epsilon(count, delta=delta, method=method)

    # Epsilon grows with the number of labels, so bisection finds the largest affordable number.
    # Doubling first keeps the slow proofs to numbers of the answer's size.
    most = 1
    while most < _MOST_LABELS and cost(most) <= epsilon:
        most *= 2
    affordable = bisect.bisect_right(range(1, min(most, _MOST_LABELS) + 1), epsilon, key=cost)
    if affordable == 0:
        raise SettingsError(
            f"epsilon {epsilon:g} pays for no label: one label of accuracy {accuracy:g} from {k} "
            f"teachers costs {cost(1):.3g} at delta {delta:g}. Raise epsilon, use more teachers or "
            "lower the accuracy"
        )
    return LabelPlan(mechanism, k, affordable, scale, cost(affordable), delta)


def calibrate_gaussian(*, mu: float, delta: float, k: int, accuracy: float, most: int) -> LabelPlan:
    """Chooses noise and number of labels so that all labels together are mu-Gaussian DP.

    For labels that share a budget with other Gaussian mechanisms: squares of mu add up. If the
    budget does not pay for one label of this accuracy, a single label has more noise.

    Args:
        mu: Budget of all labels together, positive and finite.
        delta: Delta of the plan's epsilon.
        k: Number of teachers, at least 1.
        accuracy: Probability in (0.5, 1) that a label follows the majority when 80 % agree.
        most: Largest useful number of labels, at least 1; a larger budget then reduces the noise.

    Returns:
        The plan.

    Raises:
        SettingsError: If an argument is outside its range.
    """
    check_number("mu", mu, POSITIVE)
    check_number("delta", delta, BETWEEN_0_AND_1)
    check_number("teachers", k, AT_LEAST_1, whole=True)
    accurate_scale = scale_of_accuracy(Mechanism.GAUSSIAN, k=k, accuracy=accuracy)
    labels = max(1, min(most, int((accurate_scale * mu) ** 2)))

    def mu_at(scale: float) -> float:
        return math.sqrt(labels) * vote_table(Mechanism.GAUSSIAN, k, scale).quantised().mu

    scale = max(_LEAST_NOISE, math.sqrt(labels) / mu)  # exact before clipping and rounding
    while mu_at(scale) > mu:
        scale *= _RESOLUTION
    epsilon = gaussian_epsilon(mu_at(scale), delta)
    return LabelPlan(Mechanism.GAUSSIAN, k, labels, scale, epsilon, delta)


def scale_of_accuracy(
    mechanism: Mechanism, *, k: int, accuracy: float, consensus: float = 0.8
) -> float:
    """The noise at which a label is right with a given probability.

    Args:
        mechanism: The noise.
        k: Number of teachers.
        accuracy: The probability, in (0.5, 1).
        consensus: Share of the teachers that agree, above one half.

    Returns:
        The scale of the noise, in votes.

    Raises:
        SettingsError: If the accuracy is outside its range.
    """
    check_number("accuracy", accuracy, NumberRange(above=0.5, below=1))
    margin = (consensus - 0.5) * k

    # The error falls from 1/2 to 0 as the margin grows from 0 to infinitely many scales.
    def excess(scales: float) -> float:
        return float(wrong_at(mechanism, np.asarray(scales))) - (1.0 - accuracy)

    return float(margin / scipy.optimize.brentq(excess, 0.0, 800.0, xtol=1e-14, rtol=1e-15))


def _least_scale(cost_at: Callable[[float], float], epsilon: float, *, near: float) -> float:
    """The least noise within the budget, to seven digits, on the safe side.

    The search begins at `near`, because every proof is slow far from the answer.
    """
    if near <= _LEAST_NOISE:
        return _LEAST_NOISE

    # ln epsilon is almost linear in ln scale: a few secants reach the root.
    def excess(log_scale: float) -> float:
        return math.log(max(cost_at(math.exp(log_scale)), _LEAST_COST) / epsilon)

    start, step = math.log(near), 0.05
    needs_more = excess(start) > 0.0
    low = high = start
    while needs_more and excess(high) > 0.0:
        low, high, step = high, high + step, 2.0 * step
        if high > math.log(_MOST_NOISE):
            raise SettingsError(
                f"epsilon {epsilon:g} pays for no such number of labels: raise it or use fewer"
            )
    while not needs_more and excess(low) <= 0.0:
        low, high, step = low - step, low, 2.0 * step
        if low < math.log(_LEAST_NOISE):
            return _LEAST_NOISE
    scale = math.exp(scipy.optimize.brentq(excess, low, high, xtol=1e-8))
    while cost_at(scale) > epsilon:
        scale *= _RESOLUTION
    return scale


class Quality(NamedTuple):
    """The accuracy of a label.

    Attributes:
        consensus: Share of the teachers that agree.
        right: Probability that the label follows them.
    """

    consensus: float
    right: float


class Prospect(NamedTuple):
    """One row of the practitioner's table.

    Attributes:
        plan: Noise, number of labels and their cost.
        proof: The method that proves `plan.epsilon`: `RDP`, `PLD` or `TIGHT`.
        qualities: Accuracy of a label for each share of agreeing teachers, increasing.
    """

    plan: LabelPlan
    proof: Method
    qualities: tuple[Quality, ...]

    @property
    def near_coin_flips(self) -> bool:
        """Whether a label is right with probability below 0.6 even at a clear majority."""
        return self.plan.table.accuracy(CLEAR_MAJORITY) < COIN_FLIP - _ROUNDING


def prospect(
    plan: LabelPlan,
    *,
    method: Method | str = Method.BEST,
    consensus: Sequence[float] = USUAL_CONSENSUS,
) -> Prospect:
    """The row of a plan in the practitioner's table.

    Args:
        plan: The plan, from `calibrate` or `priced`.
        method: The method that priced it.
        consensus: Shares of the teachers that agree, each in [0.5, 1].

    Returns:
        The row.

    Raises:
        SettingsError: If a share or the method is unknown.
    """
    table = plan.table
    proof = member_named("method", Method, method)
    if proof is Method.BEST:
        by_rdp = table.epsilon(plan.labels, delta=plan.delta, method=Method.RDP)
        proof = Method.RDP if by_rdp <= plan.epsilon else Method.PLD
    qualities = tuple(Quality(share, table.accuracy(share)) for share in sorted({*consensus}))
    return Prospect(plan, proof, qualities)


def priced(
    *,
    mechanism: Mechanism,
    k: int,
    labels: int,
    scale: float,
    delta: float,
    method: Method | str = Method.BEST,
) -> LabelPlan:
    """The plan for given noise and a given number of labels: the inverse of `calibrate`.

    Args:
        mechanism: The noise that decides the votes.
        k: Number of teachers, at least 1.
        labels: Number T of labels, at least 1.
        scale: Scale of the noise, in votes, positive and finite.
        delta: The delta of the statement, in (0, 1).
        method: How the cost is proved.

    Returns:
        The plan, with its epsilon.

    Raises:
        SettingsError: If an argument is outside its range.
    """
    check_number("labels", labels, AT_LEAST_1)
    check_number("delta", delta, BETWEEN_0_AND_1)
    table = vote_table(mechanism, k, scale).quantised()
    epsilon = table.epsilon(labels, delta=delta, method=method)
    return LabelPlan(mechanism, k, labels, scale, epsilon, delta)


class LabelBudget:
    """A number of labels, fixed before the data is seen and counted down as labels are drawn.

    Call `spend` before each draw. A label that is drawn and then discarded still counts: drawing
    costs privacy, use does not.

    Args:
        labels: Labels that may be drawn, at least 0.

    Raises:
        SettingsError: If the number of labels is negative.
    """

    __slots__ = ("_labels", "_spent")

    def __init__(self, labels: int) -> None:
        check_number("labels", labels, AT_LEAST_0)
        self._labels = labels
        self._spent = 0

    @property
    def spent(self) -> int:
        """Labels paid for so far."""
        return self._spent

    @property
    def left(self) -> int:
        """Labels that may still be drawn."""
        return self._labels - self._spent

    def spend(self, labels: int = 1) -> None:
        """Pays for labels, before they are drawn.

        Args:
            labels: How many, at least 1.

        Raises:
            BudgetError: If fewer are left; then nothing is spent.
            SettingsError: If the number is below 1.
        """
        check_number("labels", labels, AT_LEAST_1)
        if labels > self.left:
            raise BudgetError(
                f"{labels} labels asked, {self.left} of all {self._labels} labels of the privacy "
                "budget are left: stop training, or plan a larger budget before the next run"
            )
        self._spent += labels
