"""Replays of several tables: the exact loss of a patient in all of them; coins accuse nobody."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

import dpaudit
from dpaudit.errors import ReplayError, SettingsError
from dpaudit.replaying.record import ReplayRecord
from dpaudit.results.verdict import Verdict
from listened_tables import (
    Counted,
    CountedByCoin,
    CountedByOneAfterAnother,
    CountedByPatient,
    CountedByTurns,
    KeysSeen,
)
from reports.linked_tables.mechanisms import LEAKS, SCHEMA, VISITS, hospital

pytestmark = pytest.mark.usefixtures("worlds")


def replayed(generator: object, tables: Any = None, **given: Any) -> ReplayRecord:
    settings: dict[str, Any] = {"fits": 1, "epsilon": 1.0, **given}
    return dpaudit.replay(generator, tables or hospital(0), schema=SCHEMA, **settings)


def test_the_loss_of_a_patient_is_that_of_all_visits_that_the_keys_lead_to() -> None:
    """Ten visits move one count by ten: with noise for one of them that costs 10 exactly."""
    record = replayed(Counted(visits=1))
    assert record.verdict is Verdict.OVERSPENT, str(record)
    assert record.spent == pytest.approx(10.0)
    assert record.claim.unit == "patients.id"
    assert record.target == "row:0"


def test_noise_for_all_visits_keeps_the_claim() -> None:
    record = replayed(Counted(visits=VISITS))
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.spent == pytest.approx(1.0)


def test_a_patient_without_visits_leaves_nothing_to_compare() -> None:
    """This generator counts visits with too little noise, and such a patient does not show it."""
    tables = hospital(0)
    tables["visits"] = tables["visits"][tables["visits"]["patient_id"] != 3]
    record = replayed(Counted(visits=1), tables, target="unit:3")
    assert record.verdict is Verdict.INCONCLUSIVE
    assert "moved no noisy answer" in record.reasons[0]
    assert (record.proved, record.spent) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("name", "twin"),
    [
        ("association", Verdict.CONSISTENT),
        # of the twin this record moves nothing
        pytest.param("busiest", Verdict.INCONCLUSIVE, marks=pytest.mark.ci),
    ],
)
def test_leaks_that_only_keys_show_are_found_and_their_honest_twins_are_not(
    name: str, twin: Verdict
) -> None:
    found = replayed(LEAKS[name]())
    assert found.verdict in (Verdict.INCONCLUSIVE, Verdict.OVERSPENT), str(found)
    record = replayed(LEAKS[name](honest=True))
    assert record.verdict is twin, str(record)


@pytest.mark.ci
@pytest.mark.parametrize("generator", [Counted(visits=1), *(one() for one in LEAKS.values())])
def test_leaks_of_a_patient_are_violations_in_more_fits(generator: object) -> None:
    record = replayed(generator, fits=None)
    assert record.verdict is Verdict.VIOLATION, str(record)
    assert record.proved is not None
    assert 1.0 < record.proved < 10.0


@pytest.mark.ci
@pytest.mark.parametrize(
    ("generator", "kept"),
    [
        pytest.param(CountedByCoin(VISITS), 1, marks=pytest.mark.slow),
        (CountedByTurns(VISITS), 1),
        (CountedByPatient(VISITS), VISITS),
        pytest.param(CountedByOneAfterAnother(VISITS), VISITS, marks=pytest.mark.slow),
    ],
)
def test_rows_that_are_kept_by_coins_accuse_nobody(generator: Counted, kept: int) -> None:
    """Given the coins a fit may cost more than the mechanism, whose coins are secret."""
    true = VISITS / kept * math.log1p(0.5 * math.expm1(kept / VISITS))
    record = replayed(generator, epsilon=1.05 * true, fits=100)
    assert record.verdict is not Verdict.VIOLATION, str(record)


@pytest.mark.parametrize(
    ("names", "says"),
    [(range(41), "int64 0; int64 0"), ([f"p{n}" for n in range(41)], "str p0; str p0")],
)
def test_a_generator_gets_the_keys_that_an_audit_gives_it(names: Any, says: str) -> None:
    tables = hospital(0)
    names = pd.Series(list(names))
    tables["patients"]["id"] = names
    tables["visits"]["patient_id"] = names[tables["visits"]["patient_id"]].to_numpy()
    assert replayed(KeysSeen(says), tables).replays  # it fails with any other ones
    with pytest.raises(ReplayError, match=r"ValueError at listened_tables\.py"):
        replayed(KeysSeen("others"), tables)


def test_what_takes_one_table_is_refused() -> None:
    with pytest.raises(SettingsError, match="`hand_over` is for replays of one table"):
        replayed(Counted(visits=1), hand_over=True)
    with pytest.raises(SettingsError, match="tries single records, not units"):
        replayed(Counted(visits=1), targets=3)
