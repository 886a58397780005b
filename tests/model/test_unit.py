"""The unit of a schema: its tables, its JSON, and what is refused in one clear line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit.errors import DataError, SchemaError, SettingsError
from dpaudit.model.column import Column, Kind, Unit
from dpaudit.model.schema import Schema
from dpaudit.model.tables import load, require_rows

UNIT = Unit(column="patient", max_rows=3)
SCHEMA = Schema(columns=(Column(name="age", kind=Kind.INTEGER, lower=0, upper=100),), unit=UNIT)
TABLE = pd.DataFrame({"patient": ["b", "a", "b", "c", "b"], "age": [1, 2, 3, 4, 5]})


def test_a_canonical_table_keeps_the_unit_last() -> None:
    found = SCHEMA.canonical(TABLE)
    assert list(found.columns) == ["age", "patient"]
    assert found["patient"].tolist() == ["b", "a", "b", "c", "b"]
    assert SCHEMA.canonical(found.drop(columns="patient")).columns.tolist() == ["age"]
    numbered = TABLE.assign(patient=np.array([7, 8, 7, 9, 7], dtype=np.int32))
    assert SCHEMA.canonical(numbered)["patient"].dtype == np.int64


def test_units_are_numbered_as_they_appear() -> None:
    assert UNIT.codes(TABLE).tolist() == [0, 1, 0, 2, 0]
    assert UNIT.most_rows(TABLE) == 3
    assert Unit(column="patient").most_rows(TABLE) == 3
    assert Unit(column="patient", max_rows=9).most_rows(TABLE) == 9


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (TABLE.drop(columns="patient"), "the unit's column 'patient' is missing"),
        (
            TABLE.assign(patient=["b", None, "b", None, "b"]),
            "the unit 'patient' is missing in 2 rows, the first is row 1",
        ),
        (
            TABLE.assign(patient="b"),
            "the unit 'patient' is constant: all rows belong to one unit",
        ),
        (
            TABLE.assign(patient=["b", "a", "b", "b", "b"]),
            "1 unit of 'patient' with more than 3 rows (the largest has 4)",
        ),
    ],
)
def test_a_table_that_contradicts_its_unit_is_refused_in_one_line(
    table: pd.DataFrame, says: str
) -> None:
    with pytest.raises(DataError) as caught:
        load(table, SCHEMA)
    assert str(caught.value) == f"a table in memory: {says}; correct the table or the unit"


def test_a_unit_for_every_row_is_a_table_like_any_other() -> None:
    assert UNIT.problems(TABLE.assign(patient=range(5))) == []


def test_the_identifier_is_not_inferred_as_a_column(tmp_path: Path) -> None:
    table = pd.DataFrame({"patient": range(60), "age": [*range(30), *range(30)]})
    path = tmp_path / "table.csv"
    table.to_csv(path, index=False)
    found = load(path, None, Unit(column="patient"))
    assert found.schema.names == ["age"]
    assert found.schema.unit == Unit(column="patient")
    assert found.data["patient"].tolist() == list(range(60))
    assert load(path, None).schema.names == ["age"]  # it numbers the rows


def test_a_schema_with_a_unit_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    SCHEMA.save(path)
    assert load(TABLE, path).schema == SCHEMA
    assert Schema.from_document(SCHEMA.to_document()) == SCHEMA
    plain = Schema(columns=SCHEMA.columns)
    assert "unit" not in plain.to_document()
    assert Schema.from_document({**plain.to_document(), "unit": {"column": "patient"}}) == (
        plain.with_unit(Unit(column="patient"))
    )


@pytest.mark.parametrize(
    ("unit", "says"),
    [
        ("patient", 'the "unit" must be an object'),
        ({"max_rows": 3}, 'the "unit" must be an object'),
        ({"column": "patient", "rows": 3}, 'the "unit" must be an object'),
        ({"column": ""}, "must be a name, got ''"),
        ({"column": "patient", "max_rows": 0}, "1 or more, got 0"),
        ({"column": "patient", "max_rows": 1.5}, "1 or more, got 1.5"),
        ({"column": "patient", "max_rows": True}, "1 or more, got True"),
    ],
)
def test_what_is_no_unit_is_refused(unit: Any, says: str) -> None:
    with pytest.raises(SchemaError, match=says):
        Schema.from_document({**SCHEMA.to_document(), "unit": unit})


def test_a_unit_stated_apart_must_be_that_of_the_schema() -> None:
    plain = Schema(columns=SCHEMA.columns)
    loose = Unit(column="patient")
    assert plain.with_unit(None) is plain
    assert plain.with_unit(UNIT) == SCHEMA
    assert SCHEMA.with_unit(loose) == SCHEMA
    assert plain.with_unit(loose).with_unit(UNIT) == SCHEMA
    for other in (Unit(column="doctor"), Unit(column="patient", max_rows=4)):
        with pytest.raises(SettingsError, match=r"the schema's unit is 'patient' with at most 3"):
            SCHEMA.with_unit(other)


def test_what_is_about_rows_refuses_a_unit() -> None:
    require_rows(Schema(columns=SCHEMA.columns), "a probe")
    with pytest.raises(SettingsError, match=r"a probe audits rows, and the unit is patient"):
        require_rows(SCHEMA, "a probe")
