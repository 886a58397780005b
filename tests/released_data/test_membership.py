"""Tests of membership on scores alone: how often they are wrong, and that they find."""

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit.bounds import one_run_in_turn
from dpaudit.released_data import membership as module
from dpaudit.released_data.membership import (
    benjamini_hochberg,
    detectable_copies,
    draw_fitting_part,
    enough,
    find_risky_rows,
    fit_calibration,
    gain,
    guesses,
    p_value,
    phantom_p_value,
    recognise,
    released_bound,
    released_power,
)
from dpaudit.released_data.scores import MembershipScores

RNG = np.random.default_rng(20260)
NAMES = ("one", "other")


def noise(n: int) -> dict[str, np.ndarray]:
    # Ties, as between exact distances, must not favour anyone.
    return {"one": RNG.integers(0, 12, n).astype(float), "other": RNG.normal(size=n)}


def coins(n: int) -> np.ndarray:
    return RNG.integers(0, 2, n).astype(bool)


def test_false_alarms_are_as_rare_as_they_may_be() -> None:
    runs, alarms, bounds, phantoms = 80, 0, 0, 0
    for _ in range(runs):
        scores, inside = noise(160), coins(160)
        fitting = draw_fitting_part(160, RNG)
        found = recognise(scores, inside, fitting, RNG, confidence=0.95)
        alarms += found.p_value <= 0.05
        bounds += released_bound(found.right, delta=0.0, confidence=0.95) > 0.0
        ghost = phantom_p_value(scores, inside, RNG)
        phantoms += ghost is not None and ghost <= 0.05
    most = binom.ppf(0.999, runs, 0.05)
    assert alarms <= most
    assert bounds <= most
    assert phantoms <= most
    assert alarms > 0  # the test is not blunt


def test_a_private_mechanism_is_not_accused() -> None:
    # Randomised response of epsilon 1 on every coin: the largest leak that it allows.
    runs, wrong, found_any = 30, 0, 0
    for _ in range(runs):
        inside = coins(300)
        told = inside ^ (RNG.random(300) > np.e / (1 + np.e))
        scores = {"told": told + RNG.normal(size=300) / 100}
        found = recognise(scores, inside, draw_fitting_part(300, RNG), RNG, confidence=0.95)
        proved = released_bound(found.right, delta=0.0, confidence=0.95)
        wrong += proved > 1.0
        found_any += proved > 0.2
    assert wrong <= binom.ppf(0.999, runs, 0.05)
    assert found_any > 0.8 * runs


def test_a_leak_is_found_and_chosen() -> None:
    inside = coins(1000)
    scores = noise(1000)
    scores["other"] = scores["other"] + 10.0 * (inside & (RNG.random(1000) < 0.1))
    found = recognise(scores, inside, draw_fitting_part(1000, RNG), RNG, confidence=0.95)
    assert found.attack == "other"
    assert found.p_value == pytest.approx(1e-4)
    assert released_bound(found.right, delta=0.0, confidence=0.95) > 0.5
    assert found.rates[1].true_positive_rate_lower > found.rates[1].false_positive_rate_upper


def test_limits_on_the_false_positive_rate_hold_together() -> None:
    # With continuous noise the rate that a threshold has in the population is known: its tail.
    from scipy.stats import norm

    runs, wrong = 80, 0
    for _ in range(runs):
        scores, inside = RNG.normal(size=400), coins(400)
        fitting = draw_fitting_part(400, RNG)
        found = recognise({"one": scores}, inside, fitting, RNG, confidence=0.9)
        known = np.sort(scores[fitting & ~inside])[::-1]
        true = [norm.sf(known[int(rate.nominal * len(known))]) for rate in found.rates]
        pairs = zip(found.rates, true, strict=True)
        wrong += any(
            rate.false_positive_rate_upper < of or rate.true_positive_rate_lower > of
            for rate, of in pairs
        )
    assert wrong <= binom.ppf(0.999, runs, 0.1)


def test_the_parts_do_not_depend_on_membership_and_are_bounded() -> None:
    assert (~draw_fitting_part(101, RNG)).sum() == 50
    assert (~draw_fitting_part(50_000, RNG)).sum() == 10_000


def test_too_few_of_a_kind_are_not_tested() -> None:
    inside = np.zeros(100, dtype=bool)
    inside[:9] = True
    assert not enough(inside, np.arange(100) % 2 == 0)
    inside[:10] = True
    assert enough(inside, np.arange(100) % 2 == 0)
    assert phantom_p_value(noise(100), np.arange(100) > 12, RNG) is None


def test_calibration_never_fall_and_pool_what_violates() -> None:
    scores = np.array([0.0, 1.0, 2.0, 3.0, 3.0, 4.0])
    inside = np.array([False, True, False, False, True, True])
    calibration = fit_calibration(scores, inside)
    assert (np.diff(calibration.log_odds) > 0).all()
    assert calibration.steps(scores).tolist() == [0, 1, 1, 1, 1, 2]
    assert calibration.steps(np.array([-9.0, 3.5, 9.0])).tolist() == [0, 1, 2]


