"""Several tables with keys: what is read, what is refused, and the frame of all their rows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit.errors import DataError, InputError, SchemaError, SettingsError
from dpaudit.model.column import Column, Kind, Unit
from dpaudit.model.linked_files import load_given
from dpaudit.model.linked_tables import KEY, PARENT, TABLE, Link, LinkedTables
from dpaudit.model.schema import Schema
from dpaudit.model.tables import Table, load

LINK = "visits.patient_id=patients.id"
NOTES = "notes.visit=visits.number"
PATIENTS = pd.DataFrame({"id": ["a", "b", "c"], "age": [30, 40, 50], "ward": ["x", "y", "x"]})
VISITS = pd.DataFrame({"patient_id": ["a", "a", "b"], "cost": [1.0, 2.5, 3.0]})
TABLES = {"visits": VISITS, "patients": PATIENTS}
DEEP = {
    "patients": PATIENTS,
    "visits": VISITS.assign(number=["p", "q", "r"]),
    "notes": pd.DataFrame({"visit": ["q", "q", "r"], "long": ["yes", "no", "no"]}),
}


def read(tables: Any = TABLES, *links: str, unit: Unit | None = None) -> Table:
    return load_given(tables, None, unit, links or (LINK,))


def linked(table: Table) -> LinkedTables:
    assert isinstance(table.schema, LinkedTables)
    return table.schema


def test_the_frame_holds_every_row_with_its_table_its_keys_and_its_unit() -> None:
    table = read()
    schema = linked(table)
    assert (schema.root, schema.order, schema.inferred) == (
        "patients",
        ("patients", "visits"),
        True,
    )
    assert schema.names == ["patients.age", "patients.ward", "visits.cost"]
    assert all(column.missing for column in schema.columns)
    assert schema.unit == Unit(column="patients.id")
    frame = table.data
    assert frame[TABLE].tolist() == ["patients"] * 3 + ["visits"] * 3
    assert frame["patients.id"].tolist() == ["a", "b", "c", "a", "a", "b"]
    assert frame[KEY].tolist()[:3] == ["a", "b", "c"]
    assert frame[PARENT].tolist()[3:] == ["a", "a", "b"]
    assert frame["visits.cost"].isna().tolist() == [True] * 3 + [False] * 3
    assert schema.rows_asked(frame) == 3
    assert Schema.infer(VISITS).rows_asked(VISITS) == 3


def test_units_are_whole_numbers_if_keys_are() -> None:
    numbered = {"patients": PATIENTS.assign(id=[5, 1, 2]), "visits": VISITS.assign(patient_id=5)}
    owners = read(numbered).data["patients.id"]
    assert owners.dtype == np.int64
    assert owners.tolist() == [5, 1, 2, 5, 5, 5]


def test_a_generator_gets_the_tables_as_they_are_with_their_keys() -> None:
    table = read()
    given = linked(table).handed(table.data)
    assert list(given) == ["visits", "patients"]
    pd.testing.assert_frame_equal(given["patients"], PATIENTS, check_dtype=False)
    pd.testing.assert_frame_equal(given["visits"], VISITS, check_dtype=False)
    assert given["patients"]["age"].dtype == np.int64
    plain = Schema.infer(VISITS)
    assert plain.handed(VISITS) is VISITS


def test_numbers_stay_numbers_in_keys_and_other_keys_are_text_in_every_world() -> None:
    numbered = {
        "patients": PATIENTS.assign(id=[0, 1, 2]),
        "visits": VISITS.assign(patient_id=[0, 0, 1]),
    }
    table = read(numbered)
    assert linked(table).handed(table.data)["visits"]["patient_id"].dtype == np.int64
    mixed = {
        "patients": PATIENTS.assign(id=pd.Series(["a", 1, 2], dtype=object)),
        "visits": VISITS.assign(patient_id=[1, 1, 2]),
    }
    table = read(mixed)
    without = table.data[table.data["patients.id"] != "a"]
    for frame in (table.data, without):
        given = linked(table).handed(frame)
        assert set(map(type, given["patients"]["id"])) == {str}
        assert set(map(type, given["visits"]["patient_id"])) == {str}


def test_units_lead_through_other_tables() -> None:
    table = read(DEEP, LINK, NOTES)
    frame = table.data
    assert linked(table).order == ("patients", "visits", "notes")
    assert frame.loc[frame[TABLE] == "notes", "patients.id"].tolist() == ["a", "a", "b"]
    given = linked(table).handed(frame)
    for name, one in DEEP.items():
        pd.testing.assert_frame_equal(given[name], one, check_dtype=False, check_like=True)


def test_tables_are_joined_with_what_their_keys_lead_to() -> None:
    table = read(DEEP, LINK, NOTES)
    schema = linked(table)
    schemas = schema.joined_schemas(table.data)
    found = schema.joined(table.data, schemas, "a")
    assert found["patients"]["number of visits"].tolist() == [2, 1, 0]
    assert found["patients"]["patients.id is the target's"].tolist() == [1, 0, 0]
    assert found["visits"]["number of notes"].tolist() == [0, 2, 1]
    assert found["visits"]["patients.ward"].tolist() == ["x", "x", "y"]
    assert found["notes"]["visits.cost"].tolist() == [2.5, 2.5, 3.0]
    assert found["notes"]["patients.age"].tolist() == [30, 30, 40]
    for name, one in found.items():
        assert list(one.columns) == schemas[name].names
        assert schemas[name].problems(one) == []
        assert "key" not in one
        assert not schemas[name].names[0].endswith("id")


def test_rows_without_a_parent_and_tables_without_rows_have_missing_values() -> None:
    table = read()
    schema = linked(table)
    schemas = schema.joined_schemas(table.data)
    lost = schema.stacked({"patients": PATIENTS, "visits": VISITS.assign(patient_id="nobody")})
    found = schema.joined(lost, schemas, "a")
    assert found["visits"]["patients.age"].isna().all()
    assert found["visits"]["visits.cost"].notna().all()
    assert found["patients"]["number of visits"].tolist() == [0, 0, 0]
    bare = schema.stacked({"patients": PATIENTS, "visits": VISITS[["cost"]]})
    assert schema.joined(bare, schemas, "a")["visits"]["patients.age"].isna().all()
    empty = schema.stacked({"patients": PATIENTS, "visits": VISITS.iloc[:0]})
    [row] = schema.joined(empty, schemas, "a")["visits"].isna().to_numpy().tolist()
    assert all(row)


def test_keys_that_files_wrote_as_numbers_are_the_same_keys() -> None:
    table = read()
    schema = linked(table)
    schemas = schema.joined_schemas(table.data)
    written = {"patients": PATIENTS.assign(id=[1, 2, 3]), "visits": VISITS}
    for keys in ([1.0, 1.0, 2.0], ["1", "1", "2"]):
        released = {**written, "visits": VISITS.assign(patient_id=keys)}
        found = schema.joined(schema.stacked(released), schemas, "2")
        assert found["patients"]["number of visits"].tolist() == [2, 1, 0]
        assert found["visits"]["patients.age"].tolist() == [30, 30, 40]
        assert found["visits"]["patients.id is the target's"].tolist() == [0, 0, 1]


def test_a_schema_of_several_tables_is_kept_in_a_file(tmp_path: Path) -> None:
    schema = linked(read(DEEP, LINK, NOTES, unit=Unit(column="patients.id", max_rows=9)))
    path = tmp_path / "hospital.json"
    schema.save(path)
    files = []
    for name, table in DEEP.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
        files.append(str(tmp_path / f"{name}.csv"))
    again = load_given(files, path, None, ())
    assert again.schema == schema
    named_files = [word for file in files for word in ("--data", file)]
    assert again.words == [*named_files, "--schema", str(path)]
    named = load_given(files, None, None, [LINK, NOTES])
    assert named.words[-4:] == ["--link", LINK, "--link", NOTES]
    assert named.data.equals(again.data)
    assert read().words == ["--data", "visits.csv", "--data", "patients.csv", "--link", LINK]
    document = json.loads(path.read_text())
    assert document["links"] == [LINK, NOTES]
    assert "id" not in str(document["tables"]["patients"])


REFUSED: list[tuple[Any, tuple[str, ...], type[InputError], str]] = [
    (TABLES, ("visits.patient=patients.id",), DataError, "visits has no column 'patient' (did you"),
    (TABLES, ("visits.patient_id=patients.key",), DataError, "table patients has no column 'key'"),
    (TABLES, ("visits.patient_id=patient.id",), SchemaError, "no table patient (did you mean"),
    (TABLES, ("visits.patient_id",), SchemaError, "is not a link: write CHILD.COLUMN=PARENT.KEY"),
    (TABLES, (LINK, "patients.id=visits.patient_id"), SchemaError, "lead in a circle"),
    (TABLES, ("patients.id=patients.id", LINK), SchemaError, "lead in a circle"),
    (DEEP, (LINK,), SchemaError, "table notes has no link to the others: give one, such as notes."),
    (DEEP, (NOTES,), SchemaError, "table patients has no link to the others"),
    (
        DEEP,
        (LINK, NOTES, "notes.visit=patients.id"),
        SchemaError,
        "table notes has two links",
    ),
    (
        {**DEEP, "wards": PATIENTS},
        (LINK, "notes.visit=wards.id"),
        SchemaError,
        "tables patients, wards refer to no other",
    ),
    (
        DEEP,
        (LINK, "notes.visit=patients.age"),
        SchemaError,
        "links refer to patients by age and id: use one key",
    ),
    (
        {**TABLES, "patients": PATIENTS.assign(id=["a", "b", "a"])},
        (LINK,),
        DataError,
        "patients.id is not a key: 1 row with the value of an earlier row, the first is row 2",
    ),
    (
        {**TABLES, "patients": PATIENTS.assign(id=["a", "b", None])},
        (LINK,),
        DataError,
        "patients.id is missing in 1 row, the first is row 2",
    ),
    (
        {**TABLES, "visits": VISITS.assign(patient_id=["a", "z", None])},
        (LINK,),
        DataError,
        "2 rows of visits without a row of patients, the first is row 1",
    ),
    (
        {**TABLES, "visits": VISITS[["patient_id"]]},
        (LINK,),
        SchemaError,
        "table visits: it has no column but keys",
    ),
    (
        {**TABLES, "visits": VISITS.assign(cost=1.0)},
        (LINK,),
        SchemaError,
        "table visits: column 'cost' is constant",
    ),
    (PATIENTS, (LINK,), SettingsError, "`links` connect several tables, and one is given"),
]


@pytest.mark.parametrize(("tables", "links", "kind", "says"), REFUSED)
def test_what_does_not_fit_together_is_refused_in_one_line(
    tables: Any, links: tuple[str, ...], kind: type[InputError], says: str
) -> None:
    with pytest.raises(kind) as caught:
        load_given(tables, None, None, links)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_tables_must_be_those_of_the_schema() -> None:
    schema = linked(read())
    with pytest.raises(SchemaError, match="the schema is of the tables visits, patients, given"):
        load_given({**TABLES, "notes": VISITS}, schema, None, ())
    with pytest.raises(SettingsError, match="`links` differ from the schema's"):
        load_given(TABLES, schema, None, ["visits.cost=patients.id"])
    with pytest.raises(SchemaError, match="the schema is of one table"):
        load_given(TABLES, Schema.infer(VISITS), None, ())
    with pytest.raises(SettingsError, match=r"schema's unit is 'patients\.id'"):
        read(unit=Unit(column="ward"))
    with pytest.raises(DataError, match=r"1 unit of 'patients\.id' with more than 2"):
        read(unit=Unit(column="patients.id", max_rows=2))
    with pytest.raises(DataError, match="table visits does not fit its schema"):
        load_given({**TABLES, "visits": VISITS.assign(cost=99.0)}, schema, None, ())
    alone = {"patients": PATIENTS.iloc[:1], "visits": VISITS.iloc[:2]}
    with pytest.raises(DataError, match="all rows belong to one unit"):
        load_given(alone, schema, None, ())


def test_what_takes_one_table_says_so() -> None:
    for given, schema in ((TABLES, None), (VISITS, linked(read()))):
        with pytest.raises(SettingsError, match="several tables with links are for audits in two"):
            load(given, schema)  # type: ignore[arg-type]  # refused
    with pytest.raises(SettingsError, match="has no name of its own among several tables"):
        load_given(["a/x.csv", "b/x.csv"], None, None, [LINK])


def test_a_schema_has_no_keys_among_its_columns() -> None:
    keyed = Schema(columns=(Column(name="id", kind=Kind.INTEGER, lower=0, upper=9),))
    plain = Schema.infer(VISITS[["cost"]])
    with pytest.raises(SchemaError, match="table patients: its schema describes id"):
        LinkedTables(tables={"patients": keyed, "visits": plain}, links=(Link.of(LINK),))
    with pytest.raises(SchemaError, match="table visits: its schema describes its unit"):
        LinkedTables(
            tables={"patients": plain, "visits": replace(plain, unit=Unit(column="who"))},
            links=(Link.of(LINK),),
        )
    for document in ({"links": []}, {"links": [LINK], "tables": {"patients": {}, "visits": {}}}):
        with pytest.raises(SchemaError, match="table"):
            LinkedTables.from_document(document)
    with pytest.raises(SchemaError, match='unknown keys label; a table goes into "tables"'):
        LinkedTables.from_document({"links": [], "tables": {}, "label": "x"})
