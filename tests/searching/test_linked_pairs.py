"""Searches of linked tables: pairs that differ in all rows of one unit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dpaudit
from dpaudit.errors import SettingsError
from dpaudit.model.claim import Neighbours
from dpaudit.model.column import Column, Kind, Unit
from dpaudit.model.linked_files import load_given
from dpaudit.model.linked_tables import LinkedTables
from dpaudit.model.schema import Schema
from dpaudit.results.verdict import Verdict
from dpaudit.searching.examine import FindingKind
from dpaudit.searching.pairs import base_pair, crowds, neighbouring_pairs

pytestmark = pytest.mark.usefixtures("worlds")

AGE = Column(name="age", kind=Kind.INTEGER, lower=0, upper=9)
COST = Column(name="cost", kind=Kind.CONTINUOUS, lower=0, upper=10, missing=True)
DRUG = Column(name="drug", kind=Kind.BINARY, categories=("a", "b"))
CLINIC = LinkedTables(
    tables={
        "patients": Schema(columns=(AGE,)),
        "visits": Schema(columns=(COST,)),
        "drugs": Schema(columns=(DRUG,)),
    },
    links=("visits.patient=patients.id", "drugs.visit=visits.id"),
)
VISITS = LinkedTables(
    tables={"patients": Schema(columns=(AGE,)), "visits": Schema(columns=(COST,))},
    links=("visits.patient=patients.id",),
)


class Counts:
    """Noisy numbers of patients and visits."""

    def __init__(self, counts: np.ndarray) -> None:
        self.counts = counts

    def sample(self, rows: int, *, seed: int) -> dict[str, pd.DataFrame]:
        patients = pd.DataFrame({"id": range(rows), "age": 0})
        cost = np.clip(np.resize(self.counts, rows), 0.0, 10.0)
        return {
            "patients": patients,
            "visits": pd.DataFrame({"patient": range(rows), "cost": cost}),
        }


class CountsVisits:
    """Counts patients and visits, each with half of epsilon 1 for a patient of `most` visits."""

    def __init__(self, *, most: int, is_bounded: bool) -> None:
        self.most, self.is_bounded = most, is_bounded

    def fit(self, tables: dict[str, pd.DataFrame], *, seed: int) -> Counts:
        rng, visits = np.random.default_rng(seed), tables["visits"]
        if self.is_bounded:
            visits = visits[visits.groupby("patient").cumcount() < self.most]
        scales = np.array([2.0, 2.0 * self.most])
        counts = np.array([len(tables["patients"]), len(visits)])
        return Counts(counts + rng.laplace(0.0, scales))


@given(data=st.data())
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_tables_fit_the_schema_and_are_read_as_they_were_handed(data: st.DataObject) -> None:
    pair = data.draw(neighbouring_pairs(CLINIC, neighbours=Neighbours.ADD_REMOVE, records=1))
    tables = CLINIC.handed(pair.data)
    assert load_given(tables, CLINIC, None, ()).data.equals(pair.data)
    assert CLINIC.unit is not None
    units = pair.data[CLINIC.unit.column]
    assert set(np.flatnonzero(units == 0)) == set(pair.rows)
    assert len(tables["patients"]) == units.nunique() >= 2


def test_first_pairs_have_crowds_and_the_bound_of_a_unit() -> None:
    pairs = [base_pair(CLINIC, Neighbours.ADD_REMOVE, 1)]
    pairs += crowds(CLINIC, Neighbours.ADD_REMOVE, 1)
    assert [len(pair.rows) for pair in pairs] == [3, 3, 15, 3, 255, 3, 511]
    bounded = LinkedTables(
        tables=CLINIC.tables,
        links=CLINIC.links,
        unit=Unit(column="patients.id", max_rows=4),
    )
    assert {len(pair.rows) for pair in crowds(bounded, Neighbours.ADD_REMOVE, 1)} == {3, 4}


@pytest.mark.ci
def test_rows_beyond_the_bound_of_a_patient_are_found(tmp_path: Path) -> None:
    generator = CountsVisits(most=2, is_bounded=False)
    record = dpaudit.search(generator, VISITS, epsilon=1, seconds=1, pairs=30, out=tmp_path)
    worst = record.findings[0]
    assert worst.kind is FindingKind.OVERSPENT
    assert worst.spent == pytest.approx(1.25)
    assert [(row.times, *row.values) for row in worst.rows if row.table == "with"] == [
        (1, "patients", "age 0"),
        (3, "visits", "cost 0"),
    ]
    assert "--target unit:0" in worst.reproduce
    files = [tmp_path / "pair-1" / f"{name}.csv" for name in ("patients", "visits")]
    replayed = dpaudit.replay(
        generator,
        {file.stem: file for file in files},
        schema=VISITS,
        epsilon=1,
        target="unit:0",
        coins=False,
    )
    assert replayed.spent == pytest.approx(1.25)


@pytest.mark.ci
def test_bounded_visits_are_consistent() -> None:
    generator = CountsVisits(most=2, is_bounded=True)
    record = dpaudit.search(generator, VISITS, epsilon=1, seconds=1, pairs=30)
    assert record.verdict is Verdict.CONSISTENT
    assert record.findings == ()


def test_another_unit_in_its_place_is_refused() -> None:
    generator = CountsVisits(most=2, is_bounded=True)
    with pytest.raises(SettingsError, match="leave out `neighbours`"):
        dpaudit.search(generator, VISITS, epsilon=1, neighbours="replace-one")
