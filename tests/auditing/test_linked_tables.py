"""Whole audits of several tables: leaks that only keys show, honest twins, and what is refused."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit.auditing.entry import audit_by_keywords, run_audit
from dpaudit.auditing.games import audit_settings, audited_table, build_spec
from dpaudit.auditing.two_worlds.controls import control_generator
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec
from dpaudit.errors import ClaimError, RunFolderError, SettingsError, TrialError
from dpaudit.explain import explain
from dpaudit.game.trial import Role
from dpaudit.model.linked_tables import TABLE
from dpaudit.plugins.foreign import pickled
from dpaudit.plugins.protocols import World
from dpaudit.plugins.release import accept
from reports.linked_tables.mechanisms import (
    LEAKS,
    SCHEMA,
    UNIT,
    VISITS,
    Association,
    Busiest,
    WithoutKeys,
    hospital,
)
from samples import QUICK_ATTACKS

FAST: dict[str, Any] = {"schema": SCHEMA, "attacks": QUICK_ATTACKS, "jobs": 1}


def spec_of(generator: object = Association(), **settings: Any) -> TwoWorldSpec:
    schema = settings.pop("schema", SCHEMA)
    chosen = audit_settings(attacks=QUICK_ATTACKS, shadow_models=20, **settings)
    spec = build_spec(generator, audited_table(hospital(0), schema, chosen), chosen)
    assert isinstance(spec, TwoWorldSpec)
    return spec


@pytest.mark.parametrize("name", ["association", pytest.param("busiest", marks=pytest.mark.ci)])
def test_a_leak_that_only_keys_show_is_proved(name: str) -> None:
    leaky = audit_by_keywords(LEAKS[name](), hospital(1), shadow_models=60, **FAST)
    assert leaky.verdict is dpaudit.Verdict.VIOLATION
    assert (leaky.target.choice, leaky.target.row, leaky.target.rows_of_unit) == ("exposing", 0, 11)


@pytest.mark.ci
@pytest.mark.parametrize("name", list(LEAKS))
def test_its_honest_twin_is_not_flagged(name: str) -> None:
    found = audit_by_keywords(LEAKS[name](honest=True), hospital(1), shadow_models=60, **FAST)
    assert found.verdict is not dpaudit.Verdict.VIOLATION


@pytest.mark.ci
@pytest.mark.parametrize("name", ["association", pytest.param("busiest", marks=pytest.mark.slow)])
def test_without_keys_no_attack_on_each_table_shows_it(name: str) -> None:
    found = audit_by_keywords(WithoutKeys(LEAKS[name]()), hospital(1), shadow_models=60, **FAST)
    assert found.verdict is not dpaudit.Verdict.VIOLATION


def test_single_tables_have_the_same_distribution_in_both_worlds() -> None:
    """Wards are fair coins, so drugs that mostly match and mostly do not are fair coins too."""
    models = {
        world: Association().fit(
            spec_of().table.schema.handed(spec_of().game.table(world, 0)), seed=0
        )
        for world in World
    }
    assert models[World.IN].matching == 1 - models[World.OUT].matching
    drugs = {
        world: np.concatenate([one.sample(500, seed=n)["visits"]["drug"] for n in range(20)])
        for world, one in models.items()
    }
    shares = {world: (one == "A").mean() for world, one in drugs.items()}
    assert all(abs(share - 0.5) < 0.02 for share in shares.values())
    most = {
        len(tables["patients"]): Busiest().fit(tables, seed=0).visits
        for tables in (SCHEMA.handed(spec_of().game.table(world, 0)) for world in World)
    }
    assert most == {41: VISITS, 40: 4}


def test_world_out_lacks_the_unit_in_every_table() -> None:
    spec = spec_of()
    inside, outside = (SCHEMA.handed(spec.game.table(world, 0)) for world in World)
    whole = hospital(0)
    for name, key in (("patients", "id"), ("visits", "patient_id")):
        pd.testing.assert_frame_equal(inside[name], whole[name], check_dtype=False)
        kept = whole[name][whole[name][key] != 0].reset_index(drop=True)
        pd.testing.assert_frame_equal(outside[name], kept, check_dtype=False)
        assert inside[name].dtypes.equals(outside[name].dtypes)
    assert spec.rows == spec.game.view.n_rows == len(whole["patients"])
    assert set(spec.game.view.of_tables) == {"patients", "visits"}


def test_the_replacement_of_a_unit_keeps_its_keys_and_is_new_in_every_row() -> None:
    spec = spec_of(neighbours="replace-one", epsilon=1.0)
    inside, outside = (SCHEMA.handed(spec.game.table(world, 0)) for world in World)
    for name, key in (("patients", "id"), ("visits", "patient_id")):
        assert inside[name][key].tolist() == outside[name][key].tolist()
        differ = (inside[name] != outside[name]).any(axis=1)
        assert inside[name].loc[differ, key].tolist() == (inside[name][key] == 0).sum() * [0]


def test_a_unit_without_rows_in_a_table_is_attacked_in_the_others() -> None:
    tables = hospital(0)
    tables["visits"] = tables["visits"][tables["visits"]["patient_id"] != 3]
    settings = audit_settings(attacks=QUICK_ATTACKS, shadow_models=20, target="unit:3")
    spec = build_spec(Association(), audited_table(tables, SCHEMA, settings), settings)
    assert isinstance(spec, TwoWorldSpec)
    assert set(spec.game.view.of_tables) == {"patients"}
    assert sum(spec.widths) > 0


@dataclass(frozen=True)
class Copies:
    """Gives back its tables, or whatever else it is to give."""

    gives: Any = None
    claim: Any = None

    def fit(self, data: Any, *, seed: int | None) -> Any:
        self._kept.append(data)
        return self

    @property
    def _kept(self) -> list[Any]:
        return self.__dict__.setdefault("kept", [])

    def sample(self, n: int, *, seed: int | None) -> Any:
        return self._kept[-1] if self.gives is None else self.gives


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda tables: tables["patients"], "DataFrame, not a dict of the tables patients, visits"),
        (lambda tables: {"patients": tables["patients"]}, "dict of 1 others, not a dict of the"),
        (lambda tables: {**tables, "visits": 3}, "table visits: sample returned int, not a pandas"),
        (
            lambda tables: {**tables, "visits": tables["visits"].drop(columns="cost")},
            "table visits: wrong columns: column 'cost' is missing",
        ),
        (
            lambda tables: {**tables, "patients": tables["patients"].iloc[1:]},
            "wrong row count: 40 rows instead of 41",
        ),
    ],
)
def test_what_is_no_such_set_of_tables_is_a_failed_trial(change: Any, says: str) -> None:
    tables = hospital(0)
    frame = accept(tables, SCHEMA, 41)
    assert len(frame) == len(tables["patients"]) + len(tables["visits"])
    with pytest.raises(TrialError) as caught:
        accept(change(tables), SCHEMA, 41)
    assert says in str(caught.value)


def test_any_number_of_children_is_accepted() -> None:
    tables = hospital(0)
    for rows in (0, 1, 7):
        frame = accept({**tables, "visits": tables["visits"].iloc[:rows]}, SCHEMA, 41)
        assert (frame[TABLE] == "visits").sum() == rows


def test_controls_are_of_every_table_and_ask_for_the_same_rows_in_both_worlds() -> None:
    spec = spec_of()
    import pickle

    for role in (Role.NULL_CONTROL, Role.POSITIVE_CONTROL):
        control = pickle.loads(control_generator(role, spec))
        sizes = set()
        for world in World:
            model = control.fit(SCHEMA.handed(spec.game.table(world, 0)), seed=1)
            sample = model.sample(spec.rows, seed=2)
            accept(sample, SCHEMA, spec.rows)
            sizes.add(tuple(map(len, sample.values())))
        assert len(sizes) == 1


def test_features_are_named_by_their_table_and_keys_are_none() -> None:
    spec = spec_of()
    names = [name for one in spec.attacks for name in one.feature_names(spec.game.view)]
    assert len(names) == len(set(names)) == sum(spec.widths)
    assert {name.feature.rpartition(" in ")[2] for name in names} == {"patients", "visits"}
    columns = {part for name in names for part in name.column.split(" & ")}
    assert "number of visits" in columns
    assert {"patients.ward", "visits.drug"} <= columns
    assert not {"patients.id", "visits.patient_id"} & columns


@pytest.mark.ci
def test_an_identifier_that_is_released_as_it_is_shows() -> None:
    """It gives no rows of the table, but the attacked patient's own number."""

    found = audit_by_keywords(Numbers(), hospital(2), shadow_models=60, epsilon=1.0, **FAST)
    assert found.verdict is dpaudit.Verdict.VIOLATION
    assert any("is the target's" in leak.column for leak in found.leaks)


