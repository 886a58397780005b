"""Noisy numbers that are rounded and limited: used as numbers, and only compared."""

from __future__ import annotations

from typing import Any

import pytest

import dpaudit
import listened_limited
from dpaudit.replaying.record import ReplayRecord
from dpaudit.results.verdict import Verdict

pytestmark = pytest.mark.usefixtures("worlds")

SCHEMA = dpaudit.Schema.from_document(listened_limited.SCHEMA)


def replayed(name: str, scale: float = 1.0, **given: Any) -> ReplayRecord:
    generator: Any = getattr(listened_limited, name)(scale)
    settings = {"target": "row:39", "epsilon": 1.0, "replays": 6, **given}
    return dpaudit.replay(generator, listened_limited.table(), schema=SCHEMA, **settings)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("RoundedMean", marks=pytest.mark.ci),
        "MeanOfFloat",
        pytest.param("RoundedCounts", marks=pytest.mark.ci),
        "AsLength",
        pytest.param("AsRange", marks=pytest.mark.ci),
        pytest.param("AsSize", marks=pytest.mark.ci),
        pytest.param("WholeCounts", marks=pytest.mark.ci),
    ],
)
def test_too_little_noise_shows_though_numbers_are_rounded_and_limited(name: str) -> None:
    honest = replayed(name)
    assert honest.verdict is Verdict.CONSISTENT, str(honest)
    assert honest.computed == pytest.approx(1.0, abs=0.02)
    found = replayed(name, 0.2)
    assert found.verdict is Verdict.VIOLATION, str(found)
    assert found.proved == pytest.approx(5.0, rel=0.02)


@pytest.mark.parametrize(
    "name",
    [
        "NoisyMax",
        pytest.param("SparseVector", marks=pytest.mark.ci),
        pytest.param("SecondLargest", marks=pytest.mark.ci),
    ],
)
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.ci)])
def test_numbers_that_are_only_compared_accuse_nobody(name: str, seed: int) -> None:
    record = replayed(name, seed=seed)
    assert record.verdict is not Verdict.VIOLATION, str(record)
    assert record.proved == 0.0


def test_a_loop_that_rejects_what_is_out_of_range_ends() -> None:
    record = replayed("DrawnAgain", replays=2)
    assert record.verdict is not Verdict.VIOLATION, str(record)


@pytest.mark.parametrize(
    "name",
    [
        *("AsPythonHasThem", "AsNumpyHasThem", "Copied"),
        pytest.param("ItemsOfTorch", marks=pytest.mark.ci),
    ],
)
def test_marked_numbers_behave_as_those_of_python_and_numpy(name: str) -> None:
    record = replayed(name, replays=2)
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.computed == pytest.approx(1.0, abs=0.02)


def test_a_count_of_0_plus_noise_is_an_answer() -> None:
    assert replayed("EmptyCells").verdict is Verdict.CONSISTENT
    found = replayed("EmptyCells", 0.3)
    assert found.verdict is Verdict.VIOLATION, str(found)
    assert found.proved == pytest.approx(1 / 0.3)


@pytest.mark.parametrize(
    ("name", "scale", "given"),
    [
        ("BetweenLimits", 1.0, {"epsilon": 1.2, "delta": 1e-5, "seed": 1}),
        pytest.param(*("BetweenLimits", 1.0, {"epsilon": 1.2, "seed": 1}), marks=pytest.mark.ci),
        ("NeverThatFar", 0.5, {"delta": 1e-5}),
    ],
)
def test_what_a_limit_or_rounding_hides_accuses_nobody(
    name: str, scale: float, given: dict[str, Any]
) -> None:
    record = replayed(name, scale, **given)
    assert record.verdict is not Verdict.VIOLATION, str(record)
    assert record.proved <= 1.15


def test_a_limit_on_one_side_hides_no_violation() -> None:
    record = replayed("AboveALimit", delta=1e-5)
    assert record.verdict is Verdict.VIOLATION, str(record)


def test_noise_whose_scale_follows_the_record_and_is_only_compared_is_not_followed() -> None:
    record = replayed("Race", replays=2, epsilon=0.1)
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert "used by itself, with a scale from data" in str(record.reasons)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.ci)])
def test_rows_of_noise_that_is_not_followed_are_not_within_the_claim(seed: int) -> None:
    record = replayed("RowsOfUnknownNoise", seed=seed, delta=1e-5)
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert "coins" in str(record.reasons)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("SameSeed", {}),
        pytest.param("GeometricOfOneSeed", {}, marks=pytest.mark.ci),
        ("SavedState", {}),
        pytest.param("ScipyOfOneSeed", {}, marks=pytest.mark.ci),
        pytest.param("SavedInNumpy", {}, marks=pytest.mark.ci),
        pytest.param("SavedInPython", {}, marks=pytest.mark.ci),
        pytest.param("TensorsOfOneSeed", {"delta": 1e-5}, marks=pytest.mark.ci),
        pytest.param("OwnGeneratorsOfTorch", {"delta": 1e-5}, marks=pytest.mark.ci),
    ],
)
def test_noise_of_two_generators_with_one_seed_is_no_noise_of_two(
    name: str, given: dict[str, Any]
) -> None:
    record = replayed(name, replays=2, **given)
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert "noise that was drawn before from the same seed or state" in str(record.reasons)
    assert replayed("OwnSeeds", replays=2).verdict is Verdict.CONSISTENT


def test_noise_that_replay_loses_sight_of_is_named_as_noise() -> None:
    record = replayed("RoundedNoise", replays=2, epsilon=0.1)
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert "lost sight of noise (listened_limited.py" in str(record.reasons)


@pytest.mark.parametrize(
    "name", ["ShuffledBatches", pytest.param("ShuffledInPython", marks=pytest.mark.ci)]
)
def test_a_secret_order_of_the_records_may_protect(name: str) -> None:
    record = replayed(name)
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert "depends on coins" in str(record.reasons)
    assert replayed(name, public_coins=True).verdict is Verdict.VIOLATION
