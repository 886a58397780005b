"""Sequential tests: fair bets, validity at any time, pairs to proof, bounds, bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from dpaudit.bounds import PairProcess, ScoredBlock, e_process, pair_bound, refit_schedule
from dpaudit.bounds.sequential_bets import PairBets
from dpaudit.bounds.sequential_outcomes import PairErrors
from dpaudit.errors import SettingsError
from known_attacks import DELTA, PERFECT, Attack, laplace, randomised_response

NEEDED = math.log(20.0)


def draw(attack: Attack, pairs: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Guesses in the "in" and in the "out" world."""
    return rng.random(pairs) >= attack.fnr, rng.random(pairs) < attack.fpr


def pairs_to_proof(
    attack: Attack, draws: int, cap: int, *, epsilon: float = 1.0, needed: float = NEEDED
) -> np.ndarray:
    """Pairs until the claim is refuted, infinite where it is not; shape (draws,)."""
    rng = np.random.default_rng(20240)
    stops = np.full(draws, np.inf)
    for index in range(draws):
        log_e = e_process(*draw(attack, cap, rng), epsilon=epsilon, delta=DELTA)
        if log_e.max() >= needed:
            stops[index] = np.argmax(log_e >= needed) + 1
    return stops


def survival(attack: Attack, pairs: int, *, epsilon: float = 1.0) -> np.ndarray:
    """Exact probability that the claim still stands after 0, 1, … pairs; shape (pairs + 1,)."""
    bets = PairBets.against(epsilon, DELTA)
    alive = np.zeros((pairs + 1, pairs + 1))  # by wrong guesses in the "out" and "in" world
    alive[0, 0] = 1.0
    wrong_out, wrong_in = (grid.ravel().astype(float) for grid in np.indices(alive.shape))
    standing = [1.0]
    for n in range(1, pairs + 1):
        alive[1:] = alive[1:] * (1.0 - attack.fpr) + alive[:-1] * attack.fpr
        alive[0] *= 1.0 - attack.fpr
        alive[:, 1:] = alive[:, 1:] * (1.0 - attack.fnr) + alive[:, :-1] * attack.fnr
        alive[:, 0] *= 1.0 - attack.fnr
        possible = np.flatnonzero(alive.ravel())
        log_e = bets.log_e_values(
            PairErrors(np.full(possible.size, float(n)), wrong_out[possible], wrong_in[possible])
        )
        alive.flat[possible[log_e >= NEEDED]] = 0.0
        standing.append(alive.sum())
    return np.array(standing)


epsilons = st.floats(0.0, 12.0)
deltas = st.one_of(st.just(0.0), st.floats(1e-12, 0.5))
rates = st.floats(1e-6, 1.0 - 1e-6)


# --- the process on pairs ------------------------------------------------------------------


@pytest.mark.parametrize("attack", [randomised_response(1.0), laplace(1.0), Attack(0.9, 0.8)])
def test_the_expected_e_value_is_at_most_one_under_a_true_claim(attack: Attack) -> None:
    n = 60
    errors = np.arange(n + 1.0)
    wrong_out, wrong_in = (grid.ravel() for grid in np.meshgrid(errors, errors))
    log_e = PairBets.against(1.0, DELTA).log_e_values(
        PairErrors(np.full(wrong_out.size, float(n)), wrong_out, wrong_in)
    )
    chance = binom.pmf(wrong_out, n, attack.fpr) * binom.pmf(wrong_in, n, attack.fnr)
    assert chance @ np.exp(log_e) <= 1.0 + 1e-10


@pytest.mark.parametrize("attack", [randomised_response(1.0), laplace(1.0)])
def test_a_true_claim_is_refuted_at_most_at_the_nominal_rate_exactly(attack: Attack) -> None:
    refuted = 1.0 - survival(attack, 100)[-1]
    assert 0.005 < refuted <= 0.05


