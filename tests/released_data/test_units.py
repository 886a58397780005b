"""Released tables by unit: a coin for each, exact answers, null tests, copies of several rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dpaudit
from dpaudit.bounds import one_run_in_turn
from dpaudit.cli.main import app
from dpaudit.errors import DataError, InputError, SettingsError
from dpaudit.model.column import Column, Kind, Unit
from dpaudit.model.schema import Schema
from dpaudit.released_data.audit import canaries_of
from dpaudit.released_data.conclusion import ReleasedFinding
from dpaudit.released_data.copies import find_outliers
from dpaudit.released_data.membership import draw_fitting_part, recognise, released_bound
from dpaudit.released_data.result import released_schema
from dpaudit.released_data.scores import (
    BEST_ROW,
    ComparedUnits,
    Grouped,
    membership_scores,
    unit_scores,
)
from dpaudit.released_data.split import CoinFile, CoinSplit
from dpaudit.released_data.tables import load_released
from reports.units.towns import Towns

PATIENTS, ROWS = 300, 10
TOWNS = Column(name="town", kind=Kind.CATEGORICAL, categories=tuple(range(PATIENTS)))
SPACE = Column(name="x", kind=Kind.CONTINUOUS, lower=0.0, upper=1.0)
SCHEMA = Schema(columns=(TOWNS, SPACE, Column(name="y", kind=Kind.CONTINUOUS, lower=0, upper=1)))


def visits(seed: int = 0, *, patients: int = PATIENTS, rows: int = ROWS) -> pd.DataFrame:
    """Shuffled visits: each patient has a town, and rows anywhere in the square."""
    rng = np.random.default_rng(seed)
    patient = rng.permutation(np.repeat(np.arange(patients), rows))
    x, y = rng.random((2, len(patient))).round(4)
    return pd.DataFrame({"patient": patient, "town": patient, "x": x, "y": y})


DATA = visits()
SPLIT = dpaudit.split(DATA, unit="patient", seed=1)


def anywhere(n: int, seed: int, towns: np.ndarray | None = None) -> pd.DataFrame:
    """Rows that know nothing of train, but which towns there are."""
    rng = np.random.default_rng(seed)
    town = rng.integers(PATIENTS, size=n) if towns is None else rng.choice(towns, n)
    return pd.DataFrame({"town": town, "x": rng.random(n), "y": rng.random(n)})


def audited(synthetic: pd.DataFrame, parts: CoinSplit = SPLIT, **settings: Any) -> Any:
    given = {"coins": parts.coins, "schema": SCHEMA, "secrets": ["town"], **settings}
    return dpaudit.audit_data(synthetic, parts.train, parts.holdout, **given)


def test_a_coin_deals_all_rows_of_a_unit_and_keeps_their_order() -> None:
    trained, kept = (set(table["patient"]) for table in (SPLIT.train, SPLIT.holdout))
    assert not trained & kept
    assert trained | kept == set(range(PATIENTS))
    assert set(SPLIT.train["patient"].value_counts()) == {ROWS}
    pd.testing.assert_frame_equal(
        SPLIT.train, DATA[DATA["patient"].isin(trained)].reset_index(drop=True)
    )
    assert SPLIT.number == PATIENTS
    assert SPLIT.coins.unit == "patient"
    assert np.array_equal(SPLIT.coins.in_train, DATA["patient"].isin(trained))


def test_some_units_have_a_coin_and_the_others_are_in_train() -> None:
    parts = dpaudit.split(DATA, unit="patient", coins=40, seed=2)
    assert parts.number == 40
    tossed = DATA["patient"].iloc[parts.coins.tossed]
    assert tossed.nunique() == 40
    assert len(tossed) == 40 * ROWS
    assert set(parts.holdout["patient"]) <= set(tossed)
    assert audited(anywhere(600, 3), parts).rows.coins == 40


@pytest.mark.ci
def test_coins_of_units_are_fair_and_independent() -> None:
    table = visits(patients=20, rows=2)
    dealt = np.array(
        [
            np.isin(range(6), dpaudit.split(table, unit="patient", seed=seed).train["patient"])
            for seed in range(400)
        ]
    )
    assert np.abs(dealt.mean(axis=0) - 0.5).max() < 0.1
    assert np.abs(np.corrcoef(dealt.T) - np.eye(6)).max() < 0.2


def test_a_unit_of_each_row_is_split_as_rows_are() -> None:
    table = DATA.assign(patient=range(len(DATA)))
    by_unit, by_row = (dpaudit.split(table, unit=unit, seed=5) for unit in ("patient", None))
    pd.testing.assert_frame_equal(by_unit.train, by_row.train)
    assert by_unit.coins.inside == by_row.coins.inside
    assert "unit" not in by_row.coins.to_json()


def test_a_coin_file_of_units_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "coins.json"
    path.write_text(SPLIT.coins.to_json())
    assert CoinFile.read(path) == SPLIT.coins


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (DATA.drop(columns="patient"), "the unit's column 'patient' is missing"),
        (DATA.assign(patient=1), "the unit 'patient' is constant: all rows belong to one unit"),
        (
            DATA.assign(patient=DATA["patient"].astype(str).replace({"3": "NA"})),
            "the unit 'patient' is missing in 10 rows",
        ),
        (visits(patients=19), "the units of the table are 19: give at least 20"),
    ],
)
def test_a_table_whose_units_cannot_be_dealt_is_refused_in_one_line(
    table: pd.DataFrame, says: str
) -> None:
    with pytest.raises(InputError) as caught:
        dpaudit.split(table, unit="patient", seed=1)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_towns_released_with_enough_rows_are_a_violation_per_patient() -> None:
    """Without one row of a patient the release is the same: only the unit shows."""
    towns = SPLIT.train["town"].value_counts()
    released = np.sort(towns[towns >= ROWS // 2].index.to_numpy())
    one_less = SPLIT.train[SPLIT.train.groupby("patient").cumcount() > 0]["town"].value_counts()
    assert set(one_less[one_less >= ROWS // 2].index) == set(released)
    found = audited(anywhere(3000, 3, released), epsilon=1.0)
    assert found.finding is ReleasedFinding.VIOLATION
    assert found.unit == found.claim.unit == "patient"
    assert found.rows.coins == PATIENTS
    assert found.membership.scored == PATIENTS // 2
    jsonschema.validate(found.to_document(), released_schema())
    text = " ".join(found.to_markdown().split())
    assert "add or remove all rows of one patient" in text
    assert "Recognising training units" in text
    assert "training rows that" not in text


def test_an_honest_release_is_not_flagged() -> None:
    found = audited(anywhere(3000, 3), epsilon=1.0)
    assert found.finding is not ReleasedFinding.VIOLATION
    assert found.bound.proved < 1.0
    assert not found.linkage.proved


# Of 5 % of the releases more are flagged with probability below 0.05.
@pytest.mark.parametrize(
    ("releases", "most"),
    [pytest.param(40, 4, marks=pytest.mark.ci), pytest.param(400, 28, marks=pytest.mark.slow)],
)
def test_randomised_response_per_patient_is_not_flagged(releases: int, most: int) -> None:
    """Exactly epsilon per patient; each patient has a town."""
    epsilon, patients, flagged = 0.5, 60, 0
    for seed in range(releases):
        table = visits(seed, patients=patients, rows=2)
        parts = dpaudit.split(table, unit="patient", seed=seed)
        rng = np.random.default_rng([seed, 1])
        there = np.bincount(parts.train["town"], minlength=PATIENTS) > 0
        truthful = rng.random(PATIENTS) < 1.0 / (1.0 + np.exp(-epsilon))
        answers = np.where(np.arange(PATIENTS) < patients, there == truthful, False)
        drawn = Towns(answers.astype(float)).sample(600, seed=seed)
        synthetic = drawn.rename(columns={"cost": "x"}).assign(y=rng.random(600))
        tables = load_released(parts.train, synthetic, parts.holdout, schema=SCHEMA, unit="patient")
        canaries = canaries_of(tables, parts.coins, seed=seed)
        assert canaries.units is not None
        rows = membership_scores(canaries.real, tables.synthetic, SCHEMA, of=canaries.rows)
        inside = canaries.inside[canaries.units.first]
        fitting = draw_fitting_part(len(inside), rng)
        seen = unit_scores(rows, canaries.units).seen
        right = recognise(seen, inside, fitting, rng, confidence=0.95).right
        assert len(right) == patients // 2
        flagged += released_bound(right, delta=0.0, confidence=0.95) > epsilon
        assert released_bound(right, delta=0.0, confidence=0.95) == one_run_in_turn(
            right, delta=0.0, confidence=0.95
        )
    assert flagged <= most


@pytest.mark.parametrize(
    ("releases", "most"),
    [pytest.param(20, 4, marks=pytest.mark.ci), pytest.param(200, 16, marks=pytest.mark.slow)],
)
def test_releases_without_a_leak_prove_nothing(releases: int, most: int) -> None:
    """Rows of a patient are alike, so tests that took them as independent would alarm."""
    alarms = 0
    for seed in range(releases):
        rng = np.random.default_rng([seed, 2])
        table = visits(seed, patients=80, rows=8)
        place = rng.random((PATIENTS, 2))[table["patient"]]
        table[["x", "y"]] = (place + 1e-3 * rng.random((len(table), 2))).clip(0, 1).round(3)
        parts = dpaudit.split(table, unit="patient", seed=seed)
        others = table.sample(300, random_state=seed).drop(columns="patient")
        found = audited(others, parts, seed=seed)
        alarms += found.finding is ReleasedFinding.LEAK
    assert alarms <= most


def shaken(parts: CoinSplit, patients: int, rows: int, *, by: float) -> pd.DataFrame:
    """Near copies of rows of some patients of train among rows from anywhere."""
    rng = np.random.default_rng(8)
    chosen = rng.permutation(parts.train["patient"].unique())[:patients]
    own = parts.train[parts.train["patient"].isin(chosen)].groupby("patient").head(rows)
    own = own.drop(columns="patient")
    own[["x", "y"]] = (own[["x", "y"]] + by).clip(0, 1)
    return pd.concat([anywhere(3000 - len(own), 4), own], ignore_index=True)


def test_near_copies_of_several_rows_of_a_patient_are_found_as_such() -> None:
    linkage = audited(shaken(SPLIT, 40, 3, by=2e-3)).linkage
    found = linkage.copies
    assert found.exact.records.train.found == 0
    exact, *near = found.several
    assert exact.records.train.found == 0
    best = max(near, key=lambda one: one.records.at_least or 0)
    assert best.records.train.found >= 40
    assert 1 <= (best.records.at_least or 0) <= 40
    assert "training units have two rows or more in the synthetic table" in linkage.proved[0]


@pytest.mark.ci
def test_copies_of_single_rows_are_not_taken_for_several() -> None:
    found = audited(shaken(SPLIT, 40, 1, by=0.0)).linkage.copies
    assert found.exact.records.train.found == 40
    assert found.exact.records.proved
    assert not any(one.records.proved for one in found.several or ())
    assert found.exact.records.train.of == SPLIT.train["patient"].nunique()


def test_scores_of_units_are_means_and_best_rows() -> None:
    rows = Grouped.by(np.array([7, 3, 7, 7, 3]))
    values = np.array([1.0, 5.0, 4.0, 1.0, 9.0])
    assert rows.of.tolist() == [0, 1, 0, 0, 1]
    assert rows.first.tolist() == [0, 1]
    assert rows.mean(values).tolist() == [2.0, 7.0]
    assert rows.ranked(values, 0).tolist() == [1.0, 5.0]
    assert rows.ranked(values, 1).tolist() == [1.0, 9.0]
    assert rows.ranked(values, 2).tolist() == [4.0, np.inf]
    assert rows.any(values > 4, least=2).tolist() == [False, True]
    drawn = [rows.drawn(np.random.default_rng(seed)).tolist() for seed in range(60)]
    assert {tuple(rows.of[one]) for one in drawn} == {(0, 1), (1, 0)}
    assert len({tuple(one) for one in drawn}) == 6


def test_units_of_one_row_have_the_scores_of_rows() -> None:
    table = DATA.iloc[:200].assign(patient=range(200))
    real = SCHEMA.canonical(table)
    scores = membership_scores(real, SCHEMA.canonical(anywhere(300, 1)), SCHEMA, of=np.arange(200))
    of_units = unit_scores(scores, Grouped.by(np.arange(200)))
    assert list(of_units.seen) == list(scores.seen)
    for name, own in scores.seen.items():
        assert of_units.seen[name].tobytes() == own.tobytes()
    pairs = unit_scores(scores, Grouped.by(np.repeat(np.arange(100), 2)))
    assert len(pairs.seen) == 2 * len(scores.seen)
    assert (pairs.seen["closest" + BEST_ROW] >= pairs.seen["closest"]).all()


def test_ends_are_compared_unit_by_unit() -> None:
    """Each patient of train has one of the outermost rows, and the release has train's ends."""
    schema = Schema(columns=(SPACE,))
    rng = np.random.default_rng(0)
    train, holdout = rng.uniform(0.2, 0.8, (2, 400, 1))
    train[0], train[200] = 0.05, 0.95
    units = ComparedUnits(*(Grouped.by(np.repeat(np.arange(40), 10)) for _ in range(2)))
    given: dict[str, Any] = {"rng": np.random.default_rng(1), "confidence": 0.95}
    release = np.concatenate([train[[0, 200]], rng.uniform(0.3, 0.7, (300, 1))])
    found = find_outliers(train, release, holdout, schema, units=units, **given)
    assert found.ends is not None
    assert found.ends.train.found == found.ends.outer == 2
    rare = found.columns[0].repeated
    assert rare.train.of == 40  # a row of each
    assert rare.holdout is not None
    assert rare.holdout.of == 40


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"coins": None}, "an audit by patient needs `coins`"),
        ({"unit": "doctor"}, "the train table lacks the unit's column 'doctor'"),
        ({"schema": SCHEMA.with_unit(Unit(column="doctor"))}, "the schema's unit is 'doctor'"),
        (
            {"schema": SCHEMA.with_unit(Unit(column="patient", max_rows=9))},
            "300 units of 'patient' with more than 9 rows (the largest has 10)",
        ),
    ],
)
def test_what_does_not_fit_the_coins_is_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises((DataError, SettingsError)) as caught:
        audited(anywhere(600, 3), **{"unit": "patient"} | settings)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_rows_that_had_coins_are_not_audited_as_units() -> None:
    parts = dpaudit.split(DATA, seed=1)
    with pytest.raises(DataError, match="have rows in both train and holdout: deal units"):
        audited(anywhere(600, 3), parts, unit="patient")
    lone = visits(rows=1)
    alone = dpaudit.split(lone, unit="patient", seed=1)
    said = "every patient has one row, so this equals an audit of rows"
    assert said in audited(anywhere(600, 3), alone).warnings
    with pytest.raises(DataError, match="has a coin for each row, not for each patient"):
        audited(anywhere(600, 3), dpaudit.split(lone, seed=1), unit="patient")


