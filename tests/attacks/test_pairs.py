"""Pairs of features: found where only both together tell, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.bounds import auc
from dpaudit.plugins.protocols import BoolArray, FloatArray
from dpaudit_attacks.chosen import WithPairs, train_chosen
from dpaudit_attacks.screening import FEWEST, NO_PAIRS, PAIRED, find_pairs

FEATURES = 300


def trials(n: int, seed: int) -> tuple[FloatArray, BoolArray, np.random.Generator]:
    """Features of several kinds that say nothing: some positive, some rare, some twice."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, FEATURES))
    features[:, ::3] = np.exp(features[:, ::3])
    features[:, 1::7] = np.rint(features[:, 1::7])
    features[:, 10] = rng.random(n) < 0.03
    features[:, 11] = features[:, 10] + (np.arange(n) == 3)
    features[:, 12] = 2.0 * features[:, 13] - 7.0
    features[:, 14] = features[:, 13] + 1e-13 * rng.normal(size=n)
    return features, rng.permutation(n) % 2 == 0, rng


def noise_used_twice(n: int, seed: int) -> tuple[FloatArray, BoolArray]:
    features, member, rng = trials(n, seed)
    noise = rng.laplace(0, 8, n)
    features[:, 5] = noise + 0.5 * member
    features[:, 200] = 3 * noise
    return features, member


def ratio(n: int, seed: int) -> tuple[FloatArray, BoolArray]:
    features, member, rng = trials(n, seed)
    factor = np.exp(rng.normal(0, 1.5, n))
    features[:, 5] = 20.0 * factor * np.where(member, 1.01, 1.0)
    features[:, 200] = 7.0 * factor
    return features, member


def same_in_one_world(n: int, seed: int) -> tuple[FloatArray, BoolArray]:
    features, member, rng = trials(n, seed)
    features[:, 5] = rng.normal(size=n)
    features[:, 200] = np.where(member, -features[:, 5], rng.normal(size=n)) + 40.0
    return features, member


@pytest.mark.parametrize(
    ("leak", "logarithm", "distance", "least"),
    [
        (noise_used_twice, False, False, 0.99),
        (ratio, True, False, 0.99),
        (same_in_one_world, False, True, 0.9),
    ],
)
def test_a_pair_that_tells_together_is_found_and_scored(
    leak: object, logarithm: bool, distance: bool, least: float
) -> None:
    assert callable(leak)
    features, member = leak(160, 1)
    alone = [abs(auc(features[:, at], member) - 0.5) for at in (5, 200)]
    assert max(alone) < 0.15
    found = find_pairs(features, member, np.arange(FEATURES))
    at = found.first.tolist().index(5)
    assert found.second[at] == 200
    assert (found.logarithm[at], found.distance[at]) == (logarithm, distance)
    scorer = train_chosen(features, member, seed=0)
    others, those = leak(400, 2)
    assert auc(scorer(others), those) > least
    assert np.array_equal(scorer(others)[:7], scorer(others[:7]))


def test_where_nothing_tells_no_pair_is_found() -> None:
    hits = 0
    for seed in range(150):
        features, member, _ = trials(120, seed)
        hits += len(find_pairs(features, member, np.arange(FEATURES))) > 0
    assert hits <= 3  # one in 400 is expected; P(more than 3) < 1e-3


def test_a_feature_that_tells_alone_needs_no_pair() -> None:
    features, member, _ = trials(160, 3)
    features[:, 20] += 3.0 * member
    assert len(find_pairs(features, member, np.arange(FEATURES))) == 0
    assert not isinstance(train_chosen(features, member, seed=0).scorer, WithPairs)  # type: ignore[attr-defined]


def test_few_trials_and_few_features_have_none() -> None:
    features, member = noise_used_twice(FEWEST - 1, 4)
    assert find_pairs(features, member, np.arange(FEATURES)) is not None
    assert len(find_pairs(features, member, np.arange(FEATURES))) == 0
    features, member = noise_used_twice(160, 4)
    assert len(find_pairs(features, member, np.array([5]))) == 0
    assert len(find_pairs(features, member, np.array([], dtype=np.int64))) == 0
    assert len(find_pairs(features, member, np.array([5, 200]))) > 0


def test_of_many_features_those_with_the_most_values_are_screened() -> None:
    features, member = noise_used_twice(160, 5)
    counts = np.random.default_rng(0).integers(0, 3, (160, 2 * PAIRED)).astype(float)
    many = np.concatenate([counts, features], axis=1)
    found = find_pairs(many, member, np.arange(many.shape[1]))
    assert 2 * PAIRED + 5 in found.first


def test_numbers_far_from_the_fitting_ones_stay_finite() -> None:
    features, member = ratio(160, 6)
    found = find_pairs(features, member, np.arange(FEATURES))
    strange = np.zeros((3, FEATURES))
    strange[1], strange[2] = -1e9, 1e9
    assert np.isfinite(found.extended(strange)).all()
    assert NO_PAIRS.extended(strange) is strange
