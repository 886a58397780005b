"""Sequential tests: fair bets, validity at any time, trials to proof, bounds, bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from dpaudit.bounds import ScoredBlock, choose_calibration, coin_bound, e_process, refit_schedule
from dpaudit.errors import SettingsError
from known_attacks import DELTA

NEEDED = math.log(20.0)
CERTAIN = 40.0
"""Log odds of an attack that knows."""


def expit(log_odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-log_odds))


def draw(
    epsilon: float, trials: int, rng: np.random.Generator, *, odds: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Randomised response: an attack that knows its odds, or takes them for others."""
    member = rng.random(trials) < 0.5
    right = rng.random(trials) < expit(epsilon)
    size = epsilon if odds is None else odds
    return np.where(right == member, size, -size), member


def trials_to_proof(epsilon: float, draws: int, cap: int, *, claim: float = 1.0) -> np.ndarray:
    rng = np.random.default_rng(20240)
    stops = np.full(draws, np.inf)
    for index in range(draws):
        log_e = e_process(*draw(epsilon, cap, rng), epsilon=claim, delta=DELTA)
        if log_e.max() >= NEEDED:
            stops[index] = np.argmax(log_e >= NEEDED) + 1
    return stops


# --- the process -----------------------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(
    odds=st.floats(-50.0, 50.0),
    revealed=st.floats(0.0, 50.0),
    epsilon=st.floats(0.0, 12.0),
    delta=st.one_of(st.just(0.0), st.floats(1e-12, 0.5)),
)
def test_no_bet_is_expected_to_gain_under_the_claim(
    odds: float, revealed: float, epsilon: float, delta: float
) -> None:
    """On the mechanism that dominates: the coin is revealed, or guessed right with e^ε odds.

    The attack may bet otherwise where the coin is revealed, and be silent where it is not.
    """

    def factor(log_odds: float, member: bool) -> float:
        return math.exp(e_process([log_odds], [member], epsilon=epsilon, delta=delta)[0])

    known = factor(revealed, member=True)
    won, lost = factor(odds, member=odds > 0), factor(odds, member=odds <= 0)
    unknown = expit(epsilon) * won + expit(-epsilon) * lost
    assert delta * known + (1.0 - delta) * unknown <= 1.0 + 1e-9


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.1), (0.1, 0.01)])
def test_bets_on_nothing_but_revealed_coins_refute_at_the_nominal_rate_at_most(
    epsilon: float, delta: float
) -> None:
    """Without the price of delta on silent trials they refute in up to all runs."""
    rng = np.random.default_rng(3)
    draws, above = 300, 0
    for _ in range(draws):
        member = rng.random(400) < 0.5
        odds = np.where(rng.random(400) < delta, np.where(member, CERTAIN, -CERTAIN), 0.0)
        above += coin_bound(odds, member, delta=delta, confidence=0.95) > epsilon
    assert above <= binom.ppf(0.999, draws, 0.05)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("scale", [0.7, 1.5, 5.0])
def test_a_true_claim_is_refuted_at_most_at_the_nominal_rate(epsilon: float, scale: float) -> None:
    rng = np.random.default_rng(7)
    draws = 300
    refuted = sum(
        e_process(
            *draw(epsilon, 400, rng, odds=scale * epsilon), epsilon=epsilon, delta=DELTA
        ).max()
        >= NEEDED
        for _ in range(draws)
    )
    assert refuted <= binom.ppf(0.999, draws, 0.05)


def test_a_perfect_attack_is_proved_in_ten_trials_and_in_sixteen_of_three_hypotheses() -> None:
    member = np.arange(32) % 3 == 0
    odds = np.where(member, CERTAIN, -CERTAIN)
    log_e = e_process(odds, member, epsilon=1.0, delta=DELTA)
    assert int(np.argmax(log_e >= NEEDED)) + 1 == 10
    # Three attacks, and half of the error for the bound at the cap.
    assert int(np.argmax(log_e >= math.log(6 / 0.05))) + 1 == 16
    # As sure as an attack gets that has separated 16 trials.
    learnt = np.where(member, 5.8, -5.8)
    log_e = e_process(learnt, member, epsilon=1.0, delta=DELTA)
    assert int(np.argmax(log_e >= math.log(6 / 0.05))) + 1 == 16


