"""Limits on mu, rho and curves from one training: known answers, validity, power, refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom

from dpaudit.bounds import Detectable, one_run, one_run_gaussian
from dpaudit.bounds.guarantee import TradeOffGuarantee
from dpaudit.bounds.one_run import (
    detectable_error,
    detectable_shift,
    one_run_in_turn_level,
    one_run_level,
    refuting,
    strongest_level,
)
from dpaudit.bounds.trade_off import (
    ConcentratedTradeOff,
    CurveTradeOff,
    GaussianTradeOff,
    TradeOff,
)
from dpaudit.errors import SettingsError
from dpaudit.model.claim import CurvePoint
from dpaudit.model.gaussian import gaussian_delta, gaussian_epsilon

PURE = CurveTradeOff((CurvePoint(1.0, 0.0),))
"""Its level is an epsilon."""
GAUSSIAN = GaussianTradeOff()


def curve_of(mu: float) -> CurveTradeOff:
    return CurveTradeOff(
        tuple(CurvePoint(e, gaussian_delta(e, mu)) for e in np.arange(0.1, 6.0, 0.1).tolist())
    )


# --- known answers ---------------------------------------------------------------------------


@pytest.mark.parametrize("guesses", [5, 40, 300])
def test_all_right_under_pure_dp_has_the_closed_form_of_randomised_response(guesses: int) -> None:
    success = 0.05 ** (1.0 / guesses)
    found = one_run_level(guesses, guesses, guesses, PURE, confidence=0.95)
    assert found == pytest.approx(math.log(success / (1.0 - success)), abs=1e-8)


@pytest.mark.parametrize("correct", [34, 38, 45])
def test_under_pure_dp_it_is_a_little_below_the_exact_binomial_tail(correct: int) -> None:
    # Binomial counts satisfy the theorem with equality; the least tail below them is no more.
    exact = one_run(correct, 50, 50, delta=0.0, confidence=0.95)
    found = one_run_level(correct, 50, 50, PURE, confidence=0.95)
    assert 0.9 * exact - 0.02 <= found <= exact + 1e-9


@pytest.mark.parametrize("guesses", [4, 12])
def test_no_privacy_loss_is_refuted_as_coins_refute_it(guesses: int) -> None:
    # All of n right has probability 2^-n if the output says nothing: mu = 0.
    chance = 0.5**guesses
    refuted = one_run_level(guesses, guesses, guesses, GAUSSIAN, confidence=1 - 1.01 * chance)
    assert refuted > 0.0
    assert one_run_level(guesses, guesses, guesses, GAUSSIAN, confidence=1 - 0.99 * chance) == 0.0


def most_right(correct: int, guesses: int, canaries: int, mu: float) -> float:
    """Largest P[K >= correct] by a linear program: all that f-DP says of sums over coins.

    Of (ε, δ)-DP at each of many ε: the sum over k of [k p_k - e^ε (n - k + 1) p_{k-1}]⁺ is at most
    m δ, p_k = P[K = k].
    """
    epsilons = np.linspace(0.0, 5.0 * mu, 12)
    n, size = guesses, guesses + 1 + len(epsilons) * guesses
    rows, limits = [], []
    for place, epsilon in enumerate(epsilons.tolist()):
        parts = guesses + 1 + place * n + np.arange(n)
        for k in range(1, n + 1):
            row = np.zeros(size)
            row[[k, k - 1, parts[k - 1]]] = k, -math.exp(epsilon) * (n - k + 1), -1.0
            rows.append(row)
            limits.append(0.0)
        row = np.zeros(size)
        row[parts] = 1.0
        rows.append(row)
        limits.append(canaries * gaussian_delta(epsilon, mu))
    total = (np.arange(size) <= n).astype(float)
    cost = -total * (np.arange(size) >= correct)
    solved = linprog(cost, A_ub=rows, b_ub=limits, A_eq=[total], b_eq=[1.0], method="highs")
    return -float(solved.fun)


@pytest.mark.parametrize(("correct", "guesses", "canaries"), [(24, 30, 30), (10, 10, 40)])
def test_the_recursion_is_no_sharper_than_a_linear_program(
    correct: int, guesses: int, canaries: int
) -> None:
    mu = 0.6
    most = most_right(correct, guesses, canaries, mu)
    found = one_run_level(correct, guesses, canaries, GAUSSIAN, confidence=1.0 - most)
    assert found <= mu * 1.01  # twelve epsilons are not all
    looser = one_run_level(correct, guesses, canaries, GAUSSIAN, confidence=1.0 - 1.4 * most)
    assert looser >= mu


def test_mu_and_the_curve_of_mu_are_one_claim() -> None:
    # A curve refuted at factor 1 is the one of the mu that is refuted.
    mu = one_run_level(48, 50, 100, GAUSSIAN, confidence=0.95)
    factor = one_run_level(48, 50, 100, curve_of(mu), confidence=0.95)
    assert factor == pytest.approx(1.0, abs=0.02)
    assert factor <= 1.0 + 1e-6


def test_rho_is_below_that_of_the_gaussian_mechanism() -> None:
    # mu-GDP is mu²/2-zCDP, which allows more: the mu of a refuted rho is the smaller one.
    mu = one_run_level(48, 50, 100, GAUSSIAN, confidence=0.95)
    rho = one_run_level(48, 50, 100, ConcentratedTradeOff(), confidence=0.95)
    assert 0.4 * mu < math.sqrt(2.0 * rho) < mu


def test_the_estimate_of_epsilon_is_that_of_the_refuted_mu() -> None:
    mu = one_run_level(18, 20, 100, GAUSSIAN, confidence=0.95)
    found = one_run_gaussian(18, 20, 100, delta=1e-5, confidence=0.95)
    assert found == gaussian_epsilon(mu, 1e-5)


# --- validity --------------------------------------------------------------------------------


def gaussian_outputs(
    mu: float, draws: int, canaries: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    coins = rng.random((draws, canaries)) < 0.5
    return coins, np.where(coins, mu / 2.0, -mu / 2.0) + rng.normal(size=coins.shape)


def flagged_share(right: np.ndarray, trade_off: TradeOff, level: float) -> float:
    """How often a true claim is refuted at 95 %."""
    tests = refuting(level, right.shape[1], trade_off, confidence=0.95)
    refuted = np.zeros(len(right), dtype=bool)
    for test in tests:
        refuted |= right[:, : test.guesses].sum(axis=1) >= test.needed
    return float(refuted.mean())


@pytest.mark.parametrize("mu", [0.1, 0.4, 1.0])
@pytest.mark.parametrize("canaries", [40, 200])
def test_gaussian_noise_at_the_claim_is_flagged_at_most_as_often_as_promised(
    mu: float, canaries: int
) -> None:
    coins, scores = gaussian_outputs(mu, 4000, canaries, np.random.default_rng(2))
    surest = np.argsort(-np.abs(scores), axis=1)
    highest = np.argsort(-scores, axis=1)
    for order in (surest, highest, surest[:, ::-1]):
        guesses = np.take_along_axis((scores > 0) == coins, order, axis=1)
        for trade_off, level in (
            (GAUSSIAN, mu),
            (ConcentratedTradeOff(), mu**2 / 2.0),
            (curve_of(mu), 1.0),
        ):
            assert flagged_share(guesses, trade_off, level) <= 0.05 + 3 * math.sqrt(
                0.05 * 0.95 / 4000
            )


def test_a_mechanism_that_reveals_all_coins_at_once_is_flagged_as_rarely_as_promised() -> None:
    # Worst for one training: (0, δ)-DP in each coin, and with probability δ all are right.
    rng, claim = np.random.default_rng(5), CurveTradeOff((CurvePoint(0.1, 0.04),))
    coins = rng.random((20_000, 60)) < 0.5
    coins[rng.random(20_000) < 0.04] = True
    assert flagged_share(coins, claim, 1.0) <= 0.05
    assert flagged_share(coins, CurveTradeOff((CurvePoint(0.1, 0.001),)), 1.0) > 0.03


def test_one_epsilon_for_all_coins_is_flagged_as_rarely_as_promised() -> None:
    # Noise that all canaries share: the number of right guesses varies far more than a binomial.
    mu, draws, canaries = 1.0, 4000, 64
    rng = np.random.default_rng(9)
    size = np.abs(np.where(rng.random(draws) < 0.5, 1, -1) * mu / 2 + rng.normal(size=draws))
    success = 1.0 / (1.0 + np.exp(-mu * size))  # of a coin with this |score|
    right = rng.random((draws, canaries)) < success[:, None]
    assert flagged_share(right, GAUSSIAN, mu) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / draws)
    assert flagged_share(right, GAUSSIAN, 0.2 * mu) > 0.2


@pytest.mark.parametrize("trade_off", [GAUSSIAN, ConcentratedTradeOff(), curve_of(0.5)])
def test_limits_are_monotone(trade_off: TradeOff) -> None:
    asked: dict[str, Any] = {"confidence": 0.95}
    by_right = [one_run_level(c, 30, 60, trade_off, **asked) for c in range(15, 31, 3)]
    assert by_right == sorted(by_right)
    assert by_right[-1] > 0.0
    assert one_run_level(29, 30, 90, trade_off, **asked) <= one_run_level(
        29, 30, 60, trade_off, **asked
    )
    surer = one_run_level(29, 30, 60, trade_off, confidence=0.99)
    assert surer <= one_run_level(29, 30, 60, trade_off, **asked)
    fewest = [
        min((one.needed for one in refuting(level, 200, trade_off, **asked)), default=math.inf)
        for level in (0.02, 0.05, 0.1, 0.2)
    ]
    assert fewest == sorted(fewest)


@pytest.mark.parametrize("trade_off", [GAUSSIAN, ConcentratedTradeOff(), curve_of(0.5)])
def test_what_refutes_a_claim_is_what_the_limit_exceeds_it_with(trade_off: TradeOff) -> None:
    for test in refuting(0.1, 80, trade_off, confidence=0.95):
        for correct in (test.needed - 1, test.needed):
            limit = one_run_level(correct, test.guesses, 80, trade_off, confidence=0.975)
            assert (limit > 0.1) == (correct == test.needed)


# --- power -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("claim", "canaries"), [(0.3, 100), (0.5, 500)])
def test_a_gaussian_leak_is_caught_as_often_as_stated(claim: float, canaries: int) -> None:
    tests = refuting(claim, canaries, GAUSSIAN, confidence=0.95)
    shift = detectable_shift(tests, canaries, 0.8)
    coins, scores = gaussian_outputs(shift, 1000, canaries, np.random.default_rng(4))
    surest = np.argsort(-np.abs(scores), axis=1)
    right = np.take_along_axis((scores > 0) == coins, surest, axis=1)
    assert 0.76 <= flagged_share(right, GAUSSIAN, claim) <= 0.9


def test_randomised_response_is_caught_as_often_as_stated() -> None:
    tests = refuting(0.3, 200, GAUSSIAN, confidence=0.95)
    error = detectable_error(tests, 0.8)
    best = max(binom.sf(one.needed - 1, one.guesses, 1.0 - error) for one in tests)
    assert best == pytest.approx(0.8)


def test_detectable_leaks_are_in_the_quantity_of_the_claim() -> None:
    asked: dict[str, Any] = {"confidence": 0.95, "power": 0.8}
    of_mu = TradeOffGuarantee(GAUSSIAN).one_run_detectable(0.3, 200, **asked)
    of_rho = TradeOffGuarantee(ConcentratedTradeOff(), measures_gaussian=True).one_run_detectable(
        0.045, 200, **asked
    )
    of_curve = TradeOffGuarantee(curve_of(0.3)).one_run_detectable(1.0, 200, **asked)
    assert of_mu.best is not None
    assert of_mu.gaussian is None
    assert 0.3 < of_mu.best < 1.5
    assert of_rho.best is not None
    assert of_rho.gaussian is not None
    assert of_mu.best**2 / 2.0 < of_rho.gaussian < of_rho.best
    assert of_curve.best is not None
    assert of_curve.best > 1.0
    assert TradeOffGuarantee(GAUSSIAN).one_run_detectable(9.0, 200, **asked) == Detectable(
        None, None
    )


def test_a_leak_of_few_canaries_shows_in_the_eighth() -> None:
    rng = np.random.default_rng(1)
    right = np.concatenate([np.ones(50), rng.random(350) < 0.5])
    found = strongest_level(right, GAUSSIAN, confidence=0.95)
    assert found.prefix == (50, 50)
    assert found.level == one_run_in_turn_level(right, GAUSSIAN, confidence=0.95) > 0.5
    everywhere = strongest_level(np.ones(400), GAUSSIAN, confidence=0.95)
    assert everywhere.prefix == (200, 200)


def test_bad_input_is_refused() -> None:
    with pytest.raises(SettingsError, match="`right` must say"):
        one_run_in_turn_level([], GAUSSIAN, confidence=0.95)
    with pytest.raises(SettingsError):
        refuting(0.5, 100, GAUSSIAN, confidence=1.0)
    with pytest.raises(SettingsError, match="`guesses`"):
        one_run_level(1, 5, 4, GAUSSIAN, confidence=0.95)
