"""Selections that a replay does not follow are no violation; samplers around a count of 0 are."""

from __future__ import annotations

from typing import Any

import pytest

import dpaudit
import listened_orders
from dpaudit.replaying.record import ReplayRecord
from dpaudit.results.verdict import Verdict
from listened import table

pytestmark = pytest.mark.usefixtures("worlds")
COUNTED = 2
"""A record of the value that is counted."""


def replayed(name: str, **given: Any) -> ReplayRecord:
    settings: dict[str, Any] = {"replays": 3, "target": "row:39", **given}
    return dpaudit.replay(getattr(listened_orders, name)(), table(), **settings)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("ByPartition", marks=pytest.mark.ci),
        pytest.param("ByTuples", marks=pytest.mark.ci),
        pytest.param("InPandas", marks=pytest.mark.ci),
        pytest.param("EqualToLargest", marks=pytest.mark.ci),
    ],
)
def test_a_selection_that_is_not_followed_is_no_violation(name: str) -> None:
    record = replayed(name)
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    expected = "is not followed" if name in ("ByTuples", "EqualToLargest") else "only select what"
    assert expected in str(record.reasons)
    assert record.proved == 0.0


def ci(*names: str) -> list[Any]:
    """Parameters of tests that are left to CI."""
    return [pytest.param(name, marks=pytest.mark.ci) for name in names]


@pytest.mark.parametrize(
    "name",
    [
        "Gap",
        "CentredInPandas",
        *ci("GapOfFloats", "GapInPandas", "CloseGap", "RangeInPandas", "Softmax"),
    ],
)
def test_order_and_differences_of_answers_are_not_all_of_them(name: str) -> None:
    """Every score moves by 1, so that no gap or difference moves."""
    record = replayed(name)
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert "few of them are used" in str(record.reasons)
    assert record.proved == 0.0


@pytest.mark.parametrize("name", ["ByExactSum", *ci("ByStatistics", "InSeries", "ByGroup")])
def test_a_sum_that_is_not_followed_is_not_all_its_parts(name: str) -> None:
    """Four parts move, their sum by 1."""
    record = replayed(name, target=f"row:{COUNTED}")
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert record.proved == 0.0


@pytest.mark.parametrize(
    ("name", "replays"),
    [
        ("TwoSidedByCoin", 4),
        pytest.param("SharesInPython", 10, marks=pytest.mark.ci),
        pytest.param("SharedByParties", 10, marks=pytest.mark.ci),
    ],
)
def test_noise_that_is_lost_sight_of_may_protect(name: str, replays: int) -> None:
    record = replayed(name, replays=replays)
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert record.proved == 0.0


@pytest.mark.parametrize("name", ["LargestShown", *ci("LargestAndPlace")])
def test_a_released_largest_answer_counts_by_its_law(name: str) -> None:
    honest = replayed(name)
    assert honest.verdict is Verdict.CONSISTENT, str(honest)
    assert honest.computed == pytest.approx(1.0)
    leaking = replayed({"LargestShown": "LargestWithLittle"}.get(name, f"{name}WithLittle"))
    assert leaking.verdict is Verdict.VIOLATION, str(leaking)
    assert leaking.proved == pytest.approx(10 / 3)


def test_a_largest_answer_that_is_only_compared_is_not_released() -> None:
    record = replayed("LargestCompared")
    assert record.verdict is not Verdict.VIOLATION, str(record)


def test_rounded_answers_are_numbers() -> None:
    record = replayed("RoundedInPandas")
    assert record.verdict is Verdict.VIOLATION, str(record)
    assert record.proved == pytest.approx(2.0)


@pytest.mark.parametrize(
    "name",
    [
        "AroundEachCount",
        "AroundEachCountInPython",
        pytest.param("AroundEachCountInTorch", marks=pytest.mark.ci),
        pytest.param("CountsPlusNoiseInTorch", marks=pytest.mark.ci),
    ],
)
def test_noise_around_a_count_that_is_0_in_one_world_alone_is_followed(name: str) -> None:
    record = replayed(name)
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.computed == pytest.approx(getattr(listened_orders, name).epsilon, rel=1e-3)


def test_too_little_noise_around_such_a_count_is_a_violation() -> None:
    record = replayed("NotAroundEachCount")
    assert record.verdict is Verdict.VIOLATION, str(record)
    assert record.proved == pytest.approx(2.0)


@pytest.mark.parametrize("name", ["NoiseTakenBack", "NoiseShown"])
def test_noise_that_is_used_again_is_not_followed(name: str) -> None:
    record = replayed(name)
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert "noise that is used more than once" in str(record.reasons)


def test_an_answer_that_is_released_with_and_without_data_is_not_followed() -> None:
    record = replayed("ResidualShown")
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert "noisy answers are used as numbers and combined with data" in str(record.reasons)


@pytest.mark.parametrize(
    "name",
    [
        "ByProduct",
        *ci("InTorch", "ByEinsum", "ByDot", "ByAverage", "InTorchByEinsum", "InTorchByProduct"),
        *ci("InTorchByMean"),
    ],
)
def test_one_number_made_of_many_answers_costs_what_it_moves_by(name: str) -> None:
    """Each of four Laplace answers moves, their sum does not or by 1."""
    other, counted = (replayed(name, target=f"row:{row}") for row in (0, COUNTED))
    assert (other.verdict, other.computed) == (Verdict.CONSISTENT, pytest.approx(0.0, abs=1e-9))
    assert (counted.verdict, counted.computed) == (Verdict.CONSISTENT, pytest.approx(1.0))
    assert counted.proved is not None
    assert 0.0 < counted.proved <= 1.0


@pytest.mark.ci
def test_too_little_noise_in_a_product_of_tensors_is_a_violation() -> None:
    record = replayed("InTorchWithLittle", target=f"row:{COUNTED}")
    assert record.verdict is Verdict.VIOLATION, str(record)


def test_answers_that_are_released_all_the_same_count() -> None:
    record = replayed("DividedByProduct")
    assert record.verdict is Verdict.VIOLATION, str(record)
    assert record.proved == pytest.approx(2.0)


@pytest.mark.parametrize(
    "name",
    [
        *(pytest.param(name, marks=pytest.mark.ci) for name in ("Redrawn", "RedrawnByCoins")),
        "RedrawnNoise",
    ],
)
def test_draws_that_are_rejected_and_made_again_are_no_evidence(name: str) -> None:
    """How often a draw was rejected, and what it was, is not released."""
    record = replayed(name, replays=6)
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert "may be rejected and made again" in str(record.reasons)
    assert record.proved == 0.0


def test_questions_of_other_sizes_at_one_line_are_no_repeats_of_one_another() -> None:
    """AIM measures marginals of any size at one line, in as many rounds as its noise says."""
    record = replayed("MeasuredInRounds", replays=6)
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert "may be rejected" in str(record)  # it was tried to ask once less, and sizes parted


@pytest.mark.ci
def test_draws_that_are_all_shown_are_evidence() -> None:
    record = replayed("DrawnOften", replays=6)
    assert record.verdict is Verdict.VIOLATION, str(record)


@pytest.mark.ci
def test_rejected_draws_do_not_excuse_other_answers() -> None:
    record = replayed("RedrawnNextToTooLittle", replays=6)
    assert record.verdict is Verdict.VIOLATION, str(record)
    assert record.proved == pytest.approx(2.5, rel=1e-6)
