"""The moments accountants of published PATE-GANs, which decide when a training stops."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Final, NamedTuple

import numpy as np

from dpaudit.account.algorithm_1 import Deviation, algorithm_1_moments
from dpaudit.account.moments import data_independent_moments
from dpaudit.plugins.protocols import BoolArray, FloatArray, IntArray
from dpaudit_generators.published.switches import Switch

_DEVIATIONS: Final = {
    Switch.ACCOUNTANT_MISSING_LOG: Deviation.MISSING_LOG,
    Switch.ACCOUNTANT_EXPONENT_SLIP: Deviation.EXPONENT_SLIP,
}


def inverse_delta(delta: float, *, rows: int, switches: Collection[Switch]) -> float:
    """The number that the accountant uses as 1 / delta.

    Args:
        delta: The requested delta.
        rows: Number n of records.
        switches: Deviations; if several concern delta, the first of these counts: ignored, XOR,
            multiplied.

    Returns:
        The number, which is 1 / delta without deviations.
    """
    if Switch.DELTA_IGNORED in switches:
        return max(2.0, rows * math.sqrt(rows))
    if Switch.DELTA_XOR in switches:  # in Python, 10 ^ 5 is not a power
        return max(2.0, float(10 ^ round(-math.log10(delta))))
    if Switch.DELTA_MULTIPLIED in switches:
        return float(10.0**delta)
    return 1.0 / delta


def gaussian_deviation(inverse: float, epsilon: float) -> float:
    """Standard deviation of the Gaussian mechanism at sensitivity 1 (Dwork and Roth 2014, A.1)."""
    return math.sqrt(2.0 * math.log(1.25 * inverse)) / epsilon


class Charges(NamedTuple):
    """The cost of a batch of labels for each of M models.

    Attributes:
        queries: Number of labels that were charged, [M].
        before: Epsilon spent before, by the accountant's count, [M].
        after: Epsilon spent afterwards, [M].
        moments: Log moments 1..L of everything spent, [M, L].
    """

    queries: IntArray
    before: FloatArray
    after: FloatArray
    moments: FloatArray


class Accountant:
    """The accounts of M models.

    The charges depend on the votes, so they must not decide when the training stops. Without
    `Switch.BUDGET_EXCEEDED` a batch is released if its largest possible cost plus the largest
    possible cost of all batches before it is within the budget. Both are public.

    Args:
        models: Number M of models.
        teachers: Number k of teachers.
        gamma: Inverse noise scale that is charged for.
        moments: Number L of moments.
        epsilon: The budget.
        inverse: The number used as 1 / delta.
        switches: Deviations.
    """

    def __init__(
        self,
        models: int,
        *,
        teachers: int,
        gamma: float,
        moments: int,
        epsilon: float,
        inverse: float,
        switches: Collection[Switch],
    ) -> None:
        self._orders = np.arange(1, moments + 1, dtype=np.float64)
        ones = np.arange(teachers + 1)
        self._cost = algorithm_1_moments(  # [k + 1, L]: the cost of a query, by its votes
            np.stack([teachers - ones, ones], axis=-1),
            gamma=gamma,
            moments=self._orders,
            deviations=frozenset(_DEVIATIONS[s] for s in _DEVIATIONS if s in switches),
        )
        self._most = data_independent_moments(gamma=gamma, moments=self._orders)
        self._spent = np.zeros((models, moments))
        self._reserved = np.zeros(models, dtype=np.int64)  # queries, each at its largest cost
        self._epsilon, self._inverse = epsilon, inverse
        self._late = Switch.BUDGET_EXCEEDED in switches
        self._free = Switch.QUERIES_NOT_ACCOUNTED in switches

    def may_begin(self, queries: int) -> BoolArray:
        """Whether each model may begin an iteration with this many labels per batch [M]."""
        if self._late:
            return self._converted(self._spent) < self._epsilon
        return self._room(queries)

    def may_buy(self, queries: int) -> BoolArray:
        """Whether each model may release this many labels within an iteration [M]."""
        return np.ones(len(self._spent), dtype=np.bool_) if self._late else self._room(queries)

    def charge(self, ones: IntArray, labels: IntArray, *, going: BoolArray) -> Charges:
        """Charges for a batch of labels.

        Args:
            ones: How many teachers voted 1 [M, n].
            labels: The labels [M, n].
            going: Whether each model still trains [M]; the others are not charged.

        Returns:
            The cost for each model.
        """
        before, n = self._converted(self._spent), labels.shape[1]
        queries = np.where(going, n, 0)
        if self._free:
            queries = np.where(labels.sum(axis=1) >= n / 2, 0, queries)
        counts = np.stack([np.bincount(votes, minlength=len(self._cost)) for votes in ones])
        cost = (counts[:, :, None] * self._cost).sum(axis=1)
        self._spent = np.where(queries[:, None] > 0, self._spent + cost, self._spent)
        self._reserved += queries
        return Charges(queries, before, self._converted(self._spent), self._spent)

    def _room(self, queries: int) -> BoolArray:
        return self._converted((self._reserved + queries)[:, None] * self._most) <= self._epsilon

    def _converted(self, moments: FloatArray) -> FloatArray:
        """Epsilon of log moments [M, L] (Abadi et al. 2016, Theorem 2); 0 while all are 0."""
        epsilon = ((moments + math.log(self._inverse)) / self._orders).min(axis=1)
        return np.where(moments.any(axis=1), epsilon, 0.0)
