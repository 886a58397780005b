"""Fair coins that share trainings: known values, adversarial mechanisms, calibration."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

from dpaudit.bounds import (
    CoinGuesses,
    CoinPlan,
    fair_coin,
    fair_coin_p_value,
    one_run,
)
from dpaudit.bounds.calibration import calibrate_records, count_record_guesses
from dpaudit.errors import SettingsError

LEVEL: dict[str, Any] = {"delta": 1e-5, "confidence": 0.95}
PURE: dict[str, Any] = {"delta": 0.0, "confidence": 0.95}


def shared(right: int, made: int, trainings: int, records: int) -> CoinGuesses:
    """Guesses of equal weight, spread evenly over the trainings."""
    counts = np.bincount(np.arange(made) % trainings, minlength=trainings)
    return CoinGuesses((right,), (made,), trainings * records, tuple(counts.tolist()))


# --- known values ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "made", "records"), [(60, 80, 100), (19, 20, 20), (300, 500, 500)]
)
def test_one_training_under_pure_dp_is_one_run(right: int, made: int, records: int) -> None:
    bound = fair_coin(*shared(right, made, 1, records), **PURE)
    assert bound == pytest.approx(one_run(right, made, records, **PURE), abs=1e-6)


def test_under_pure_dp_it_does_not_matter_who_shares_a_training() -> None:
    alone = fair_coin((14, 70), (15, 80), 160, **PURE)
    for trainings in (1, 8, 40):
        counts = np.bincount(np.arange(95) % trainings, minlength=trainings)
        assert fair_coin((14, 70), (15, 80), 160, tuple(counts.tolist()), **PURE) == alone


def test_a_coin_for_each_training_is_the_bound_without_sharing() -> None:
    counts = tuple(int(n < 95) for n in range(240))
    for delta in (1e-5, 0.01, 0.1):
        level: dict[str, Any] = {"delta": delta, "confidence": 0.95}
        assert fair_coin((14, 75), (15, 80), 240, counts, **level) == fair_coin(
            (14, 75), (15, 80), 240, **level
        )


@pytest.mark.parametrize("delta", [1e-6, 1e-5, 1e-4])
@pytest.mark.parametrize(("right", "made"), [(700, 960), (330, 400), (60, 64)])
def test_it_agrees_with_one_run_on_all_coins(right: int, made: int, delta: float) -> None:
    """All trainings together are one run of 960 canaries; the two rules pay for δ differently."""
    level: dict[str, Any] = {"delta": delta, "confidence": 0.95}
    ours = fair_coin(*shared(right, made, 60, 16), **level)
    assert ours == pytest.approx(one_run(right, made, 960, **level), abs=0.12)
    assert ours <= one_run(right, made, 960, **PURE)


def test_reference_vectors_of_one_training(estimator_vectors: dict[str, Any]) -> None:
    compared = 0
    for entry in estimator_vectors["one_run"]:
        guesses = shared(entry["v"], entry["r"], 1, entry["m"])
        level: dict[str, Any] = {"delta": entry["delta"], "confidence": entry["confidence"]}
        pure = fair_coin(*guesses, delta=0.0, confidence=entry["confidence"])
        if entry["delta"] == 0.0:
            assert pure == pytest.approx(entry["steinke"], abs=1e-6)
            compared += 1
        # One training in which any coin is revealed is lost; the theorem pays for each coin.
        assert fair_coin(*guesses, **level) <= pure
    assert compared


@pytest.mark.parametrize(("trainings", "records", "delta"), [(240, 16, 1e-5), (100, 8, 1e-3)])
def test_trainings_are_set_aside_and_their_guesses_taken_for_right(
    trainings: int, records: int, delta: float
) -> None:
    made, right = trainings * 3, trainings * 2
    guesses = shared(right, made, trainings, records)
    epsilon = 0.4
    p_value = fair_coin_p_value(*guesses, epsilon=epsilon, delta=delta, confidence=0.95)
    fits = [
        binom.sf(right - 3 * revealed - 1, made - 3 * revealed, expit(epsilon))
        + binom.sf(revealed, trainings, records * delta)
        for revealed in range(10)
    ]
    assert min(abs(np.array(fits) - p_value)) < 1e-12


def test_bounds_fall_with_delta_and_with_records_that_share_a_training() -> None:
    bounds = [
        fair_coin(*shared(300, 400, 480 // records, records), delta=delta, confidence=0.95)
        for records, delta in ((1, 0.0), (1, 1e-4), (8, 1e-4), (16, 1e-3))
    ]
    assert all(more >= less for more, less in pairwise(bounds))
    assert bounds[0] > bounds[-1]


def test_so_much_delta_that_every_training_may_reveal_a_coin_proves_nothing() -> None:
    assert fair_coin(*shared(160, 160, 10, 16), delta=0.07, confidence=0.95) == 0.0


# --- validity --------------------------------------------------------------------------------


def revealing(
    how: str, epsilon: float, delta: float, size: tuple[int, int], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Guesses by weight and coins of an (ε, δ)-DP mechanism that reveals some coins outright.

    "each": every coin by itself; "one": one coin of a training at a time, so that as many trainings
    as possible reveal one; "all": all coins of a training at once. Each coin is revealed with
    probability δ, and guessed with eight times the weight.
    """
    trainings, records = size
    coins = rng.random(size) < 0.5
    kept = rng.random(size) < expit(epsilon)
    if how == "each":
        revealed = rng.random(size) < delta
    elif how == "all":
        revealed = np.repeat(rng.random((trainings, 1)) < delta, records, axis=1)
    else:
        chosen = rng.random(trainings) < records * delta
        revealed = chosen[:, None] & (
            np.arange(records) == rng.integers(records, size=trainings)[:, None]
        )
    guessed = np.where(kept | revealed, coins, ~coins)
    return np.where(revealed, 8, 1) * np.where(guessed, 1, -1), coins


