"""The noisy majority vote as a public table of probabilities."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from dpaudit.account.conversion import FloatArray
from dpaudit.errors import SettingsError

_WORD: Final = 2**64
"""Number of 64-bit words; probabilities are multiples of 1 / _WORD."""

_FLOOR: Final = 1e-6
"""No label is more certain than 1 - _FLOOR, so that every divergence is finite."""


@dataclass(frozen=True)
class VoteTable:
    """A mechanism that releases one label bit from the votes of k teachers.

    With n of the k teachers voting 1, the released bit is 1 with probability p[n]. The table is
    public; only n is secret. Drawing the bit by comparing a uniform 64-bit word with an integer
    makes the released distribution exactly the accounted one: there is no floating-point noise
    whose low bits could betray n (Mironov 2012, "On significance of the least significant bits
    for differential privacy").

    Attributes:
        thresholds: k + 1 integers in [0, 2**64]; p[n] is ``thresholds[n] / 2**64``.
    """

    thresholds: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.thresholds) < 2:
            raise SettingsError(
                f"a vote table has {len(self.thresholds)} entries: give one for each count of "
                "votes 0..k, with at least one teacher."
            )
        for votes, threshold in enumerate(self.thresholds):
            if not isinstance(threshold, int) or not 0 <= threshold <= _WORD:
                raise SettingsError(
                    f"entry {votes} of a vote table is {threshold!r}: give an integer in "
                    "[0, 2**64]."
                )

    @property
    def teachers(self) -> int:
        """The number k of teachers."""
        return len(self.thresholds) - 1

    @property
    def probabilities(self) -> FloatArray:
        """The probability p[n] that the bit is 1, shape [k + 1]."""
        return _fractions(self.thresholds)

    def release(self, votes: int, word: int) -> int:
        """Draw the label bit.

        Args:
            votes: How many teachers voted 1, in 0..k.
            word: A uniform 64-bit integer, fresh for every call: from the operating system's
                entropy in production, from a seeded stream in an audit.

        Returns:
            1 with probability p[votes] over the word, else 0.

        Raises:
            SettingsError: If the votes or the word are outside their range.
        """
        # The messages do not quote the values: both are secrets.
        if not 0 <= votes <= self.teachers:
            raise SettingsError(f"the votes are not in 0..{self.teachers}: pass the count of ones.")
        if not 0 <= word < _WORD:
            raise SettingsError("the random word is not in [0, 2**64): draw 64 uniform bits.")
        return int(word < self.thresholds[votes])

    def rdp(self, orders: ArrayLike) -> FloatArray:
        """Exact Rényi divergence of one released bit, in nats.

        Adding or removing one record changes one teacher, hence moves n by at most one. The
        divergence is therefore the largest of D_a(p[n] || p[n+1]) and D_a(p[n+1] || p[n]) over
        n: a finite maximum, not a bound. T adaptive labels cost at most T times as much
        (Mironov 2017, "Rényi Differential Privacy", Proposition 1).

        Args:
            orders: Rényi orders, finite and above 1, shape [m].

        Returns:
            The divergence at each order, shape [m]; infinite where a neighbour rules out a bit.

        Raises:
            SettingsError: If an order is not a finite number above 1.
        """
        order = np.asarray(orders, dtype=np.float64)
        if order.ndim != 1 or not np.all((order > 1.0) & np.isfinite(order)):
            raise SettingsError("Rényi orders must be a flat list of finite numbers above 1.")
        up = _worst_divergence(self.thresholds[:-1], self.thresholds[1:], order)
        down = _worst_divergence(self.thresholds[1:], self.thresholds[:-1], order)
        return np.maximum(up, down)


def gaussian_vote_table(*, teachers: int, scale: float) -> VoteTable:
    """The vote "are there more ones than zeros, after Gaussian noise on the count of ones".

    The bit is 1 with probability Phi((n - k/2) / scale), clipped to [1e-6, 1 - 1e-6] and rounded
    to a multiple of 2**-64. The table is symmetric: p[n] + p[k - n] = 1 holds exactly.

    Args:
        teachers: The number k of teachers, at least 1.
        scale: Standard deviation of the noise in votes, positive and finite.

    Raises:
        SettingsError: If an argument is outside its range.
    """
    if teachers < 1:
        raise SettingsError(f"teachers is {teachers}: use at least 1.")
    if not 0.0 < scale < math.inf:
        raise SettingsError(f"scale is {scale}: choose a positive, finite number of votes.")
    # Only the lower half is computed: small probabilities keep their precision in a float, and
    # the upper half is its exact complement. A float times 2**64 is exact; int() takes it whole.
    margins = np.arange(teachers // 2 + 1) - teachers / 2
    lower = [int(p * _WORD) for p in np.maximum(ndtr(margins / scale), _FLOOR).tolist()]
    mirrored = [_WORD - lower[teachers - n] for n in range(len(lower), teachers + 1)]
    return VoteTable(thresholds=(*lower, *mirrored))


def _fractions(words: tuple[int, ...]) -> FloatArray:
    """Each integer over 2**64, correctly rounded to a float."""
    return np.array([word / _WORD for word in words], dtype=np.float64)


def _worst_divergence(from_: tuple[int, ...], to: tuple[int, ...], order: FloatArray) -> FloatArray:
    """Largest D_a(Bernoulli(p) || Bernoulli(q)) over the pairs (p, q) of two tables, shape [m].

    With L1 = ln(p/q) and L0 = ln((1-p)/(1-q)), the divergence is
    ln(p e^((a-1) L1) + (1-p) e^((a-1) L0)) / (a-1). Differences and complements are taken on the
    integers, so that divergences far below the float resolution of p itself stay accurate.
    """
    p = _fractions(from_)[:, None]
    p_not = _fractions(tuple(_WORD - word for word in from_))[:, None]
    ratio_1 = _log_ratios(from_, to)[:, None] * (order - 1.0)
    ratio_0 = _log_ratios(
        tuple(_WORD - word for word in from_), tuple(_WORD - word for word in to)
    )[:, None] * (order - 1.0)
    # Close to q = p the two terms add up to almost 1: keep what exceeds 1. Elsewhere the
    # exponentials may overflow: stay in logarithms.
    excess = p * np.expm1(np.minimum(ratio_1, 1.0)) + p_not * np.expm1(np.minimum(ratio_0, 1.0))
    with np.errstate(divide="ignore"):
        far = np.logaddexp(np.log(p) + ratio_1, np.log(p_not) + ratio_0)
    near = np.maximum(ratio_1, ratio_0) < 1.0
    moments = np.where(near, np.log1p(np.maximum(excess, 0.0)), far)
    return np.asarray(moments.max(axis=0) / (order - 1.0), dtype=np.float64)


def _log_ratios(from_: tuple[int, ...], to: tuple[int, ...]) -> FloatArray:
    """ln(p/q) for each pair of integers; 0 for 0/0, which carries no probability either way."""
    return np.array([_log_ratio(p, q) for p, q in zip(from_, to, strict=True)], dtype=np.float64)


def _log_ratio(p: int, q: int) -> float:
    if p == q:
        return 0.0
    if q == 0:
        return math.inf
    if p == 0:
        return -math.inf
    # Relative differences keep the ratio of close integers accurate, and stay above -1.
    return math.log1p((p - q) / q) if p > q else -math.log1p((q - p) / p)
