"""The cost of many labels by their privacy loss distribution."""

from __future__ import annotations

from typing import Final

import numpy as np

from dpaudit.account.bernoulli import Steps
from dpaudit.account.conversion import FloatArray

_LEAST_POINTS: Final = 100
"""Grid points on each side of 0, at least; the discretisation is exact at each."""

_MOST_POINTS: Final = 10_000
"""At most, for labels of large losses."""

_FINE: Final = 1e-3
"""Distance of grid points that is fine enough where more than the least number fit."""


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
