"""The fair-coin bound: known values, validity by enumeration and simulation, power, bad input."""

from __future__ import annotations

import importlib
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import binom

from dpaudit.bounds import (
    CoinGuesses,
    CoinPlan,
    FailedTrials,
    choose_calibration,
    choose_rule,
    count_guesses,
    exact,
    fair_coin,
    fair_coin_p_value,
)
from dpaudit.bounds.fair_coin import set_aside, weight_reached
from dpaudit.bounds.threshold import choose_threshold, count_errors
from dpaudit.errors import SettingsError

DELTA = 1e-5
LEVEL = {"delta": DELTA, "confidence": 0.95}
PURE = {"delta": 0.0, "confidence": 0.95}

# --- known values ----------------------------------------------------------------------------


@pytest.mark.parametrize("trials", [20, 240, 2000])
def test_all_guesses_right_prove_what_the_exact_bound_proves_of_a_perfect_attack(
    trials: int,
) -> None:
    bound = fair_coin([trials], [trials], trials, **PURE)
    p = 0.05 ** (1 / trials)
    assert bound == pytest.approx(math.log(p / (1 - p)), abs=1e-6)
    assert bound == pytest.approx(exact(0, 0, trials // 2, trials // 2, **PURE), abs=1e-5)


@pytest.mark.parametrize(("right", "made"), [(60, 80), (19, 20), (160, 240)])
def test_equal_weights_invert_the_binomial_tail(right: int, made: int) -> None:
    bound = fair_coin([right], [made], 240, **PURE)
    p = 1 / (1 + math.exp(-bound))
    assert binom.sf(right - 1, made, p) == pytest.approx(0.05, abs=1e-6)
    assert fair_coin([0, 0, right], [0, 0, made], 240, **PURE) == bound


@pytest.mark.parametrize("right", [0, 60, 120])
def test_guesses_no_better_than_chance_prove_nothing(right: int) -> None:
    assert fair_coin([right], [240], 240, **LEVEL) == 0.0


def test_silence_proves_nothing() -> None:
    assert fair_coin([0], [0], 240, **LEVEL) == 0.0
    assert fair_coin([], [], 240, **LEVEL) == 0.0


@settings(max_examples=60, deadline=None)
@given(
    made=st.lists(st.integers(0, 3), min_size=1, max_size=4),
    success=st.floats(0.5, 0.99),
    needed=st.integers(0, 30),
)
def test_weight_reached_by_brute_force(made: list[int], success: float, needed: int) -> None:
    weights = [weight for weight, count in enumerate(made, start=1) for _ in range(count)]
    expected = sum(
        success ** sum(hits) * (1 - success) ** (len(weights) - sum(hits))
        for hits in itertools.product((0, 1), repeat=len(weights))
        if np.dot(hits, weights) >= needed
    )
    assert weight_reached(made, needed, success=success) == pytest.approx(expected, abs=1e-9)


# --- delta -----------------------------------------------------------------------------------


def test_nothing_is_set_aside_without_delta() -> None:
    assert set_aside(240, delta=0.0, confidence=0.95) == (0, 0.0)


@pytest.mark.parametrize(("trials", "delta"), [(240, 1e-5), (2000, 1e-5), (240, 0.01), (100, 0.2)])
def test_more_coins_are_revealed_as_seldom_as_is_set_aside(trials: int, delta: float) -> None:
    aside = set_aside(trials, delta=delta, confidence=0.95)
    assert aside is not None
    assert aside.probability == binom.sf(aside.revealed, trials, delta) < 0.05
    others = [
        (0.05 - binom.sf(r, trials, delta), trials - r)
        for r in range(trials)
        if binom.sf(r, trials, delta) < 0.05
    ]
    best = min(-math.log(left) / n for left, n in others)
    own = -math.log(0.05 - aside.probability) / (trials - aside.revealed)
    assert own == pytest.approx(best)


def test_more_delta_never_raises_the_bound() -> None:
    bounds = [
        fair_coin([14, 75], [15, 80], 240, delta=delta, confidence=0.95)
        for delta in (0.0, 1e-5, 1e-3, 0.01, 0.05, 0.2)
    ]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] > 1.0 > bounds[-1]


def leaky_response(
    epsilon: float, delta: float, trials: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The mechanism that dominates all (ε, δ)-DP ones: worlds, guesses, whether revealed."""
    member = rng.random(trials) < 0.5
    revealed = rng.random(trials) < delta
    kept = rng.random(trials) < 1 / (1 + math.exp(-epsilon))
    return member, np.where(revealed | kept, member, ~member), revealed


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.02), (1.0, 1e-5), (1.0, 0.02), (3.0, 0.05)])
def test_the_worst_mechanism_and_attack_exceed_the_truth_at_the_nominal_rate_at_most(
    epsilon: float, delta: float
) -> None:
    """Revealed coins are guessed with eight times the weight of the others."""
    rng = np.random.default_rng(4)
    draws, trials, above = 400, 100, 0
    for _ in range(draws):
        member, guessed, revealed = leaky_response(epsilon, delta, trials, rng)
        right = guessed == member
        light, heavy = ~revealed, revealed
        made = [light.sum(), *[0] * 6, heavy.sum()]
        hits = [(light & right).sum(), *[0] * 6, (heavy & right).sum()]
        above += fair_coin(hits, made, trials, delta=delta, confidence=0.95) > epsilon
    assert above <= binom.ppf(0.999, draws, 0.05)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_randomised_response_exceeds_the_truth_at_the_nominal_rate_exactly(epsilon: float) -> None:
    trials, success = 240, 1 / (1 + math.exp(-epsilon))
    right = np.arange(trials + 1)
    above = np.array([fair_coin([k], [trials], trials, **PURE) > epsilon for k in right])
    assert 0.02 < binom.pmf(right, trials, success) @ above <= 0.05


# --- calibration ---------------------------------------------------------------------------------


def gaussian(mu: float, member: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=len(member)) + mu * member


def audited(mu: float, rng: np.random.Generator, *, fitted: int = 160, scored: int = 240) -> float:
    """A whole audit of a Gaussian shift, by the fair-coin bound."""
    member = np.arange(fitted) % 2 == 0
    calibration = choose_calibration(gaussian(mu, member, rng), member, trials=scored, **LEVEL)
    coins = rng.random(scored) < 0.5
    return fair_coin(*count_guesses(gaussian(mu, coins, rng), coins, calibration), **LEVEL)


@pytest.mark.parametrize("audits", [30, pytest.param(60, marks=pytest.mark.ci)])
def test_a_gaussian_leak_is_proved_where_one_cut_proves_it_in_few_audits(audits: int) -> None:
    """mu = 1 is epsilon 4.4 at this delta; 8 % of audits of this size prove 1 by one cut."""
    bounds = [audited(1.0, np.random.default_rng([2, n])) for n in range(audits)]
    assert np.mean(np.array(bounds) > 1.0) > 0.6


def test_trials_that_failed_are_missing_from_what_is_promised() -> None:
    member = np.arange(400) % 2 == 0
    promised = [
        choose_rule(
            member.astype(float), member, failed=FailedTrials(lost, lost), scored=600,
            rng=np.random.default_rng(1), **LEVEL,
        )
        for lost in (0, 200)
    ]  # fmt: skip
    assert promised[0].by_coins
    assert promised[1].bound < promised[0].bound - 0.5


@pytest.mark.parametrize("audits", [100, pytest.param(200, marks=pytest.mark.ci)])
def test_nothing_is_proved_without_a_leak(audits: int) -> None:
    bounds = [audited(0.0, np.random.default_rng([3, n])) for n in range(audits)]
    assert sum(bound > 0 for bound in bounds) <= binom.ppf(0.999, audits, 0.05)


@pytest.mark.parametrize("audits", [40, pytest.param(400, marks=pytest.mark.ci)])
def test_nothing_is_proved_of_scores_that_drift_with_the_machine(audits: int) -> None:
    """As seconds do: the load wanders, and each training leaves it to the next."""
    bounds = []
    for number in range(audits):
        rng = np.random.default_rng([5, number])
        coins = rng.random(160) < 0.5
        load = np.cumsum(rng.normal(size=160)) + rng.exponential(5.0, 160) * (rng.random(160) < 0.1)
        load[1:] += 2.0 * coins[:-1]
        fits = rng.permutation(160) < 64
        calibration = choose_calibration(load[fits], coins[fits], trials=96, **PURE)
        guesses = count_guesses(load[~fits], coins[~fits], calibration)
        bounds.append(fair_coin(*guesses, **PURE))
    assert sum(bound > 0 for bound in bounds) <= binom.ppf(0.999, audits, 0.05)


def test_odds_follow_the_likelihood_ratio() -> None:
    rng = np.random.default_rng(1)
    member = np.arange(20_000) % 2 == 0
    scores = gaussian(1.0, member, rng)
    calibration = choose_calibration(scores, member, trials=100, **LEVEL)
    at = np.array([-1.0, 0.5, 1.5])
    np.testing.assert_allclose(calibration.log_odds(at), at - 0.5, atol=0.06)


def shows_in_a_few(member: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Normal noise, raised by 4 in one of three trials with the record."""
    return rng.normal(size=len(member)) + 4.0 * (member & (rng.random(len(member)) < 1 / 3))


def test_odds_stop_falling_where_a_leak_shows_on_one_side_alone() -> None:
    """Below 1 both worlds have the same noise: the odds are those of not having shown, 2 : 3."""
    rng = np.random.default_rng(1)
    member = np.arange(20_000) % 2 == 0
    calibration = choose_calibration(shows_in_a_few(member, rng), member, trials=100, **LEVEL)
    odds = calibration.log_odds(np.array([-3.0, -1.0, 0.5, 5.0]))
    np.testing.assert_allclose(odds[:3], math.log(2 / 3), atol=0.15)
    assert odds[3] > 3.0


def test_guesses_prove_a_leak_on_one_side_as_one_cut_does() -> None:
    """The cut ignores the other side; a line of odds that went on falling would guess there."""
    by_coins, by_cut = [], []
    for seed in range(12):
        rng = np.random.default_rng([8, seed])
        fitted, coins = np.arange(160) % 2 == 0, rng.random(240) < 0.5
        scores, scored = shows_in_a_few(fitted, rng), shows_in_a_few(coins, rng)
        calibration = choose_calibration(scores, fitted, trials=240, **LEVEL)
        by_coins.append(fair_coin(*count_guesses(scored, coins, calibration), **LEVEL))
        cut = choose_threshold(scores, fitted, **LEVEL)
        by_cut.append(exact(*count_errors(scored, coins, cut), **LEVEL))
    assert np.median(by_coins) > 0.95 * np.median(by_cut) > 1.0


def test_a_guess_is_heavier_the_further_its_odds_are_from_the_margin() -> None:
    rng = np.random.default_rng(1)
    member = np.arange(400) % 2 == 0
    scores = gaussian(1.0, member, rng)
    calibration = choose_calibration(scores, member, trials=240, **LEVEL)
    guesses = calibration.guesses(np.sort(scores))
    assert (np.diff(guesses) >= 0).all()
    assert guesses[0] < 0
    assert guesses[-1] == 8
    silent = guesses == 0
    assert silent.any()
    assert (np.abs(calibration.log_odds(np.sort(scores))[silent]) <= calibration.margin).all()


def test_scores_that_are_all_alike_are_met_with_silence() -> None:
    member = np.arange(40) % 2 == 0
    calibration = choose_calibration(np.ones(40), member, trials=60, **LEVEL)
    assert not calibration.guesses(np.array([0.0, 1.0, 2.0])).any()


def test_a_trial_that_failed_is_a_coin_without_a_guess() -> None:
    member = np.arange(40) % 2 == 0
    calibration = choose_calibration(member * 1.0, member, trials=60, **LEVEL)
    guesses = count_guesses(member * 1.0, member, calibration, failed=3)
    assert (sum(guesses.right), sum(guesses.made), guesses.trials) == (40, 40, 43)


# --- power -----------------------------------------------------------------------------------


def test_power_of_randomised_response_by_enumeration() -> None:
    least = CoinPlan(trials=240, **LEVEL).detectable(1.0)
    assert least is not None
    right = np.arange(241)
    proves = np.array([fair_coin([k], [240], 240, **LEVEL) > 1.0 for k in right])
    assert binom.pmf(right, 240, 1 / (1 + math.exp(-least))) @ proves == pytest.approx(
        0.8, abs=1e-6
    )


def test_a_gaussian_leak_of_the_detectable_size_is_proved_in_four_of_five_audits() -> None:
    least = CoinPlan(trials=240, **LEVEL).detectable_gaussian(1.0)
    assert least is not None
    assert 4.3 < least < 5.0  # mu of about 1; one cut takes 6.6
    bounds = [audited(1.07, np.random.default_rng([5, n])) for n in range(40)]
    assert np.mean(np.array(bounds) > 1.0) > 0.65


def test_failed_trials_cost_power() -> None:
    whole = CoinPlan(trials=240, **LEVEL).provable()
    lost = CoinPlan(trials=240, failed=40, **LEVEL).provable()
    assert lost == pytest.approx(CoinPlan(trials=200, **LEVEL).provable(), abs=0.03)
    assert lost < whole
    assert CoinPlan(trials=240, failed=240, **LEVEL).provable() == 0.0


def test_too_few_trials_catch_nothing() -> None:
    few = CoinPlan(trials=12, **LEVEL)
    assert few.detectable(5.0) is None
    assert few.detectable_gaussian(5.0) is None
    assert CoinPlan(trials=240, **PURE).detectable_gaussian(1.0) is None


# --- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("guesses", "says"),
    [
        (((3,), (2,), 10), "`right`"),
        (((-1,), (2,), 10), "`right`"),
        (((1, 1), (2,), 10), "`right` has 2 weights"),
        (((1,), (11,), 10), "`made` is 11 guesses of 10 trials"),
        (((0,), (0,), 0), "`trials`"),
        (((0.5,), (1,), 10), "`right`"),
    ],
)
def test_impossible_guesses_are_refused(guesses: tuple[object, ...], says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        CoinGuesses(*guesses)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match=says):
        fair_coin(*guesses, **LEVEL)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("argument", "value"), [("delta", 1.0), ("confidence", 1.0), ("epsilon", -1.0)]
)
def test_settings_out_of_range_are_refused(argument: str, value: float) -> None:
    asked = {"epsilon": 1.0, **LEVEL, argument: value}
    with pytest.raises(SettingsError, match=argument):
        fair_coin_p_value([1], [1], 10, **asked)


