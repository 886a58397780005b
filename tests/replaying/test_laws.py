"""Laws of noise: densities, tails and largest losses against scipy, sums and grids."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from dpaudit.replaying import laws
from dpaudit.replaying.laws import NoiseLaw, Share, law_of

ONE = np.ones(1)
CONTINUOUS: dict[str, NoiseLaw] = {
    "gaussian": laws.Gaussian(2.0 * ONE),
    "laplace": laws.Laplace(1.5 * ONE),
    "gumbel": laws.Gumbel(2.0 * ONE),
    "gumbel, mirrored": laws.Gumbel(2.0 * ONE, -1.0),
    "logistic": laws.Logistic(0.7 * ONE),
    "bounded laplace": laws.BoundedLaplace(1.5 * ONE, -0.7 * ONE, 4.0 * ONE),
    "gamma": laws.Gamma(2.0 * ONE, 3.0 * ONE),
    "exponential, mirrored": laws.Gamma(2.0 * ONE, ONE, -1.0),
}
WHOLE: dict[str, NoiseLaw] = {
    "discrete laplace": laws.DiscreteLaplace(1.5 * ONE),
    "discrete gaussian": laws.DiscreteGaussian(2.0 * ONE),
    "geometric": laws.Geometric(ONE, 0.3 * ONE),
}


@pytest.mark.parametrize("law", CONTINUOUS.values(), ids=CONTINUOUS)
def test_a_distribution_function_is_the_integral_of_its_density(law: NoiseLaw) -> None:
    grid = np.linspace(-60.0, 60.0, 240_001)
    density = np.exp(law.log_density(grid))
    below = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(grid))])
    assert below[-1] == pytest.approx(1.0, abs=1e-3)
    assert np.allclose(below, law.cdf(grid), atol=2e-3)


@pytest.mark.parametrize("law", WHOLE.values(), ids=WHOLE)
def test_probabilities_of_whole_numbers_add_up(law: NoiseLaw) -> None:
    grid = np.arange(-80.0, 81.0)
    mass = np.exp(law.log_density(grid))
    assert mass.sum() == pytest.approx(1.0, abs=1e-9)
    assert np.allclose(np.cumsum(mass), law.cdf(grid), atol=1e-9)
    assert law.log_density(np.array([0.5]))[0] == -np.inf


EVERY = {**CONTINUOUS, **WHOLE}


@pytest.mark.parametrize("law", EVERY.values(), ids=EVERY)
def test_both_tails_make_a_whole(law: NoiseLaw) -> None:
    grid = np.arange(-20.0, 21.0) if law.whole else np.linspace(-9.7, 9.3, 77)
    below, above = (np.exp(law.log_tail(grid, above=one)) for one in (False, True))
    at = np.exp(law.log_density(grid)) if law.whole else 0.0
    assert np.allclose(below + above - at, 1.0, atol=1e-12)
    assert np.allclose(below, law.cdf(grid), atol=1e-14)


REFERENCES: dict[str, Any] = {
    "gaussian": stats.norm(scale=2.0),
    "laplace": stats.laplace(scale=1.5),
    "gumbel": stats.gumbel_r(scale=2.0),
    "gumbel, mirrored": stats.gumbel_l(scale=2.0),
    "logistic": stats.logistic(scale=0.7),
    "gamma": stats.gamma(3.0, scale=2.0),
    "discrete laplace": stats.dlaplace(1 / 1.5),
    "geometric": stats.geom(0.3),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_tails_are_those_of_scipy(name: str) -> None:
    law, known = EVERY[name], REFERENCES[name]
    grid = np.arange(-9.0, 30.0) if law.whole else np.linspace(-9.7, 30.3, 41)
    own = law.log_tail(grid, above=False)
    assert np.allclose(own, known.logcdf(grid), rtol=1e-9, atol=1e-12)
    least = known.logsf(grid - 1 if law.whole else grid)  # at least this
    assert np.allclose(law.log_tail(grid, above=True), least, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["discrete laplace", "discrete gaussian", "geometric"])
def test_tails_of_whole_numbers_are_sums(name: str) -> None:
    law, grid = WHOLE[name], np.arange(-300.0, 301.0)
    logs = law.log_density(grid)
    for place in (-40, -3, 0, 1, 2, 30):
        at = np.array([float(place)])
        above = np.logaddexp.reduce(logs[grid >= place])
        below = np.logaddexp.reduce(logs[grid <= place], initial=-np.inf)
        for found, expected in (
            (law.log_tail(at, above=True)[0], above),
            (law.log_tail(at - 0.4, above=True)[0], above),
            (law.log_tail(at, above=False)[0], below),
            (law.log_tail(at + 0.4, above=False)[0], below),
        ):
            assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


SYMMETRIC = [name for name, law in EVERY.items() if law.symmetric]


@pytest.mark.parametrize("name", SYMMETRIC)
def test_tails_are_accurate_far_out(name: str) -> None:
    """Where the tail is tiny, its logarithm falls as that of the density does."""
    law = EVERY[name]
    z = np.rint(np.array([60.0, 200.0, 450.0]) * law.scale[0])
    for side in (1.0, -1.0):
        tail = law.log_tail(side * z, above=side > 0)
        assert np.all(np.isfinite(tail))
        ratio = tail - law.log_density(z)  # log of the hazard's inverse
        assert np.all(np.abs(ratio) < 10.0)


@pytest.mark.parametrize("law", EVERY.values(), ids=EVERY)
@pytest.mark.parametrize("shift", [1.0, -2.0])
def test_the_largest_loss_is_the_largest_on_a_grid(law: NoiseLaw, shift: float) -> None:
    grid = np.arange(-60.0, 61.0) if law.whole else np.linspace(-60.0, 60.0, 120_001)
    inside, outside = law.log_density(grid), law.log_density(grid + shift)
    possible = np.isfinite(inside) | np.isfinite(outside)
    largest = np.max(np.abs(inside[possible] - outside[possible]))
    found = float(law.largest_loss(law, np.array([shift]))[0])
    if np.isfinite(found):
        assert largest <= found * (1 + 1e-9)
        assert largest >= found * 0.999
    else:
        assert largest > 10.0  # it grows without limit, or is infinite
    assert law.largest_loss(law, np.zeros(1))[0] == 0.0


def test_a_scale_that_differs_and_a_shift_by_a_fraction_have_no_limit() -> None:
    one, other = laws.Laplace(ONE), laws.Laplace(1.01 * ONE)
    assert one.largest_loss(other, np.zeros(1))[0] == np.inf
    whole = laws.DiscreteLaplace(2.0 * ONE)
    assert whole.largest_loss(whole, np.array([0.5]))[0] == np.inf
    assert whole.largest_loss(whole, np.array([3.0]))[0] == pytest.approx(1.5)


def test_noise_bounded_to_a_common_domain_costs_both_masses_as_well() -> None:
    """LaplaceBoundedDomain on [0, 2] at .5 and 1.5."""
    inside, outside = (
        laws.BoundedLaplace(ONE, -one * ONE, (2.0 - one) * ONE) for one in (1.5, 0.5)
    )
    masses = [2 - np.exp(-one) - np.exp(one - 2.0) for one in (1.5, 0.5)]
    expected = 1.0 + abs(np.log(masses[0] / masses[1]))
    assert inside.largest_loss(outside, ONE)[0] == pytest.approx(expected)
    assert inside.largest_loss(inside, ONE)[0] == np.inf


def test_elements_of_a_law_are_laws_of_elements() -> None:
    scale = np.array([1.0, 2.0, 3.0])
    mirrored = laws.Gumbel(scale, -1.0)
    assert mirrored.element(1, 3).log_density(ONE) == mirrored.log_density(np.ones(3))[1]
    some = laws.Laplace(scale).element(np.array([2, 0]), 3)
    assert np.array_equal(some.scale, [3.0, 1.0])
    assert laws.Laplace(ONE).element(np.array([2, 0]), 3).scale.shape == (2,)


def test_an_end_is_no_less_an_answer_for_rounding() -> None:
    law = CONTINUOUS["bounded laplace"]
    ends = np.array([-0.7 - 1e-15, 4.0 + 1e-15])
    assert np.isfinite(law.log_density(ends)).all()
    assert np.isneginf(law.log_density(np.array([-0.7001, 4.001]))).all()


def test_densities_are_those_of_scipy() -> None:
    z = np.array([-3.0, 0.0, 1.0, 4.0])
    assert np.allclose(laws.Gaussian(2.0 * ONE).log_density(z), stats.norm.logpdf(z, scale=2.0))
    assert np.allclose(laws.Laplace(2.0 * ONE).log_density(z), stats.laplace.logpdf(z, scale=2.0))
    assert np.allclose(laws.Gumbel(2.0 * ONE).log_density(z), stats.gumbel_r.logpdf(z, scale=2.0))
    assert np.allclose(
        laws.DiscreteLaplace(2.0 * ONE).log_density(z), stats.dlaplace.logpmf(z, 0.5)
    )


def share(
    law: str, *, factor: float = 1.0, scale: float = 1.0, shape: float = 1.0, other: float = 1.0
) -> Share:
    return Share(law, factor * ONE, scale * ONE, shape * ONE, other * ONE)


def test_sums_of_draws_are_known_laws() -> None:
    gaussian = law_of([share("gaussian", scale=3.0), share("gaussian", factor=-2.0, scale=2.0)])
    assert isinstance(gaussian, laws.Gaussian)
    assert gaussian.scale == pytest.approx(5.0)
    laplace = law_of(
        [share("exponential", scale=2.0), share("exponential", factor=-1.0, scale=2.0)]
    )
    assert isinstance(laplace, laws.Laplace)
    parts = [
        share("gamma", factor=sign, shape=0.2, scale=1.5) for sign in (1.0, -1.0) for _ in range(5)
    ]
    assert isinstance(law_of(parts), laws.Laplace)
    several = law_of([*parts, share("laplace", factor=3.0, scale=0.5)])
    assert several == laws.LaplaceSum(1.5 * ONE)
    discrete = law_of([share("geometric", shape=0.3), share("geometric", factor=-1.0, shape=0.3)])
    assert isinstance(discrete, laws.DiscreteLaplace)
    assert discrete.scale == pytest.approx(-1.0 / np.log(0.7))


SUMS = {
    "two of one scale": [share("laplace"), share("laplace", factor=-1.0)],
    "five of one scale": [share("laplace", factor=0.5, scale=2.0)] * 5,
    "two scales": [share("laplace", scale=2.0), share("laplace", scale=0.5)],
    "nearly one scale": [share("laplace", scale=1.001), share("laplace")],
    "four scales": [share("laplace", scale=one) for one in (0.3, 1.0, 2.0, 2.2)],
    "shares of one and a half": [
        share("gamma", factor=sign, shape=0.75) for sign in (1.0, -1.0) for _ in range(2)
    ],
    "one and a difference": [
        share("laplace"),
        share("exponential", factor=3.0),
        share("exponential", factor=-1.0, scale=3.0),
    ],
}


def log_density(shares: list[Share], grid: np.ndarray) -> np.ndarray:
    """Of the sum of Laplace draws and pairs of gamma draws, by its characteristic function."""
    t = np.linspace(0.0, 400.0, 400_001)
    powers = {"laplace": 1.0, "gamma": 0.5 * 0.75, "exponential": 0.5}
    sizes = [(float(np.abs(one.factor[0]) * one.scale[0]), powers[one.law]) for one in shares]
    each = np.prod([(1.0 + (size * t) ** 2) ** -power for size, power in sizes], axis=0)
    return np.log([integrate.simpson(np.cos(t * z) * each, x=t) / np.pi for z in grid])


@pytest.mark.parametrize("shares", SUMS.values(), ids=SUMS)
def test_a_sum_of_laplace_draws_costs_what_the_draw_of_the_largest_scale_costs(
    shares: list[Share],
) -> None:
    law = law_of(shares)
    assert isinstance(law, laws.LaplaceSum)
    largest = max(float(np.abs(one.factor[0]) * one.scale[0]) for one in shares)
    assert law.largest_loss(law, ONE)[0] == pytest.approx(1.0 / largest)
    grid = np.array([0.0, 0.5, 2.0, 6.0 * largest])
    loss = log_density(shares, grid) - log_density(shares, grid + 1.0)
    assert np.max(np.abs(loss)) <= (1.0 / largest) * (1.0 + 1e-3)
    assert np.all(np.diff(loss) > 0)  # it grows to that limit
    assert not law.has_cdf


def test_bounded_noise_is_mirrored_by_a_negative_factor() -> None:
    one = share("bounded_laplace", factor=-2.0, scale=1.5, shape=-1.0, other=3.0)
    law = law_of([one])
    assert isinstance(law, laws.BoundedLaplace)
    assert (float(law.scale[0]), float(law.low[0]), float(law.high[0])) == (3.0, -6.0, 2.0)
    assert law_of([share("bounded_laplace", shape=1.0, other=1.0)]) is None


def test_other_sums_are_not_known() -> None:
    assert law_of([share("laplace"), share("gaussian")]) is None
    assert law_of([share("gamma", shape=0.4), share("gamma", factor=-1.0, shape=0.5)]) is None
    assert law_of([share("gamma", shape=0.7), share("gamma", factor=-1.0, shape=0.7)]) is None
    assert law_of([share("laplace", factor=0.0)]) is None
    assert law_of([share("discrete_laplace", factor=0.5)]) is None