@pytest.mark.parametrize("how", ["each", "one", "all"])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-3), (0.0, 0.01), (2.0, 0.02)])
def test_revealed_coins_exceed_the_truth_at_the_nominal_rate_at_most(
    how: str, epsilon: float, delta: float
) -> None:
    rng = np.random.default_rng(8)
    draws, above = 300, 0
    for _ in range(draws):
        guesses = count_record_guesses(*revealing(how, epsilon, delta, (40, 8), rng))
        p_value = fair_coin_p_value(*guesses, epsilon=epsilon, delta=delta, confidence=0.95)
        above += p_value < 0.05
    assert above <= binom.ppf(0.999, draws, 0.05)


def test_without_setting_aside_revealed_coins_would_exceed_the_truth_too_often() -> None:
    """What the test before would miss nothing of."""
    rng = np.random.default_rng(8)
    above = 0
    for _ in range(200):
        guesses = count_record_guesses(*revealing("all", 0.0, 0.02, (40, 8), rng))
        above += fair_coin(*guesses, **PURE) > 0.0
    assert above > binom.ppf(0.999, 200, 0.05)


def test_records_whose_coins_help_to_guess_one_another_gain_nothing() -> None:
    """Two records share one bit of randomised response: it is (ε, 0)-DP in either coin."""
    rng = np.random.default_rng(3)
    above = 0
    for _ in range(300):
        coins = rng.random((30, 2)) < 0.5
        both = coins[:, 0] ^ coins[:, 1]
        said = both ^ (rng.random(30) >= expit(1.0))
        guessed = np.column_stack([said, said])  # each is right only as often as the other is out
        counted = count_record_guesses(np.where(guessed, 1, -1), coins)
        above += fair_coin_p_value(*counted, epsilon=1.0, **PURE) < 0.05
    assert above <= binom.ppf(0.999, 300, 0.05)


# --- calibration ---------------------------------------------------------------------------------


def audited(shifts: np.ndarray, seed: int, *, fitted: int = 80, scored: int = 120) -> float:
    """A whole audit of Gaussian scores, shifted by so much for each record that is in."""
    rng = np.random.default_rng(seed)
    halves = np.arange(fitted) % 2 == 0
    included = rng.permuted(np.repeat(halves[:, None], len(shifts), axis=1), axis=0)
    scores = rng.normal(size=included.shape) + shifts * included
    found = calibrate_records(scores, included, trainings=scored, rng=rng, **LEVEL)
    coins = rng.random((scored, len(shifts))) < 0.5
    guessed = found.calibration.guesses(rng.normal(size=coins.shape) + shifts * coins)
    return fair_coin(*count_record_guesses(guessed, coins), **LEVEL)