@pytest.mark.parametrize(("epsilon", "mean"), [(5.0, 12.0), (3.0, 25.0), (2.0, 85.0)])
def test_mean_trials_to_proof(epsilon: float, mean: float) -> None:
    assert trials_to_proof(epsilon, 200, 800).mean() <= mean


def test_silence_costs_the_price_of_delta_and_nothing_else() -> None:
    member = np.ones(50, dtype=bool)
    silent = np.zeros(50)
    assert (e_process(silent, member, epsilon=0.5, delta=0.0) == 0.0).all()
    price = math.log1p(0.1 * (1.0 / expit(0.5) - 1.0))
    paid = e_process(silent, member, epsilon=0.5, delta=0.1)
    np.testing.assert_allclose(paid, -price * np.arange(1, 51))


def test_odds_no_larger_than_the_claim_are_no_bet() -> None:
    odds, member = draw(0.3, 50, np.random.default_rng(1))
    np.testing.assert_allclose(e_process(odds, member, epsilon=1.0, delta=0.0), 0.0, atol=1e-12)


def test_an_attack_worse_than_chance_proves_nothing() -> None:
    member = np.arange(50) % 2 == 0
    odds = np.where(member, -3.0, 3.0)
    assert e_process(odds, member, epsilon=0.0, delta=0.0).max() < 0.0
    assert coin_bound(odds, member, delta=DELTA, confidence=0.95) == 0.0


def test_a_claim_beyond_all_evidence_is_never_refuted() -> None:
    member = np.ones(9, dtype=bool)
    assert e_process(np.full(9, CERTAIN), member, epsilon=700.0, delta=0.9).max() < 1e-9


# --- the bound -------------------------------------------------------------------------------


def test_the_bound_refutes_all_claims_below_it_and_not_the_next() -> None:
    bets = draw(3.0, 300, np.random.default_rng(5))
    bound = coin_bound(*bets, delta=DELTA, confidence=0.95)
    assert 1.0 < bound < 3.0
    for claim in np.arange(1, round(100 * bound) + 1) / 100:
        assert e_process(*bets, epsilon=claim, delta=DELTA).max() >= NEEDED
    assert e_process(*bets, epsilon=bound + 0.01, delta=DELTA).max() < NEEDED


def test_the_bound_looks_back_to_the_best_moment() -> None:
    member = np.arange(80) % 2 == 0
    odds = np.where(member, 4.0, -4.0)
    early = coin_bound(odds[:60], member[:60], delta=DELTA, confidence=0.95)
    odds[60:] *= -1
    assert coin_bound(odds, member, delta=DELTA, confidence=0.95) == early > 2.0


def test_the_bound_never_falls_and_never_exceeds_what_a_perfect_attack_proves() -> None:
    odds, member = draw(2.0, 240, np.random.default_rng(8))
    bounds = [
        coin_bound(odds[:n], member[:n], delta=DELTA, confidence=0.95) for n in range(0, 241, 20)
    ]
    assert bounds[0] == 0.0
    assert bounds == sorted(bounds)
    for n in (10, 100, 800):
        ceiling = math.log(1.0 / (0.05 ** (-1.0 / n) - 1.0))
        sure = np.full(n, CERTAIN)
        bound = coin_bound(sure, np.ones(n, dtype=bool), delta=DELTA, confidence=0.95)
        assert 0.7 * ceiling < bound <= ceiling


def test_the_bound_covers_the_true_epsilon_at_all_times() -> None:
    rng = np.random.default_rng(11)
    draws = 200
    for true in (1.0, 0.0):
        # The bound never falls: it ever exceeded the truth if it does so at the end.
        exceeded = sum(
            coin_bound(*draw(true, 300, rng, odds=2.0), delta=DELTA, confidence=0.9) > true
            for _ in range(draws)
        )
        assert exceeded <= binom.ppf(0.999, draws, 0.1)


