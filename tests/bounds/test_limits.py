"""Limits on mu, rho and the factor of a curve: known answers, brute force, validity, order."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta, binom, norm

from dpaudit.bounds import Counts, choose_threshold_by, exact, guarantee_of
from dpaudit.bounds.table import Observed, ValidBound, entries_for
from dpaudit.bounds.trade_off import (
    Boundary,
    ConcentratedTradeOff,
    CurveTradeOff,
    GaussianTradeOff,
    TradeOff,
    certified,
    level_limit,
    ranked_region,
    rejecting_region,
)
from dpaudit.model.claim import ConcentratedClaim, CurveClaim, CurvePoint, GaussianClaim

ALPHA = 0.05
GAUSSIAN, CONCENTRATED = GaussianTradeOff(), ConcentratedTradeOff()
ONE_POINT = CurveTradeOff((CurvePoint(1.0, 1e-5),))
CURVE = CurveTradeOff((CurvePoint(0.5, 0.1), CurvePoint(1.0, 0.01), CurvePoint(3.0, 1e-5)))
FAMILIES: list[TradeOff] = [GAUSSIAN, CONCENTRATED, ONE_POINT, CURVE]
LEVELS = {GAUSSIAN: (0.3, 1.0, 2.5), CONCENTRATED: (0.05, 0.5, 3.0), CURVE: (0.4, 1.0, 2.0)}
Size = tuple[int, int]
SIZES: list[Any] = [
    (2, 3),
    pytest.param((3, 4), marks=pytest.mark.ci),
    pytest.param((5, 6), marks=pytest.mark.slow),
]
"""Scored trials of either world of audits whose every outcome is looked at."""


@cache
def every_limit(trade_off: TradeOff, size: Size, confidence: float = 0.95) -> np.ndarray:
    """The limit of every outcome of a small audit; rows: false negatives."""
    n_in, n_out = size
    return np.array(
        [
            [
                level_limit(Counts(fn, fp, n_in, n_out), trade_off, confidence=confidence)
                for fp in range(n_out + 1)
            ]
            for fn in range(n_in + 1)
        ]
    )


def divergence(p: float, q: float, order: float) -> float:
    """Rényi's divergence of two Bernoulli variables, from its definition."""
    total = p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)
    return math.log(total) / (order - 1)


# The trade-off functions.


@pytest.mark.parametrize("trade_off", FAMILIES)
def test_the_level_is_the_inverse_of_the_trade_off_function(trade_off: TradeOff) -> None:
    fpr = np.array([0.001, 0.05, 0.3, 0.49])
    for level in (0.2, 1.0, 1.7):
        fnr = trade_off.least_fnr(fpr, level)
        allowed = fnr > 1e-6  # at 0 every larger level has the same rates
        assert allowed.any()
        assert trade_off.level(fnr, fpr)[allowed] == pytest.approx(level, rel=1e-6)


@pytest.mark.parametrize("trade_off", FAMILIES)
def test_trade_off_functions_are_symmetric_convex_and_fall(trade_off: TradeOff) -> None:
    fpr = np.linspace(0.0, 1.0, 201)
    fnr = trade_off.least_fnr(fpr, 1.0)
    assert np.all(np.diff(fnr) <= 1e-12)
    assert np.all(np.diff(fnr, 2) >= -1e-7)
    assert np.all(trade_off.least_fnr(fpr, 1.5) <= fnr + 1e-12)
    inside = (fnr > 1e-3) & (fpr > 0)
    assert trade_off.least_fnr(fnr[inside], 1.0) == pytest.approx(fpr[inside], abs=1e-6)


@pytest.mark.parametrize(("fpr", "fnr"), [(0.41, 0.41), (0.1, 0.3), (0.001, 0.9), (0.02, 0.02)])
def test_rho_is_the_largest_divergence_over_its_order(fpr: float, fnr: float) -> None:
    # Bun and Steinke 2016, Definition 1.1, on the two guesses.
    orders = 1 + np.geomspace(1e-3, 30, 4000)
    largest = max(max(divergence(1 - fnr, fpr, a), divergence(fpr, 1 - fnr, a)) / a for a in orders)
    found = float(CONCENTRATED.level(np.array(fnr), np.array(fpr)))
    assert largest * 0.995 <= found <= largest * (1 + 1e-9)


