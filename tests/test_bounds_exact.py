"""Clopper-Pearson and exact bounds: reference values, closed forms, validity, order."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from statsmodels.stats.proportion import proportion_confint

from dpaudit.bounds import (
    Counts,
    bonferroni,
    clopper_pearson,
    exact,
    p_value,
    statistic,
    upper_limits,
)
from dpaudit.errors import SettingsError

DELTA = 1e-5


def table(n_in: int, n_out: int, delta: float, confidence: float) -> np.ndarray:
    """The exact bound of every outcome; rows: false negatives, columns: false positives."""
    return np.array(
        [
            [
                exact(Counts(fn, fp, n_in, n_out), delta=delta, confidence=confidence)
                for fp in range(n_out + 1)
            ]
            for fn in range(n_in + 1)
        ]
    )


@pytest.fixture(scope="module")
def balanced() -> np.ndarray:
    return table(24, 24, DELTA, 0.95)


@pytest.fixture(scope="module")
def unbalanced() -> np.ndarray:
    return table(12, 20, DELTA, 0.95)


def violation_rate(bounds: np.ndarray, epsilon: float, fpr: float, fnr: float) -> float:
    n_in, n_out = bounds.shape[0] - 1, bounds.shape[1] - 1
    mass = np.outer(
        binom.pmf(np.arange(n_in + 1), n_in, fnr), binom.pmf(np.arange(n_out + 1), n_out, fpr)
    )
    return float(mass[bounds > epsilon].sum())


def test_reference_vectors(shared: Path) -> None:
    entries = json.loads((shared / "vectors" / "estimators.json").read_text())["two_world"]
    assert sum("buehler_exact" in entry for entry in entries) >= 8
    for entry in entries:
        counts = Counts(entry["n1"] - entry["tp"], entry["fp"], entry["n1"], entry["n0"])
        setting = {"delta": entry["delta"], "confidence": entry["confidence"]}
        assert clopper_pearson(counts, **setting) == pytest.approx(entry["cp"], abs=1e-9)
        if "buehler_exact" in entry:
            assert exact(counts, **setting) == pytest.approx(entry["buehler_exact"], abs=2e-3)


@pytest.mark.parametrize("n", [1, 7, 400])
def test_upper_limits_agree_with_statsmodels(n: int) -> None:
    limits = upper_limits(n, 0.025)
    expected = proportion_confint(np.arange(n + 1), n, alpha=0.05, method="beta")[1]
    np.testing.assert_allclose(limits, expected, rtol=1e-10)
    assert limits.shape == (n + 1,)
    assert limits[-1] == 1.0


def test_statistic_is_minus_infinity_without_any_evidence() -> None:
    assert statistic(1.0, 1.0, 0.0) == -math.inf
    assert statistic(0.1, 0.2, 0.05) == pytest.approx(math.log(0.75 / 0.1))
    assert statistic(0.2, 0.1, 0.05) == pytest.approx(math.log(0.75 / 0.1))


@pytest.mark.parametrize("n", [3, 10, 100, 400, 2000])
@pytest.mark.parametrize("confidence", [0.95, 0.99])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.1])
def test_perfect_attack_has_a_closed_form(n: int, confidence: float, delta: float) -> None:
    rate = 1.0 - (1.0 - confidence) ** (1.0 / (2 * n))
    expected = math.log(max(1.0, (1.0 - delta) / rate - 1.0))
    bound = exact(Counts(0, 0, n, n), delta=delta, confidence=confidence)
    assert bound == pytest.approx(expected, abs=1e-5)
    assert bound <= expected


def test_perfect_attack_with_very_unequal_worlds_stays_below_the_corner() -> None:
    # With n_out > e^epsilon n_in the least favourable rates are not the corner of the region.
    corner = math.log(1.0 / (1.0 - 0.05 ** (1.0 / 202)) - 1.0)
    bound = exact(Counts(0, 0, 2, 200), delta=0.0, confidence=0.95)
    assert 1.0 < bound < corner - 0.01
    # There FPR = x and FNR = 1 - e^epsilon x; no errors at all have probability alpha.
    rates = np.linspace(0.0, 1.0 / (1.0 + math.exp(bound)), 200_001)
    chance = (1.0 - rates) ** 200 * (math.exp(bound) * rates) ** 2
    assert chance.max() == pytest.approx(0.05, rel=1e-4)


@pytest.mark.parametrize(
    ("counts", "epsilon", "delta"),
    [
        (Counts(2, 3, 15, 15), 0.5, 0.0),
        (Counts(4, 1, 12, 20), 0.7, 0.05),
        (Counts(10, 2, 40, 25), 1.0, 1e-5),
        (Counts(0, 30, 40, 40), 0.3, 1e-5),
        (Counts(110, 93, 295, 374), 0.0, 0.0),  # a narrow peak, far from the corner
    ],
)
def test_p_value_agrees_with_brute_force(counts: Counts, epsilon: float, delta: float) -> None:
    fn_upper, fp_upper = upper_limits(counts.n_in, 0.025), upper_limits(counts.n_out, 0.025)
    ranks = statistic(fn_upper[:, None], fp_upper[None, :], delta)
    inside = ranks >= ranks[counts.false_negatives, counts.false_positives] - 1e-12
    small = np.linspace(0.0, (1.0 - delta) / (1.0 + math.exp(epsilon)), 3001)
    large = 1.0 - delta - math.exp(epsilon) * small
    worst = 0.0
    for fpr, fnr in ((small, large), (large, small)):
        fn_mass = binom.pmf(np.arange(counts.n_in + 1)[:, None], counts.n_in, fnr)
        fp_mass = binom.pmf(np.arange(counts.n_out + 1)[:, None], counts.n_out, fpr)
        worst = max(worst, float(np.einsum("am,ab,bm->m", fn_mass, inside, fp_mass).max()))
    found = p_value(counts, epsilon=epsilon, delta=delta, confidence=0.95)
    assert found == pytest.approx(worst, rel=1e-4)
    assert found >= worst


def test_p_value_crosses_alpha_at_the_bound() -> None:
    counts = Counts(50, 100, 400, 400)
    bound = exact(counts, delta=DELTA, confidence=0.95)
    below = p_value(counts, epsilon=bound - 1e-4, delta=DELTA, confidence=0.95)
    at = p_value(counts, epsilon=bound, delta=DELTA, confidence=0.95)
    above = p_value(counts, epsilon=bound + 1e-4, delta=DELTA, confidence=0.95)
    assert below < at <= 0.05 < above
    assert at == pytest.approx(0.05, rel=1e-5)


@pytest.mark.parametrize("name", ["balanced", "unbalanced"])
def test_more_errors_never_raise_the_bound(name: str, request: pytest.FixtureRequest) -> None:
    bounds = request.getfixturevalue(name)
    assert bounds.max() > 1.0
    assert np.all(np.diff(bounds, axis=0) <= 1e-6)
    assert np.all(np.diff(bounds, axis=1) <= 1e-6)


def test_swapping_the_worlds_changes_nothing(balanced: np.ndarray) -> None:
    np.testing.assert_allclose(balanced, balanced.T, atol=1e-6)


@given(data=st.data(), n_in=st.integers(1, 120), n_out=st.integers(1, 120))
@settings(max_examples=60, deadline=None)
def test_exact_is_never_below_clopper_pearson(data: st.DataObject, n_in: int, n_out: int) -> None:
    counts = Counts(data.draw(st.integers(0, n_in)), data.draw(st.integers(0, n_out)), n_in, n_out)
    delta = data.draw(st.sampled_from([0.0, 1e-5, 0.01, 0.3]))
    confidence = data.draw(st.sampled_from([0.5, 0.9, 0.95, 0.99]))
    bound = exact(counts, delta=delta, confidence=confidence)
    assert bound >= clopper_pearson(counts, delta=delta, confidence=confidence)
    mirrored = Counts(counts.false_positives, counts.false_negatives, n_out, n_in)
    assert exact(mirrored, delta=delta, confidence=confidence) == pytest.approx(bound, abs=1e-6)


@pytest.mark.parametrize("name", ["balanced", "unbalanced"])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 2.0])
def test_violations_are_as_rare_as_promised(
    name: str, epsilon: float, request: pytest.FixtureRequest
) -> None:
    bounds = request.getfixturevalue(name)
    corner = (1.0 - DELTA) / (1.0 + math.exp(epsilon))
    # Randomised response sits at the corner; every other point is also a possible attack.
    assert violation_rate(bounds, epsilon, corner, corner) <= 0.05
    worst = 0.0
    for small in np.linspace(0.0, corner, 101):
        large = 1.0 - DELTA - math.exp(epsilon) * small
        for fpr, fnr in ((small, large), (large, small)):
            worst = max(worst, violation_rate(bounds, epsilon, fpr, fnr))
    assert worst <= 0.05 + 1e-9
    if epsilon < 2.0:
        assert worst > 0.01, "a bound this loose is not the exact one"


@pytest.mark.parametrize(
    "counts",
    [Counts(200, 200, 400, 400), Counts(400, 0, 400, 400), Counts(1, 1, 1, 1), Counts(0, 9, 9, 9)],
)
def test_no_evidence_gives_zero(counts: Counts) -> None:
    assert exact(counts, delta=DELTA, confidence=0.95) == 0.0
    assert clopper_pearson(counts, delta=DELTA, confidence=0.95) == 0.0


def test_settings_out_of_range_are_refused() -> None:
    counts = Counts(1, 1, 10, 10)
    for bound in (exact, clopper_pearson):
        for delta in (-0.1, 1.0, math.nan):
            with pytest.raises(SettingsError, match="delta"):
                bound(counts, delta=delta, confidence=0.95)
        for confidence in (0.0, 1.0, math.nan):
            with pytest.raises(SettingsError, match="confidence"):
                bound(counts, delta=DELTA, confidence=confidence)
    for epsilon in (-1.0, math.inf):
        with pytest.raises(SettingsError, match="epsilon"):
            p_value(counts, epsilon=epsilon, delta=DELTA, confidence=0.95)


@pytest.mark.parametrize("broken", [(-1, 0, 5, 5), (6, 0, 5, 5), (0, 6, 5, 5), (0, 0, 0, 5)])
def test_impossible_counts_are_refused(broken: tuple[int, int, int, int]) -> None:
    with pytest.raises(SettingsError, match="world"):
        Counts(*broken)


def test_bonferroni() -> None:
    assert bonferroni(0.95, 1) == pytest.approx(0.95)
    assert bonferroni(0.95, 5) == pytest.approx(0.99)
    with pytest.raises(SettingsError, match="hypotheses"):
        bonferroni(0.95, 0)
