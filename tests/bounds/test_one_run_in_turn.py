"""Bounds from coins looked at in turn: known answers, validity by simulation, refusals."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, laplace

from dpaudit.bounds import (
    one_run,
    one_run_in_turn,
    one_run_in_turn_detectable,
    one_run_in_turn_p_value,
    strongest_prefix,
)
from dpaudit.bounds.one_run import set_aside_in_turn
from dpaudit.errors import SettingsError


def success_of(epsilon: float) -> float:
    return 1.0 / (1.0 + math.exp(-epsilon))


@pytest.mark.parametrize("epsilon", [0.0, 0.7, 2.0])
def test_the_p_value_is_that_of_all_sequences_listed(epsilon: float) -> None:
    m, success = 9, success_of(epsilon)
    made = np.arange(1, m + 1)
    sequences = np.array(list(itertools.product((0, 1), repeat=m)))
    mass = np.prod(np.where(sequences == 1, success, 1.0 - success), axis=1)
    least = binom.sf(sequences.cumsum(axis=1) - 1, made, success).min(axis=1)
    for place in (0, 37, 255, 300, 440, 511):
        expected = mass[least <= least[place] * (1 + 1e-9)].sum()
        found = one_run_in_turn_p_value(
            sequences[place], epsilon=epsilon, delta=0.0, confidence=0.95
        )
        assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("canaries", "closed"), [(20, 1.47), (100, 3.15), (500, 4.77)])
def test_all_right_is_between_the_closed_forms(canaries: int, closed: float) -> None:
    # All m right has probability p^m; looking after every guess costs, m looks at most a factor m.
    delta, confidence = 1e-5, 1 - 0.05 / 3
    found = one_run_in_turn(np.ones(canaries), delta=delta, confidence=confidence)
    assert found == closed
    once = one_run(canaries, canaries, canaries, delta=0.0, confidence=confidence)
    every = one_run(canaries, canaries, canaries, delta=0.0, confidence=1 - 0.05 / 3 / canaries)
    assert every - 0.35 < found < once


def test_evidence_in_few_guesses_is_not_lost_in_the_others() -> None:
    rng = np.random.default_rng(1)
    right = np.concatenate([np.ones(30), rng.random(270) < 0.5])
    setting: dict[str, Any] = {"delta": 1e-5, "confidence": 0.95}
    in_turn = one_run_in_turn(right, **setting)
    of_a_fifth = one_run(int(right[:60].sum()), 60, 300, **setting)
    assert in_turn > 1.7 > 1.3 > of_a_fifth
    assert strongest_prefix(right, epsilon=in_turn).guesses in range(30, 36)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.5])
def test_randomised_response_is_flagged_as_rarely_as_promised(epsilon: float) -> None:
    rng = np.random.default_rng(7)
    setting: dict[str, Any] = {"epsilon": epsilon, "delta": 0.0, "confidence": 0.95}
    p_values = [
        one_run_in_turn_p_value(rng.random(60) < success_of(epsilon), **setting)
        for _ in range(1000)
    ]
    rate = np.mean(np.array(p_values) <= 0.05)
    assert 0.02 < rate < 0.071  # 5 % of 1000, within three standard errors; not idle either


def test_an_order_that_learns_from_the_coins_gains_nothing() -> None:
    # Laplace noise on every coin; the next canary is chosen by what the coins before it showed.
    epsilon, rng, flagged = 1.0, np.random.default_rng(3), 0
    for _ in range(400):
        coins = rng.random(50) < 0.5
        output = coins + rng.laplace(scale=1.0 / epsilon, size=50)
        odds = laplace.logpdf(output, 1, 1 / epsilon) - laplace.logpdf(output, 0, 1 / epsilon)
        queues = {True: list(np.argsort(odds)), False: list(np.argsort(-odds))}
        seen: set[int] = set()
        wins, right = {True: 1, False: 1}, []
        for _turn in range(50):
            inside = wins[True] >= wins[False]
            while (coin := int(queues[inside].pop())) in seen:
                pass
            seen.add(coin)
            right.append(bool(coins[coin]) == inside)
            wins[inside] += 1 if right[-1] else -1
        p = one_run_in_turn_p_value(right, epsilon=epsilon, delta=0.0, confidence=0.95)
        flagged += p <= 0.05
    assert flagged <= 33  # 5 % of 400, and three standard errors


@pytest.mark.parametrize("delta", [1e-3, 1e-2])
def test_what_delta_reveals_is_paid_for(delta: float) -> None:
    # (ε, δ) with the worst δ: with probability mδ one training gives all its coins away.
    m, epsilon, rng, flagged = 40, 1.0, np.random.default_rng(11), 0
    for _ in range(1000):
        truthful = rng.random(m) < success_of(epsilon)
        right = np.sort(truthful | (rng.random(m) < delta))[::-1] if delta > 5e-3 else truthful
        if delta < 5e-3 and rng.random() < delta:
            right = np.ones(m, dtype=bool)
        else:
            right = rng.permutation(right)
        flagged += (
            one_run_in_turn_p_value(right, epsilon=epsilon, delta=delta, confidence=0.95) <= 0.05
        )
    assert flagged <= 70


def test_little_is_set_aside_for_a_small_delta_and_nothing_for_none() -> None:
    assert set_aside_in_turn(100, delta=0.0, confidence=0.95) == (0, 0.0)
    assert set_aside_in_turn(100, delta=1e-5, confidence=0.95) == (0, pytest.approx(1e-3))
    larger = set_aside_in_turn(1000, delta=1e-4, confidence=0.95)
    assert larger is not None
    assert larger.revealed >= 1
    assert larger.probability == pytest.approx(0.1 / (larger.revealed + 1))
    assert larger.probability < 0.05
    assert set_aside_in_turn(100, delta=0.5, confidence=0.95) is None
    assert one_run_in_turn(np.ones(100), delta=0.5, confidence=0.95) == 0.0
    assert one_run_in_turn_p_value([1, 1], epsilon=1.0, delta=0.5, confidence=0.95) == 1.0


@pytest.mark.ci
@pytest.mark.parametrize(
    ("canaries", "claim", "delta"),
    [
        (100, 0.5, 1e-4),
        (100, 1.0, 0.0),
        pytest.param(100, 0.5, 0.0, marks=pytest.mark.slow),
        pytest.param(100, 1.0, 1e-4, marks=pytest.mark.slow),
        pytest.param(300, 1.0, 0.0, marks=pytest.mark.slow),
        pytest.param(300, 1.0, 1e-4, marks=pytest.mark.slow),
    ],
)
def test_the_detectable_epsilon_is_caught_with_80_percent_power(
    canaries: int, claim: float, delta: float
) -> None:
    size: dict[str, Any] = {"delta": delta, "confidence": 0.95}
    epsilon = one_run_in_turn_detectable(claim_epsilon=claim, canaries=canaries, **size)
    assert epsilon is not None
    assert epsilon > claim
    rng = np.random.default_rng(0)
    caught = [
        one_run_in_turn(rng.random(canaries) < success_of(epsilon), **size) > claim
        for _ in range(150)
    ]
    assert np.mean(caught) == pytest.approx(0.8, abs=0.1)  # three standard errors


def test_nothing_is_detectable_beyond_the_largest_provable() -> None:
    size: dict[str, Any] = {"delta": 1e-5, "confidence": 0.95}
    highest = one_run_in_turn(np.ones(100), **size)
    detectable = {"canaries": 100, **size}
    assert one_run_in_turn_detectable(claim_epsilon=highest, **detectable) is None
    assert one_run_in_turn_detectable(claim_epsilon=highest - 0.01, **detectable) is not None
    with pytest.raises(SettingsError, match="power"):
        one_run_in_turn_detectable(claim_epsilon=1.0, power=0.01, **detectable)


@pytest.mark.parametrize("right", [[], [[1, 0]], [0.5, 1], 1])
def test_what_is_no_sequence_of_guesses_is_refused(right: Any) -> None:
    with pytest.raises(SettingsError, match=r"^`right` must say true or false"):
        one_run_in_turn(right, delta=0.0, confidence=0.95)


@pytest.mark.parametrize("right", [np.zeros(50), np.arange(50) % 2])
def test_chance_and_worse_give_zero(right: Any) -> None:
    assert one_run_in_turn(right, delta=1e-5, confidence=0.95) == 0.0
