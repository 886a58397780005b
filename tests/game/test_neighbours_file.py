"""A pair of one's own is taken only if its tables differ in exactly one record."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from dpaudit.errors import DataError, SchemaError
from dpaudit.model.claim import Neighbours
from dpaudit.model.column import Column, Kind, Unit
from dpaudit.model.neighbouring_tables import read_neighbours
from dpaudit.model.schema import Schema
from dpaudit.model.tables import Table, fitting

SCHEMA = Schema(
    columns=(
        Column(name="age", kind=Kind.INTEGER, lower=0, upper=120),
        Column(name="town", kind=Kind.CATEGORICAL, categories=("Bern", "Ulm"), missing=True),
    )
)
ROWS = [(30, "Bern"), (40, None), (50, "Ulm"), (40, None), (60, "Ulm")]


def frame(rows: list[tuple[int, str | None]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["age", "town"])


TABLE = Table(fitting(frame(ROWS), SCHEMA, source="table"), SCHEMA, "table.csv", "schema.json")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "other.csv"


@pytest.mark.parametrize("row", [0, 1, 2, 4])
def test_one_record_removed(path: Path, row: int) -> None:
    frame(ROWS[:row] + ROWS[row + 1 :]).to_csv(path, index=False)
    pair = read_neighbours(str(path), TABLE)
    assert (pair.rows, pair.neighbours, pair.replacement) == ((row,), Neighbours.ADD_REMOVE, None)
    assert pair.choice == f"neighbours-file:{path}"
    assert f"differ in row {row} alone" in pair.account
    assert pair.data.equals(TABLE.data)


@pytest.mark.parametrize("instead", [(40, "Ulm"), (41, None)])
def test_one_record_changed_in_its_place(path: Path, instead: tuple[int, str | None]) -> None:
    frame([*ROWS[:3], instead, *ROWS[4:]])[["town", "age"]].to_csv(path, index=False)
    pair = read_neighbours(str(path), TABLE)
    assert (pair.rows, pair.neighbours) == ((3,), Neighbours.REPLACE_ONE)
    assert pair.replacement is not None
    assert pair.replacement["age"].tolist() == [instead[0]]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (ROWS, "equals the table: change or remove exactly one record"),
        ([*ROWS, (1, "Ulm")], "has 6 records, the table 5; .*: exchange the two"),
        (ROWS[:3], "has 3 records, the table 5; it must have one fewer"),
        ([(1, "Ulm"), (2, "Ulm"), *ROWS[2:]], r"in 2 records \(rows 0, 1, counted from 0\)"),
        ([(1, "Ulm")] * 5, "in 5 records"),
        ([*ROWS[:3], ROWS[4], ROWS[3]], r"in 2 records \(rows 3, 4"),  # the order counts
        ([(1, "Ulm"), *ROWS[2:]], "lacks row 0 of the table, and more: its row 0 is not row 1"),
        ([ROWS[0], ROWS[2], ROWS[4], ROWS[3]], "lacks row 1 .*: its row 2 is not row 3"),
        ([(130, "Bern"), *ROWS[1:]], "does not fit its schema: column 'age': a value is"),
    ],
)
def test_other_tables_are_refused_by_row(
    path: Path, rows: list[tuple[int, str | None]], message: str
) -> None:
    frame(rows).to_csv(path, index=False)
    with pytest.raises(DataError, match=message):
        read_neighbours(str(path), TABLE)


def test_more_or_fewer_columns_are_refused(path: Path) -> None:
    frame(ROWS[1:])[["age"]].to_csv(path, index=False)
    with pytest.raises(DataError, match="column 'town' is missing"):
        read_neighbours(str(path), TABLE)
    with pytest.raises(DataError, match="does not exist"):
        read_neighbours(str(path.with_name("none.csv")), TABLE)


def test_a_schema_that_was_inferred_is_refused(path: Path) -> None:
    frame([(130, "Bern"), *ROWS[1:]]).to_csv(path, index=False)
    table = TABLE._replace(schema=replace(SCHEMA, inferred=True))
    with pytest.raises(SchemaError, match="needs a public schema, and this one was inferred"):
        read_neighbours(str(path), table)


PATIENTS = replace(SCHEMA, unit=Unit(column="patient"))
VISITS = frame(ROWS).assign(patient=["b", "a", "b", "c", "a"])
OF_PATIENTS = Table(PATIENTS.canonical(VISITS), PATIENTS, "table.csv", "schema.json")


def test_all_rows_of_one_unit_removed(path: Path) -> None:
    VISITS[VISITS["patient"] != "b"].to_csv(path, index=False)
    pair = read_neighbours(str(path), OF_PATIENTS)
    assert (pair.rows, pair.neighbours) == ((0, 2), Neighbours.ADD_REMOVE)
    assert pair.replacement is None
    assert "differ in the 2 rows of one patient alone" in pair.account


def test_rows_of_one_unit_changed(path: Path) -> None:
    VISITS.assign(age=[31, 40, 50, 40, 60]).to_csv(path, index=False)
    pair = read_neighbours(str(path), OF_PATIENTS)
    assert (pair.rows, pair.neighbours) == ((0, 2), Neighbours.REPLACE_ONE)
    assert pair.replacement is not None
    assert pair.replacement["age"].tolist() == [31, 50]
    assert pair.replacement["patient"].tolist() == ["b", "b"]


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (VISITS, "0 are missing or changed"),
        (VISITS.iloc[1:], "0 are missing or changed"),  # one of two rows
        (VISITS[VISITS["patient"] == "a"], "2 are missing or changed"),
        (VISITS.assign(age=[31, 41, 50, 40, 60]), "2 are missing or changed"),
        (VISITS[VISITS["patient"] != "b"].iloc[::-1], "1 are missing or changed"),
        (VISITS.assign(patient=["d", "a", "d", "c", "a"]), "1 are missing or changed"),
        (VISITS.drop(columns="patient"), "the unit's column 'patient' is missing"),
    ],
)
def test_tables_that_differ_in_more_or_less_than_a_unit(
    path: Path, table: pd.DataFrame, says: str
) -> None:
    table.to_csv(path, index=False)
    with pytest.raises(DataError, match=says):
        read_neighbours(str(path), OF_PATIENTS)