def test_a_gaussian_mechanism_keeps_its_rho() -> None:
    # mu-GDP is mu^2/2-zCDP (Bun and Steinke 2016, Proposition 1.6), and zCDP allows more.
    fpr = np.linspace(0.01, 0.99, 99)
    for mu in (0.3, 1.0, 3.0):
        gaussian = GAUSSIAN.least_fnr(fpr, mu)
        assert np.all(CONCENTRATED.least_fnr(fpr, mu**2 / 2) <= gaussian + 1e-9)


# Limits against closed forms and brute force.


def test_clopper_pearson_on_mu_is_the_difference_of_scores() -> None:
    fn_upper, fp_upper = beta.ppf(0.975, 31, 90), beta.ppf(0.975, 21, 180)
    found = guarantee_of(GaussianClaim(mu=1.0)).clopper_pearson(
        Counts(30, 20, 120, 200), confidence=0.95
    )
    assert found == pytest.approx(-norm.ppf(fp_upper) - norm.ppf(fn_upper), rel=1e-9)


@pytest.mark.parametrize("n", [20, 400])
def test_a_perfect_attack_proves_the_closed_form(n: int) -> None:
    # Without errors only the corner matters: (1 - Phi(-mu/2))^(2 n) = alpha.
    limit = level_limit(Counts(0, 0, n, n), GAUSSIAN, confidence=0.95)
    closed = -2 * norm.ppf(1 - ALPHA ** (1 / (2 * n)))
    assert 0.996 * closed <= limit <= closed


@pytest.mark.parametrize(
    "counts", [Counts(30, 30, 100, 100), Counts(5, 1, 60, 40), Counts(80, 0, 200, 200)]
)
def test_a_curve_of_one_point_is_the_bound_on_epsilon(counts: Counts) -> None:
    bound = exact(*counts, delta=1e-5, confidence=0.95)
    assert level_limit(counts, ONE_POINT, confidence=0.95) == pytest.approx(bound, rel=0.01)


@pytest.mark.parametrize("trade_off", [GAUSSIAN, CONCENTRATED, CURVE])
@pytest.mark.parametrize(
    "counts", [Counts(8, 5, 30, 30), pytest.param(Counts(2, 12, 25, 40), marks=pytest.mark.ci)]
)
def test_limits_agree_with_brute_force(trade_off: TradeOff, counts: Counts) -> None:
    fn_upper, fp_upper = (
        np.append(beta.ppf(0.975, np.arange(n) + 1, n - np.arange(n)), 1.0)
        for n in (counts.n_in, counts.n_out)
    )
    rank = trade_off.level(fn_upper[:, None], fp_upper[None, :])
    extreme = rank >= rank[counts.false_negatives, counts.false_positives] - 1e-9

    def p_value(level: float) -> float:
        fpr = norm.cdf(np.linspace(-6, 6, 2401))
        fnr = trade_off.least_fnr(fpr, level)
        fn = binom.pmf(np.arange(counts.n_in + 1)[:, None], counts.n_in, fnr)
        fp = binom.pmf(np.arange(counts.n_out + 1)[:, None], counts.n_out, fpr)
        return float(np.einsum("im,jm,ij->m", fn, fp, extreme.astype(float)).max())

    limit = level_limit(counts, trade_off, confidence=0.95)
    assert limit > 0
    assert p_value(limit) <= ALPHA
    assert p_value(limit * 1.01) > ALPHA


# Validity: at claim = truth, at most 5 % of audits prove a violation, wherever the attack stands.


