"""Audits of a pair of tables: worst cases and one's own, the same rows asked of both worlds."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import typer

import dpaudit
from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.auditing.games import audit_settings, build_spec
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec, audited_table
from dpaudit.cli.main import app
from dpaudit.errors import DataError, SchemaError, SettingsError
from dpaudit.explain.run import reopen
from dpaudit.game.store import Private
from dpaudit.model.choices import WorstCase
from dpaudit.model.claim import Neighbours
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import World
from dpaudit.results.verdict import Verdict
from samples import QUICK_ATTACKS

SCHEMA = Schema(
    columns=(
        Column(name="age", kind=Kind.INTEGER, lower=0, upper=120),
        Column(name="town", kind=Kind.CATEGORICAL, categories=("Bern", "Graz", "Ulm")),
        Column(name="ill", kind=Kind.BINARY, categories=(0, 1)),
        Column(name="pay", kind=Kind.CONTINUOUS, lower=0, upper=9),
    )
)
SMALL: dict[str, Any] = {
    "shadow_models": 40,
    "attacks": QUICK_ATTACKS[1:],
    "jobs": 1,
    "epsilon": 1.0,
}


def _replay(command: str) -> dict[str, Any]:
    """What the command of a replay was given; fails where it has no such option."""
    group: Any = typer.main.get_command(app)
    _, name, *words = shlex.split(command)
    given: dict[str, Any] = group.get_command(None, name).make_context(name, words).params
    return given


def spec_of(schema: Schema | str | None = SCHEMA, data: Any = None, **given: Any) -> TwoWorldSpec:
    settings = audit_settings(epsilon=1.0, **given)
    spec = build_spec("null", audited_table(data, schema, settings), settings)
    assert isinstance(spec, TwoWorldSpec)
    return spec


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a schema, a table, and the table without its last record."""
    monkeypatch.chdir(tmp_path)
    table = pd.DataFrame(
        {
            "age": range(30),
            "town": ["Graz", "Ulm"] * 15,
            "ill": [0, 1] * 15,
            "pay": [1.5, 2.5, 3.5] * 10,
        }
    )
    table.to_csv("table.csv", index=False)
    table.drop(index=29).to_csv("without.csv", index=False)
    table.replace({"age": {29: 119}}).to_csv("changed.csv", index=False)
    SCHEMA.save("schema.json")
    return tmp_path


def test_a_search_among_the_worst_cases_names_what_took_its_place() -> None:
    with pytest.raises(SettingsError, match=r"dpaudit replay GENERATOR .* --search.*neighbours-f"):
        audit_settings(worst_case="search")


def test_copies_show_in_one_synthetic_row_of_two_possible_ones() -> None:
    """Else an honest audit of so few rows would be inconclusive: nothing would be seen anyway."""
    flag = Schema(columns=(Column(name="flag", kind=Kind.BINARY, categories=(0, 1)),))
    asked = SMALL | {"shadow_models": 40, "rows": 1, "epsilon": 1.0}
    result = audit_by_keywords("null", schema=flag, worst_case="opposite", **asked)
    assert result.controls is not None
    assert result.controls.positive.passed, result.controls.positive.detail
    assert result.verdict is Verdict.CONSISTENT


@pytest.mark.parametrize("name", [one for one in WorstCase if one is not WorstCase.MISSING])
@pytest.mark.parametrize("neighbours", [Neighbours.ADD_REMOVE, Neighbours.REPLACE_ONE])
def test_the_worlds_of_a_worst_case_differ_in_one_record_and_no_rows(
    name: WorstCase, neighbours: Neighbours
) -> None:
    spec = spec_of(None if name.has_own_schema else SCHEMA, worst_case=name, neighbours=neighbours)
    one, other = (spec.game.table(world, 0) for world in (World.IN, World.OUT))
    asked = {world: spec.game.rows_requested(world) for world in World}
    assert set(asked.values()) == {len(one)}
    assert spec.game.view.neighbours is neighbours
    removed = neighbours is Neighbours.ADD_REMOVE
    assert len(other) == len(one) - removed
    assert other.iloc[: len(one) - 1].equals(one.iloc[:-1])
    if not removed:
        assert (other.iloc[-1] == one.iloc[0]).all()
    replaced = "replacement" in spec.specification["target"]
    assert replaced
    assert isinstance(spec.stored_specification["target"]["replacement"], Private)


@pytest.mark.parametrize(
    "name",
    [
        one if one == "opposite" else pytest.param(one, marks=pytest.mark.ci)
        for one in WorstCase
        if one is not WorstCase.MISSING  # no value of the schema is missing
    ],
)
def test_a_leak_shows_on_every_worst_case(name: WorstCase) -> None:
    schema = None if name.has_own_schema else SCHEMA
    enough = SMALL | {"shadow_models": 100}
    result = audit_by_keywords("copycat", schema=schema, worst_case=name.value, **enough)
    assert result.verdict is Verdict.VIOLATION
    assert result.target.choice == result.data.source == f"worst-case:{name}"
    assert result.target.tables is not None
    assert result.target.tables in result.to_json()


@pytest.mark.ci
def test_a_generator_that_ignores_its_data_does_not_leak_on_one() -> None:
    """Null test: with unequal rows asked, as in a published game, a constant would be caught."""
    result = audit_by_keywords("null", worst_case="mst", **SMALL)
    assert result.verdict is not Verdict.VIOLATION
    assert result.epsilon_lower_bound == 0.0