def test_a_true_claim_is_refuted_at_most_at_the_nominal_rate_over_many_pairs() -> None:
    draws = 300
    for attack in (randomised_response(1.0), laplace(1.0)):
        refuted = np.isfinite(pairs_to_proof(attack, draws, 600)).sum()
        assert refuted <= binom.ppf(0.999, draws, 0.05)


def test_nothing_is_proved_about_a_mechanism_without_leak() -> None:
    stops = pairs_to_proof(Attack(0.5, 0.5), 300, 400, epsilon=0.1)
    assert np.isfinite(stops).sum() <= binom.ppf(0.999, 300, 0.05)


def test_a_perfect_attack_is_proved_in_seven_pairs() -> None:
    process = PairProcess.against(epsilon=1.0, delta=DELTA)
    while not process.proved(confidence=0.95):
        process = process.update(guess_in=True, guess_out=False)
    assert process.pairs == 7
    while not process.proved(confidence=0.99):
        process = process.update(guess_in=True, guess_out=False)
    assert process.pairs <= 11


@pytest.mark.parametrize(
    ("true", "cap", "mean"), [(10.0, 60, 9.0), (5.0, 60, 9.0), (3.0, 120, 14.0)]
)
def test_mean_pairs_to_proof_exactly(true: float, cap: int, mean: float) -> None:
    standing = survival(randomised_response(true), cap)
    assert standing[-1] < 1e-4
    assert standing.sum() <= mean


def test_mean_pairs_to_proof_of_a_moderate_leak() -> None:
    stops = pairs_to_proof(randomised_response(2.0), 400, 600)
    assert stops.mean() <= 34.0


def test_an_attack_worse_than_chance_proves_nothing() -> None:
    assert e_process([False] * 50, [True] * 50, epsilon=0.0, delta=0.0).max() < 0.0
    assert pair_bound([False] * 50, [True] * 50, delta=DELTA, confidence=0.95) == 0.0


def test_updates_pair_by_pair_agree_with_the_whole_run() -> None:
    guesses_in, guesses_out = draw(randomised_response(1.5), 200, np.random.default_rng(3))
    log_e = e_process(guesses_in, guesses_out, epsilon=1.0, delta=DELTA)
    process = PairProcess.against(epsilon=1.0, delta=DELTA)
    states = []
    for guess_in, guess_out in zip(guesses_in, guesses_out, strict=True):
        process = process.update(guess_in=guess_in, guess_out=guess_out)
        states.append(process)
    np.testing.assert_allclose([s.log_e_value for s in states], log_e, atol=1e-10)
    largest = np.maximum(np.maximum.accumulate(log_e), 0.0)
    np.testing.assert_allclose([s.largest_log_e_value for s in states], largest, atol=1e-10)
    assert [s.pairs for s in states] == list(range(1, 201))


def test_a_proof_stands_whatever_comes_later() -> None:
    process = PairProcess.against(epsilon=1.0, delta=DELTA)
    for _ in range(7):
        process = process.update(guess_in=True, guess_out=False)
    for _ in range(20):
        process = process.update(guess_in=False, guess_out=True)
    assert process.log_e_value < 0.0
    assert process.proved(confidence=0.95)


@settings(max_examples=50, deadline=None)
@given(
    outcomes=st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30),
    epsilon=epsilons,
    delta=deltas,
)
def test_swapping_worlds_and_guesses_changes_nothing(
    outcomes: list[tuple[bool, bool]], epsilon: float, delta: float
) -> None:
    inside, outside = (np.array(column) for column in zip(*outcomes, strict=True))
    np.testing.assert_allclose(
        e_process(inside, outside, epsilon=epsilon, delta=delta),
        e_process(~outside, ~inside, epsilon=epsilon, delta=delta),
        atol=1e-11,
    )


def test_a_claim_beyond_all_evidence_is_never_refuted() -> None:
    assert e_process([True] * 9, [False] * 9, epsilon=1e6, delta=0.9).max() < 1e-9