# --- refits ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("cap", "first"), [(9, 8), (200, 8), (1000, 16), (2, 1)])
def test_blocks_bet_on_every_trial_after_the_first_fit_once(cap: int, first: int) -> None:
    blocks = refit_schedule(cap, first=first)
    scored = [trial for block in blocks for trial in range(block.start, block.stop)]
    assert scored == list(range(first, cap))
    assert all(block.stop <= 2 * block.start for block in blocks)


def test_the_schedule() -> None:
    starts = [block.start for block in refit_schedule(220, first=16)]
    assert starts == [16, 32, 48, 64, 96, 144, 208]
    assert refit_schedule(40, first=16) == (ScoredBlock(16, 32), ScoredBlock(32, 40))


@pytest.mark.parametrize(
    ("true", "draws"),
    [(0.0, 24), *(pytest.param(of, 60, marks=pytest.mark.slow) for of in (0.0, 1.0))],
)
def test_refits_on_the_past_keep_the_error_rate(true: float, draws: int) -> None:
    """Scores are a count with Laplace noise; each block takes its odds from the past."""
    rng = np.random.default_rng(29)
    cap = 128
    refuted = 0
    for _ in range(draws):
        member = rng.random(cap) < 0.5
        member[:16] = np.arange(16) % 2 == 0
        scores = rng.laplace(scale=1.0 / true if true else 1.0, size=cap) + bool(true) * member
        odds: list[float] = []
        for start, stop in refit_schedule(cap, first=16):
            calibration = choose_calibration(
                scores[:start], member[:start], trials=cap, delta=DELTA, confidence=0.95
            )
            odds += calibration.log_odds(scores[start:stop]).tolist()
        log_e = e_process(odds, member[16:], epsilon=true, delta=DELTA)
        refuted += bool(log_e.max() >= NEEDED)
    assert refuted <= binom.ppf(0.999, draws, 0.05)


# --- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "value"),
    [("epsilon", -0.1), ("epsilon", math.inf), ("epsilon", math.nan), ("delta", 1.0)],
)
def test_claims_without_meaning_are_refused(argument: str, value: float) -> None:
    claim = {"epsilon": 1.0, "delta": DELTA, argument: value}
    with pytest.raises(SettingsError, match=argument):
        e_process([1.0], [False], **claim)


@pytest.mark.parametrize("confidence", [0.0, 1.0, math.nan, -1.0])
def test_confidence_out_of_range_is_refused(confidence: float) -> None:
    with pytest.raises(SettingsError, match="confidence"):
        coin_bound([1.0], [True], delta=DELTA, confidence=confidence)


@pytest.mark.parametrize(
    ("odds", "member", "says"),
    [
        ([math.inf], [True], "finite"),
        ([math.nan], [True], "finite"),
        ([1.0, 2.0], [True], "shape"),
        ([[1.0]], [[True]], "shape"),
        ([1.0], [2], "true or false"),
    ],
)
def test_bets_that_do_not_fit_are_refused(odds: object, member: object, says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        coin_bound(odds, member, delta=DELTA, confidence=0.95)  # type: ignore[arg-type]


@pytest.mark.parametrize(("cap", "first", "named"), [(8, 8, "cap"), (3, 8, "cap"), (9, 0, "first")])
def test_schedules_without_a_trial_to_bet_on_are_refused(cap: int, first: int, named: str) -> None:
    with pytest.raises(SettingsError, match=f"^`{named}` (is|must be)"):
        refit_schedule(cap, first=first)


# --- the full study --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_type_one_error_in_full(epsilon: float) -> None:
    rng = np.random.default_rng(2)
    draws = 2000
    refuted = sum(
        e_process(*draw(epsilon, 2000, rng, odds=1.5 * epsilon), epsilon=epsilon, delta=DELTA).max()
        >= NEEDED
        for _ in range(draws)
    )
    assert refuted <= binom.ppf(0.995, draws, 0.05)
