"""DP-SGD: reference values, mechanisms with a known answer, an approximation that is no bound."""

from __future__ import annotations

import math
from typing import Any

import pytest
from scipy.optimize import brentq
from scipy.special import ndtr

from dpaudit.account.dp_sgd import (
    DpSgdMethod,
    dp_sgd_claim,
    dp_sgd_curve,
    dp_sgd_noise_multiplier,
)
from dpaudit.errors import ClaimError, SettingsError
from dpaudit.model.claim import Neighbours


@pytest.fixture(scope="module")
def runs(accounting_vectors: dict[str, Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = accounting_vectors["dpsgd_poisson_add_remove"]
    return rows


def settings(run: dict[str, Any]) -> dict[str, Any]:
    names = {"steps": "T", "rate": "q", "noise_multiplier": "sigma", "delta": "delta"}
    return {ours: run[theirs] for ours, theirs in names.items()}


def normal_delta(epsilon: float, sigma: float) -> float:
    """Delta of one Gaussian mechanism of sensitivity 1 (Balle and Wang 2018, Theorem 8)."""
    a, b = 1 / (2 * sigma), epsilon * sigma
    return float(ndtr(a - b) - math.exp(epsilon) * ndtr(-a - b))


def one_step_delta(epsilon: float, rate: float, sigma: float) -> float:
    """Delta of one sampled step, both directions, by the threshold test that attains it."""

    def mass_above(cut: float, mean: float) -> float:
        return float(ndtr((mean - cut) / sigma))

    def gap(growth: float) -> tuple[float, float]:
        # The likelihood ratio (1-q) + q e^((2x-1)/(2s^2)) exceeds `growth` above this cut.
        if growth <= 1 - rate:
            return 1.0, 1.0
        cut = sigma**2 * math.log((growth - 1 + rate) / rate) + 0.5
        without = mass_above(cut, 0.0)
        return (1 - rate) * without + rate * mass_above(cut, 1.0), without

    with_, without = gap(math.exp(epsilon))
    removed = with_ - math.exp(epsilon) * without
    with_, without = gap(math.exp(-epsilon))
    added = (1 - without) - math.exp(epsilon) * (1 - with_)
    return max(removed, added)


def test_reference_runs(runs: list[dict[str, Any]]) -> None:
    for run in runs:
        rdp = dp_sgd_claim(**settings(run), method="rdp")
        pld = dp_sgd_claim(**settings(run))
        assert rdp.epsilon == pytest.approx(run["dpacc_rdp"], rel=1e-6)
        assert pld.epsilon == pytest.approx(run["dpacc_pld"], rel=1e-3)
        assert pld.epsilon < rdp.epsilon
        assert pld.epsilon == pytest.approx(run["opacus_prv"], abs=0.015)
        replaced = dp_sgd_claim(**settings(run), neighbours=Neighbours.REPLACE_ONE)
        assert replaced.epsilon == pytest.approx(run["dpacc_pld_replace_one"], rel=1e-3)
        assert replaced.neighbours is Neighbours.REPLACE_ONE
        # Replacing is removing and adding: never below, and within what group privacy says.
        assert pld.epsilon < replaced.epsilon < 2.5 * pld.epsilon


@pytest.mark.parametrize(
    ("rate", "sigma", "steps", "rdp", "pld", "replaced"),
    [
        pytest.param(0.01, 1.1, 10_000, 5.6320, 5.1926, 9.4223, marks=pytest.mark.ci),
        (0.064, 2.0, 500, 3.6439, 3.3401, 6.6484),
    ],
)
def test_more_reference_runs(
    rate: float, sigma: float, steps: int, rdp: float, pld: float, replaced: float
) -> None:
    # accounting.md, section 5; four digits.
    run: dict[str, Any] = {
        "steps": steps,
        "rate": rate,
        "noise_multiplier": sigma,
        "delta": 1e-5,
    }
    assert dp_sgd_claim(**run, method=DpSgdMethod.RDP).epsilon == pytest.approx(rdp, abs=6e-5)
    assert dp_sgd_claim(**run).epsilon == pytest.approx(pld, rel=1e-3)
    replace_one = dp_sgd_claim(**run, neighbours=Neighbours.REPLACE_ONE)
    assert replace_one.epsilon == pytest.approx(replaced, rel=1e-3)


def gaussian_limit(run: dict[str, Any]) -> float:
    """The central limit of Bu et al. 2020, "Deep Learning with Gaussian Differential Privacy"."""
    mu = run["q"] * math.sqrt(run["T"] * math.expm1(run["sigma"] ** -2))
    return float(brentq(lambda e: normal_delta(e, 1 / mu) - run["delta"], 0, 50, xtol=1e-12))


@pytest.mark.ci
def test_gaussian_differential_privacy_is_an_approximation_from_below(
    runs: list[dict[str, Any]],
) -> None:
    # Offered by opacus as "gdp"; forbidden here: it is no bound.
    from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

    for run in runs:
        assert gaussian_limit(run) == pytest.approx(run["opacus_gdp_NOT_A_BOUND"], rel=1e-6)
        assert gaussian_limit(run) < dp_sgd_claim(**settings(run)).epsilon
    # In the first run it is below what is provably lost: privacy losses rounded down, not up.
    run = runs[0]
    least = from_gaussian_mechanism(
        run["sigma"],
        sampling_prob=run["q"],
        pessimistic_estimate=False,
        value_discretization_interval=5e-5,
        use_connect_dots=False,
    ).self_compose(run["T"])
    proved = least.get_epsilon_for_delta(run["delta"])
    assert gaussian_limit(run) + 0.1 < proved <= run["dpacc_pld"]


@pytest.mark.parametrize(("steps", "sigma"), [(1, 1.0), (1, 3.73), (100, 37.3)])
def test_whole_batches_are_the_gaussian_mechanism(steps: int, sigma: float) -> None:
    exact = brentq(lambda e: normal_delta(e, sigma / math.sqrt(steps)) - 1e-5, 0, 50)
    claim = dp_sgd_claim(steps=steps, rate=1.0, noise_multiplier=sigma, delta=1e-5)
    assert exact <= claim.epsilon * (1 + 1e-9)
    assert claim.epsilon == pytest.approx(exact, rel=2e-3)


@pytest.mark.parametrize(
    ("rate", "sigma"),
    [(0.5, 1.0), *(pytest.param(*of, marks=pytest.mark.ci) for of in ((0.1, 0.5), (0.9, 2.0)))],
)
def test_one_step_has_its_exact_delta(rate: float, sigma: float) -> None:
    exact = brentq(lambda e: one_step_delta(e, rate, sigma) - 1e-5, 0, 50)
    run: dict[str, Any] = {
        "steps": 1,
        "rate": rate,
        "noise_multiplier": sigma,
        "delta": 1e-5,
    }
    pld = dp_sgd_claim(**run).epsilon
    assert exact <= pld * (1 + 1e-9)
    assert pld == pytest.approx(exact, rel=2e-3)
    assert dp_sgd_claim(**run, method="rdp").epsilon > pld


@pytest.mark.parametrize(
    ("epsilon", "steps", "rate"),
    [
        (1.0, 50, 1.0),
        (0.3, 300, 0.05),
        (0.001, 12, 0.25),
        pytest.param(4.0, 5, 0.5, marks=pytest.mark.ci),
    ],
)
def test_calibrated_noise_spends_the_budget(epsilon: float, steps: int, rate: float) -> None:
    noise = dp_sgd_noise_multiplier(epsilon=epsilon, delta=1e-5, steps=steps, rate=rate)
    claim = dp_sgd_claim(steps=steps, rate=rate, noise_multiplier=noise, delta=1e-5)
    assert 0.999 * epsilon <= claim.epsilon <= epsilon
    if rate == 1.0:
        assert normal_delta(epsilon, noise / math.sqrt(steps)) == pytest.approx(1e-5, rel=0.02)


def test_a_curve_of_whole_batches_is_that_of_the_gaussian_mechanism() -> None:
    curve = dp_sgd_curve(steps=16, rate=1.0, noise_multiplier=4.0)
    assert len(curve.points) == 60
    for epsilon, delta in curve.points:
        assert delta >= normal_delta(epsilon, 1.0) * (1 - 1e-9)
        assert delta == pytest.approx(normal_delta(epsilon, 1.0), rel=2e-2, abs=1e-8)
    assert curve.points[-1].delta == pytest.approx(1e-6, rel=1e-2)
    assert "16 steps" in curve.source


def test_drowned_gradients_leave_nothing_to_claim() -> None:
    with pytest.raises(ClaimError, match="epsilon"):
        dp_sgd_claim(steps=1, rate=0.01, noise_multiplier=1e6, delta=1e-5)


def test_the_claim_tells_its_derivation() -> None:
    claim = dp_sgd_claim(steps=500, rate=0.064, noise_multiplier=2, delta=1e-5)
    assert claim.delta == 1e-5
    assert claim.neighbours is Neighbours.ADD_REMOVE
    assert not claim.data_dependent
    for words in ("500 steps", "rate 0.064", "multiplier 2;", "privacy loss distributions"):
        assert words in claim.source
    rdp = dp_sgd_claim(steps=500, rate=0.064, noise_multiplier=2, delta=1e-5, method="rdp")
    assert "Rényi divergences" in rdp.source


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": 0}, "^`steps` must be .*, got 0"),
        ({"rate": 0.0}, "^`rate` must be .*, got 0"),
        ({"rate": 1.1}, "^`rate` must be .*, got 1.1"),
        ({"rate": math.nan}, "^`rate` must be .*, got nan"),
        ({"noise_multiplier": 0.0}, "^`noise_multiplier` must be .*, got 0"),
        ({"noise_multiplier": math.inf}, "^`noise_multiplier` must be .*, got inf"),
        ({"delta": 0.0}, "^`delta` must be .*, got 0"),
        ({"delta": 1.0}, "^`delta` must be .*, got 1"),
        ({"method": "gdp"}, "^`method`: 'gdp' is not one of rdp, pld"),
        ({"method": "rdp", "neighbours": Neighbours.REPLACE_ONE}, "use pld"),
    ],
)
def test_senseless_arguments_are_refused(change: dict[str, Any], message: str) -> None:
    usual = {"steps": 10, "rate": 0.1, "noise_multiplier": 1.0, "delta": 1e-5}
    with pytest.raises(SettingsError, match=message):
        dp_sgd_claim(**(usual | change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.0}, "^`epsilon` must be .*, got 0"),
        ({"epsilon": math.inf}, "^`epsilon` must be .*, got inf"),
        ({"steps": 0}, "^`steps` must be .*, got 0"),
        ({"rate": 0.0}, "^`rate` must be .*, got 0"),
        ({"delta": 0.0}, "^`delta` must be .*, got 0"),
    ],
)
def test_senseless_budgets_are_refused(change: dict[str, Any], message: str) -> None:
    usual = {"epsilon": 1.0, "delta": 1e-5, "steps": 10, "rate": 0.1}
    with pytest.raises(SettingsError, match=message):
        dp_sgd_noise_multiplier(**(usual | change))
