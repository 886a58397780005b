"""The parts of PATE that its privacy proof rests on: exact noise and labels that are paid for."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binomtest, chisquare

from dpaudit.account import LabelBudget, VoteTable
from dpaudit.account.noisy_max import (
    ConfidentNoisyMax,
    GaussianNoisyMax,
    LaplaceNoisyMax,
    NoisyMax,
)
from dpaudit.errors import BudgetError, SettingsError
from dpaudit_generators.pate import (
    ClassRelease,
    ConfidentRelease,
    LabelRelease,
    RandomBits,
    discrete_gaussian,
    discrete_laplace,
)

Rows = npt.NDArray[np.float64]
TINY = 1e-6  # a p-value that a correct sampler meets once in a million runs; seeds are fixed


def _gnmax(classes: int = 3, *, scale: float = 1.5) -> GaussianNoisyMax:
    return GaussianNoisyMax(teachers=10, classes=classes, scale=scale)


# Random bits and whole-number noise.


@pytest.mark.parametrize("bound", [2, 3, 7, 256, 257])
def test_integers_below_a_bound_are_uniform(bound: int) -> None:
    bits = RandomBits(1, "test")
    drawn = [bits.below(bound) for _ in range(40 * bound)]
    assert chisquare(np.bincount(drawn, minlength=bound)).pvalue > TINY
    assert bits.below(1) == 0


def _agrees(drawn: list[int], weight: Callable[[int], float]) -> bool:
    """Chi-square over all values that are expected at least ten times; the rest is pooled."""
    support = range(-2000, 2001)
    total = math.fsum(weight(x) for x in support)
    expected = {x: len(drawn) * weight(x) / total for x in support}
    common = [x for x in support if expected[x] >= 10]
    counts = [drawn.count(x) for x in common]
    counts.append(len(drawn) - sum(counts))
    rest = len(drawn) - sum(expected[x] for x in common)
    return bool(chisquare(counts, [*(expected[x] for x in common), rest]).pvalue > TINY)


@pytest.mark.parametrize("scale", [pytest.param(0.7, marks=pytest.mark.ci), 5.25])
def test_noise_has_the_distribution_that_is_accounted_for(scale: float) -> None:
    bits = RandomBits(3, "test")
    laplace = [discrete_laplace(scale, bits) for _ in range(3000)]
    gaussian = [discrete_gaussian(scale, bits) for _ in range(3000)]
    assert _agrees(laplace, lambda x: math.exp(-abs(x) / scale))
    assert _agrees(gaussian, lambda x: math.exp(-(x**2) / (2 * scale**2)))
    # The check can fail.
    assert not _agrees(laplace, lambda x: math.exp(-abs(x) / (1.2 * scale)))
    assert not _agrees(gaussian, lambda x: math.exp(-(x**2) / (2 * (1.2 * scale) ** 2)))


def test_without_a_seed_every_bit_is_the_operating_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    entropy = secrets.token_bytes

    def token_bytes(n: int) -> bytes:
        asked.append(n)
        return entropy(n)

    monkeypatch.setattr(secrets, "token_bytes", token_bytes)
    table = VoteTable.gaussian(9, 3.0).quantised()
    LabelRelease(table, LabelBudget(4), seed=None).release([0, 3, 6, 9])
    assert asked == [32]
    ClassRelease(_gnmax(), LabelBudget(1), seed=None).release(np.array([[4, 3, 3]]))
    assert len(asked) > 2
    asked.clear()
    LabelRelease(table, LabelBudget(1), seed=1).release([5])
    assert asked == []


# Releases.


@pytest.mark.parametrize("votes", [0, 4, 5, 8])
def test_labels_of_two_classes_follow_the_table(votes: int) -> None:
    table = VoteTable.noisy_max(9, 3.0).quantised()
    labels = LabelRelease(table, LabelBudget(20_000), seed=5).release(np.full(20_000, votes))
    expected = 20_000 * table.probabilities[votes]
    ones = int(labels.sum())
    assert chisquare([ones, 20_000 - ones], [expected, 20_000 - expected]).pvalue > TINY


def _exact(counts: list[int], weight: Callable[[int], float]) -> Rows:
    """Probability of each class; equal noisy counts go to the first."""
    whole = range(-300, 301)
    noise = np.array([weight(x) for x in whole])
    shifted = np.array([np.roll(noise / noise.sum(), count) for count in counts])
    at_most = shifted.cumsum(axis=1)
    chances = []
    for i in range(len(counts)):
        others = [(at_most - shifted if j < i else at_most)[j] for j in range(3) if j != i]
        chances.append(float(np.sum(shifted[i] * np.prod(others, axis=0))))
    return np.array(chances)


def _laplace(x: int) -> float:
    return math.exp(-abs(x) / 3.0)


def _gaussian(x: int) -> float:
    return math.exp(-(x**2) / 18.0)


@pytest.mark.parametrize(
    ("kind", "weight", "other"),
    [
        (LaplaceNoisyMax, _laplace, _gaussian),
        pytest.param(GaussianNoisyMax, _gaussian, _laplace, marks=pytest.mark.ci),
    ],
)
def test_labels_of_three_classes_follow_their_probabilities(
    kind: type[NoisyMax], weight: Callable[[int], float], other: Callable[[int], float]
) -> None:
    counts = [7, 2, 0]
    release = ClassRelease(kind(teachers=9, classes=3, scale=3.0), LabelBudget(2500), seed=8)
    answers = release.release(np.tile(counts, (2500, 1)))
    found = np.bincount(answers.labels.astype(int), minlength=3)
    assert chisquare(found, 2500 * _exact(counts, weight)).pvalue > TINY
    assert chisquare(found, 2500 * _exact(counts, other)).pvalue < TINY  # it can fail


def test_two_classes_go_through_the_exact_table() -> None:
    aggregation = LaplaceNoisyMax(teachers=9, classes=2, scale=3.0)
    ones = np.random.default_rng(0).integers(10, size=500)
    votes = np.column_stack([9 - ones, ones])
    answers = ClassRelease(aggregation, LabelBudget(500), seed=6).release(votes)
    table = VoteTable.noisy_max(9, 3.0).quantised()
    drawn = LabelRelease(table, LabelBudget(500), seed=6).release(ones)
    assert np.array_equal(answers.labels, drawn)


def test_the_budget_pays_first_and_refuses_the_label_after_the_last() -> None:
    votes = np.array([[4, 3, 3]])
    pairs = np.array([[4, 6]])
    for asked, aggregation in ((votes, _gnmax()), (pairs, _gnmax(2))):
        budget = LabelBudget(5)
        release = ClassRelease(aggregation, budget, seed=1)
        release.release(np.repeat(asked, 3, axis=0))
        with pytest.raises(BudgetError):
            release.release(np.repeat(asked, 3, axis=0))
        assert budget.left == 2  # nothing was drawn
        release.release(np.repeat(asked, 2, axis=0))
        with pytest.raises(BudgetError):
            release.release(asked)
        assert len(release.release(asked[:0]).labels) == 0
        assert budget.spent == 5


def _confident(*, threshold: int, checks: int = 20) -> ConfidentNoisyMax:
    return ConfidentNoisyMax(
        answer=_gnmax(scale=0.3), threshold=threshold, check_scale=0.3, checks=checks
    )


def test_only_clear_majorities_are_answered() -> None:
    votes = np.array([[10, 0, 0], [4, 3, 3], [0, 0, 10], [3, 4, 3]])
    budget = LabelBudget(6)
    release = ConfidentRelease(_confident(threshold=7), budget, seed=1)
    answers = release.release(votes)
    assert answers.rows.tolist() == [0, 2]
    assert answers.labels.tolist() == [0, 2]
    assert budget.left == 4


def test_a_check_is_passed_as_often_as_its_noise_says() -> None:
    scale, queries = 3.0, 4000
    confident = ConfidentNoisyMax(
        answer=_gnmax(scale=0.3), threshold=8, check_scale=scale, checks=queries
    )
    release = ConfidentRelease(confident, LabelBudget(queries), seed=1)
    passed = len(release.release(np.tile([6, 2, 2], (queries, 1))).rows)
    weights = {x: math.exp(-(x**2) / (2 * scale**2)) for x in range(-60, 61)}
    chance = sum(weights[x] for x in range(2, 61)) / math.fsum(weights.values())
    assert binomtest(passed, queries, chance).pvalue > TINY
    half = math.fsum(weights[2 * x] for x in range(2, 31)) / math.fsum(
        weights[2 * x] for x in range(-30, 31)
    )
    assert binomtest(passed, queries, half).pvalue < TINY


def test_confident_answers_never_exceed_either_budget() -> None:
    clear = np.tile([10, 0, 0], (8, 1))
    budget = LabelBudget(5)
    release = ConfidentRelease(_confident(threshold=7), budget, seed=1)
    assert len(release.release(clear).rows) == 5
    with pytest.raises(BudgetError):
        release.release(clear)

    budget = LabelBudget(5)
    release = ConfidentRelease(_confident(threshold=30, checks=10), budget, seed=1)
    assert len(release.release(clear).rows) == 0
    assert budget.left == 5
    with pytest.raises(BudgetError):
        release.release(clear)  # checks cost, answered or not


def test_votes_that_are_no_votes_are_refused_without_being_quoted() -> None:
    release = ClassRelease(_gnmax(), LabelBudget(5), seed=1)
    for votes in ([[4, 3, 2]], [[11, -1, 0]], [[5, 5]], [4, 3, 3], [[4.0, 3.0, 3.0]]):
        with pytest.raises(SettingsError, match="the votes are not whole numbers") as error:
            release.release(votes)
        assert "-1" not in str(error.value)
