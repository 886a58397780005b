"""The scorer that is chosen on the fitting trials, and what it is chosen from."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from dpaudit.plugins.protocols import BoolArray, FloatArray
from dpaudit_attacks.chosen import Forest, Linear, calibrate, fit_log_odds, train_chosen
from dpaudit_attacks.classifiers import separation, train
from dpaudit_attacks.screening import FeatureRule, Judged, best_rule, judge


def drawn(n: int, f: int, seed: int = 0) -> tuple[FloatArray, BoolArray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, f)), rng.permutation(np.arange(n) % 2 == 1)


def underlying(scorer: object) -> object:
    while hasattr(scorer, "scorer"):
        scorer = scorer.scorer
    return scorer


# Rules


def judged(features: FloatArray, member: BoolArray) -> Judged:
    return judge(features, member, np.arange(features.shape[1]))


def ruled(features: FloatArray, member: BoolArray) -> FeatureRule:
    return best_rule(judged(features, member), member, np.arange(features.shape[1]))


def test_features_are_judged_alike_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    features, member = drawn(30, 11)
    whole = judged(features, member)
    monkeypatch.setattr("dpaudit_attacks.screening.BLOCK", 100)
    for one, other in zip(whole, judged(features, member), strict=True):
        np.testing.assert_array_equal(one, other)


def test_separation_from_ranks_is_that_of_the_auc() -> None:
    features, member = drawn(60, 6)
    features[:, ::2] = features[:, ::2].round()  # ties
    features[:, 5] = 7.0
    found = judged(features, member).separation
    np.testing.assert_allclose(found, separation(features, member), atol=1e-12)


def plain_gain(values: FloatArray, member: BoolArray) -> float:
    """Largest gain of log-likelihood of a cut, less the logarithm of the number of cuts."""

    def likelihood(side: BoolArray) -> float:
        inside, n = int(member[side].sum()), int(side.sum())
        return sum(k * np.log(k / n) for k in (inside, n - inside) if k)

    known = np.unique(values)
    if len(known) == 1:
        return -np.inf
    cuts = [(a + b) / 2 for a, b in pairwise(known)]
    both = [likelihood(values <= cut) + likelihood(values > cut) for cut in cuts]
    return max(both) - likelihood(np.ones(len(values), dtype=bool)) - np.log(len(cuts))


def test_gains_of_cuts_are_those_of_every_cut_tried() -> None:
    features, member = drawn(40, 8, seed=3)
    features[:, :4] = features[:, :4].round()
    features[:, 0] = 1.0
    member[:5] = True  # worlds of different sizes
    expected = [plain_gain(column, member) for column in features.T]
    np.testing.assert_allclose(judged(features, member).gains, expected, atol=1e-9)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_rule_finds_a_rare_sharp_feature_among_a_thousand(sign: float) -> None:
    features, member = drawn(200, 1000)
    features[:, 17] = sign * (member & (np.random.default_rng(9).random(200) < 0.15))
    rule = ruled(features, member)
    assert rule.feature == 17
    scores = rule(features)
    marked = features[:, 17] != 0
    assert scores[marked].min() > 1.5
    assert scores[~marked].max() < 0
    n, k = 100, int(marked.sum())
    assert scores[marked][0] == pytest.approx(np.log((k + 0.5) / 0.5))
    assert scores[~marked][0] == pytest.approx(np.log((n - k + 0.5) / (n + 0.5)))


def test_without_a_cut_there_is_no_rule() -> None:
    rule = ruled(np.ones((6, 2)), np.arange(6) % 2 == 0)
    assert rule(np.array([[5.0, -5.0]])).tolist() == [0.0]


def test_a_cut_separates_neighbouring_numbers() -> None:
    low, high = 1.0, np.nextafter(1.0, 2.0)
    features = np.where(np.arange(20) < 10, low, high)[:, None]
    rule = ruled(features, np.arange(20) >= 10)
    assert (rule(features) > 0).tolist() == [False] * 10 + [True] * 10


# Log-odds


def test_log_odds_are_those_of_scikit_learn() -> None:
    features, member = drawn(120, 5)
    features[:, 0] += member
    found = fit_log_odds(features, member.astype(np.float64), penalty=2.0)
    model = LogisticRegression(C=0.5, tol=1e-10, max_iter=1000).fit(features, member)
    np.testing.assert_allclose(found.weights, model.coef_[0], atol=1e-4)
    assert found.intercept == pytest.approx(model.intercept_[0], abs=1e-4)


def test_calibrated_log_odds_are_true_ones() -> None:
    rng = np.random.default_rng(2)
    odds = rng.normal(0.0, 2.0, 20_000)
    member = rng.random(20_000) < expit(odds)
    found = calibrate(100 * odds + 7, member)
    np.testing.assert_allclose(found(100 * odds + 7), odds, atol=0.3)
    # Mean log-likelihood in nats beyond that of a coin.
    expected = np.mean(np.log(2 * expit(np.where(member, odds, -odds))))
    assert found.gain == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("scores", [np.zeros(40), np.arange(40.0), -np.arange(40.0)])
def test_calibration_is_finite_and_keeps_the_order(scores: FloatArray) -> None:
    found = calibrate(scores, np.arange(40) >= 20)
    assert np.isfinite(found(scores)).all()
    assert found.slope > 0
    assert found.gain <= np.log(2)


def test_scores_that_say_nothing_gain_nothing() -> None:
    gains = []
    for seed in range(20):
        features, member = drawn(200, 1, seed)
        gains.append(calibrate(features[:, 0], member).gain)
    assert np.mean(gains) < 0.005


# The choice


def test_one_sharp_feature_is_read_by_a_rule() -> None:
    features, member = drawn(160, 300)
    features[:, 3] = member & (np.arange(160) % 3 > 0)
    assert isinstance(underlying(train_chosen(features, member, seed=1)), FeatureRule)


def test_a_shift_is_read_by_a_line() -> None:
    features, member = drawn(400, 100)
    features[:, :5] += member[:, None]
    scorer = train_chosen(features[:160], member[:160], seed=1)
    assert isinstance(underlying(scorer), Linear)
    assert roc_auc_score(member[160:], scorer(features[160:])) > 0.85


def test_a_fact_without_direction_is_read_by_a_forest() -> None:
    features, member = drawn(400, 20)
    features[:, 4] = np.where(member, 0.1, 1.5) * features[:, 4]
    scorer = train_chosen(features[:160], member[:160], seed=1)
    assert isinstance(underlying(scorer), Forest)
    assert roc_auc_score(member[160:], scorer(features[160:])) > 0.9


def test_scores_are_calibrated_log_odds() -> None:
    features, member = drawn(4000, 20)
    features[:, 0] += 2 * member  # its log-odds are 2 x - 2
    scores = train_chosen(features[:400], member[:400], seed=1)(features[400:])
    truth = 2 * features[400:, 0] - 2
    assert np.abs(scores - truth).mean() < 0.6
    assert np.mean(scores > 0) == pytest.approx(0.5, abs=0.05)


def test_nothing_is_found_where_there_is_nothing() -> None:
    found = []
    for seed in range(6):
        features, member = drawn(400, 100, seed)
        scores = train("chosen", features[:160], member[:160], seed=1)(features[160:])
        found.append(roc_auc_score(member[160:], scores))
    assert np.mean(found) == pytest.approx(0.5, abs=0.06)  # 4 standard errors


@pytest.mark.parametrize("n", [2, 4, 5, 8])
def test_a_few_trials_suffice(n: int) -> None:
    features, member = drawn(n, 3)
    scores = train("chosen", features, member, seed=1)(features)
    assert np.isfinite(scores).all()
    assert scores.shape == (n,)


def test_features_that_never_vary_score_nothing() -> None:
    scorer = train("chosen", np.ones((8, 3)), np.arange(8) % 2 == 0, seed=1)
    assert scorer(np.zeros((2, 3))).tolist() == [0.0, 0.0]


def test_a_feature_far_outside_keeps_scores_finite() -> None:
    features, member = drawn(60, 4)
    features[:, 0] += member
    scorer = train_chosen(features, member, seed=1)
    assert np.isfinite(scorer(np.full((1, 4), 1e200))).all()


def test_the_same_seed_gives_the_same_scores_and_scorers_can_be_stored() -> None:
    features, member = drawn(100, 30)
    features[:, :3] += member[:, None]
    first, again = (train_chosen(features, member, seed=5) for _ in range(2))
    assert (first(features) == again(features)).all()
    assert (pickle.loads(pickle.dumps(first))(features) == first(features)).all()
    # A score depends on its own vector alone.
    assert (first(features)[7:9] == first(features[7:9])).all()