def test_the_surest_guess_comes_first() -> None:
    scores = np.concatenate([RNG.normal(size=300), [50.0, 40.0]])
    inside = np.concatenate([coins(300), [True, True]])
    scores[:60], inside[:60] = 30.0, True
    order, inward = guesses(scores, fit_calibration(scores, inside))
    assert order[0] == 300
    assert inward[:62].all()


def test_gain_is_positive_for_a_leak_alone() -> None:
    inside, parts = coins(600), np.arange(600) % 2 == 0
    assert gain(inside + RNG.normal(size=600), inside, parts) > 20.0
    assert gain(RNG.normal(size=600), inside, parts) < 5.0


def test_p_values_are_those_of_the_hypergeometric_distribution() -> None:
    from scipy.stats import hypergeom

    scores = np.array([1.0] * 6 + [0.0] * 14)
    inside = np.array([True] * 5 + [False] + [True] * 5 + [False] * 9)
    calibration = fit_calibration(
        np.array([0.0, 0.0, 1.0, 1.0]), np.array([False, True, True, True])
    )
    expected = hypergeom.sf(4, 20, 6, 10)
    assert p_value(scores, inside, calibration, RNG) == pytest.approx(expected, abs=0.01)


def test_delta_counts_for_rows_that_are_not_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = np.ones(400, dtype=bool)
    monkeypatch.setattr(module, "MOST_GUESSED", 100)
    assert released_bound(right, delta=0.0, confidence=0.95) == one_run_in_turn(
        right[:100], delta=0.0, confidence=0.95
    )
    # Of 400 coins 400 delta are revealed in the mean, though only 100 are guessed.
    assert released_bound(right, delta=1e-3, confidence=0.95) == one_run_in_turn(
        right[:100], delta=4e-3, confidence=0.95
    )
    assert released_bound(right, delta=0.5, confidence=0.95) == 0.0
    power = released_power(400, claim_epsilon=1.0, delta=1e-3, confidence=0.95)
    assert power.max_provable == released_bound(right, delta=1e-3, confidence=0.95)
    assert power.detectable is not None
    assert 1.0 < power.detectable < power.max_provable


def test_risky_rows_are_named_and_seldom_falsely() -> None:
    named, false = 0, 0.0
    for _ in range(40):
        inside, leaked = coins(2000), RNG.random(2000) < 0.08
        scores = noise(2000)
        scores["other"] = scores["other"] + 20.0 * (inside & leaked)
        rows = [one.row for one in find_risky_rows(scores, inside, RNG)]
        named += len(rows)
        false += sum(not (inside & leaked)[row] for row in rows) / max(1, len(rows))
        assert inside[rows].all()
    assert named > 40 * 50  # of 64 that are looked at and leak
    assert false / 40 < 0.06


def test_without_a_leak_hardly_ever_a_row_is_named() -> None:
    named = sum(bool(find_risky_rows(noise(400), coins(400), RNG)) for _ in range(100))
    assert named <= binom.ppf(0.999, 100, 0.05)


def test_step_up_refutes_what_benjamini_and_hochberg_do() -> None:
    p_values = np.array([0.5, 0.011, 0.001, 0.02, 0.9])
    assert benjamini_hochberg(p_values, rate=0.05).tolist() == [False, True, True, True, False]
    assert not benjamini_hochberg(np.array([0.9, 0.2]), rate=0.05).any()
    assert benjamini_hochberg(np.array([]), rate=0.05).shape == (0,)


def test_copies_that_would_be_found_are_found() -> None:
    inside, fitting = coins(2000), draw_fitting_part(2000, RNG)
    seen = {"one": RNG.normal(size=2000)}
    scores = MembershipScores(seen, {"one": seen["one"] + 9.0})
    share = detectable_copies(scores, inside, fitting, RNG, level=0.05)
    assert share is not None
    assert 0.002 <= share <= 0.05
    few = MembershipScores(*({"one": of["one"][:24]} for of in scores))
    assert detectable_copies(few, inside[:24], fitting[:24], RNG, level=1e-4) is None


def test_copies_that_score_as_other_rows_do_would_not_be_found() -> None:
    inside, fitting = coins(400), draw_fitting_part(400, RNG)
    seen = {"one": RNG.normal(size=400)}
    hidden = MembershipScores(seen, {"one": RNG.permutation(seen["one"])})
    assert detectable_copies(hidden, inside, fitting, RNG, level=0.05) is None


def test_a_leak_that_is_there_does_not_count_as_one_that_would_be_found() -> None:
    inside, fitting = coins(400), draw_fitting_part(400, RNG)
    leaky = {"one": RNG.normal(size=400) + 3.0 * inside}
    hidden = MembershipScores(leaky, {"one": RNG.permutation(leaky["one"])})
    assert detectable_copies(hidden, inside, fitting, RNG, level=0.05) is None


def test_the_attack_that_sees_copies_is_chosen_for_them() -> None:
    inside, fitting = coins(2000), draw_fitting_part(2000, RNG)
    seen = noise(2000)
    blind = {"one": seen["one"], "other": seen["other"] + 9.0}
    share = detectable_copies(MembershipScores(seen, blind), inside, fitting, RNG, level=0.05)
    assert share is not None
    assert share <= 0.05