def test_the_p_value_is_the_error_at_the_bound() -> None:
    guesses = ([14, 75], [15, 80], 240)
    bound = fair_coin(*guesses, **LEVEL)
    assert fair_coin_p_value(*guesses, epsilon=bound, **LEVEL) == pytest.approx(0.05, abs=1e-6)
    assert fair_coin_p_value(*guesses, epsilon=bound + 0.1, **LEVEL) > 0.05


@pytest.mark.parametrize(
    ("noise", "saturates"), [("laplace", True), ("normal", False)], ids=["Laplace", "Gaussian"]
)
def test_guesses_weigh_alike_where_odds_grow_no_further(noise: str, saturates: bool) -> None:
    rng = np.random.default_rng(3)
    member = np.arange(2000) % 2 == 0
    scores = getattr(rng, noise)(size=2000) + member
    calibration = choose_calibration(scores, member, trials=3000, delta=0.0, confidence=0.95)
    # Laplace noise of scale 1 says all that it says about a shift of 1 between 0 and 1.
    assert (float(calibration.low) > -1.0 and float(calibration.high) < 2.0) == saturates


@pytest.mark.ci
def test_laplace_noise_is_proved_by_guesses_as_by_a_cut() -> None:
    rng = np.random.default_rng(5)
    fits = np.arange(2000) < 800
    bounds = []
    for _ in range(9):
        member = np.where(fits, np.arange(2000) % 2 == 0, rng.random(2000) < 0.5)
        scores = rng.laplace(size=2000) + member
        calibration = choose_calibration(scores[fits], member[fits], trials=1200, **PURE)
        bounds.append(fair_coin(*count_guesses(scores[~fits], member[~fits], calibration), **PURE))
    assert 0.8 < np.median(bounds) < 1.0