@pytest.mark.parametrize(
    ("trade_off", "level"),
    [
        pytest.param(of, level, marks=[pytest.mark.slow] if of == CONCENTRATED else [])
        for of, levels in LEVELS.items()
        for level in levels
    ],
)
@pytest.mark.parametrize("size", SIZES)
def test_no_attack_on_a_kept_claim_proves_more_too_often(
    trade_off: TradeOff, level: float, size: Size
) -> None:
    n_in, n_out = size
    too_high = (every_limit(trade_off, size) > level).astype(float)
    fpr = np.concatenate([[0.0], norm.cdf(np.linspace(-5, 5, 1001)), [1.0]])
    fnr = trade_off.least_fnr(fpr, level)
    fn = binom.pmf(np.arange(n_in + 1)[:, None], n_in, fnr)
    fp = binom.pmf(np.arange(n_out + 1)[:, None], n_out, fpr)
    rate = np.einsum("im,jm,ij->m", fn, fp, too_high).max()
    assert rate <= ALPHA


@pytest.mark.ci
def test_limits_on_a_gaussian_mechanism_keep_their_confidence() -> None:
    mu, n, draws = 0.8, 100, 200
    rng = np.random.default_rng(20261122)
    scores = rng.normal(size=(2, draws, n))
    fn = np.count_nonzero(scores[0] + mu < mu / 2, axis=1)
    fp = np.count_nonzero(scores[1] >= mu / 2, axis=1)
    pairs = list(zip(fn.tolist(), fp.tolist(), strict=True))
    limit = {
        pair: level_limit(Counts(*pair, n, n), GAUSSIAN, confidence=0.95) for pair in set(pairs)
    }
    limits = np.array([limit[pair] for pair in pairs])
    # 5 % and three standard errors; the limit must not be idle either.
    assert np.count_nonzero(limits > mu) <= draws * (0.05 + 3 * math.sqrt(0.05 * 0.95 / draws))
    assert np.median(limits) > 0.4


@pytest.mark.parametrize("trade_off", [GAUSSIAN, CONCENTRATED, CURVE])
def test_the_certificate_holds_on_a_grid_ten_times_as_fine(trade_off: TradeOff) -> None:
    counts = Counts(40, 30, 120, 120)
    region = ranked_region(counts, trade_off)
    limit = level_limit(counts, trade_off, confidence=0.95)
    assert Boundary.of(trade_off, limit, n=12_000).rejected_at_most(region) <= ALPHA
    assert certified(region, trade_off, limit, alpha=ALPHA)
    assert not certified(region, trade_off, limit * 1.02, alpha=ALPHA)


# Order: what must never raise a limit.


@pytest.mark.parametrize(
    "trade_off", [GAUSSIAN, pytest.param(CONCENTRATED, marks=pytest.mark.ci), CURVE]
)
@pytest.mark.parametrize("size", SIZES)
def test_more_errors_never_raise_a_limit(trade_off: TradeOff, size: Size) -> None:
    limits = every_limit(trade_off, size)
    slack = 4e-3 * limits.max()
    assert np.all(np.diff(limits, axis=0) <= slack)
    assert np.all(np.diff(limits, axis=1) <= slack)
    assert limits[0, 0] == limits.max() > 0
    assert limits[-1, -1] == 0


@pytest.mark.parametrize("trade_off", [GAUSSIAN, CURVE])
@pytest.mark.parametrize("size", SIZES)
def test_more_confidence_never_raises_a_limit(trade_off: TradeOff, size: Size) -> None:
    usual, strict = every_limit(trade_off, size), every_limit(trade_off, size, 0.99)
    assert np.all(strict <= usual * (1 + 4e-3))


@pytest.mark.parametrize("trade_off", FAMILIES)
def test_the_exact_limit_is_not_below_clopper_pearson(trade_off: TradeOff) -> None:
    for counts in (Counts(45, 50, 120, 120), Counts(3, 0, 40, 60), Counts(100, 2, 120, 120)):
        limit = level_limit(counts, trade_off, confidence=0.95)
        tail = [
            beta.ppf(0.975, k + 1, n - k)
            for k, n in (
                (counts.false_negatives, counts.n_in),
                (counts.false_positives, counts.n_out),
            )
        ]
        assert limit >= 0.996 * float(trade_off.level(np.array(tail[0]), np.array(tail[1])))


