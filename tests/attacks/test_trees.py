"""The forest whose trees are grown together."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score

from dpaudit.plugins.protocols import BoolArray, FloatArray
from dpaudit_attacks.trees import Trees, _encode, grow


def drawn(n: int, f: int, seed: int) -> tuple[FloatArray, BoolArray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, f)), rng.permutation(np.arange(n) % 2 == 1)


def grown(features: FloatArray, member: BoolArray, *, trees: int = 50, seed: int = 0) -> Trees:
    cuts = 2 * features.shape[1]
    return grow(features, member, trees=trees, cuts=cuts, rng=np.random.default_rng(seed))


def test_every_tree_gives_each_vector_that_it_grew_on_its_own_world() -> None:
    features, member = drawn(80, 6, 0)
    assert grown(features, member).votes(features).tolist() == (50.0 * member).tolist()


def test_leaves_that_nothing_splits_vote_in_part() -> None:
    features = np.array([[0.0], [0.0], [0.0], [0.0], [1.0], [1.0]])
    member = np.array([True, False, False, False, True, True])
    assert grown(features, member, trees=8).votes(np.array([[0.0], [1.0]])).tolist() == [2.0, 8.0]


def test_of_constant_features_every_tree_is_a_leaf() -> None:
    forest = grown(np.ones((6, 3)), np.arange(6) < 2, trees=6)
    assert forest.votes(np.zeros((1, 3))) == pytest.approx(2.0)


def test_a_joint_fact_of_two_features_is_learnt() -> None:
    rng = np.random.default_rng(1)
    features = rng.integers(0, 2, (400, 2)).astype(np.float64)
    member = features[:, 0] != features[:, 1]
    votes = grown(features[:100], member[:100]).votes(features[100:])
    assert ((votes > 25) == member[100:]).all()


def test_a_cut_separates_neighbouring_numbers() -> None:
    low, high = 1.0, np.nextafter(1.0, 2.0)
    features = np.where(np.arange(20) < 10, low, high)[:, None]
    assert (grown(features, np.arange(20) >= 10).votes(features) > 25).sum() == 10


def test_only_the_order_of_values_matters() -> None:
    features, member = drawn(60, 5, 2)
    scaled = np.exp(3 * features)
    first, second = (grown(one, member) for one in (features, scaled))
    for one, other in zip(first.groups, second.groups, strict=True):
        np.testing.assert_array_equal(one.feature, other.feature)
        np.testing.assert_array_equal(one.share, other.share)


def test_trees_are_as_many_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    features, member = drawn(40, 4, 3)
    monkeypatch.setattr("dpaudit_attacks.trees.BLOCK", 1000)
    forest = grown(features, member, trees=10)
    assert len(forest.groups) == 4
    assert len(forest) == 10
    assert forest.votes(features).tolist() == (10.0 * member).tolist()


def facts(n: int, seed: int) -> tuple[FloatArray, BoolArray]:
    """Forty features: one in a narrow interval, five shifted, if the record was there."""
    features, member = drawn(n, 40, seed)
    features[:, 4] *= np.where(member, 0.3, 1.2)
    features[:, 10:15] += 0.4 * member[:, None]
    return features, member


@pytest.mark.ci
def test_it_sees_as_much_as_scikit_learns_forest() -> None:
    ours, theirs = [], []
    for seed in range(8):
        features, member = facts(500, seed)
        fit, rest = slice(0, 120), slice(120, None)
        votes = grown(features[fit], member[fit], trees=100, seed=seed).votes(features[rest])
        forest = RandomForestClassifier(100, max_features=1 / 3, random_state=seed)
        shares = forest.fit(features[fit], member[fit]).predict_proba(features[rest])[:, 1]
        ours.append(roc_auc_score(member[rest], votes))
        theirs.append(roc_auc_score(member[rest], shares))
    assert np.mean(ours) > np.mean(theirs) - 0.01


def test_nothing_is_found_where_there_is_nothing() -> None:
    found = []
    for seed in range(8):
        features, member = drawn(400, 30, seed)
        votes = grown(features[:100], member[:100], seed=seed).votes(features[100:])
        found.append(roc_auc_score(member[100:], votes))
    assert np.mean(found) == pytest.approx(0.5, abs=0.05)  # 4 standard errors


@pytest.mark.parametrize(("trials", "size"), [(128, 1), (129, 2), (2**15 + 1, 4)])
def test_codes_take_as_few_bytes_as_hold_the_number_of_trials(trials: int, size: int) -> None:
    values = np.random.default_rng(1).permutation(trials)
    codes = _encode(values[:, None].astype(float)).codes[:, 0]
    assert codes.itemsize == size
    assert codes.tolist() == values.tolist()
