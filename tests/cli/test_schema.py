"""`dpaudit schema`: a schema to edit, which the warning about an inferred one names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dpaudit import Schema
from dpaudit.cli.console import ExitCode
from dpaudit.cli.main import app
from dpaudit.model.linked_tables import LinkedTables
from dpaudit.model.tables import load
from dpaudit.results.phrases import PUBLIC_SCHEMA

TABLE = "age,city,ill\n34,Bern,0\n50,Graz,1\n61,Ulm,0\n50,Bern,1\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_text(TABLE)
    return tmp_path


def schema(*words: str) -> Result:
    return CliRunner().invoke(app, ["schema", *words])


def test_an_inferred_schema_is_printed_and_public_once_edited(folder: Path) -> None:
    done = schema("--data", "table.csv")
    assert done.exit_code == ExitCode.PASS, done.output
    found = json.loads(done.stdout)
    assert Schema.from_document(found) == load("table.csv", None).schema
    assert 'delete "inferred", and give the file with --schema' in done.stderr
    del found["inferred"]
    found["columns"][0] |= {"lower": 0, "upper": 120}
    (folder / "schema.json").write_text(json.dumps(found))
    edited = load("table.csv", "schema.json").schema
    assert not edited.inferred
    assert (edited.columns[0].lower, edited.columns[0].upper) == (0, 120)


def test_the_warning_names_the_command() -> None:
    assert "dpaudit schema" in PUBLIC_SCHEMA
    assert "--schema" in PUBLIC_SCHEMA


def test_a_sample_has_a_public_schema_and_nothing_to_edit() -> None:
    done = schema("--data", "sample:breast-cancer")
    assert not json.loads(done.stdout)["inferred"]
    assert done.stderr == ""


def test_the_schema_of_several_tables_has_their_links(folder: Path) -> None:
    (folder / "people.csv").write_text("id,age\n1,30\n2,40\n")
    (folder / "visits.csv").write_text("person,cost\n1,7.5\n1,2.5\n2,9.5\n")
    tables = ("--data", "people.csv", "--data", "visits.csv")
    done = schema(*tables, "--link", "visits.person=people.id")
    assert done.exit_code == ExitCode.PASS, done.output
    document = json.loads(done.stdout)
    assert document["links"] == ["visits.person=people.id"]
    assert isinstance(LinkedTables.from_document(document), LinkedTables)
    assert "people has no link to the others" in schema(*tables).stderr


def test_a_unit_is_no_column_of_the_schema() -> None:
    document = json.loads(schema("--data", "table.csv", "--unit", "city").stdout)
    assert document["unit"]["column"] == "city"
    assert [column["name"] for column in document["columns"]] == ["age", "ill"]


def test_a_table_is_needed() -> None:
    assert schema().exit_code == ExitCode.USAGE
