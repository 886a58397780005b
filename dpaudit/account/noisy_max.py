"""Noisy votes among any number of classes, with an accounting independent of the votes.

Each mechanism adds independent noise to the count of every class and names the class with the
largest result. A record touches one teacher, whose vote moves from one class to another: two counts
change by one each. The accounting treats all noisy counts as released, because the argmax is
post-processing. With two classes the released bit itself has an exact table (`VoteTable`), which
costs less, and that table is used.

All bounds hold for continuous noise and for the exact integer noise that generators draw
(Canonne, Kamath and Steinke 2020, "The Discrete Gaussian for Differential Privacy").
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.account.conversion import ORDERS, FloatArray, epsilon_from_rdp
from dpaudit.account.vote_table import VoteTable, vote_table
from dpaudit.errors import ClaimError, SettingsError
from dpaudit.model.choices import Mechanism
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.setting import AT_LEAST_0, AT_LEAST_1, POSITIVE, NumberRange, check_number


@dataclass(frozen=True, kw_only=True)
class NoisyMax(ABC):
    """The class with the most votes after noise on every count; all constants are public.

    Attributes:
        teachers: Number k of teachers, each with one vote, at least 1.
        classes: Number of classes, at least 2.
        scale: Scale of the noise, in votes, positive and finite.

    Raises:
        SettingsError: If a constant is out of range.
    """

    teachers: int
    classes: int
    scale: float
    _noise: ClassVar[str]
    """The noise in words, with a place for its scale."""
    _proof: ClassVar[str]
    """The accounting in words."""

    def __post_init__(self) -> None:
        check_number("teachers", self.teachers, AT_LEAST_1)
        check_number("classes", self.classes, NumberRange(least=2))
        check_number("scale", self.scale, POSITIVE)

    @cached_property
    def table(self) -> VoteTable | None:
        """With two classes, the 64-bit table that the released bit is drawn from."""
        return self._exact_table().quantised() if self.classes == 2 else None

    def rdp(self, orders: ArrayLike) -> FloatArray:
        """Rényi divergence of one label in nats, an upper bound; exact with two classes.

        Args:
            orders: Rényi orders, finite and above 1, shape [m].

        Returns:
            The divergence at each order, shape [m].

        Raises:
            SettingsError: If an order is not a finite number above 1.
        """
        order = np.atleast_1d(np.asarray(orders, dtype=np.float64))
        if not np.all((order > 1.0) & np.isfinite(order)):
            raise SettingsError("Rényi orders must be a flat list of finite numbers above 1")
        return self._rdp_of_counts(order) if self.table is None else self.table.rdp(order)

    def epsilon(self, labels: int, *, delta: float) -> float:
        """The cost of a number of labels, for adding or removing one record.

        Queries may depend on earlier labels in any way (Mironov 2017, "Rényi Differential
        Privacy", Proposition 1).

        Args:
            labels: Labels released, discarded ones included, at least 0.
            delta: The delta of the statement, in [0, 1).

        Returns:
            Epsilon in nats; infinity if nothing can be proved.

        Raises:
            SettingsError: If an argument is outside its range.
        """
        check_number("labels", labels, AT_LEAST_0, whole=True)
        if self.table is not None:
            return self.table.epsilon(labels, delta=delta)
        rdp = epsilon_from_rdp(ORDERS, labels * self._rdp_of_counts(ORDERS), delta=delta)
        return min(labels * self._pure_epsilon, rdp) if labels else 0.0

    def claim(self, labels: int, *, delta: float) -> PrivacyClaim:
        """The cost as a claim, with its derivation in words.

        Args:
            labels: Labels released, at least 1.
            delta: The delta of the claim.

        Returns:
            The claim, for add-remove neighbours.

        Raises:
            SettingsError: If an argument is outside its range.
            ClaimError: If nothing can be claimed: the cost is 0 or infinite.
        """
        if self.table is not None:
            return self.table.claim(labels, delta=delta)
        source = (
            f"{labels} votes of {self.teachers} teachers among {self.classes} classes with "
            f"{self._noise.format(self.scale)}; one record moves one vote, two counts by one; "
            f"{self._proof}"
        )
        return _claim(self.epsilon(labels, delta=delta), delta, source)

    @abstractmethod
    def _exact_table(self) -> VoteTable:
        """The table of two classes."""

    @abstractmethod
    def _rdp_of_counts(self, order: FloatArray) -> FloatArray:
        """Bound on the divergence of all noisy counts, shape [m]."""

    @property
    @abstractmethod
    def _pure_epsilon(self) -> float:
        """Epsilon of one label at delta 0; infinite for Gaussian noise."""


@dataclass(frozen=True, kw_only=True)
class LaplaceNoisyMax(NoisyMax):
    """PATE's noisy max (Papernot et al. 2017, section 2): Laplace noise, `scale` is 1/gamma.

    One label is 2 gamma-differentially private. Its moments are at most those of Theorem 2 there,
    2 gamma**2 l (l + 1), which is an order's divergence of 2 gamma**2 a, and at most 2 gamma. The
    curve used here is below both: each of the two counts is gamma-DP on its own, and every
    gamma-DP mechanism is post-processing of randomised response at gamma (Kairouz, Oh and
    Viswanath 2015, "The Composition Theorem for Differential Privacy"), so that twice the
    divergence of randomised response bounds the label's. About gamma**2 a at small orders, half
    of Theorem 2. With integer noise the noisy counts attain it.
    """

    _noise: ClassVar[str] = "Laplace noise of scale {:g} on each count"
    _proof: ClassVar[str] = "the smaller of 2/scale a label added up and Rényi divergences added up"

    def _exact_table(self) -> VoteTable:
        return vote_table(Mechanism.NOISY_MAX, self.teachers, self.scale)

    def _rdp_of_counts(self, order: FloatArray) -> FloatArray:
        return 2.0 * randomised_response_rdp(order, 1.0 / self.scale)

    @property
    def _pure_epsilon(self) -> float:
        return 2.0 / self.scale


@dataclass(frozen=True, kw_only=True)
class GaussianNoisyMax(NoisyMax):
    """GNMax (Papernot et al. 2018, "Scalable Private Learning with PATE"): `scale` is sigma.

    Proposition 8 there: one label has Rényi divergence at most a / sigma**2, that of a Gaussian
    mechanism with squared sensitivity 2. The same holds for the discrete Gaussian (Canonne,
    Kamath and Steinke 2020, Theorem 14). The difference of two counts has noise sigma sqrt 2 and
    moves by two, so with two classes this is one Gaussian of sigma / sqrt 2 on the count of ones.
    """

    _noise: ClassVar[str] = "Gaussian noise of standard deviation {:g} on each count"
    _proof: ClassVar[str] = "Rényi divergences of order / sigma**2 added up"

    def _exact_table(self) -> VoteTable:
        return vote_table(Mechanism.GAUSSIAN, self.teachers, self.scale / math.sqrt(2.0))

    def _rdp_of_counts(self, order: FloatArray) -> FloatArray:
        return np.asarray(order / self.scale**2, dtype=np.float64)

    @property
    def _pure_epsilon(self) -> float:
        return math.inf


@dataclass(frozen=True, kw_only=True)
class ConfidentNoisyMax:
    """Confident-GNMax (Papernot et al. 2018, Algorithm 1): only clear majorities are answered.

    A query is answered by `answer` if the largest count, plus separate Gaussian noise, reaches the
    threshold. One record moves the largest count by at most one, so a check has Rényi divergence a
    / (2 check_scale**2), whether it passes or not; an answer costs what it costs in `answer`. Both
    numbers are fixed beforehand: all checks and all labels are charged, however many are used.

    Attributes:
        answer: The noisy max of a query that passes.
        threshold: Votes that the noisy largest count must reach, a whole number.
        check_scale: Standard deviation of the check's noise (sigma_1), positive and finite.
        checks: Queries that may be checked, at least 1.

    Raises:
        SettingsError: If a constant is out of range.
    """

    answer: GaussianNoisyMax
    threshold: int
    check_scale: float
    checks: int

    def __post_init__(self) -> None:
        check_number("scale", self.check_scale, POSITIVE)
        check_number("checks", self.checks, AT_LEAST_1, whole=True)
        # Generators draw integer noise, which meets a whole threshold; another would be rounded.
        check_number("threshold", self.threshold, AT_LEAST_0, whole=True)

    @property
    def teachers(self) -> int:
        """Number of teachers."""
        return self.answer.teachers

    @property
    def classes(self) -> int:
        """Number of classes."""
        return self.answer.classes

    def epsilon(self, labels: int, *, delta: float) -> float:
        """The cost of all checks and this many answered queries; see `NoisyMax.epsilon`.

        Raises:
            SettingsError: If an argument is outside its range.
        """
        check_number("labels", labels, AT_LEAST_0, whole=True)
        checks = self.checks * ORDERS / (2.0 * self.check_scale**2)
        answers = labels * self.answer.rdp(ORDERS)
        return epsilon_from_rdp(ORDERS, checks + answers, delta=delta)

    def claim(self, labels: int, *, delta: float) -> PrivacyClaim:
        """The cost as a claim, with its derivation in words.

        Raises:
            SettingsError: If an argument is outside its range.
            ClaimError: If nothing can be claimed: the cost is 0 or infinite.
        """
        source = (
            f"at most {self.checks} checks of the largest count, Gaussian noise of standard "
            f"deviation {self.check_scale:g}, and {labels} votes of {self.teachers} teachers among "
            f"{self.classes} classes, {self.answer.scale:g} on each count; one record moves one "
            "vote; Rényi divergences added up"
        )
        return _claim(self.epsilon(labels, delta=delta), delta, source)


def randomised_response_rdp(order: FloatArray, epsilon: float) -> FloatArray:
    """Rényi divergence of a bit kept with odds e**epsilon from the same bit flipped.

    ln(p e**x + (1 - p) e**-x) / (a - 1) with x = (a - 1) epsilon, p = 1 / (1 + e**-epsilon);
    for small x as ln(1 + 2 sinh(x/2)**2 + tanh(epsilon/2) sinh x), where no digits cancel.
    """
    x = (order - 1.0) * epsilon
    small = np.minimum(x, 1.0)
    near = np.log1p(2.0 * np.sinh(small / 2) ** 2 + math.tanh(epsilon / 2) * np.sinh(small))
    kept = 1.0 / (1.0 + math.exp(-epsilon))
    far = x + np.log(kept + (1.0 - kept) * np.exp(-2.0 * x))
    return np.asarray(np.where(x < 1.0, near, far) / (order - 1.0), dtype=np.float64)


def _claim(epsilon: float, delta: float, source: str) -> PrivacyClaim:
    if math.isinf(epsilon):
        raise ClaimError(f"Gaussian noise proves nothing at delta {delta:g}: choose 1e-5 or so")
    return PrivacyClaim(epsilon=epsilon, delta=delta, source=source)
