"""Lower limits on delta at a fixed epsilon: known answers, brute force, validity."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import beta, binom

from dpaudit.bounds import Counts, choose_threshold_by, guarantee_of
from dpaudit.bounds.table import Observed, ValidBound
from dpaudit.bounds.trade_off import DeltaTradeOff, level_limit, ranked_region
from dpaudit.model.claim import DeltaClaim

EPSILON, ALPHA = 1.0, 0.05
AT_ONE = DeltaTradeOff(EPSILON)
GUARANTEE = guarantee_of(DeltaClaim(at_epsilon=EPSILON, delta=0.0))
FACTOR = math.exp(EPSILON)


def test_the_level_is_the_inverse_of_the_trade_off_function() -> None:
    fpr = np.array([0.0, 0.001, 0.05, 0.3])
    for delta in (0.0, 0.01, 0.4):
        fnr = AT_ONE.least_fnr(fpr, delta)
        assert fnr == pytest.approx(
            np.maximum(1 - delta - FACTOR * fpr, (1 - delta - fpr) / FACTOR)
        )
        some = fnr < 1.0
        assert AT_ONE.level(fnr, fpr)[some] == pytest.approx(delta, abs=1e-12)


@pytest.mark.parametrize(("hits", "false"), [(60, 0), (25, 3), (4, 0), (0, 0)])
def test_the_clopper_pearson_limit_is_that_of_its_formula(hits: int, false: int) -> None:
    # P(event | in) - e^epsilon P(event | out), each with a limit at half of the error probability
    least = beta.ppf(ALPHA / 2, hits, 200 - hits + 1) if hits else 0.0
    most = beta.ppf(1 - ALPHA / 2, false + 1, 150 - false)
    bounds = GUARANTEE.bounds(Observed.COUNTS, 200 - hits, false, 200, 150, confidence=1 - ALPHA)
    expected = max(0.0, least - FACTOR * most)
    assert bounds[ValidBound.CLOPPER_PEARSON] == pytest.approx(expected, abs=1e-12)
    assert bounds[ValidBound.EXACT] >= bounds[ValidBound.CLOPPER_PEARSON] * 0.99


def test_both_directions_count_alike() -> None:
    one = GUARANTEE.exact(Counts(140, 0, 200, 200), confidence=0.95)
    other = GUARANTEE.exact(Counts(0, 140, 200, 200), confidence=0.95)
    assert one == pytest.approx(other, rel=1e-3)
    assert 0.2 < one < 0.3


@pytest.mark.parametrize("counts", [Counts(8, 0, 25, 30), Counts(0, 19, 25, 30)])
def test_the_exact_limit_is_where_the_largest_probability_exceeds_the_error(
    counts: Counts,
) -> None:
    region = ranked_region(counts, AT_ONE)
    fpr = np.concatenate([[0.0], np.geomspace(1e-9, 1.0, 20_001)])

    def largest(delta: float) -> float:
        fnr = AT_ONE.least_fnr(fpr, delta)
        false = binom.pmf(np.arange(counts.n_out + 1)[:, None], counts.n_out, fpr)
        missed = binom.cdf(region.most_fn[:, None], counts.n_in, fnr)
        return float(np.max(np.sum(false * missed, axis=0)))

    limit = level_limit(counts, AT_ONE, confidence=1 - ALPHA)
    assert limit > 0.0
    assert largest(limit) <= ALPHA
    assert largest(limit * 1.01) > ALPHA


def test_a_claim_that_is_exactly_met_is_seldom_exceeded() -> None:
    """By the probabilities of all outcomes, at rates all along what a delta allows."""
    n_in, n_out = 9, 7
    limits = np.array(
        [
            [
                level_limit(Counts(missed, false, n_in, n_out), AT_ONE, confidence=1 - ALPHA)
                for false in range(n_out + 1)
            ]
            for missed in range(n_in + 1)
        ]
    )
    for delta, fpr in product((0.0, 0.05, 0.3), (0.0, 0.001, 0.01, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)):
        fnr = float(AT_ONE.least_fnr(np.array([fpr]), delta)[0])
        outcomes = np.outer(
            binom.pmf(np.arange(n_in + 1), n_in, fnr), binom.pmf(np.arange(n_out + 1), n_out, fpr)
        )
        assert outcomes[limits > delta].sum() <= ALPHA + 1e-12


def test_the_threshold_is_that_of_the_rare_event() -> None:
    """A score that is shifted a little, and far beyond for a few members."""
    rng = np.random.default_rng(0)
    member = np.arange(400) < 200
    scores = rng.normal(size=400) + 0.3 * member
    scores[:40] = 9.0
    threshold = choose_threshold_by(scores, member, GUARANTEE.threshold_statistic, confidence=0.95)
    assert 3.0 < threshold.value <= 9.0