@dataclass(frozen=True)
class Numbers:
    """Releases uniform tables under the identifiers of its patients."""

    def fit(self, data: dict[str, pd.DataFrame], *, seed: int | None) -> Any:
        return NumbersModel(data["patients"]["id"].to_numpy())


@dataclass(frozen=True)
class NumbersModel:
    """Its model."""

    ids: Any

    def sample(self, n: int, *, seed: int | None) -> dict[str, pd.DataFrame]:
        tables = Busiest(honest=True).fit(hospital(0), seed=0).sample(n, seed=seed)
        numbers = np.random.default_rng(seed).permutation(np.resize(self.ids[::-1], n))
        return {
            "patients": tables["patients"].assign(id=numbers),
            "visits": tables["visits"].assign(patient_id=numbers[tables["visits"]["patient_id"]]),
        }


WORKER = """
from reports.linked_tables.mechanisms import Association, Busiest


class Hospital(Association):
    pass
"""


@pytest.mark.ci
def test_a_worker_gets_and_gives_the_tables(tmp_path: Path) -> None:
    file = tmp_path / "generator.py"
    file.write_text(f"import sys\nsys.path.insert(0, {str(Path(__file__).parents[2])!r})\n{WORKER}")
    spec = spec_of(f"worker:{sys.executable} {file}:Hospital")
    assert spec.claim.unit == UNIT
    generator = spec.generator.generator
    handed = SCHEMA.handed(spec.game.table(World.IN, 0))
    found = generator.fit(handed, seed=5).sample(30, seed=6)
    frame = accept(found, SCHEMA, 30)
    again = accept(generator.fit(handed, seed=5).sample(30, seed=6), SCHEMA, 30)
    assert frame.equals(again)
    joined = spec.game.view.joined(frame)
    assert joined["visits"]["patients.ward"].notna().all()
    matching = joined["visits"]["patients.ward"] == joined["visits"]["visits.drug"]
    assert matching.mean() > 0.7
    result = run_audit(spec, tmp_path / "run", jobs=1)
    assert result.failures == dict.fromkeys(World, 0)