def test_many_records_that_leak_alike_prove_more_than_one() -> None:
    many = np.median([audited(np.full(16, 1.0), seed) for seed in range(6)])
    alone = np.median([audited(np.array([1.0]), seed) for seed in range(6)])
    assert many > alone + 0.5


def test_one_record_that_leaks_is_guessed_and_the_others_are_not() -> None:
    shifts = np.zeros(16)
    shifts[3] = 4.0
    rng = np.random.default_rng(1)
    included = rng.permuted(np.repeat((np.arange(80) % 2 == 0)[:, None], 16, axis=1), axis=0)
    scores = rng.normal(size=included.shape) + shifts * included
    found = calibrate_records(scores, included, trainings=120, rng=rng, **LEVEL)
    made = np.abs(found.calibration.guesses(scores)).sum(axis=0)
    assert made[3] > 20 * np.delete(made, 3).max()
    assert found.bound > 1.5


def test_nothing_is_proved_without_a_leak() -> None:
    above = sum(audited(np.zeros(8), seed, fitted=20, scored=30) > 0 for seed in range(60))
    assert above <= binom.ppf(0.999, 60, 0.05)


def test_records_whose_scores_never_vary_are_met_with_silence() -> None:
    included = np.arange(16).reshape(8, 2) % 4 < 2
    scores = np.column_stack([included[:, 0] * 1.0, np.full(8, 3.0)])
    found = calibrate_records(scores, included, trainings=12, rng=np.random.default_rng(1), **LEVEL)
    guessed = found.calibration.guesses(scores)
    assert not guessed[:, 1].any()
    assert ((guessed[:, 0] > 0) == included[:, 0]).all()


def test_trainings_that_failed_have_coins_without_a_guess() -> None:
    coins = np.array([[True, False], [False, True]])
    guesses = count_record_guesses(np.where(coins, 2, -1), coins, failed=3)
    assert (guesses.right[:2], guesses.made[:2], guesses.trials) == ((2, 2), (2, 2), 10)
    assert (guesses.by_training, guesses.trainings, guesses.shared) == ((2, 2, 0, 0, 0), 5, 2)


# --- power -----------------------------------------------------------------------------------


def test_power_of_shared_coins() -> None:
    size: dict[str, Any] = {"trials": 3840, "shared": 16, **LEVEL}
    plan = CoinPlan(**size)
    most = plan.provable()
    alone = CoinPlan(trials=240, **LEVEL)
    assert alone.provable() < most < CoinPlan(trials=3840, **LEVEL).provable()
    assert most == fair_coin((3840,), (3840,), 3840, (16,) * 240, **LEVEL)
    assert CoinPlan(failed=1600, **size).provable() < most
    least = plan.detectable(1.0)
    right = np.arange(2700, 3300)
    proves = [
        fair_coin_p_value((k,), (3840,), 3840, (16,) * 240, epsilon=1.0, **LEVEL) < 0.05
        for k in right.tolist()
    ]
    assert least is not None
    assert binom.pmf(right, 3840, expit(least)) @ np.array(proves) == pytest.approx(0.8, abs=1e-3)
    gaussian, gaussian_alone = plan.detectable_gaussian(1.0), alone.detectable_gaussian(1.0)
    assert gaussian is not None
    assert gaussian_alone is not None
    assert gaussian < gaussian_alone


# --- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("guesses", "says"),
    [
        (((1,), (2,), 10, (1, 1, 0)), "cannot serve equally many of 10"),
        (((1,), (2,), 10, (1, 0)), "`by_training` has 1 guesses"),
        (((1,), (6,), 10, (6, 0)), "trainings with 5 coins"),
        (((1,), (2,), 10, (3, -1)), "`by_training`"),
        (((1,), (2,), 10, (1.5, 0.5)), "`by_training`"),
    ],
)
def test_impossible_trainings_are_refused(guesses: tuple[object, ...], says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        CoinGuesses(*guesses)  # type: ignore[arg-type]


def test_scores_and_coins_of_different_records_are_refused() -> None:
    with pytest.raises(SettingsError, match="of shape"):
        calibrate_records(
            np.zeros((4, 2)),
            np.zeros((4, 3), dtype=bool),
            trainings=6,
            rng=np.random.default_rng(1),
            **LEVEL,
        )
