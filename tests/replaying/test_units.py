"""Replays of a unit: the exact loss of all its rows, and what is not followed accuses nobody."""

from __future__ import annotations

import math
from typing import Any

import pytest

import dpaudit
from dpaudit.errors import SettingsError
from dpaudit.replaying.record import ReplayRecord
from dpaudit.results.verdict import Verdict
from listened_units import (
    Counted,
    CountedByCoin,
    CountedByPatient,
    CountedByTurns,
)
from reports.units.mechanisms import SCHEMA, visits

pytestmark = pytest.mark.usefixtures("worlds")


def replayed(generator: object, epsilon: float, **given: Any) -> ReplayRecord:
    settings: dict[str, Any] = {"fits": 1, "target": "unit:0", **given}
    return dpaudit.replay(generator, visits(0), schema=SCHEMA, epsilon=epsilon, **settings)


def test_the_loss_of_ten_rows_is_ten_times_that_of_one() -> None:
    """Ten rows move two counts by five each: with noise for one row that costs 10 exactly."""
    record = replayed(Counted(rows=1), 1.0)
    assert record.verdict is Verdict.OVERSPENT, str(record)
    assert record.spent == pytest.approx(10.0)
    assert record.claim.unit == "patient"
    assert record.target == "unit:0"


def test_noise_for_ten_rows_keeps_the_claim_per_patient() -> None:
    record = replayed(Counted(rows=10), 1.0)
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.spent == pytest.approx(1.0)


def test_a_patient_of_one_row_costs_what_a_row_costs() -> None:
    table = visits(0)
    sizes = table["patient"].value_counts()
    record = replayed(Counted(rows=1), 1.0, target=f"unit:{sizes.index[-1]}")
    assert sizes.iloc[-1] == 1
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.spent == pytest.approx(1.0)


@pytest.mark.ci
@pytest.mark.parametrize(
    ("generator", "kept", "rows"),
    [
        (CountedByCoin(10), 1, 10),
        pytest.param(CountedByTurns(10), 1, 10, marks=pytest.mark.slow),
        pytest.param(CountedByPatient(1), 10, 1, marks=pytest.mark.slow),
    ],
)
def test_rows_that_are_kept_by_coins_accuse_nobody(
    generator: Counted, kept: int, rows: int
) -> None:
    """Given the coins a fit may cost more than the mechanism, whose coins are secret."""
    coins = 10 // kept
    true = coins * math.log1p(0.5 * math.expm1(kept / rows))
    assert true < (0.52 if rows == 10 else 9.4)
    record = replayed(generator, 1.05 * true, fits=100)
    assert record.verdict is not Verdict.VIOLATION, str(record)


def test_several_records_are_no_units() -> None:
    with pytest.raises(SettingsError, match="tries single records, not units"):
        replayed(Counted(rows=1), 1.0, target="exposing", targets=3)
