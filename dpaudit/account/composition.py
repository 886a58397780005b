"""The joint cost of many released bits: the exact cost of one, and three proofs for all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dpaudit.account.conversion import ORDERS, FloatArray, check_delta, epsilon_from_rdp
from dpaudit.errors import SettingsError
from dpaudit.model.choices import Method

_LEAST_POINTS: Final = 100
"""Grid points on each side of 0, at least; the discretisation is exact at each."""
_MOST_POINTS: Final = 10_000
"""At most, for labels of large losses."""
_FINE: Final = 1e-3
"""Distance of grid points that is fine enough where more than the least number fit."""
_POINTS_PER_LOSS: Final = 10
"""Grid points per loss of the most informative label, at least: chords add 0.2 % to its variance.
Fewer than a hundred labels get more, since their losses do not average out."""
_BEYOND: Final = 10.0
"""The grid reaches this far above epsilon: a larger loss counts as certain.

That costs e^-10 of the probability of such a loss.
"""
_PROOFS: Final = {
    Method.RDP: "Rényi divergences of the labels added up",
    Method.PLD: "privacy loss distributions of the labels convolved",
    Method.TIGHT: "optimum over adaptive votes by dynamic programming over the privacy loss",
    Method.BEST: "the smaller of added Rényi divergences and convolved privacy losses",
}


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
        """Whether every bit that one side can give is possible on the other."""
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


def pld_epsilon(steps: Steps, *, labels: int, delta: float) -> float:
    """Epsilon of T adaptive labels by numerical composition of a dominating pair.

    The largest hockey-stick divergence over all votes and both directions,
    ``max over (P, Q) of [P(1) - e^x Q(1)]+ + [P(0) - e^x Q(0)]+``, is the curve of one pair of
    distributions that dominates every vote (Zhu, Dong and Wang 2022, "Optimal accounting of
    differential privacy via characteristic function", Theorem 10 for adaptive composition). It is
    discretised from above (Doroshenko et al. 2022, "Connect the dots", Algorithm 1) and convolved
    by dp-accounting.

    Args:
        steps: The pairs of one label, at least one; losses finite.
        labels: The number T of labels, at least 1.
        delta: The delta of the statement, in [0, 1).

    Returns:
        Epsilon in nats, at least 0.
    """
    from dp_accounting.pld import pld_pmf

    largest = steps.largest_loss
    interval = min(largest / _LEAST_POINTS, max(_FINE, largest / _MOST_POINTS))
    reach = int(np.ceil(largest / interval)) + 1
    grid = np.arange(-reach, reach + 1)
    curve = hockey_stick(steps, interval * grid.astype(np.float64))
    one = pld_pmf.create_pmf_pessimistic_connect_dots(interval, grid, curve)
    composed = one if labels == 1 else one.self_compose(labels)
    return max(0.0, float(composed.get_epsilon_for_delta(delta)))


def hockey_stick(steps: Steps, epsilons: FloatArray) -> FloatArray:
    """The largest hockey-stick divergence of one label at each epsilon, shape [m]."""
    largest = np.zeros_like(epsilons)
    for p, p_not, loss_1, loss_0 in zip(*steps, strict=True):
        # p - e^x q = p (1 - e^(x - loss)) with loss = ln(p / q)
        of_one = p * -np.expm1(np.minimum(epsilons - loss_1, 0.0))
        of_zero = p_not * -np.expm1(np.minimum(epsilons - loss_0, 0.0))
        np.maximum(largest, of_one + of_zero, out=largest)
    return largest


def tight_epsilon(steps: Steps, *, labels: int, delta: float, at_most: float) -> float:
    """Epsilon of T adaptive labels against the worst adversary, within a small numerical excess.

    Before each label the adversary chooses which neighbouring votes the two tables cause, given all
    labels so far. Let W_t(s) be the largest delta achievable with t more labels when the privacy
    loss exceeds epsilon by s:

        W_0(s) = (1 - e^-s)+,    W_t(s) = max over (P, Q) of E_P[ W_{t-1}(s + ln P/Q) ],

    delta(epsilon) is W_T(-epsilon): one pass gives the whole curve. Each W_t is convex in e^-s, so
    interpolating along chords in e^-s never understates it; off the grid W_t is replaced by 1 on
    the right and by its leftmost value on the left, which is no less either. The result is thus an
    upper bound, up to rounding (some 1e-16 per label), and no other valid one can be much smaller.

    Args:
        steps: The pairs (P, Q) of one label, at least one; losses finite.
        labels: The number T of labels, at least 1.
        delta: The delta of the statement, in [0, 1).
        at_most: A finite epsilon known to hold; it bounds the grid.

    Returns:
        Epsilon in nats, at least 0 and at most `at_most`.
    """
    if at_most == 0.0:
        return 0.0
    information = steps.ones * steps.loss_of_one**2 + steps.zeros * steps.loss_of_zero**2
    points_per_loss = _POINTS_PER_LOSS * max(1.0, 10.0 / labels**0.5)
    step = float(np.sqrt(information.max())) / points_per_loss
    first = -int(np.ceil((2.0 * at_most + 4.0) / step))
    last = int(np.ceil(_BEYOND / step))
    surplus = step * np.arange(first, last + 1)
    value = -np.expm1(-np.maximum(surplus, 0.0))
    ones = _shift(steps.loss_of_one, step, len(surplus))
    zeros = _shift(steps.loss_of_zero, step, len(surplus))
    for _ in range(labels):
        value = _before_one_more(value, steps, ones, zeros)
    holds = np.flatnonzero(value[: 1 - first] <= delta)  # surplus -epsilon, epsilon >= 0
    if len(holds) == 0:
        return at_most
    j = int(holds[-1])
    if j == -first:
        return 0.0
    # Between two points the chord in e^-s = e^epsilon bounds delta from above.
    share = (delta - value[j]) / (value[j + 1] - value[j])
    # Taken relative to the point: e^epsilon itself overflows from 710 on.
    return min(at_most, max(0.0, float(np.log1p(share * np.expm1(-step)) - surplus[j])))


class _Shift(NamedTuple):
    """A loss as a move on the grid: `places` to the right, plus a weight on the next point."""

    places: npt.NDArray[np.int64]
    weight: FloatArray


def _shift(loss: FloatArray, step: float, points: int) -> _Shift:
    # Beyond the grid's length every value is padding: the place no longer matters.
    scaled = np.clip(loss / step, -points - 1.0, points + 1.0)
    places = np.floor(scaled).astype(np.int64)
    # Where e^-s lies between two neighbouring points, as a share of their distance.
    weight = np.expm1(-(scaled - places) * step) / np.expm1(-step)
    return _Shift(places, weight)


def _before_one_more(value: FloatArray, steps: Steps, ones: _Shift, zeros: _Shift) -> FloatArray:
    points = len(value)
    pad = points + 2
    padded = np.concatenate([np.full(pad, value[0]), value, np.ones(pad)])

    def moved(shift: _Shift, pair: int) -> FloatArray:
        start = pad + int(shift.places[pair])
        left, right = padded[start : start + points], padded[start + 1 : start + 1 + points]
        moved: FloatArray = left + shift.weight[pair] * (right - left)
        return moved

    best = np.zeros(points)
    for pair, (p, p_not) in enumerate(zip(steps.ones, steps.zeros, strict=True)):
        np.maximum(best, p * moved(ones, pair) + p_not * moved(zeros, pair), out=best)
    return best


def epsilon_of_labels(steps: Steps, *, labels: int, delta: float, method: Method) -> float:
    """Epsilon of T labels whose votes may depend on earlier labels in any way.

    Args:
        steps: The pairs of distributions that neighbouring tables can cause for one label.
        labels: The number T of labels, at least 0.
        delta: The delta of the statement, in [0, 1).
        method: How it is proved.

    Returns:
        Epsilon in nats; infinity if nothing can be proved.

    Raises:
        SettingsError: If the number of labels or delta is outside its range.
    """
    if labels < 0:
        raise SettingsError(f"`labels` is {labels}: use a count, at least 0")
    check_delta(delta)
    if labels == 0 or len(steps.ones) == 0:
        return 0.0  # also for a table with infinite divergence
    if delta == 0.0:
        return labels * steps.largest_loss  # pure: the limit of infinite order, by any method
    rdp = epsilon_from_rdp(ORDERS, labels * divergences(steps, ORDERS).max(axis=0), delta=delta)
    if method is Method.RDP or not steps.finite:
        return rdp
    if method is Method.TIGHT:
        return tight_epsilon(steps, labels=labels, delta=delta, at_most=rdp)
    pld = pld_epsilon(steps, labels=labels, delta=delta)
    return pld if method is Method.PLD else min(rdp, pld)


def proof_of(method: Method) -> str:
    """How the cost is proved, in words for a claim."""
    return _PROOFS[method]