# What an audit asks of a guarantee.


@pytest.mark.parametrize("size", SIZES)
def test_the_rejecting_region_holds_the_outcomes_whose_limit_exceeds_the_claim(size: Size) -> None:
    n_in, n_out = size
    for trade_off, levels in LEVELS.items():
        limits = every_limit(trade_off, size)
        region = rejecting_region(levels[1], n_in, n_out, trade_off, 0.95)
        inside = np.arange(n_in + 1)[:, None] <= region.most_fn[None, :]
        clear = np.abs(limits / levels[1] - 1) > 0.01
        assert np.array_equal(inside[clear], (limits > levels[1])[clear])


def test_power_is_that_of_simulated_audits() -> None:
    claim, n = GaussianClaim(mu=0.5), 100
    guarantee = guarantee_of(claim)
    found = guarantee.detectable(claim.mu, Counts(0, 0, n, n), confidence=0.95, power=0.8)
    assert found.best is not None
    assert found.gaussian is None
    reached = max(
        guarantee.detection_power(
            claim.mu,
            n_in=n,
            n_out=n,
            confidence=0.95,
            fpr=float(norm.cdf(-cut)),
            tpr=float(norm.cdf(found.best - cut)),
        )
        for cut in np.linspace(-3, 5, 801)
    )
    assert reached == pytest.approx(0.8, abs=0.01)
    rho = guarantee_of(ConcentratedClaim(rho=0.125)).detectable(
        0.125, Counts(0, 0, n, n), confidence=0.95, power=0.8
    )
    assert rho.best is not None
    assert rho.gaussian is not None
    assert 0.125 < rho.best < rho.gaussian


def test_even_few_trials_can_be_planned_with() -> None:
    # Ranks of a handful of trials are all negative: limits are not.
    region = rejecting_region(0.5, 5, 5, GAUSSIAN, 0.95)
    assert level_limit(Counts(0, 0, 5, 5), GAUSSIAN, confidence=0.95) > 0.5
    assert region.most_fn[0] >= 0


def test_failed_trials_cost_power() -> None:
    guarantee = guarantee_of(CurveClaim(points=(CurvePoint(1.0, 1e-5),)))
    whole = guarantee.detectable(1.0, Counts(0, 0, 80, 80), confidence=0.95, power=0.8)
    fewer = guarantee.detectable(1.0, Counts(8, 8, 80, 80), confidence=0.95, power=0.8)
    assert whole.best is not None
    assert fewer.best is not None
    assert fewer.best > whole.best
    lost = guarantee.detectable(1.0, Counts(60, 60, 80, 80), confidence=0.95, power=0.8)
    assert lost.best is None


def test_a_threshold_for_mu_stands_in_the_middle_of_a_gaussian_leak() -> None:
    rng = np.random.default_rng(5)
    scores = np.concatenate([rng.normal(1.0, 1.0, 4000), rng.normal(0.0, 1.0, 4000)])
    member = np.repeat([True, False], 4000)
    proves = guarantee_of(GaussianClaim(mu=0.1)).statistic
    threshold = choose_threshold_by(scores, member, proves, confidence=0.95)
    assert threshold.value == pytest.approx(0.5, abs=1.2)


def test_bounds_of_a_guarantee_are_those_of_audits() -> None:
    counts = (30, 30, 100, 100)
    found = guarantee_of(GaussianClaim(mu=0.1)).bounds(Observed.COUNTS, *counts, confidence=0.95)
    assert set(found) == {entry.key for entry in entries_for(Observed.COUNTS) if entry.valid}
    assert found[ValidBound.EXACT] > found[ValidBound.CLOPPER_PEARSON] > 0
