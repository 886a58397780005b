"""Bounds over all thresholds: coverage of the bands, validity, tightness, symmetry, edges."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, laplace

from dpaudit.bounds import Direction, Threshold, count_errors, upper_limits
from dpaudit.errors import SettingsError
from reports.methods.bands import BandBound, dkw, equal_local_level, preset_quantiles
from reports.methods.order_statistics import local_level

SETTING: dict[str, Any] = {"delta": 1e-5, "confidence": 0.95}
QUANTILES = (0.05, 0.275, 0.525, 0.775, 0.95)
Bound = Callable[..., BandBound]
BANDS: dict[str, Bound] = {"dkw": dkw, "equal_local_level": equal_local_level}
BOUNDS: dict[str, Bound] = {
    **BANDS,
    "preset_quantiles": partial(preset_quantiles, quantiles=QUANTILES),
}


def worlds(n: int) -> np.ndarray:
    return np.arange(2 * n) < n


def laplace_scores(rng: np.random.Generator, epsilon: float, n: int) -> np.ndarray:
    return worlds(n) + rng.laplace(0.0, 1.0 / epsilon, 2 * n)


def randomised_response(rng: np.random.Generator, epsilon: float, n: int) -> np.ndarray:
    lie = rng.random(2 * n) < 1.0 / (1.0 + math.exp(epsilon))
    return (worlds(n) ^ lie).astype(float)


def all_hold(limits: np.ndarray) -> float:
    """P[U_(j) ≤ limit_j for all j] = n! ∫ … ∫ dx_n … dx_1, integrated as polynomials."""
    inner = np.polynomial.Polynomial([1.0])
    for limit in limits[::-1]:
        integral = inner.integ()
        inner = integral(limit) - integral
    return math.factorial(limits.size) * float(inner(0.0))


# --- The local level ---------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.3, 0.025, 0.001])
def test_local_level_of_two_by_hand(alpha: float) -> None:
    # Limits 1 − √η and √(1 − η); both hold unless the larger score exceeds its own or both
    # exceed the smaller limit.
    level = local_level(2, alpha)
    low, high = 1.0 - math.sqrt(level), math.sqrt(1.0 - level)
    assert 1.0 - high**2 + (high - low) ** 2 == pytest.approx(alpha, rel=1e-5)
    assert local_level(1, alpha) == alpha


@pytest.mark.parametrize("n", [3, 6, 11])
@pytest.mark.parametrize("alpha", [0.1, 0.0125])
def test_local_level_agrees_with_the_integral(n: int, alpha: float) -> None:
    level = local_level(n, alpha)
    fails = 1.0 - all_hold(upper_limits(n, level)[:-1])
    assert fails <= alpha
    assert fails == pytest.approx(alpha, rel=1e-5)


@pytest.mark.parametrize(("n", "reference"), [(102, 0.00125), (399, 0.00077)])
def test_band_fails_as_often_as_promised(n: int, reference: float) -> None:
    # The reference levels were found by simulation; they are about 14 % above ours.
    level = local_level(n, 0.025)
    assert level == pytest.approx(reference, rel=0.2)
    limits = upper_limits(n, level)[:-1]
    rng = np.random.default_rng(n)
    draws = 10_000
    failed = sum(
        np.count_nonzero((np.sort(rng.random((1000, n)), axis=1) > limits).any(axis=1))
        for _ in range(draws // 1000)
    )
    # Four standard errors of a proportion of 0.025.
    assert failed / draws == pytest.approx(0.025, abs=0.0063)


def test_local_level_is_monotone_and_lies_between_bonferroni_and_none() -> None:
    levels = [local_level(n, 0.025) for n in (1, 2, 10, 100, 1000)]
    assert levels == sorted(levels, reverse=True)
    assert local_level(50, 0.01) < local_level(50, 0.05)
    assert 0.025 / 1000 < levels[-1] < 0.025


def test_dkw_margin_fails_as_often_as_promised() -> None:
    # Massart: at most α on either side, and close to it in large samples.
    rng = np.random.default_rng(5)
    n, draws, alpha = 200, 4000, 0.1
    margin = math.sqrt(-math.log(alpha) / (2 * n))
    scores = np.sort(rng.random((draws, n)), axis=1)
    failed = np.mean((scores - np.arange(n) / n > margin).any(axis=1))
    assert 0.07 < failed < alpha + 3 * math.sqrt(alpha * (1 - alpha) / draws)


# --- Values known beforehand -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "ceiling"), [(10, 0.28), (25, 0.99), (50, 1.44), (100, 1.85), (400, 2.62), (1000, 3.10)]
)
def test_dkw_of_a_perfect_attack(n: int, ceiling: float) -> None:
    member = worlds(n)
    bound = dkw(member.astype(float), member, direction=Direction.HIGHER, **SETTING)
    assert bound.epsilon == pytest.approx(ceiling, abs=0.0051)
    assert bound.threshold == Threshold(0.5, Direction.HIGHER)
    margin = math.sqrt(math.log(4.0 / 0.05) / (2 * n))
    both = dkw(member.astype(float), member, **SETTING)
    assert both.epsilon == pytest.approx(max(0.0, math.log((1.0 - 1e-5 - margin) / margin)))


@pytest.mark.parametrize(("direction", "share"), [(None, 4.0), (Direction.HIGHER, 2.0)])
def test_equal_local_level_of_a_perfect_attack(direction: Direction | None, share: float) -> None:
    member = worlds(80)
    limit = 1.0 - local_level(80, 0.05 / share) ** (1.0 / 80)
    bound = equal_local_level(member.astype(float), member, direction=direction, **SETTING)
    assert bound.epsilon == pytest.approx(math.log((1.0 - 1e-5 - limit) / limit), rel=1e-5)
    assert bound.threshold == Threshold(0.5, Direction.HIGHER)


def test_unequal_worlds_by_hand() -> None:
    # 30 members, of which 3 score below the cut; 50 non-members, of which 2 score above it.
    scores = np.array([1.0] * 27 + [0.0] * 3 + [1.0] * 2 + [0.0] * 48)
    member = np.arange(80) < 30
    fn = 3 / 30 + math.sqrt(math.log(40.0) / 60)
    fp = 2 / 50 + math.sqrt(math.log(40.0) / 100)
    bound = dkw(scores, member, direction=Direction.HIGHER, **SETTING)
    larger = max((1 - 1e-5 - fn) / fp, (1 - 1e-5 - fp) / fn)
    assert bound.epsilon == pytest.approx(math.log(larger))
    fn = beta.ppf(1.0 - local_level(30, 0.025), 4, 27)
    fp = beta.ppf(1.0 - local_level(50, 0.025), 3, 48)
    bound = equal_local_level(scores, member, direction=Direction.HIGHER, **SETTING)
    larger = max((1 - 1e-5 - fn) / fp, (1 - 1e-5 - fp) / fn)
    assert bound.epsilon == pytest.approx(math.log(larger))


def test_preset_quantiles_by_hand() -> None:
    # Non-members 0 … 19: rank ⌈0.9 · 20⌉ = 18 is the score 17; two non-members lie above it and
    # 17 below. Members 14.5 … 33.5: three lie below 17 and one more right above it.
    others, members = np.arange(20.0), np.arange(20.0) + 14.5
    scores, member = np.concatenate([members, others]), worlds(20)
    bound = preset_quantiles(scores, member, quantiles=[0.9], direction=Direction.HIGHER, **SETTING)
    fp, fn = beta.ppf(0.975, 3, 18), beta.ppf(0.975, 4, 17)
    larger = max((1 - 1e-5 - fn) / fp, (1 - 1e-5 - fp) / fn)
    assert bound.epsilon == pytest.approx(math.log(larger))
    assert bound.threshold == Threshold(float(np.nextafter(17.0, 18.0)), Direction.HIGHER)
    # Two quantiles in two directions: α/4 each, and the better pair wins.
    four = preset_quantiles(scores, member, quantiles=[0.9, 0.5], **SETTING)
    fp, fn = beta.ppf(1 - 0.0125 / 2, 3, 18), beta.ppf(1 - 0.0125 / 2, 4, 17)
    larger = max((1 - 1e-5 - fn) / fp, (1 - 1e-5 - fp) / fn)
    assert four.epsilon == pytest.approx(math.log(larger))
    # From below, LOWER cuts at the mirrored rank and finds the same.
    mirrored = preset_quantiles(
        -scores, member, quantiles=[0.15], direction=Direction.LOWER, **SETTING
    )
    assert mirrored.epsilon == pytest.approx(bound.epsilon)
    assert mirrored.threshold == Threshold(-17.0, Direction.LOWER)


def test_preset_quantile_at_a_tie_counts_ranks() -> None:
    # All non-members tie at the cut: none scores above it, yet the rank says ten of twenty.
    scores, member = np.array([1.0] * 20 + [0.0] * 20), worlds(20)
    bound = preset_quantiles(scores, member, quantiles=[0.5], direction=Direction.HIGHER, **SETTING)
    fp, fn = beta.ppf(0.975, 11, 10), 1.0 - 0.025 ** (1 / 20)
    assert bound.epsilon == pytest.approx(math.log((1 - 1e-5 - fp) / fn))


# --- Validity ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("n", [25, 150])
@pytest.mark.parametrize(
    ("draw", "epsilon"),
    [
        (laplace_scores, 0.3),
        (laplace_scores, 3.0),
        (randomised_response, 0.3),
        (randomised_response, 3.0),
    ],
)
def test_bound_exceeds_the_truth_as_rarely_as_promised(
    name: str, n: int, draw: Callable[..., np.ndarray], epsilon: float
) -> None:
    # At confidence 0.8, where a rule that forgot a factor would show; each bound on its own
    # terms. The tolerance is three standard errors of the nominal rate.
    rng = np.random.default_rng(n)
    runs, alpha, member = 150, 0.2, worlds(n)
    violations = sum(
        BOUNDS[name](draw(rng, epsilon, n), member, delta=0.0, confidence=1 - alpha).epsilon
        > epsilon
        for _ in range(runs)
    )
    assert violations <= runs * alpha + 3 * math.sqrt(runs * alpha * (1 - alpha))


@pytest.mark.parametrize("name", BOUNDS)
def test_scores_that_know_nothing_prove_nothing(name: str) -> None:
    rng = np.random.default_rng(2)
    runs, member = 200, worlds(40)
    proved = sum(
        BOUNDS[name](rng.normal(size=80), member, **SETTING).epsilon > 0 for _ in range(runs)
    )
    assert proved <= runs * 0.05 + 3 * math.sqrt(runs * 0.05 * 0.95)


def test_preset_quantile_exceeds_the_truth_nearly_as_often_as_it_may() -> None:
    # Above 1 the two Laplace densities differ by e^ε exactly. Many members and
    # few non-members: the bound is too large when the false-positive limit is too small, which
    # happens with probability α/2 = 0.25, less a little for the false-negative limit.
    rng = np.random.default_rng(4)
    n_out, n_in, runs, epsilon = 40, 1000, 500, 1.0
    quantile = 0.9
    assert laplace.ppf(quantile, scale=1 / epsilon) > 1.0
    member = np.arange(n_in + n_out) < n_in
    scores = np.empty(n_in + n_out)
    # An even grid of the members' quantiles: their sampling error is of no interest here.
    scores[:n_in] = laplace.ppf((np.arange(n_in) + 0.5) / n_in, loc=1.0, scale=1 / epsilon)
    low = 0
    for _ in range(runs):
        others = rng.laplace(0.0, 1 / epsilon, n_out)
        scores[n_in:] = others
        bound = preset_quantiles(
            scores,
            member,
            quantiles=[quantile],
            delta=0.0,
            confidence=0.5,
            direction=Direction.HIGHER,
        )
        low += bound.epsilon > epsilon
    assert 0.14 < low / runs < 0.25 + 3 * math.sqrt(0.25 * 0.75 / runs)


# --- Tightness (medians of the reference study, direction fixed, n = 399) ----------------------


@pytest.mark.parametrize(
    ("name", "epsilon", "median"),
    [
        ("dkw", 0.5, 0.23),
        ("dkw", 1.0, 0.65),
        ("dkw", 2.0, 1.35),
        ("dkw", 4.0, 2.17),
        ("equal_local_level", 0.5, 0.18),
        ("equal_local_level", 1.0, 0.62),
        ("equal_local_level", 2.0, 1.47),
        ("equal_local_level", 4.0, 2.88),
    ],
)
def test_as_tight_as_the_reference_study(name: str, epsilon: float, median: float) -> None:
    rng = np.random.default_rng(1)
    member = worlds(399)
    found = [
        BANDS[name](
            laplace_scores(rng, epsilon, 399), member, direction=Direction.HIGHER, **SETTING
        ).epsilon
        for _ in range(150)
    ]
    # The median of 150 bounds with standard deviation 0.1 to 0.2 has a standard error of 0.02.
    assert np.median(found) == pytest.approx(median, abs=0.05)


# --- Order and symmetry ------------------------------------------------------------------------


@given(seed=st.integers(0, 10_000), n=st.integers(2, 30), levels=st.integers(1, 40))
@settings(max_examples=25, deadline=None)
def test_inverted_scores_prove_as_much(seed: int, n: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    member = rng.permutation(worlds(n))
    scores = rng.integers(0, levels, 2 * n) + 0.5 * levels * member
    for bound in BANDS.values():
        upright = bound(scores, member, **SETTING)
        assert bound(-scores, member, **SETTING).epsilon == pytest.approx(upright.epsilon)
        assert bound(scores, ~member, **SETTING).epsilon == pytest.approx(upright.epsilon)
        for direction, opposite in (tuple(Direction), tuple(Direction)[::-1]):
            fixed = bound(scores, member, direction=direction, **SETTING)
            assert fixed.threshold.direction is direction
            turned = bound(-scores, member, direction=opposite, **SETTING)
            assert turned.epsilon == pytest.approx(fixed.epsilon)
            assert upright.epsilon <= max(
                bound(scores, member, direction=way, **SETTING).epsilon for way in Direction
            )


@pytest.mark.parametrize("name", BANDS)
def test_the_threshold_returned_is_where_the_bound_was_reached(name: str) -> None:
    rng = np.random.default_rng(6)
    member = worlds(60)
    scores = np.round(laplace_scores(rng, 3.0, 60), 1)
    bound = BANDS[name](scores, member, **SETTING)
    counts = count_errors(scores, member, bound.threshold)
    if name == "dkw":
        limits = np.arange(61) / 60 + math.sqrt(math.log(80.0) / 120)
    else:
        limits = upper_limits(60, local_level(60, 0.0125))
    fn, fp = limits[counts.false_negatives], limits[counts.false_positives]
    larger = max((1 - 1e-5 - fn) / fp, (1 - 1e-5 - fp) / fn)
    assert bound.epsilon == pytest.approx(math.log(larger))
    assert bound.epsilon > 0.5


@pytest.mark.parametrize("name", BOUNDS)
def test_monotone_in_delta_and_confidence(name: str) -> None:
    member = worlds(100)
    scores = laplace_scores(np.random.default_rng(3), 4.0, 100)

    def epsilon(delta: float = 0.0, confidence: float = 0.95) -> float:
        return BOUNDS[name](scores, member, delta=delta, confidence=confidence).epsilon

    assert epsilon() > epsilon(delta=0.01) > epsilon(delta=0.1) > 0.0
    assert epsilon(confidence=0.8) > epsilon() > epsilon(confidence=0.99) > 0.0


@pytest.mark.parametrize("name", BANDS)
def test_failed_trials_lower_the_bound(name: str) -> None:
    member = worlds(100)
    scores = laplace_scores(np.random.default_rng(3), 4.0, 100)

    def epsilon(failed_in: int, failed_out: int) -> float:
        failed = {"failed_in": failed_in, "failed_out": failed_out}
        return BANDS[name](scores, member, **failed, **SETTING).epsilon

    assert epsilon(0, 0) > epsilon(10, 0) > epsilon(10, 10) > 0.0
    assert epsilon(0, 0) > epsilon(0, 10) > epsilon(10, 10)


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("direction", Direction)
def test_failed_trials_are_errors_at_every_threshold(name: str, direction: Direction) -> None:
    # The same as scores on the wrong side of every cut.
    sign = 1.0 if direction is Direction.HIGHER else -1.0
    scores = sign * laplace_scores(np.random.default_rng(3), 4.0, 60)
    whole = worlds(60)
    finished = np.ones(120, dtype=bool)
    finished[[0, 1, 2, 60, 61]] = False
    wrong = scores.copy()
    wrong[:3], wrong[60:62] = -sign * 1e3, sign * 1e3
    setting: dict[str, Any] = {**SETTING, "direction": direction}
    explicit = BOUNDS[name](wrong, whole, **setting)
    failed = BOUNDS[name](scores[finished], whole[finished], failed_in=3, failed_out=2, **setting)
    assert failed.epsilon == pytest.approx(explicit.epsilon)
    assert failed.epsilon > 0.5


@pytest.mark.parametrize("name", BOUNDS)
def test_constant_scores_prove_nothing(name: str) -> None:
    bound = BOUNDS[name](np.full(40, 2.0), worlds(20), **SETTING)
    assert bound.epsilon == 0.0
    assert math.isfinite(bound.threshold.value)


@pytest.mark.parametrize("name", BOUNDS)
def test_scores_of_one_trial_per_world_prove_nothing(name: str) -> None:
    assert BOUNDS[name](np.array([1.0, 0.0]), worlds(1), **SETTING).epsilon == 0.0


# --- Bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"delta": 1.0}, "delta"),
        ({"confidence": 0.0}, "confidence"),
        ({"failed_in": -1}, "failed_in"),
        ({"failed_out": -2}, "failed_out"),
        ({"failed_out": 0.5}, "failed_out"),
        ({"scores": np.zeros(3)}, "shape"),
        ({"scores": np.array([np.nan, 0.0])}, "finite"),
        ({"member": np.array([True, True])}, "one world"),
    ],
)
def test_bad_input_is_refused(name: str, change: dict[str, Any], complaint: str) -> None:
    arguments: dict[str, Any] = {"scores": np.zeros(2), "member": worlds(1), **SETTING, **change}
    with pytest.raises(SettingsError, match=complaint):
        BOUNDS[name](**arguments)


@pytest.mark.parametrize("quantiles", [[], [0.0], [0.5, 1.0], [float("nan")]])
def test_quantiles_out_of_range(quantiles: list[float]) -> None:
    with pytest.raises(SettingsError, match="quantiles"):
        preset_quantiles(np.zeros(4), worlds(2), quantiles=quantiles, **SETTING)