def test_the_report_says_what_was_built_and_the_command_builds_it_again(files: Path) -> None:
    out = files / "run"
    given = {**SMALL, "epsilon": 1.0}
    result = audit_by_keywords(
        "copycat", schema="schema.json", worst_case="narrow", out=out, **given
    )
    told = "worst case narrow, built from the public schema alone"
    assert told in (out / "report.md").read_text(encoding="utf-8")
    assert told in (out / "report.html").read_text(encoding="utf-8")
    words = shlex.split(result.reproduce)
    assert words[words.index("--worst-case") + 1] == "narrow"
    assert (result.target.worst_case, result.schema.source) == ("narrow", "schema.json")
    assert words[words.index("--schema") + 1] == "schema.json"
    assert not {"--data", "--target"} & set(words)
    assert result.replay is not None
    again = _replay(result.replay)
    assert (again["worst_case"], list(again["data"])) == (WorstCase.NARROW, [])
    assert "--target" not in result.replay
    run = reopen(out)
    assert run.audit.settings.game.worst_case is WorstCase.NARROW
    assert run.audit.id == spec_of_run(result, "narrow").id


def spec_of_run(result: dpaudit.AuditResult, name: str) -> TwoWorldSpec:
    settings = audit_settings(
        epsilon=1.0, shadow_models=40, attacks=QUICK_ATTACKS[1:], worst_case=WorstCase(name)
    )
    table = audited_table(None, "schema.json", settings)
    spec = build_spec(result.generator.name, table, settings)
    assert isinstance(spec, TwoWorldSpec)
    return spec


def test_a_pair_of_ones_own_is_audited_and_reopened(files: Path) -> None:
    result = audit_by_keywords(
        "copycat",
        "table.csv",
        schema="schema.json",
        neighbours_file=Path("without.csv"),  # type: ignore[arg-type]  # any path will do
        out="run",
        **SMALL,
    )
    assert result.verdict is Verdict.VIOLATION
    assert (result.target.row, result.target.choice) == (29, "neighbours-file:without.csv")
    assert "--data table.csv" in result.reproduce
    assert "--set neighbours-file=without.csv" in result.reproduce
    assert result.replay is not None
    again = _replay(result.replay)
    assert (again["data"], again["neighbours_file"]) == (["table.csv"], "without.csv")
    run = reopen(Path("run"))
    assert run.audit.target.row == 29
    assert run.result.target.neighbours_file == "without.csv"


def test_a_changed_record_makes_a_replace_one_game(files: Path) -> None:
    spec = spec_of("schema.json", "table.csv", neighbours_file="changed.csv")
    assert spec.claim.neighbours is Neighbours.REPLACE_ONE
    one, other = (spec.game.table(world, 0) for world in (World.IN, World.OUT))
    assert one["age"].tolist() == list(range(30))
    assert other["age"].tolist() == [*range(29), 119]
    assert {spec.game.rows_requested(world) for world in World} == {30}
    with pytest.raises(SettingsError, match=r"`neighbours` is add-remove, and .* are replace-one"):
        spec_of("schema.json", "table.csv", neighbours_file="changed.csv", neighbours="add-remove")
    with pytest.raises(SchemaError, match="inferred"):
        spec_of(None, "table.csv", neighbours_file="changed.csv")
    with pytest.raises(DataError, match="equals the table"):
        spec_of("schema.json", "table.csv", neighbours_file="table.csv")


def test_other_tables_are_other_audits(files: Path) -> None:
    ids = {spec_of(worst_case=name).id for name in ("opposite", "mixed", "one-hot")}
    ids |= {
        spec_of("schema.json", "table.csv", neighbours_file=f"{name}.csv").id
        for name in ("without", "changed")
    }
    changed = pd.read_csv("changed.csv")
    changed.loc[29, "age"] = 118
    changed.to_csv("changed.csv", index=False)
    ids.add(spec_of("schema.json", "table.csv", neighbours_file="changed.csv").id)
    assert len(ids) == 6


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"worst_case": "worst"}, "`worst_case`: 'worst' is not one of opposite, one-hot, narrow"),
        ({"worst_case": "mst", "neighbours_file": "a"}, "leave out one"),
        ({"worst_case": "mst", "target": 3}, "`worst_case` says which record is the target"),
        ({"neighbours_file": "a", "target": "vulnerable"}, "leave out `target`"),
        ({"worst_case": "mst", "one_run": True}, "leave out `one_run`"),
        ({"neighbours_file": 3}, "`neighbours_file` must be the name of a file, got 3"),
    ],
)
def test_settings_that_contradict_a_pair_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        audit_settings(**given)


def test_a_table_is_handed_in_or_built_but_not_both(files: Path) -> None:
    with pytest.raises(SettingsError, match="no table to audit on: give `data`, or `worst_case`"):
        audit_by_keywords("null", epsilon=1.0)
    with pytest.raises(SettingsError, match="leave out `data`, or leave out `worst_case`"):
        audit_by_keywords("null", "table.csv", schema="schema.json", worst_case="opposite")
    Path("sdv.json").write_text('{"columns": {"age": {"sdtype": "numerical"}}}')
    with pytest.raises(SchemaError, match="SDV metadata has no bounds"):
        audit_by_keywords("null", schema="sdv.json", worst_case="opposite")