# --- the bound on pairs --------------------------------------------------------------------


def test_pair_bound_refutes_all_claims_below_it_and_not_the_next() -> None:
    guesses = draw(randomised_response(3.0), 150, np.random.default_rng(5))
    bound = pair_bound(*guesses, delta=DELTA, confidence=0.95)
    assert 1.0 < bound < 3.0
    for claim in np.arange(1, round(100 * bound) + 1) / 100:
        assert e_process(*guesses, epsilon=claim, delta=DELTA).max() >= NEEDED
    assert e_process(*guesses, epsilon=bound + 0.01, delta=DELTA).max() < NEEDED


def test_pair_bound_looks_back_to_the_best_moment() -> None:
    early = pair_bound([True] * 30, [False] * 30, delta=DELTA, confidence=0.95)
    late = pair_bound(
        [True] * 30 + [False] * 9, [False] * 30 + [True] * 9, delta=DELTA, confidence=0.95
    )
    assert late == early > 2.0


def test_pair_bound_never_falls_and_never_exceeds_what_a_perfect_attack_proves() -> None:
    guesses_in, guesses_out = draw(randomised_response(2.0), 120, np.random.default_rng(8))
    bounds = [
        pair_bound(guesses_in[:n], guesses_out[:n], delta=DELTA, confidence=0.95)
        for n in range(0, 121, 10)
    ]
    assert bounds[0] == 0.0
    assert bounds == sorted(bounds)
    for n in (5, 50, 400):
        # Even a wealth put on a perfect attack alone is (1 - corner)^(-2n).
        ceiling = math.log((1.0 - DELTA) / (1.0 - 0.05 ** (1.0 / (2 * n))) - 1.0)
        bound = pair_bound([True] * n, [False] * n, delta=DELTA, confidence=0.95)
        assert 0.55 * ceiling < bound < ceiling


def test_pair_bound_covers_the_true_epsilon_at_all_times() -> None:
    rng = np.random.default_rng(11)
    draws = 200
    for attack, true in ((randomised_response(1.0), 1.0), (Attack(0.5, 0.5), 0.0)):
        # The bound never falls: it ever exceeded the truth if it does so at the end.
        exceeded = sum(
            pair_bound(*draw(attack, 300, rng), delta=DELTA, confidence=0.9) > true
            for _ in range(draws)
        )
        assert exceeded <= binom.ppf(0.999, draws, 0.1)


# --- refits --------------------------------------------------------------------------------


@pytest.mark.parametrize(("cap", "first"), [(9, 8), (200, 8), (1000, 16), (2, 1)])
def test_blocks_score_every_pair_after_the_first_fit_once(cap: int, first: int) -> None:
    blocks = refit_schedule(cap, first=first)
    scored = [pair for block in blocks for pair in range(block.start, block.stop)]
    assert scored == list(range(first, cap))
    assert all(block.stop <= 2 * block.start for block in blocks)


def test_the_default_schedule() -> None:
    starts = [block.start for block in refit_schedule(110)]
    assert starts == [8, 16, 24, 32, 48, 72, 104]
    assert refit_schedule(20) == (ScoredBlock(8, 16), ScoredBlock(16, 20))


@pytest.mark.parametrize(("true", "largest"), [(1.0, 0.05), (0.0, 0.05)])
def test_refits_on_the_past_keep_the_error_rate(true: float, largest: float) -> None:
    """Scores are a count with Laplace noise; each block cuts where the past errs least."""
    rng = np.random.default_rng(29)
    draws, cap = 200, 128
    scale = 1.0 / true if true else 1.0
    refuted = 0
    for _ in range(draws):
        inside = (1.0 if true else 0.0) + rng.laplace(scale=scale, size=cap)
        outside = rng.laplace(scale=scale, size=cap)
        guesses_in, guesses_out = [], []
        for start, stop in refit_schedule(cap):
            cuts = np.concatenate([inside[:start], outside[:start]])[:, None]
            wrong = (inside[:start] < cuts).sum(1) + (outside[:start] >= cuts).sum(1)
            cut = cuts[np.argmin(wrong), 0]
            guesses_in += list(inside[start:stop] >= cut)
            guesses_out += list(outside[start:stop] >= cut)
        log_e = e_process(guesses_in, guesses_out, epsilon=true, delta=DELTA)
        refuted += bool(log_e.max() >= NEEDED)
    assert refuted <= binom.ppf(0.999, draws, largest)


