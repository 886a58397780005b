"""Answers that leave only as ratios: their density against integrals, their loss against worlds."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import laplace, logistic, norm

import dpaudit
import listened_ratios
from dpaudit.replaying import laws
from dpaudit.replaying.laws import NoiseLaw
from dpaudit.replaying.loss import How, losses
from dpaudit.replaying.ratios import determined, directions, log_direction
from dpaudit.replaying.record import ReplayRecord
from dpaudit.replaying.transcript import (
    AnswerSelection,
    ComparedSide,
    Derived,
    NoisyStep,
    Quotient,
    Site,
    Transcript,
)
from dpaudit.results.verdict import Verdict
from steps import noisy_step

ONE = np.ones(1)
DENSITIES = {"gaussian": norm, "laplace": laplace, "logistic": logistic}


def law_of(name: str, scale: float) -> NoiseLaw:
    kind = {"gaussian": laws.Gaussian, "laplace": laws.Laplace, "logistic": laws.Logistic}[name]
    return kind(np.asarray(scale))


@pytest.mark.parametrize("name", DENSITIES)
@pytest.mark.parametrize("ratio", [-0.7, 0.3, 2.0])
def test_two_answers_have_the_density_of_their_ratio(name: str, ratio: float) -> None:
    centre, scales, bottom = np.array([3.0, 5.0]), (1.5, 0.8), 4.2
    density = DENSITIES[name]

    def joint(v: float) -> float:
        top = density.pdf(ratio * v - centre[0], scale=scales[0])
        return float(abs(v) * top * density.pdf(v - centre[1], scale=scales[1]))

    kinks = sorted([0.0, centre[1], centre[0] / ratio])
    parts = [quad(joint, low, high, limit=200) for low, high in pairwise([-60.0, *kinks, 60.0])]
    expected = sum(value for value, _ in parts)
    found = log_direction(
        np.array([ratio * bottom, bottom]), centre, [law_of(name, one) for one in scales]
    )
    assert found is not None
    # polar coordinates: s = v / bottom, of which the integral has two factors
    assert found + 2 * math.log(bottom) == pytest.approx(math.log(expected), abs=1e-7)


def test_comparisons_leave_a_part_of_the_integral() -> None:
    both = [law_of("laplace", 1.0)] * 2
    point, centre = np.array([2.0, 3.0]), np.array([2.5, 2.0])
    every = log_direction(point, centre, both)
    parts = [
        log_direction(point, centre, both, between=between)
        for between in ((-np.inf, -0.2), (-0.2, 0.4), (0.4, 0.9), (0.9, np.inf))
    ]
    assert every == pytest.approx(np.logaddexp.reduce(parts), abs=1e-9)


def test_discrete_noise_has_no_such_density() -> None:
    law = laws.DiscreteLaplace(np.asarray(1.0))
    assert log_direction(np.ones(2), np.ones(2), [law, law]) is None


def step(before: Any, other: Any, answer: Any, scale: float = 1.0) -> NoisyStep:
    return noisy_step(before, other, answer, laws.Gaussian(np.full(len(answer), scale)))


def side(*ids: int, offset: float = 0.0) -> ComparedSide:
    size = len(ids)
    return ComparedSide(np.array(ids, dtype=float), np.ones(size), np.full(size, offset))


def total_of(ids: list[int], value: float, number: int) -> Derived:
    parents = tuple((np.array([one], dtype=float), ONE) for one in ids)
    return Derived(
        ids=np.array([number], dtype=float),
        parents=parents,
        offset=np.zeros(1),
        noise=(),
        value=np.array([value]),
    )


def loss(transcript: Transcript) -> tuple[set[How], float]:
    found = losses(transcript)
    return {one.how for one in found}, sum(one.value for one in found)


def test_only_what_ratios_show_is_lost() -> None:
    """A shift of all answers by one factor does not show; one across them shows as a whole."""
    answer, far = [3000.0, 4000.0], 2000.0
    quotient = Quotient(side(0), side(1))
    along = Transcript(noisy=[step([3003, 4004], [3000, 4000], answer)], quotients=[quotient])
    across = Transcript(noisy=[step([3000, 4000], [2996, 4003], answer)], quotients=[quotient])
    assert loss(along) == ({How.RELEASED}, pytest.approx(0.0, abs=1e-3))
    assert loss(across) == ({How.RELEASED}, pytest.approx(12.5, abs=25 / far))


@pytest.mark.ci
def test_losses_average_to_a_law() -> None:
    """E exp(-L) is 1 where both worlds have the same directions: the null of a density."""
    rng = np.random.default_rng(0)
    inside, outside = np.array([5.0, 8.0]), np.array([5.6, 7.5])
    values = []
    for _ in range(400):
        answer = inside + rng.standard_normal(2)
        transcript = Transcript(
            noisy=[step(inside, outside, answer)], quotients=[Quotient(side(0), side(1))]
        )
        values.append(math.exp(-loss(transcript)[1]))
    assert np.mean(values) == pytest.approx(1.0, abs=4 * np.std(values) / math.sqrt(400))
    assert np.std(values) > 0.3


def test_shares_of_a_sum_count_as_a_direction() -> None:
    answer = [4.0, 6.0, 10.0]
    shares = Quotient(side(0, 1, 2), ComparedSide(np.full(3, 3.0), np.ones(3), np.zeros(3)))
    made = Transcript(
        noisy=[step([5, 6, 10], [4, 6, 10], answer)],
        derived=[total_of([0, 1, 2], 20.0, 3)],
        quotients=[shares],
    )
    pairs = Transcript(
        noisy=made.noisy, quotients=[Quotient(side(0), side(2)), Quotient(side(1), side(2))]
    )
    assert loss(made) == ({How.RELEASED}, pytest.approx(loss(pairs)[1]))
    part = Transcript(
        noisy=made.noisy, derived=made.derived, quotients=[Quotient(side(0), side(3))]
    )
    assert loss(part)[0] == {How.ASSUMED}


def test_one_released_answer_of_a_ratio_releases_both() -> None:
    one = step([5, 9], [4, 8], [5.5, 8.5])
    whole = Transcript(noisy=[one], released=[np.array([0, 1])])
    half = Transcript(noisy=[one], quotients=[Quotient(side(0), side(1))], released=[np.array([1])])
    assert loss(half) == loss(whole)


def test_ratios_with_and_without_an_offset_determine_the_answers() -> None:
    one = step([5, 9], [4, 8], [5.5, 8.5])
    both = [Quotient(side(0), side(1)), Quotient(side(0), side(1, offset=1.0))]
    assert loss(Transcript(noisy=[one], quotients=both))[0] == {How.RELEASED}
    shifted = Transcript(noisy=[one], quotients=both[1:])
    moved = Transcript(
        noisy=[step([5, 10], [4, 9], [5.5, 9.5])], quotients=[Quotient(side(0), side(1))]
    )
    assert loss(shifted) == loss(moved)


@pytest.mark.parametrize(("how", "known"), [("compare", True), ("largest", False)])
def test_a_comparison_with_a_number_is_part_of_the_release(how: str, known: bool) -> None:
    one = step([5, 1.6], [4, 1.5], [5.5, 1.2], scale=0.5)
    selection = AnswerSelection(
        site=Site("code.py", 2, "f"),
        how=how,
        ids=np.array([1.0]),
        factor=ONE,
        offset=np.zeros(1),
        outcome=np.array([0.0]),
        other=ComparedSide(None, None, ONE),
        sign="<",
    )
    transcript = Transcript(
        noisy=[one], quotients=[Quotient(side(0), side(1))], selections=[selection]
    )
    ways, value = loss(transcript)
    assert (ways == {How.RELEASED}) is known
    alone = loss(Transcript(noisy=[one], quotients=transcript.quotients))[1]
    assert value != pytest.approx(alone, abs=1e-3)


# -- whole replays -------------------------------------------------------------------------------

pytestmark = pytest.mark.usefixtures("worlds")
SCHEMA = dpaudit.Schema.from_document(
    {"columns": [{"name": "x", "kind": "continuous", "lower": 0.0, "upper": 1.0}]}
)


def replayed(name: str, factor: float, **settings: Any) -> ReplayRecord:
    table = pd.DataFrame({"x": np.random.default_rng(0).uniform(size=200).round(3)})
    table.loc[0, "x"] = 1.0
    generator = getattr(listened_ratios, name)(factor)
    return dpaudit.replay(generator, table, schema=SCHEMA, target="row:0", **settings)


@pytest.mark.parametrize(
    "name",
    [
        "Mean",
        *(
            pytest.param(name, marks=pytest.mark.ci)
            for name in ("MeanOfSome", "LaplaceMean", "Shares", "Moments", "InTorch")
        ),
    ],
)
def test_a_noisy_sum_over_a_noisy_count_is_followed(name: str) -> None:
    if "Torch" in name:
        pytest.importorskip("torch")
    honest = replayed(name, 1.0)
    assert honest.verdict is Verdict.CONSISTENT, str(honest)
    assert honest.proved is not None
    assert 0.1 < honest.proved < 1.0
    found = replayed(name, 0.15)
    assert found.verdict is Verdict.VIOLATION, str(found)


@pytest.mark.ci
def test_what_the_sum_and_the_count_would_cost_is_no_finding() -> None:
    """With this noise both numbers cost 3.8, and their ratio no more than the claim."""
    record = replayed("Mean", 0.32)
    assert record.verdict is Verdict.INCONCLUSIVE
    assert "released only as ratios" in record.reasons[0]
    assert replayed("MeanAndCount", 0.32).verdict is Verdict.VIOLATION


@pytest.mark.parametrize(
    ("count", "added", "known"),
    [(3, 1.0, [0, 1, 2]), (3, 0.0, []), (3, 1e-6, []), (2, 1.0, [])],
)
def test_ratios_determine_answers_only_with_a_number_added_to_a_sum_of_them(
    count: int, added: float, known: list[int]
) -> None:
    numbers, one, none = np.arange(3), np.ones(3), np.zeros(3)
    total = Derived(
        ids=np.array([3]),
        parents=tuple((np.array([at]), ONE) for at in range(3)),
        offset=np.zeros(1),
        noise=(),
        value=ONE,
    )
    bottom = ComparedSide(np.full(count, 3), one[:count], np.full(count, added))
    top = ComparedSide(numbers[:count], one[:count], none[:count])
    transcript = Transcript(derived=[total], quotients=[Quotient(top, bottom)])
    assert determined(directions(transcript)).tolist() == known
