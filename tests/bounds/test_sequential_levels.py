"""Sequential tests of claims in mu, rho and curves: fair bets, validity at any time, power."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import binom

from dpaudit.bounds.sequential import LEVEL_GAMBLERS, coin_level, level_e_process
from dpaudit.bounds.trade_off import (
    ConcentratedTradeOff,
    CurveTradeOff,
    GaussianTradeOff,
    TradeOff,
)
from dpaudit.errors import SettingsError
from dpaudit.model.claim import CurvePoint
from dpaudit.model.gaussian import gaussian_delta, gaussian_epsilon

NEEDED = math.log(20.0)
GAUSSIAN, CONCENTRATED = GaussianTradeOff(), ConcentratedTradeOff()


def curve_of(mu: float) -> CurveTradeOff:
    epsilons = np.arange(0.1, 4.0, 0.3) * max(mu, 0.3)
    return CurveTradeOff(tuple(CurvePoint(e, gaussian_delta(e, mu)) for e in epsilons.tolist()))


def draw(
    mu: float, trials: int, rng: np.random.Generator, *, scale: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """A normal score shifted by mu, whose attack knows its odds, or takes them for others."""
    member = rng.random(trials) < 0.5
    score = np.where(member, mu / 2.0, -mu / 2.0) + rng.normal(size=trials)
    return scale * mu * score, member


def test_the_first_wealth_is_shared_whole() -> None:
    assert sum(one.share for one in LEVEL_GAMBLERS) == pytest.approx(1.0)


@pytest.mark.parametrize("level", [0.01, 0.3, 1.0, 4.0])
def test_the_points_that_are_bet_against_are_implied(level: float) -> None:
    # Of zCDP: its own region of error rates has no point beyond any of them.
    fpr = ndtr(np.linspace(-6.0, 6.0, 400))
    for trade_off in (GAUSSIAN, CONCENTRATED, curve_of(1.0)):
        fnr = trade_off.least_fnr(fpr, level)
        least_fpr = trade_off.least_fpr(level)
        for epsilon, delta in trade_off.bet_against(level):
            assert (1.0 - fnr - math.exp(epsilon) * fpr).max() <= delta + 1e-9
        for rate, least in zip(fpr.tolist(), fnr.tolist(), strict=True):
            if 0.0 < 1.0 - rate < 1.0:
                assert least_fpr(1.0 - rate) <= least + 1e-9


def test_the_points_of_gaussian_dp_are_on_its_profile() -> None:
    for epsilon, delta in GAUSSIAN.bet_against(0.7):
        assert gaussian_epsilon(0.7, delta) == pytest.approx(epsilon)


@settings(max_examples=40, deadline=None)
@given(mu=st.floats(0.05, 4.0), scale=st.floats(-3.0, 8.0), cut=st.floats(0.0, 3.0))
def test_no_bet_on_a_gaussian_mechanism_is_expected_to_gain(
    mu: float, scale: float, cut: float
) -> None:
    """A mechanism that is mu-GDP: a normal score in 60 bins. The attack abstains below a cut."""
    edges = np.linspace(-5.0, 5.0, 61)
    middle = (edges[:-1] + edges[1:]) / 2.0
    edges[[0, -1]] = -np.inf, np.inf
    odds = np.where(np.abs(middle) > cut, scale * mu * middle, 0.0).tolist()
    expected = 0.0
    for member, mean in ((True, mu / 2.0), (False, -mu / 2.0)):
        mass = np.diff(ndtr(edges - mean))
        factors = [
            math.exp(level_e_process([one], [member], GAUSSIAN, level=mu)[0]) for one in odds
        ]
        expected += float(mass @ factors) / 2.0
    assert expected <= 1.0 + 1e-9


@pytest.mark.parametrize("mu", [0.2, 1.0, pytest.param(2.0, marks=pytest.mark.ci)])
@pytest.mark.parametrize("scale", [0.7, pytest.param(1.0, marks=pytest.mark.ci), 4.0])
def test_a_true_claim_is_refuted_at_most_at_the_nominal_rate_at_any_time(
    mu: float, scale: float
) -> None:
    rng = np.random.default_rng(7)
    draws = 300
    for trade_off, level in ((GAUSSIAN, mu), (CONCENTRATED, mu**2 / 2.0), (curve_of(mu), 1.0)):
        refuted = sum(
            level_e_process(*draw(mu, 500, rng, scale=scale), trade_off, level=level).max()
            >= NEEDED
            for _ in range(draws)
        )
        assert refuted <= binom.ppf(0.999, draws, 0.05)


@pytest.mark.parametrize("mu", [0.5, 1.5])
def test_an_attack_that_bets_on_nothing_but_extreme_outputs_gains_nothing(mu: float) -> None:
    # Where delta is large, these are nearly certain: the price is paid on every trial.
    rng = np.random.default_rng(3)
    draws, refuted = 300, 0
    for _ in range(draws):
        odds, member = draw(mu, 500, rng, scale=5.0)
        odds[np.abs(odds) < 5.0 * mu * 1.5] = 0.0
        refuted += level_e_process(odds, member, GAUSSIAN, level=mu).max() >= NEEDED
    assert refuted <= binom.ppf(0.999, draws, 0.05)


def test_a_revealed_coin_is_what_delta_of_the_curve_pays_for() -> None:
    claim = CurveTradeOff((CurvePoint(0.5, 0.1), CurvePoint(2.0, 0.1)))
    rng, draws, refuted = np.random.default_rng(2), 300, 0
    for _ in range(draws):
        member = rng.random(400) < 0.5
        revealed = rng.random(400) < 0.1
        odds = np.where(revealed, np.where(member, 40.0, -40.0), 0.0)
        refuted += coin_level(odds, member, claim, confidence=0.95) > 1.0
    assert refuted <= binom.ppf(0.999, draws, 0.05)


@pytest.mark.parametrize(
    ("claim", "true", "most"), [(1.0, 1.5, 250), (1.0, 2.0, 75), (1.0, 3.0, 25), (0.45, 1.0, 180)]
)
def test_median_trials_to_proof(claim: float, true: float, most: int) -> None:
    rng, stops = np.random.default_rng(8), []
    for _ in range(60):
        log_e = level_e_process(*draw(true, 1000, rng), GAUSSIAN, level=claim)
        reached = np.flatnonzero(log_e >= NEEDED)
        stops.append(reached[0] + 1 if reached.size else 1001)
    assert np.median(stops) <= most


@pytest.mark.parametrize(
    ("trade_off", "low", "high"),
    [(GAUSSIAN, 1.2, 1.7), (CONCENTRATED, 0.3, 1.45), (curve_of(1.0), 4.0, 13.0)],
)
def test_the_bound_refutes_all_levels_below_it_and_not_the_next(
    trade_off: TradeOff, low: float, high: float
) -> None:
    bets = draw(1.7, 1500, np.random.default_rng(5))
    bound = coin_level(*bets, trade_off, confidence=0.95)
    assert low < bound < high
    place = next(k for k in range(1, 1000) if trade_off.step(k) == bound)
    for one in range(1, place + 1, 7):
        level = trade_off.step(one)
        assert level_e_process(*bets, trade_off, level=level).max() >= NEEDED
    beyond = trade_off.step(place + 1)
    assert level_e_process(*bets, trade_off, level=beyond).max() < NEEDED


def test_the_bound_never_falls() -> None:
    odds, member = draw(2.0, 160, np.random.default_rng(8))
    bounds = [
        coin_level(odds[:n], member[:n], GAUSSIAN, confidence=0.95) for n in range(0, 161, 20)
    ]
    assert bounds[0] == 0.0
    assert bounds == sorted(bounds)
    assert bounds[-1] > 1.0


def test_bad_input_is_refused() -> None:
    with pytest.raises(SettingsError, match="finite"):
        level_e_process([math.inf], [True], GAUSSIAN, level=1.0)
    with pytest.raises(SettingsError):
        coin_level([1.0], [True], GAUSSIAN, confidence=1.0)