# --- bad input -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("epsilon", -0.1),
        ("epsilon", math.inf),
        ("epsilon", math.nan),
        ("delta", 1.0),
        ("delta", -1e-9),
        ("delta", math.nan),
    ],
)
def test_claims_without_meaning_are_refused(argument: str, value: float) -> None:
    claim = {"epsilon": 1.0, "delta": DELTA, argument: value}
    with pytest.raises(SettingsError, match=argument):
        PairProcess.against(**claim)
    with pytest.raises(SettingsError, match=argument):
        e_process([True], [False], **claim)


@pytest.mark.parametrize("confidence", [0.0, 1.0, math.nan, -1.0])
def test_confidence_out_of_range_is_refused(confidence: float) -> None:
    with pytest.raises(SettingsError, match="confidence"):
        PairProcess.against(epsilon=1.0, delta=DELTA).proved(confidence=confidence)
    with pytest.raises(SettingsError, match="confidence"):
        pair_bound([True], [False], delta=DELTA, confidence=confidence)


@pytest.mark.parametrize("values", [[0.3], [2], [-1], [[True]], [math.nan], ["in"], True])
def test_guesses_that_are_not_true_or_false_are_refused(values: object) -> None:
    with pytest.raises(SettingsError, match="guesses_in"):
        e_process(values, [False], epsilon=1.0, delta=DELTA)
    with pytest.raises(SettingsError, match="guesses_out"):
        pair_bound([True], values, delta=DELTA, confidence=0.95)


def test_worlds_of_unequal_length_are_refused() -> None:
    with pytest.raises(SettingsError, match="guesses_out"):
        e_process([True, True], [False], epsilon=1.0, delta=DELTA)


def test_a_guess_that_is_neither_true_nor_false_is_refused() -> None:
    process = PairProcess.against(epsilon=1.0, delta=DELTA)
    with pytest.raises(SettingsError, match="guess_in"):
        process.update(guess_in=0.7, guess_out=False)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="guess_out"):
        process.update(guess_in=True, guess_out=2)  # type: ignore[arg-type]


@pytest.mark.parametrize(("cap", "first", "named"), [(8, 8, "cap"), (3, 8, "cap"), (9, 0, "first")])
def test_schedules_without_a_scored_pair_are_refused(cap: int, first: int, named: str) -> None:
    with pytest.raises(SettingsError, match=f"^`{named}` is"):
        refit_schedule(cap, first=first)


# --- the full study ------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("attack", "largest"),
    [
        (PERFECT, 9.0),
        (randomised_response(10.0), 9.0),
        (randomised_response(5.0), 9.0),
        (randomised_response(3.0), 14.0),
        (randomised_response(2.0), 34.0),
        (laplace(10.0), 31.0),
        (laplace(5.0), 33.0),
        (laplace(3.0), 50.0),
        (laplace(2.0), 118.0),
    ],
)
def test_mean_pairs_to_proof_in_full(attack: Attack, largest: float) -> None:
    assert pairs_to_proof(attack, 2000, 1500).mean() <= largest


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("shape", [randomised_response, laplace])
def test_type_one_error_in_full(shape: object, epsilon: float) -> None:
    assert callable(shape)
    draws = 2000
    stops = pairs_to_proof(shape(epsilon), draws, 2000, epsilon=epsilon)
    assert np.isfinite(stops).sum() <= binom.ppf(0.995, draws, 0.05)
