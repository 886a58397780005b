"""Losses of transcripts: selections against closed forms and counting, sums against their law."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from dpaudit.model.claim import PrivacyClaim
from dpaudit.plugins.protocols import World
from dpaudit.replaying import laws
from dpaudit.replaying.guarantee import gaussian_epsilon
from dpaudit.replaying.judge import measured
from dpaudit.replaying.laws import NoiseLaw
from dpaudit.replaying.ledger import computed, ledger
from dpaudit.replaying.loss import How, log_first_places, losses, total
from dpaudit.replaying.sums import settled
from dpaudit.replaying.transcript import (
    AnswerSelection,
    ComparedSide,
    Derived,
    Parting,
    PartKind,
    Site,
    Transcript,
)
from steps import noisy_step

SITE = Site("code.py", 1, "f")


def largest(ids: Any, place: int) -> AnswerSelection:
    ids = np.asarray(ids, dtype=float)
    return AnswerSelection(
        site=SITE,
        how="largest",
        ids=ids,
        factor=np.ones(ids.size),
        offset=np.zeros(ids.size),
        outcome=np.array([place]),
    )


def test_a_released_answer_counts_by_its_density() -> None:
    law = laws.Gaussian(np.full(2, 2.0))
    one = noisy_step([5, 1], [4, 1], [6.0, 0.0], law)
    transcript = Transcript(noisy=[one], released=[np.array([0, 1])])
    [loss] = losses(transcript)
    assert loss.how is How.RELEASED
    assert loss.value == pytest.approx((-(1.0**2) + 2.0**2) / 8.0)


def test_an_answer_whose_use_was_not_seen_is_marked() -> None:
    law = laws.Laplace(np.full(1, 1.0))
    transcript = Transcript(noisy=[noisy_step([5], [4], [9.0], law)])
    assert [one.how for one in losses(transcript)] == [How.ASSUMED]
    assert [one.how for one in losses(transcript, used={SITE})] == [How.RELEASED]


@pytest.mark.parametrize(
    "law",
    [
        laws.Laplace(np.full(3, 2.0)),
        laws.Gaussian(np.full(3, 2.0)),
        laws.Gumbel(np.full(3, 2.0)),
        laws.Gumbel(np.array([2.0, 2.0, 2.5])),
        laws.Gamma(np.full(3, 2.0), np.ones(3)),
        laws.Logistic(np.array([1.0, 2.0, 3.0])),
    ],
)
def test_probabilities_of_the_largest_add_up_and_are_those_counted(law: NoiseLaw) -> None:
    before = np.array([3.0, 4.0, 1.0])
    p = np.exp([log_first_places([place], before, law) for place in range(3)])
    assert p.sum() == pytest.approx(1.0, abs=1e-4)
    rng = np.random.default_rng(0)
    drawn = before + law.sample(rng, (60_000, 3))
    assert np.allclose(p, np.bincount(drawn.argmax(axis=1), minlength=3) / 60_000, atol=0.01)


def test_first_places_of_gumbel_noise_have_a_closed_form_that_the_integral_gives_too() -> None:
    before = np.array([3.0, 4.0, 1.0, 2.0])
    closed = log_first_places([1, 0], before, laws.Gumbel(np.full(4, 2.0)))
    nearly = log_first_places([1, 0], before, laws.Gumbel(np.array([2.0, 2.0, 2.0, 2.0 + 1e-9])))
    assert closed == pytest.approx(nearly, abs=1e-5)


def test_noisy_max_costs_what_is_shown_and_not_what_is_kept() -> None:
    law = laws.Laplace(np.full(40, 2.0))
    before = np.arange(40.0) % 3
    other = before - 1.0  # all scores move by one: as a vector 40 / 2, as a maximum nothing
    answer = before + law.sample(np.random.default_rng(1), (40,))
    transcript = Transcript(
        noisy=[noisy_step(before, other, answer, law)],
        selections=[largest(np.arange(40), int(answer.argmax()))],
    )
    [loss] = losses(transcript)
    assert loss.how is How.SELECTED
    assert loss.value == pytest.approx(0.0, abs=1e-6)
    transcript.released.append(np.arange(40))
    assert abs(total(losses(transcript))) > 1.0


@pytest.mark.parametrize(
    "law", [laws.Laplace(np.full(3, 1.0)), laws.Gaussian(np.array([1.0, 2.0, 0.5]))]
)
def test_a_released_largest_has_the_density_of_the_maximum(law: NoiseLaw) -> None:
    """The derivative of the product of all distribution functions."""
    before, other = np.array([3.0, 2.0, 1.0]), np.array([2.0, 2.0, 2.0])
    answer = np.array([1.5, 2.25, 0.5])
    shown = replace(largest(np.arange(3), 1), how="value")
    transcript = Transcript(noisy=[noisy_step(before, other, answer, law)], selections=[shown])

    def density(around: Any) -> float:
        ends = [np.prod(law.cdf(2.25 + far - around)) for far in (-1e-5, 1e-5)]
        return float((ends[1] - ends[0]) / 2e-5)

    [loss] = losses(transcript, used={SITE})
    assert loss.is_value
    assert loss.value == pytest.approx(math.log(density(before) / density(other)), abs=1e-5)
    [placed] = losses(replace(transcript, selections=[shown, largest(np.arange(3), 1)]))
    assert placed.value != pytest.approx(loss.value, abs=1e-3)


def test_the_winners_value_may_be_released_too() -> None:
    law = laws.Laplace(np.full(2, 1.0))
    transcript = Transcript(
        noisy=[noisy_step([3, 1], [2, 1], [4.0, 0.5], law)],
        selections=[largest([0, 1], 0)],
        released=[np.array([0])],
    )
    [loss] = losses(transcript)
    # the density of the winner; that the other one is below it has the same chance in both worlds
    assert loss.value == pytest.approx(-1.0 + 2.0)


def compare(number: int, other: ComparedSide, outcome: int) -> AnswerSelection:
    one = np.array([float(number)])
    return AnswerSelection(
        site=SITE,
        how="compare",
        ids=one,
        factor=np.ones(1),
        offset=np.zeros(1),
        outcome=np.array([outcome]),
        other=other,
        sign=">",
    )


def test_bits_against_a_public_threshold_are_tail_probabilities() -> None:
    law = laws.Laplace(np.full(1, 1.0))
    bound = ComparedSide(None, None, np.array([5.0]))
    transcript = Transcript(
        noisy=[noisy_step([3], [2], [6.0], law)], selections=[compare(0, bound, 1)]
    )
    [loss] = losses(transcript)
    assert loss.value == pytest.approx(1.0)
    transcript = Transcript(
        noisy=[noisy_step([3], [2], [2.0], law)], selections=[compare(0, bound, 0)]
    )
    [loss] = losses(transcript)
    assert loss.value == pytest.approx(np.log(1 - np.exp(-2) / 2) - np.log(1 - np.exp(-3) / 2))


def test_the_sparse_vector_is_an_integral_over_its_threshold() -> None:
    threshold, query = laws.Laplace(np.full(1, 2.0)), laws.Laplace(np.full(1, 4.0))
    noisy = [
        noisy_step([10], [10], [11.0], threshold),
        noisy_step([8], [7], [3.0], query, 1),
        noisy_step([12], [11], [15.0], query, 2),
    ]
    side = ComparedSide(np.array([0.0]), np.ones(1), np.zeros(1))
    transcript = Transcript(noisy=noisy, selections=[compare(1, side, 0), compare(2, side, 1)])
    [loss] = losses(transcript)
    rng = np.random.default_rng(2)
    count, rates = 2_000_000, []
    for shift in (0.0, 1.0):
        t = 10 + 2.0 * rng.laplace(size=count)
        under = 8 - shift + 4.0 * rng.laplace(size=count) <= t
        over = 12 - shift + 4.0 * rng.laplace(size=count) > t
        rates.append(np.mean(under & over))
    assert loss.value == pytest.approx(np.log(rates[0] / rates[1]), abs=0.01)


def test_answers_that_are_summed_count_as_their_sum() -> None:
    law = laws.Gaussian(np.full(1, 3.0))
    noisy = [
        noisy_step([5], [4], [6.0], law),
        noisy_step([0], [0], [1.0], laws.Gaussian(np.full(1, 4.0)), 1),
    ]
    one = np.ones(1)
    derived = Derived(
        ids=np.array([2.0]),
        parents=((np.array([0.0]), one), (np.array([1.0]), one)),
        offset=np.zeros(1),
        noise=(),
        value=np.array([7.0]),
    )
    transcript = Transcript(noisy=noisy, derived=[derived], released=[np.array([2])])
    [step] = settled(transcript).noisy
    assert step.laws[0].scale == pytest.approx(5.0)
    assert total(losses(transcript)) == pytest.approx((-(2.0**2) + 3.0**2) / 50.0)
    # with a part that is released as well, the sum determines the other part
    transcript.released.append(np.array([0]))
    left = settled(transcript)
    assert [step.first for step in left.noisy] == [0, 1]
    assert left.are_released(np.arange(2)).all()
    assert total(losses(transcript)) == pytest.approx((-(1.0**2) + 2.0**2) / 18.0)


def sums_of(matrix: Any, answer: Any, first: int) -> Derived:
    """The products of a matrix with the answers 0, 1, ..."""
    rows = len(matrix)
    return Derived(
        ids=np.arange(first, first + rows, dtype=float),
        parents=tuple((np.full(rows, float(at)), own) for at, own in enumerate(matrix.T)),
        offset=np.full(rows, 0.5),
        noise=(),
        value=matrix @ answer + 0.5,
    )


def random_sums(
    rng: np.random.Generator, rows: int, *, far: float = 1.0
) -> tuple[Transcript, Any, Any]:
    """Sums of five Gaussian answers, their covariance, and how far they move."""
    scale = rng.uniform(0.5, 2.0, 5)
    inside, outside = far * rng.normal(size=(2, 5))
    answer = outside + scale * rng.normal(size=5)
    matrix = rng.normal(size=(rows, 5))
    noisy = noisy_step(inside, outside, answer, laws.Gaussian(scale))
    made = sums_of(matrix, answer, 5)
    transcript = Transcript(
        noisy=[noisy], derived=[made], released=[np.arange(5, 5 + rows)], log_weight=0.0
    )
    return transcript, matrix @ np.diag(scale**2) @ matrix.T, (inside, outside, matrix, answer)


@pytest.mark.parametrize("rows", [1, 3, 5])
def test_gaussian_sums_that_share_parts_lose_what_their_joint_law_says(rows: int) -> None:
    for seed in range(20):
        transcript, covariance, (inside, outside, matrix, answer) = random_sums(
            np.random.default_rng(seed), rows
        )
        densities = [
            multivariate_normal(matrix @ before, covariance).logpdf(matrix @ answer)
            for before in (inside, outside)
        ]
        found = losses(transcript)
        assert {one.how for one in found} == {How.RELEASED}
        assert total(found) == pytest.approx(densities[0] - densities[1])


@pytest.mark.ci
def test_the_loss_of_shared_parts_averages_to_a_law() -> None:
    """E exp(L) is 1 for answers of world "out": the null of a density."""
    values = [
        math.exp(total(losses(random_sums(np.random.default_rng(seed), 3, far=0.3)[0])))
        for seed in range(2000)
    ]
    assert np.mean(values) == pytest.approx(1.0, abs=4 * np.std(values) / math.sqrt(2000))
    assert np.std(values) > 0.2


def test_a_sum_that_follows_from_others_loses_nothing_more() -> None:
    law = laws.Gaussian(np.ones(2))
    noisy = noisy_step([1, 3], [0, 1], [0.3, 2.2], law)
    matrix = np.array([[1.0, 1.0], [1.0, -1.0], [3.0, 1.0]])
    made = sums_of(matrix, noisy.answer, 2)
    three = Transcript(noisy=[noisy], derived=[made], released=[np.arange(2, 5)])
    whole = Transcript(noisy=[noisy], released=[np.arange(2)])
    assert total(losses(three)) == pytest.approx(total(losses(whole)))
    # what is not known to be released is no more than assumed: here the second dimension
    one = Transcript(noisy=[noisy], derived=[made], released=[np.array([4])])
    released = [loss for loss in losses(one) if loss.how is How.RELEASED]
    scale = math.sqrt(10)
    away = [(3 * 0.3 + 2.2 - mean) / scale for mean in (6.0, 1.0)]
    assert total(released) == pytest.approx((away[1] ** 2 - away[0] ** 2) / 2)
    assert total(losses(one)) == pytest.approx(total(losses(whole)))


def test_shared_parts_of_other_laws_stay() -> None:
    for law in (
        laws.Laplace(np.ones(2)),
        (laws.Gaussian(np.ones(2)), laws.Gaussian(2 * np.ones(2))),
    ):
        own = law if isinstance(law, tuple) else (law, law)
        noisy = replace(noisy_step([1, 3], [0, 1], [0.3, 2.2], own[0]), laws=own)
        made = sums_of(np.array([[1.0, 1.0], [1.0, -1.0]]), noisy.answer, 2)
        transcript = Transcript(noisy=[noisy], derived=[made], released=[np.arange(2, 4)])
        assert settled(transcript) is transcript


@pytest.mark.parametrize("base", [0, 1])
def test_a_tilt_weighs_on_what_sums_show(base: int) -> None:
    """The weight of tilted answers is that of the sums: across them the tilt does not show."""
    law, moved = laws.Gaussian(np.ones(2)), np.array([0.6, 0.2])
    noisy = replace(noisy_step([1, 1], [0, 0.5], [1.4, 0.7], law), base=base)
    away = noisy.answer - noisy.before[base]
    own = float(np.sum(law.log_density(away) - law.log_density(away - moved)))
    made = sums_of(np.array([[1.0, -1.0], [2.0, -2.0]]), noisy.answer, 2)
    transcript = Transcript(
        noisy=[replace(noisy, moved=moved, log_weight=own)],
        derived=[made],
        released=[np.arange(2, 4)],
        log_weight=own,
    )
    across, by = away[0] - away[1], 0.4  # the difference, whose noise has variance 2
    expected = (-(across**2) + (across - by) ** 2) / 4
    assert settled(transcript).log_weight == pytest.approx(expected)


def test_a_sum_of_laplace_answers_has_the_law_of_its_noise() -> None:
    laplace = laws.Laplace(np.full(1, 2.0))
    noisy = [noisy_step([5], [4], [6.0], laplace), noisy_step([1], [1], [1.5], laplace, 1)]
    one = np.ones(1)
    derived = Derived(
        ids=np.array([2.0]),
        parents=((np.array([0.0]), one), (np.array([1.0]), -one)),
        offset=np.zeros(1),
        noise=({"law": "laplace", "factor": one, "scale": 3.0 * one, "shape": one, "other": one},),
        value=np.array([4.5]),
    )
    transcript = Transcript(noisy=noisy, derived=[derived], released=[np.array([2])])
    assert settled(transcript) is transcript  # two of one scale and one of another: not known
    transcript.derived[0] = replace(derived, noise=())
    [left] = settled(transcript).noisy
    assert left.laws[0] == laws.GammaDifference(np.full(1, 2.0), np.full(1, 2.0))
    z = np.array([0.5, 1.5]) / 2.0  # the sum is 4.5, of 4 or 3
    expected = np.diff(z - np.log1p(z))[0]  # its density is (1 + z) exp(-z) / 8
    assert total(losses(transcript)) == pytest.approx(expected)


def test_what_is_selected_from_noise_without_a_distribution_function_is_not_followed() -> None:
    quarter = laws.GammaDifference(np.ones(2), np.full(2, 0.25))
    staircase = laws.Staircase(np.ones(2), 2.0, 0.3)
    for law in (quarter, staircase):
        noisy = [noisy_step([3, 4], [3, 3], [3.1, 4.2], law)]
        found = losses(Transcript(noisy=noisy, selections=[largest([0, 1], 1)]))
        assert {one.how for one in found} == {How.ASSUMED}


def test_the_largest_loss_of_bounded_noise_is_at_a_kink_or_an_end() -> None:
    """LaplaceBoundedDomain on [0, 2]: the loss is that of Laplace noise and of both masses."""
    before = 1.5, 0.5
    found = [
        laws.BoundedLaplace(np.ones(1), np.array([0.0 - one]), np.array([2.0 - one]))
        for one in before
    ]
    made = replace(noisy_step([before[0]], [before[1]], [1.9], found[0]), laws=(found[0], found[1]))
    transcript = Transcript(noisy=[made], released=[np.array([0])])
    masses = [2 - np.exp(-one) - np.exp(one - 2.0) for one in before]
    expected = 1.0 + abs(np.log(masses[0] / masses[1]))
    lost = losses(transcript)
    assert total(lost) == pytest.approx(1.0 - np.log(masses[0] / masses[1]))
    [line] = ledger(transcript, lost)
    assert line.epsilon == pytest.approx(expected)
    # of noise whose ends move there is no largest loss, and no dp-accounting of either
    uniform = laws.Uniform(np.ones(1))
    moved = Transcript(noisy=[noisy_step([1], [0.5], [1.2], uniform)], released=[np.array([0])])
    assert ledger(moved, losses(moved))[0].epsilon is None
    assert computed(transcript, lost, PrivacyClaim(epsilon=1.0, delta=0.0)).value == pytest.approx(
        expected
    )
    assert computed(transcript, lost, PrivacyClaim(epsilon=1.0, delta=1e-5)).value is None


def test_steps_of_several_laws_are_composed_by_their_losses() -> None:
    gaussian, laplace = laws.Gaussian(np.full(1, 2.0)), laws.Laplace(np.full(1, 4.0))
    threshold = ComparedSide(None, None, np.array([5.0]))
    noisy = [
        noisy_step([5], [4], [6.0], gaussian),
        noisy_step([5], [4], [6.0], laplace, 1, line=2),
        noisy_step([5], [4], [6.0], laplace, 2, line=3),
    ]
    transcript = Transcript(
        noisy=noisy, released=[np.array([0, 1])], selections=[compare(2, threshold, 1)]
    )
    found = losses(transcript)
    cost = computed(transcript, found, PrivacyClaim(epsilon=1.0, delta=1e-5)).value
    assert cost is not None
    assert gaussian_epsilon(0.5, 1e-5) < cost < gaussian_epsilon(0.5, 1e-5) + 0.5
    widest = ledger(transcript, found)
    assert sum(line.share for line in widest) == pytest.approx(1.0)
    assert widest[0].mu == pytest.approx(0.5)


@pytest.mark.parametrize("base", World)
def test_steps_that_rule_out_a_world_each_count_nothing_together(base: World) -> None:
    """Infinite losses of either sign have no sum, and so prove nothing."""
    uniform = laws.Uniform(np.ones(1))
    noisy = [noisy_step([1], [0.5], [1.9], uniform), noisy_step([0.5], [1], [1.9], uniform, 1)]
    transcript = Transcript(noisy=noisy, released=[np.array([0, 1])])
    assert [one.value for one in losses(transcript)] == [np.inf, -np.inf]
    assert measured(transcript, base) == (0.0, 0.0)


@pytest.mark.parametrize("base", World)
def test_where_the_worlds_part_the_loss_is_infinite_but_where_replay_alone_ends(
    base: World,
) -> None:
    for kind in PartKind:
        parting = Parting(kind=kind, sites=(SITE, SITE), values=("1", "2"))
        loss, weight = measured(Transcript(parting=parting, log_weight=-1.5), base)
        ends_alone = kind in (PartKind.FAILURE, PartKind.UNFOLLOWED)
        assert (loss, weight) == (0.0 if ends_alone else np.inf, -1.5)


def test_sums_of_answers_without_noise_stay_as_they_are() -> None:
    one = np.ones(1)

    def sum_of(number: float, *parents: float) -> Derived:
        return Derived(
            ids=np.array([number]),
            parents=tuple((np.array([parent]), one) for parent in parents),
            offset=np.zeros(1),
            noise=(),
            value=np.array([5.0]),
        )

    noisy = [noisy_step([3], [2], [4.0], laws.Laplace(one))]  # number 0; 1 and 2 have no noise
    alone, partly = sum_of(3.0, 1.0, 2.0), sum_of(4.0, 0.0, 1.0)
    transcript = Transcript(noisy=noisy, derived=[alone], released=[np.array([0])])
    assert settled(transcript) is transcript
    transcript = Transcript(noisy=noisy, derived=[partly], released=[np.array([4])])
    assert settled(transcript).noisy == noisy
