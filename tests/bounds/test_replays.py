"""Lower confidence bounds from replays: known answers, coverage, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit.bounds.replays import hockey_stick, mean_exceeds, mean_lower, replayed_epsilon
from dpaudit.errors import SettingsError
from dpaudit.replaying.guarantee import gaussian_delta, gaussian_epsilon

DELTA = 1e-5


def replays_of(
    mu: float, tilt: float, rng: np.random.Generator, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Losses and weights of a Gaussian mechanism, drawn with the noise moved by tilt * mu."""
    noise = rng.standard_normal(count) + tilt * mu
    return mu * noise + mu * mu / 2, -0.5 * noise**2 + 0.5 * (noise - tilt * mu) ** 2


def test_one_value_by_hand() -> None:
    # With one value x the capital at m is the mean over bets b of 1 + b (x / m - 1): linear in x/m.
    bets = 1.0 - np.geomspace(1e-3, 0.999, 24)
    ratio = 1.0 + (20.0 - 1.0) / bets.mean()
    assert mean_lower(np.array([3.0]), confidence=0.95) == pytest.approx(3.0 / ratio, rel=1e-9)


def test_bounds_are_nothing_without_values() -> None:
    assert mean_lower(np.zeros(0), confidence=0.95) == 0.0
    assert mean_lower(np.zeros(7), confidence=0.95) == 0.0
    assert replayed_epsilon(np.zeros(0), np.zeros(0), delta=DELTA, confidence=0.95) == 0.0
    assert replayed_epsilon(np.zeros(9), np.zeros(9), delta=DELTA, confidence=0.95) == 0.0


@pytest.mark.parametrize(
    "make",
    [
        lambda rng, n: rng.exponential(size=n),
        lambda rng, n: (rng.random(n) < 0.05) * 20.0,
        lambda rng, n: np.exp(rng.standard_normal(n) * 2.0 - 2.0),
        lambda rng, n: np.ones(n),
    ],
)
def test_the_mean_of_one_is_exceeded_no_more_often_than_the_level(make: object) -> None:
    rng = np.random.default_rng(0)
    draws = 3000
    wrong = sum(mean_exceeds(make(rng, 20), 1.0 + 1e-12, confidence=0.95) for _ in range(draws))  # type: ignore[operator]
    # Binomial(3000, .05) is above 190 with probability below 1e-3
    assert wrong <= 190


@pytest.mark.parametrize("mu", [0.2, 0.5, 1.0, 2.0])
def test_twenty_tilted_replays_prove_most_of_a_gaussian_leak(mu: float) -> None:
    true = gaussian_epsilon(mu, DELTA)
    tilt = (true - mu * mu / 2) / mu**2
    rng = np.random.default_rng(1)
    found = [
        replayed_epsilon(*replays_of(mu, tilt, rng, 20), delta=DELTA, confidence=0.95)
        for _ in range(60)
    ]
    assert np.median(found) >= 0.85 * true
    # none, or by luck a few, are above: at most 5 % of runs may be
    assert np.sum(np.asarray(found) > true) <= 8


def test_the_true_epsilon_is_exceeded_no_more_often_than_the_level() -> None:
    rng = np.random.default_rng(2)
    for tilt in (0.0, 2.0, 3.9, 6.0):
        above = 0
        for _ in range(1000):
            losses, weights = replays_of(1.0, tilt, rng, 10)
            values = hockey_stick(losses, weights, gaussian_epsilon(1.0, DELTA))
            above += mean_exceeds(values, DELTA, confidence=0.95)
        assert above <= 72  # Binomial(1000, .05) is above 72 with probability below 1e-3


def test_estimates_have_the_mean_of_the_divergence() -> None:
    rng = np.random.default_rng(3)
    for tilt in (0.0, 1.0, 3.0):
        losses, weights = replays_of(1.0, tilt, rng, 400_000)
        found = hockey_stick(losses, weights, 1.0)
        assert found.mean() == pytest.approx(gaussian_delta(1.0, 1.0), rel=0.05)


def test_without_delta_the_largest_loss_is_exact() -> None:
    losses = np.array([-1.0, 0.3, 0.7])
    assert replayed_epsilon(losses, np.zeros(3), delta=0.0, confidence=0.95) == 0.7
    assert (
        replayed_epsilon(np.array([math.inf]), np.zeros(1), delta=0.0, confidence=0.95) == math.inf
    )


def test_worlds_that_always_part_have_no_limit() -> None:
    losses = np.full(10, math.inf)
    assert replayed_epsilon(losses, np.zeros(10), delta=1e-5, confidence=0.95) == math.inf
    # ten of ten show a probability of parting above .7, so a delta of .9 is not refuted
    assert replayed_epsilon(losses, np.zeros(10), delta=0.9, confidence=0.95) == 0.0


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(SettingsError, match="at least 0"):
        mean_lower(np.array([-1.0]), confidence=0.95)
    with pytest.raises(SettingsError, match="confidence"):
        mean_lower(np.array([1.0]), confidence=0.4)
    with pytest.raises(SettingsError, match="delta"):
        replayed_epsilon(np.zeros(2), np.zeros(2), delta=1.0, confidence=0.95)
    with pytest.raises(SettingsError, match="one weight"):
        replayed_epsilon(np.zeros(2), np.zeros(3), delta=0.1, confidence=0.95)
