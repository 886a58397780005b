"""What choices and selections cost: by the probabilities of all their outcomes."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import dpaudit
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.gaussian import gaussian_epsilon
from dpaudit.replaying.ledger import chance_of_one_world, computed
from dpaudit.replaying.loss import How, StepLoss, largest_ratio, losses
from dpaudit.replaying.record import ReplayRecord
from dpaudit.replaying.transcript import ChoiceStep, Pair, Site, Toss, Transcript
from dpaudit.results.verdict import Verdict

HERE = Site("code.py", 1, "f")
SCHEMA = dpaudit.Schema.from_document(
    {"columns": [{"name": "x", "kind": "continuous", "lower": 0, "upper": 1}]}
)


def table() -> pd.DataFrame:
    return pd.DataFrame({"x": np.append(np.linspace(0.05, 0.6, 39), 0.99)})


class Released:
    """One number, in every row."""

    def __init__(self, value: float) -> None:
        self.value = value

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        return pd.DataFrame({"x": np.full(n, self.value)})


class GaussianMax:
    """The class with the most noisy votes: 6 to 0, or 5 to 1 with the last record."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> Released:
        high = int((data["x"] > 0.9).any())
        votes = np.array([6.0 - high, float(high)])
        return Released(float(np.argmax(votes + np.random.default_rng(seed).normal(0, 1, 2))))


