"""The nearest pair of error rates that a claim allows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from known_attacks import DELTA
from reports.methods.projection import ErrorRates, project


def largest_expectation(q: ErrorRates, p: ErrorRates, epsilon: float, delta: float) -> float:
    """Supremum of E[q(x)/p(x)] over all rates that the claim allows, exactly.

    The expectation is bilinear, so that it is largest on the boundary of the polygon: in a
    vertex, or at the vertex of its parabola along an edge.
    """
    a0, a1 = (1.0 - q.fpr) / (1.0 - p.fpr), q.fpr / p.fpr
    b0, b1 = (1.0 - q.fnr) / (1.0 - p.fnr), q.fnr / p.fnr
    corner = (1.0 - delta) / (1.0 + math.exp(epsilon))
    top = 1.0 - delta
    vertices = [(0.0, top), (0.0, 1.0), (1.0, 1.0), (1.0, 0.0), (top, 0.0), (corner, corner)]
    best = -math.inf
    for (x0, y0), (x1, y1) in zip(vertices, [*vertices[1:], vertices[0]], strict=True):
        # (c + d·t)(e + f·t) along the edge
        c, d = a0 + (a1 - a0) * x0, (a1 - a0) * (x1 - x0)
        e, f = b0 + (b1 - b0) * y0, (b1 - b0) * (y1 - y0)
        turning = -(c * f + d * e) / (2.0 * d * f) if d * f != 0.0 else 0.0
        for t in (0.0, min(max(turning, 0.0), 1.0), 1.0):
            best = max(best, (c + d * t) * (e + f * t))
    return best


epsilons = st.floats(0.0, 12.0)
deltas = st.one_of(st.just(0.0), st.floats(1e-12, 0.5))
rates = st.floats(1e-6, 1.0 - 1e-6)


@settings(max_examples=300, deadline=None)
@given(epsilon=epsilons, delta=deltas, fpr=rates, fnr=rates)
def test_no_allowed_attack_gains_by_a_bet(
    epsilon: float, delta: float, fpr: float, fnr: float
) -> None:
    q = ErrorRates(np.float64(fpr), np.float64(fnr))
    p = project(q, epsilon=epsilon, delta=delta)
    assert largest_expectation(q, p, epsilon, delta) <= 1.0 + 1e-12


def test_a_projection_off_by_a_thousandth_is_found_out() -> None:
    q = ErrorRates(np.float64(0.02), np.float64(0.5))
    p = project(q, epsilon=1.0, delta=DELTA)
    moved = ErrorRates(p.fpr * 1.001, 1.0 - DELTA - math.e * p.fpr * 1.001)
    assert largest_expectation(q, moved, 1.0, DELTA) > 1.0 + 1e-8


@settings(max_examples=100, deadline=None)
@given(
    epsilon=epsilons,
    delta=deltas,
    fpr=rates,
    fnr=rates,
    n_out=st.floats(1, 9),
    n_in=st.floats(1, 9),
)
def test_the_projection_is_the_nearest_allowed_pair_of_rates(
    epsilon: float, delta: float, fpr: float, fnr: float, n_out: float, n_in: float
) -> None:
    q = ErrorRates(np.float64(fpr), np.float64(fnr))
    p = project(q, epsilon=epsilon, delta=delta, n_out=n_out, n_in=n_in)

    def divergence(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        def kl(x: np.ndarray, y: np.ndarray) -> np.ndarray:
            return x * np.log(x / y) + (1 - x) * np.log((1 - x) / (1 - y))

        return n_out * kl(q.fpr, a) + n_in * kl(q.fnr, b)

    steep = np.geomspace(1e-9, (1.0 - delta) / (1.0 + math.exp(epsilon)), 2000)
    flat = np.minimum(1.0 - delta - math.exp(epsilon) * steep, 1.0 - 1e-12)
    allowed = min(fnr + math.exp(epsilon) * fpr, fpr + math.exp(epsilon) * fnr) >= 1.0 - delta
    if allowed:
        assert p == q
    else:
        nearest = divergence(p.fpr, p.fnr)
        assert nearest <= divergence(steep, flat).min() + 1e-9
        assert nearest <= divergence(flat, steep).min() + 1e-9
        assert min(
            p.fnr + math.exp(epsilon) * p.fpr, p.fpr + math.exp(epsilon) * p.fnr
        ) == pytest.approx(1.0 - delta, rel=1e-12)
