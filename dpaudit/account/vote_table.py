"""The noisy majority vote as a public table of probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, TypeAlias, overload

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from dpaudit.account.composition import (
    Steps,
    divergences,
    epsilon_of_labels,
    fractions,
    neighbour_steps,
    proof_of,
    steps_between,
)
from dpaudit.account.conversion import FloatArray
from dpaudit.errors import SettingsError
from dpaudit.model.choices import Mechanism, Method
from dpaudit.model.claim import PrivacyClaim

IntArray: TypeAlias = npt.NDArray[np.int64]
WordArray: TypeAlias = npt.NDArray[np.uint64]
WORD_BITS: Final = 64
"""Bits of the random word that draws a label."""
_FLOAT_BITS: Final = 1074
"""With this many bits every float in [0, 1] is a fixed-point number."""
_TINY: Final = 2.0**-1000
"""An exact table is never quite certain, so every divergence is finite."""
_ROUNDING: Final = 1e-14
"""More than the rounding errors of two quantiles."""
_FLOOR: Final = 1e-6
"""A quantised table is never more certain than this: clipping moves no epsilon that matters."""


@dataclass(frozen=True)
class VoteTable:
    """A mechanism that releases one label bit from the votes of k teachers.

    With n of the k teachers voting 1, the released bit is 1 with probability p[n]. The table is
    public; only n is secret, and adding or removing one record moves n by at most one. So every
    divergence is a finite maximum over n, exact, where the literature bounds one over the reals.

    Probabilities are fixed-point integers: complements and differences of close ones are exact.

    Attributes:
        thresholds: k + 1 integers in [0, 2**bits]; p[n] is ``thresholds[n] / 2**bits``.
        bits: The resolution; 64 in a table that labels are drawn from.
        noise: The origin of the table, in words.

    Raises:
        SettingsError: If an entry is not an integer in the range or there are fewer than two.
    """

    thresholds: tuple[int, ...]
    bits: int = WORD_BITS
    noise: str = "a given table"

    def __post_init__(self) -> None:
        if len(self.thresholds) < 2:
            raise SettingsError(
                f"a vote table has {len(self.thresholds)} entries: give one for each count of "
                "votes 0..k, with at least one teacher"
            )
        for votes, threshold in enumerate(self.thresholds):
            if not isinstance(threshold, int) or not 0 <= threshold <= 1 << self.bits:
                raise SettingsError(
                    f"entry {votes} of a vote table is {threshold!r}: give an integer in "
                    f"[0, 2**{self.bits}]"
                )

    @classmethod
    def gaussian(cls, k: int, s: float) -> VoteTable:
        """The sign of the margin after normal noise of standard deviation s: p = Phi(m / s)."""
        return vote_table(Mechanism.GAUSSIAN, k, s)

    @classmethod
    def laplace(cls, k: int, scale: float) -> VoteTable:
        """The same with one Laplace variable: p = 1 - exp(-m / scale) / 2 for m >= 0."""
        return vote_table(Mechanism.LAPLACE, k, scale)

    @classmethod
    def noisy_max(cls, k: int, scale: float) -> VoteTable:
        """The larger of two counts, each with its own Laplace variable (PATE's 1/gamma)."""
        return vote_table(Mechanism.NOISY_MAX, k, scale)

    @property
    def teachers(self) -> int:
        """The number k of teachers."""
        return len(self.thresholds) - 1

    @property
    def probabilities(self) -> FloatArray:
        """The probability p[n] that the bit is 1, shape [k + 1]."""
        return fractions(self.thresholds, self.bits)

    def accuracy(self, consensus: float) -> float:
        """Probability that a label follows the majority.

        Args:
            consensus: Share of the teachers that agree, in [0.5, 1]; between whole votes the
                probability is interpolated.

        Returns:
            The probability.

        Raises:
            SettingsError: If the share is outside the range.
        """
        if not 0.5 <= consensus <= 1.0:
            raise SettingsError(f"`consensus` is {consensus}: choose a share in [0.5, 1]")
        votes = np.arange(self.teachers + 1)
        return float(np.interp(consensus * self.teachers, votes, self.probabilities))

    def quantised(self) -> VoteTable:
        """The table that a generator draws from and accounts for.

        Probabilities are clipped to [1e-6, 1 - 1e-6] and cut to multiples of 2**-64, so a label is
        the comparison of a uniform 64-bit word with an integer: the released distribution is the
        accounted one, with no floating-point noise whose low bits could reveal the votes (Mironov
        2012, "On significance of the least significant bits for differential privacy").
        """
        one = 1 << WORD_BITS
        least = int(_FLOOR * one)
        half = one >> 1

        def cut(threshold: int) -> int:
            # Cutting towards the nearer end's complement keeps a symmetric table symmetric.
            if threshold << 1 <= 1 << self.bits:
                return min(max(self._words(threshold), least), half)
            return one - min(max(self._words((1 << self.bits) - threshold), least), half)

        return replace(self, thresholds=tuple(map(cut, self.thresholds)), bits=WORD_BITS)

    def _words(self, threshold: int) -> int:
        return (threshold << WORD_BITS) >> self.bits

    def release(self, votes: npt.ArrayLike, words: npt.ArrayLike) -> IntArray:
        """Draws labels.

        Args:
            votes: How many teachers voted 1, in 0..k, integers [n].
            words: Uniform 64-bit integers [n], fresh for every label: the operating system's
                entropy in production, a seeded stream in an audit.

        Returns:
            Labels [n]: 1 with probability p[votes] over the word, else 0.

        Raises:
            SettingsError: If the table has another resolution or an argument is outside its range.
        """
        if self.bits != WORD_BITS:
            raise SettingsError("labels are drawn from a 64-bit table: use quantised() first")
        count = np.asarray(votes)
        word = np.asarray(words)
        # The messages do not quote the values: both are secrets.
        if count.dtype.kind not in "iu" or np.any((count < 0) | (count > self.teachers)):
            raise SettingsError(f"the votes are not in 0..{self.teachers}: pass the count of ones")
        if word.dtype != np.uint64 or word.shape != count.shape:
            raise SettingsError("the random words are not one uint64 for each vote: draw 64 bits")
        possible, last = self._last_words
        return np.asarray(possible[count] & (word <= last[count]), dtype=np.int64)

    @cached_property
    def _last_words(self) -> tuple[npt.NDArray[np.bool_], WordArray]:
        """Whether a one is possible, and the largest word that draws it: 2**64 fits no uint64."""
        possible = np.array([threshold > 0 for threshold in self.thresholds])
        last = [max(threshold, 1) - 1 for threshold in self.thresholds]
        return possible, np.array(last, dtype=np.uint64)

    def divergences(self, orders: ArrayLike) -> FloatArray:
        """Exact Rényi divergences between neighbouring entries, in nats.

        Args:
            orders: Rényi orders, finite and above 1, shape [m].

        Returns:
            Shape [2, k, m]: D_a(p[n] || p[n+1]), then D_a(p[n+1] || p[n]), for n in 0..k-1;
            infinite where a neighbour rules out a bit.

        Raises:
            SettingsError: If an order is not a finite number above 1.
        """
        order = _valid(orders)
        lower, upper = self.thresholds[:-1], self.thresholds[1:]
        up = divergences(steps_between(lower, upper, self.bits), order)
        down = divergences(steps_between(upper, lower, self.bits), order)
        return np.stack([up, down])

    @overload
    def rdp(self, orders: float) -> float: ...
    @overload
    def rdp(self, orders: ArrayLike) -> FloatArray: ...
    def rdp(self, orders: ArrayLike) -> FloatArray | float:
        """Exact Rényi divergence of one label: the largest of `divergences` at each order.

        Args:
            orders: One Rényi order or a list [m], finite and above 1.

        Returns:
            The divergence at the order, or at each order [m].

        Raises:
            SettingsError: If an order is not a finite number above 1.
        """
        largest = divergences(self._steps, _valid(np.atleast_1d(orders))).max(axis=0, initial=0.0)
        return float(largest[0]) if np.ndim(orders) == 0 else np.asarray(largest)

    def epsilon(self, labels: int, *, delta: float, method: Method | str = Method.BEST) -> float:
        """What a number of labels costs, for adding or removing one record.

        Votes may depend on earlier labels in any way: all methods cover adaptive composition.

        Args:
            labels: How many labels are released, at least 0. Count discarded ones too.
            delta: The delta of the statement, in [0, 1); at 0 the pure costs of the labels add up,
                whatever the method.
            method: How the cost is proved.

        Returns:
            Epsilon in nats; infinity if nothing can be proved.

        Raises:
            SettingsError: If an argument is outside its range.
        """
        if method not in list(Method):
            raise SettingsError(f"`method` is {method!r}: use {', '.join(Method)}")
        return epsilon_of_labels(self._steps, labels=labels, delta=delta, method=Method(method))

    @cached_property
    def mu(self) -> float:
        """Gaussian DP of one label: the distance of neighbouring votes in normal quantiles.

        A bit that is 1 with probability p indicates whether a normal variable of mean quantile(p)
        and variance 1 is above 0. So distinguishing the bits of two counts is at least as hard as
        distinguishing N(0, 1) from N(mu, 1), and T labels, whose votes may depend on earlier ones
        in any way, are sqrt(T) mu-GDP (Dong, Roth and Su 2022, Lemma 2.9 and Corollary 3.3).
        Infinite if a label is certain for one count and not for its neighbour.
        """
        ones = self.probabilities
        zeros = fractions([(1 << self.bits) - one for one in self.thresholds], self.bits)
        quantiles = np.where(ones <= 0.5, ndtri(ones), -ndtri(zeros))  # small ones are precise
        with np.errstate(invalid="ignore"):
            steps = np.abs(np.diff(quantiles))
        return float(np.nan_to_num(steps, nan=0.0, posinf=np.inf).max()) + _ROUNDING

    def claim(
        self, labels: int, *, delta: float, method: Method | str = Method.BEST
    ) -> PrivacyClaim:
        """The cost as a claim, with its derivation in words.

        Args:
            labels: How many labels are released, at least 1.
            delta: The delta of the claim.
            method: How the cost is proved.

        Returns:
            The claim, for add-remove neighbours.

        Raises:
            SettingsError: If an argument is outside its range.
            ClaimError: If nothing can be claimed: the cost is 0 or infinite.
        """
        epsilon = self.epsilon(labels, delta=delta, method=method)
        source = (
            f"{labels} one-bit votes of {self.teachers} teachers with {self.noise}; one record "
            f"moves one vote by one; {proof_of(Method(method))}"
        )
        return PrivacyClaim(epsilon=epsilon, delta=delta, source=source)

    @cached_property
    def _steps(self) -> Steps:
        return neighbour_steps(self.thresholds, self.bits)


def vote_table(mechanism: Mechanism, k: int, scale: float) -> VoteTable:
    """The exact table of a mechanism.

    Args:
        mechanism: The noise.
        k: Number of teachers, at least 1.
        scale: Scale of the noise, in votes, positive and finite: the standard deviation of normal
            noise, the Laplace scale (PATE's 1/gamma).

    Returns:
        The table, symmetric: p[n] + p[k - n] = 1 holds exactly.

    Raises:
        SettingsError: If an argument is outside its range.
    """
    check_teachers(k)
    if not 0.0 < scale < math.inf:
        raise SettingsError(f"`scale` is {scale}: choose a positive, finite number of votes")
    # Only the lower half is computed: small probabilities keep their precision in a float, and
    # the upper half is its exact complement.
    margins = k / 2 - np.arange(k // 2 + 1, dtype=np.float64)
    with np.errstate(under="ignore"):
        wrong = np.maximum(wrong_at(mechanism, margins / scale), _TINY)
    lower = [_fixed_point(p) for p in wrong.tolist()]
    mirrored = [(1 << _FLOAT_BITS) - lower[k - n] for n in range(len(lower), k + 1)]
    return VoteTable((*lower, *mirrored), bits=_FLOAT_BITS, noise=in_words(mechanism, scale))


def _fixed_point(p: float) -> int:
    top, bottom = p.as_integer_ratio()
    return (top << _FLOAT_BITS) // bottom


def _valid(orders: ArrayLike) -> FloatArray:
    order = np.asarray(orders, dtype=np.float64)
    if order.ndim != 1 or not np.all((order > 1.0) & np.isfinite(order)):
        raise SettingsError("Rényi orders must be finite numbers above 1, one or a flat list")
    return order


# Probability that a label is wrong when the majority is `x` noise scales above a tie. For two
# Laplace variables this is Lemma 4 of Papernot et al. 2017, an equality for two classes.
_WRONG: Final[dict[Mechanism, Callable[[FloatArray], FloatArray]]] = {
    Mechanism.GAUSSIAN: lambda x: np.asarray(ndtr(-x)),
    Mechanism.LAPLACE: lambda x: np.asarray(0.5 * np.exp(-x)),
    Mechanism.NOISY_MAX: lambda x: np.asarray(0.5 * (1.0 + x) * np.exp(-2.0 * x)),
}
_WORDS: Final = {
    Mechanism.GAUSSIAN: "normal noise of standard deviation {:g} on the count of ones",
    Mechanism.LAPLACE: "Laplace noise of scale {:g} on the count of ones",
    Mechanism.NOISY_MAX: "Laplace noise of scale {:g} on each of the two counts",
}


def wrong_at(mechanism: Mechanism, scales: FloatArray) -> FloatArray:
    """Probability that a label contradicts the majority.

    Args:
        mechanism: Which noise decides the vote.
        scales: Distance of the majority from a tie (k/2), in scales of the noise.

    Returns:
        The probability at each distance; same shape.
    """
    return _WRONG[mechanism](scales)


def in_words(mechanism: Mechanism, scale: float) -> str:
    """The noise in words for a claim."""
    return _WORDS[mechanism].format(scale)


def check_teachers(teachers: int) -> None:
    """Refuses a number of teachers that is not whole or is below 1.

    Raises:
        SettingsError: If it is.
    """
    if not isinstance(teachers, int) or teachers < 1:
        raise SettingsError(f"the number of teachers is {teachers}: use at least 1")
