"""Noisy votes among any number of classes: bounds against exact divergences."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from dpaudit.account import ORDERS, VoteTable
from dpaudit.account.noisy_max import (
    ConfidentNoisyMax,
    GaussianNoisyMax,
    LaplaceNoisyMax,
    NoisyMax,
)
from dpaudit.errors import ClaimError, SettingsError

FloatArray = npt.NDArray[np.float64]
DELTA = 1e-5
WHOLE = np.arange(-300, 301)
"""Support of the whole-number noise, wide enough to lose nothing."""


def _laplace(scale: float) -> FloatArray:
    return np.exp(-np.abs(WHOLE) / scale) * math.tanh(0.5 / scale)


def _gaussian(scale: float) -> FloatArray:
    weights = np.exp(-(WHOLE**2) / (2.0 * scale**2))
    return np.asarray(weights / weights.sum())


def _argmax(counts: tuple[int, ...], noise: FloatArray) -> FloatArray:
    """Exact probabilities of each class; equal noisy counts go to the first."""
    shifted = np.array([np.roll(noise, count) for count in counts])
    at_most = shifted.cumsum(axis=1)
    below = at_most - shifted
    return np.array(
        [
            np.sum(shifted[i] * np.prod(below[:i], axis=0) * np.prod(at_most[i + 1 :], axis=0))
            for i in range(len(counts))
        ]
    )


def _divergence(p: FloatArray, q: FloatArray, order: float) -> float:
    return float(logsumexp(order * np.log(p) + (1.0 - order) * np.log(q)) / (order - 1.0))


def _worst(noise: FloatArray, order: float, *, teachers: int, classes: int) -> float:
    """The largest divergence of one label over all votes and all moves of one vote."""
    worst = 0.0
    for counts in itertools.product(range(teachers + 1), repeat=classes):
        if sum(counts) != teachers:
            continue
        p = _argmax(counts, noise)
        for source, target in itertools.permutations(range(classes), 2):
            if counts[source]:
                moved = list(counts)
                moved[source] -= 1
                moved[target] += 1
                worst = max(worst, _divergence(p, _argmax(tuple(moved), noise), order))
    return worst


@pytest.mark.parametrize("classes", [3, 4])
@pytest.mark.parametrize("scale", [1.0, 4.0])
def test_no_vote_costs_more_than_the_bound(scale: float, classes: int) -> None:
    pairs: list[tuple[type[NoisyMax], FloatArray]] = [
        (LaplaceNoisyMax, _laplace(scale)),
        (GaussianNoisyMax, _gaussian(scale)),
    ]
    for kind, noise in pairs:
        mechanism = kind(teachers=5, classes=classes, scale=scale)
        for order in (1.5, 4.0, 32.0):
            exact = _worst(noise, order, teachers=5, classes=classes)
            bound = float(mechanism.rdp([order])[0])
            assert bound / 10 < exact <= bound


@pytest.mark.parametrize("scale", [0.5, 3.0, 10.0])
@pytest.mark.parametrize("order", [1.01, 2.0, 17.0, 200.0])
def test_laplace_curve_is_that_of_two_noisy_counts(scale: float, order: float) -> None:
    noise = _laplace(scale)
    exact = 2.0 * _divergence(noise[1:], noise[:-1], order)
    bound = LaplaceNoisyMax(teachers=9, classes=3, scale=scale).rdp([order])[0]
    assert bound == pytest.approx(exact, rel=1e-7)


@settings(deadline=None)
@given(gamma=st.floats(1e-6, 20.0), order=st.floats(1.0, 5000.0, exclude_min=True))
def test_laplace_curve_is_below_the_papers_and_continuous_noise_below_it(
    gamma: float, order: float
) -> None:
    divergence = LaplaceNoisyMax(teachers=9, classes=3, scale=1.0 / gamma).rdp([order])[0]
    slack = 1.0 + 1e-9
    assert 0.0 < divergence <= 2.0 * gamma * slack
    assert divergence <= 2.0 * gamma**2 * order * slack  # Theorem 2
    # Twice the Rényi divergence of one Laplace count (Mironov 2017, Proposition 6).
    up, down = gamma * (order - 1.0), -gamma * order
    share = order / (2.0 * order - 1.0)
    moment = np.logaddexp(math.log(share) + up, np.log1p(-share) + down)
    if order > 1.001:  # closer to 1 this formula cancels
        assert 2.0 * moment / (order - 1.0) <= divergence * slack + 1e-9


def test_gaussian_epsilon_is_the_minimum_over_real_orders() -> None:
    sigma, labels = 40.0, 1000

    def at(log_order: float) -> float:
        order = 1.0 + math.exp(log_order)
        conversion = math.log1p(-1.0 / order) - math.log(DELTA * order) / (order - 1.0)
        return labels * order / sigma**2 + conversion

    best = minimize_scalar(at, bounds=(-4.0, 8.0), method="bounded").fun
    mechanism = GaussianNoisyMax(teachers=250, classes=10, scale=sigma)
    assert mechanism.epsilon(labels, delta=DELTA) == pytest.approx(best, rel=1e-4)


def test_laplace_epsilon_is_the_smaller_of_both_accounts() -> None:
    mechanism = LaplaceNoisyMax(teachers=250, classes=10, scale=20.0)
    assert mechanism.epsilon(1, delta=DELTA) == pytest.approx(0.1)
    assert mechanism.epsilon(100, delta=0.0) == pytest.approx(10.0)
    # Papernot et al. 2017 report the data-independent 5.80 for these 100 labels.
    assert 3.0 < mechanism.epsilon(100, delta=DELTA) < 5.80


@pytest.mark.parametrize("labels", [1, 100, 1000])
def test_two_classes_are_accounted_by_their_table(labels: int) -> None:
    k, scale = 250, 20.0
    pairs: list[tuple[type[NoisyMax], VoteTable]] = [
        (LaplaceNoisyMax, VoteTable.noisy_max(k, scale).quantised()),
        (GaussianNoisyMax, VoteTable.gaussian(k, scale / math.sqrt(2.0)).quantised()),
    ]
    for mechanism, table in pairs:
        two = mechanism(teachers=k, classes=2, scale=scale)
        three = mechanism(teachers=k, classes=3, scale=scale)
        assert two.table == table
        assert three.table is None
        assert np.array_equal(two.rdp(ORDERS), table.rdp(ORDERS))
        epsilon = two.epsilon(labels, delta=DELTA)
        assert epsilon == table.epsilon(labels, delta=DELTA)
        assert epsilon < three.epsilon(labels, delta=DELTA)
        assert two.claim(labels, delta=DELTA) == table.claim(labels, delta=DELTA)


def test_confident_answers_pay_for_every_check() -> None:
    answer = GaussianNoisyMax(teachers=250, classes=10, scale=40.0)

    def epsilon(labels: int, *, scale: float, checks: int = 1000) -> float:
        mechanism = ConfidentNoisyMax(
            answer=answer, threshold=200, check_scale=scale, checks=checks
        )
        return mechanism.epsilon(labels, delta=DELTA)

    # Checks without noise worth the name cost nothing; then it is GNMax.
    assert epsilon(100, scale=1e9) == pytest.approx(answer.epsilon(100, delta=DELTA), rel=1e-6)
    # A check at sigma_1 costs half an answer at the same scale, answered or not.
    assert epsilon(0, scale=40.0) == pytest.approx(answer.epsilon(500, delta=DELTA), rel=1e-9)
    assert epsilon(100, scale=40.0) == pytest.approx(answer.epsilon(600, delta=DELTA), rel=1e-9)


def test_confident_answers_of_two_classes_use_the_table() -> None:
    two, three = (
        ConfidentNoisyMax(
            answer=GaussianNoisyMax(teachers=250, classes=classes, scale=40.0),
            threshold=200,
            check_scale=1e9,
            checks=10,
        )
        for classes in (2, 3)
    )
    assert two.epsilon(100, delta=DELTA) < 0.9 * three.epsilon(100, delta=DELTA)


def test_no_label_costs_nothing_and_much_noise_next_to_nothing() -> None:
    for kind in (LaplaceNoisyMax, GaussianNoisyMax):
        for classes in (2, 5):
            assert kind(teachers=9, classes=classes, scale=3.0).epsilon(0, delta=DELTA) == 0.0
            vast = kind(teachers=9, classes=classes, scale=1e9)
            assert vast.epsilon(100, delta=DELTA) < 1e-3


def test_claims_tell_their_derivation() -> None:
    gaussian = GaussianNoisyMax(teachers=250, classes=10, scale=40.0)
    claim = gaussian.claim(100, delta=DELTA)
    assert claim.epsilon == gaussian.epsilon(100, delta=DELTA)
    for part in ("100 votes of 250 teachers", "10 classes", "deviation 40", "one record"):
        assert part in claim.source
    assert not claim.data_dependent
    confident = ConfidentNoisyMax(answer=gaussian, threshold=200, check_scale=150.0, checks=3000)
    assert "at most 3000 checks" in confident.claim(100, delta=DELTA).source
    laplace = LaplaceNoisyMax(teachers=250, classes=10, scale=20.0)
    assert "Laplace noise of scale 20" in laplace.claim(1, delta=0.0).source


def test_gaussian_noise_claims_nothing_at_delta_zero() -> None:
    mechanism = GaussianNoisyMax(teachers=9, classes=3, scale=3.0)
    with pytest.raises(ClaimError, match="proves nothing at delta 0"):
        mechanism.claim(10, delta=0.0)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"teachers": 0}, "`teachers` must be"),
        ({"classes": 1}, "`classes` must be"),
        ({"scale": 0.0}, "`scale` must be .*, got 0.0"),
        ({"scale": math.inf}, "`scale` must be .*, got inf"),
        ({"scale": math.nan}, "`scale` must be .*, got nan"),
    ],
)
def test_constants_out_of_range_are_refused(changed: dict[str, float], message: str) -> None:
    constants: dict[str, Any] = {"teachers": 9, "classes": 3, "scale": 3.0} | changed
    for kind in (LaplaceNoisyMax, GaussianNoisyMax):
        with pytest.raises(SettingsError, match=message):
            kind(**constants)


def test_arguments_out_of_range_are_refused() -> None:
    mechanism = GaussianNoisyMax(teachers=9, classes=3, scale=3.0)
    with pytest.raises(SettingsError, match=r"`labels` must be .*, got -1"):
        mechanism.epsilon(-1, delta=DELTA)
    with pytest.raises(SettingsError, match=r"`delta` must be .*, got 1"):
        mechanism.epsilon(1, delta=1.0)
    with pytest.raises(SettingsError, match="above 1"):
        mechanism.rdp([1.0])
    for changed in ({"threshold": 1.5}, {"checks": 0}, {"check_scale": -1.0}):
        constants: dict[str, Any] = {"threshold": 5, "checks": 10, "check_scale": 3.0} | changed
        with pytest.raises(SettingsError):
            ConfidentNoisyMax(answer=mechanism, **constants)
