"""Probabilities of selections: closed forms, counting, brute-force integrals."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest
from scipy import integrate, stats

from dpaudit.replaying import laws
from dpaudit.replaying.laws import NoiseLaw
from dpaudit.replaying.selections import (
    Comparisons,
    Scores,
    log_bits,
    log_cells,
    log_largest,
    log_rounds,
    scale_law,
)

BEFORE = np.array([3.0, 4.0, 1.0])
LAWS = {
    "laplace": (laws.Laplace(np.full(3, 2.0)), stats.laplace(scale=2.0)),
    "gaussian": (laws.Gaussian(np.full(3, 2.0)), stats.norm(scale=2.0)),
    "gumbel": (laws.Gumbel(np.full(3, 2.0)), stats.gumbel_r(scale=2.0)),
    "gumbel, mirrored": (laws.Gumbel(np.full(3, 2.0), -1.0), stats.gumbel_l(scale=2.0)),
    "exponential": (laws.Gamma(np.full(3, 2.0), np.ones(3)), stats.expon(scale=2.0)),
    "logistic": (laws.Logistic(np.full(3, 2.0)), stats.logistic(scale=2.0)),
}


def winner(place: int, known: stats.rv_continuous) -> float:
    """The probability of a place to be the largest, by scipy."""

    def density(z: float) -> float:
        others = np.delete(BEFORE, place)
        return float(known.pdf(z - BEFORE[place]) * np.prod(known.cdf(z - others)))

    edges = [-200.0, *np.sort(BEFORE), 20.0, 200.0]
    return sum(integrate.quad(density, *one, epsabs=1e-13, limit=400)[0] for one in pairwise(edges))


@pytest.mark.parametrize("name", LAWS)
def test_the_largest_is_scipys_integral(name: str) -> None:
    law, known = LAWS[name]
    found = log_largest(Scores(BEFORE, law))
    assert found is not None
    assert np.exp(found).sum() == pytest.approx(1.0, abs=1e-9)
    for place in range(3):
        assert np.exp(found[place]) == pytest.approx(winner(place, known), rel=1e-7)


def test_a_rare_winner_is_as_accurate_as_a_likely_one() -> None:
    """Gumbel noise of nearly one scale: the integral meets the closed form, far below 1e-12."""
    before = np.array([0.0, 20.0, 70.0])
    closed = log_largest(Scores(before, laws.Gumbel(np.full(3, 2.0))))
    nearly = log_largest(Scores(before, laws.Gumbel(np.array([2.0, 2.0, 2.0 + 1e-9]))))
    assert closed is not None
    assert nearly is not None
    assert closed == pytest.approx(np.array([-35.0, -25.0, 0.0]), abs=1e-9)
    assert nearly == pytest.approx(closed, rel=1e-6)


def test_scales_may_differ() -> None:
    scale = np.array([1.0, 4.0, 0.5])
    found = log_largest(Scores(BEFORE, laws.Laplace(scale)))
    rng = np.random.default_rng(0)
    drawn = BEFORE + rng.laplace(scale=scale, size=(200_000, 3))
    assert found is not None
    counts = np.bincount(drawn.argmax(axis=1), minlength=3) / 200_000
    assert np.allclose(np.exp(found), counts, atol=0.005)
    far = log_largest(Scores(BEFORE, laws.Laplace(np.array([1.0, 1e9, 1.0]))))
    assert far is None  # too many pieces


@pytest.mark.parametrize("kind", [laws.Laplace, laws.Gaussian, laws.Logistic])
def test_a_hundred_scores_are_fast(kind: type[NoiseLaw]) -> None:
    before = np.random.default_rng(1).uniform(0.0, 50.0, 100)
    found = log_largest(Scores(before, kind(np.full(100, 2.0))))
    assert found is not None
    assert np.exp(found).sum() == pytest.approx(1.0, abs=1e-9)


def test_rounds_of_gumbel_noise_are_plackett_and_luce() -> None:
    scores = Scores(BEFORE, laws.Gumbel(np.full(3, 2.0)))
    weight = np.exp(BEFORE / 2.0)
    total = 0.0
    for order in permutations(range(3)):
        rounds = log_rounds(scores, order)
        assert rounds is not None
        left, chance = [0, 1, 2], 1.0
        for place, logs in zip(order, rounds, strict=True):
            assert np.exp(logs) == pytest.approx(weight[left] / weight[left].sum())
            chance *= float(np.exp(logs[left.index(place)]))
            left.remove(place)
        total += chance
    assert total == pytest.approx(1.0)
    assert log_rounds(Scores(BEFORE, laws.Laplace(np.full(3, 2.0))), [0, 1]) is None


def test_factors_scale_and_mirror_noise() -> None:
    halves = scale_law(laws.Gumbel(np.full(2, 2.0)), np.full(2, -0.5))
    assert isinstance(halves, laws.Gumbel)
    assert (halves.sign, halves.scale.tolist()) == (-1.0, [1.0, 1.0])
    assert scale_law(laws.Gumbel(np.full(2, 2.0)), np.array([1.0, -1.0])) is None
    assert scale_law(laws.Laplace(np.ones(2)), np.array([1.0, 0.0])) is None
    assert scale_law(laws.DiscreteLaplace(np.ones(2)), np.ones(2)) is None
    assert scale_law(laws.LaplaceSum(np.ones(1)), np.ones(1)) is None


@pytest.mark.parametrize("name", LAWS)
def test_cells_between_bounds(name: str) -> None:
    law, known = LAWS[name]
    bounds = np.array([[-2.0, 3.5], [4.0, 4.5], [60.0, 62.0]])
    found = np.exp(log_cells(Scores(BEFORE, law), bounds))
    assert np.allclose(found.sum(axis=1), 1.0, atol=1e-12)
    for before, (low, high), cells in zip(BEFORE, bounds, found, strict=True):
        expected = [
            known.cdf(low - before),
            known.cdf(high - before) - known.cdf(low - before),
            known.sf(high - before),
        ]
        assert cells == pytest.approx(np.asarray(expected), rel=1e-6, abs=1e-15)


def test_a_cell_far_in_a_tail_keeps_its_digits() -> None:
    found = log_cells(Scores(np.zeros(1), laws.Laplace(np.ones(1))), np.array([[100.0, 101.0]]))
    assert found[0, 1] == pytest.approx(-100.0 + np.log(0.5 - 0.5 * np.exp(-1.0)), rel=1e-12)


def sparse_vector(shift: float) -> Comparisons:
    scores = Scores(np.array([8.0, 12.0, 9.0]) - shift, laws.Laplace(np.full(3, 4.0)))
    limit = Scores(np.array([10.0]), laws.Laplace(np.full(1, 2.0)))
    return Comparisons(scores, np.ones(3), np.zeros(3), limit)


def test_outcomes_of_the_sparse_vector_add_up_and_are_scipys_integral() -> None:
    total, known = 0.0, stats.laplace
    for number in range(8):
        is_above = np.array([bool(number & 1), bool(number & 2), bool(number & 4)])
        found = log_bits(sparse_vector(0.0), is_above)
        assert found is not None
        total += np.exp(found[0])
        for at in range(3):  # the reversed ones are those of the reversed outcome
            other = is_above.copy()
            other[at] = not other[at]
            again = log_bits(sparse_vector(0.0), other)
            assert again is not None
            assert found[1][at] == pytest.approx(again[0], rel=1e-9)
    assert total == pytest.approx(1.0, abs=1e-9)

    def density(t: float) -> float:
        under = known.cdf(t - 8.0, scale=4.0) * known.cdf(t - 9.0, scale=4.0)
        return float(known.pdf(t - 10.0, scale=2.0) * under * known.sf(t - 12.0, scale=4.0))

    edges = [-80.0, 8.0, 9.0, 10.0, 12.0, 100.0]
    expected = sum(integrate.quad(density, *one, epsabs=1e-14)[0] for one in pairwise(edges))
    found = log_bits(sparse_vector(0.0), np.array([False, True, False]))
    assert found is not None
    assert np.exp(found[0]) == pytest.approx(expected, rel=1e-8)


def test_the_sparse_vector_keeps_its_proof() -> None:
    """Scales 2 and 4, sensitivity 1, stopped at the first above: epsilon is 1 / 2 + 2 / 4."""
    for below in (1, 10, 200):
        is_above = np.append(np.zeros(below, dtype=bool), True)
        logs = []
        for shift in (0.0, 1.0):
            scores = Scores(np.full(below + 1, 10.0) - shift, laws.Laplace(np.full(below + 1, 4.0)))
            limit = Scores(np.array([10.0]), laws.Laplace(np.full(1, 2.0)))
            given = Comparisons(scores, np.ones(below + 1), np.zeros(below + 1), limit)
            found = log_bits(given, is_above)
            assert found is not None
            logs.append(found[0])
        assert abs(logs[0] - logs[1]) < 1.0


def test_a_thousand_comparisons_are_computed() -> None:
    scores = Scores(np.linspace(0.0, 10.0, 1000), laws.Laplace(np.full(1000, 4.0)))
    limit = Scores(np.array([20.0]), laws.Laplace(np.full(1, 2.0)))
    found = log_bits(
        Comparisons(scores, np.ones(1000), np.zeros(1000), limit), np.zeros(1000, bool)
    )
    assert found is not None
    assert np.isfinite(found[1]).all()
