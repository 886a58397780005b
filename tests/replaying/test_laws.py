"""Laws of noise: densities against their draws and scipy, and tilts that weights make up for."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

from dpaudit.replaying import laws
from dpaudit.replaying.laws import NoiseLaw, Share, Tilt, law_of

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


@pytest.mark.parametrize("law", [*CONTINUOUS.values(), *WHOLE.values()], ids=[*CONTINUOUS, *WHOLE])
def test_draws_follow_the_distribution_function(law: NoiseLaw) -> None:
    drawn = law.sample(np.random.default_rng(0), (4000,))
    for place in np.quantile(drawn, [0.1, 0.5, 0.9]):
        assert np.mean(drawn <= place) == pytest.approx(
            float(law.cdf(np.array([place]))[0]), abs=0.03
        )


@pytest.mark.parametrize("law", [*CONTINUOUS.values(), *WHOLE.values()], ids=[*CONTINUOUS, *WHOLE])
@pytest.mark.parametrize("tilt", [0.0, 0.5, 2.0])
def test_weights_make_up_for_a_tilt(law: NoiseLaw, tilt: float) -> None:
    drawn = law.drawn(Tilt(np.full(40_000, 1.0), tilt), np.random.default_rng(1))
    weights = np.exp(drawn.log_weights)
    # never more than what there is; less only where a moved law cannot reach
    full = isinstance(
        law,
        laws.Gaussian | laws.Laplace | laws.Logistic | laws.DiscreteLaplace | laws.DiscreteGaussian,
    )
    assert weights.mean() == pytest.approx(1.0, abs=0.1) if full else weights.mean() <= 1.1
    if full:
        known = float(law.cdf(np.array([1.0]))[0])
        assert np.mean(weights * (drawn.value <= 1.0)) == pytest.approx(known, abs=0.06)


@pytest.mark.parametrize("name", ["uniform", "bounded laplace"])
@pytest.mark.parametrize(
    "tilt", [pytest.param(0.1, marks=pytest.mark.ci), 0.3, pytest.param(1.0, marks=pytest.mark.ci)]
)
def test_a_tilt_of_bounded_noise_reaches_all_of_it(name: str, tilt: float) -> None:
    law = CONTINUOUS[name]
    for shift in (0.5, -0.5):
        drawn = law.drawn(Tilt(np.full(60_000, shift), tilt), np.random.default_rng(5))
        weights = np.exp(drawn.log_weights)
        assert weights.mean() == pytest.approx(1.0, abs=0.05)
        known = float(law.cdf(np.array([1.0]))[0])
        assert np.mean(weights * (drawn.value <= 1.0)) == pytest.approx(known, abs=0.05)
        # what the other world cannot give is aimed at
        alone = np.isneginf(law.log_density(drawn.value + shift))
        plain = law.sample(np.random.default_rng(6), (60_000,))
        expected = np.mean(np.isneginf(law.log_density(plain + shift)))
        assert np.mean(weights * alone) == pytest.approx(expected, rel=0.05)
        assert np.mean(alone) > 1.2 * expected


def test_an_end_is_no_less_an_answer_for_rounding() -> None:
    law = CONTINUOUS["bounded laplace"]
    ends = np.array([-0.7 - 1e-15, 4.0 + 1e-15])
    assert np.isfinite(law.log_density(ends)).all()
    assert np.isneginf(law.log_density(np.array([-0.7001, 4.001]))).all()


def test_a_tilt_of_laplace_noise_goes_to_the_largest_loss() -> None:
    law = laws.Laplace(2.0 * ONE)
    for shift in (1.0, -1.0):
        noise = law.drawn(Tilt(np.full(200, shift), 30.0), np.random.default_rng(2)).value
        loss = law.log_density(noise) - law.log_density(noise + shift)
        assert np.mean(np.isclose(loss, 0.5)) > 0.9


SCALED = {"laplace": laws.Laplace(2.0 * ONE), "discrete laplace": laws.DiscreteLaplace(2.0 * ONE)}


@pytest.mark.parametrize("law", SCALED.values(), ids=SCALED)
@pytest.mark.parametrize("wider", [0.8, 1.25])
@pytest.mark.parametrize("tilt", [0.0, 0.5, 2.0])
def test_weights_make_up_for_a_tilt_towards_another_scale(
    law: NoiseLaw, wider: float, tilt: float
) -> None:
    """The null of the draw: weighted, it has the probabilities of the law itself."""
    drawn = law.drawn(Tilt(np.full(9_000, 1.0), tilt, wider), np.random.default_rng(1))
    weights = np.exp(drawn.log_weights)
    assert weights.mean() == pytest.approx(1.0, abs=0.05)
    for place in (-2.0, 1.0):
        known = float(law.cdf(np.array([place]))[0])
        assert np.mean(weights * (drawn.value <= place)) == pytest.approx(known, abs=0.05)


@pytest.mark.parametrize("wider", [0.8, 1.25])
def test_a_tilt_towards_another_scale_has_the_known_divergence(wider: float) -> None:
    """The mean of w (1 - exp(epsilon - L))+ is the integral of (p - exp(epsilon) p')+."""
    law, other, epsilon = laws.Laplace(2.0 * ONE), laws.Laplace(2.0 * wider * ONE), 0.3
    grid = np.linspace(-80.0, 80.0, 800_001)
    above = np.exp(law.log_density(grid)) - math.exp(epsilon) * np.exp(other.log_density(grid + 1))
    known = np.sum(np.maximum(above, 0.0)) * (grid[1] - grid[0])
    drawn = law.drawn(Tilt(np.full(60_000, 1.0), 1.0, wider), np.random.default_rng(3))
    loss = law.log_density(drawn.value) - other.log_density(drawn.value + 1.0)
    found = np.exp(drawn.log_weights) * -np.expm1(np.minimum(epsilon - loss, 0.0))
    assert found.mean() == pytest.approx(known, rel=0.03)


@pytest.mark.parametrize("law", SCALED.values(), ids=SCALED)
def test_a_tilt_towards_a_narrower_law_goes_into_the_tails_and_no_farther(law: NoiseLaw) -> None:
    zeros = np.zeros(9_000)
    far = [
        np.abs(law.drawn(Tilt(zeros, 30.0, wider), np.random.default_rng(4)).value).mean()
        for wider in (1.25, 1.0, 0.98, 0.5)
    ]
    assert far[0] < 0.5 * far[1]
    assert 1.1 * far[1] < min(far[2:])
    assert max(far[2:]) < 2.2 * far[1]


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


def test_a_tilt_over_many_scales_has_finite_weights() -> None:
    drawn = laws.Laplace(0.02 * np.ones(1000)).drawn(
        Tilt(np.ones(1000), 20.0), np.random.default_rng(1)
    )
    assert np.isfinite(drawn.log_weights).all()
    assert np.all(drawn.value > -0.1)  # where the loss is near 50, its largest