class QuantileByLoop:
    """The exponential mechanism for the median, by subtracting weights from a uniform draw."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> Released:
        places, rng = np.linspace(0.0, 1.0, 11), np.random.default_rng(seed)
        low = np.array([float((data["x"] < place).sum()) for place in places])
        weights = np.exp(-0.5 * np.abs(2.0 * low - len(data)) / 2.0)
        left = rng.random() * weights.sum()
        at = -1
        while left >= 0:
            at += 1
            left -= weights[at]
        return Released(float(places[at]))


def replayed(generator: Any, **given: Any) -> ReplayRecord:
    return dpaudit.replay(generator, table(), schema=SCHEMA, target="row:39", replays=3, **given)


def coin(inside: float, outside: float, *, under: bool, number: int | None) -> ChoiceStep:
    logs = [np.log([one if under else 1.0 - one]) for one in (inside, outside)]
    return ChoiceStep(
        site=HERE,
        log_probability=Pair(*logs),
        largest=abs(math.log(inside / outside)),
        table=Pair(np.array([inside]), np.array([outside])),
        keys=frozenset({("coin", HERE, number or 0)}),
        coin=number,
        under=np.array([under]),
    )


def cost(choices: list[ChoiceStep], delta: float) -> float | None:
    transcript = Transcript(choices=choices)
    return computed(transcript, losses(transcript), PrivacyClaim(epsilon=1.0, delta=delta)).value


@pytest.mark.parametrize("delta", [1e-5, 1e-2])
def test_a_coin_costs_what_its_two_outcomes_show(delta: float) -> None:
    p, q = 0.3, 0.1
    found = cost([coin(p, q, under=True, number=1)], delta)
    exact = max(math.log((p - delta) / q), math.log((1 - q - delta) / (1 - p)))
    assert found == pytest.approx(exact, abs=2e-3)


def test_comparisons_of_one_coin_are_one_choice_and_of_two_coins_are_two() -> None:
    inside, outside = [(0.2, 0.1), (0.5, 0.5 / 0.9)], (0.1, 0.5 / 0.9)
    one = [coin(inside[0][0], outside[0], under=False, number=1)]
    one.append(coin(inside[1][0], outside[1], under=False, number=1))
    [loss] = losses(Transcript(choices=one))
    assert loss.value == pytest.approx(math.log(0.8 * 0.5 / (0.9 * (1 - outside[1]))))
    [whole] = loss.tables
    assert whole.inside.tolist() == pytest.approx([0.2, 0.8 * 0.5, 0.8 * 0.5])
    assert whole.outside.tolist() == pytest.approx([0.1, 0.5, 0.4])
    assert loss.largest == pytest.approx(math.log(2))
    two = [one[0], ChoiceStep(**{**vars(one[1]), "coin": 2})]
    assert len(losses(Transcript(choices=two))) == 2


def test_places_are_composed_as_often_as_they_are_drawn() -> None:
    both = Pair(np.array([0.6, 0.4]), np.array([0.5, 0.5]))

    def step(count: int) -> ChoiceStep:
        logs = Pair(*(np.log(one)[np.zeros(count, int)] for one in both))
        return ChoiceStep(
            site=HERE, log_probability=logs, largest=count * math.log(1.25), table=both
        )

    assert largest_ratio(both) == pytest.approx(math.log(1.25))
    assert cost([step(1)], 1e-9) == pytest.approx(math.log(1.25), abs=2e-3)
    many = cost([step(60)], 1e-5)
    assert many is not None
    # a Gaussian step of mu: the mean of the loss of 60 draws is mu ** 2 / 2
    mean = 60 * (0.6 * math.log(1.2) + 0.4 * math.log(0.8))
    mu = math.sqrt(2 * mean)
    assert many == pytest.approx(gaussian_epsilon(mu, 1e-5), rel=0.1)


def test_a_rare_winner_that_costs_more_than_the_claim_is_no_consistent_replay() -> None:
    record = replayed(GaussianMax(), epsilon=1.0, delta=1e-5)
    p, q = norm.cdf(-4 / math.sqrt(2)), norm.cdf(-6 / math.sqrt(2))
    assert record.computed == pytest.approx(math.log((p - 1e-5) / q), abs=5e-3)
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert "more than the claim, which is not proved" in str(record.reasons)


@pytest.mark.ci
def test_a_rare_winner_within_the_claim_is_a_consistent_replay() -> None:
    assert replayed(GaussianMax(), epsilon=5.4, delta=1e-5).verdict is Verdict.CONSISTENT


@pytest.mark.parametrize("delta", [pytest.param(0.0, marks=pytest.mark.ci), 1e-5])
def test_an_exponential_mechanism_by_a_loop_costs_no_more_than_it_is(delta: float) -> None:
    record = replayed(QuantileByLoop(), epsilon=1.0, delta=delta)
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.computed is not None
    assert 0.1 < record.computed <= 1.0
    assert not any("that were not drawn" in one for one in record.reasons)


def test_a_step_whose_outcomes_are_not_known_counts_by_its_limit() -> None:
    transcript = Transcript(choices=[coin(0.3, 0.1, under=True, number=None)])
    found = [*losses(transcript), StepLoss(HERE, How.SELECTED, 0.5, 0.7)]
    both = computed(transcript, found, PrivacyClaim(epsilon=1.0, delta=1e-5)).value
    assert both == pytest.approx(math.log((0.3 - 1e-5) / 0.1) + 0.7, abs=1e-2)


@pytest.mark.parametrize(("share", "above"), [(1.0, True), (2e-5, True), (5e-6, False)])
def test_an_outcome_of_one_world_costs_without_limit_unless_delta_covers_it(
    share: float, above: bool
) -> None:
    table = Pair(np.array([1.0 - share, share]), np.array([1.0, 0.0]))
    step = ChoiceStep(
        site=HERE, log_probability=Pair(*(np.zeros(1),) * 2), largest=math.inf, table=table
    )
    transcript = Transcript(choices=[step])
    found = losses(transcript)
    assert chance_of_one_world(found) == pytest.approx(share)
    cost = computed(transcript, found, PrivacyClaim(epsilon=1.0, delta=1e-5))
    assert (cost.value is None) == above
    assert above == ("only one world has" in str(cost.note))


def test_a_choice_that_a_coin_of_the_record_decides_is_a_mixture() -> None:
    step = ChoiceStep(**{**vars(coin(0.3, 0.1, under=True, number=None)), "toss": 0})
    transcript = Transcript(choices=[step], tosses=[Toss(HERE, 0.1, inside=True)])
    found = losses(transcript)
    cost = computed(transcript, found, PrivacyClaim(epsilon=1.0, delta=1e-5)).value
    assert cost == pytest.approx(math.log(1.0 + 0.1 * (0.3 / 0.1 - 1.0)))


class PermuteAndFlip:
    """Permute-and-flip over two classes of records, 2 to 0 or 2 to 1.

    The second one is asked only where it comes first.
    """

    def __init__(self, epsilon: float = 1.0) -> None:
        self.epsilon = epsilon

    def fit(self, data: pd.DataFrame, *, seed: int) -> Released:
        rng = random.Random(seed)
        votes = [2, int((data["x"] > 0.9).any())]
        order = [0, 1]
        rng.shuffle(order)
        for place in order:
            if rng.random() <= math.exp(self.epsilon * (votes[place] - 2)):
                return Released(float(place))
        return Released(0.0)


@pytest.mark.parametrize(("epsilon", "verdict"), [(1.0, Verdict.CONSISTENT), (3.0, None)])
def test_a_choice_that_only_some_replays_make_costs_what_it_costs(
    epsilon: float, verdict: Verdict | None
) -> None:
    found = dpaudit.replay(
        PermuteAndFlip(epsilon), table(), schema=SCHEMA, target="row:39", replays=6, epsilon=1.0
    )
    if verdict is None:
        assert found.verdict is not Verdict.CONSISTENT
    else:
        assert found.verdict is verdict
