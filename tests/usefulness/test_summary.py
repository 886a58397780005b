"""Means, intervals, the test against noise, and best-of scores as they are published."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpaudit.errors import SettingsError
from dpaudit.usefulness.experiment import HEADLINE, MEAN, Measure, Repeat, ScoreName, Setting
from dpaudit.usefulness.report import mean_interval, score_interval, summarise, welch_p_value

RNG = np.random.default_rng(11)


def repeat(lda: float, gbm: float) -> Repeat:
    named = {MEAN: (lda + gbm) / 2, "lda": lda, "gbm": gbm}
    return Repeat(
        {ScoreName(Measure.AUROC, Setting.TRANSFER, name): of for name, of in named.items()}, 0
    )


def test_welch_is_scipys() -> None:
    one, other = RNG.normal(0.6, 0.1, 7), RNG.normal(0.5, 0.3, 4)
    expected = stats.ttest_ind(one, other, equal_var=False, alternative="greater").pvalue
    assert welch_p_value(one, other) == pytest.approx(expected)


def test_lists_without_variation_are_compared_as_they_are() -> None:
    half = np.full(5, 0.5)
    assert welch_p_value(half + 0.1, half) == 0.0
    assert welch_p_value(half, half) == 1.0
    assert welch_p_value(half, half + 0.1) == 1.0


def test_noise_beats_noise_as_often_as_it_may() -> None:
    # Scores of noise are wide and have two humps: a random direction is right or wrong.
    def scores() -> list[float]:
        return list(np.clip(0.5 + RNG.choice([-0.3, 0.3], 10) + RNG.normal(0, 0.1, 10), 0, 1))

    p_values = [welch_p_value(np.array(scores()), np.array(scores())) for _ in range(2000)]
    rejected = sum(value <= 0.05 for value in p_values)
    assert stats.binom.sf(rejected - 1, 2000, 0.05) > 1e-3
    assert rejected > 60  # the test is not blunt


def test_the_interval_is_students() -> None:
    values = np.array([0.4, 0.5, 0.9])
    low, high = mean_interval(values, confidence=0.9)
    expected = stats.t.interval(0.9, 2, loc=0.6, scale=stats.sem(values))
    assert (low, high) == pytest.approx(expected)


def test_no_interval_says_more_than_a_score_can_be() -> None:
    assert score_interval(np.array([0.1, 0.9]), confidence=0.95) == (0.0, 1.0)


def test_best_is_of_each_classifier_and_then_the_mean() -> None:
    [main, lda, gbm] = summarise(
        [repeat(0.9, 0.5), repeat(0.7, 0.8)],
        noise=[repeat(0.2, 0.6), repeat(0.8, 0.4)],
        constant=repeat(0.5, 0.5),
        real=Repeat({ScoreName(Measure.AUROC, Setting.REAL, MEAN): 0.97}, 0),
        confidence=0.95,
    )
    assert main.name == HEADLINE
    assert main.mean == pytest.approx(0.725)
    assert (main.best, main.noise_best) == pytest.approx((0.85, 0.7))
    assert (lda.best, gbm.best) == (0.9, 0.8)
    assert (main.real, main.constant, lda.real) == (0.97, 0.5, None)
    assert main.noise_mean == pytest.approx(0.5)
    assert main.beats_noise == (main.p_value <= 0.05)


def test_a_number_that_some_repeat_lacks_is_left_out() -> None:
    short = repeat(0.5, 0.5)
    whole = Repeat({**short.scores, ScoreName(Measure.PAIRS): 0.8}, 0)
    for other, count in ((whole, 4), (short, 3)):
        found = summarise(
            [whole, whole], noise=[whole, other], constant=short, real=short, confidence=0.95
        )
        assert len(found) == count


def test_means_over_other_classifiers_are_not_compared() -> None:
    twelve = repeat(0.5, 0.6)
    eleven = Repeat({k: v for k, v in twelve.scores.items() if k.classifier != "gbm"}, 0)
    for repeats, noise in (([twelve, eleven], [twelve, twelve]), ([eleven] * 2, [twelve] * 2)):
        with pytest.raises(SettingsError, match="measured with other classifiers"):
            summarise(repeats, noise=noise, constant=twelve, real=twelve, confidence=0.95)
