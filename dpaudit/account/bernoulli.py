"""Divergences between Bernoulli distributions whose probabilities are fixed-point integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dpaudit.account.conversion import FloatArray


class Steps(NamedTuple):
    """Pairs (P, Q) of distributions of one bit.

    Attributes:
        ones: P(1), shape [n].
        zeros: P(0), its exact complement.
        loss_of_one: ln(P(1) / Q(1)), the privacy loss of a one; infinite where Q rules it out.
        loss_of_zero: ln(P(0) / Q(0)).
    """

    ones: FloatArray
    zeros: FloatArray
    loss_of_one: FloatArray
    loss_of_zero: FloatArray

    @property
    def finite(self) -> bool:
        """Whether neither side rules out a bit that the other can give."""
        return bool(np.isfinite(self.loss_of_one).all() and np.isfinite(self.loss_of_zero).all())

    @property
    def largest_loss(self) -> float:
        """The largest absolute privacy loss: the pure epsilon of one label."""
        losses = np.abs(np.concatenate([self.loss_of_one, self.loss_of_zero]))
        return float(losses.max(initial=0.0))


def steps_between(from_: Sequence[int], to: Sequence[int], bits: int) -> Steps:
    """The pairs (p, q) of two lists of integers over 2**bits; losses of close ones are accurate.

    Args:
        from_: Integers p in [0, 2**bits]; n of them.
        to: Integers q; as many.
        bits: The resolution.

    Returns:
        The n pairs.
    """
    one = 1 << bits
    complement, to_complement = [one - p for p in from_], [one - q for q in to]
    return Steps(
        ones=fractions(from_, bits),
        zeros=fractions(complement, bits),
        loss_of_one=_log_ratios(from_, to),
        loss_of_zero=_log_ratios(complement, to_complement),
    )


def neighbour_steps(table: Sequence[int], bits: int) -> Steps:
    """All steps between neighbouring entries of a table, up and down.

    A step that repeats another, or mirrors it with ones for zeros, has the same privacy losses and
    is left out; so is one between equal entries.
    """
    one = 1 << bits
    kept: dict[tuple[int, int], None] = {}
    for lower, upper in pairwise(table):
        for p, q in ((lower, upper), (upper, lower)):
            if p != q and (one - p, one - q) not in kept:
                kept[p, q] = None
    return steps_between([p for p, _ in kept], [q for _, q in kept], bits)


def divergences(steps: Steps, order: FloatArray) -> FloatArray:
    """Rényi divergences D_a(P || Q) in nats of n pairs at orders a above 1 [m], shape [n, m].

    The divergence is ln(P(1) e^((a-1) L1) + P(0) e^((a-1) L0)) / (a-1) with the losses L1 and L0.

    Args:
        steps: The n pairs.
        order: The orders; shape [m].

    Returns:
        Divergences; shape [n, m].
    """
    p, p_not = steps.ones[:, None], steps.zeros[:, None]
    ratio_1 = steps.loss_of_one[:, None] * (order - 1.0)
    ratio_0 = steps.loss_of_zero[:, None] * (order - 1.0)
    # Close to Q = P the two terms add up to almost 1: keep what exceeds 1. Elsewhere the
    # exponentials may overflow: stay in logarithms.
    excess = p * np.expm1(np.minimum(ratio_1, 1.0)) + p_not * np.expm1(np.minimum(ratio_0, 1.0))
    with np.errstate(divide="ignore"):
        far = np.logaddexp(np.log(p) + ratio_1, np.log(p_not) + ratio_0)
    near = np.maximum(ratio_1, ratio_0) < 1.0
    moments = np.where(near, np.log1p(np.maximum(excess, 0.0)), far)
    return np.asarray(moments / (order - 1.0), dtype=np.float64)


def fractions(integers: Sequence[int], bits: int) -> FloatArray:
    """Each integer over 2**bits, correctly rounded to a float."""
    one = 1 << bits
    return np.array([integer / one for integer in integers], dtype=np.float64)


def _log_ratios(from_: Sequence[int], to: Sequence[int]) -> FloatArray:
    """ln(p/q) for each pair of integers; 0 for 0/0, which carries no probability either way."""
    return np.array([_log_ratio(p, q) for p, q in zip(from_, to, strict=True)], dtype=np.float64)


def _log_ratio(p: int, q: int) -> float:
    if p == q:
        return 0.0
    if q == 0:
        return math.inf
    if p == 0:
        return -math.inf
    if p > q:
        return -_log_ratio(q, p)
    if p << 1 < q:
        return math.log(p) - math.log(q)  # of integers of any size, where no float would hold them
    return math.log1p(-((q - p) / q))  # relative differences keep close integers accurate
