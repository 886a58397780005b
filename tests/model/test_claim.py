"""Claims: which have a meaning, and what follows for other neighbours."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpaudit.errors import ClaimError
from dpaudit.model.claim import Neighbours, PrivacyClaim


@pytest.mark.parametrize("epsilon", [math.nan, math.inf, -math.inf, 0, -1, -0.0])
def test_epsilon_must_be_positive_and_finite(epsilon: float) -> None:
    with pytest.raises(ClaimError, match="epsilon must be a number greater than 0"):
        PrivacyClaim(epsilon=epsilon)


@pytest.mark.parametrize("delta", [math.nan, math.inf, -1e-9, 1, 1.5])
def test_delta_must_be_a_probability_below_one(delta: float) -> None:
    with pytest.raises(ClaimError, match=r"delta must be in \[0, 1\)"):
        PrivacyClaim(epsilon=1, delta=delta)


def test_the_edges_are_claims() -> None:
    assert PrivacyClaim(epsilon=5e-324).delta == 0
    assert PrivacyClaim(epsilon=1e6, delta=math.nextafter(1, 0)).delta < 1


def test_the_same_relation_restates_nothing() -> None:
    for relation in Neighbours:
        claim = PrivacyClaim(epsilon=1, delta=1e-5, neighbours=relation)
        assert claim.under(relation) is claim


def test_nothing_follows_from_replace_one() -> None:
    claim = PrivacyClaim(epsilon=1, neighbours=Neighbours.REPLACE_ONE)
    with pytest.raises(ClaimError, match='audit with `neighbours="replace-one"`'):
        claim.under(Neighbours.ADD_REMOVE)


def test_replace_one_is_a_group_of_two() -> None:
    claim = PrivacyClaim(epsilon=1.5, delta=1e-3, source="paper")
    implied = claim.under(Neighbours.REPLACE_ONE)
    assert implied.epsilon == 3
    assert implied.delta == pytest.approx((1 + math.exp(1.5)) * 1e-3)
    assert implied.neighbours is Neighbours.REPLACE_ONE
    assert implied.source.startswith("paper, restated")


def test_an_implied_delta_stays_a_probability() -> None:
    for epsilon in (10, 700, 1e5):
        assert PrivacyClaim(epsilon=epsilon, delta=0.1).under(Neighbours.REPLACE_ONE).delta < 1
        assert PrivacyClaim(epsilon=epsilon).under(Neighbours.REPLACE_ONE).delta == 0


def test_laplace_counts_reach_the_implied_epsilon_and_no_more() -> None:
    """Two counts, Laplace noise of scale 1/epsilon: replacing a record moves both by one."""
    claim = PrivacyClaim(epsilon=0.7)
    implied = claim.under(Neighbours.REPLACE_ONE)
    grid = np.linspace(-3, 4, 141)
    noise = stats.laplace(scale=1 / claim.epsilon)

    def log_density(counts: tuple[int, int]) -> np.ndarray:
        return noise.logpdf(grid - counts[0])[:, None] + noise.logpdf(grid - counts[1])[None, :]

    added = np.abs(log_density((1, 0)) - log_density((0, 0))).max()
    replaced = np.abs(log_density((1, 0)) - log_density((0, 1))).max()
    assert added == pytest.approx(claim.epsilon)
    assert replaced == pytest.approx(implied.epsilon)


@pytest.mark.parametrize(("epsilon", "sigma"), [(0.3, 3.0), (1.0, 2.0), (2.0, 1.0)])
def test_gaussian_counts_keep_the_implied_delta(epsilon: float, sigma: float) -> None:
    """The Gaussian mechanism's delta (Balle and Wang 2018, theorem 8) at shifts 1 and sqrt 2."""

    def delta(shift: float, at: float) -> float:
        a, b = shift / (2 * sigma), at * sigma / shift
        return float(stats.norm.cdf(a - b) - math.exp(at) * stats.norm.cdf(-a - b))

    claim = PrivacyClaim(epsilon=epsilon, delta=delta(1.0, epsilon))
    implied = claim.under(Neighbours.REPLACE_ONE)
    assert delta(1.0, 2 * epsilon) < claim.delta
    assert delta(math.sqrt(2), implied.epsilon) <= implied.delta
    assert delta(2.0, implied.epsilon) <= implied.delta  # one count moved by two: the worst case
    assert delta(2.0, implied.epsilon) > claim.delta  # keeping delta would be wrong