@pytest.mark.ci
def test_results_name_the_tables_and_the_unit(tmp_path: Path) -> None:
    spec = spec_of()
    result = run_audit(spec, tmp_path / "run", jobs=1)
    document = json.loads((tmp_path / "run" / "result.json").read_text())
    assert document["claim"]["unit"] == UNIT
    assert document["target"]["rows_of_unit"] == 11
    assert document["data"]["units"] == 41
    assert document["data"]["tables"] == {name: len(of) for name, of in hospital(0).items()}
    report = (tmp_path / "run" / "report.md").read_text()
    assert "Rows of visits" in report
    assert "all rows of one patients.id" in report
    assert "replay" not in document
    assert "--data patients.csv --data visits.csv --set links=visits.patient_id=patients.id" in (
        result.reproduce
    )
    again = run_audit(spec, tmp_path / "run", jobs=1)
    assert again.to_json() == result.to_json()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"records": 4}, "the game of many records audits one table: several tables with"),
        ({"one_run": True}, "the game of one run audits one table: several tables with links"),
        ({"target": "vulnerable"}, "compares rows, not units"),
        ({"access": "model"}, '`access="model"` is for audits of one table'),
        ({"access": "released"}, '`access="released"` is for audits of one table'),
        ({"neighbours_file": "other.csv"}, "`neighbours_file` is for audits of one table"),
        ({"links": "visits.cost=patients.id"}, "`links` differ from the schema's"),
        ({"worst_case": "opposite"}, "`worst_case` builds its table"),
    ],
)
def test_what_does_not_go_together_is_refused(settings: dict[str, Any], says: str) -> None:
    chosen = audit_settings(epsilon=1.0, **settings)
    with pytest.raises(SettingsError, match=says):
        audited_table(hospital(0), SCHEMA, chosen)


def test_a_claim_per_row_is_refused() -> None:
    with pytest.raises(ClaimError, match="which says less about a patients"):
        spec_of(Copies(claim=dpaudit.PrivacyClaim(epsilon=1.0)))


def test_a_generator_that_trains_many_models_on_one_table_is_refused() -> None:
    class Many(Association):
        def fit_many(self) -> None:
            raise NotImplementedError

    with pytest.raises(SettingsError, match="Many trains many models on one table, and several"):
        spec_of(Many())


@pytest.mark.ci
def test_explain_takes_audits_of_one_table(tmp_path: Path) -> None:
    files = []
    for name, table in hospital(0).items():
        files.append(str(tmp_path / f"{name}.csv"))
        table.to_csv(files[-1], index=False)
    chosen = audit_settings(attacks=QUICK_ATTACKS, shadow_models=20, epsilon=0.1)
    generator = "reports.linked_tables.mechanisms:Association"
    spec = build_spec(generator, audited_table(files, SCHEMA, chosen), chosen)
    run_audit(spec, tmp_path / "run", jobs=1)
    with pytest.raises(RunFolderError, match="explain is of audits of one table"):
        explain(tmp_path / "run")


@pytest.mark.ci
def test_an_audit_of_tables_is_sequential_too_and_pickles() -> None:
    spec = spec_of(LEAKS["busiest"]())
    assert pickled(spec.game, name="the game")
    found = audit_by_keywords(
        LEAKS["busiest"](), hospital(3), shadow_models=60, sequential=True, **FAST
    )
    assert found.verdict is dpaudit.Verdict.VIOLATION
