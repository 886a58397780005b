"""Mixtures over the record's own coin: draws, weights and losses against known answers."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import stats

from dpaudit.bounds.replays import hockey_stick, replayed_epsilon
from dpaudit.model.claim import PrivacyClaim
from dpaudit.plugins.protocols import World
from dpaudit.replaying import laws
from dpaudit.replaying.guarantee import EpsilonReplays
from dpaudit.replaying.judge import DrawPlan, draw_plan
from dpaudit.replaying.laws import NoiseLaw
from dpaudit.replaying.ledger import computed, ledger
from dpaudit.replaying.loss import How, losses, total
from dpaudit.replaying.mixtures import (
    CoinMixture,
    Expected,
    Steering,
    log_mixed,
    mixed_answers,
    posterior,
    steering,
)
from dpaudit.replaying.transcript import (
    AnswerSelection,
    ChoiceStep,
    Derived,
    NoisyStep,
    Pair,
    Site,
    Toss,
    Transcript,
)

SITE = Site("code.py", 1, "f")


def simulated(
    base: World, tilt: float, *, scale: float, rate: float, steps: int, size: int, seed: int = 0
) -> tuple[Any, Any]:
    """Losses towards the base world and log weights of a sub-sampled Gaussian."""
    rng = np.random.default_rng(seed)
    found, weights = np.zeros(size), np.zeros(size)
    for _ in range(steps):
        mixture = Expected(1.0 / scale, rate).in_world(base)
        drawn = mixture.drawn(tilt, rng, size=size)
        found += mixture.loss(drawn.log_ratios)
        weights += drawn.log_weights
    return found, weights


def test_answers_of_one_coin_add_up_to_one_mixture() -> None:
    ratios = [0.3, -2.0, 5.0, -np.inf]
    chance, sum_ = 0.2, 0.0
    for ratio in ratios:
        sum_ += float(log_mixed(chance, ratio))
        chance = posterior(chance, ratio)
    assert sum_ == pytest.approx(float(log_mixed(0.2, sum(ratios))))
    assert float(log_mixed(0.2, -np.inf)) == pytest.approx(np.log(0.8))
    assert float(log_mixed(1.0, 0.7)) == pytest.approx(0.7)
    assert posterior(0.2, np.log(4.0)) == pytest.approx(0.5)


@pytest.mark.parametrize("base", list(World))
@pytest.mark.parametrize("tilt", [0.0, 1.7])
@pytest.mark.parametrize(
    ("law", "shift"),
    [
        (laws.Gaussian(np.asarray(1.0)), 0.8),
        (laws.Laplace(np.asarray(1.0)), 1.0),
        (laws.DiscreteLaplace(np.asarray(1.5)), 1.0),
        (laws.Logistic(np.asarray(1.0)), 1.0),
    ],
)
def test_weighted_draws_have_the_law_of_the_world_that_they_are_drawn_from(
    law: NoiseLaw, shift: float, tilt: float, base: World
) -> None:
    rng = np.random.default_rng(1)
    drawn = CoinMixture((law, law), (3.0 + shift, 3.0), 0.3, base).drawn(tilt, rng, size=100_000)
    weights = np.exp(drawn.log_weights)
    assert float(np.mean(weights)) == pytest.approx(1.0, abs=0.02)
    for limit in (2.0, 3.0, 5.0):
        inside, outside = (
            float(law.cdf(np.asarray(limit - 3.0 - moved))) for moved in (shift, 0.0)
        )
        known = 0.3 * inside + 0.7 * outside if base is World.IN else outside
        assert float(np.mean(weights * (drawn.value <= limit))) == pytest.approx(known, abs=0.02)


def test_answers_of_several_numbers_are_drawn_along_what_moves() -> None:
    rng = np.random.default_rng(2)
    before = Pair(np.array([1.0, 5.0, 2.0]), np.array([0.0, 5.0, 0.0]))
    for law in (laws.Gaussian(np.full(3, 2.0)), laws.Laplace(np.full(3, 2.0))):
        made = [
            mixed_answers((law, law), before, 0.4, base=World.IN, tilt=0.5, rng=rng)
            for _ in range(600)
        ]
        weights = np.exp([one.log_weight for one in made])
        mean = np.mean([w * one.value for w, one in zip(weights, made, strict=True)], axis=0)
        assert mean == pytest.approx([0.4, 5.0, 0.8], abs=0.5)
        ratio = sum(
            float(np.sum(law.log_density(made[0].value - one) * sign))
            for one, sign in ((before.inside, 1), (before.outside, -1))
        )
        assert made[0].log_ratio == pytest.approx(ratio)


@pytest.mark.parametrize(
    ("scale", "rate", "steps", "tilt", "epsilon"),
    [(1.0, 0.5, 1, 4.0, 3.0), (1.0, 0.1, 10, 3.2, 2.5), (2.0, 0.2, 20, 6.0, 2.0)],
)
def test_the_divergence_is_that_of_dp_accounting(
    scale: float, rate: float, steps: int, tilt: float, epsilon: float
) -> None:
    one = pld.from_gaussian_mechanism(scale, sampling_prob=rate, value_discretization_interval=1e-3)
    known = one.self_compose(steps).get_delta_for_epsilon(epsilon)
    found = hockey_stick(
        *simulated(World.IN, tilt, scale=scale, rate=rate, steps=steps, size=20_000), epsilon
    )
    error = float(np.std(found)) / np.sqrt(20_000)
    assert abs(float(np.mean(found)) - known) < 4 * error + 0.02 * known


def test_the_divergence_in_the_other_order_is_that_of_an_integral() -> None:
    y = np.linspace(-12.0, 12.0, 200_001)
    outside = stats.norm.pdf(y)
    inside = 0.5 * outside + 0.5 * stats.norm.pdf(y - 1.0)
    known = float(np.trapezoid(np.maximum(outside - np.exp(0.4) * inside, 0.0), y))
    found = hockey_stick(*simulated(World.OUT, 1.0, scale=1.0, rate=0.5, steps=1, size=50_000), 0.4)
    assert float(np.mean(found)) == pytest.approx(known, rel=0.03)


@pytest.mark.parametrize(
    ("scale", "rate", "steps", "tilt"), [(1.0, 0.5, 1, 4.0), (1.0, 0.1, 10, 3.2)]
)
def test_twenty_replays_prove_most_of_epsilon_and_no_more(
    scale: float, rate: float, steps: int, tilt: float
) -> None:
    one = pld.from_gaussian_mechanism(scale, sampling_prob=rate, value_discretization_interval=1e-3)
    true = one.self_compose(steps).get_epsilon_for_delta(1e-5)
    found, weights = simulated(
        World.IN, tilt, scale=scale, rate=rate, steps=steps, size=20 * 200, seed=3
    )
    proved = [
        replayed_epsilon(found[at::200], weights[at::200], delta=1e-5, confidence=0.95)
        for at in range(200)
    ]
    assert float(np.median(proved)) > 0.75 * true
    # at most 5 % may be above: 20 or more of 200 would have a chance below 0.3 % then
    assert sum(one > true for one in proved) < 20


TEN = [Expected(1.0, 0.1)] * 10


def steered_draws(
    answers: list[Expected], aimed: Steering, base: World, *, size: int
) -> tuple[Any, Any]:
    """Losses and weights of transcripts that are drawn as `aimed` says, whatever it expected."""
    rng = np.random.default_rng(5)
    found, weights = np.zeros(size), np.zeros(size)
    for place in range(size):
        for number, one in enumerate(answers):
            mixture = one.in_world(base)
            towards = aimed.towards(number, float(found[place]))
            drawn = mixture.drawn(1.0, rng, towards=towards)
            found[place] += float(mixture.loss(drawn.log_ratios[0]))
            weights[place] += drawn.log_weights[0]
    return found, weights


def known_divergence(answers: list[Expected], base: World, epsilon: float) -> float:
    """By dp-accounting towards world "in", where it is the larger one; else by plain draws."""
    if base is World.IN:
        own = [
            pld.from_gaussian_mechanism(
                1.0 / one.far, sampling_prob=one.chance, value_discretization_interval=1e-3
            )
            for one in answers
        ]
        return float(
            reduce(lambda one, other: one.compose(other), own).get_delta_for_epsilon(epsilon)
        )
    rng, loss = np.random.default_rng(8), np.zeros(1_000_000)
    for one in answers:
        y = rng.standard_normal(loss.size)
        loss -= log_mixed(one.chance, one.far * y - one.far**2 / 2)
    return float(np.mean(hockey_stick(loss, np.zeros(loss.size), epsilon)))


@pytest.mark.parametrize("base", list(World))
def test_steering_knows_the_divergence_that_it_aims_at(base: World) -> None:
    answers = [*TEN[:3], Expected(0.7, 0.3), Expected(1.5, 0.05)]
    epsilon = 1.5 if base is World.IN else 0.4
    _, found = steering(answers, base, epsilon)
    assert found == pytest.approx(known_divergence(answers, base, epsilon), rel=0.02)


@pytest.mark.parametrize("base", list(World))
def test_steered_transcripts_count_nearly_alike(base: World) -> None:
    epsilon = 2.8 if base is World.IN else 0.6
    aimed, _ = steering(TEN, base, epsilon)
    value = hockey_stick(*steered_draws(TEN, aimed, base, size=40), epsilon)
    assert np.std(value) < 0.05 * np.mean(value)
    assert np.mean(value) == pytest.approx(known_divergence(TEN, base, epsilon), rel=0.02)


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param([Expected(1.2, 0.1)] * 10, marks=pytest.mark.ci),
        pytest.param([Expected(0.8, 0.1)] * 10, marks=pytest.mark.ci),
        TEN[:7],
        [*TEN, *TEN[:3]],
        pytest.param([Expected(1.0, 0.12)] * 10, marks=pytest.mark.ci),
    ],
    ids=["farther", "nearer", "fewer", "more", "more often"],
)
def test_weights_are_exact_whatever_was_expected(answers: list[Expected]) -> None:
    aimed, _ = steering(TEN, World.IN, 2.0)
    value = hockey_stick(*steered_draws(answers, aimed, World.IN, size=100), 2.0)
    error = float(np.std(value)) / 10.0
    known = known_divergence(answers, World.IN, 2.0)
    assert float(np.mean(value)) < known + 4.0 * error + 0.01 * known
    if len(answers) <= len(TEN):  # more than expected: not all that counts is reached
        assert float(np.mean(value)) > known - 4.0 * error - 0.01 * known


def test_steered_bounds_are_never_above_the_truth_more_often_than_they_may() -> None:
    """Whether what is aimed at is below, at or above the truth."""
    true = 2.8545
    for epsilon in (2.0, 2.8, 3.5):
        aimed, _ = steering(TEN, World.IN, epsilon)
        found, weights = steered_draws(TEN, aimed, World.IN, size=200)
        proved = [
            replayed_epsilon(found[at::20], weights[at::20], delta=1e-5, confidence=0.95)
            for at in range(20)
        ]
        assert sum(one > true for one in proved) <= 4  # of 20: 5 % is exceeded by chance in 1 %


def test_nothing_that_can_be_reached_is_no_reason_to_fail() -> None:
    drawn = (
        Expected(1.0, 0.1)
        .in_world(World.IN)
        .drawn(
            1.0,
            np.random.default_rng(0),
            size=2000,
            towards=lambda gain: np.full(gain.shape, -np.inf),
        )
    )
    assert np.allclose(drawn.log_weights, 0.0, atol=0.1)  # the law itself, cell by cell


def test_only_gaussian_answers_with_coins_of_their_own_are_steered() -> None:
    tosses = [Toss(SITE, 0.1, True), Toss(SITE, 0.1, True)]
    gaussian = laws.Gaussian(np.ones(1))
    steps = [noisy(0, [0.5], gaussian, 0), noisy(1, [0.5], gaussian, 1)]
    claim = EpsilonReplays(1.0, 1e-5)

    def plan(transcript: Transcript) -> DrawPlan:
        rng = np.random.default_rng(0)
        return draw_plan(transcript, claim, used=set(), replays=10, confidence=0.95, rng=rng)

    found = plan(Transcript(noisy=steps, tosses=tosses))
    assert found.steering is not None
    assert found.base is World.IN
    true = known_divergence([Expected(1.0, 0.1)] * 2, World.IN, found.steering.epsilon)
    assert 1e-5 < true < 2e-5  # ten equal values prove delta where they exceed it by two thirds
    one_coin = [noisy(0, [0.5], gaussian, 0), noisy(1, [0.5], gaussian, 0)]
    assert plan(Transcript(noisy=one_coin, tosses=tosses[:1])).steering is None
    laplace = [noisy(0, [0.5], laws.Laplace(np.ones(1)), 0), steps[1]]
    assert plan(Transcript(noisy=laplace, tosses=tosses)).steering is None
    assert plan(Transcript(noisy=[noisy(0, [0.5], gaussian, None)])).steering is None


def noisy(first: int, answer: Any, law: NoiseLaw, toss: int | None) -> NoisyStep:
    answer = np.asarray(answer, dtype=float)
    return NoisyStep(
        site=Site("code.py", 1 + first, "f"),
        first=first,
        before=Pair(np.ones(answer.size), np.zeros(answer.size)),
        laws=(law, law),
        answer=answer,
        moved=np.zeros(answer.size),
        log_weight=0.0,
        base=0,
        toss=toss,
    )


def test_steps_of_one_coin_count_together_and_others_by_themselves() -> None:
    law = laws.Laplace(np.full(1, 1.0))
    transcript = Transcript(
        noisy=[noisy(0, [9.0], law, None), noisy(1, [9.0], law, 0), noisy(2, [9.0], law, 0)],
        released=[np.arange(3)],
        tosses=[Toss(SITE, 0.25, inside=True)],
    )
    found = losses(transcript)
    assert total(found) == pytest.approx(1.0 + np.log(0.75 + 0.25 * np.exp(2.0)))
    assert computed(transcript, found, PrivacyClaim(epsilon=1.0, delta=0.0)).value == pytest.approx(
        total(found)
    )
    lines = {line.place: line for line in ledger(transcript, found)}
    assert lines["code.py:1"].sampling is None
    assert lines["code.py:2"].sampling == 0.25
    assert lines["code.py:2"].epsilon == pytest.approx(np.log(0.75 + 0.25 * np.e))


def test_selections_and_choices_of_a_sub_sample_are_mixtures_too() -> None:
    law = laws.Gumbel(np.full(2, 1.0))
    step = NoisyStep(
        site=SITE,
        first=0,
        before=Pair(np.array([1.0, 0.0]), np.array([0.0, 0.0])),
        laws=(law, law),
        answer=np.array([4.0, 1.0]),
        moved=np.zeros(2),
        log_weight=0.0,
        base=0,
        toss=0,
    )
    largest = AnswerSelection(
        site=SITE,
        how="largest",
        ids=np.arange(2.0),
        factor=np.ones(2),
        offset=np.zeros(2),
        outcome=np.array([0.0]),
    )
    tosses = [Toss(SITE, 0.3, inside=True)]
    inside, outside = np.e / (1 + np.e), 0.5
    known = np.log(0.7 + 0.3 * inside / outside)
    [loss] = losses(Transcript(noisy=[step], selections=[largest], tosses=tosses))
    assert (loss.how, loss.value) == (How.SELECTED, pytest.approx(known))
    tables = np.array([inside, 1 - inside]), np.array([outside, 1 - outside])
    choice = ChoiceStep(
        site=SITE,
        log_probability=Pair(np.log(tables[0][:1]), np.log(tables[1][:1])),
        largest=1.0,
        table=Pair(*tables),
        toss=0,
    )
    [loss] = losses(Transcript(choices=[choice], tosses=tosses))
    assert loss.value == pytest.approx(known)


def test_a_maximum_over_answers_of_several_coins_is_not_followed() -> None:
    law = laws.Gumbel(np.full(1, 1.0))
    largest = AnswerSelection(
        site=SITE,
        how="largest",
        ids=np.arange(2.0),
        factor=np.ones(2),
        offset=np.zeros(2),
        outcome=np.array([0.0]),
    )
    transcript = Transcript(
        noisy=[noisy(0, [3.0], law, 0), noisy(1, [2.0], law, 1)],
        selections=[largest],
        tosses=[Toss(SITE, 0.3, inside=True)] * 2,
    )
    assert {one.how for one in losses(transcript)} == {How.ASSUMED}


def test_a_sum_of_answers_of_several_coins_is_not_taken_as_all_of_them() -> None:
    law = laws.Gaussian(np.full(1, 1.0))
    steps = [noisy(0, [3.0], law, 0), noisy(1, [2.0], law, 1)]
    derived = Derived(
        ids=np.array([2.0]),
        parents=((np.array([0.0]), np.ones(1)), (np.array([1.0]), np.ones(1))),
        offset=np.zeros(1),
        noise=(),
        value=np.array([5.0]),
    )
    transcript = Transcript(
        noisy=steps,
        derived=[derived],
        released=[np.array([2])],
        tosses=[Toss(SITE, 0.3, inside=True)] * 2,
    )
    used = frozenset(step.site for step in steps)
    assert {one.how for one in losses(transcript, used=used)} == {How.ASSUMED}
    transcript.released.append(np.array([0]))  # what is left of the sum is then known
    assert {one.how for one in losses(transcript, used=used)} == {How.RELEASED}


def test_the_computed_epsilon_of_sub_sampled_gaussians_is_that_of_dp_accounting() -> None:
    steps = [noisy(at, [0.0], laws.Gaussian(np.full(1, 1.0)), at) for at in range(10)]
    transcript = Transcript(
        noisy=steps, released=[np.arange(10)], tosses=[Toss(SITE, 0.1, inside=True)] * 10
    )
    known = pld.from_gaussian_mechanism(
        1.0, sampling_prob=0.1, value_discretization_interval=1e-3
    ).self_compose(10)
    assert computed(
        transcript, losses(transcript), PrivacyClaim(epsilon=1.0, delta=1e-5)
    ).value == pytest.approx(known.get_epsilon_for_delta(1e-5), rel=0.01)
