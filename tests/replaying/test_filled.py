"""Whole replays of code that fills arrays of zeros with noise, one element at a time."""

from __future__ import annotations

from typing import Any

import pytest

import dpaudit
import listened_filled
from dpaudit.replaying.record import ReplayRecord
from dpaudit.results.verdict import Verdict
from listened import table

pytestmark = pytest.mark.usefixtures("worlds")


def replayed(name: str, factor: float, replays: int = 10) -> ReplayRecord:
    generator: Any = getattr(listened_filled, name)(factor)
    return dpaudit.replay(generator, table(), target="row:39", replays=replays)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("RowsForTorch", marks=pytest.mark.ci),
        pytest.param("WithNoise", marks=pytest.mark.ci),
        pytest.param("MirroredByHand", marks=pytest.mark.ci),
        *(pytest.param(name, marks=pytest.mark.ci) for name in ("WithAnswers", "RowByRow")),
        pytest.param("NoisedInPlace", marks=pytest.mark.ci),
    ],
)
def test_what_fills_an_array_is_followed(name: str) -> None:
    honest = replayed(name, 1.0)
    assert honest.verdict is Verdict.CONSISTENT, str(honest)
    assert honest.computed == pytest.approx(getattr(listened_filled, name).epsilon, rel=1e-3)
    assert replayed(name, 0.3, replays=4).verdict is Verdict.VIOLATION


def test_the_largest_of_a_filled_array_is_a_selection() -> None:
    record = replayed("LargestOfFilled", 1.0)
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.computed == pytest.approx(0.0, abs=1e-6)


def test_exact_numbers_that_get_their_noise_later_are_no_leak() -> None:
    record = replayed("ExactBeforeNoise", 1.0, replays=3)
    assert record.verdict is not Verdict.VIOLATION, str(record)
    assert record.parting is None
