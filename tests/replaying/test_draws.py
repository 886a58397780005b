"""How counted replays are drawn: in turn, and along what is released of an answer."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from dpaudit.plugins.protocols import World
from dpaudit.replaying import laws
from dpaudit.replaying.guarantee import EpsilonReplays, GaussianReplays, ReplayGuarantee
from dpaudit.replaying.judge import DrawPlan, draw_plan
from dpaudit.replaying.laws import NoiseLaw, Tilt
from dpaudit.replaying.lockstep import Aim
from dpaudit.replaying.transcript import ComparedSide, NoisyStep, Pair, Quotient, Site, Transcript
from steps import noisy_step

MANY = 50_000
SCALES = (np.asarray(2.0), np.asarray(2.6))
LAWS: dict[str, Callable[[np.ndarray], NoiseLaw]] = {
    "gaussian": laws.Gaussian,
    "laplace": laws.Laplace,
    "discrete laplace": laws.DiscreteLaplace,
}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("base", [0, 1])
@pytest.mark.parametrize("scales", [SCALES, (SCALES[0], SCALES[0])], ids=["apart", "alike"])
def test_weights_of_tilted_noise_average_to_one(
    name: str, base: int, scales: tuple[np.ndarray, np.ndarray]
) -> None:
    """Importance sampling: a weight that averages to more than 1 would make a bound too large.

    An average below 1 only loses power; here the tilted noise reaches everything.
    """
    law = LAWS[name](scales[base])
    aim = Aim(np.full(MANY, 3.0), scales)
    drawn = aim.drawn(law, base=base, tilt=0.5, rng=np.random.default_rng(base))
    weights = np.exp(drawn.log_weights)
    assert abs(weights.mean() - 1.0) <= 5 * weights.std() / math.sqrt(MANY)
    assert weights.std() > 0.1, "the draws are not tilted"


@pytest.mark.parametrize("name", LAWS)
def test_an_answer_that_is_released_as_it_is_moves_as_its_law_does(name: str) -> None:
    step = noisy_step([5.0, 7.0], [4.0, 7.0], [5.5, 6.0], LAWS[name](np.asarray(2.0)))
    aim = Aim.at(step.before, step.laws)
    by_aim = aim.drawn(step.laws[0], base=0, tilt=0.7, rng=np.random.default_rng(1))
    by_law = step.laws[0].drawn(Tilt(step.before.shift, 0.7), np.random.default_rng(1))
    assert np.array_equal(by_aim.value, by_law.value)
    assert np.array_equal(by_aim.log_weights, by_law.log_weights)


def test_an_aim_points_away_from_the_other_world_in_units_of_the_noise() -> None:
    """Noise of scale 2 is multiplied by 5 later, where it moves by 3 and has scale 10."""
    aim = Aim(np.array([3.0]), (np.asarray(10.0), np.asarray(10.0)))
    law = laws.Gaussian(np.asarray(2.0))
    assert aim.moved(law, base=0) == pytest.approx([0.6])
    assert aim.moved(law, base=1) == pytest.approx([-0.6])


@pytest.mark.parametrize(("base", "is_wider"), [(0, False), (1, True)])
def test_noise_whose_scale_differs_is_drawn_where_that_shows(base: int, *, is_wider: bool) -> None:
    """Near 0 if the own noise is the narrower one, far out if it is the wider one."""
    aim, law = Aim(np.zeros(2000), SCALES), laws.DiscreteLaplace(SCALES[base])
    plain, tilted = (
        np.abs(aim.drawn(law, base=base, tilt=tilt, rng=np.random.default_rng(2)).value).mean()
        for tilt in (0.0, 2.0)
    )
    assert (tilted > 1.2 * plain) if is_wider else (1.2 * tilted < plain)


def plan(*steps: NoisyStep, claim: ReplayGuarantee, ratio: bool = False) -> DrawPlan:
    quotients = []
    if ratio:
        top, bottom = (ComparedSide(np.array([at]), np.ones(1), np.zeros(1)) for at in (0.0, 1.0))
        quotients = [Quotient(top, bottom)]
    pilot = Transcript(noisy=list(steps), quotients=quotients)
    rng = np.random.default_rng(0)
    return draw_plan(pilot, claim, used=set(), replays=10, confidence=0.95, rng=rng)


def counts(inside: list[float], outside: list[float]) -> NoisyStep:
    question = ("noise", Site("code.py", 1, "f"), 1)
    made = noisy_step(inside, outside, inside, laws.Gaussian(np.full(len(inside), 1.0)))
    return replace(made, keys=frozenset([question]))


def test_without_delta_both_worlds_are_drawn_from_in_turn() -> None:
    drawn = plan(counts([1.0], [0.0]), claim=EpsilonReplays(1.0, 0.0))
    bases = [drawn.base_of(number) for number in range(6)]
    assert bases == [World.IN, World.OUT] * 3
    widths = [drawn.widened_in(number) for number in range(10)]
    assert widths == [1.0, 1.0, 10.0, 10.0, 1.0, 1.0, 30.0, 30.0, 1.0, 1.0]


@pytest.mark.parametrize("claim", [EpsilonReplays(1.0, 1e-5), GaussianReplays(0.5)])
def test_with_delta_one_world_is_drawn_from(claim: ReplayGuarantee) -> None:
    drawn = plan(counts([1.0], [0.0]), claim=claim)
    assert {drawn.base_of(number) for number in range(6)} == {drawn.base}
    assert {drawn.widened_in(number) for number in range(6)} == {1.0}
    assert drawn.tilt > 0.0


def test_answers_released_as_a_ratio_are_aimed_across_it() -> None:
    """Both of (30, 40) move by 1: the ratio shows the part that is orthogonal to them."""
    step = counts([31.0, 41.0], [30.0, 40.0])
    (aim,) = plan(step, claim=EpsilonReplays(1.0, 1e-5), ratio=True).along.values()
    assert aim.shift == pytest.approx([0.16, -0.12])
    assert aim.shift @ [30.0, 40.0] == pytest.approx(0.0, abs=1e-9)
    assert not plan(step, claim=EpsilonReplays(1.0, 1e-5)).along


def test_answers_that_data_multiplies_are_aimed_where_they_are_released() -> None:
    """One step's scale differs between the worlds; another keeps its own tilt."""
    plain = counts([1.0], [0.0])
    multiplied = replace(
        counts([1.0], [1.0]),
        first=1,
        before=Pair(np.array([2.0]), np.array([1.8])),
        laws=(laws.Gaussian(np.asarray(2.0)), laws.Gaussian(np.asarray(1.8))),
        rescaled=Site("code.py", 9, "f"),
        keys=frozenset([("noise", Site("code.py", 2, "f"), 1)]),
    )
    drawn = plan(plain, multiplied, claim=EpsilonReplays(1.0, 1e-5))
    ((question, aim),) = drawn.along.items()
    assert question[1].line == 2
    assert aim.shift == pytest.approx([0.2])
    assert [float(one) for one in aim.scales] == [2.0, 1.8]