@pytest.mark.parametrize("times", [3, pytest.param(9, marks=pytest.mark.slow)])
def test_a_cut_is_promised_what_it_proves_though_halves_choose_other_cuts(
    monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    # Of a Gaussian leak a cut for either kind of error proves much, errors of two such cuts little.
    module = importlib.import_module("dpaudit.bounds.calibration")  # the function has its name
    monkeypatch.setattr(module, "fair_coin", lambda *given, **asked: 0.0)
    rng = np.random.default_rng(4)
    member = np.arange(1600) % 2 == 0
    found = [
        choose_rule(
            rng.normal(size=1600) + member,
            member,
            failed=FailedTrials(0, 0),
            scored=2400,
            rng=rng,
            **LEVEL,
        )
        for _ in range(times)
    ]
    assert not any(one.by_coins for one in found)
    scores = rng.normal(size=1600) + member
    asked = {"failed": FailedTrials(0, 0), "scored": 2400, "coins_alone": True, **LEVEL}
    assert choose_rule(scores, member, rng=rng, **asked).by_coins
    assert 1.2 < np.median([one.bound for one in found]) < 1.9


def test_the_power_is_that_of_simulated_audits() -> None:
    plan = CoinPlan(trials=60, delta=0.01, confidence=0.95)
    rng = np.random.default_rng(5)
    for right, claim in ((0.9, 1.0), (0.8, 0.0), (0.731, 1.0)):
        reached = plan.power(claim, right=right)
        counts = np.bincount(rng.binomial(60, right, 20_000), minlength=61)
        proved = [fair_coin([k], [60], 60, (), delta=0.01, confidence=0.95) for k in range(61)]
        measured = counts[np.array(proved) > claim].sum() / 20_000
        assert reached == pytest.approx(measured, abs=0.015)
        if claim == 1.0 and right == 0.731:  # the claim itself, which must not be refuted
            assert reached <= 0.05
    least = plan.detectable(1.0)
    assert least is not None
    power = plan.power(1.0, right=float(expit(least)))
    assert power == pytest.approx(0.8, abs=1e-6)
