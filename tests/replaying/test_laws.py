"""Laws of noise: densities, tails and largest losses against scipy, sums and grids."""

from __future__ import annotations

from itertools import pairwise

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
    "staircase": laws.Staircase(1.5 * ONE, 1.2, 0.35),
    "uniform": laws.Uniform(2.0 * ONE),
    "bounded laplace": laws.BoundedLaplace(1.5 * ONE, -0.7 * ONE, 4.0 * ONE),
    "gamma": laws.Gamma(2.0 * ONE, 3.0 * ONE),
    "exponential, mirrored": laws.Gamma(2.0 * ONE, ONE, -1.0),
    "three Laplace draws": laws.GammaDifference(1.5 * ONE, 3.0 * ONE),
    "Laplace draws of three scales": laws.LaplaceSum(2.0 * ONE, (1.3 * ONE, 0.4 * ONE)),
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


REFERENCES = {
    "gaussian": stats.norm(scale=2.0),
    "laplace": stats.laplace(scale=1.5),
    "gumbel": stats.gumbel_r(scale=2.0),
    "gumbel, mirrored": stats.gumbel_l(scale=2.0),
    "logistic": stats.logistic(scale=0.7),
    "uniform": stats.uniform(-2.0, 4.0),
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


SYMMETRIC = [name for name, law in EVERY.items() if law.symmetric and name != "uniform"]


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
        assert largest >= found * 0.999 or law.name == "sum of laplace"
    else:
        assert largest > 10.0  # it grows without limit, or is infinite
    assert law.largest_loss(law, np.zeros(1))[0] == 0.0


def test_the_peak_of_part_of_a_laplace_draw_costs_its_height() -> None:
    grid = np.linspace(-3.0, 3.0, 6_001)
    law = laws.GammaDifference(ONE, 0.8 * ONE)
    loss = np.abs(law.log_density(grid) - law.log_density(grid + 1.0))
    assert law.largest_loss(law, ONE)[0] == pytest.approx(np.max(loss), rel=1e-9)
    peaked = laws.GammaDifference(ONE, 0.5 * ONE)
    assert peaked.largest_loss(peaked, ONE)[0] == np.inf


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
    several = laws.LaplaceSum(scale + 4.0, (scale,))
    assert several.element(1, 3).log_density(ONE) == several.log_density(np.ones(3))[1]
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
    assert isinstance(several, laws.GammaDifference)
    assert several.shape == pytest.approx(2.0)
    discrete = law_of([share("geometric", shape=0.3), share("geometric", factor=-1.0, shape=0.3)])
    assert isinstance(discrete, laws.DiscreteLaplace)
    assert discrete.scale == pytest.approx(-1.0 / np.log(0.7))


SUMS = {
    "two of one scale": [share("laplace"), share("laplace", factor=-1.0)],
    "five of one scale": [share("laplace", factor=0.5, scale=2.0)] * 5,
    "two scales": [share("laplace", scale=2.0), share("laplace", scale=0.5)],
    "nearly one scale": [share("laplace", scale=1.001), share("laplace")],
    "four scales": [share("laplace", scale=one) for one in (0.3, 1.0, 2.0, 2.2)],
    "shares of less than one": [share("gamma", shape=0.7), share("gamma", factor=-1.0, shape=0.7)],
    "shares of one and a half": [
        share("gamma", factor=sign, shape=0.75) for sign in (1.0, -1.0) for _ in range(2)
    ],
    "one and a difference": [
        share("laplace"),
        share("exponential", factor=3.0),
        share("exponential", factor=-1.0, scale=3.0),
    ],
}


def characteristic(shares: list[Share], t: float) -> float:
    """The product of the characteristic functions of Laplace draws and pairs of gamma draws."""
    found = 1.0
    for one in shares:
        size = float(np.abs(one.factor[0]) * one.scale[0])
        power = {"laplace": 1.0, "gamma": 0.5 * one.shape[0], "exponential": 0.5}[one.law]
        found /= (1.0 + (size * t) ** 2) ** power
    return found


@pytest.mark.parametrize("shares", SUMS.values(), ids=SUMS)
def test_the_density_of_a_sum_is_the_inverse_of_its_characteristic_function(
    shares: list[Share],
) -> None:
    law = law_of(shares)
    assert law is not None
    for z in (0.4, 1.7, 6.0):
        expected, error = integrate.quad(
            lambda t: characteristic(shares, t) / np.pi, 0.0, np.inf, weight="cos", wvar=z
        )
        assert error < 1e-7
        found = float(np.exp(law.log_density(np.array([z, -z])))[1])
        assert found == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("shares", [SUMS["two scales"], SUMS["two of one scale"]])
def test_the_density_of_a_sum_is_a_convolution_far_out_too(shares: list[Share]) -> None:
    law, first, second = law_of(shares), law_of(shares[:1]), law_of(shares[1:])
    assert law is not None
    assert first is not None
    assert second is not None

    def inside(y: float, z: float) -> float:
        at = first.log_density(np.array([y])) + second.log_density(np.array([z - y]))
        return float(np.exp(at[0]))

    for z in (0.0, 1.0, 12.0, 80.0):
        edges = [-60.0, 0.0, *([z] if z else []), z + 60.0]
        expected = sum(
            integrate.quad(inside, low, high, args=(z,), limit=400, epsabs=0.0, epsrel=1e-11)[0]
            for low, high in pairwise(edges)
        )
        assert law.log_density(np.array([z]))[0] == pytest.approx(np.log(expected), rel=1e-9)


def test_sums_of_laplace_draws_have_no_loss_above_that_of_their_largest_scale() -> None:
    grid = np.concatenate([np.linspace(-60.0, 60.0, 24_001), 10.0 ** np.arange(2, 7)])
    for name, shares in SUMS.items():
        if name == "shares of less than one":
            continue
        law = law_of(shares)
        assert law is not None
        largest = float(np.max(law.scale))
        for moved in (1e-6, 0.3, 1.0, 10.0):
            loss = law.log_density(grid) - law.log_density(grid + moved)
            assert np.isfinite(loss).all()
            assert np.max(np.abs(loss)) <= moved / largest * (1 + 1e-9) + 1e-8, name


def test_a_peak_of_less_than_half_a_laplace_draw_is_infinite_and_nothing_else_is() -> None:
    law = laws.GammaDifference(ONE, 0.25 * ONE)
    assert law.log_density(np.zeros(1))[0] == np.inf
    assert np.isfinite(law.log_density(np.array([1e-300, 1e-9, 1.0, 1e6]))).all()
    assert not law.has_cdf
    assert laws.GammaDifference(ONE, 4.0 * ONE).has_cdf


def test_bessels_function_and_the_polynomial_meet() -> None:
    z = np.array([0.0, 1e-13, 1e-3, 1.0, 30.0, 1e5])
    for shape in (1.0, 2.0, 4.0):
        own = laws.GammaDifference(ONE, shape * ONE).log_density(z)
        next_to = laws.GammaDifference(ONE, (shape + 1e-7) * ONE).log_density(z)
        assert np.allclose(own, next_to, atol=1e-5)


def test_bounded_noise_is_mirrored_by_a_negative_factor() -> None:
    one = share("bounded_laplace", factor=-2.0, scale=1.5, shape=-1.0, other=3.0)
    law = law_of([one])
    assert isinstance(law, laws.BoundedLaplace)
    assert (float(law.scale[0]), float(law.low[0]), float(law.high[0])) == (3.0, -6.0, 2.0)
    assert law_of([share("bounded_laplace", shape=1.0, other=1.0)]) is None
    uniform = law_of([share("uniform", factor=-2.0, scale=1.5)])
    assert uniform == laws.Uniform(3.0 * ONE)
    assert law_of([share("uniform"), share("uniform")]) is None


def test_other_sums_are_not_known() -> None:
    assert law_of([share("laplace"), share("gaussian")]) is None
    assert law_of([share("gamma", shape=0.4), share("gamma", factor=-1.0, shape=0.5)]) is None
    assert law_of([share("gamma", shape=5.5), share("gamma", factor=-1.0, shape=5.5)]) is None
    assert law_of([share("laplace")] * 2 + [share("laplace", scale=2.0)]) is None
    assert law_of([share("laplace")] * 65) is None
    # too alike to be distinguished by their partial fractions
    near = [share("laplace", scale=1.0 + 1e-5 * one) for one in range(4)]
    assert law_of(near) is None
    assert law_of([share("laplace", factor=0.0)]) is None
    assert law_of([share("discrete_laplace", factor=0.5)]) is None