def test_without_a_hold_out_units_are_refused() -> None:
    with pytest.raises(SettingsError, match="needs `holdout` and `coins`"):
        dpaudit.audit_data(anywhere(600, 3), SPLIT.train, schema=SCHEMA, unit="patient")


def test_the_command_line_deals_and_audits_units(tmp_path: Path) -> None:
    def called(*words: object) -> tuple[int, str, str]:
        done = CliRunner().invoke(app, [str(word) for word in words])
        return done.exit_code, done.stdout, done.stderr

    data, parts = tmp_path / "visits.csv", tmp_path / "parts"
    DATA.to_csv(data, index=False)
    code, out, _ = called("split", "--data", data, "--to", parts, "--unit", "patient", "--seed", 1)
    assert code == 0
    assert "300 coins" in out
    trained = pd.read_csv(parts / "train.csv")
    trained.to_csv(tmp_path / "s.csv", index=False)  # patients included
    tables = ("--synthetic", tmp_path / "s.csv", "--train", parts / "train.csv")
    coins = ("--holdout", parts / "holdout.csv", "--coins", parts / "coins.json")
    given = (*tables, *coins, "--epsilon", 1, "--secret", "x", "--json", "-q")
    code, out, _ = called("audit-data", *given)
    assert code == 1
    document = json.loads(out)
    assert document["unit"] == "patient"
    assert document["claim"]["unit"] == "patient"
    assert "--unit patient" not in document["reproduce"]  # the coin file says it
    code, _, err = called("audit-data", *given, "--unit", "town")
    assert code == 2
    assert "the coin file has a coin for each patient, not for each town" in " ".join(err.split())
