"""Clopper-Pearson and exact bounds: reference values, closed forms, brute force, validity."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta, binom
from statsmodels.stats.proportion import proportion_confint

from dpaudit.bounds import Counts, clopper_pearson, exact, p_value, statistic, upper_limits
from dpaudit.errors import SettingsError

DELTA = 1e-5
MOST_SHORT = 1e-6  # what `exact` promises to lie below its root, at most


def table(n_in: int, n_out: int, delta: float, confidence: float) -> np.ndarray:
    """The exact bound of every outcome; rows: false negatives, columns: false positives."""
    return np.array(
        [
            [
                exact(fn, fp, n_in, n_out, delta=delta, confidence=confidence)
                for fp in range(n_out + 1)
            ]
            for fn in range(n_in + 1)
        ]
    )


def violation_rate(bounds: np.ndarray, epsilon: float, fpr: float, fnr: float) -> float:
    n_in, n_out = bounds.shape[0] - 1, bounds.shape[1] - 1
    mass = np.outer(
        binom.pmf(np.arange(n_in + 1), n_in, fnr), binom.pmf(np.arange(n_out + 1), n_out, fpr)
    )
    return float(mass[bounds > epsilon].sum())


def brute_force_p_value(
    counts: Counts, *, epsilon: float, delta: float, confidence: float, points: int = 3001
) -> float:
    """The p-value straight from its definition: every outcome, a fine grid of rates."""

    def ranks(level: float, of_delta: float) -> np.ndarray:
        fn_upper, fp_upper = (
            np.append(beta.ppf((1 + level) / 2, np.arange(n) + 1, n - np.arange(n)), 1.0)
            for n in (counts.n_in, counts.n_out)
        )
        return statistic(fn_upper[:, None], fp_upper[None, :], of_delta)

    observed = counts.false_negatives, counts.false_positives
    worst = 0.0
    for step in range(math.floor(200 * delta + 1e-9) + 1):
        at = min(delta, (step + 1) / 200)
        first = ranks(confidence, at) >= epsilon - 1e-12
        usual = ranks(0.95, step / 200)
        inside = usual >= usual[observed] - 1e-12
        inside = inside & first if first[observed] else inside | first
        small = np.linspace(0.0, (1.0 - at) / (1.0 + math.exp(epsilon)), points)
        large = 1.0 - at - math.exp(epsilon) * small
        for fpr, fnr in ((small, large), (large, small)):
            fn_mass = binom.pmf(np.arange(counts.n_in + 1)[:, None], counts.n_in, fnr)
            fp_mass = binom.pmf(np.arange(counts.n_out + 1)[:, None], counts.n_out, fpr)
            worst = max(worst, float(np.einsum("am,ab,bm->m", fn_mass, inside, fp_mass).max()))
    return worst


def test_reference_vectors(estimator_vectors: dict[str, Any]) -> None:
    entries = estimator_vectors["two_world"]
    assert sum("buehler_exact" in entry for entry in entries) >= 8
    for entry in entries:
        counts = Counts(entry["n1"] - entry["tp"], entry["fp"], entry["n1"], entry["n0"])
        setting = {"delta": entry["delta"], "confidence": entry["confidence"]}
        assert clopper_pearson(*counts, **setting) == pytest.approx(entry["cp"], abs=1e-9)
        if "buehler_exact" in entry:
            # The vectors promise 2e-3; they agree to the digits that we promise.
            assert exact(*counts, **setting) == pytest.approx(entry["buehler_exact"], abs=2e-6)


def test_published_counts_give_the_published_epsilons(published_audits: dict[str, Any]) -> None:
    n = published_audits["n_test_per_world"]
    audits = [
        audit
        for name, group in published_audits.items()
        if name.startswith(("average_case", "worst_case"))
        for audit in group.values()
    ]
    assert len(audits) >= 17
    for _, epsilon, (one, other) in audits:
        for fn, fp in ((one, other), (other, one)):
            found = clopper_pearson(fn, fp, n, n, delta=published_audits["delta"], confidence=0.95)
            assert found == pytest.approx(epsilon, abs=1e-9)


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


@pytest.mark.parametrize(
    "n", [3, 10, 100, 400, *(pytest.param(n, marks=pytest.mark.ci) for n in (2000, 10_000))]
)
@pytest.mark.parametrize("confidence", [0.6, 0.95, 0.99])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.1])
def test_perfect_attack_has_a_closed_form(n: int, confidence: float, delta: float) -> None:
    rate = 1.0 - (1.0 - confidence) ** (1.0 / (2 * n))
    expected = math.log(max(1.0, (1.0 - delta) / rate - 1.0))
    bound = exact(0, 0, n, n, delta=delta, confidence=confidence)
    assert expected - MOST_SHORT <= bound <= expected


def test_perfect_attack_with_very_unequal_worlds_stays_below_the_corner() -> None:
    # With n_out > e^epsilon n_in the least favourable rates are not the corner of the region.
    corner = math.log(1.0 / (1.0 - 0.05 ** (1.0 / 202)) - 1.0)
    bound = exact(0, 0, 2, 200, delta=0.0, confidence=0.95)
    assert 1.0 < bound < corner - 0.01
    # There FPR = x and FNR = 1 - e^epsilon x; no errors at all have probability alpha.
    rates = np.linspace(0.0, 1.0 / (1.0 + math.exp(bound)), 200_001)
    chance = (1.0 - rates) ** 200 * (math.exp(bound) * rates) ** 2
    assert chance.max() == pytest.approx(0.05, rel=1e-6)


@pytest.mark.parametrize(
    ("counts", "epsilon", "delta", "confidence"),
    [
        (Counts(2, 3, 15, 15), 0.5, 0.0, 0.95),
        (Counts(4, 1, 12, 20), 0.7, 0.05, 0.95),
        pytest.param(Counts(4, 1, 12, 20), 0.7, 0.2, 0.99, marks=pytest.mark.ci),
        (Counts(10, 2, 40, 25), 1.0, 1e-5, 0.95),
        (Counts(10, 2, 40, 25), 1.0, 1e-5, 0.6),  # in the first group
        (Counts(10, 1, 58, 3), 0.3, 1e-5, 0.5),  # either group adds outcomes to the other
        (Counts(0, 30, 40, 40), 0.3, 1e-5, 0.95),
        pytest.param(
            Counts(110, 93, 295, 374), 0.0, 0.0, 0.95, marks=pytest.mark.ci
        ),  # a narrow peak, far from the corner
    ],
)
def test_p_value_agrees_with_brute_force(
    counts: Counts, epsilon: float, delta: float, confidence: float
) -> None:
    setting = {"epsilon": epsilon, "delta": delta, "confidence": confidence}
    worst = brute_force_p_value(counts, **setting)
    found = p_value(*counts, **setting)
    assert found == pytest.approx(worst, rel=1e-4)
    assert found >= worst


@pytest.mark.parametrize(
    ("counts", "delta", "confidence"),
    [
        (Counts(2, 5, 25, 25), 0.0, 0.95),
        pytest.param(Counts(1, 8, 20, 30), 0.07, 0.9, marks=pytest.mark.slow),
        (Counts(6, 0, 30, 12), 1e-5, 0.99),
    ],
)
def test_the_bound_is_within_a_millionth_of_the_root(
    counts: Counts, delta: float, confidence: float
) -> None:
    bound = exact(*counts, delta=delta, confidence=confidence)
    setting = {"delta": delta, "confidence": confidence, "points": 20_001}
    assert bound > 0.1
    assert brute_force_p_value(counts, epsilon=bound, **setting) <= 1.0 - confidence
    just_above = brute_force_p_value(counts, epsilon=bound + MOST_SHORT, **setting)
    assert just_above > 1.0 - confidence


def test_p_value_crosses_alpha_at_the_bound() -> None:
    counts = Counts(50, 100, 400, 400)
    bound = exact(*counts, delta=DELTA, confidence=0.95)
    below = p_value(*counts, epsilon=bound - 1e-4, delta=DELTA, confidence=0.95)
    at = p_value(*counts, epsilon=bound, delta=DELTA, confidence=0.95)
    above = p_value(*counts, epsilon=bound + 1e-4, delta=DELTA, confidence=0.95)
    assert below < at <= 0.05 < above
    assert at == pytest.approx(0.05, rel=1e-6)


@pytest.mark.parametrize(
    ("n_in", "n_out", "delta", "confidence"),
    [
        pytest.param(24, 24, DELTA, 0.95, marks=pytest.mark.ci),
        (12, 20, DELTA, 0.95),
        pytest.param(8, 17, 0.06, 0.8, marks=pytest.mark.ci),
        (14, 14, 0.0, 0.99),
        pytest.param(16, 11, 0.2, 0.9, marks=pytest.mark.slow),
    ],
)
def test_violations_are_as_rare_as_promised(
    n_in: int, n_out: int, delta: float, confidence: float
) -> None:
    """Every outcome at every rate that the boundary of the claim allows."""
    bounds = table(n_in, n_out, delta, confidence)
    alpha = 1.0 - confidence
    tightest = 0.0
    for epsilon in (0.0, 0.5, 1.0, 2.0):
        corner = (1.0 - delta) / (1.0 + math.exp(epsilon))
        for small in np.linspace(0.0, corner, 101):
            large = 1.0 - delta - math.exp(epsilon) * small
            for fpr, fnr in ((small, large), (large, small)):
                rate = violation_rate(bounds, epsilon, fpr, fnr)
                assert rate <= alpha
                tightest = max(tightest, rate)
    assert tightest > 0.6 * alpha, "a bound this loose is not the exact one"


@pytest.mark.parametrize(
    ("counts", "delta", "least"),
    [
        # Ranked at δ = 0 alone: .844, .705, .428, .482 and .814; .885, .750, .587, .635 and .836
        # ranked at their own δ, which no smaller δ is to exceed.
        (Counts(269, 269, 1000, 1000), 0.01, 0.8843),
        (Counts(269, 269, 1000, 1000), 0.1, 0.7497),
        (Counts(32, 32, 120, 120), 0.1, 0.585),
        (Counts(32, 32, 120, 120), 0.07, 0.635),
        (Counts(100, 100, 400, 400), 0.07, 0.835),
    ],
)
def test_a_large_delta_costs_no_power_by_its_ranking(
    counts: Counts, delta: float, least: float
) -> None:
    assert least <= exact(*counts, delta=delta, confidence=0.95) < least + 0.002


@pytest.mark.parametrize(
    "counts",
    [
        Counts(8, 8, 30, 30),
        *(
            pytest.param(one, marks=pytest.mark.ci)
            for one in (Counts(3, 5, 30, 30), Counts(0, 9, 20, 30))
        ),
    ],
)
def test_bounds_fall_where_one_ranking_follows_another(counts: Counts) -> None:
    """Every step of δ at 30 trials, a little before, at and after it."""
    ends = [step / 200 for step in range(1, 20)]
    grid = sorted([0.0, *(end * by for end in ends for by in (1 - 1e-6, 1.0, 1 + 1e-6))])
    bounds = [exact(*counts, delta=delta, confidence=0.9) for delta in grid]
    assert bounds[0] > bounds[-1] > 0.0 or counts.false_negatives == 8
    assert all(after <= before + MOST_SHORT for before, after in pairwise(bounds))


@pytest.mark.ci
def test_median_bound_on_randomised_response_is_tight() -> None:
    rng = np.random.default_rng(8)
    for epsilon, least in ((1.0, 0.84), (2.0, 0.87)):
        errors = rng.binomial(400, 1.0 / (1.0 + math.exp(epsilon)), size=(120, 2))
        bounds = [exact(fn, fp, 400, 400, delta=DELTA, confidence=0.95) for fn, fp in errors]
        assert least <= np.median(bounds) / epsilon < 0.97


@pytest.mark.parametrize(
    "counts",
    [
        Counts(200, 200, 400, 400),
        Counts(400, 0, 400, 400),
        Counts(326, 200, 400, 400),
        Counts(400, 400, 400, 400),
        Counts(1, 1, 1, 1),
        Counts(0, 9, 9, 9),
    ],
)
def test_no_evidence_gives_zero(counts: Counts) -> None:
    assert exact(*counts, delta=DELTA, confidence=0.95) == 0.0
    assert clopper_pearson(*counts, delta=DELTA, confidence=0.95) == 0.0


def test_settings_out_of_range_are_refused() -> None:
    for bound in (exact, clopper_pearson):
        for delta in (-0.1, 1.0, math.nan):
            with pytest.raises(SettingsError, match="delta"):
                bound(1, 1, 10, 10, delta=delta, confidence=0.95)
        for confidence in (0.0, 1.0, math.nan):
            with pytest.raises(SettingsError, match="confidence"):
                bound(1, 1, 10, 10, delta=DELTA, confidence=confidence)
    for epsilon in (-1.0, math.inf):
        with pytest.raises(SettingsError, match="epsilon"):
            p_value(1, 1, 10, 10, epsilon=epsilon, delta=DELTA, confidence=0.95)


@pytest.mark.parametrize(
    ("broken", "name"),
    [
        ((-1, 0, 5, 5), "false_negatives"),
        ((6, 0, 5, 5), "false_negatives"),
        ((1.5, 0, 5, 5), "false_negatives"),
        ((math.nan, 0, 5, 5), "false_negatives"),
        (("1", 0, 5, 5), "false_negatives"),
        ((0, 6, 5, 5), "false_positives"),
        ((0, 0, 0, 5), "n_in"),
        ((0, 0, 5, 0), "n_out"),
        ((0, 0, 5, 2.5), "n_out"),
        ((0, 0, 5, math.inf), "n_out"),
    ],
)
def test_impossible_counts_are_refused_by_name(broken: tuple[Any, ...], name: str) -> None:
    for bound in (exact, clopper_pearson):
        with pytest.raises(ValueError, match=f"^`{name}` (is|must be) ") as caught:
            bound(*broken, delta=0.0, confidence=0.95)
        assert isinstance(caught.value, SettingsError)


def test_counts_of_any_integer_type_are_the_same_counts() -> None:
    counts = Counts(np.int64(2), np.uint8(3), np.float64(10.0), 10)
    assert tuple(counts) == (2, 3, 10, 10)
    assert {type(count) for count in counts} == {int}
