"""Thresholds, error counts, AUC and ROC."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from dpaudit.bounds import (
    Counts,
    Direction,
    Threshold,
    ThresholdRule,
    auc,
    aucs,
    choose_threshold,
    clopper_pearson,
    count_errors,
    exact,
    roc,
)
from dpaudit.errors import SettingsError

SETTING: dict[str, Any] = {"delta": 1e-5, "confidence": 0.95}


def worlds(n: int) -> np.ndarray:
    return np.arange(2 * n) < n


def test_separable_scores_are_cut_in_the_gap() -> None:
    scores = np.array([5.0, 6.0, 7.0, 8.0, 1.0, 2.0, 3.0, 4.0])
    member = worlds(4)
    assert choose_threshold(scores, member, **SETTING) == Threshold(4.5, Direction.HIGHER)
    assert choose_threshold(-scores, member, **SETTING) == Threshold(-4.5, Direction.LOWER)
    for sign in (1.0, -1.0):
        threshold = choose_threshold(sign * scores, member, **SETTING)
        assert count_errors(sign * scores, member, threshold) == Counts(0, 0, 4, 4)


def test_a_score_at_the_cut_counts_as_higher() -> None:
    scores = np.array([0.5, 1.0, 1.5])
    np.testing.assert_array_equal(
        Threshold(1.0, Direction.HIGHER).guesses_in(scores), [False, True, True]
    )
    np.testing.assert_array_equal(
        Threshold(1.0, Direction.LOWER).guesses_in(scores), [True, False, False]
    )


def test_tied_scores_are_never_split() -> None:
    scores = np.array([1.0] * 30 + [0.0] * 10 + [1.0] * 5 + [0.0] * 35)
    member = worlds(40)
    threshold = choose_threshold(scores, member, **SETTING)
    assert threshold == Threshold(0.5, Direction.HIGHER)
    assert count_errors(scores, member, threshold) == Counts(10, 5, 40, 40)


def test_neighbouring_floats_are_separated() -> None:
    low = 1.0
    high = np.nextafter(low, 2.0)
    scores = np.array([high] * 10 + [low] * 10)
    threshold = choose_threshold(scores, worlds(10), **SETTING)
    assert count_errors(scores, worlds(10), threshold) == Counts(0, 0, 10, 10)


def test_constant_scores_prove_nothing() -> None:
    scores = np.full(20, 3.0)
    threshold = choose_threshold(scores, worlds(10), **SETTING)
    counts = count_errors(scores, worlds(10), threshold)
    assert counts.false_negatives + counts.false_positives == 10
    assert exact(*counts, **SETTING) == 0.0


def test_weak_scores_are_cut_by_the_youden_index() -> None:
    # No cut has a positive bound: 6 of 10 right in either world beats the lopsided cuts.
    scores = np.array([2.0] * 6 + [1.0] * 4 + [2.0] * 4 + [1.0] * 5 + [0.0])
    threshold = choose_threshold(scores, worlds(10), **SETTING)
    assert clopper_pearson(*count_errors(scores, worlds(10), threshold), **SETTING) == 0.0
    assert threshold == Threshold(1.5, Direction.HIGHER)


def test_equals_are_settled_by_the_median() -> None:
    # Both inner cuts make one error; 3 and 3 scores lie on either side of the lower one.
    scores = np.array([1.0, 5.0, 6.0, 0.0, 0.0, 1.5])
    member = np.array([True, True, True, False, False, False])
    assert choose_threshold(scores, member, **SETTING) == Threshold(0.5, Direction.HIGHER)


@given(seed=st.integers(0, 10_000), n=st.integers(3, 40), levels=st.integers(2, 30))
@settings(max_examples=40, deadline=None)
def test_no_other_threshold_has_a_larger_bound(seed: int, n: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    member = rng.permutation(worlds(n))
    scores = rng.integers(0, levels, 2 * n) + 0.5 * levels * member * rng.choice([-1.0, 1.0])
    chosen = choose_threshold(scores, member, **SETTING)
    best = clopper_pearson(*count_errors(scores, member, chosen), **SETTING)
    for value in np.unique(scores):
        for direction in Direction:
            counts = count_errors(scores, member, Threshold(float(value), direction))
            assert clopper_pearson(*counts, **SETTING) <= best + 1e-9


def test_inverted_scores_choose_the_same_cut() -> None:
    rng = np.random.default_rng(3)
    member = worlds(60)
    scores = member + rng.normal(size=120)
    upright = choose_threshold(scores, member, **SETTING)
    inverted = choose_threshold(-scores, member, **SETTING)
    assert upright.direction is Direction.HIGHER
    assert inverted == Threshold(-upright.value, Direction.LOWER)


def test_threshold_chosen_on_the_scored_trials_breaks_the_bound() -> None:
    # Scores that know nothing: a valid bound exceeds 0 in at most 5 % of audits.
    rng = np.random.default_rng(11)
    member = worlds(60)
    audits = 200
    tuned_on_test = split = 0
    for _ in range(audits):
        fitting, scored = rng.normal(size=(2, 120))
        for basis in (fitting, scored):
            threshold = choose_threshold(basis, member, **SETTING)
            violated = exact(*count_errors(scored, member, threshold), **SETTING) > 0.0
            if basis is fitting:
                split += violated
            else:
                tuned_on_test += violated
    assert split <= 0.05 * audits + 3 * np.sqrt(0.05 * 0.95 * audits)
    assert tuned_on_test > 0.1 * audits
    assert tuned_on_test > 2 * split


def test_auc_matches_scikit_learn_and_pairs() -> None:
    rng = np.random.default_rng(7)
    member = rng.permutation(worlds(50))
    scores = np.round(rng.normal(size=100) + 0.7 * member, 1)
    assert auc(scores, member) == pytest.approx(roc_auc_score(member, scores), abs=1e-12)
    pairs = scores[member][:, None] - scores[~member][None, :]
    assert auc(scores, member) == pytest.approx(np.mean((np.sign(pairs) + 1.0) / 2.0))
    assert auc(-scores, member) == pytest.approx(1.0 - auc(scores, member))


def test_aucs_of_many_attacks_are_those_of_each() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(30, 4))
    scores[:, 1:3] = scores[:, 1:3].round()  # ties
    scores[:, 3] = 1.0
    member = rng.permutation(np.arange(30) < 12)
    expected = [auc(column, member) for column in scores.T]
    np.testing.assert_allclose(aucs(scores, member), expected, atol=1e-15)


def test_auc_of_constant_and_perfect_scores() -> None:
    member = worlds(5)
    assert auc(np.zeros(10), member) == 0.5
    assert auc(member.astype(float), member) == 1.0


def test_roc_keeps_corners_only() -> None:
    scores = np.array([4.0, 3.0, 1.0, 2.0, 0.5, 0.0])
    member = np.array([True, True, True, False, False, False])
    curve = roc(scores, member)
    np.testing.assert_allclose(curve.fpr, [0.0, 0.0, 1 / 3, 1 / 3, 1.0])
    np.testing.assert_allclose(curve.tpr, [0.0, 2 / 3, 2 / 3, 1.0, 1.0])
    constant = roc(np.zeros(6), member)
    np.testing.assert_allclose(constant.fpr, [0.0, 1.0])
    np.testing.assert_allclose(constant.tpr, [0.0, 1.0])


def test_area_below_the_roc_is_the_auc() -> None:
    rng = np.random.default_rng(9)
    member = rng.permutation(worlds(80))
    scores = np.round(rng.normal(size=160) + member, 1)
    curve = roc(scores, member)
    area = np.sum(np.diff(curve.fpr) * (curve.tpr[1:] + curve.tpr[:-1]) / 2.0)
    assert area == pytest.approx(auc(scores, member), abs=1e-12)


@pytest.mark.parametrize(
    ("scores", "member", "complaint"),
    [
        (np.zeros(3), np.array([True, False]), "shape"),
        (np.zeros((2, 2)), np.ones((2, 2), dtype=bool), "shape"),
        (np.zeros(2), np.array([1, 0]), "booleans"),
        (np.array([np.nan, 0.0]), np.array([True, False]), "finite"),
        (np.zeros(2), np.array([True, True]), "one world"),
    ],
)
def test_scores_that_do_not_fit_are_refused(
    scores: np.ndarray, member: np.ndarray, complaint: str
) -> None:
    for use in (auc, roc):
        with pytest.raises(SettingsError, match=complaint):
            use(scores, member)
    with pytest.raises(SettingsError, match=complaint):
        choose_threshold(scores, member, **SETTING)


def test_every_rule_has_a_name_and_none_is_the_best_on_scored_trials() -> None:
    assert [rule.value for rule in ThresholdRule] == [
        "cross-validated",
        "hold-out",
    ]
