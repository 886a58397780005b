"""The least epsilon that holds for many labels, by dynamic programming over the privacy loss."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dpaudit.account.bernoulli import Steps
from dpaudit.account.conversion import FloatArray

_POINTS_PER_LOSS: Final = 10
"""Grid points per loss of the most informative label, at least: chords add 0.2 % to its variance.
Fewer than a hundred labels get more, since their losses do not average out."""

_BEYOND: Final = 10.0
"""How far the grid reaches above epsilon: a loss beyond it is taken as certain, worth e^-10 of
the probability to get there."""


def tight_epsilon(steps: Steps, *, labels: int, delta: float, at_most: float) -> float:
    """Epsilon of T adaptive labels against the worst adversary, within a small numerical excess.

    The adversary chooses before each label which neighbouring votes the two tables cause, in the
    light of all labels so far. With W_t(s) the largest delta to be had from t more labels when the
    privacy loss exceeds epsilon by s,

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
