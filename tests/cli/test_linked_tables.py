"""Several tables on the command line: each by its file, their links, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from dpaudit.cli.console import ExitCode
from dpaudit.cli.main import app
from reports.linked_tables.mechanisms import hospital

LINK = ("--set", "links=visits.patient_id=patients.id")
OF_REPLAY = ("--link", "visits.patient_id=patients.id")
GENERATOR = "reports.linked_tables.mechanisms:Association"
AUDIT = (
    *("audit", GENERATOR, "--data", "patients.csv", "--data", "visits.csv"),
    *("--shadow-models", "20", "--attack", "query-target", "--jobs", "1", "--out", "run"),
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every command runs in a folder with two tables."""
    monkeypatch.chdir(tmp_path)
    for name, table in hospital(0).items():
        table.to_csv(f"{name}.csv", index=False)
    return tmp_path


def invoke(*words: str) -> Result:
    return CliRunner().invoke(app, list(words), env={"COLUMNS": "200"})


@pytest.mark.ci
def test_tables_and_links_are_given_as_often_as_there_are_any() -> None:
    done = invoke(*AUDIT, *LINK)
    assert done.exit_code in (ExitCode.VIOLATION, ExitCode.INCONCLUSIVE), done.output
    assert "11 rows of one patients.id (from row 0)" in done.output
    assert (
        "--data patients.csv --data visits.csv --set links=visits.patient_id=patients.id"
        in done.output
    )
    planned = invoke("audit", "--plan", *AUDIT[1:6], *LINK, "--shadow-models", "100")
    assert planned.exit_code == ExitCode.PASS, planned.output


@pytest.mark.usefixtures("worlds")
def test_a_replay_takes_tables_and_links() -> None:
    done = invoke("replay", *AUDIT[1:6], *OF_REPLAY, "--fits", "60", "--json")
    assert done.exit_code == ExitCode.VIOLATION, done.output
    document = json.loads(done.stdout)
    assert document["claim"]["unit"] == "patients.id"
    assert "--data visits.csv --link visits.patient_id=patients.id" in document["reproduce"]


def test_tables_may_stand_in_the_configuration_file(folder: Path) -> None:
    (folder / "dpaudit.toml").write_text(
        'data = ["patients.csv", "visits.csv"]\nlinks = ["visits.patient_id=patients.id"]\n'
    )
    done = invoke("audit", "--plan", GENERATOR, "--shadow-models", "100")
    assert done.exit_code == ExitCode.PASS, done.output


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (AUDIT, "table patients has no link to the others: give one"),
        ((*AUDIT, *LINK, "--set", "links=patients.id=visits.patient_id"), "lead in a circle"),
        (
            (*AUDIT, "--set", "links=visits.patient=patients.id"),
            "table visits has no column 'patient'",
        ),
        ((*AUDIT, *LINK, "--data", "no.csv"), "table no has no link to the others"),
        ((*AUDIT, *LINK, "--records", "4"), "audits one table: several tables with links"),
        ((*AUDIT[:4], *LINK), "--set links connect several tables, and one is given"),
        (("replay", *AUDIT[1:6]), "table patients has no link to the others: give one"),
        (
            ("replay", *AUDIT[1:6], *OF_REPLAY, "--hand-over"),
            "--hand-over is for replays of one table",
        ),
        (("probe", *AUDIT[1:6], *LINK), "one table is read, and several are given; dpaudit audit"),
        (
            ("trace", *AUDIT[1:4], "--data=visits.csv"),
            "dpaudit replay take several that are linked",
        ),
    ],
)
def test_what_does_not_fit_is_one_line_before_any_training(
    words: tuple[str, ...], says: str, folder: Path
) -> None:
    done = invoke(*words)
    assert done.exit_code == ExitCode.USAGE
    [line] = [one for one in done.output.splitlines() if one.startswith("error:")]
    assert says in line
    assert not (folder / "run").exists()


def test_children_without_a_parent_are_named_by_their_row(folder: Path) -> None:
    visits = pd.read_csv(folder / "visits.csv")
    visits.loc[4, "patient_id"] = 999
    visits.to_csv(folder / "visits.csv", index=False)
    done = invoke(*AUDIT, *LINK)
    assert done.exit_code == ExitCode.USAGE
    assert "1 row of visits without a row of patients, the first is row 4" in done.output
